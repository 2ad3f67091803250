use loadline_model::Random;

use super::*;

const JOBS: [u32; 7] = [1, 2, 4, 8, 16, 24, 32];

fn points(tps: impl Fn(f64) -> f64, jobs: &[u32]) -> Vec<Point> {
    jobs.iter().map(|n| f64::from(*n)).map(|jobs| Point { jobs, tps: tps(jobs), ..Point::default() }).collect()
}

fn one(points: &[Point]) -> Fitted {
    fit(&[Series::new("P", "W", points).unwrap()]).remove(0)
}

/// A queue of CPUs that fill up: 1,000 tps a job, at most 8,000.
fn filling(jobs: f64) -> f64 {
    8000.0 / (1.0 + (8.0 / jobs).powi(3)).cbrt()
}

fn uniform(random: &mut Random) -> f64 {
    random.next() as f64 / u64::MAX as f64
}

/// Throughput and log file sync (s) of `jobs` jobs that go round between `cpus` CPUs and a log that serves one at a time: a closed
/// network by Buzen's convolution (Communications of the ACM 16 (1973) 527).
fn queues(jobs: usize, cpus: usize, cpu_s: f64, log_s: f64) -> (f64, f64) {
    // Weight of k jobs at a station, of times over their sum: no sum of products then leaves the range of a number.
    let station = |time: f64, servers: usize| -> Vec<f64> {
        let next = |weight: &mut f64, k: usize| {
            Some(std::mem::replace(weight, *weight * time / (cpu_s + log_s) / (k + 1).min(servers) as f64))
        };
        (0..=jobs).scan(1.0, next).collect()
    };
    let (cpu, log) = (station(cpu_s, cpus), station(log_s, 1));
    let ways = |n: usize| -> f64 { (0..=n).map(|k| log[k] * cpu[n - k]).sum() };
    let tps = ways(jobs - 1) / ways(jobs) / (cpu_s + log_s);
    let at_log: f64 = (0..=jobs).map(|k| k as f64 * log[k] * cpu[jobs - k]).sum::<f64>() / ways(jobs);
    (tps, at_log / tps)
}

/// Three workloads of a made-up platform, whose figures vary by 1 %.
fn made_up(random: &mut Random) -> Vec<Series> {
    let cpus = [4, 8, 24, 64][random.below(4) as usize];
    let mut out = Vec::new();
    for redo in [2.0, 25.0, 125.0] {
        let (cpu_s, log_s) = (1e-3 + 4e-3 * uniform(random), (5e-6 + redo * 2e-6) * (1.0 + uniform(random)));
        let mut vary = |value: f64| value * (1.0 + 0.01 * ((0..12).map(|_| uniform(random)).sum::<f64>() - 6.0));
        let points = [1, 2, 4, 8, 16, 24, 32, 48].map(|jobs| {
            let (tps, sync) = queues(jobs, cpus, cpu_s, log_s);
            let cpu_pct = Some(vary(tps * cpu_s / cpus as f64 * 100.0).min(100.0));
            let (tps, sync_ms) = (vary(tps), Some(vary(sync * 1e3)));
            Point { jobs: jobs as f64, tps, sync_ms, redo_kib: Some(redo), cpu_pct, ..Point::default() }
        });
        out.push(Series::new("P", &format!("W{redo}"), &points).unwrap());
    }
    out
}

#[test]
fn intervals_cover_the_truth_of_platforms_that_no_model_describes() {
    let mut random = Random::new(11);
    let series: Vec<Evaluated> = (0..40).flat_map(|_| evaluate(&made_up(&mut random), |_| true).series).collect();
    let all = Overall::over(series.iter().filter(|s| s.refused.is_none())).unwrap();
    assert!(all.held_out > 350 && all.coverage_pct >= 85.0 && all.mean_abs_error_pct < 15.0, "{all:?}");
}

