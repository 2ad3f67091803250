//! Parts of the jobs' time, which is jobs × window (Little's law).
//!
//! A session is on a CPU, waits for one, or sleeps: for the log, blocks, a lock, its turn to write, or its client. CPU times are
//! exact and waits are timed or sampled, so a wait is at most the time that its session slept. CPU that the kernel takes in timed
//! read calls belongs to the read if blocks are proved to come from the device. Of the time in which a session waits for its client,
//! what loadline's own thread is neither on a CPU nor waits for one is the round trip. The largest part is the limit if it is at
//! least as large as the time that no part explains: no cause that was not measured can be larger.

use loadline_model::format::number;
use loadline_model::{Column, DataSource, TestRecord, column};

use super::{Bound, BoundBy, DEVICE_FULL, Evidence, ONE_BY_ONE, pct};
use crate::kpi::LATENCY;

/// Share of the largest part from which on the second counts as nearly as large.
const CLOSE: f64 = 0.8;

/// Waits of sessions, counted or sampled: each is at most the time that they slept.
const WAITS: [(&Column, BoundBy, &str); 4] = [
    (column::WRITE_WAIT_PCT, BoundBy::StorageWrites, "wrote blocks or waited for one in the cache"),
    (column::LOCK_WAIT_PCT, BoundBy::Locks, "waited for locks or latches of other sessions"),
    (column::REPLICA_WAIT_PCT, BoundBy::Replica, "waited for a replica to have a commit"),
    (column::WRITER_WAIT_PCT, BoundBy::SingleWriter, "waited for their turn to write (one at a time)"),
];
const LOG_WRITE: (&Column, BoundBy, &str) =
    (column::LOG_WRITE_WAIT_PCT, BoundBy::LogWrite, "wrote the log or waited for a place in it");
/// Parts in which jobs ask nothing of the database.
const BETWEEN: [(&Column, BoundBy, &str); 3] = [
    (column::THINKING_PCT, BoundBy::ThinkTime, "thought between transactions"),
    (column::CONNECTING_PCT, BoundBy::Connecting, "closed sessions and opened new ones"),
    (column::SCRIPT_SLEEP_PCT, BoundBy::ScriptSleep, "slept in their scripts"),
];

struct Part<'a> {
    by: BoundBy,
    share: f64,
    evidence: Evidence<'a>,
}

/// The largest part, if it is a limit. Jobs of several populations are each bound by something else.
pub(super) fn largest_part(Evidence { record, .. }: Evidence<'_>, _: f64) -> Option<Bound> {
    if !record.populations().is_empty() {
        return None;
    }
    let mut parts = parts(record);
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let unexplained = unexplained(&parts);
    let mut parts = parts.into_iter();
    let first = parts.next().filter(|first| first.share > 0.0 && first.share >= unexplained)?;
    let mut evidence = first.evidence;
    if let Some(second) = parts.next().filter(|second| second.share >= first.share * CLOSE) {
        let [most, next] =
            [(first.by, first.share), (second.by, second.share)].map(|(by, v)| format!("{} {}", by.name(), pct(v)));
        let text = format!("nearly as much: {} (of the jobs' time {most}, {next})", second.by.name());
        evidence = evidence.add(&second.evidence.from, text);
    }
    Some(evidence.bound(first.by))
}

/// Whether jobs waited longer for locks or a place in the log than they were on CPUs or waited for one (if unknown, all the rest).
pub(super) fn waits_are_longer(e: &Evidence<'_>) -> bool {
    let sum = |columns: [&Column; 2]| columns.iter().filter_map(|c| e.figure(c)).sum::<f64>();
    let waits = sum([column::LOCK_WAIT_PCT, column::LOG_WRITE_WAIT_PCT]);
    let for_cpu = sum([column::SESSION_CPU_WAIT_PCT, column::CLIENT_JOB_CPU_WAIT_PCT]);
    waits > e.figure(column::SESSION_CPU_PCT).map_or(100.0 - waits, |on_cpu| on_cpu + for_cpu)
}

