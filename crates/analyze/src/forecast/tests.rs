use loadline_model::Random;

use super::laws::{FEWEST, Law, closed, inverse, usl};
use super::*;
use crate::paired::simulated::unit;

const JOBS: [u32; 7] = [1, 2, 4, 8, 16, 24, 32];

fn points(tps: impl Fn(f64) -> f64, jobs: &[u32]) -> Vec<Point> {
    jobs.iter().map(|n| f64::from(*n)).map(|jobs| Point { jobs, tps: tps(jobs), ..Point::default() }).collect()
}

fn sweep(workload: &str, points: Vec<Point>) -> Series {
    Series { platform: "P".to_owned(), workload: workload.to_owned(), name: format!("P {workload}"), points }
}

fn one(points: &[Point]) -> Fitted {
    fit(&[sweep("W", points.to_vec())]).remove(0)
}

fn value(fitted: &Fitted, figure: Figure, jobs: f64) -> f64 {
    fitted.figure(figure, jobs).unwrap().0.value
}

/// A queue of CPUs that fill up: 1,000 tps a job, at most 8,000.
fn filling(jobs: f64) -> f64 {
    8000.0 / (1.0 + (8.0 / jobs).powi(3)).cbrt()
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() < share
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
        let (cpu_s, log_s) = (1e-3 + 4e-3 * unit(random), (5e-6 + redo * 2e-6) * (1.0 + unit(random)));
        let mut vary = |value: f64| value * (1.0 + 0.01 * ((0..12).map(|_| unit(random)).sum::<f64>() - 6.0));
        let points = [1, 2, 4, 8, 16, 24, 32, 48].map(|jobs| {
            let (tps, sync) = queues(jobs, cpus, cpu_s, log_s);
            let cpu_pct = Some(vary(tps * cpu_s / cpus as f64 * 100.0).min(100.0));
            let (tps, sync_ms) = (vary(tps), Some(vary(sync * 1e3)));
            Point { jobs: jobs as f64, tps, sync_ms, redo_kib: Some(redo), cpu_pct, ..Point::default() }
        });
        out.push(sweep(&format!("W{redo}"), points.to_vec()));
    }
    out
}

#[test]
fn intervals_cover_the_truth_of_platforms_that_no_model_describes() {
    let mut random = Random::new(11);
    let series: Vec<Evaluated> = (0..40).flat_map(|_| evaluate(&made_up(&mut random))).collect();
    let all = overall(series.iter().filter(|s| s.fitted.refused.is_none())).unwrap();
    assert!(all.held_out > 350 && all.coverage_pct >= 85.0 && all.mean_abs_error_pct < 15.0, "{all:?}");
}

#[test]
fn what_is_held_out_does_not_matter_to_its_forecast() {
    let all = |spoil: f64| -> Vec<Estimate> {
        let mut table = made_up(&mut Random::new(5));
        for p in table.iter_mut().flat_map(|series| series.points.iter_mut().skip(4)) {
            (p.tps, p.sync_ms, p.cpu_pct) = (p.tps * spoil, p.sync_ms.map(|v| v * spoil), p.cpu_pct.map(|v| v * spoil));
        }
        evaluate(&table).iter().flat_map(|s| &s.held_out).map(|h| h.forecast).collect()
    };
    assert!(all(1.0).len() == 12 && all(1.0) == all(0.1));
    assert!(evaluate(&[sweep("short", points(filling, &JOBS[..3]))]).is_empty());
}

