//! Where a fit starts: the platform that the measured figures say, and how far each may be trusted.

use crate::device::median_sync;
use crate::draw::Spread;
use crate::measured::Measured;
use crate::platform::{Device, Platform};

/// Spread of the CPU time of transactions: nobody measures it. σ = 0.5 is a coefficient of variation of 53 %.
pub(crate) const CPU_SPREAD: Spread = Spread::LogNormal(0.5);
/// CPU time of a job that has slept, µs: with caches that are a little cold (Li, Ding, Shen: Quantifying the cost of context switch,
/// 2007, have 4 µs and more). Each commit on a device sleeps once, so a sweep on one cannot tell it from the CPU time of a transaction; only
/// on a device in memory are commits without it.
pub(crate) const SWITCH_US: f64 = 5.0;
/// Wake-up of an idle CPU and of a job, µs: where a fit starts.
const WAKE_US: f64 = 20.0;
const HAND_US: f64 = 5.0;

/// A parameter that is fitted.
pub(crate) struct Free {
    pub(crate) name: &'static str,
    pub(crate) at: fn(&mut Platform) -> &mut f64,
    pub(crate) start: f64,
    /// Standard deviation of its logarithm: how far it may be from its start.
    pub(crate) trust: f64,
    pub(crate) measured: bool,
    pub(crate) source: String,
}

/// The platform that the figures say, and what the fit may change of it.
pub(crate) fn start(m: &Measured) -> (Platform, Vec<Free>) {
    let first = m.points.first();
    let latency = first.map_or(1000.0, |p| p.latency_us.unwrap_or(f64::from(p.jobs) / p.tps * 1e6));
    let [cpu, submit] = cpu_parts(m);
    let sync = sync(m, latency);
    let submit_us = submit.or_else(|| m.probe.as_ref()?.cpu_us).unwrap_or(0.0).min(sync.us * 0.9);
    let spread = m.probe.as_ref().and_then(|p| p.spread);
    let spread = m.commit_quantiles.map(|[p50, p99]| Spread::of_quantiles(p50, p99)).or(spread);
    let device = Device {
        sync_us: sync.us,
        spread: spread.unwrap_or(Spread::Fixed),
        cpu_us: submit_us,
        us_per_byte: m.probe.as_ref().and_then(|p| p.us_per_byte).unwrap_or(0.0),
    }
    .or_memory();
    let rest = (latency - sync.us).max(latency * 0.02);
    // Sleeps of a transaction: for its commit, and of client and session for each other.
    let sleeps = if m.client { 2.0 } else { 0.0 } + if device.in_memory() { 0.0 } else { 1.0 };
    let total = cpu.unwrap_or(rest);
    let cpu_us = (total - sleeps * SWITCH_US).max(total * 0.2).max(0.1);
    let mut platform = Platform {
        cpus: m.cpus,
        nodes: m.nodes,
        cpu_us,
        cpu_spread: CPU_SPREAD,
        away_us: 0.0,
        client: m.client,
        switch_us: SWITCH_US,
        wake_us: WAKE_US,
        hand_us: HAND_US,
        redo_bytes: m.redo_bytes,
        buffer_bytes: m.buffer_bytes,
        gather: m.kind == "wal",
        delay_us: m.delay_us,
        siblings: if m.kind == "postgres" || m.kind == "postgres-temp" { 5 } else { 1 },
        device,
        standby: None,
    };
    let cpu_source = if cpu.is_some() {
        "CPU time of the sessions per transaction, less that of syncs and of sleeps".to_owned()
    } else {
        "no CPU time was measured: latency with the fewest jobs, less the sync".to_owned()
    };
    let mut free = vec![
        Free {
            name: "CPU time of a transaction",
            at: |p| &mut p.cpu_us,
            start: cpu_us,
            trust: 1.0,
            measured: cpu.is_some(),
            source: cpu_source,
        },
        Free {
            name: "write and sync of the log",
            at: |p| &mut p.device.sync_us,
            start: sync.us,
            trust: sync.trust,
            measured: sync.measured,
            source: sync.source,
        },
        Free {
            name: "writer's time per job that it wakes",
            at: |p| &mut p.hand_us,
            start: HAND_US,
            trust: 1.5,
            measured: false,
            source: format!("fitted, from {HAND_US} µs"),
        },
    ];
    if device.cpu_us > 0.0 && !device.in_memory() {
        free.push(Free {
            name: "of the sync, on a CPU",
            at: |p| &mut p.device.cpu_us,
            start: device.cpu_us,
            trust: 0.5,
            measured: true,
            source: if submit.is_some() {
                "CPU time per transaction against 1 / commits per sync, slope".to_owned()
            } else {
                "probe, CPU time per operation".to_owned()
            },
        });
    }
    // On another machine the network is what nobody measured; its idle CPUs are part of it.
    if m.remote {
        platform.wake_us = 0.0;
        platform.away_us = (rest - cpu_us).max(latency * 0.05);
        free.push(Free {
            name: "network between client and server",
            at: |p| &mut p.away_us,
            start: platform.away_us,
            trust: 1.0,
            measured: false,
            source: "fitted, from the latency with the fewest jobs less CPU and sync".to_owned(),
        });
    } else {
        free.push(Free {
            name: "wake-up on an idle CPU",
            at: |p| &mut p.wake_us,
            start: WAKE_US,
            trust: 1.0,
            measured: false,
            source: format!("fitted, from {WAKE_US} µs"),
        });
    }
    (platform, free)
}