/// The data device, if it was busy and sessions slept most for a reason that was not measured. What moved more bytes names the cause.
pub(super) fn busy_device(e: Evidence<'_>, _: f64) -> Option<Bound> {
    let asleep = 100.0 - e.figure(column::SESSION_CPU_PCT)? - e.figure(column::SESSION_CPU_WAIT_PCT)?;
    // In an embedded database sessions are never idle, and have no such figure.
    let idle = e.figure(column::SESSION_IDLE_PCT).unwrap_or(0.0);
    let parts = parts(e.record);
    let unexplained = unexplained(&parts).min(asleep - idle);
    let util = e.figure(column::DATA_DEVICE_UTIL_PCT).filter(|util| *util >= DEVICE_FULL)?;
    let [read, written] = [column::DEVICE_READ_MIB_PER_S, column::PHYSICAL_WRITTEN_MIB_PER_S].map(|c| e.figure(c));
    let (read, written) = (read?, written?);
    let larger = parts.iter().all(|part| unexplained > part.share);
    let by = if read > written { BoundBy::StorageReads } else { BoundBy::StorageWrites };
    let [asleep, util, mib_read, mib_written] = [pct(unexplained), pct(util), number(read, 1), number(written, 1)];
    let text = format!(
        "sessions slept in statements {asleep} of the jobs' time for reasons that the database does not time, while the data device \
         was busy {util}: {mib_read} MiB/s read, {mib_written} MiB/s written by the database"
    );
    let from = [
        column::SESSION_CPU_PCT,
        column::SESSION_CPU_WAIT_PCT,
        column::DATA_DEVICE_UTIL_PCT,
        column::DEVICE_READ_MIB_PER_S,
        column::PHYSICAL_WRITTEN_MIB_PER_S,
    ];
    (larger && read.max(written) > 0.0).then(|| e.add(&from, text).bound(by))
}

/// Adds the parts and what they leave unexplained, if the sessions' CPU time is known.
pub(super) fn add_parts<'a>(evidence: Evidence<'a>, record: &'a TestRecord) -> Evidence<'a> {
    if evidence.figure(column::SESSION_CPU_PCT).is_none() {
        return evidence;
    }
    let parts = parts(record);
    let named: Vec<String> = parts.iter().map(|p| format!("{} {}", p.by.name(), pct(p.share))).collect();
    let from: Vec<&'static Column> = parts.iter().flat_map(|p| p.evidence.from.clone()).collect();
    let text = format!("of the jobs' time {}; {} unexplained", named.join(", "), pct(unexplained(&parts)));
    evidence.add(&from, text)
}

fn unexplained(parts: &[Part<'_>]) -> f64 {
    (100.0 - parts.iter().map(|p| p.share).sum::<f64>()).max(0.0)
}

fn parts<'a>(record: &'a TestRecord) -> Vec<Part<'a>> {
    let e = Evidence::new(record);
    let cpu = e.figure(column::SESSION_CPU_PCT).zip(e.figure(column::SESSION_CPU_WAIT_PCT));
    let between = between(record);
    let in_transactions = (100.0 - between.iter().map(|part| part.share).sum::<f64>()).max(0.0);
    let asleep = cpu.map_or(in_transactions, |(run, wait)| (in_transactions - run - wait).max(0.0));
    let log = log(record, asleep);
    let log_share = log.as_ref().map_or(0.0, |log| log.share.min(asleep));
    let (client_wait, client) = client_parts(record, asleep);
    let reads = reads(record, log_share);
    // CPU time that can only be inside the calls that read from the device.
    let device = record.data_source() == Some(DataSource::Device);
    let in_calls = if device { cpu.zip(timed_reads(&e)) } else { None };
    let in_calls = in_calls.map_or(0.0, |((run, _), reads)| (reads - asleep).clamp(0.0, run));
    let on_cpu = cpu.map(|(run, wait)| on_cpu(record, run - in_calls, wait, client_wait));
    let waits = WAITS.into_iter().filter_map(|waiting| wait(record, asleep, waiting));
    let at_most_asleep = |part: Part<'a>| match part.by {
        BoundBy::Cpu => part,
        BoundBy::StorageReads => Part { share: part.share.min(asleep + in_calls), ..part },
        _ => Part { share: part.share.min(asleep), ..part },
    };
    let all = on_cpu.into_iter().chain(log).chain(reads).chain(waits).chain(client);
    all.map(at_most_asleep).chain(between).collect()
}

