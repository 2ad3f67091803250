//! From what was measured to figures: each is computed once, here, and has a counter behind it.

use std::collections::BTreeMap;

use loadline_collect::os::{CpuShares, DiskRates};
use loadline_collect::{CpuSource, Edge, Point};
use loadline_database::Target;
use loadline_model::record::RECORD_SCHEMA;
use loadline_model::snapshot::counter;
use loadline_model::{Column, Driver, Latencies, Series, Snapshot, TestLimit, TestRecord, column};
use loadline_store::{TestOutput, rfc3339};
use loadline_workload::Commit;

use crate::block_checks::CacheFacts;
use crate::block_figures::block_figures;
use crate::checkpoint;
use crate::job::JobResult;
use crate::load_figures::load_figures;
use crate::test::{Measured, Request};
use crate::verify::{Facts, outside_share, verify};
use crate::visible::visible_figures;
use crate::volume::volume_figures;

/// What the record says about the test besides its figures.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Platform name.
    pub platform: String,
    /// Run id.
    pub run: String,
    /// Number of the test.
    pub test: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Target URL without secrets.
    pub target: String,
    /// What was refused and forced.
    pub forced: Option<String>,
    /// Result of the evidence query before the test.
    pub evidence_before: Option<i64>,
    /// The same after it, or why it is missing.
    pub evidence_after: Result<Option<i64>, String>,
    /// What must be 0 after the test, with what was found.
    pub consistency: Vec<(&'static str, Result<Option<i64>, String>)>,
    /// Bytes that a transaction works through, where it works through whole tables.
    pub data_bytes: Result<Option<f64>, String>,
    /// What is known of caches.
    pub cache: CacheFacts,
    /// How far the target's counters may lag, s.
    pub counter_lag_s: f64,
    /// CPUs of the machine that loadline runs on.
    pub cpus: u32,
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Makes the record of a test, with every check made.
#[must_use]
pub fn output(request: &Request, measured: &Measured, id: &Identity) -> TestOutput {
    let mut merged = JobResult::new(measured.schedule.window_ns(), request.rate_tps.is_some());
    measured.jobs.iter().for_each(|j| merged.merge(j));
    let mut record = blank(request, measured, id, &merged);
    record.leave_out(column::FLASH_CACHE_WRITE_PCT, "only Oracle on Exadata has a flash cache that takes writes");
    for (column, reason) in request.target.absent_columns() {
        record.leave_out(column, reason);
    }
    limit_figures(&mut record, Err("it was not measured".to_owned()));
    own_figures(&mut record, &merged, measured, request);
    volume_figures(&mut record, &request.work, &id.data_bytes);
    let e = &measured.edges;
    let on_time = (e.at_open.snapshot.as_ref().ok(), e.at_close.snapshot.as_ref().ok());
    let published = request.target.facts().publishes_counters;
    // What sessions publish when they pass an edge is what they did up to it.
    let edges =
        if published { (e.passed_open.snapshot.as_ref().ok(), e.passed_close.snapshot.as_ref().ok()) } else { on_time };
    if let ((Some(open), Some(close)), (Some(at_open), Some(at_close))) = (edges, on_time) {
        let apart_s = at_open.seconds_until(at_close);
        let covered_s = if published { measured.schedule.window_ns() as f64 / 1e9 } else { apart_s };
        database_figures(&mut record, (open, close), covered_s);
        log_parts(&mut record, open, close);
        record.notes.extend(request.target.facts().remarks.map(|of| of(at_open, at_close)).unwrap_or_default());
        redo_figures(&mut record, at_open.delta(at_close, counter::REDO_BYTES).map(|d| d / apart_s));
    } else {
        let why = e.unread().unwrap_or_default();
        for id in DATABASE_COLUMNS {
            record.leave_out(id, why.clone());
        }
    }
    load_figures(&mut record, &request.work, &merged);
    let of_batches = visible_figures(&mut record, &measured.schedule, &measured.jobs, measured.seen.as_ref());
    log_file_sync(&mut record, measured, request.target.as_ref());
    machine_figures(&mut record, measured, request);
    client_figures(&mut record, measured, &merged, id, request.target.facts().in_process);
    let covered = edges.0.zip(edges.1).zip(on_time.0.zip(on_time.1)).map(|((open, close), (at_open, at_close))| {
        let window_s = measured.schedule.window_ns() as f64 / 1e9;
        let off_s = id.counter_lag_s + snapshots_off_s(measured, edges);
        (open, close, if published { window_s } else { at_open.seconds_until(at_close) }, off_s)
    });
    let of_blocks = block_figures(&mut record, request, measured, &merged.transaction, covered, &id.cache);
    let snapshots = covered.map(|(open, close, ..)| (open, close));
    let outcome = measured.checkpoint.as_ref();
    let of_checkpoint = checkpoint::figures(&mut record, &merged, &measured.schedule, outcome, snapshots);
    if let Some(why) = blurred_commits(request) {
        [column::COMMITS_DATABASE, column::COMMITS_PER_REDO_SYNC].iter().for_each(|id| record.leave_out(id, why));
    }
    let facts = facts(request, measured, id, &merged, &record, edges);
    if request.rate_tps.is_none() {
        record.set(column::OUTSIDE_TX_PCT, outside_share(&facts) * 100.0);
    } else {
        record.leave_out(column::OUTSIDE_TX_PCT, "open loop: jobs wait between transactions by intent");
    }
    if let Ok(Some((grown, _))) = facts.evidence {
        record.set(column::ROWS_CHANGED_DATABASE, grown as f64);
    }
    let checks = verify(&facts);
    checks.into_iter().chain(of_blocks).chain(of_checkpoint).chain(of_batches).for_each(|c| record.add_check(c));
    record.notes.extend(measured.collected.problems.iter().cloned());
    record.notes.extend(read_late(facts.snapshots_off_s, measured.schedule.window_ns() as f64 / 1e9));
    let mut histograms =
        vec![("transaction".to_owned(), merged.transaction.clone()), ("commit".to_owned(), merged.commit.clone())];
    histograms.extend(merged.response.clone().map(|r| ("response".to_owned(), r)));
    let snapshots = [
        ("before", &measured.before),
        ("open", &e.at_open.snapshot),
        ("passed open", &e.passed_open.snapshot),
        ("close", &e.at_close.snapshot),
        ("passed close", &e.passed_close.snapshot),
        ("after", &measured.after),
    ];
    let snapshots =
        snapshots.into_iter().filter_map(|(n, s)| s.as_ref().ok().map(|s| (n.to_owned(), s.clone()))).collect();
    TestOutput { series: series(measured, &merged), record, histograms, snapshots, native: None }
}

/// Sets what the hardware allows for the work of a test, or says why it is not known.
pub fn limit_figures(record: &mut TestRecord, limit: Result<TestLimit, String>) {
    match limit {
        Ok(limit) => {
            record.set(column::LIMIT_TPS, limit.tps);
            match record.figure(column::COMMIT_THROUGHPUT_TPS) {
                Some(tps) => record.set(column::LIMIT_SHARE_PCT, tps / limit.tps * 100.0),
                None => record.leave_out(column::LIMIT_SHARE_PCT, "there is no throughput to hold against it"),
            }
            record.limit = Some(limit);
        }
        Err(reason) => {
            [column::LIMIT_TPS, column::LIMIT_SHARE_PCT].iter().for_each(|id| record.leave_out(id, reason.clone()))
        }
    }
}

/// Why an embedded database has no client CPU.
const IN_PROCESS: &str = "the database runs inside the loadline process: its CPU time is not told from loadline's own";

/// Columns that come from the database's counters.
const DATABASE_COLUMNS: &[&Column] = &[
    column::REDO_BLOCKS_PER_S,
    column::REDO_WRITES_PER_S,
    column::REDO_SYNC_WRITES_PER_S,
    column::REDO_MIB_PER_S,
    column::REDO_KIB_PER_TX,
    column::REDO_BYTES_PER_TX,
    column::COMMITS_DATABASE,
    column::COMMITS_PER_REDO_SYNC,
];

fn blank(request: &Request, measured: &Measured, id: &Identity, merged: &JobResult) -> TestRecord {
    let workload = request.work.workload;
    TestRecord {
        schema: RECORD_SCHEMA,
        platform: id.platform.clone(),
        run: id.run.clone(),
        test: id.test,
        workload: workload.code.into(),
        group: workload.group.into(),
        target: id.target.clone(),
        driver: request.driver,
        nodes: request.target.facts().nodes,
        jobs: request.jobs,
        repetition: id.repetition,
        started_at: rfc3339(measured.opened_at),
        valid: true,
        invalid_reason: None,
        forced: id.forced.clone(),
        checks: Vec::new(),
        absent: BTreeMap::new(),
        notes: Vec::new(),
        error_texts: merged.error_texts.clone(),
        data_source: None,
        kpis: workload.kpis.iter().map(|k| k.column.id.to_owned()).collect(),
        swept: None,
        limit: None,
        sizes: Vec::new(),
        waits: measured.collected.waits_between(measured.schedule.open_ns, measured.schedule.close_ns),
        parameters: request.work.params.to_map(),
        figures: BTreeMap::new(),
    }
}

fn own_figures(record: &mut TestRecord, merged: &JobResult, measured: &Measured, request: &Request) {
    let window_s = measured.schedule.window_ns() as f64 / 1e9;
    record.set(column::ELAPSED_S, window_s);
    record.set(column::WARMUP_S, request.warmup_s);
    record.set(column::COMMITS, merged.transaction.count() as f64);
    record.set(column::ERRORS, merged.errors as f64);
    for id in [column::COMMIT_THROUGHPUT_TPS, column::TX_PER_S] {
        record.set(id, merged.transaction.count() as f64 / window_s);
    }
    record.set(column::STATEMENTS_PER_TX, request.work.program.mean_statements_per_tx());
    record.set(column::ROWS_PER_TX, request.work.program.mean_rows_per_tx());
    let none = "no transaction completed in the window";
    match merged.transaction.mean_ns() {
        Some(mean) => record.set(column::COMMIT_LATENCY_MS, mean / 1e6),
        None => record.leave_out(column::COMMIT_LATENCY_MS, none),
    }
    latencies(record, column::TRANSACTION_TIMES, &merged.transaction, none);
    let (seen, all) = (merged.commit.count(), merged.transaction.count());
    let unseen = request.target.facts().commit_unseen.filter(|_| seen == 0 && all > 0);
    latencies(record, column::COMMIT_TIMES, &merged.commit, unseen.unwrap_or(none));
    if unseen.is_none() && seen < all {
        record.notes.push(format!(
            "commit times (the longest among them) are those of {seen} of the {all} transactions: seeing the commit of a \
             transaction of one statement costs the client a wake-up of its own"
        ));
    }
    match (&merged.response, request.rate_tps) {
        (Some(response), Some(rate)) => {
            record.set(column::RATE_TPS, rate);
            latencies(record, column::RESPONSE_TIMES, response, none);
        }
        _ => {
            for column in [column::RATE_TPS].into_iter().chain(column::RESPONSE_TIMES.all()) {
                record.leave_out(column, "closed loop: no rate was asked for");
            }
        }
    }
}

fn latencies(record: &mut TestRecord, columns: column::Times, latencies: &Latencies, none: &str) {
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let (p50, p99) = (latencies.quantile_ns(0.5), latencies.quantile_ns(0.99));
    let times = [latencies.mean_ns(), whole(p50), whole(p99), whole(latencies.max_ns())];
    for (column, ns) in columns.all().into_iter().zip(times) {
        match ns {
            Some(ns) => record.set(column, ns),
            None => record.leave_out(column, none),
        }
    }
}

/// Figures from the database's counters between two snapshots that cover `seconds`. What a counter does
/// not cover was said by the target before.
fn database_figures(record: &mut TestRecord, (open, close): (&Snapshot, &Snapshot), seconds: f64) {
    let rate = |name| open.delta(close, name).map(|d| d / seconds);
    set(record, column::REDO_BLOCKS_PER_S, rate(counter::REDO_BLOCKS));
    set(record, column::REDO_WRITES_PER_S, rate(counter::REDO_WRITES));
    set(record, column::REDO_SYNC_WRITES_PER_S, rate(counter::REDO_SYNCS));
    let commits = open.delta(close, counter::COMMITS);
    set(record, column::COMMITS_DATABASE, commits);
    let syncs = open.delta(close, counter::REDO_SYNCS).filter(|s| *s > 0.0);
    const FLASH: &Column = column::FLASH_CACHE_WRITE_PCT;
    match (open.delta(close, counter::FLASH_WRITES), open.delta(close, counter::WRITES)) {
        (Some(flash), Some(all)) if all > 0.0 && flash <= all => record.set(FLASH, flash / all * 100.0),
        (Some(flash), Some(all)) => {
            let why = format!("of {all:.0} physical writes in the window {flash:.0} went to the flash cache");
            record.leave_out(FLASH, why);
        }
        _ => {}
    }
    // Where the database does not count its commits, the jobs do.
    let own = record.figure(column::COMMIT_THROUGHPUT_TPS).map(|tps| tps * seconds);
    set(record, column::COMMITS_PER_REDO_SYNC, commits.or(own).zip(syncs).map(|(c, s)| c / s));
}

/// Where the time of a commit went, and how commits were grouped, where the target says so.
fn log_parts(record: &mut TestRecord, open: &Snapshot, close: &Snapshot) {
    const PARTS: [(&Column, &str, f64); 7] = [
        (column::LOG_PART_WAIT_US, counter::LOG_PART_WAIT_NS, 1e3),
        (column::LOG_PART_COPY_US, counter::LOG_PART_COPY_NS, 1e3),
        (column::LOG_PART_WRITE_US, counter::LOG_PART_WRITE_NS, 1e3),
        (column::LOG_PART_SYNC_US, counter::LOG_PART_SYNC_NS, 1e3),
        (column::LOG_PART_WAKE_US, counter::LOG_PART_WAKE_NS, 1e3),
        (column::LOG_FULL_US, counter::LOG_FULL_NS, 1e3),
        (column::LOG_FILL_KIB, counter::LOG_FILL_BYTES, KIB),
    ];
    const NONE: &str = "the target does not time the parts of its commits";
    let commits = open.delta(close, counter::COMMITS).filter(|c| *c > 0.0);
    let groups = open.delta(close, counter::LOG_GROUPS).filter(|g| *g > 0.0);
    for (id, name, unit) in PARTS {
        let per = if id == column::LOG_FILL_KIB { groups } else { commits };
        match open.delta(close, name).zip(per) {
            Some((sum, n)) => record.set(id, sum / n / unit),
            None => record.leave_out(id, NONE),
        }
    }
    match commits.zip(groups) {
        Some((commits, groups)) => record.set(column::LOG_GROUP_COMMITS, commits / groups),
        None => record.leave_out(column::LOG_GROUP_COMMITS, NONE),
    }
}

/// Figures from the bytes of redo per second.
fn redo_figures(record: &mut TestRecord, redo: Option<f64>) {
    let tps = record.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
    set(record, column::REDO_MIB_PER_S, redo.map(|r| r / MIB));
    let per_tx = redo.filter(|_| tps > 0.0).map(|r| r / tps);
    set(record, column::REDO_BYTES_PER_TX, per_tx);
    set(record, column::REDO_KIB_PER_TX, per_tx.map(|b| b / KIB));
}

/// Sets a figure, or says that its counter is missing where the target has not said why.
fn set(record: &mut TestRecord, column: &Column, value: Option<f64>) {
    match value {
        Some(v) => record.set(column, v),
        None if record.why_absent(column).is_some() => {}
        None => record.leave_out(column, "the target did not provide the counter at both edges of the window"),
    }
}

/// From the database's own measurement where it makes one; else by Little's law: sessions waiting for the log writer at a time = commits per second × wait per
/// commit.
fn log_file_sync(record: &mut TestRecord, measured: &Measured, target: &dyn Target) {
    const ID: &Column = column::LOG_FILE_SYNC_MS;
    let edges = (measured.edges.at_open.snapshot.as_ref().ok(), measured.edges.at_close.snapshot.as_ref().ok());
    let waited =
        edges.0.zip(edges.1).and_then(|(a, b)| a.delta(b, counter::LOG_WAIT_NS).map(|ns| ns / a.seconds_until(b)));
    let tps = record.figure(column::COMMIT_THROUGHPUT_TPS).unwrap_or(0.0);
    if let Some(ns_per_s) = waited.filter(|_| tps > 0.0) {
        record.set(ID, ns_per_s / tps / 1e6);
        return;
    }
    let events = target.facts().log_sync_events;
    if events.is_empty() || record.why_absent(ID).is_some() {
        if record.why_absent(ID).is_none() {
            record.leave_out(ID, "the target does not say what sessions wait for");
        }
        return;
    }
    let window = (measured.schedule.open_ns, measured.schedule.close_ns);
    let profile = measured.collected.waits_between(window.0, window.1);
    match profile.mean_sessions(events) {
        Some(waiting) if tps > 0.0 && profile.samples >= 5 => {
            record.set(ID, waiting / tps * 1e3);
            record.notes.push(format!(
                "log file sync is estimated from {} samples of the sessions' wait events",
                profile.samples
            ));
        }
        _ => record.leave_out(ID, format!("only {} samples of wait events in the window", profile.samples)),
    }
}

fn machine_figures(record: &mut TestRecord, measured: &Measured, request: &Request) {
    let cpu = [&measured.edges.at_open.cpu, &measured.edges.at_close.cpu];
    let shares = cpu[0].as_ref().zip(cpu[1].as_ref()).and_then(|(a, b)| CpuShares::between(a, b));
    match shares {
        Some(s) => {
            let all = [s.busy_pct, s.user_pct, s.sys_pct, s.idle_pct, s.iowait_pct];
            column::CPU_SHARES.into_iter().zip(all).for_each(|(column, pct)| record.set(column, pct));
            if s.steal_pct >= 1.0 {
                record.notes.push(format!("{:.0} % of the CPU time was stolen by the hypervisor", s.steal_pct));
            }
        }
        None => {
            let why = match request.cpu {
                CpuSource::Local => "/proc/stat could not be read",
                _ => "the database runs on another machine and does not let loadline read /proc/stat there",
            };
            for column in column::CPU_SHARES {
                // The target may know better.
                if record.why_absent(column).is_none() {
                    record.leave_out(column, why);
                }
            }
        }
    }
    let disk = measured.edges.at_open.disk.as_ref().zip(measured.edges.at_close.disk.as_ref());
    let seconds = seconds_between(&measured.edges.at_open, &measured.edges.at_close);
    let rates = disk.and_then(|(a, b)| DiskRates::between(a, b, seconds));
    let ids = [column::DEVICE_WRITES_PER_S, column::DEVICE_WRITE_MIB_PER_S, column::DEVICE_UTIL_PCT];
    match rates {
        Some(r) => {
            ids.iter().zip([r.writes_per_s, r.write_mib_per_s, r.util_pct]).for_each(|(id, v)| record.set(id, v))
        }
        None => ids
            .iter()
            .for_each(|id| record.leave_out(id, "the device under the log is not known, or is on another machine")),
    }
}

fn seconds_between(open: &Edge, close: &Edge) -> f64 {
    close.at_ns.saturating_sub(open.at_ns) as f64 / 1e9
}

fn client_figures(record: &mut TestRecord, measured: &Measured, merged: &JobResult, id: &Identity, in_process: bool) {
    if in_process {
        for column in [column::CLIENT_CPU_US_PER_TX, column::CLIENT_CPU_PCT] {
            record.leave_out(column, IN_PROCESS);
        }
        return;
    }
    let process = measured.edges.at_open.process.as_ref().zip(measured.edges.at_close.process.as_ref());
    let used = process.map(|(a, b)| b.total_ns().saturating_sub(a.total_ns()) as f64);
    let seconds = seconds_between(&measured.edges.at_open, &measured.edges.at_close);
    let none = "the CPU time of this process could not be read";
    let done = merged.transaction.count() as f64 / (measured.schedule.window_ns() as f64 / 1e9) * seconds;
    match used {
        Some(ns) if done > 0.0 => record.set(column::CLIENT_CPU_US_PER_TX, ns / 1e3 / done),
        Some(_) => record.leave_out(column::CLIENT_CPU_US_PER_TX, "no transaction completed in the window"),
        None => record.leave_out(column::CLIENT_CPU_US_PER_TX, none),
    }
    match used {
        Some(ns) => record.set(column::CLIENT_CPU_PCT, ns / 1e9 / seconds / f64::from(id.cpus.max(1)) * 100.0),
        None => record.leave_out(column::CLIENT_CPU_PCT, none),
    }
}

/// Why the database's count of commits is not that of the jobs' transactions, if it is not.
fn blurred_commits(request: &Request) -> Option<&'static str> {
    request.target.facts().commits_of_workers.filter(|_| request.work.parallel_workers().is_some_and(|n| n > 1))
}

