//! The bound of a test, and the figures that show it. Without figures that point to one limit it is 'limit unknown', with those that
//! were checked. The rules apply in this order, because each case would also match a later rule:
//!
//! 1. **Rate**: an open loop that meets its requested rate reaches no limit.
//! 2. **Client**: a load generator without spare CPU lowers every rate and lengthens every wait: no limit of the database.
//! 3. **Data device**: a test that gets nearly as much from it as the best program would not get more with more CPU.
//! 4. **Replica**: jobs that wait for one most of the time get no more from CPUs that others keep busy.
//! 5. **CPU**: a log writer that waits for a CPU looks like a slow log. But jobs that wait longer for locks, or for a place in the
//!    log, than they are on a CPU or wait for one, get no more from another CPU.
//! 6. **Device bandwidth**: a full device looks like slow syncs. A busy one may have room (flash with one small write in flight is
//!    busy all the time), unless the reference log writer gets no more from it with the same redo.
//! 7. **The largest part of the jobs' time** ([`time`]).
//! 8. **The data device**, if it was busy while sessions slept in statements for reasons that nobody timed.
//! 9. **Single writer**, if what the sessions do is unknown: commits run one at a time.

use std::collections::BTreeSet;

use loadline_model::disturbance::measured_by;
use loadline_model::format::{counted, number};
use loadline_model::group::distinct;
use loadline_model::limits::name;
use loadline_model::{Column, Detail, TestRecord, column};
use serde::Serialize;

use crate::kept::doubt;
use crate::kpi::{LATENCY, THROUGHPUT};
use crate::stats::mean;
use crate::sweep::{Sweep, SweepPoint};

mod time;

/// CPU busy that counts as full, %: load is never spread evenly over all CPUs.
const CPU_FULL: f64 = 90.0;
/// CPU of the loadline process that makes the client the limit, % of its machine; as in the check `client-cpu`.
const CLIENT_FULL: f64 = 85.0;
/// Share of a job's time in loadline's own code, or outside transactions, that makes the client the limit.
const CLIENT_SHARE: f64 = 0.5;
const RATE_MET: f64 = 0.99;
/// Share of the window in which the single writer is busy that makes it the limit.
const WRITER_BUSY: f64 = 0.7;
/// Highest commits per sync, and sessions in a commit, that count as commits one at a time.
const ONE_BY_ONE: f64 = 1.05;
const SEVERAL: u32 = 4;
/// Device busy, and share of the limit, that count as a full device, %.
const DEVICE_FULL: f64 = 80.0;
const DATA_DEVICE_FULL: f64 = 90.0;
/// Sampled in place of a wait event for a session that does not wait.
const ON_CPU: &str = "CPU";
/// Class of the events of a session that waits for its client: no wait of the database.
const OF_CLIENT: &str = "Client:";
/// Mean write size at which the transfer, not the latency, takes most of the time, KiB.
const LARGE_WRITE_KIB: f64 = 128.0;

loadline_model::named! {
    /// The bound of a test.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum BoundBy {
        Rate: "requested rate";
        /// loadline itself.
        Client: "client";
        Cpu: "CPU";
        /// A single writer: commits run one at a time.
        SingleWriter: "single writer";
        /// Bytes per second of the log's device.
        DeviceBandwidth: "device bandwidth";
        StorageReads: "storage reads";
        /// Writes of blocks, and waits for free buffers.
        StorageWrites: "storage writes";
        /// Waits for locks and latches of other sessions.
        Locks: "locks";
        /// The way between client and session: network, wake-ups.
        RoundTrip: "round trip";
        /// Waits for log writes and syncs.
        LogSync: "log sync";
        /// Waits of commits for a replica.
        Replica: "replica";
        /// Waits for a place in the log's buffers, and writes of the log before a commit.
        LogWrite: "log write";
        ThinkTime: "think time";
        ScriptSleep: "the script's own sleep";
        Connecting: "connecting";
        #[serde(rename = "not-told")]
        Unknown: "limit unknown";
    }
    /// In words: `log sync`.
    pub fn name;
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    pub by: BoundBy,
    /// The figures that show it, with their values; one line without a full stop.
    pub because: String,
    /// The columns used in `because`.
    pub from: Vec<&'static Column>,
}