fn between(record: &TestRecord) -> Vec<Part<'_>> {
    let part = |(column, by, doing): (&'static Column, BoundBy, &str)| {
        let e = Evidence::new(record);
        let share = e.figure(column).filter(|share| *share > 0.0)?.min(100.0);
        Some(Part { by, share, evidence: e.add(&[column], format!("jobs {doing} for {} of their time", pct(share))) })
    };
    BETWEEN.into_iter().filter_map(part).collect()
}

fn on_cpu<'a>(record: &'a TestRecord, run: f64, wait: f64, client_wait: f64) -> Part<'a> {
    let mut text = format!("sessions were on a CPU {} of the jobs' time", pct(run));
    if wait >= 1.0 {
        text.push_str(&format!(" and waited {} for one", pct(wait)));
    }
    let mut evidence = Evidence::new(record).add(&[column::SESSION_CPU_PCT, column::SESSION_CPU_WAIT_PCT], text);
    if client_wait >= 1.0 {
        let text = format!("loadline's threads waited {} for one", pct(client_wait));
        evidence = evidence.add(&[column::CLIENT_JOB_CPU_WAIT_PCT, column::SESSION_IDLE_PCT], text);
    }
    Part { by: BoundBy::Cpu, share: run + wait + client_wait, evidence: evidence.add_cpu_busy() }
}

fn wait<'a>(
    record: &'a TestRecord,
    asleep: f64,
    (column, by, doing): (&'static Column, BoundBy, &str),
) -> Option<Part<'a>> {
    let e = Evidence::new(record);
    let share = e.figure(column)?.min(asleep);
    let text = format!("sessions {doing} for {} of the jobs' time", pct(share));
    Some(Part { by, share, evidence: e.add(&[column], text).add_top_wait().add_cpu_busy() })
}

/// Where the time goes while a session waits for its client: waits of loadline's threads for a CPU, %, and the rest.
fn client_parts(record: &TestRecord, asleep: f64) -> (f64, Vec<Part<'_>>) {
    let from = [column::SESSION_IDLE_PCT, column::CLIENT_JOB_CPU_PCT, column::CLIENT_JOB_CPU_WAIT_PCT];
    let e = || Evidence::new(record);
    let [Some(idle), Some(own), Some(cpu_wait)] = from.map(|column| e().figure(column)) else {
        return (0.0, Vec::new());
    };
    // A session waits for a job that thinks or sleeps as well.
    let away: f64 = [column::THINKING_PCT, column::SCRIPT_SLEEP_PCT].into_iter().filter_map(|c| e().figure(c)).sum();
    let idle = (idle - away).clamp(0.0, asleep);
    let own = own.min(idle);
    let cpu_wait = cpu_wait.min(idle - own);
    let rest = idle - own - cpu_wait;
    let [asleep, on_cpu, waited] = [idle, own, cpu_wait].map(pct);
    let text = format!(
        "sessions waited for their client {asleep} of the jobs' time; its threads were on a CPU {on_cpu} and waited for one {waited}"
    );
    let part = |(by, share)| Part { by, share, evidence: e().add(&from, text.clone()) };
    (cpu_wait, [(BoundBy::Client, own), (BoundBy::RoundTrip, rest)].map(part).into())
}

/// Reads as timed by the database. A share above 100 % of the jobs' time is read-ahead, for which no job waits, so it
/// proves nothing. Read times taken from transactions would always fill the jobs' time. Without the database's clock:
/// the time in which the operating system held sessions for I/O, without that of the log, if blocks were read.
fn reads(record: &TestRecord, log_share: f64) -> Option<Part<'_>> {
    let e = Evidence::new(record);
    let (share, column, whose) = match (timed_reads(&e), e.figure(column::READ_WAIT_PCT)) {
        (Some(share), _) => (share, column::READ_WAIT_PCT, "the database's own clock"),
        (None, Some(_)) => return None,
        (None, None) => {
            e.figure(column::BLOCK_READS_PER_S).filter(|reads| *reads > 0.0)?;
            let share = (e.figure(column::SESSION_IO_PCT)? - log_share).max(0.0);
            (share, column::SESSION_IO_PCT, "the operating system's states of the sessions")
        }
    };
    let waiting = number(share / 100.0 * f64::from(record.jobs), 1);
    let text = format!("on average {waiting} of {} jobs waited for a read, by {whose}", record.jobs);
    let evidence = e
        .add(&[column], text)
        .add_figure(column::BLOCK_READS_PER_S, |v| format!("{} block reads/s", number(v, 0)))
        .add_figure(column::READ_TIME_US_MEAN, |v| format!("{} µs per read call", number(v, 1)))
        .add_cpu_busy();
    Some(Part { by: BoundBy::StorageReads, share, evidence })
}

