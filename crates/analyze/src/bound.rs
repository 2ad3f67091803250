//! What bounds a test, and from which figures of its record that follows.
//!
//! Each rule needs figures that were measured; where they are missing or do not point to one thing,
//! the answer is «not told» with what was looked at. The rules are asked in this order, because each
//! would be mistaken for one after it:
//!
//! 1. **Rate**: an open loop that completes what it was asked for drove nothing to its limit.
//! 2. **Client**: a load generator without CPU to spare makes every wait in the database look longer
//!    and every rate lower; the database must not be blamed for it.
//! 3. **CPU**: a log writer that waits for a CPU looks like a slow log.
//! 4. **Single writer**: a session that waits for its turn to commit waits for the log as well, of
//!    another session; but faster syncs shared by many would not help where nothing is shared.
//! 5. **Device bandwidth**: a device that has no bytes per second left looks like slow syncs.
//! 6. **Storage reads**: sessions spend most of their time waiting for reads of blocks.
//! 7. **Log sync**: sessions spend most of a transaction waiting for the log.
//!
//! «Busy» of a device is no measure of bandwidth by itself (a flash device with one small write in
//! flight is busy all the time), so bandwidth is only told where the reference log writer shows, with
//! the same redo, that the device gives no more.

use loadline_model::format::number;
use loadline_model::{Column, TestRecord, column};
use serde::Serialize;

use crate::kpi::{LATENCY, THROUGHPUT};

mod sweep;
pub use sweep::bound_of_sweep;

/// CPU busy from which on nothing is left, %: the last tenth is never reached evenly by all CPUs.
const CPU_FULL: f64 = 90.0;
/// CPU of the loadline process from which on the client is the limit, % of its machine: the limit of
/// the check `client-cpu`.
const CLIENT_FULL: f64 = 85.0;
/// Share of each job's time that loadline computes, or spends outside transactions, from which on it is
/// the limit.
const CLIENT_SHARE: f64 = 0.5;
/// Share of the rate asked for that counts as having met it.
const RATE_MET: f64 = 0.99;
/// Share of a transaction that waits for the log from which on the log bounds it.
const LOG_SHARE: f64 = 0.5;
/// Share of the jobs that wait for a read at a time from which on reads bound them.
const READ_SHARE: f64 = 0.5;
/// Share of the window in which the one writer is at work from which on it is the limit.
const WRITER_BUSY: f64 = 0.7;
/// Commits a sync, and sessions at work in a commit, up to which commits go one by one.
const ONE_BY_ONE: f64 = 1.05;
/// Jobs from which on a queue for one writer can be told from chance.
const SEVERAL: u32 = 4;
/// Share of the limit and of a device's time from which on a device has no more to give, %.
const DEVICE_FULL: f64 = 80.0;
/// Mean size of a write from which on its transfer, not its latency, is what takes time, KiB.
const LARGE_WRITE_KIB: f64 = 128.0;

/// What bounds a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// The rate that was asked for.
    Rate,
    /// loadline itself.
    Client,
    /// The CPUs.
    Cpu,
    /// Commits that go one by one.
    SingleWriter,
    /// Bytes per second of the device under the log.
    DeviceBandwidth,
    /// Waiting for blocks to be read.
    StorageReads,
    /// Waiting for the log to be written and synced.
    LogSync,
    /// The figures do not say.
    NotTold,
}

impl Bounds {
    /// In words: `log sync`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bounds::Rate => "rate asked for",
            Bounds::Client => "client",
            Bounds::Cpu => "CPU",
            Bounds::SingleWriter => "single writer",
            Bounds::DeviceBandwidth => "device bandwidth",
            Bounds::StorageReads => "storage reads",
            Bounds::LogSync => "log sync",
            Bounds::NotTold => "not told",
        }
    }
}

/// What bounds a test, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// What it is.
    pub by: Bounds,
    /// The figures from which it follows, with their values; one line without a full stop.
    pub because: String,
    /// The columns that `because` was read from.
    pub from: Vec<&'static Column>,
}

impl Bound {
    /// «log sync: sessions waited 0.41 of 0.45 ms per commit for the log».
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.by.name(), self.because)
    }
}

