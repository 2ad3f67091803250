//! Runs a platform until its throughput is known well enough.

use serde::Serialize;

use crate::node::{Counts, Node};
use crate::platform::{MOST, OutOfRange, Platform};

/// How long to simulate, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Seed of all randomness.
    pub seed: u64,
    /// Commits of each node after the warm-up: as many as an interval of ±1 % takes, or exactly so many.
    pub commits: Option<u64>,
}

/// What a platform does with a number of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Jobs, over all nodes.
    pub jobs: u32,
    /// Transactions per second, over all nodes.
    pub tps: f64,
    /// Half of the 95 % interval of `tps`, as a share of it: what the simulation itself leaves open, and in lines what the calibration does.
    pub tps_within: f64,
    /// Mean time of a transaction, µs.
    pub latency_us: f64,
    /// Half of the 95 % interval of `latency_us`, as a share of it.
    pub latency_within: f64,
    /// Commits per group written.
    pub commits_per_sync: f64,
    /// Groups written per second, over all nodes.
    pub syncs_per_s: f64,
    /// CPU time per transaction, µs.
    pub cpu_us_per_tx: f64,
    /// CPU time as a share of the CPUs of the nodes, %; `None` if CPUs never limit.
    pub cpu_busy_pct: Option<f64>,
    /// Commits simulated, warm-up included.
    pub commits: u64,
}

/// Batches, of which the interval is made.
const BATCHES: usize = 20;
/// Two-sided 95 % quantile of Student's t with 19 degrees of freedom.
const T19: f64 = 2.093;
/// Half-width at which a simulation ends, as a share.
const WITHIN: f64 = 0.01;
/// Most commits of a node.
const MOST_COMMITS: u64 = 4_000_000;

/// Simulates `platform` with `jobs` jobs. The same arguments give the same outcome.
///
/// Transactions of a warm-up of ten per job, and 1,000 at least, are discarded. The rest is divided into 20 batches of equal commits
/// (method of batch means: Law and Kelton, Simulation Modeling and Analysis, ch. 9); their number is doubled until the interval is
/// ±1 %.
///
/// # Errors
/// A parameter outside its range.
pub fn simulate(platform: &Platform, jobs: u32, length: Length) -> Result<Outcome, OutOfRange> {
    platform.check()?;
    if !(1..=MOST).contains(&jobs) {
        return Err(OutOfRange { name: "the number of jobs", value: jobs.to_string(), allowed: "1 to 1,000,000" });
    }
    // Nodes never wait for each other, so those with as many jobs are alike.
    let (each, more) = (jobs / platform.nodes, jobs % platform.nodes);
    let kinds = [(each + 1, more), (each, platform.nodes - more)];
    let mut total: Option<Outcome> = None;
    for (jobs, nodes) in kinds.into_iter().filter(|(jobs, nodes)| *jobs > 0 && *nodes > 0) {
        let of_node = node(platform, jobs, length);
        total = Some(sum(total, &of_node, nodes));
    }
    let mut outcome = total.unwrap_or_else(|| node(platform, 1, length));
    outcome.jobs = jobs;
    outcome.cpu_busy_pct =
        platform.cpus.map(|n| outcome.cpu_us_per_tx * outcome.tps / (f64::from(n) * f64::from(platform.nodes) * 1e4));
    Ok(outcome)
}

/// `total` and `nodes` nodes like `one`.
fn sum(total: Option<Outcome>, one: &Outcome, nodes: u32) -> Outcome {
    let n = f64::from(nodes);
    let scaled = Outcome { tps: one.tps * n, syncs_per_s: one.syncs_per_s * n, ..one.clone() };
    let Some(before) = total else { return scaled };
    let tps = before.tps + scaled.tps;
    let weigh = |a: f64, b: f64| (a * before.tps + b * scaled.tps) / tps;
    Outcome {
        tps,
        tps_within: weigh(before.tps_within, scaled.tps_within),
        latency_us: weigh(before.latency_us, scaled.latency_us),
        latency_within: weigh(before.latency_within, scaled.latency_within),
        commits_per_sync: tps / (before.syncs_per_s + scaled.syncs_per_s),
        syncs_per_s: before.syncs_per_s + scaled.syncs_per_s,
        cpu_us_per_tx: weigh(before.cpu_us_per_tx, scaled.cpu_us_per_tx),
        commits: before.commits + scaled.commits,
        ..before
    }
}

/// One node with `jobs` jobs.
fn node(platform: &Platform, jobs: u32, length: Length) -> Outcome {
    let warmup = (u64::from(jobs) * 10).max(1000);
    let mut node = Node::new(platform, jobs, length.seed);
    let start = node.run_to(warmup);
    // A batch holds several cycles of all jobs, so that batches hardly depend on each other.
    let first = (u64::from(jobs) * 2).clamp(250, 100_000);
    let mut batch = length.commits.map_or(first, |all| (all / BATCHES as u64).max(1));
    let mut marks: Vec<Counts> = vec![start];
    loop {
        while marks.len() <= BATCHES {
            let until = marks.last().map_or(0, |m| m.commits) + batch;
            marks.push(node.run_to(until));
        }
        let outcome = outcome(&marks, jobs);
        let done = length.commits.is_some() || (outcome.tps_within <= WITHIN && outcome.latency_within <= WITHIN);
        if done || batch * BATCHES as u64 * 2 > MOST_COMMITS {
            return outcome;
        }
        // Two batches become one; as many again follow.
        batch *= 2;
        marks = marks.into_iter().step_by(2).collect();
    }
}

fn outcome(marks: &[Counts], jobs: u32) -> Outcome {
    let (first, last) = (marks.first().copied().unwrap_or_default(), marks.last().copied().unwrap_or_default());
    let over = |of: fn(&Counts) -> f64| of(&last) - of(&first);
    let commits = over(|c| c.commits as f64);
    let per_batch = |of: fn(&Counts, &Counts) -> f64| {
        let values: Vec<f64> = marks.windows(2).filter_map(|w| Some(of(w.first()?, w.last()?))).collect();
        within(&values)
    };
    let elapsed = over(|c| c.at_us).max(1e-9);
    let latency = over(|c| c.latency_us);
    Outcome {
        jobs,
        tps: commits / elapsed * 1e6,
        tps_within: per_batch(|a, b| b.at_us - a.at_us),
        latency_us: latency / commits,
        latency_within: per_batch(|a, b| b.latency_us - a.latency_us),
        commits_per_sync: over(|c| c.grouped as f64) / over(|c| c.groups as f64).max(1.0),
        syncs_per_s: over(|c| c.groups as f64) / elapsed * 1e6,
        cpu_us_per_tx: over(|c| c.cpu_us) / commits,
        cpu_busy_pct: None,
        commits: last.commits,
    }
}

/// Half of the 95 % interval of the mean of `values`, as a share of it.
fn within(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if mean > 0.0 { T19 * (variance / n).sqrt() / mean } else { 0.0 }
}