#[test]
fn a_forecast_passes_through_the_points_and_goes_on_where_they_end() {
    let fitted = one(&points(|jobs| filling(jobs) * if jobs == 32.0 { 1.05 } else { 1.0 }, &JOBS));
    let at = |jobs| fitted.tps(jobs).unwrap();
    for p in &fitted.series.points {
        let (e, kind) = at(p.jobs);
        assert!(kind == Kind::Interpolation && near(e.value, p.tps, 1e-9) && e.low < p.tps && p.tps < e.high);
    }
    assert!(near(at(12.0).0.value, filling(12.0), 0.05) && at(0.5).0.value > 499.0);
    assert!(near(at(32.001).0.value, at(32.0).0.value, 1e-3) && at(32.001).1 != Kind::Interpolation);
    // A nearly straight sweep: a log that is full right after the last point would explain its last digit.
    for last in [7780.0, 7790.0, 7800.0, 7810.0, 7820.0] {
        let measured = [(1.0, 1000.0), (2.0, 1990.0), (4.0, 3950.0), (6.0, 5900.0), (8.0, last)];
        let fitted = one(&measured.map(|(jobs, tps)| Point { jobs, tps, ..Point::default() }));
        assert!(near(fitted.tps(12.0).unwrap().0.value, 11_500.0, 0.04), "{last}");
    }
}

#[test]
fn intervals_grow_with_the_distance_and_few_points_make_wide_ones() {
    let widths = |of: &Fitted| [40.0, 64.0, 128.0].map(|jobs| of.tps(jobs).map_or(0.0, |(e, _)| e.high / e.low));
    assert!(widths(&one(&points(filling, &[1, 2, 4, 8, 12, 16, 24, 32]))).is_sorted());
    for few in [&[1, 8, 32][..], &[1, 32]].map(|jobs| one(&points(filling, jobs))) {
        assert!(!few.checked && few.refused.is_none() && widths(&few)[1] > 1.3, "{few:?}");
    }
    let straight = one(&points(|jobs| 100.0 * jobs, &JOBS[..4]));
    for (jobs, e) in [9.0, 16.0, 32.0].map(|jobs| (jobs, straight.tps(jobs).unwrap().0)) {
        assert!(e.high > e.value.max(100.0 * jobs) * 1.02 && e.low < e.value.min(100.0 * jobs) * 0.98, "{e:?}");
    }
    let single = one(&points(filling, &[8]));
    assert!(single.refused.is_some() && single.tps(16.0).is_none() && single.tps(8.0).is_some());
}

#[test]
fn a_percentile_that_rises_against_the_mean_widens_its_interval() {
    let of = |ratios: [f64; 5]| {
        let with = |(mut p, ratio): (Point, f64)| {
            p.latency_ms = Some(1e3 * p.jobs / p.tps);
            p.p99_ms = p.latency_ms.map(|ms| ms * ratio);
            p
        };
        let made = points(filling, &[1, 2, 4, 8, 16]).into_iter().zip(ratios).map(with);
        one(&made.collect::<Vec<_>>()).figure(Figure::P99Ms, 32.0).unwrap().0
    };
    let (steady, rising) = (of([1.5; 5]), of([1.5, 1.5, 1.7, 2.2, 3.0]));
    assert!(rising.high / rising.value > 1.3 * steady.high / steady.value, "{steady:?} {rising:?}");
    assert!(rising.high > 32.0 / filling(32.0) * 1e3 * 4.0, "the ratio goes on rising: {rising:?}");
}

/// Throughput that falls to a third within the last step, or grows faster than jobs; and throughputs by chance, a third to three times
/// a law.
#[test]
fn what_no_law_follows_is_refused() {
    let cliff = |jobs: f64| if jobs < 30.0 { filling(jobs) } else { filling(jobs) / 3.0 };
    for fitted in [one(&points(cliff, &JOBS)), one(&points(|jobs| 100.0 * jobs.powf(1.5), &JOBS))] {
        assert!(fitted.refused.is_some() && fitted.tps(64.0).is_none() && fitted.tps(20.0).is_some(), "{fitted:?}");
    }
    assert_eq!(one(&points(filling, &JOBS)).refused, None);
    let mut random = Random::new(3);
    for jobs in [&[1, 2, 4, 8, 16, 32][..], &[1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]] {
        let mut refused = 0;
        for _ in 0..60 {
            let mut points = points(filling, jobs);
            points.iter_mut().for_each(|p| p.tps *= 3f64.powf(unit(&mut random) * 2.0 - 1.0));
            refused += evaluate(&[sweep("W", points)]).iter().filter(|s| s.fitted.refused.is_some()).count();
        }
        assert!(refused > 30, "{refused} of 60, {jobs:?}");
    }
}

