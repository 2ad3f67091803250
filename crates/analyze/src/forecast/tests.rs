use loadline_model::Random;

use super::simulated::table;
use super::*;

fn points(of: impl Fn(f64) -> f64, jobs: &[u32]) -> Vec<Point> {
    jobs.iter().map(|n| f64::from(*n)).map(|jobs| Point { jobs, tps: of(jobs), ..Point::default() }).collect()
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
    let mut single: std::collections::BTreeMap<Kind, (f64, f64)> = Default::default();
    for n in 0..60 {
        let found = evaluate(&table(&mut random, [0.005, 0.01, 0.03][n % 3]));
        for h in found.series.iter().filter(|s| s.refused.is_none()).flat_map(|s| &s.held_out) {
            rows += 1.0;
            covered += f64::from(u8::from(h.covered()));
        }
        error += found.series.iter().flat_map(|s| &s.held_out).map(HeldOut::error_pct).sum::<f64>();
        for (kind, mean, count) in found.models() {
            let at = single.entry(kind).or_default();
            *at = (at.0 + mean * count as f64, at.1 + count as f64);
        }
    }
    assert!(rows > 400.0 && covered / rows >= 0.85, "{covered} of {rows}");
    // Choosing costs little against the model that turns out best, and is far better than the worst.
    let means: Vec<f64> = single.values().map(|(sum, count)| sum / count).collect();
    let [best, worst] = [means.iter().copied().fold(f64::MAX, f64::min), means.iter().copied().fold(0.0, f64::max)];
    assert!(error / rows < best * 1.1 && error / rows < worst * 0.8, "{}: {means:?}", error / rows);
}

#[test]
fn between_measured_points_a_forecast_passes_through_them() {
    let fitted = one(&points(filling, &[1, 2, 4, 8, 16, 32]));
    for p in &fitted.series.points {
        let (e, kind) = fitted.tps(p.jobs).unwrap();
        assert!(kind == Kind::Interpolation && (e.value / p.tps - 1.0).abs() < 1e-9 && e.low < p.tps && p.tps < e.high);
    }
    let (e, _) = fitted.tps(12.0).unwrap();
    assert!((e.value / filling(12.0) - 1.0).abs() < 0.05 && e.low < filling(12.0) && filling(12.0) < e.high, "{e:?}");
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
    assert!(single.refused.is_some() && single.tps(16.0).is_none() && single.tps(8.0).is_some());
}

#[test]
fn a_change_of_regime_is_refused() {
    // Throughput falls to a third within the last step: no curve follows.
    let cliff = |jobs: f64| if jobs < 30.0 { filling(jobs) } else { filling(jobs) / 3.0 };
    let fitted = one(&points(cliff, &[1, 2, 4, 8, 16, 24, 32]));
    assert!(
        fitted.refused.is_some() && fitted.tps(64.0).is_none() && fitted.tps(20.0).is_some(),
        "{:?}",
        fitted.refused
    );
    assert!(one(&points(filling, &[1, 2, 4, 8, 16, 24, 32])).refused.is_none());
}

/// Throughputs by chance, a third to three times a law, are hardly ever forecast from three points, nor from six.
#[test]
fn scattered_series_are_refused() {
    let mut random = Random::new(3);
    for jobs in [&[1, 2, 4, 8, 16, 32][..], &[1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]] {
        let mut scattered = |jobs| filling(jobs) * 3f64.powf(super::simulated::uniform(&mut random) * 2.0 - 1.0);
        let tables = (0..60).map(|_| {
            let points: Vec<Point> = points(|_| 1.0, jobs);
            let points: Vec<Point> = points.iter().map(|p| Point { tps: scattered(p.jobs), ..*p }).collect();
            evaluate(&[Series::new("P", "W", &points).unwrap()])
        });
        let refused = tables.map(|found| found.refused()).sum::<usize>();
        assert!(refused > 30, "{refused} of 60, {jobs:?}");
    }
}

