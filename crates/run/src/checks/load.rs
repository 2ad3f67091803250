//! Checks of how jobs made load: Little's law, the rate asked for, think times.

use loadline_model::format::counted;

use super::{MAX_ERROR_SHARE, processes};
use crate::evidence::Evidence;
use crate::figures::populations::{TimeShares, closed, mean_think_ns, parts};
use crate::test::{Verdict, not_made, noted, passed, require};

/// Maximum time of loadline's loop outside transactions: a share of the window, or ns per transaction (very short
/// transactions leave little but the loop).
const MAX_OUTSIDE_SHARE: f64 = 0.05;
const MAX_OUTSIDE_NS_PER_TX: f64 = 10_000.0;
/// If more jobs than CPUs run on loadline's machine, jobs also wait for a CPU outside transactions, so the limit per
/// transaction grows with the jobs per CPU. Upper bound of the share, whatever the cause.
const MAX_SHARED_CPU_OUTSIDE_SHARE: f64 = 0.15;
/// Fewest think times whose mean says something.
const LEAST_THOUGHTS: u64 = 100;
/// Deviation of a mean think time from the one asked for that is no chance, in standard errors.
const BEYOND_CHANCE: f64 = 5.0;
/// How late a timer wakes a job, ns, and as a share of the think time, without a note.
const LATE_NS: f64 = 100_000.0;
const LATE_SHARE: f64 = 0.02;

/// Little's law for closed loops: jobs = throughput × time per transaction, plus the jobs that think and those that connect. Without the
/// parts of transactions outside the window it is exact, and the difference is the time of loadline's own loop.
pub(crate) fn littles_law(e: &Evidence<'_>) -> Verdict {
    let (schedule, jobs) = (&e.measured.schedule, &e.measured.jobs);
    let closed = closed(&e.request.load, jobs);
    if closed.is_empty() {
        return not_made("open loop: jobs wait between transactions on purpose");
    }
    if closed.iter().all(|job| job.completed == 0 && job.ran_until_ns < schedule.close_ns) {
        return not_made("the jobs ended before they completed a transaction");
    }
    let times = TimeShares::new(schedule, closed.iter().copied());
    let share = times.outside;
    let window_ns = schedule.window_ns() as f64;
    let (all_jobs, jobs) = (e.jobs(), closed.len() as f64);
    let done = closed.iter().map(|job| job.completed).sum::<u64>() as f64;
    let law = closed.iter().map(|job| job.sum_ns as f64).sum::<f64>() / window_ns.max(1.0);
    let outside_ns = share * window_ns * jobs / done.max(1.0);
    // What a job does on purpose between transactions must not make room for more of what it does not.
    let busy = (1.0 - times.thinking - times.connecting).clamp(0.0, 1.0);
    // Failed transactions take time that is not counted.
    let allowed = (MAX_OUTSIDE_SHARE + if e.merged().errors > 0 { MAX_ERROR_SHARE } else { 0.0 }) * busy;
    // The database's clock and loadline's agree within a round trip; less would mean overlapping transactions.
    let cpus = processes::cpus(&e.measured.elsewhere.processes).unwrap_or(e.run.manifest.machine.cpus);
    let small_ns = MAX_OUTSIDE_NS_PER_TX * (all_jobs / f64::from(cpus.max(1))).max(1.0);
    let stretched = outside_ns <= small_ns && share <= MAX_SHARED_CPU_OUTSIDE_SHARE * busy;
    let ok = share >= -0.02 * busy && (share <= allowed || outside_ns <= MAX_OUTSIDE_NS_PER_TX || stretched);
    // Transactions that cross window start or window end have a part in it.
    let whole = jobs * (busy - share);
    let parts = if (law - whole).abs() < 0.1 {
        String::new()
    } else {
        format!(" ({whole:.2} if only their parts in the window count)")
    };
    let mut between = String::new();
    for (doing, share) in [("thinking", times.thinking), ("connecting", times.connecting)] {
        if share > 0.0 {
            between += &format!(" + {:.2} {doing}", share * jobs);
        }
    }
    let detail = format!(
        "throughput × mean transaction time = {law:.2}{parts}{between} for {}; {:.2} % of the jobs' time was outside \
        transactions, {:.1} µs per transaction (allowed: {:.1} % or {:.0} µs)",
        counted(closed.len(), "job"),
        share * 100.0,
        outside_ns / 1e3,
        allowed * 100.0,
        small_ns / 1e3
    );
    require(ok, detail)
}

/// Whether jobs that completed `got` transactions per second in a window of `window_s` kept the rate `asked` for. One more may be in
/// progress at the window's end than at its start.
pub(crate) fn keeps_rate(got: f64, asked: f64, window_s: f64) -> bool {
    got + 1.0 / window_s >= asked * 0.98
}

pub(crate) fn rate(e: &Evidence<'_>) -> Verdict {
    let (mut said, mut kept) = (Vec::new(), true);
    for (part, jobs) in parts(&e.request.load, &e.measured.jobs) {
        let Some(asked) = part.rate_tps else { continue };
        let done = jobs.iter().map(|job| job.completed).sum::<u64>() as f64;
        let got = done / e.measured.schedule.window_s();
        let behind = jobs.iter().map(|j| j.behind_ns).max().unwrap_or(0);
        kept &= keeps_rate(got, asked, e.measured.schedule.window_s());
        said.push(format!(
            "{got:.1} tps of {asked:.1} asked for; at the window end the slowest job was {:.1} ms behind its schedule",
            behind as f64 / 1e6
        ));
    }
    if said.is_empty() {
        return not_made("closed loop: no rate was asked for");
    }
    let detail = said.join("; ");
    if kept {
        return passed(detail);
    }
    noted(format!("{detail}: the target cannot sustain this rate, and response times keep growing"))
}

/// The mean think time is the one asked for: exponential times have a standard deviation of their mean. Late timers make it longer.
pub(crate) fn think_time(e: &Evidence<'_>) -> Option<Verdict> {
    let asked_ns = e.request.load.think_s? * 1e9;
    let n = e.merged().thoughts;
    let mean_ns = if n >= LEAST_THOUGHTS { mean_think_ns(&e.measured.jobs, e.merged()) } else { None };
    let Some(mean_ns) = mean_ns else {
        let detail = format!("{n} think times ended in the window: too few to know their mean; use a longer window");
        return Some(not_made(detail));
    };
    let chance_ns = BEYOND_CHANCE * asked_ns / (n as f64).sqrt();
    let detail = format!(
        "jobs thought {:.3} ms on average, {:.3} asked for; {n} exponential times have a mean within ±{:.3} ms",
        mean_ns / 1e6,
        asked_ns / 1e6,
        chance_ns / 1e6
    );
    if mean_ns > asked_ns + chance_ns + LATE_NS.max(asked_ns * LATE_SHARE) {
        let why = "timers or CPUs were late, so jobs thought longer than asked";
        return Some(noted(format!("{detail}: {why}")));
    }
    Some(require(mean_ns >= asked_ns - chance_ns, detail))
}
