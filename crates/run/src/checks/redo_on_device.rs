//! Whether the redo of durable commits reached the device of the log, by the device's own count of writes.
//!
//! A commit is durable if its redo is on a device. A library or filesystem whose syncs do nothing (`libeatmydata`, an overlay
//! mounted `volatile`, `nobarrier` below a hypervisor's cache) leaves no trace in the database: it counts syncs that return at once.

use loadline_model::column;
use loadline_model::machine::Storage;
use loadline_workload::Program;

use crate::evidence::{Evidence, excused};
use crate::test::{Judged, Test, Verdict, failed, not_made, noted, passed};

/// Share of the redo, and of the syncs, that the device must have written. It writes whole blocks, so all of both is usual;
/// half leaves space for windows of few transactions, and for syncs that one write serves. The kernel writes back what is not
/// synced as well, after up to 30 s and in large pieces: then the bytes arrive, but in few writes.
const REQUIRED: f64 = 0.5;
/// If transactions that cross the window's start or end leave less of it, nothing is proven.
const LEAST_REQUIRED: f64 = 0.1;

/// Checks tests whose commits wait. What the doctor refused, and the run forced, may be the reason.
pub(crate) fn check<S>(e: &Evidence<'_, S>, figures: &Test) -> Option<Verdict> {
    if !e.is_durable() {
        return None;
    }
    let (log, forced) = (e.run.log, e.excuses.forced);
    let judged = check_writes(&e.work().program, e.request.jobs, figures, log, forced);
    Some(excused(judged, e.excuses.commits.as_ref()))
}

fn check_writes(program: &Program, jobs: u32, figures: &Test, log: Option<&Storage>, forced: bool) -> Judged {
    let mib_per_s = figures.known(column::DEVICE_WRITE_MIB_PER_S)?;
    let writes_per_s = figures.known(column::DEVICE_WRITES_PER_S)?;
    let redo = figures.known(column::REDO_MIB_PER_S)?;
    let options = log.map_or("", |log| log.mount_options.as_str());
    if options.contains("compr") {
        return Err(not_made("the log's filesystem compresses: less than the redo reaches the device"));
    }
    if options.split(',').any(|o| o.starts_with("dax") && o != "dax=never") {
        return Err(not_made("the log is on persistent memory, which is written without the device's queue"));
    }
    let (done, tps) = (figures.known(column::COMMITS)?, figures.known(column::COMMIT_THROUGHPUT_TPS)?);
    // One sync makes at most one commit of each job durable.
    let syncs = tps * program.writing_share() / f64::from(jobs.max(1));
    let syncs = figures.figure(column::REDO_SYNC_WRITES_PER_S).map_or(syncs, |counted| counted.max(syncs));
    // A transaction that crosses the start or the end of the window is counted on one side of it.
    let share = REQUIRED - f64::from(jobs) / done.max(1.0);
    if share < LEAST_REQUIRED {
        return Err(not_made(format!("{done} transactions of {jobs} jobs prove nothing; use a longer window")));
    }
    let device = log.and_then(|log| log.device.as_deref()).unwrap_or("the log's device");
    let detail = format!(
        "{redo:.2} MiB/s of redo with {syncs:.0} syncs/s; {device} wrote {mib_per_s:.2} MiB/s in {writes_per_s:.0} writes/s \
         (at least {:.0} % of both is required)",
        share * 100.0
    );
    if mib_per_s >= redo * share && writes_per_s >= syncs * share {
        return Ok(passed(detail));
    }
    let detail = format!(
        "{detail}: the syncs of the log do nothing, and no commit is durable. Look for a library that swallows them \
         (LD_PRELOAD, libeatmydata), or a volatile mount"
    );
    Ok(if forced { noted(detail) } else { failed(detail) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use loadline_model::Outcome;
    use loadline_workload::find;

    use super::*;

    #[test]
    fn redo_that_does_not_reach_the_device_is_refused_and_what_is_unknown_proves_nothing() {
        use Outcome::{Failed, NotMade, Passed};
        let lat1 = find("LGWR-LAT1").unwrap();
        let program = lat1.make(&lat1.params(&BTreeMap::new()).unwrap());
        // Of 8 jobs that commit 1000 times a second with 2 MiB/s of redo: MiB and writes per second of the device, syncs, transactions.
        for (mib, writes, syncs, done, options, outcome) in [
            (Some(4.0), 950.0, Some(900.0), 1e4, "rw", Passed),
            // Space for transactions that cross the window start or end.
            (Some(1.1), 460.0, Some(900.0), 1e4, "rw", Passed),
            (Some(0.0), 0.0, Some(900.0), 1e4, "rw", Failed),
            (Some(0.9), 900.0, Some(900.0), 1e4, "rw", Failed),
            // The kernel wrote it back later, in large pieces.
            (Some(3.0), 30.0, Some(900.0), 1e4, "rw", Failed),
            // 1000 / 8 syncs at least.
            (Some(3.0), 100.0, None, 1e4, "rw", Passed),
            (Some(3.0), 30.0, None, 1e4, "rw", Failed),
            (None, 0.0, Some(900.0), 1e4, "rw", NotMade),
            (Some(0.0), 0.0, Some(900.0), 1e4, "rw,compress=zstd:3", NotMade),
            (Some(0.0), 0.0, Some(900.0), 1e4, "rw,dax=always", NotMade),
            // One transaction a job.
            (Some(0.0), 0.0, Some(900.0), 10.0, "rw", NotMade),
        ] {
            let mut figures = crate::testing::figures(&[
                (column::DEVICE_WRITES_PER_S, writes),
                (column::REDO_MIB_PER_S, 2.0),
                (column::COMMITS, done),
                (column::COMMIT_THROUGHPUT_TPS, 1000.0),
            ]);
            figures.set_or_absent(column::DEVICE_WRITE_MIB_PER_S, mib, "unknown");
            figures.set_or_absent(column::REDO_SYNC_WRITES_PER_S, syncs, "not counted");
            let log = Storage { mount_options: options.into(), ..Storage::default() };
            let verdict = check_writes(&program, 8, &figures, Some(&log), false).unwrap_or_else(|why| why);
            assert_eq!(verdict.outcome, outcome, "{mib:?} {writes} {syncs:?} {done} {options}");
        }
    }
}
