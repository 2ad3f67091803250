//! Figures from the database's counters of log and commits.

use loadline_collect::Point;
use loadline_database::Runs;
use loadline_load::{Place, Request, SECOND_NS};
use loadline_model::snapshot::counter;
use loadline_model::{Column, Note, column};

use super::{KIB, MIB};
use crate::evidence::Evidence;
use crate::test::Test;

pub(crate) const COMMITS_NOT_COUNTED: &str = "the database does not count its commits";
const NOT_PROVIDED: &str = "the target did not provide the counter at window start and window end";

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    const FLASH: &Column = column::FLASH_CACHE_WRITE_PCT;
    let tps = e.tps();
    out.set_fallback_reason(FLASH, "only Oracle on Exadata has a flash cache for writes");
    let comparable = are_comparable(e);
    if let Err(why) = &comparable {
        out.set_all_absent(&[column::COMMITS_DATABASE, column::COMMITS_PER_REDO_SYNC], why);
    }
    let c = match &e.counters {
        Ok(counters) => counters,
        Err(why) => return out.set_all_absent(&column::REDO_AND_COMMITS, why),
    };
    let mut set = |id, value| out.set_or_fallback(id, value, NOT_PROVIDED);
    let redo = c.rate_on_time(counter::REDO_BYTES);
    // Both of the same snapshots: one read late has more of both.
    let of_snapshots =
        c.exact_on_time().and_then(|done| c.grown_on_time(counter::REDO_BYTES).map(|bytes| bytes / done.count));
    let of_window = if tps > 0.0 { redo.map(|bytes| bytes / tps) } else { None };
    let per_tx = of_snapshots.or(of_window);
    set(column::REDO_MIB_PER_S, redo.map(|bytes| bytes / MIB));
    set(column::REDO_BYTES_PER_TX, per_tx);
    set(column::REDO_KIB_PER_TX, per_tx.map(|bytes| bytes / KIB));
    if comparable.is_ok() {
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
    match c.grown(counter::FLASH_WRITES).zip(c.grown(counter::WRITES)) {
        Some((flash, all)) if all > 0.0 && flash <= all => out.set(FLASH, flash / all * 100.0),
        Some((flash, all)) => {
            let why = format!("of {all:.0} physical writes in the window {flash:.0} went to the flash cache");
            out.set_absent(FLASH, why);
        }
        None => {}
    }
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

/// Commits that the database counted in the window, or why they cannot be compared with the jobs'.
pub(crate) fn comparable_commits(e: &Evidence<'_>) -> Result<f64, String> {
    let counters = e.counters.as_ref().map_err(String::clone)?;
    are_comparable(e)?;
    counters.grown(counter::COMMITS).ok_or_else(|| COMMITS_NOT_COUNTED.to_owned())
}

/// Whether the database's count of commits can be compared with the jobs', or why not.
pub(crate) fn are_comparable(e: &Evidence<'_>) -> Result<(), String> {
    let request = e.request;
    if engines_elsewhere(request) {
        return Err(ENGINES_ELSEWHERE.to_owned());
    }
    if let Some(statement) = e.merged().scripted.as_ref().and_then(|did| did.uncertain.as_ref()) {
        return Err(format!("a script's {statement} may commit by itself, which its client does not see"));
    }
    let works_alone = request.work.parallel_workers().is_none_or(|n| n <= 1);
    let unseen = if works_alone { None } else { request.target.facts().commits_of_workers };
    unseen.map_or(Ok(()), |why| Err(why.to_owned()))
}

/// Time of log file sync, as measured by the database; else by Little's law: sessions waiting for the log writer =
/// commits per second × wait per commit.
pub(crate) fn log_file_sync(e: &Evidence<'_>, out: &mut Test) {
    const ID: &Column = column::LOG_FILE_SYNC_MS;
    let (profile, tps) = (e.measured.waits(), e.tps() * e.merged().commits_per_tx());
    let events = &e.request.target.facts().waits.log_sync;
    let timed = e.counters.as_ref().ok().and_then(|c| c.rate_on_time(counter::LOG_WAIT_NS));
    let is_sampled = profile.samples >= 5;
    let sampled = if is_sampled { profile.mean_sessions(|event| events.has(event)) } else { None };
    match (timed, sampled) {
        (Some(ns_per_s), _) if tps > 0.0 => out.set(ID, ns_per_s / tps / 1e6),
        _ if events.is_empty() => out.set_fallback_reason(ID, "the target does not report wait events"),
        _ if out.target_lacks(ID) => {}
        (_, Some(waiting)) if tps > 0.0 => {
            out.set(ID, waiting / tps * 1e3);
            out.notes.push(Note::LogSyncSampled { samples: profile.samples });
        }
        _ => out.set_absent(ID, format!("only {} samples of wait events in the window", profile.samples)),
    }
}

/// Figures of log switches: how many, and throughput in the seconds in which there was one against that in the others.
pub(crate) fn log_switches(e: &Evidence<'_>, out: &mut Test) {
    let measured = e.measured;
    let Some(switches) = e.counters.as_ref().ok().and_then(|c| c.grown_on_time(counter::LOG_SWITCHES)) else {
        let why = e.missing("the target does not count its log switches");
        return column::SWITCHES.iter().for_each(|column| out.set_fallback_reason(column, &why));
    };
    out.set(column::LOG_SWITCHES, switches);
    // The window's last second may be a part of one.
    let mut per_second = measured.per_second();
    per_second.truncate((measured.schedule.window_ns() / SECOND_NS) as usize);
    let [during, between] = throughput(&measured.collected.points, measured.schedule.open_ns, &per_second);
    let why =
        if switches == 0.0 { "no log switch in the window" } else { "no whole second with a log switch was read" };
    out.set_or_absent(column::LOG_SWITCH_TPS, during, why);
    out.set_or_absent(column::BETWEEN_SWITCHES_TPS, between, "no whole second without a log switch was read");
}

/// Transactions per second in the whole seconds with a switch, and in those without; each if there is one. A second without a reading at
/// its start and at its end is in neither.
fn throughput(points: &[Point], open_ns: u64, per_second: &[u64]) -> [Option<f64>; 2] {
    let at = |second: usize| {
        let due = open_ns + second as u64 * SECOND_NS;
        // Farther from a whole second than a fifth, a reading is not that second's.
        let read = points.iter().filter_map(|p| p.snapshot.as_ref()).filter(|s| s.at_ns.abs_diff(due) < SECOND_NS / 5);
        read.min_by_key(|s| s.at_ns.abs_diff(due))
    };
    let mut sides = [(0.0, 0.0); 2];
    for (second, done) in per_second.iter().enumerate() {
        let Some(grown) = at(second).zip(at(second + 1)).and_then(|(a, b)| a.delta(b, counter::LOG_SWITCHES)) else {
            continue;
        };
        let (count, seconds) = &mut sides[usize::from(grown < 1.0)];
        (*count, *seconds) = (*count + *done as f64, *seconds + 1.0);
    }
    sides.map(|(count, seconds)| (seconds > 0.0).then(|| count / seconds))
}

#[cfg(test)]
mod tests {
    use loadline_collect::System;

    use super::*;

    #[test]
    fn a_second_with_a_switch_is_on_its_own_side() {
        let point = |ms: u64, switches: f64| {
            let at_ns = 7 * SECOND_NS + ms * 1_000_000;
            let snapshot = Some(crate::testing::snapshot(at_ns, &[(counter::LOG_SWITCHES, switches)]));
            Point { system: System { at_ns, ..System::default() }, snapshot }
        };
        // Switches in the second and the fourth second, two in the latter.
        let points = [point(0, 5.0), point(1001, 5.0), point(1999, 6.0), point(3000, 6.0), point(4010, 8.0)];
        let done = [100, 40, 110, 60];
        let of = |points: &[Point], done: &[u64]| throughput(points, 7 * SECOND_NS, done);
        assert_eq!(of(&points, &done), [Some(50.0), Some(105.0)]);
        assert_eq!(of(&points[..2], &done), [None, Some(100.0)], "what was not read is on neither side");
        assert_eq!(of(&points[1..3], &done), [Some(40.0), None]);
        assert_eq!(of(&[point(0, 5.0), point(1500, 6.0)], &done), [None, None], "too far from a whole second");
        assert_eq!(of(&points, &[]), [None, None]);
    }
}