#[test]
fn a_forecast_passes_through_the_points_and_goes_on_where_they_end() {
    let noisy = |jobs: f64| filling(jobs) * if jobs == 32.0 { 1.05 } else { 1.0 };
    let fitted = one(&points(noisy, &JOBS));
    let at = |jobs| fitted.tps(jobs).unwrap();
    for p in &fitted.series.points {
        let (e, kind) = at(p.jobs);
        assert!(kind == Kind::Interpolation && (e.value / p.tps - 1.0).abs() < 1e-9 && e.low < p.tps && p.tps < e.high);
    }
    assert!((at(12.0).0.value / filling(12.0) - 1.0).abs() < 0.05 && at(0.5).0.value > 499.0);
    assert!((at(32.001).0.value / at(32.0).0.value - 1.0).abs() < 1e-3 && at(32.001).1 != Kind::Interpolation);
}

#[test]
fn intervals_grow_with_the_distance_and_few_points_make_wide_ones() {
    let width = |fitted: &Fitted, jobs| fitted.tps(jobs).map(|(e, _)| e.high / e.low).unwrap();
    let many = one(&points(filling, &[1, 2, 4, 8, 12, 16, 24, 32]));
    assert!(width(&many, 40.0) < width(&many, 64.0) && width(&many, 64.0) < width(&many, 128.0));
    let few = one(&points(filling, &[1, 8, 32]));
    assert!(few.cross_validated_pct.is_none() && width(&few, 64.0) > width(&many, 64.0) && width(&few, 64.0) > 1.3);
    let two = one(&points(filling, &[1, 32]));
    assert!(two.refused.is_none() && width(&two, 64.0) > 1.3);
    let single = one(&points(filling, &[8]));
    assert!(
        single.refused == Some(Refusal::TooFewPoints { points: 1 })
            && single.tps(16.0).is_none()
            && single.tps(8.0).is_some()
    );
    let straight = one(&points(|jobs| 100.0 * jobs, &JOBS[..4]));
    for jobs in [9.0, 16.0, 32.0] {
        let (e, _) = straight.tps(jobs).unwrap();
        assert!(
            e.high > e.value * 1.02 && e.low < e.value * 0.98 && e.low < 100.0 * jobs && 100.0 * jobs < e.high,
            "{e:?}"
        );
    }
}

/// Throughput that falls to a third within the last step, and throughputs by chance, a third to three times a law.
#[test]
fn what_no_law_follows_is_refused() {
    let cliff = |jobs: f64| if jobs < 30.0 { filling(jobs) } else { filling(jobs) / 3.0 };
    let fitted = one(&points(cliff, &JOBS));
    assert!(matches!(fitted.refused, Some(Refusal::NoLaw { .. })), "{:?}", fitted.refused);
    assert!(fitted.tps(64.0).is_none() && fitted.tps(20.0).is_some() && one(&points(filling, &JOBS)).refused.is_none());
    // Nor does one have throughput that grows faster than jobs.
    let faster = one(&points(|jobs| 100.0 * jobs.powf(1.5), &JOBS));
    assert!(matches!(faster.refused, Some(Refusal::NoLaw { .. })), "{:?}", faster.refused);
    let mut random = Random::new(3);
    for jobs in [&[1, 2, 4, 8, 16, 32][..], &[1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]] {
        let mut refused = 0;
        for _ in 0..60 {
            let mut points = points(filling, jobs);
            points.iter_mut().for_each(|p| p.tps *= 3f64.powf(uniform(&mut random) * 2.0 - 1.0));
            refused += evaluate(&[Series::new("P", "W", &points).unwrap()], |_| true).refused();
        }
        assert!(refused > 30, "{refused} of 60, {jobs:?}");
    }
}

