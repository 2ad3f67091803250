//! Figures from the database's counters of log and commits.

use loadline_database::Runs;
use loadline_load::{Place, Request};
use loadline_model::snapshot::counter;
use loadline_model::{Column, Note, column};

use super::counters::Counters;
use super::{KIB, MIB};
use crate::evidence::Evidence;
use crate::test::Test;

const NOT_PROVIDED: &str = "the target did not provide the counter at window start and window end";

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    const FLASH: &Column = column::FLASH_CACHE_WRITE_PCT;
    let tps = e.tps();
    out.set_fallback_reason(FLASH, "only Oracle on Exadata has a flash cache for writes");
    let not_comparable = commits_not_comparable(e);
    if let Some(why) = &not_comparable {
        out.set_all_absent(&[column::COMMITS_DATABASE, column::COMMITS_PER_REDO_SYNC], why);
    }
    let c = match &e.counters {
        Ok(counters) => counters,
        Err(why) => return out.set_all_absent(&column::REDO_AND_COMMITS, why),
    };
    let mut set = |id, value| out.set_or_fallback(id, value, NOT_PROVIDED);
    set(column::REDO_BLOCKS_PER_S, c.rate(counter::REDO_BLOCKS));
    set(column::REDO_WRITES_PER_S, c.rate(counter::REDO_WRITES));
    set(column::REDO_SYNC_WRITES_PER_S, c.rate(counter::REDO_SYNCS));
    let [open, close] = c.on_time;
    let redo = c.grown_on_time(counter::REDO_BYTES).map(|bytes| bytes / open.seconds_until(close));
    // Both of the same snapshots: one read late has more of both.
    let of_snapshots =
        c.exact_on_time().and_then(|done| c.grown_on_time(counter::REDO_BYTES).map(|bytes| bytes / done.count));
    let per_tx = of_snapshots.or_else(|| redo.filter(|_| tps > 0.0).map(|bytes| bytes / tps));
    set(column::REDO_MIB_PER_S, redo.map(|bytes| bytes / MIB));
    set(column::REDO_BYTES_PER_TX, per_tx);
    set(column::REDO_KIB_PER_TX, per_tx.map(|bytes| bytes / KIB));
    if not_comparable.is_none() {
        let commits = c.grown(counter::COMMITS);
        let syncs = c.grown(counter::REDO_SYNCS).filter(|s| *s > 0.0);
        set(column::COMMITS_DATABASE, c.in_window(counter::COMMITS));
        // What only reads needs no sync. Whether a script's commits write is not known.
        let writing = if e.merged().scripted.is_some() { 1.0 } else { e.writing_share() };
        // If the database does not count its commits, use the jobs' count.
        let commits = commits.unwrap_or(tps * e.merged().commits_per_tx() * c.seconds) * writing;
        if writing > 0.0 {
            set(column::COMMITS_PER_REDO_SYNC, syncs.map(|syncs| commits / syncs));
        } else {
            out.set_absent(column::COMMITS_PER_REDO_SYNC, "its transactions only read: their commits need no sync");
        }
    }
    match c.both(counter::FLASH_WRITES, counter::WRITES) {
        Some((flash, all)) if all > 0.0 && flash <= all => out.set(FLASH, flash / all * 100.0),
        Some((flash, all)) => {
            let why = format!("of {all:.0} physical writes in the window {flash:.0} went to the flash cache");
            out.set_absent(FLASH, why);
        }
        None => {}
    }
    log_parts(out, c);
    if c.whole.is_some() {
        out.notes.push(Note::CountsLate {});
    }
}

pub(crate) const ENGINES_ELSEWHERE: &str =
    "each agent has a null engine of its own, whose counts are not those of this one";

/// Whether each agent has an engine of its own.
pub(crate) fn engines_elsewhere(request: &Request) -> bool {
    matches!(request.place, Place::Remote(_)) && request.target.facts().runs == Runs::Nowhere
}

/// Commits that the database counted in the window, if they can be compared with the jobs'.
pub(crate) fn comparable_commits(e: &Evidence<'_>) -> Option<f64> {
    if commits_not_comparable(e).is_none() { e.grown(counter::COMMITS) } else { None }
}

/// Why the database's count of commits cannot be compared with the jobs', if so.
pub(crate) fn commits_not_comparable(e: &Evidence<'_>) -> Option<String> {
    let request = e.request;
    if engines_elsewhere(request) {
        return Some(ENGINES_ELSEWHERE.to_owned());
    }
    if let Some(statement) = e.merged().scripted.as_ref().and_then(|did| did.uncertain.as_ref()) {
        return Some(format!("a script's {statement} may commit by itself, which its client does not see"));
    }
    let workers =
        request.target.facts().commits_of_workers.filter(|_| request.work.parallel_workers().is_some_and(|n| n > 1));
    workers.map(str::to_owned)
}

/// Parts of the commit time, and group commits, if the target reports them.
fn log_parts(out: &mut Test, c: &Counters<'_>) {
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
        out.set_or_absent(id, mean, NONE);
    }
    out.set_or_absent(column::LOG_GROUP_COMMITS, commits.zip(groups).map(|(commits, groups)| commits / groups), NONE);
}

/// Time of log file sync, as measured by the database; else by Little's law: sessions waiting for the log writer =
/// commits per second × wait per commit.
pub(crate) fn log_file_sync(e: &Evidence<'_>, out: &mut Test) {
    const ID: &Column = column::LOG_FILE_SYNC_MS;
    let (measured, tps) = (e.measured, e.tps() * e.merged().commits_per_tx());
    let [open, close] = [&measured.readings.at_start, &measured.readings.at_end].map(|e| e.snapshot.as_ref().ok());
    let ns_per_s =
        open.zip(close).and_then(|(a, b)| a.delta(b, counter::LOG_WAIT_NS).map(|ns| ns / a.seconds_until(b)));
    let events = &e.request.target.facts().waits.log_sync;
    if let Some(ns_per_s) = ns_per_s
        && tps > 0.0
    {
        out.set(ID, ns_per_s / tps / 1e6);
    } else if events.is_empty() {
        out.set_fallback_reason(ID, "the target does not report wait events");
    } else if !out.target_lacks(ID) {
        let profile = measured.waits();
        match profile.mean_sessions(|event| events.has(event)) {
            Some(waiting) if tps > 0.0 && profile.samples >= 5 => {
                out.set(ID, waiting / tps * 1e3);
                out.notes.push(Note::LogSyncSampled { samples: profile.samples });
            }
            _ => out.set_absent(ID, format!("only {} samples of wait events in the window", profile.samples)),
        }
    }
}
