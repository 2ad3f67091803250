use loadline_model::Random;

use super::simulated::{table, uniform};
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

#[test]
fn intervals_cover_the_truth_of_platforms_that_no_model_describes() {
    let mut random = Random::new(11);
    let (mut rows, mut covered, mut error) = (0.0, 0.0, 0.0);
    let mut usl = 0.0;
    for n in 0..60 {
        let found = evaluate(&table(&mut random, [0.005, 0.01, 0.03][n % 3]));
        for h in found.series.iter().filter(|s| s.refused.is_none()).flat_map(|s| &s.held_out) {
            rows += 1.0;
            covered += f64::from(u8::from(h.covered()));
        }
        error += found.series.iter().flat_map(|s| &s.held_out).map(HeldOut::error_pct).sum::<f64>();
        usl += found.models().iter().filter(|m| m.0 == Kind::Usl).map(|m| m.1 * m.2 as f64).sum::<f64>();
    }
    assert!(rows > 400.0 && covered / rows >= 0.85, "{covered} of {rows}");
    assert!(error < 0.8 * usl, "{} {}", error / rows, usl / rows);
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
    assert!(few.cross_validated.is_none() && width(&few, 64.0) > width(&many, 64.0) && width(&few, 64.0) > 1.3);
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
    assert!(matches!(fitted.refused, Some(Refusal::NoFit { last: true, .. })), "{:?}", fitted.refused);
    assert!(fitted.tps(64.0).is_none() && fitted.tps(20.0).is_some() && one(&points(filling, &JOBS)).refused.is_none());
    // Nor does one have throughput that grows faster than jobs.
    let faster = one(&points(|jobs| 100.0 * jobs.powf(1.5), &JOBS));
    assert!(matches!(faster.refused, Some(Refusal::NoForecast { .. })), "{:?}", faster.refused);
    let mut random = Random::new(3);
    for jobs in [&[1, 2, 4, 8, 16, 32][..], &[1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]] {
        let mut refused = 0;
        for _ in 0..60 {
            let mut points = points(filling, jobs);
            points.iter_mut().for_each(|p| p.tps *= 3f64.powf(uniform(&mut random) * 2.0 - 1.0));
            refused += evaluate(&[Series::new("P", "W", &points).unwrap()]).refused();
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
    // Figures that no law describes are what was measured where they were, and go on from there.
    let odd = |p: &Point| Point {
        latency_ms: Some(p.jobs / p.tps * if p.jobs > 8.0 { 700.0 } else { 900.0 }),
        redo_kib: Some(4.0 + p.jobs / 8.0),
        cpu_pct: Some(20.0 + p.jobs),
        ..with(p)
    };
    let fitted = one(&points(filling, &JOBS).iter().map(odd).collect::<Vec<_>>());
    for p in &fitted.series.points {
        for figure in Figure::ALL {
            for (jobs, near) in [(p.jobs, 1e-6), (p.jobs * 1.0001, 1e-2)] {
                let (e, _) = fitted.figure(figure, jobs).unwrap();
                let value = figure.measured(p).unwrap();
                assert!((e.value / value - 1.0).abs() < near, "{figure:?} at {jobs}: {e:?} and not {value}");
            }
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
    // Without a queue power is highest where jobs begin to queue.
    assert!((4.0..=16.0).contains(&fitted.highest_power().unwrap()));
}

#[test]
fn what_is_held_out_does_not_matter_to_its_forecast() {
    let table = |spoil: f64| -> Vec<Series> {
        let mut table = table(&mut Random::new(5), 0.01);
        for series in &mut table {
            let fitted = series.points.len().div_ceil(2);
            for p in series.points.iter_mut().skip(fitted) {
                let by = |figure: Option<f64>| figure.map(|v| v * spoil);
                let (sync_ms, redo_kib, cpu_pct) = (by(p.sync_ms), by(p.redo_kib), by(p.cpu_pct));
                *p = Point { tps: p.tps * spoil, sync_ms, redo_kib, cpu_pct, ..*p };
            }
        }
        table
    };
    let all = |spoil| -> Vec<_> {
        evaluate(&table(spoil)).series.iter().flat_map(|s| &s.held_out).map(|h| h.forecast).collect()
    };
    let forecasts: Vec<Estimate> = all(1.0);
    assert!(forecasts.len() > 3 && forecasts == all(0.1), "{forecasts:?}");
    let short = Series::new("P", "short", &points(filling, &[1, 2, 4])).unwrap();
    assert_eq!(evaluate(&[short]).too_short, ["P short"]);
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
    let tps = |jobs: f64| linear::inverse(1e3, jobs, |tps| tps * (latency(tps) + think_ms) / 1e3);
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
