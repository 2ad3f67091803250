//! Figures of what the jobs' time was spent on: shares of jobs × window.

use loadline_collect::os::TaskTimes;
use loadline_database::{Events, Runs, WaitEvents};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Note, column};
use loadline_workload::{Commit, Instrument};

use crate::evidence::Evidence;
use crate::test::Test;

const MIN_SAMPLES: u32 = 5;
/// Highest sum of CPU time and waits for a CPU, as a share of the jobs' time: more means that the tasks are not those of
/// the jobs. CPU time is up to a tick of the kernel old.
const WHOLE: f64 = 1.02;
/// Longest wait for a CPU, ns. The kernel adds a wait when it ends: also of one in which the window starts, all of it.
const LONGEST_WAIT_NS: f64 = 200e6;
/// From this share of the jobs' time on, %, new files of the log are noted.
const NOTE_LOG_FILES_PCT: f64 = 2.0;

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (request, measured) = (e.request, e.measured);
    let (facts, jobs) = (request.target.facts(), f64::from(request.jobs.max(1)));
    let readings = [&measured.readings.at_start, &measured.readings.at_end];
    let cpu = |[open, close]: [Option<TaskTimes>; 2], why| parts(open, close, jobs).ok_or(why);
    let why = if request.load.reconnect_every.is_some() {
        "the jobs open new sessions, and their processes or threads change with them"
    } else {
        "the processes or threads of the sessions are unknown or on another machine, or the kernel does not count their CPU time"
    };
    out.set_all([column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT], cpu(readings.map(|e| e.sessions), why));
    let own = match facts.runs {
        Runs::InProcess => Err("the jobs' threads also run the database: see session_cpu_pct"),
        _ => cpu(readings.map(|e| e.job_threads), "the kernel does not count the CPU time of threads"),
    };
    out.set_all([column::CLIENT_JOB_CPU_PCT, column::CLIENT_JOB_CPU_WAIT_PCT], own);
    let unknown = "the data device is unknown or on another machine";
    out.set_or_fallback(column::DATA_DEVICE_UTIL_PCT, e.rates.data_disk.map(|d| d.util_pct), unknown);
    let states = measured.collected.states_between(measured.schedule.open_ns, measured.schedule.close_ns);
    let in_io = (states.seen >= MIN_SAMPLES).then(|| f64::from(states.in_io) / f64::from(states.seen) * 100.0);
    out.set_or_absent(column::SESSION_IO_PCT, in_io, why);
    waits(e, facts.waits, jobs, out);
}

/// Times in which jobs waited, as the database counts them or else as its sessions were sampled.
fn waits(e: &Evidence<'_>, events: &WaitEvents, jobs: f64, out: &mut Test) {
    let profile = e.measured.waits();
    let counted = |name| e.counters.as_ref().ok().and_then(|c| c.rate(name)).map(|ns_per_s| ns_per_s / 1e7 / jobs);
    let pct = |known: &Events, is_one: &dyn Fn(&str) -> bool| sampled_pct(&profile, known, is_one, jobs);
    let sampled = |known: &Events| pct(known, &|event| known.has(event));
    let no_lock = [&events.log_sync, &events.log_write, &events.buffer];
    let is_lock = |event: &str| events.lock.has(event) && !no_lock.iter().any(|events| events.has(event));
    let write_pct = counted(counter::BUFFER_WAIT_NS);
    let none = "the target does not time these waits, or too few samples of wait events were taken";
    for (id, pct) in [
        (column::LOCK_WAIT_PCT, counted(counter::LOCK_WAIT_NS).or_else(|| pct(&events.lock, &is_lock))),
        (column::LOG_WRITE_WAIT_PCT, counted(counter::LOG_FULL_NS).or_else(|| sampled(&events.log_write))),
        (column::WRITE_WAIT_PCT, write_pct.or_else(|| sampled(&events.buffer))),
        (column::WRITER_WAIT_PCT, counted(counter::WRITER_WAIT_NS)),
        (column::REPLICA_WAIT_PCT, sampled(&events.replica)),
        (column::SESSION_IDLE_PCT, sampled(&events.idle)),
    ] {
        out.set_or_absent(id, pct, none);
    }
    // A server that has run for a while makes no new files of the log.
    let new_files = sampled(&events.log_file).filter(|pct| *pct >= NOTE_LOG_FILES_PCT);
    out.notes.extend(new_files.map(|pct| Note::NewLogFiles { pct }));
    // If no commit waits for the log, a free buffer does: the redo of a changed block is written before its buffer is used again.
    let with_log = e.work().program.commit == Commit::Nowait && !events.log_sync.is_empty();
    let is_buffer = |event: &str| events.buffer.has(event) || with_log && events.log_sync.has(event);
    let buffer_pct = write_pct.or_else(|| pct(&events.buffer, &is_buffer)).map(|pct| pct.min(100.0));
    if write_pct.is_none() && buffer_pct.is_some() && e.work().workload.has(Instrument::Device) {
        out.notes.push(Note::BufferWaitsSampled { samples: profile.samples, with_log });
    }
    let untimed = events.buffer.is_empty();
    let why = if untimed { "the target does not time waits for buffers" } else { "too few samples of wait events" };
    out.set_or_fallback(column::BUFFER_WAIT_PCT, buffer_pct, &e.missing(why));
}

