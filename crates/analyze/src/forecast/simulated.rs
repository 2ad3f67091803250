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

/// A platform: what its jobs meet.
#[derive(Debug, Clone, Copy)]
enum Platform {
    /// CPUs that serve one job each, and a log that serves one commit at a time (exact mean value analysis).
    Queues { cpus: usize },
    /// CPUs, and a log writer that writes whatever is waiting together: a write takes a fixed time and one per KiB.
    Groups { cpus: usize, write_s: f64 },
    /// CPUs and a log as in `Queues`, and a lock that is held longer the more jobs there are.
    Lock { cpus: usize, held_s: f64 },
}

/// Throughput and log file sync (s) at 1…`jobs` jobs, by exact mean value analysis of a closed network (Reiser and Lavenberg,
/// Journal of the ACM 27 (1980) 313), many-server stations as in Bolch et al., Queueing Networks and Markov Chains, section 8.2.
fn queues(jobs: usize, cpus: usize, cpu_s: f64, log_s: f64, lock: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let servers = cpus.max(1);
    let mut free = vec![0.0; servers];
    if let Some(first) = free.first_mut() {
        *first = 1.0;
    }
    let (mut cpu_queue, mut log_queue, mut out) = (0.0, 0.0, Vec::new());
    for n in 1..=jobs {
        let m = servers as f64;
        let idle: f64 = free.iter().enumerate().map(|(j, p)| (m - 1.0 - j as f64).max(0.0) * p).sum();
        let cpu = cpu_s / m * (1.0 + cpu_queue + idle);
        let log = log_s * (1.0 + log_queue);
        let tps = n as f64 / (cpu + log + lock(n as f64));
        (cpu_queue, log_queue) = (tps * cpu, tps * log);
        let before = free.clone();
        for j in 1..servers {
            free[j] = (cpu_s / j as f64 * tps * before[j - 1]).min(1.0);
        }
        let busy: f64 = (1..servers).map(|j| (m - j as f64) * free[j]).sum();
        free[0] = (1.0 - (cpu_s * tps + busy) / m).clamp(0.0, 1.0);
        out.push((tps, log));
    }
    out
}

/// The same of a log writer that groups commits: a commit waits for half of a write on average and then for its own.
fn groups(jobs: usize, cpus: usize, cpu_s: f64, write_s: f64, log_s: f64) -> Vec<(f64, f64)> {
    let at = |n: f64| {
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
            if tps * (cpu + sync) < n { low = tps } else { high = tps }
        }
        (low, times(low).1)
    };
    (1..=jobs).map(|n| at(n as f64)).collect()
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
        let truth = match random.below(3) {
            0 => Platform::Queues { cpus },
            1 => Platform::Groups { cpus, write_s: between(random, 3e-5, 1e-3) },
            _ => Platform::Lock { cpus, held_s: between(random, 1e-7, 1e-5) },
        };
        for workload in 0..=random.below(4) {
            let redo: f64 = [2.0, 25.0, 125.0, 480.0][workload as usize];
            let (cpu_s, log_s) = (between(random, 1e-4, 5e-4) * redo.sqrt(), per_commit + redo * per_kib);
            let most = *sweep.last().unwrap();
            let true_at = match truth {
                Platform::Queues { cpus } => queues(most, cpus, cpu_s, log_s, |_| 0.0),
                Platform::Groups { cpus, write_s } => groups(most, cpus, cpu_s, write_s, log_s),
                Platform::Lock { cpus, held_s } => queues(most, cpus, cpu_s, log_s, |n| held_s * n),
            };
            let mut vary = |value: f64| value * (noise * normal(random)).exp();
            let point = |jobs: &usize| {
                let (tps, log) = true_at[jobs - 1];
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

/// One job alone has no queue, and many jobs have the throughput of what is full.
#[test]
fn made_up_platforms_obey_the_laws_of_queues() {
    for cpus in [1, 4, 16] {
        let at = queues(400, cpus, 1e-3, 2e-4, |_| 0.0);
        let full = (cpus as f64 / 1e-3).min(1.0 / 2e-4);
        assert!((at[0].0 * 1.2e-3 - 1.0).abs() < 1e-9, "{cpus}: {:?}", at[0]);
        assert!((at[399].0 / full - 1.0).abs() < 0.02, "{cpus}: {:?} of {full}", at[399]);
        assert!(at.windows(2).all(|w| w[1].0 > w[0].0 * 0.999));
    }
    let grouped = groups(400, 8, 1e-3, 1e-4, 1e-5);
    assert!(grouped[399].0 > 4.0 * grouped[0].0 && grouped.windows(2).all(|w| w[1].1 >= w[0].1));
}