impl Bound {
    /// `log sync: sessions waited 0.41 of 0.45 ms per commit for the log`.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.by.name(), self.because)
    }
}

/// Collects the figures of a record that support a bound.
struct Evidence<'a> {
    record: &'a TestRecord,
    from: Vec<&'static Column>,
    texts: Vec<String>,
}

impl<'a> Evidence<'a> {
    fn new(record: &'a TestRecord) -> Self {
        Evidence { record, from: Vec::new(), texts: Vec::new() }
    }

    /// The figure of `column`, unless it is negative or not finite.
    fn figure(&self, column: &Column) -> Option<f64> {
        self.record.figure(column).filter(|v| v.is_finite() && *v >= 0.0)
    }

    fn add(mut self, columns: &[&'static Column], text: String) -> Self {
        self.from = distinct(self.from.into_iter().chain(columns.iter().copied()));
        self.texts.push(text);
        self
    }

    fn add_figure(self, column: &'static Column, words: impl Fn(f64) -> String) -> Self {
        match self.figure(column) {
            Some(v) => self.add(&[column], words(v)),
            None => self,
        }
    }

    /// Adds how busy the CPUs were, and what other processes had of them, if that is noted.
    fn add_cpu_busy(self) -> Self {
        let kind = measured_by(column::OTHER_CPU_PCT);
        let noted = self.figure(column::OTHER_CPU_PCT).is_some_and(|v| kind.is_some_and(|d| d.is_noted(v)));
        let e = self.add_figure(column::CPU_BUSY_PCT, |v| format!("CPU busy {}", pct(v)));
        if !noted {
            return e;
        }
        e.add_figure(column::OTHER_CPU_PCT, |v| format!("other processes had {} of the CPUs", pct(v)))
    }

    /// Adds the wait event with the most sessions, and their mean number.
    fn add_top_wait(mut self) -> Self {
        let waits = &self.record.waits;
        let is_wait = |event: &str| event != ON_CPU && !event.starts_with(OF_CLIENT) && waits.samples > 0;
        let events = waits.sessions.iter().filter(|(event, _)| is_wait(event));
        if let Some((event, seen)) = events.max_by_key(|(_, n)| **n) {
            let sessions = number(*seen as f64 / f64::from(waits.samples), 2);
            self.texts.push(format!("on average {sessions} of {} jobs were in {event}", self.record.jobs));
        }
        self
    }

    fn bound(self, by: BoundBy) -> Bound {
        Bound { by, because: self.texts.join("; "), from: self.from }
    }
}

fn pct(v: f64) -> String {
    format!("{} %", number(v, 0))
}

pub fn fill_bounded_by(records: &mut [TestRecord]) {
    for record in records {
        record.details.retain(|detail| !matches!(detail, Detail::BoundedBy(_)));
        let known = bound(record).filter(|bound| bound.by != BoundBy::Unknown);
        record.details.extend(known.map(|bound| Detail::BoundedBy(bound.by.name().to_owned())));
    }
}

/// The bound of the test of `record`; `None` for a refused or imported test, one without throughput, or a scan of sizes.
pub fn bound(record: &TestRecord) -> Option<Bound> {
    let tps = record.figure(THROUGHPUT).filter(|tps| tps.is_finite() && *tps > 0.0)?;
    if record.imported().is_some() || !record.is_usable() || !record.sizes().is_empty() || record.jobs == 0 {
        return None;
    }
    const RULES: [fn(Evidence<'_>, f64) -> Option<Bound>; 9] = [
        rate,
        client,
        data_device,
        replica,
        cpu,
        device_bandwidth,
        time::largest_part,
        time::busy_device,
        single_writer,
    ];
    Some(RULES.iter().find_map(|rule| rule(Evidence::new(record), tps)).unwrap_or_else(|| unknown(record)))
}

fn rate(e: Evidence<'_>, tps: f64) -> Option<Bound> {
    let asked = e.figure(column::RATE_TPS).filter(|asked| *asked > 0.0 && tps >= asked * RATE_MET)?;
    let [completed, asked] = [tps, asked].map(|rate| number(rate, 1));
    let text = format!("{completed} of the {asked} requested transactions per second were completed");
    Some(e.add(&[column::RATE_TPS, THROUGHPUT], text).bound(BoundBy::Rate))
}

fn client(e: Evidence<'_>, tps: f64) -> Option<Bound> {
    let own = e.figure(column::CLIENT_CPU_PCT);
    if let Some(share) = own.filter(|p| *p >= CLIENT_FULL) {
        let text = format!("loadline used {} of its machine's CPU", pct(share));
        return Some(e.add(&[column::CLIENT_CPU_PCT], text).bound(BoundBy::Client));
    }
    // Device figures are read on loadline's own machine only. If there is one, the database shares the CPUs with
    // loadline; without one it may run elsewhere, and the two shares cannot be compared.
    let shared = e.figure(column::DEVICE_UTIL_PCT).and(e.figure(column::CPU_BUSY_PCT)).zip(own);
    if let Some((busy, own)) = shared.filter(|(busy, own)| *busy >= CPU_FULL && *own >= busy / 2.0) {
        let text = format!("CPU busy {}, of which loadline itself used {}, on the same machine", pct(busy), pct(own));
        return Some(e.add(&[column::CPU_BUSY_PCT, column::CLIENT_CPU_PCT], text).bound(BoundBy::Client));
    }
    // The client of the in-database driver only waits for its calls to return.
    let per_job = e.figure(column::CLIENT_CPU_US_PER_TX).map(|us| us * tps / 1e6 / f64::from(e.record.jobs));
    if let Some(share) = per_job.filter(|s| s.is_finite() && *s >= CLIENT_SHARE) {
        let text = format!("loadline's own code took {} of each job's time", pct(share * 100.0));
        return Some(e.add(&[column::CLIENT_CPU_US_PER_TX, THROUGHPUT], text).bound(BoundBy::Client));
    }
    let outside = e.figure(column::OUTSIDE_TX_PCT).filter(|o| *o >= CLIENT_SHARE * 100.0)?;
    let text = format!("jobs spent {} of their time outside transactions", pct(outside));
    Some(e.add(&[column::OUTSIDE_TX_PCT], text).bound(BoundBy::Client))
}

/// Most of the jobs' time is a wait for a replica: whatever keeps the CPUs busy then, it is not the jobs.
fn replica(e: Evidence<'_>, _: f64) -> Option<Bound> {
    let waits = e.figure(column::REPLICA_WAIT_PCT).filter(|waits| *waits >= 50.0)?;
    let text = format!("sessions waited for a replica to have a commit for {} of the jobs' time", pct(waits));
    Some(e.add(&[column::REPLICA_WAIT_PCT], text).bound(BoundBy::Replica))
}

fn cpu(e: Evidence<'_>, _: f64) -> Option<Bound> {
    e.figure(column::CPU_BUSY_PCT).filter(|b| *b >= CPU_FULL)?;
    if time::waits_are_longer(&e) {
        return None;
    }
    let e = e.add_cpu_busy().add_figure(column::CLIENT_CPU_PCT, |v| format!("loadline itself {}", pct(v)));
    Some(e.add_top_wait().bound(BoundBy::Cpu))
}

/// Mean number of sessions in a commit or in its sync (Little's law), and its column.
fn at_commit(e: &Evidence<'_>, tps: f64) -> Option<(f64, &'static Column, &'static str)> {
    let times = [(column::COMMIT_TIME_NS_MEAN, 1e9, "in a commit"), (column::LOG_FILE_SYNC_MS, 1e3, "syncing the log")];
    times.into_iter().find_map(|(column, unit, doing)| Some((e.figure(column)? / unit * tps, column, doing)))
}

fn single_writer(e: Evidence<'_>, tps: f64) -> Option<Bound> {
    let record = e.record;
    // Long transactions that are rarely in a commit look alike; where the sessions' time is known, it says more.
    if record.jobs < SEVERAL || e.figure(column::SESSION_CPU_PCT).is_some() {
        return None;
    }
    let per_sync = e.figure(column::COMMITS_PER_REDO_SYNC).filter(|c| *c > 0.0 && *c <= ONE_BY_ONE)?;
    let (sessions, column, doing) = at_commit(&e, tps)?;
    // With concurrent commits, so many sessions in a commit would share syncs.
    if !(WRITER_BUSY..=ONE_BY_ONE).contains(&sessions) {
        return None;
    }
    let ([per_sync, sessions], jobs) =
        ([per_sync, sessions].map(|n| number(n, 2)), counted(record.jobs as usize, "job"));
    let text = format!(
        "{per_sync} commits per sync with {jobs}, and on average {sessions} of the jobs {doing}: commits run one at a time"
    );
    Some(e.add(&[column::COMMITS_PER_REDO_SYNC, column, THROUGHPUT], text).bound(BoundBy::SingleWriter))
}

/// The device under the data gives the best program no more: then neither would more CPU.
fn data_device(e: Evidence<'_>, _: f64) -> Option<Bound> {
    let record = e.record;
    let share = e.figure(column::LIMIT_SHARE_PCT).filter(|s| *s >= DATA_DEVICE_FULL)?;
    let limit = record.limit()?;
    let by = match limit.name.as_str() {
        name::BLOCK_READS | name::BATCH_READS | name::READ_BANDWIDTH => BoundBy::StorageReads,
        name::BLOCK_WRITES | name::WRITE_BANDWIDTH => BoundBy::StorageWrites,
        _ => return None,
    };
    let text = format!("{} of what the data device gives the best program ({})", pct(share), limit.name);
    let mut e = e.add(&[column::LIMIT_SHARE_PCT], text);
    // The table that has the limit has its figures, in its unit.
    e.texts.extend(doubt(record, None));
    Some(e.add_cpu_busy().bound(by))
}

fn device_bandwidth(e: Evidence<'_>, _: f64) -> Option<Bound> {
    use column::{DEVICE_UTIL_PCT, DEVICE_WRITE_MIB_PER_S, DEVICE_WRITES_PER_S, LIMIT_SHARE_PCT};
    let util = e.figure(DEVICE_UTIL_PCT).filter(|u| *u >= DEVICE_FULL)?;
    let mib = e.figure(DEVICE_WRITE_MIB_PER_S)?;
    let size_kib = mib * 1024.0 / e.figure(DEVICE_WRITES_PER_S).filter(|w| *w > 0.0)?;
    let share = e.figure(LIMIT_SHARE_PCT).filter(|s| *s >= DEVICE_FULL)?;
    // A share of another limit says nothing about the log.
    e.record.limit().is_none_or(|limit| limit.name == name::LOG_WRITER).then_some(())?;
    // The quotient of two finite figures may be infinite.
    if !size_kib.is_finite() || size_kib < LARGE_WRITE_KIB {
        return None;
    }
    let (mib, kib, util, share) = (number(mib, 1), number(size_kib, 0), pct(util), pct(share));
    let text = format!(
        "the log's device took {mib} MiB/s in writes of {kib} KiB and was busy {util}; the reference log writer gets no more from it \
         ({share} of the limit)"
    );
    let from = [DEVICE_UTIL_PCT, DEVICE_WRITE_MIB_PER_S, DEVICE_WRITES_PER_S, LIMIT_SHARE_PCT];
    Some(e.add(&from, text).bound(BoundBy::DeviceBandwidth))
}

/// The figures that were checked, and those that are missing.
fn unknown(record: &TestRecord) -> Bound {
    let mut e =
        Evidence::new(record).add_cpu_busy().add_figure(column::CLIENT_CPU_PCT, |v| format!("client CPU {}", pct(v)));
    if let (Some(wait), Some(whole)) = (e.figure(column::LOG_FILE_SYNC_MS), e.figure(LATENCY)) {
        e = e.add(&[column::LOG_FILE_SYNC_MS, LATENCY], time::waited_for_log(wait, whole, 3));
    }
    e = e.add_figure(column::DEVICE_UTIL_PCT, |v| format!("log device busy {}", pct(v)));
    e = time::add_parts(e, record).add_top_wait();
    let wanted = [
        (column::CPU_BUSY_PCT, "CPU busy"),
        (column::CLIENT_CPU_PCT, "client CPU"),
        (column::LOG_FILE_SYNC_MS, "log file sync"),
        (column::DEVICE_UTIL_PCT, "device busy"),
    ];
    let missing = wanted.into_iter().filter(|(column, _)| e.figure(column).is_none());
    let missing: Vec<&str> = missing.map(|(_, name)| name).collect();
    if !record.populations().is_empty() {
        e.texts.push("the jobs are a mix of populations".to_owned());
    }
    let none =
        if e.texts.is_empty() { "no figure that could show it was measured" } else { "no figure points to one limit" };
    e.texts.push(none.to_owned());
    if !missing.is_empty() {
        e.texts.push(format!("not measured: {}", missing.join(", ")));
    }
    e.bound(BoundBy::Unknown)
}

/// The bound of the workload of `sweep` at its peak; `records` may hold other tests as well. `None` without a valid test. Repetitions with
/// different limits give an unknown one. A peak below the highest job count may hide a single writer, as with one job there is no queue for
/// it: if more jobs gave no more throughput and were bound by one, the workload is.
pub fn bound_of_sweep(sweep: &Sweep, records: &[TestRecord]) -> Option<Bound> {
    let peak = sweep.peak()?;
    let here = at(&sweep.run, &peak.tests, records)?;
    let tps = |tests: &[u32]| {
        mean(&numbered(&sweep.run, tests, records).filter_map(|r| r.figure(THROUGHPUT)).collect::<Vec<_>>())
    };
    let is_beyond = |p: &&SweepPoint| sweep.over_jobs() && p.jobs > peak.jobs && !p.tests.is_empty();
    let beyond = sweep.key_points().rev().find(is_beyond);
    if let Some(beyond) = beyond
        && let Some(there) = at(&sweep.run, &beyond.tests, records).filter(|b| b.by == BoundBy::SingleWriter)
        && let (Some(most), Some(then)) = (tps(&peak.tests), tps(&beyond.tests))
    {
        let from = distinct(there.from.into_iter().chain([THROUGHPUT]));
        let [most, then] = [(most, peak), (then, beyond)].map(|(tps, p)| (number(tps, 0), p.jobs));
        let because = format!(
            "throughput does not grow with jobs ({} tps with {}, {} with {}); {}",
            most.0, most.1, then.0, then.1, there.because
        );
        return Some(Bound { by: BoundBy::SingleWriter, because, from });
    }
    Some(here)
}

fn numbered<'a>(run: &str, tests: &[u32], records: &'a [TestRecord]) -> impl Iterator<Item = &'a TestRecord> {
    records.iter().filter(move |r| r.run == run && tests.contains(&r.test))
}

/// The bound of the tests numbered `tests`: that of the median test, if all have the same limit.
fn at(run: &str, tests: &[u32], records: &[TestRecord]) -> Option<Bound> {
    let bounds = numbered(run, tests, records).filter_map(|r| Some((r.figure(THROUGHPUT)?, bound(r)?)));
    let mut all: Vec<(f64, Bound)> = bounds.collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kinds: BTreeSet<&'static str> = all.iter().map(|(_, b)| b.by.name()).collect();
    let middle = all.get(all.len() / 2)?.1.clone();
    if kinds.len() > 1 {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        let because = format!("repetitions differ ({kinds}); one of them: {}", middle.sentence());
        return Some(Bound { by: BoundBy::Unknown, because, from: middle.from });
    }
    Some(middle)
}