/// Reads figures of a record and notes which were read.
struct Evidence<'a> {
    record: &'a TestRecord,
    from: Vec<&'static Column>,
    said: Vec<String>,
}

impl<'a> Evidence<'a> {
    fn new(record: &'a TestRecord) -> Self {
        Evidence { record, from: Vec::new(), said: Vec::new() }
    }

    /// A figure that a time, a rate or a share can have.
    fn figure(&self, column: &Column) -> Option<f64> {
        self.record.figure(column).filter(|v| v.is_finite() && *v >= 0.0)
    }

    fn say(mut self, columns: &[&'static Column], text: String) -> Self {
        self.from.extend(columns.iter().filter(|c| !self.from.contains(c)).copied().collect::<Vec<_>>());
        self.said.push(text);
        self
    }

    /// With the figure of `column` in words, where there is one.
    fn also(self, column: &'static Column, words: impl Fn(f64) -> String) -> Self {
        match self.figure(column) {
            Some(v) => self.say(&[column], words(v)),
            None => self,
        }
    }

    fn bound(self, by: Bounds) -> Bound {
        Bound { by, because: self.said.join("; "), from: self.from }
    }
}

fn pct(v: f64) -> String {
    format!("{} %", number(v, 0))
}

/// What bounds the test of `record`; `None` if it measured nothing that could be bounded: an invalid
/// test, one without throughput, or a scan of sizes.
#[must_use]
pub fn bound(record: &TestRecord) -> Option<Bound> {
    let tps = record.figure(THROUGHPUT).filter(|tps| tps.is_finite() && *tps > 0.0)?;
    if !record.valid || !record.sizes.is_empty() || record.jobs == 0 {
        return None;
    }
    let rules = [rate, client, cpu, single_writer, device_bandwidth, storage_reads, log_sync];
    Some(rules.iter().find_map(|rule| rule(record, tps)).unwrap_or_else(|| not_told(record, tps)))
}

fn rate(record: &TestRecord, tps: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    let asked = e.figure(column::RATE_TPS).filter(|r| *r > 0.0)?;
    (tps >= asked * RATE_MET).then(|| {
        e.say(
            &[column::RATE_TPS, THROUGHPUT],
            format!("{} of the {} transactions per second asked for were done", number(tps, 1), number(asked, 1)),
        )
        .bound(Bounds::Rate)
    })
}

fn client(record: &TestRecord, tps: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    if let Some(share) = e.figure(column::CLIENT_CPU_PCT).filter(|p| *p >= CLIENT_FULL) {
        let said = format!("loadline used {} of its machine's CPU", pct(share));
        return Some(e.say(&[column::CLIENT_CPU_PCT], said).bound(Bounds::Client));
    }
    // Figures of the device are read on loadline's own machine only: where there is one, the database
    // shares the CPUs with loadline. Without one it may run elsewhere, and the two shares do not add up.
    let shared = e.figure(column::DEVICE_UTIL_PCT).is_some();
    if let (Some(busy), Some(own)) = (e.figure(column::CPU_BUSY_PCT), e.figure(column::CLIENT_CPU_PCT))
        && shared
        && busy >= CPU_FULL
        && own >= busy / 2.0
    {
        let said = format!("CPU busy {}, of which {} is loadline itself, on the same machine", pct(busy), pct(own));
        return Some(e.say(&[column::CPU_BUSY_PCT, column::CLIENT_CPU_PCT], said).bound(Bounds::Client));
    }
    // An in-database driver's client only waits for its calls to return.
    let per_job = e.figure(column::CLIENT_CPU_US_PER_TX).map(|us| us * tps / 1e6 / f64::from(record.jobs));
    if let Some(share) = per_job.filter(|s| s.is_finite() && *s >= CLIENT_SHARE) {
        let said = format!("loadline computed for {} of each job's time", pct(share * 100.0));
        return Some(e.say(&[column::CLIENT_CPU_US_PER_TX, THROUGHPUT], said).bound(Bounds::Client));
    }
    let outside = e.figure(column::OUTSIDE_TX_PCT).filter(|o| *o >= CLIENT_SHARE * 100.0)?;
    let said = format!("jobs spent {} of their time outside transactions", pct(outside));
    Some(e.say(&[column::OUTSIDE_TX_PCT], said).bound(Bounds::Client))
}

fn cpu(record: &TestRecord, _: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    let busy = e.figure(column::CPU_BUSY_PCT).filter(|b| *b >= CPU_FULL)?;
    let said = format!("CPU busy {}", pct(busy));
    let e =
        e.say(&[column::CPU_BUSY_PCT], said).also(column::CLIENT_CPU_PCT, |v| format!("loadline itself {}", pct(v)));
    Some(e.bound(Bounds::Cpu))
}

/// Mean number of sessions in the commit or in its sync at a time (Little's law), and its column.
fn at_commit(e: &Evidence<'_>, tps: f64) -> Option<(f64, &'static Column, &'static str)> {
    let commit =
        e.figure(column::COMMIT_TIME_NS_MEAN).map(|ns| (ns / 1e9 * tps, column::COMMIT_TIME_NS_MEAN, "in a commit"));
    let sync =
        || e.figure(column::LOG_FILE_SYNC_MS).map(|ms| (ms / 1e3 * tps, column::LOG_FILE_SYNC_MS, "syncing the log"));
    commit.or_else(sync)
}

fn single_writer(record: &TestRecord, tps: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    if record.jobs < SEVERAL {
        return None;
    }
    let per_sync = e.figure(column::COMMITS_PER_REDO_SYNC).filter(|c| *c > 0.0 && *c <= ONE_BY_ONE)?;
    let (sessions, column, doing) = at_commit(&e, tps)?;
    // Were commits let in side by side, this many of them would meet, and share syncs or wait together.
    (WRITER_BUSY..=ONE_BY_ONE).contains(&sessions).then(|| {
        e.say(
            &[column::COMMITS_PER_REDO_SYNC, column, THROUGHPUT],
            format!(
                "{} commits per sync with {} jobs, and {} of the jobs {doing} at a time: one by one",
                number(per_sync, 2),
                record.jobs,
                number(sessions, 2)
            ),
        )
        .bound(Bounds::SingleWriter)
    })
}

fn device_bandwidth(record: &TestRecord, _: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    let util = e.figure(column::DEVICE_UTIL_PCT).filter(|u| *u >= DEVICE_FULL)?;
    let mib = e.figure(column::DEVICE_WRITE_MIB_PER_S)?;
    let size_kib = mib * 1024.0 / e.figure(column::DEVICE_WRITES_PER_S).filter(|w| *w > 0.0)?;
    let share = e.figure(column::LIMIT_SHARE_PCT).filter(|s| *s >= DEVICE_FULL)?;
    // The quotient of two figures is none by itself: what cannot be written as a number is no evidence.
    (size_kib.is_finite() && size_kib >= LARGE_WRITE_KIB).then(|| {
        e.say(
            &[column::DEVICE_UTIL_PCT, column::DEVICE_WRITE_MIB_PER_S, column::DEVICE_WRITES_PER_S, column::LIMIT_SHARE_PCT],
            format!(
                "the device under the log took {} MiB/s in writes of {} KiB and was busy {}; the reference log writer gets \
                 no more from it ({} of the limit)",
                number(mib, 1),
                number(size_kib, 0),
                pct(util),
                pct(share)
            ),
        )
        .bound(Bounds::DeviceBandwidth)
    })
}

/// The share of the jobs' time that reads took by the database's own clock. More than all of it are reads ahead,
/// for which nobody needs to wait: they tell nothing. Where the database does not time its reads, their time is
/// that of transactions, and would always fill the jobs' time.
fn storage_reads(record: &TestRecord, _: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    let share = e.figure(column::READ_WAIT_PCT).map(|pct| pct / 100.0)?;
    (READ_SHARE..=ONE_BY_ONE).contains(&share).then(|| {
        let waiting = number(share * f64::from(record.jobs), 1);
        let said =
            format!("{waiting} of {} jobs waited for a read at a time, by the database's own clock", record.jobs);
        e.say(&[column::READ_WAIT_PCT], said)
            .also(column::BLOCK_READS_PER_S, |v| format!("{} block reads/s", number(v, 0)))
            .also(column::READ_TIME_US_MEAN, |v| format!("{} µs a read call", number(v, 1)))
            .also(column::CPU_BUSY_PCT, |v| format!("CPU busy {}", pct(v)))
            .bound(Bounds::StorageReads)
    })
}

fn log_sync(record: &TestRecord, _: f64) -> Option<Bound> {
    let e = Evidence::new(record);
    let whole = e.figure(LATENCY).filter(|ms| *ms > 0.0)?;
    let decimals = if whole < 1.0 { 3 } else { 2 };
    let e = if let Some(wait) = e.figure(column::LOG_FILE_SYNC_MS) {
        if wait < whole * LOG_SHARE {
            return None;
        }
        let said = format!(
            "sessions waited {} of {} ms per commit for the log",
            number(wait, decimals),
            number(whole, decimals)
        );
        e.say(&[column::LOG_FILE_SYNC_MS, LATENCY], said)
    } else {
        // What the database does not say, the commit's own time may: if there was a sync to wait for.
        let commit = e.figure(column::COMMIT_TIME_NS_MEAN)? / 1e6;
        let per_sync = e.figure(column::COMMITS_PER_REDO_SYNC)?;
        if commit < whole * LOG_SHARE || per_sync > f64::from(record.jobs) * ONE_BY_ONE {
            return None;
        }
        let said = format!(
            "the commit took {} of {} ms per transaction, and no sync served more commits than there are jobs",
            number(commit, decimals),
            number(whole, decimals)
        );
        e.say(&[column::COMMIT_TIME_NS_MEAN, LATENCY, column::COMMITS_PER_REDO_SYNC], said)
    };
    let e = e
        .also(column::COMMITS_PER_REDO_SYNC, |v| format!("{} commits per sync", number(v, 1)))
        .also(column::DEVICE_UTIL_PCT, |v| format!("device under the log busy {}", pct(v)))
        .also(column::CPU_BUSY_PCT, |v| format!("CPU busy {}", pct(v)));
    Some(e.bound(Bounds::LogSync))
}

/// What was looked at, and what is missing to tell more.
fn not_told(record: &TestRecord, _: f64) -> Bound {
    let mut e = Evidence::new(record)
        .also(column::CPU_BUSY_PCT, |v| format!("CPU busy {}", pct(v)))
        .also(column::CLIENT_CPU_PCT, |v| format!("client CPU {}", pct(v)));
    if let (Some(wait), Some(whole)) = (e.figure(column::LOG_FILE_SYNC_MS), e.figure(LATENCY)) {
        let said = format!("sessions waited {} of {} ms per commit for the log", number(wait, 3), number(whole, 3));
        e = e.say(&[column::LOG_FILE_SYNC_MS, LATENCY], said);
    }
    e = e.also(column::DEVICE_UTIL_PCT, |v| format!("device under the log busy {}", pct(v)));
    if let Some((event, sessions)) = top_wait(record) {
        e.said.push(format!("{} of {} jobs were seen in {event}", number(sessions, 2), record.jobs));
    }
    let missing: Vec<&str> = [
        (column::CPU_BUSY_PCT, "CPU busy"),
        (column::CLIENT_CPU_PCT, "client CPU"),
        (column::LOG_FILE_SYNC_MS, "log file sync"),
        (column::DEVICE_UTIL_PCT, "device busy"),
    ]
    .into_iter()
    .filter(|(column, _)| e.figure(column).is_none())
    .map(|(_, name)| name)
    .collect();
    if e.said.is_empty() {
        e.said.push("nothing that could tell was measured".to_owned());
    } else {
        e.said.push("none of it points to one limit".to_owned());
    }
    if !missing.is_empty() {
        e.said.push(format!("not measured: {}", missing.join(", ")));
    }
    e.bound(Bounds::NotTold)
}

/// The wait event that most sessions were seen in, and their mean number.
fn top_wait(record: &TestRecord) -> Option<(&str, f64)> {
    let (event, seen) = record.waits.sessions.iter().max_by_key(|(_, n)| **n)?;
    (record.waits.samples > 0).then(|| (event.as_str(), *seen as f64 / f64::from(record.waits.samples)))
}