/// Share of the jobs' time in read calls, by the database's own clock.
fn timed_reads(e: &Evidence<'_>) -> Option<f64> {
    e.figure(column::READ_WAIT_PCT).filter(|share| *share <= ONE_BY_ONE * 100.0)
}

/// Waits for the log: at the commit, and before it for a place in its buffers.
fn log(record: &TestRecord, asleep: f64) -> Option<Part<'_>> {
    let (sync, before) = match (log_sync(record), wait(record, asleep, LOG_WRITE)) {
        (Some(sync), Some(before)) => (sync, before),
        (sync, before) => return sync.or(before),
    };
    let share = sync.share + before.share;
    let (larger, smaller) = if sync.share >= before.share { (sync, before) } else { (before, sync) };
    let mut evidence = larger.evidence;
    if smaller.share >= 1.0 {
        evidence = evidence.add(&smaller.evidence.from, format!("{} {}", smaller.by.name(), pct(smaller.share)));
    }
    Some(Part { by: larger.by, share, evidence })
}

/// `sessions waited 0.41 of 0.45 ms per commit for the log`: samples may count more than `whole`, the transaction, ms.
pub(super) fn waited_for_log(wait: f64, whole: f64, decimals: usize) -> String {
    let [waited, latency, sampled] = [wait.min(whole), whole, wait].map(|ms| number(ms, decimals));
    let mut text = format!("sessions waited {waited} of {latency} ms per commit for the log");
    if waited != sampled {
        text.push_str(&format!(" (by samples {sampled} ms, which are too many)"));
    }
    text
}

fn log_sync(record: &TestRecord) -> Option<Part<'_>> {
    let e = Evidence::new(record);
    let whole = e.figure(LATENCY).filter(|ms| *ms > 0.0)?;
    let decimals = if whole < 1.0 { 3 } else { 2 };
    let (ms, e) = if let Some(wait) = e.figure(column::LOG_FILE_SYNC_MS) {
        let text = waited_for_log(wait, whole, decimals);
        (wait.min(whole), e.add(&[column::LOG_FILE_SYNC_MS, LATENCY], text))
    } else {
        // Without a wait time from the database: the commit time, if there were enough syncs to wait for.
        let commit = (e.figure(column::COMMIT_TIME_NS_MEAN)? / 1e6).min(whole);
        e.figure(column::COMMITS_PER_REDO_SYNC).filter(|n| *n <= f64::from(record.jobs) * ONE_BY_ONE)?;
        let [took, all] = [commit, whole].map(|ms| number(ms, decimals));
        let text =
            format!("the commit took {took} of {all} ms per transaction, with no more commits per sync than jobs");
        (commit, e.add(&[column::COMMIT_TIME_NS_MEAN, LATENCY, column::COMMITS_PER_REDO_SYNC], text))
    };
    let evidence = e
        .add_figure(column::COMMITS_PER_REDO_SYNC, |v| format!("{} commits per sync", number(v, 1)))
        .add_figure(column::DEVICE_UTIL_PCT, |v| format!("log device busy {}", pct(v)))
        .add_cpu_busy();
    let in_transactions = 100.0 - between(record).iter().map(|part| part.share).sum::<f64>();
    // The quotient of two finite figures may be infinite.
    let share = Some(ms / whole * in_transactions.max(0.0)).filter(|share| share.is_finite())?;
    Some(Part { by: BoundBy::LogSync, share, evidence })
}