/// One server of 1 ms with a queue, and jobs that think 50 ms: X = (N − at the server) / Z.
#[test]
fn figures_obey_the_operational_laws() {
    let latency = |tps: f64| 1.0 / (1.0 - tps / 1e3);
    let tps = |jobs: f64| inverse(1e3, jobs, |tps| tps * (latency(tps) + 50.0) / 1e3);
    let with = |p: &Point| {
        let ms = latency(p.tps);
        let (away_ms, redo_kib, cpu_pct) = (Some(50.0), Some(4.0), Some(p.tps / 10.0));
        Point { latency_ms: Some(ms), p99_ms: Some(ms * 3.0), away_ms, redo_kib, cpu_pct, ..*p }
    };
    let fitted = one(&points(tps, &[2, 4, 8, 12, 16, 24, 32, 40]).iter().map(with).collect::<Vec<_>>());
    for jobs in [3.0, 20.0, 40.0, 48.0, 60.0] {
        let all = Figure::ALL.map(|figure| fitted.figure(figure, jobs).unwrap().0);
        assert!(all.iter().all(|e| e.low <= e.value && e.value <= e.high), "{all:?}");
        let [x, r, p99, redo, cpu] = all.map(|e| e.value);
        assert!(near(x * (r + 50.0) / 1e3, jobs, 0.01), "{jobs}: {x} tps, {r} ms");
        assert!(jobs > 40.0 || near(r, latency(tps(jobs)), 0.1), "{jobs}: {r} ms");
        assert!(p99 > 2.5 * r && near(redo, x * 4.0 / 1024.0, 1e-9) && near(cpu, x / 10.0, 0.02), "{jobs}");
    }
    assert!(fitted.figure(Figure::CpuPct, 300.0).unwrap().0.high <= 100.0);
    let bare = one(&points(filling, &JOBS));
    assert_eq!([Figure::P99Ms, Figure::CpuPct].map(|figure| bare.figure(figure, 4.0)), [None, None]);
}

/// 1,000 tps a job and nothing that bends: only the CPU figures show that 8,000 tps are the most.
#[test]
fn no_forecast_needs_more_cpu_than_there_is() {
    type Cpu = fn(f64) -> f64;
    let with = |cpu: Cpu| -> Fitted {
        let point = |p: Point| Point { cpu_pct: Some(cpu(p.tps)), ..p };
        one(&points(|n| 1000.0 * n, &[1, 2, 3, 4, 5]).into_iter().map(point).collect::<Vec<_>>())
    };
    // Others use the CPUs, or transactions need less of it the more there are: then it bounds nothing.
    let cases: [(Cpu, f64); 4] = [
        (|tps| tps / 80.0, 8000.0),
        (|_| 95.0, 16000.0),
        (|tps| 60.0 + tps / 1000.0, 16000.0),
        (|tps| (tps / 22.0).min(99.0), 16000.0),
    ];
    for (cpu, tps) in cases {
        assert!(near(value(&with(cpu), Figure::Tps, 16.0), tps, 0.01), "{tps}");
    }
    assert!(with(cases[0].0).tps(64.0).unwrap().0.high < 8000.0 * 1.1);
}