#[test]
fn intervals_have_two_sides_also_where_throughput_grows_faster_than_jobs() {
    for (power, jobs) in [(1.0, &[1, 2, 4, 8][..]), (1.2, &[1, 2, 4, 8, 16, 32]), (1.5, &[1, 2, 4, 8, 16, 32])] {
        let truth = |jobs: f64| 100.0 * jobs.powf(power);
        let fitted = one(&points(truth, jobs));
        for jobs in [1.1, 1.5, 2.0, 4.0].map(|by| fitted.measured_to() * by) {
            let (e, _) = fitted.tps(jobs).unwrap();
            assert!(e.high > e.value * 1.02 && e.low < e.value * 0.98, "{power}, {jobs}: {e:?}");
            assert!(e.low < truth(jobs) && truth(jobs) < e.high, "{power}, {jobs}: {e:?}");
        }
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
    let fitted = one(&points(filling, &[1, 2, 4, 8, 16, 24, 32]).iter().map(with).collect::<Vec<_>>());
    for jobs in [3.0, 20.0, 48.0, 100.0] {
        let of = |figure| fitted.figure(figure, jobs).unwrap().0;
        let (tps, latency) = (of(Figure::Tps), of(Figure::LatencyMs));
        assert!((jobs - tps.value * (latency.value + 0.05) / 1e3).abs() < 1e-6 * jobs, "{jobs}");
        assert!((of(Figure::RedoMibPerS).value / (tps.value * 4.0 / 1024.0) - 1.0).abs() < 1e-9);
        assert!(
            (of(Figure::CpuPct).value / (tps.value / 100.0) - 1.0).abs() < 0.02 && of(Figure::CpuPct).high <= 100.0
        );
        assert!(of(Figure::P99Ms).value > 2.5 * latency.value);
        for e in Figure::ALL.map(of) {
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
    let fitted = one(&points(filling, &[1, 2, 4, 8, 16, 24, 32]).iter().map(odd).collect::<Vec<_>>());
    for p in &fitted.series.points {
        let is = |figure, value: f64| {
            for (jobs, near) in [(p.jobs, 1e-6), (p.jobs * 1.0001, 1e-2)] {
                let e = fitted.figure(figure, jobs).unwrap().0;
                assert!((e.value / value - 1.0).abs() < near, "{figure:?} at {jobs}: {e:?} and not {value}");
            }
        };
        is(Figure::LatencyMs, p.latency_ms.unwrap());
        is(Figure::P99Ms, p.p99_ms.unwrap());
        is(Figure::RedoMibPerS, p.redo_kib.unwrap() * p.tps / 1024.0);
        is(Figure::CpuPct, p.cpu_pct.unwrap());
    }
    let bare = one(&points(filling, &[1, 2, 4, 8]));
    assert_eq!(bare.figure(Figure::P99Ms, 4.0), None);
    assert_eq!(bare.figure(Figure::CpuPct, 16.0), None);
}

#[test]
fn a_forecast_goes_on_where_the_points_end() {
    let noisy = |jobs: f64| filling(jobs) * if jobs == 32.0 { 1.05 } else { 1.0 };
    let fitted = one(&points(noisy, &[1, 2, 4, 8, 16, 24, 32]));
    let at = |jobs| fitted.tps(jobs).unwrap();
    assert!((at(32.001).0.value / at(32.0).0.value - 1.0).abs() < 1e-3 && at(32.001).1 != Kind::Interpolation);
}

/// CPU per transaction that grows with the load, so that a straight line misses the last point.
#[test]
fn cpu_does_not_fall_where_throughput_rises() {
    let cpu = [10.0, 11.0, 14.0, 30.0, 60.0, 95.0];
    let mut points = points(filling, &[1, 2, 4, 8, 16, 32]);
    points.iter_mut().zip(cpu).for_each(|(p, pct)| p.cpu_pct = Some(pct));
    let fitted = one(&points);
    let at = |jobs: f64| (fitted.tps(jobs).unwrap().0.value, fitted.figure(Figure::CpuPct, jobs).unwrap().0.value);
    assert!((at(32.0).1 - 95.0).abs() < 1e-6);
    let ((tps, last), (more, next)) = (at(32.0), at(40.0));
    assert!((next >= last.min(100.0) * (more / tps).min(1.0) * 0.99), "{last} at {tps} tps, {next} at {more}");
}

#[test]
fn no_forecast_needs_more_cpu_than_there_is() {
    // 1,000 tps a job and nothing that bends: only the CPU figures show that 8,000 tps are the most.
    let with = |cpu: fn(f64) -> f64| -> Fitted {
        let of = |p: Point| Point { cpu_pct: Some(cpu(p.tps)), ..p };
        one(&points(|n| 1000.0 * n, &[1, 2, 3, 4, 5]).into_iter().map(of).collect::<Vec<_>>())
    };
    let tps = |fitted: &Fitted| fitted.tps(16.0).unwrap().0.value;
    let bound = with(|tps| tps / 80.0);
    assert!((tps(&bound) / 8000.0 - 1.0).abs() < 0.01 && bound.tps(64.0).unwrap().0.high < 8000.0 * 1.1);
    // Commits share what writing the log takes: the more jobs, the less a transaction costs. The CPUs are full where the end points.
    let bent = with(|tps| [20.0, 60.0, 75.0, 84.0, 93.0][tps as usize / 1000 - 1]);
    assert!((tps(&bent) / 5780.0 - 1.0).abs() < 0.02, "{}", tps(&bent));
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
    let fitted = one(&points(filling, &[1, 2, 4, 8, 16, 24, 32]));
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
    let waking = one(&points(|n| if n < 2.0 { 100.0 } else { filling(n) }, &[1, 2, 4, 8, 16, 24, 32]));
    let again = waking.breaks(Figure::LatencyMs, 3.0).unwrap().at.unwrap();
    assert!(again > 16.0 && waking.holds(Figure::LatencyMs, 3.0, again - 1.0), "{again}");
    let never = waking.breaks(Figure::LatencyMs, 0.1).unwrap().at.unwrap();
    assert!(!waking.holds(Figure::LatencyMs, 0.1, never) && !waking.holds(Figure::LatencyMs, 0.1, never - 1.0));
    // Without a queue power is highest where jobs begin to queue.
    assert!((4.0..=16.0).contains(&fitted.highest_power().unwrap()));
}

#[test]
fn what_is_held_out_does_not_matter_to_its_forecast() {
    let series = |end: f64| {
        Series::new("P", "W", &points(|n| if n > 20.0 { end } else { filling(n) }, &[1, 4, 8, 16, 24, 32])).unwrap()
    };
    let forecast = |end| evaluate(&[series(end)]).series[0].held_out.iter().map(|h| h.forecast).collect::<Vec<_>>();
    assert_eq!(forecast(7000.0), forecast(70.0));
    // Nor that of other series and other figures.
    let table = |spoil: f64| -> Vec<Series> {
        let mut table = table(&mut Random::new(5), 0.01);
        for series in &mut table {
            let fitted = series.points.len().div_ceil(2);
            for p in series.points.iter_mut().skip(fitted) {
                let by = |figure: Option<f64>| figure.map(|v| v * spoil);
                *p = Point {
                    tps: p.tps * spoil,
                    sync_ms: by(p.sync_ms),
                    redo_kib: by(p.redo_kib),
                    cpu_pct: by(p.cpu_pct),
                    ..*p
                };
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
    assert!(
        bad(0.0, 5.0).contains("jobs = 0")
            && bad(1.0, f64::NAN).contains("NaN")
            && bad(1.0, -3.0).contains("-3")
            && bad(1.0, 1e300).contains("1e300")
    );
    assert!(Series::new("P", "W", &[]).is_err());
    let twice = points(filling, &[4, 4, 1]);
    assert_eq!(Series::new("P", "W", &twice).unwrap().points.len(), 2);
}

#[test]
fn a_known_think_time_is_taken_out_of_the_cycle() {
    // One server of 1 ms with a queue, and jobs that think 50 ms: N = X · (R + Z), R = 1 ms / (1 − X · 1 ms).
    let (think_ms, service_ms) = (50.0, 1.0);
    let latency = |tps: f64| service_ms / (1.0 - tps * service_ms / 1e3);
    let tps = |jobs: f64| {
        let (mut low, mut high) = (0.0, 1e3 / service_ms);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            let above = middle * (latency(middle) + think_ms) / 1e3 > jobs;
            (low, high) = if above { (low, middle) } else { (middle, high) };
        }
        low
    };
    let with = |p: &Point| Point { latency_ms: Some(latency(p.tps)), away_ms: Some(think_ms), ..*p };
    let measured: Vec<Point> = points(tps, &[2, 4, 8, 12, 16, 24, 32, 40]).iter().map(with).collect();
    let fitted = one(&measured);
    for jobs in [3.0, 20.0, 40.0, 48.0, 60.0] {
        let of = |figure| fitted.figure(figure, jobs).unwrap().0.value;
        let (x, r) = (of(Figure::Tps), of(Figure::LatencyMs));
        assert!((x * (r + think_ms) / 1e3 / jobs - 1.0).abs() < 0.01, "{jobs}: {x} tps, {r} ms");
        assert!(jobs > 40.0 || (r / latency(tps(jobs)) - 1.0).abs() < 0.1, "{jobs}: {r} ms");
    }
}