#[test]
fn figures_obey_the_operational_laws() {
    let with = |p: &Point| Point {
        latency_ms: Some(p.jobs / p.tps * 1e3 - 0.05),
        p99_ms: Some(p.jobs / p.tps * 3e3),
        redo_kib: Some(4.0),
        cpu_pct: Some(p.tps / 100.0),
        ..*p
    };
    let fitted = one(&points(filling, &JOBS).iter().map(with).collect::<Vec<_>>());
    for jobs in [3.0, 20.0, 48.0, 100.0] {
        let at = |figure| fitted.figure(figure, jobs).unwrap().0;
        let (tps, latency) = (at(Figure::Tps), at(Figure::LatencyMs));
        assert!((jobs - tps.value * (latency.value + 0.05) / 1e3).abs() < 1e-6 * jobs, "{jobs}");
        assert!((at(Figure::RedoMibPerS).value / (tps.value * 4.0 / 1024.0) - 1.0).abs() < 1e-9);
        assert!(
            (at(Figure::CpuPct).value / (tps.value / 100.0) - 1.0).abs() < 0.02 && at(Figure::CpuPct).high <= 100.0
        );
        assert!(at(Figure::P99Ms).value > 2.5 * latency.value);
        for e in Figure::ALL.map(at) {
            assert!(e.low <= e.value && e.value <= e.high, "{e:?}");
        }
    }
    let bare = one(&points(filling, &JOBS));
    assert_eq!([Figure::P99Ms, Figure::CpuPct].map(|figure| bare.figure(figure, 4.0)), [None, None]);
}

#[test]
fn no_forecast_needs_more_cpu_than_there_is() {
    // 1,000 tps a job and nothing that bends: only the CPU figures show that 8,000 tps are the most.
    let with = |cpu: fn(f64) -> f64| -> Fitted {
        let point = |p: Point| Point { cpu_pct: Some(cpu(p.tps)), ..p };
        one(&points(|n| 1000.0 * n, &[1, 2, 3, 4, 5]).into_iter().map(point).collect::<Vec<_>>())
    };
    let tps = |fitted: &Fitted| fitted.tps(16.0).unwrap().0.value;
    let bound = with(|tps| tps / 80.0);
    assert!((tps(&bound) / 8000.0 - 1.0).abs() < 0.01 && bound.tps(64.0).unwrap().0.high < 8000.0 * 1.1);
    // Others use the CPUs, or transactions need less of it the more there are: then it bounds nothing.
    for unbound in [(|_| 95.0) as fn(f64) -> f64, |tps| 60.0 + tps / 1000.0, |tps| (tps / 22.0).min(99.0)] {
        assert!((tps(&with(unbound)) / 16000.0 - 1.0).abs() < 0.01, "{}", tps(&with(unbound)));
    }
}

#[test]
fn a_thousandth_of_the_last_point_does_not_change_a_forecast() {
    // A nearly straight sweep: a log that is full right after the last point would explain its last digit.
    let forecast = |last: f64| -> f64 {
        let measured = [(1.0, 1000.0), (2.0, 1990.0), (4.0, 3950.0), (6.0, 5900.0), (8.0, last)];
        one(&measured.map(|(jobs, tps)| Point { jobs, tps, ..Point::default() })).tps(12.0).unwrap().0.value
    };
    for last in [7780.0, 7790.0, 7800.0, 7810.0, 7820.0] {
        assert!((forecast(last) / 11_500.0 - 1.0).abs() < 0.04, "{last}: {}", forecast(last));
    }
}