struct Start {
    us: f64,
    trust: f64,
    measured: bool,
    source: String,
}

/// Time of a write of the log, from the best source there is.
fn sync(m: &Measured, latency: f64) -> Start {
    if let Some(us) = median_sync(&m.points) {
        let source = "timed by the database in these tests (median over the points)".to_owned();
        return Start { us, trust: 0.05, measured: true, source };
    }
    if let Some(us) = m.single_wait_us {
        let source = "no sync was timed: commit wait of a single job".to_owned();
        return Start { us: us.min(latency), trust: 0.3, measured: true, source };
    }
    if let Some(probe) = &m.probe {
        // A sync cannot take longer than the transaction that waits for it.
        let us = probe.sync_us.min(latency);
        return Start { us, trust: 0.4, measured: true, source: probe.source.clone() };
    }
    let source = "neither a sync nor a commit was timed and there is no probe: latency with the fewest jobs".to_owned();
    Start { us: latency * 0.8, trust: 1.0, measured: false, source }
}

/// CPU time of a transaction and of a sync: the line `CPU per transaction = a + b / commits per sync` through the points (least
/// squares). Both absent if no CPU time was measured; without a spread of commits per sync it is all the transaction's.
fn cpu_parts(m: &Measured) -> [Option<f64>; 2] {
    let seen: Vec<(f64, f64)> = m
        .points
        .iter()
        .filter_map(|p| Some((1.0 / p.commits_per_sync.filter(|g| *g > 0.0)?, p.cpu_us_per_tx?)))
        .collect();
    let n = seen.len() as f64;
    if seen.is_empty() {
        return [None, None];
    }
    let (mx, my) = (seen.iter().map(|s| s.0).sum::<f64>() / n, seen.iter().map(|s| s.1).sum::<f64>() / n);
    let sxx: f64 = seen.iter().map(|s| (s.0 - mx).powi(2)).sum();
    let sxy: f64 = seen.iter().map(|s| (s.0 - mx) * (s.1 - my)).sum();
    let slope = sxy / sxx;
    let at_zero = my - slope * mx;
    if sxx > 1e-6 && slope > 0.0 && at_zero > 0.0 {
        return [Some(at_zero), Some(slope)];
    }
    [Some(seen.iter().map(|s| s.1).fold(f64::INFINITY, f64::min)), None]
}
