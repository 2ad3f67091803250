//! Figures of what the jobs' time was spent on: shares of jobs × window.

use loadline_collect::os::TaskTimes;
use loadline_database::{Events, Runs};
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Column, Note, column};

use crate::evidence::Evidence;
use crate::test::Test;

const MIN_SAMPLES: u32 = 5;
/// Highest sum of CPU time and waits for a CPU, as a share of the jobs' time: more means that the tasks are not those of
/// the jobs. CPU time is up to a tick of the kernel old.
const WHOLE: f64 = 1.02;
/// Longest wait for a CPU, ns. The kernel adds a wait when it ends, so the one in which the window starts is counted
/// completely.
const LONGEST_WAIT_NS: f64 = 200e6;
/// From this share of the jobs' time on, %, new files of the log are noted.
const NOTE_LOG_FILES_PCT: f64 = 2.0;

pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (request, measured) = (e.request, e.measured);
    let (facts, jobs) = (request.target.facts(), f64::from(request.jobs.max(1)));
    let readings = [&measured.readings.at_start, &measured.readings.at_end];
    let why = if request.load.reconnect_every.is_some() {
        "the jobs open new sessions, and their processes or threads change with them"
    } else {
        "the processes or threads of the sessions are unknown or on another machine, or the kernel does not count their CPU time"
    };
    let sessions_cpu = [column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT];
    cpu(out, sessions_cpu, readings.map(|e| e.sessions), jobs, why);
    let own = [column::CLIENT_JOB_CPU_PCT, column::CLIENT_JOB_CPU_WAIT_PCT];
    if facts.runs == Runs::InProcess {
        out.set_all_absent(&own, "the jobs' threads also run the database: see session_cpu_pct");
    } else {
        cpu(out, own, readings.map(|e| e.job_threads), jobs, "the kernel does not count the CPU time of threads");
    }
    let unknown = "the data device is unknown or on another machine";
    out.set_or_fallback(column::DATA_DEVICE_UTIL_PCT, e.rates.data_disk.map(|d| d.util_pct), unknown);
    let states = measured.collected.states_between(measured.schedule.open_ns, measured.schedule.close_ns);
    let in_io = (states.seen >= MIN_SAMPLES).then(|| f64::from(states.in_io) / f64::from(states.seen) * 100.0);
    out.set_or_absent(column::SESSION_IO_PCT, in_io, why);
    let waits = measured.waits();
    let counted = |name| e.counters.as_ref().ok().and_then(|c| c.rate(name)).map(|ns_per_s| ns_per_s / 1e7 / jobs);
    let events = facts.waits;
    let no_lock = [&events.log_sync, &events.log_write, &events.buffer];
    let sampled = |known: &Events, except: &[&Events]| {
        let of = sessions(&waits, |event| known.has(event) && !except.iter().any(|events| events.has(event)));
        of.filter(|_| !known.is_empty()).map(|n| (n / jobs * 100.0).min(100.0))
    };
    let lock_pct = counted(counter::LOCK_WAIT_NS).or_else(|| sampled(&events.lock, &no_lock));
    let write_pct = counted(counter::BUFFER_WAIT_NS).or_else(|| sampled(&events.buffer, &[]));
    let log_pct = counted(counter::LOG_FULL_NS).or_else(|| sampled(&events.log_write, &[]));
    out.notes.extend(new_log_files(&waits, &events.log_file, jobs));
    let none = "the target does not time these waits, or too few samples of wait events were taken";
    for (id, pct) in [
        (column::LOCK_WAIT_PCT, lock_pct),
        (column::LOG_WRITE_WAIT_PCT, log_pct),
        (column::WRITE_WAIT_PCT, write_pct),
        (column::WRITER_WAIT_PCT, counted(counter::WRITER_WAIT_NS)),
        (column::REPLICA_WAIT_PCT, sampled(&events.replica, &[])),
        (column::SESSION_IDLE_PCT, sampled(&events.idle, &[])),
    ] {
        out.set_or_absent(id, pct, none);
    }
}

fn cpu(out: &mut Test, columns: [&Column; 2], [open, close]: [Option<TaskTimes>; 2], jobs: f64, why: &str) {
    match open.zip(close).and_then(|(a, b)| parts(a, b, jobs)) {
        Some(parts) => columns.into_iter().zip(parts).for_each(|(id, part)| out.set(id, part * 100.0)),
        None => out.set_all_absent(&columns, why),
    }
}

