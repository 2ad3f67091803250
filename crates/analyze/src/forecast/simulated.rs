//! Sweeps of made-up platforms whose truth is none of the models, to hold intervals against.

use loadline_model::Random;

use super::series::{Point, Series};

/// Uniform in 0…1.
pub(crate) fn uniform(random: &mut Random) -> f64 {
    random.next() as f64 / u64::MAX as f64
}

/// Standard normal (sum of twelve uniforms).
pub(crate) fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// Even in logarithms between `low` and `high`.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(uniform(random))
}

/// Throughput and log file sync (s) of `jobs` jobs that go round between `cpus` CPUs, a log that serves one at a time, and a lock:
/// a closed network by Buzen's convolution (Communications of the ACM 16 (1973) 527). All its terms are positive, so it is stable,
/// which mean value analysis of many servers is not.
fn queues(jobs: usize, cpus: usize, cpu_s: f64, log_s: f64, lock_s: f64) -> (f64, f64) {
    let all_s = cpu_s + log_s + lock_s;
    // Weight of k jobs at a station, of times over their sum: no sum of products then leaves the range of a number.
    let station = |time: f64, servers: usize| -> Vec<f64> {
        let at = |before: &mut f64, k: usize| {
            let here = *before;
            *before *= time / all_s / (k + 1).min(servers) as f64;
            Some(here)
        };
        (0..=jobs).scan(1.0, at).collect()
    };
    let with =
        |a: &[f64], b: &[f64]| -> Vec<f64> { (0..a.len()).map(|n| (0..=n).map(|k| a[k] * b[n - k]).sum()).collect() };
    let log = station(log_s, 1);
    let others = with(&station(cpu_s, cpus), &station(lock_s, jobs));
    let ways = with(&others, &log);
    let tps = ways[jobs - 1] / ways[jobs] / all_s;
    let at_log: f64 = (0..=jobs).map(|k| k as f64 * log[k] * others[jobs - k]).sum::<f64>() / ways[jobs];
    (tps, at_log / tps)
}

/// The same with a log writer that writes what is waiting together: a write takes `write_s` and `log_s` for each commit, and a commit
/// waits for half of a write on average and then for its own.
fn groups(jobs: usize, cpus: usize, cpu_s: f64, write_s: f64, log_s: f64) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0 / log_s);
    let times = |tps: f64| {
        let write = write_s / (1.0 - tps * log_s);
        let busy = (tps * write).min(1.0);
        let crowd = (tps * cpu_s / cpus as f64).min(0.999);
        (cpu_s * (1.0 + crowd.powi(cpus.min(8) as i32) / (1.0 - crowd)), write * (1.0 + busy / 2.0))
    };
    for _ in 0..60 {
        let tps = (low + high) / 2.0;
        let (cpu, sync) = times(tps);
        if tps * (cpu + sync) < jobs as f64 { low = tps } else { high = tps }
    }
    (low, times(low).1)
}

/// A table of one or two platforms, each with one to four workloads, whose figures vary by `noise` (relative).
pub(crate) fn table(random: &mut Random, noise: f64) -> Vec<Series> {
    const SWEEPS: [&[usize]; 4] = [
        &[1, 2, 4, 8, 16, 24, 32, 48],
        &[2, 12, 24, 36, 48, 60, 72],
        &[2, 8, 16, 24, 32, 40, 48, 56, 64],
        &[1, 4, 8, 16, 32, 64],
    ];
    let mut out = Vec::new();
    for platform in 0..=random.below(2) {
        let cpus = [2, 8, 24, 64][random.below(4) as usize];
        let sweep = SWEEPS[random.below(4) as usize];
        let sync_measured = random.below(3) > 0;
        let per_commit = between(random, 1e-6, 3e-5);
        let per_kib = between(random, 2e-7, 2e-6);
        let (kind, write_s, held_s) = (random.below(3), between(random, 3e-5, 1e-3), between(random, 1e-7, 1e-5));
        for workload in 0..=random.below(4) {
            let redo: f64 = [2.0, 25.0, 125.0, 480.0][workload as usize];
            let (cpu_s, log_s) = (between(random, 1e-4, 5e-4) * redo.sqrt(), per_commit + redo * per_kib);
            let true_at = |jobs: usize| match kind {
                0 => queues(jobs, cpus, cpu_s, log_s, 0.0),
                1 => groups(jobs, cpus, cpu_s, write_s, log_s),
                // A lock that is held longer the more jobs there are.
                _ => queues(jobs, cpus, cpu_s, log_s, held_s * jobs as f64),
            };
            let mut vary = |value: f64| value * (noise * normal(random)).exp();
            let point = |jobs: &usize| {
                let (tps, log) = true_at(*jobs);
                let sync_ms = sync_measured.then(|| vary(log * 1e3));
                let cpu_pct = Some(vary(tps * cpu_s / cpus as f64 * 100.0).min(100.0));
                let (tps, redo_kib) = (vary(tps), Some(vary(redo)));
                Point { jobs: *jobs as f64, tps, sync_ms, redo_kib, cpu_pct, ..Point::default() }
            };
            let points: Vec<Point> = sweep.iter().map(point).collect();
            out.push(Series::new(&format!("P{platform}"), &format!("W{workload}"), &points).unwrap());
        }
    }
    out
}