fn facts<'a>(
    request: &'a Request,
    measured: &'a Measured,
    id: &'a Identity,
    merged: &'a JobResult,
    record: &TestRecord,
    edges: (Option<&Snapshot>, Option<&Snapshot>),
) -> Facts<'a> {
    let delta = |a: Option<&Snapshot>, b: Option<&Snapshot>, name| a.zip(b).and_then(|(a, b)| a.delta(b, name));
    let evidence = match (id.evidence_before, &id.evidence_after) {
        (Some(before), Ok(Some(after))) => Ok(Some((after - before, request.work.program.rows_changed_per_tx()))),
        (_, Err(e)) => Err(e.clone()),
        _ => Ok(None),
    };
    let blurred = blurred_commits(request);
    let through = request.work.workload.volume.map(|of| of(&request.work.params).rows).filter(|rows| *rows > 0.0);
    let rows_read = through.filter(|_| !request.work.program.writes());
    let rows_read = rows_read.map(|rows| (delta(edges.0, edges.1, counter::ROWS_READ), rows));
    let redo = record.figure(column::REDO_BYTES_PER_TX).zip(request.work.workload.redo);
    Facts {
        schedule: measured.schedule,
        jobs: &measured.jobs,
        merged,
        rate_tps: request.rate_tps,
        durable: request.work.program.commit == Commit::Wait && request.work.program.writes(),
        commits_blurred: blurred,
        unread: measured.edges.unread(),
        unread_whole: measured.before.as_ref().err().or(measured.after.as_ref().err()).cloned(),
        window_commits: delta(edges.0, edges.1, counter::COMMITS).filter(|_| blurred.is_none()),
        all_commits: delta(measured.before.as_ref().ok(), measured.after.as_ref().ok(), counter::COMMITS)
            .filter(|_| blurred.is_none()),
        window_syncs: delta(edges.0, edges.1, counter::REDO_SYNCS),
        snapshots_off_s: snapshots_off_s(measured, edges),
        counter_lag_s: id.counter_lag_s,
        evidence,
        rows_changed: request.work.program.varies().then_some(merged.rows_changed),
        writing_share: request.work.program.writing_share(),
        consistency: &id.consistency,
        rows_read,
        evidence_counts: request.work.workload.evidence.map_or("", |e| e.counts),
        redo,
        client_cpu_share: match record.figure(column::CLIENT_CPU_PCT) {
            Some(pct) => Ok(pct / 100.0),
            None => Err(record.why_absent(column::CLIENT_CPU_PCT).unwrap_or_default().to_owned()),
        },
        cpus: id.cpus,
        client_driver: request.driver == Driver::Client,
    }
}