#[test]
fn objectives_and_needs_are_forecasts_read_backwards() {
    let ask = |fitted: &Fitted, figure, limit| fitted.ask(Question { figure, limit });
    let fitted = one(&points(filling, &JOBS));
    let found = ask(&fitted, Figure::LatencyMs, 6.0).unwrap();
    let at = found.at.unwrap();
    assert!(value(&fitted, Figure::LatencyMs, at) > 6.0 && value(&fitted, Figure::LatencyMs, at - 1.0) <= 6.0);
    assert!(found.earliest.unwrap() <= at && found.latest.is_none_or(|l| l >= at));
    let needs = ask(&fitted, Figure::Tps, 4000.0).unwrap().at.unwrap();
    assert!(near(filling(needs), 4000.0, 0.25) && value(&fitted, Figure::Tps, needs) >= 4000.0, "{needs}");
    assert_eq!(ask(&fitted, Figure::Tps, 1e9).unwrap().at, None);
    assert_eq!(ask(&fitted, Figure::P99Ms, 1.0), None);
    // A machine that wakes up: slow with one job, then as before.
    let waking = one(&points(|n| if n < 2.0 { 100.0 } else { filling(n) }, &JOBS));
    assert!(ask(&waking, Figure::LatencyMs, 3.0).unwrap().at.unwrap() > 16.0);
    let never = ask(&waking, Figure::LatencyMs, 0.1).unwrap().at.unwrap();
    assert!(value(&waking, Figure::LatencyMs, never - 1.0) > 0.1, "{never}");
}

#[test]
fn laws_are_found_from_their_own_points() {
    for truth in [[2e-3, 0.0, 0.0], [2e-3, 4e-5, 6e-7], [2e-3, 0.0, 1e-6]].map(Law::Usl) {
        assert!(near(usl(&points(|n| truth.tps(n), &[2, 8, 16, 32])).unwrap().tps(64.0), truth.tps(64.0), 1e-6));
    }
    // An eighth of the fixed time is in the log.
    let of = |truth: Law, redo_kib: Option<f64>, jobs: &[u32], synced: bool| -> Vec<Point> {
        let Law::Closed { fixed, wait, tau, .. } = truth else { unreachable!() };
        let sync_ms = |tps: f64| synced.then(|| (fixed / 8.0 + wait * tps * tau / (1.0 - tps * tau)) * 1e3);
        points(|n| truth.tps(n), jobs).into_iter().map(|p| Point { sync_ms: sync_ms(p.tps), redo_kib, ..p }).collect()
    };
    // The time outside the log rises with throughput, and is 40 % longer at the last point than at none.
    let rising = Law::Closed { fixed: 1e-3, slope: 2e-8, wait: 1e-4, tau: 3e-5 };
    for synced in [true, false] {
        let law = closed(&[&of(rising, None, &JOBS, synced)])[0].unwrap();
        let found = matches!(law, Law::Closed { slope, .. } if near(slope, 2e-8, 0.1));
        assert!(found && near(law.tps(64.0), rising.tps(64.0), 0.01), "{synced}: {law:?}");
    }
    // The second series has three noisy points at low load: alone it knows little of the log's capacity, which the others know.
    let all = [(25.0, 6e-4), (100.0, 1e-3), (400.0, 8e-3)].map(|(kib, fixed)| {
        let law = Law::Closed { fixed, slope: 0.0, wait: 1e-4, tau: kib * 6e-7 };
        (law, of(law, Some(kib), &[2, 8, 16, 24, 32], true))
    });
    let off = |law: Option<Law>, n: usize| (law.unwrap().tps(400.0) / all[n].0.tps(400.0)).ln().abs();
    assert!(off(closed(&[&all[0].1])[0], 0) < 0.01);
    let mut random = Random::new(7);
    let (mut alone, mut shared) = (0.0, 0.0);
    for _ in 0..20 {
        let mut noisy = |ms: f64| ms * (0.985 + 0.03 * unit(&mut random));
        let few = all[1].1.iter().take(FEWEST).map(|p| Point { sync_ms: p.sync_ms.map(&mut noisy), ..*p });
        let few: Vec<Point> = few.collect();
        alone += off(closed(&[&few])[0], 1) / 20.0;
        shared += off(closed(&[&all[0].1, &few, &all[2].1])[1], 1) / 20.0;
    }
    assert!(shared < 0.05 && shared < alone / 2.0, "{shared} {alone}");
}
