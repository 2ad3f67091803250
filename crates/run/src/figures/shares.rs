//! Figures of what the jobs' time was spent on: shares of jobs × window.

use loadline_collect::Edge;
use loadline_collect::os::{DiskRates, TaskTimes};
use loadline_database::Runs;
use loadline_model::snapshot::{WaitProfile, counter};
use loadline_model::{Column, column};

use super::collected::Figures;
use super::counters::Counters;
use super::machine::seconds_between;
use crate::window::{Measured, Request};

/// Fewest samples for a share.
const MIN_SAMPLES: u32 = 5;
/// Highest sum of CPU time and waits for a CPU, %: more means that the tasks are not those of the jobs.
const WHOLE: f64 = 105.0;

/// Shares of the jobs' time.
pub(super) fn figures(request: &Request, measured: &Measured, counters: &Result<Counters<'_>, String>) -> Figures {
    let mut out = Figures::default();
    let (facts, jobs) = (request.target.facts(), f64::from(request.jobs.max(1)));
    let edges = [&measured.edges.at_open, &measured.edges.at_close];
    let why = "the processes or threads of the sessions are unknown or on another machine, or the kernel does not count their CPU time";
    cpu(&mut out, [column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT], edges, |e| e.sessions, jobs, why);
    let own = [column::CLIENT_JOB_CPU_PCT, column::CLIENT_JOB_CPU_WAIT_PCT];
    if facts.runs == Runs::InProcess {
        out.set_all_absent(&own, "the jobs' threads also run the database: see session_cpu_pct");
    } else {
        cpu(&mut out, own, edges, |e| e.job_threads, jobs, "the kernel does not count the CPU time of threads");
    }
    let disks = edges[0].data_disk.zip(edges[1].data_disk);
    let data = disks.and_then(|(a, b)| DiskRates::between(&a, &b, seconds_between(edges[0], edges[1])));
    let unknown = "the data device is unknown or on another machine";
    out.set_or_absent(column::DATA_DEVICE_UTIL_PCT, data.map(|d| d.util_pct), unknown);
    let states = measured.collected.states_between(measured.schedule.open_ns, measured.schedule.close_ns);
    let in_io = (states.seen >= MIN_SAMPLES).then(|| f64::from(states.in_io) / f64::from(states.seen) * 100.0);
    out.set_or_absent(column::SESSION_IO_PCT, in_io, why);
    let waits = measured.waits();
    let counted = |name| counters.as_ref().ok().and_then(|c| c.rate(name)).map(|ns_per_s| ns_per_s / 1e7 / jobs);
    let [log, log_write, buffers] = [facts.log_sync_events, facts.log_write_events, facts.buffer_wait_events];
    let lock = |event: &str| {
        ![log, log_write, buffers].iter().any(|events| events.contains(&event))
            && facts.lock_wait_events.iter().any(|e| event.starts_with(e))
    };
    let sampled = |known: bool, of: &dyn Fn(&str) -> bool| {
        sessions(&waits, of).filter(|_| known).map(|n| (n / jobs * 100.0).min(100.0))
    };
    let lock_pct = counted(counter::LOCK_WAIT_NS).or_else(|| sampled(!facts.lock_wait_events.is_empty(), &lock));
    let write_pct =
        counted(counter::BUFFER_WAIT_NS).or_else(|| sampled(!buffers.is_empty(), &|e| buffers.contains(&e)));
    let log_pct = counted(counter::LOG_FULL_NS).or_else(|| sampled(!log_write.is_empty(), &|e| log_write.contains(&e)));
    let idle = |e: &str| facts.idle_events.contains(&e);
    let none = "the target does not time these waits, or too few samples of wait events were taken";
    for (id, pct) in [
        (column::LOCK_WAIT_PCT, lock_pct),
        (column::LOG_WRITE_WAIT_PCT, log_pct),
        (column::WRITE_WAIT_PCT, write_pct),
        (column::WRITER_WAIT_PCT, counted(counter::WRITER_WAIT_NS)),
        (column::SESSION_IDLE_PCT, sampled(!facts.idle_events.is_empty(), &idle)),
    ] {
        out.set_or_absent(id, pct, none);
    }
    out
}

/// CPU time of tasks, and their waits for a CPU.
fn cpu(
    out: &mut Figures,
    columns: [&Column; 2],
    [open, close]: [&Edge; 2],
    of: impl Fn(&Edge) -> Option<TaskTimes>,
    jobs: f64,
    why: &str,
) {
    let ns = seconds_between(open, close) * 1e9 * jobs;
    let grown = of(open).zip(of(close)).filter(|_| ns > 0.0).and_then(|(a, b)| {
        let [run, wait] = [b.run_ns.checked_sub(a.run_ns)?, b.wait_ns.checked_sub(a.wait_ns)?];
        Some([run, wait].map(|part| part as f64 / ns * 100.0))
    });
    match grown.filter(|[run, wait]| run + wait <= WHOLE) {
        Some(parts) => columns.into_iter().zip(parts).for_each(|(id, pct)| out.set(id, pct)),
        None => out.set_all_absent(&columns, why),
    }
}

/// Mean number of sessions in the events for which `of` is true.
fn sessions(waits: &WaitProfile, of: &dyn Fn(&str) -> bool) -> Option<f64> {
    let seen: u64 = waits.sessions.iter().filter(|(event, _)| of(event)).map(|(_, n)| *n).sum();
    (waits.samples >= MIN_SAMPLES).then(|| seen as f64 / f64::from(waits.samples))
}

#[cfg(test)]
mod tests {
    use loadline_model::Snapshot;

    use super::*;

    fn edge(at_s: u64, sessions: Option<(u64, u64)>) -> Edge {
        Edge {
            name: String::new(),
            at_ns: at_s * 1_000_000_000,
            snapshot: Ok(Snapshot::default()),
            cpu: None,
            disk: None,
            data_disk: None,
            process: None,
            job_threads: None,
            sessions: sessions
                .map(|(run_ms, wait_ms)| TaskTimes { run_ns: run_ms * 1_000_000, wait_ns: wait_ms * 1_000_000 }),
        }
    }

    #[test]
    fn cpu_time_is_a_share_of_all_jobs_time() {
        let columns = [column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT];
        let of = |open, close| {
            let mut out = Figures::default();
            cpu(&mut out, columns, [&edge(1, open), &edge(3, close)], |e| e.sessions, 4.0, "no tasks");
            (columns.map(|c| out.figure(c)), out.absence_reason(columns[0]).map(str::to_owned))
        };
        let absent = ([None, None], Some("no tasks".to_owned()));
        // Four jobs in 2 s: 8 s in all.
        assert_eq!(of(Some((100, 50)), Some((4100, 2050))), ([Some(50.0), Some(25.0)], None));
        assert_eq!(of(None, Some((4100, 2050))), absent);
        assert_eq!(of(Some((100, 50)), Some((90, 60))), absent, "other tasks than before");
        assert_eq!(of(Some((0, 0)), Some((8500, 0))), absent, "more than the jobs had");
    }

    #[test]
    fn few_samples_are_no_share() {
        let mut waits = WaitProfile { samples: 4, ..WaitProfile::default() };
        waits.sessions.insert("Lock:tuple".to_owned(), 6);
        waits.sessions.insert("CPU".to_owned(), 2);
        let locks = |event: &str| event.starts_with("Lock:");
        assert_eq!(sessions(&waits, &locks), None);
        waits.samples = 5;
        assert_eq!(sessions(&waits, &locks), Some(1.2));
    }
}