/// How far the snapshots lie from the edges they belong to, both together.
fn snapshots_off_s(measured: &Measured, edges: (Option<&Snapshot>, Option<&Snapshot>)) -> f64 {
    let off = |s: Option<&Snapshot>, edge_ns: u64| s.map_or(0.0, |s| s.at_ns.abs_diff(edge_ns) as f64 / 1e9);
    off(edges.0, measured.schedule.open_ns) + off(edges.1, measured.schedule.close_ns)
}

/// What to say of counters that were read so far from the edges that figures from them suffer.
fn read_late(off_s: f64, window_s: f64) -> Option<String> {
    (off_s > 0.1 * window_s).then(|| {
        format!(
            "the database's counters were read {off_s:.2} s from the edges of the window, when the last job had passed them: figures from them may be off by up to {:.0} %; a longer window helps",
            off_s / window_s * 100.0
        )
    })
}

/// One row a second: the jobs' own counts, and rates from the counters between whole seconds.
fn series(measured: &Measured, merged: &JobResult) -> Series {
    let columns = [
        column::COMMIT_THROUGHPUT_TPS,
        column::REDO_MIB_PER_S,
        column::REDO_WRITES_PER_S,
        column::REDO_SYNC_WRITES_PER_S,
        column::CPU_BUSY_PCT,
        column::CPU_IOWAIT_PCT,
        column::DEVICE_WRITES_PER_S,
        column::DEVICE_UTIL_PCT,
    ];
    let (open_ns, window_ns) = (measured.schedule.open_ns, measured.schedule.window_ns());
    let points = &measured.collected.points;
    // The reading nearest to a moment, if it was taken within a fifth of a second of it.
    let near =
        |ns: u64| points.iter().min_by_key(|p| p.at_ns.abs_diff(ns)).filter(|p| p.at_ns.abs_diff(ns) < 200_000_000);
    let rows = merged.per_second.iter().enumerate().map(|(i, n)| {
        let begin = i as u64 * 1_000_000_000;
        let end = (begin + 1_000_000_000).min(window_ns);
        let seconds = (end - begin) as f64 / 1e9;
        let pair = near(open_ns + begin).zip(near(open_ns + end)).filter(|(a, b)| b.at_ns > a.at_ns);
        let rate = |name: &str| pair.and_then(|(a, b)| counter_rate(a, b, name));
        let cpu =
            pair.and_then(|(a, b)| a.cpu.as_ref().zip(b.cpu.as_ref())).and_then(|(a, b)| CpuShares::between(a, b));
        let disk = pair.and_then(|(a, b)| {
            let (x, y) = a.disk.as_ref().zip(b.disk.as_ref())?;
            DiskRates::between(x, y, (b.at_ns - a.at_ns) as f64 / 1e9)
        });
        vec![
            Some(end as f64 / 1e9),
            Some(*n as f64 / seconds),
            rate(counter::REDO_BYTES).map(|r| r / MIB),
            rate(counter::REDO_WRITES),
            rate(counter::REDO_SYNCS),
            cpu.map(|c| c.busy_pct),
            cpu.map(|c| c.iowait_pct),
            disk.map(|d| d.writes_per_s),
            disk.map(|d| d.util_pct),
        ]
    });
    Series {
        columns: std::iter::once("t_s").chain(columns.map(|c| c.id)).map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

fn counter_rate(a: &Point, b: &Point, name: &str) -> Option<f64> {
    let (a, b) = a.snapshot.as_ref().zip(b.snapshot.as_ref())?;
    let seconds = a.seconds_until(b);
    (seconds > 0.0).then(|| a.delta(b, name).map(|d| d / seconds)).flatten()
}
