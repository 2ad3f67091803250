//! Figures from the database's counters of its log and its commits.

use loadline_database::Target;
use loadline_model::snapshot::counter;
use loadline_model::{Column, column};

use super::collected::Figures;
use super::counters::Counters;
use super::{KIB, MIB};
use crate::window::{Measured, Request};

/// Columns that come from the database's counters.
const COLUMNS: &[&Column] = &[
    column::REDO_BLOCKS_PER_S,
    column::REDO_WRITES_PER_S,
    column::REDO_SYNC_WRITES_PER_S,
    column::REDO_MIB_PER_S,
    column::REDO_KIB_PER_TX,
    column::REDO_BYTES_PER_TX,
    column::COMMITS_DATABASE,
    column::COMMITS_PER_REDO_SYNC,
];
/// What is said of a counter that is not there, if the target does not say more.
const NOT_PROVIDED: &str = "the target did not provide the counter at both edges of the window";

/// Redo, commits, and how they go together; `tps` is what the jobs counted.
pub(super) fn figures(request: &Request, counters: &Result<Counters<'_>, String>, tps: f64) -> Figures {
    const FLASH: &Column = column::FLASH_CACHE_WRITE_PCT;
    let mut out = Figures::default();
    out.fall_back(FLASH, "only Oracle on Exadata has a flash cache that takes writes");
    let blurred = blurred_commits(request);
    if let Some(why) = blurred {
        out.leave_all_out(&[column::COMMITS_DATABASE, column::COMMITS_PER_REDO_SYNC], why);
    }
    let c = match counters {
        Ok(counters) => counters,
        Err(why) => {
            out.leave_all_out(COLUMNS, why);
            return out;
        }
    };
    let mut set = |id, value| out.set_or(id, value, NOT_PROVIDED);
    set(column::REDO_BLOCKS_PER_S, c.rate(counter::REDO_BLOCKS));
    set(column::REDO_WRITES_PER_S, c.rate(counter::REDO_WRITES));
    set(column::REDO_SYNC_WRITES_PER_S, c.rate(counter::REDO_SYNCS));
    let redo = c.rate_on_time(counter::REDO_BYTES);
    let per_tx = redo.filter(|_| tps > 0.0).map(|bytes| bytes / tps);
    set(column::REDO_MIB_PER_S, redo.map(|bytes| bytes / MIB));
    set(column::REDO_BYTES_PER_TX, per_tx);
    set(column::REDO_KIB_PER_TX, per_tx.map(|bytes| bytes / KIB));
    if blurred.is_none() {
        let commits = c.grown(counter::COMMITS);
        let syncs = c.grown(counter::REDO_SYNCS).filter(|s| *s > 0.0);
        set(column::COMMITS_DATABASE, commits);
        // Where the database does not count its commits, the jobs do.
        set(column::COMMITS_PER_REDO_SYNC, syncs.map(|syncs| commits.unwrap_or(tps * c.seconds) / syncs));
    }
    match c.both(counter::FLASH_WRITES, counter::WRITES) {
        Some((flash, all)) if all > 0.0 && flash <= all => out.set(FLASH, flash / all * 100.0),
        Some((flash, all)) => {
            let why = format!("of {all:.0} physical writes in the window {flash:.0} went to the flash cache");
            out.leave_out(FLASH, why);
        }
        None => {}
    }
    log_parts(&mut out, c);
    let [open, close] = c.on_time;
    out.notes.extend(request.target.facts().remarks.map(|of| of(open, close)).unwrap_or_default());
    out
}

/// Why the database's count of commits is not that of the jobs' transactions, if it is not.
pub(crate) fn blurred_commits(request: &Request) -> Option<&'static str> {
    request.target.facts().commits_of_workers.filter(|_| request.work.parallel_workers().is_some_and(|n| n > 1))
}

/// Where the time of a commit went, and how commits were grouped, where the target says so.
fn log_parts(out: &mut Figures, c: &Counters<'_>) {
    const NONE: &str = "the target does not time the parts of its commits";
    let commits = c.grown(counter::COMMITS).filter(|commits| *commits > 0.0);
    let groups = c.grown(counter::LOG_GROUPS).filter(|groups| *groups > 0.0);
    for (id, name, per, unit) in [
        (column::LOG_PART_WAIT_US, counter::LOG_PART_WAIT_NS, commits, 1e3),
        (column::LOG_PART_COPY_US, counter::LOG_PART_COPY_NS, commits, 1e3),
        (column::LOG_PART_WRITE_US, counter::LOG_PART_WRITE_NS, commits, 1e3),
        (column::LOG_PART_SYNC_US, counter::LOG_PART_SYNC_NS, commits, 1e3),
        (column::LOG_PART_WAKE_US, counter::LOG_PART_WAKE_NS, commits, 1e3),
        (column::LOG_FULL_US, counter::LOG_FULL_NS, commits, 1e3),
        (column::LOG_FILL_KIB, counter::LOG_FILL_BYTES, groups, KIB),
    ] {
        let mean = c.grown(name).zip(per).map(|(sum, n)| sum / n / unit);
        out.set_or_leave_out(id, mean, NONE);
    }
    out.set_or_leave_out(
        column::LOG_GROUP_COMMITS,
        commits.zip(groups).map(|(commits, groups)| commits / groups),
        NONE,
    );
}

/// From the database's own measurement where it makes one; else by Little's law: sessions waiting for the log
/// writer at a time = commits per second × wait per commit. `lacking` is whether the target says that it has none.
pub(super) fn log_file_sync(measured: &Measured, target: &dyn Target, tps: f64, lacking: bool) -> Figures {
    const ID: &Column = column::LOG_FILE_SYNC_MS;
    let mut out = Figures::default();
    let [open, close] = [&measured.edges.at_open, &measured.edges.at_close].map(|e| e.snapshot.as_ref().ok());
    let ns_per_s =
        open.zip(close).and_then(|(a, b)| a.delta(b, counter::LOG_WAIT_NS).map(|ns| ns / a.seconds_until(b)));
    let events = target.facts().log_sync_events;
    if let Some(ns_per_s) = ns_per_s.filter(|_| tps > 0.0) {
        out.set(ID, ns_per_s / tps / 1e6);
    } else if events.is_empty() {
        out.fall_back(ID, "the target does not say what sessions wait for");
    } else if !lacking {
        let profile = measured.waits();
        match profile.mean_sessions(events) {
            Some(waiting) if tps > 0.0 && profile.samples >= 5 => {
                out.set(ID, waiting / tps * 1e3);
                out.notes.push(format!(
                    "log file sync is estimated from {} samples of the sessions' wait events",
                    profile.samples
                ));
            }
            _ => out.leave_out(ID, format!("only {} samples of wait events in the window", profile.samples)),
        }
    }
    out
}