#[test]
fn objectives_and_needs_are_forecasts_read_backwards() {
    let fitted = one(&points(filling, &JOBS));
    let found = fitted.breaks(Figure::LatencyMs, 6.0).unwrap();
    let at = found.at.unwrap();
    let latency = |jobs| fitted.figure(Figure::LatencyMs, jobs).unwrap().0.value;
    assert!(latency(at) > 6.0 && latency(at - 1.0) <= 6.0);
    assert!(found.earliest.unwrap() <= at && found.latest.is_none_or(|l| l >= at));
    let needs = fitted.needs(4000.0).unwrap().at.unwrap();
    assert!((filling(needs) / 4000.0 - 1.0).abs() < 0.25 && fitted.tps(needs).unwrap().0.value >= 4000.0, "{needs}");
    assert_eq!(fitted.needs(1e9).unwrap().at, None);
    assert_eq!(fitted.breaks(Figure::P99Ms, 1.0), None);
    // A machine that wakes up: slow with one job, then as before.
    let waking = one(&points(|n| if n < 2.0 { 100.0 } else { filling(n) }, &JOBS));
    let again = waking.breaks(Figure::LatencyMs, 3.0).unwrap().at.unwrap();
    assert!(again > 16.0 && waking.holds(Figure::LatencyMs, 3.0, again - 1.0), "{again}");
    let never = waking.breaks(Figure::LatencyMs, 0.1).unwrap().at.unwrap();
    assert!(!waking.holds(Figure::LatencyMs, 0.1, never) && !waking.holds(Figure::LatencyMs, 0.1, never - 1.0));
}

#[test]
fn what_is_held_out_does_not_matter_to_its_forecast() {
    let all = |spoil: f64| -> Vec<Estimate> {
        let mut table = made_up(&mut Random::new(5));
        for p in table.iter_mut().flat_map(|series| series.points.iter_mut().skip(4)) {
            (p.tps, p.sync_ms, p.cpu_pct) = (p.tps * spoil, p.sync_ms.map(|v| v * spoil), p.cpu_pct.map(|v| v * spoil));
        }
        evaluate(&table, |_| true).series.iter().flat_map(|s| &s.held_out).map(|h| h.forecast).collect()
    };
    assert!(all(1.0).len() == 12 && all(1.0) == all(0.1));
    let short = Series::new("P", "short", &points(filling, &[1, 2, 4])).unwrap();
    assert_eq!(evaluate(&[short], |_| true).too_short, ["P short"]);
}

#[test]
fn bad_points_are_named() {
    let bad = |jobs, tps| Series::new("P", "W", &[Point { jobs, tps, ..Point::default() }]).unwrap_err().to_string();
    for (jobs, tps, says) in [(0.0, 5.0, "jobs = 0"), (1.0, f64::NAN, "NaN"), (1.0, -3.0, "-3"), (1.0, 1e300, "1e300")]
    {
        assert!(bad(jobs, tps).contains(says), "{says}");
    }
    assert!(Series::new("P", "W", &[]).is_err());
    assert_eq!(Series::new("P", "W", &points(filling, &[4, 4, 1])).unwrap().points.len(), 2);
}

#[test]
fn a_known_think_time_is_taken_out_of_the_cycle() {
    // One server of 1 ms with a queue, and jobs that think 50 ms: X = (N − at the server) / Z.
    let (think_ms, latency) = (50.0, |tps: f64| 1.0 / (1.0 - tps / 1e3));
    let tps = |jobs: f64| solve::inverse(1e3, jobs, |tps| tps * (latency(tps) + think_ms) / 1e3);
    let with = |p: &Point| Point { latency_ms: Some(latency(p.tps)), away_ms: Some(think_ms), ..*p };
    let measured: Vec<Point> = points(tps, &[2, 4, 8, 12, 16, 24, 32, 40]).iter().map(with).collect();
    let fitted = one(&measured);
    for jobs in [3.0, 20.0, 40.0, 48.0, 60.0] {
        let at = |figure| fitted.figure(figure, jobs).unwrap().0.value;
        let (x, r) = (at(Figure::Tps), at(Figure::LatencyMs));
        assert!((x * (r + think_ms) / 1e3 / jobs - 1.0).abs() < 0.01, "{jobs}: {x} tps, {r} ms");
        assert!(jobs > 40.0 || (r / latency(tps(jobs)) - 1.0).abs() < 0.1, "{jobs}: {r} ms");
    }
}