/// CPU time and waits between two readings of the tasks of `jobs` jobs, as shares of the time between the readings.
fn parts(open: TaskTimes, close: TaskTimes, jobs: f64) -> Option<[f64; 2]> {
    let all = close.at_ns.checked_sub(open.at_ns).filter(|ns| *ns > 0)? as f64 * jobs;
    let run = close.run_ns.checked_sub(open.run_ns)? as f64;
    let wait = close.wait_ns.checked_sub(open.wait_ns)? as f64;
    // A wait that began before: only its part in the window belongs to it.
    let before = (run + wait - all).clamp(0.0, wait.min(LONGEST_WAIT_NS * jobs));
    let wait = wait - before;
    ((run + wait) <= WHOLE * all).then_some([run / all, wait / all])
}

/// A note if sessions made new files of the log, which a server that has run for a while does not.
fn new_log_files(waits: &WaitProfile, events: &Events, jobs: f64) -> Option<Note> {
    let pct = sessions(waits, |event| events.has(event))? / jobs * 100.0;
    (pct >= NOTE_LOG_FILES_PCT).then_some(Note::NewLogFiles { pct })
}

/// Mean number of sessions in the events for which `is_one` is true; `None` with too few samples.
fn sessions(waits: &WaitProfile, is_one: impl Fn(&str) -> bool) -> Option<f64> {
    if waits.samples >= MIN_SAMPLES { waits.mean_sessions(is_one) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks of jobs: when they were read, CPU time and waits, ms.
    fn read(at_ms: u64, run_ms: u64, wait_ms: u64) -> TaskTimes {
        let [at_ns, run_ns, wait_ns] = [at_ms, run_ms, wait_ms].map(|ms| ms * 1_000_000);
        TaskTimes { run_ns, wait_ns, at_ns }
    }

    #[test]
    fn cpu_time_is_a_share_of_all_jobs_time() {
        let columns = [column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT];
        let of = |open, close| {
            let mut out = Test::default();
            cpu(&mut out, columns, [open, close], 4.0, "no tasks");
            (columns.map(|c| out.figure(c)), out.absence_reason(columns[0]).map(str::to_owned))
        };
        let absent = ([None, None], Some("no tasks".to_owned()));
        let open = Some(read(1000, 100, 50));
        // Four jobs in 2 s: 8 s in all.
        assert_eq!(of(open, Some(read(3000, 4100, 2050))), ([Some(50.0), Some(25.0)], None));
        assert_eq!(of(None, Some(read(3000, 4100, 2050))), absent);
        assert_eq!(of(open, Some(read(3000, 90, 60))), absent, "other tasks than before");
        assert_eq!(of(open, Some(read(3000, 8300, 50))), absent, "more than the jobs had");
        assert_eq!(of(open, open), absent, "no time between the readings");
    }

    #[test]
    fn neither_late_readers_nor_waits_that_began_earlier_change_a_share() {
        // Of a job: when its task was read, what it had run and waited by then, and its shares.
        for (open, close, shares) in [
            // One busy job, half of its time waiting for a CPU; read on time, the end 400 ms late, the start 400 ms late.
            ([1000, 500, 500], [3000, 1500, 1500], Some([0.5, 0.5])),
            ([1000, 500, 500], [3400, 1700, 1700], Some([0.5, 0.5])),
            ([1400, 700, 700], [3000, 1500, 1500], Some([0.5, 0.5])),
            // In 2 s a job ran 1.5 s and waited 0.5 s; 150 ms of a wait before it are counted as well.
            ([0; 3], [2000, 1500, 650], Some([0.75, 0.25])),
            ([0; 3], [2000, 0, 2150], Some([0.0, 1.0])),
            // No task waits so long, and none runs longer than it takes.
            ([0; 3], [2000, 0, 2300], None),
            ([0; 3], [2000, 2100, 100], None),
        ] {
            let [open, close] = [open, close].map(|[at_ms, run_ms, wait_ms]| read(at_ms, run_ms, wait_ms));
            assert_eq!(parts(open, close, 1.0), shares, "{open:?} {close:?}");
        }
    }

    #[test]
    fn new_files_of_the_log_are_noted_if_samples_suffice() {
        let mut waits = WaitProfile { samples: 100, ..WaitProfile::default() };
        let events = Events::from(["IO:WALInitSync", "IO:WALInitWrite"]);
        let mut of = |event: &str, n: u64| {
            waits.sessions.insert(event.to_owned(), n);
            new_log_files(&waits, &events, 4.0)
        };
        assert_eq!(of("IO:WALSync", 200), None);
        assert_eq!(of("IO:WALInitSync", 4), None, "1 %");
        let Some(Note::NewLogFiles { pct }) = of("IO:WALInitWrite", 16) else { panic!("5 %") };
        assert!((pct - 5.0).abs() < 1e-9, "{pct}");
        waits.samples = MIN_SAMPLES - 1;
        assert_eq!(new_log_files(&waits, &events, 4.0), None);
    }
}