/// CPU time and waits between two readings of the tasks of `jobs` jobs, as shares of the time between the readings, %.
fn parts(open: Option<TaskTimes>, close: Option<TaskTimes>, jobs: f64) -> Option<[f64; 2]> {
    let (open, close) = open.zip(close)?;
    let all = close.at_ns.checked_sub(open.at_ns).filter(|ns| *ns > 0)? as f64 * jobs;
    let run = close.run_ns.checked_sub(open.run_ns)? as f64;
    let wait = close.wait_ns.checked_sub(open.wait_ns)? as f64;
    // A wait that began before: only its part in the window belongs to it.
    let before = (run + wait - all).clamp(0.0, wait.min(LONGEST_WAIT_NS * jobs));
    let wait = wait - before;
    ((run + wait) <= WHOLE * all).then_some([run, wait].map(|ns| ns / all * 100.0))
}

/// Share of `jobs` sessions in the events for which `is_one` is true, %; `None` with too few samples or without `known` events.
fn sampled_pct(waits: &WaitProfile, known: &Events, is_one: &dyn Fn(&str) -> bool, jobs: f64) -> Option<f64> {
    if known.is_empty() || waits.samples < MIN_SAMPLES {
        return None;
    }
    waits.mean_sessions(is_one).map(|n| (n / jobs * 100.0).min(100.0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loadline_database::Work;
    use loadline_model::snapshot::WaitSample;

    use super::*;
    use crate::testing;

    #[test]
    fn cpu_time_is_a_share_of_all_jobs_time_and_neither_late_readers_nor_waits_that_began_earlier_change_it() {
        // When the tasks of so many jobs were read, what they had run and waited by then, ms, and their shares.
        for (jobs, open, close, shares) in [
            // Four jobs in 2 s: 8 s in all.
            (4.0, [1000, 100, 50], [3000, 4100, 2050], Some([50.0, 25.0])),
            // Other tasks than before; more than the jobs had; no time between the readings.
            (4.0, [1000, 100, 50], [3000, 90, 60], None),
            (4.0, [1000, 100, 50], [3000, 8300, 50], None),
            (4.0, [1000, 100, 50], [1000, 100, 50], None),
            // One busy job, half of its time waiting for a CPU; read on time, the end 400 ms late, the start 400 ms late.
            (1.0, [1000, 500, 500], [3000, 1500, 1500], Some([50.0, 50.0])),
            (1.0, [1000, 500, 500], [3400, 1700, 1700], Some([50.0, 50.0])),
            (1.0, [1400, 700, 700], [3000, 1500, 1500], Some([50.0, 50.0])),
            // In 2 s a job ran 1.5 s and waited 0.5 s; 150 ms of a wait before it are counted as well.
            (1.0, [0; 3], [2000, 1500, 650], Some([75.0, 25.0])),
            (1.0, [0; 3], [2000, 0, 2150], Some([0.0, 100.0])),
            // No task waits so long, and none runs longer than it takes.
            (1.0, [0; 3], [2000, 0, 2300], None),
            (1.0, [0; 3], [2000, 2100, 100], None),
        ] {
            let read = |ms: [u64; 3]| {
                let [at_ns, run_ns, wait_ns] = ms.map(|ms| ms * 1_000_000);
                Some(TaskTimes { run_ns, wait_ns, at_ns })
            };
            assert_eq!(parts(read(open), read(close), jobs), shares, "{open:?} {close:?}");
            assert_eq!(parts(None, read(close), jobs), None);
        }
    }

    #[test]
    fn a_share_of_the_sessions_needs_samples_and_known_events() {
        let mut waits = WaitProfile { samples: MIN_SAMPLES, ..WaitProfile::default() };
        for (event, n) in [("IO:WALInitSync", 2), ("IO:WALInitWrite", 3), ("CPU", 9)] {
            waits.sessions.insert(event.to_owned(), n);
        }
        let known = Events::from(["IO:WALInitSync", "IO:WALInitWrite"]);
        assert_eq!(sampled_pct(&waits, &known, &|event| known.has(event), 4.0), Some(25.0));
        assert_eq!(sampled_pct(&waits, &known, &|_| true, 1.0), Some(100.0), "no more than all");
        assert_eq!(sampled_pct(&waits, &Events::default(), &|_| true, 4.0), None);
        waits.samples = MIN_SAMPLES - 1;
        assert_eq!(sampled_pct(&waits, &known, &|_| true, 4.0), None);
    }

    #[test]
    fn waits_for_the_log_count_if_no_commit_waits_for_it_and_new_files_of_the_log_are_noted() {
        let of = |commit, event: &str, in_100: u64| {
            let mut case = testing::case(Work::from_catalogue("DBWR-THR", &[]).unwrap(), testing::jobs(4, |_, _| ()));
            Arc::get_mut(&mut case.request.work).unwrap().program.commit = commit;
            let sample = |i: u64| {
                let waiting = (event.to_owned(), u32::from(i < in_100));
                let sessions = [waiting, ("IO:DataFileWrite".to_owned(), 1), ("CPU".to_owned(), 2)].into();
                (case.measured.schedule.open_ns + i, WaitSample { sessions, ..WaitSample::default() })
            };
            case.measured.collected.wait_samples = (0..100).map(sample).collect();
            let made = case.made(&[|e, out| {
                let (buffer, log_sync) = (["IO:DataFileWrite"].into(), ["IO:WALSync"].into());
                let log_file = ["IO:WALInitSync"].into();
                waits(e, &WaitEvents { buffer, log_sync, log_file, ..WaitEvents::default() }, 4.0, out);
            }]);
            let new_files = made.notes.iter().any(|note| matches!(note, Note::NewLogFiles { .. }));
            (made.figure(column::BUFFER_WAIT_PCT), made.figure(column::WRITE_WAIT_PCT), new_files)
        };
        for (commit, event, in_100, buffer_pct, new_files) in [
            (Commit::Nowait, "IO:WALSync", 100, 50.0, false),
            (Commit::Wait, "IO:WALSync", 100, 25.0, false),
            // 1.75 % and 2.25 %.
            (Commit::Nowait, "IO:WALInitSync", 7, 25.0, false),
            (Commit::Nowait, "IO:WALInitSync", 9, 25.0, true),
        ] {
            assert_eq!(of(commit, event, in_100), (Some(buffer_pct), Some(25.0), new_files), "{event} {in_100}");
        }
    }
}
