//! A test in the making: its figures, the reasons for those that are missing, and the laws that none may break.

use std::collections::BTreeMap;

use loadline_model::column::{
    self, COLUMNS, COMMIT_LATENCY_MS, COMMIT_THROUGHPUT_TPS, COMMITS, ELAPSED_S, RESPONSE_TIMES, TRANSACTION_TIMES,
    TX_PER_S, Times,
};
use loadline_model::{Column, Latencies, Note, Series, TestRecord};

use crate::source::{Absence, Tool, Warning};

/// Two statements of one figure may be apart by this share; a percentile may be above the maximum by it, as the end of a bucket.
pub(crate) const APART: f64 = 0.02;

/// Tests whose files belong together.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Numbers of the files, from 0.
    pub files: Vec<usize>,
    /// Version of the tool, if a file states it.
    pub version: Option<String>,
    /// Measured product: `PostgreSQL`; empty if no file says it.
    pub product: String,
    pub tests: Vec<ImportedTest>,
}

/// Times since 1970 are above this, s; times since the start and numbers of clients are below.
pub(crate) const EPOCH_S: f64 = 1e8;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    pub(crate) line: u64,
    /// The interval's end, s since the start, or since 1970.
    pub(crate) end_s: f64,
    pub(crate) per_s: f64,
    pub(crate) mean_ms: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct ImportedTest {
    /// Figures. Platform, run, number and source are left to the caller.
    pub record: TestRecord,
    pub series: Series,
    /// Latencies in ns by kind, if the files have them.
    pub histograms: Vec<(String, Latencies)>,
    /// Start, s since 1970, if the files state it.
    pub started_s: Option<f64>,
    /// Why figures are missing, by column id. The record has the same as text.
    pub absent: BTreeMap<&'static str, Absence>,
    /// Warnings to the reader. The record's notes have the same as text.
    pub warnings: Vec<Warning>,
    pub(crate) times: Times,
    /// The shortest of its times, ns, if it is stated.
    pub(crate) least_ns: Option<f64>,
    /// Whether the mean is of times that were taken, and not computed from the number of jobs.
    pub(crate) timed: bool,
}

/// Counts by value, ns, of a histogram whose ends are bounds only.
pub(crate) struct Buckets {
    pub(crate) counts: Vec<(f64, u64)>,
    /// Values up to this one are in the first bucket; 0 if there is no such end.
    pub(crate) begin_ns: f64,
    /// Values from this one on are in the last bucket.
    pub(crate) end_ns: f64,
}

impl Buckets {
    /// The counts as latencies whose mean and maximum are known better than from their buckets.
    pub(crate) fn latencies(&self, mean_ns: f64, max_ns: f64) -> Latencies {
        let mut all = Latencies::new();
        self.counts.iter().for_each(|(ns, count)| all.record_bucket(ns.min(max_ns.max(1.0)) as u64, *count));
        all.add_sum((mean_ns * all.count() as f64) as u128, max_ns as u64);
        all
    }
}

fn throughput(group: &str) -> &'static Column {
    if group == "storage" { column::IO_PER_S } else { TX_PER_S }
}

impl ImportedTest {
    /// A test without figures. `group` is that of loadline's own workloads; `name` becomes a code such as `PGBENCH-SELECT-ONLY`. The
    /// times of `open` loops are from the scheduled start.
    pub(crate) fn new(group: &str, name: &str, jobs: u32, open: bool) -> ImportedTest {
        const MOST: usize = 60;
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let code: String = words.map(str::to_uppercase).collect::<Vec<_>>().join("-").chars().take(MOST).collect();
        let times = if open { RESPONSE_TIMES } else { TRANSACTION_TIMES };
        let kpis = [throughput(group), times.p99, times.mean].map(|c| c.id.to_owned()).to_vec();
        let record = TestRecord { group: group.to_owned(), jobs, kpis, ..TestRecord::blank(&code) };
        let (series, histograms, absent, warnings) = Default::default();
        let (started_s, least_ns, timed) = (None, None, true);
        ImportedTest { record, series, histograms, started_s, absent, warnings, times, least_ns, timed }
    }

    /// Whether times are from the scheduled start.
    pub(crate) fn is_open(&self) -> bool {
        self.times.mean != TRANSACTION_TIMES.mean
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.record.notes.push(Note::Text(text.into()));
    }

    /// Sets a figure, or keeps why there is none.
    pub(crate) fn set(&mut self, column: &'static Column, figure: Result<f64, Absence>) {
        match figure {
            Ok(value) => self.record.set(column, value),
            Err(why) => {
                self.record.figures.remove(column.id);
                let warning = Warning::CannotBe(why.clone());
                if matches!(why, Absence::CannotBe(_) | Absence::Above { .. }) && !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
                self.absent.insert(column.id, why);
            }
        }
    }

    /// Sets median and 99th percentile to those of `buckets`, and keeps their histogram if no bucket is a bound only.
    pub(crate) fn set_buckets(&mut self, buckets: &Buckets, mean_ns: Option<f64>, max_ns: Option<f64>) {
        let highest = buckets.counts.iter().map(|(ns, _)| *ns).fold(0.0, f64::max);
        let max_ns = max_ns.unwrap_or(highest);
        let all = buckets.latencies(mean_ns.unwrap_or(max_ns), max_ns);
        // The printed ends have three decimals of a millisecond.
        let (begin, end) = (buckets.begin_ns * 1.0005, buckets.end_ns * 0.9995);
        let quantile = |q: f64| match all.quantile_ns(q).unwrap_or_default() as f64 {
            ns if ns <= 0.0 => Err(Absence::EmptyHistogram),
            ns if ns >= end => Err(Absence::AtLeast { ns: buckets.end_ns }),
            ns if ns <= begin => Err(Absence::AtMost { ns: buckets.begin_ns }),
            ns => Ok(ns),
        };
        let (p50, p99) = (quantile(0.5), quantile(0.99));
        self.set(self.times.p50, p50);
        self.set(self.times.p99, p99);
        let beyond = |(ns, count): &&(f64, u64)| *ns >= end && *count > 0;
        let n = buckets.counts.iter().filter(beyond).map(|(_, count)| count).sum::<u64>();
        if n > 0 {
            let (all, end) = (all.count(), buckets.end_ns / 1e6);
            self.note(format!(
                "{n} of {all} times are at least {end} ms, where the tool's histogram ends: it is not kept"
            ));
        } else if mean_ns.is_some() && all.count() > 0 {
            self.histograms.push(("transaction".to_owned(), all));
        }
    }

    /// Adds `intervals` as a series, without those that cannot be. An interval cannot hold more than `count` transactions, nor more
    /// than `jobs` make in it if none takes less than `least_s`, and no transaction took longer than the test went on.
    pub(crate) fn set_intervals(&mut self, mut intervals: Vec<Interval>, count: f64, least_s: Option<f64>) {
        // Times since 1970: the test began an interval before the first.
        if let Some(first) = intervals.first().map(|i| i.end_s).filter(|s| *s > EPOCH_S) {
            let step = intervals.get(1).map_or(first, |second| second.end_s - first);
            intervals.iter_mut().for_each(|i| i.end_s -= first - step);
        }
        let jobs = f64::from(self.record.jobs);
        let (mut from_s, mut rows) = (0.0, Vec::new());
        for Interval { line, end_s, per_s, mean_ms } in intervals {
            let length = end_s - from_s;
            let by_count = count * (1.0 + APART) / length;
            let by_time = least_s.map_or(f64::INFINITY, |least| jobs / least + jobs / length);
            let most = by_count.min(by_time);
            if length <= 0.0 || mean_ms.is_some_and(|ms| ms > end_s * 1e3 * (1.0 + APART)) {
                self.warnings.push(Warning::IntervalTime { line, end_s });
            } else if !(0.0..=most).contains(&per_s) {
                self.warnings.push(Warning::Interval { line, end_s, per_s, most });
            } else {
                rows.push(vec![Some(from_s), Some(per_s), mean_ms]);
            }
            from_s = from_s.max(end_s);
        }
        self.set_series(rows);
    }

    /// Adds rows of time, throughput and mean latency, ms. A latency from the scheduled start is none of a transaction.
    pub(crate) fn set_series(&mut self, mut rows: Vec<Vec<Option<f64>>>) {
        let timed = !self.is_open() && rows.iter().any(|row| row.get(2).is_some_and(Option::is_some));
        let columns = ["t_s", COMMIT_THROUGHPUT_TPS.id, COMMIT_LATENCY_MS.id].map(str::to_owned);
        let width = if timed { 3 } else { 2 };
        rows.iter_mut().for_each(|row| row.truncate(width));
        if !rows.is_empty() {
            self.series = Series { columns: columns.into_iter().take(width).collect(), rows };
        }
    }

    /// Warns if two statements of one figure are apart by more than `share`.
    pub(crate) fn compare(&mut self, stated: (&'static str, f64), computed: (&'static str, f64), share: f64) {
        let ((what, stated), (how, computed)) = (stated, computed);
        if (stated - computed).abs() > share * stated.abs().max(computed.abs()) {
            self.warnings.push(Warning::Apart { what, stated, how, computed });
        }
    }

    /// Sets the number of transactions, compared with throughput and time, which may be off by `unsure_s`.
    pub(crate) fn set_count(&mut self, transactions: f64, unsure_s: f64) {
        self.record.set(COMMITS, transactions);
        let (tps, s) = (self.record.figure(TX_PER_S), self.record.figure(ELAPSED_S));
        if let Some((tps, s)) = tps.zip(s.filter(|s| *s > 0.0)) {
            // Throughput is printed with two decimals.
            let share = APART + unsure_s / s + 0.005 * s / transactions.max(1.0);
            self.compare(("the number of transactions", transactions), ("throughput × time", tps * s), share);
        }
    }

    /// Leaves out times that contradict each other: the first of each of `bounds`, or else `least`, is no larger than the second. A
    /// percentile may be a bucket's end: up to its width above its bound it is that bound; further off, neither can be believed.
    pub(crate) fn hold(&mut self, bounds: &[(Option<&'static Column>, &'static Column)], least: Option<f64>) {
        let stated = self.record.figures.clone();
        for (low, high) in bounds.iter().copied() {
            let value = low.map_or(least, |low| stated.get(low.id).copied());
            let Some((value, limit)) = value.zip(stated.get(high.id).copied()).filter(|(v, l)| v > l) else { continue };
            let (column, bound) = low.map_or((high, value), |low| (low, limit));
            if value > limit * (1.0 + APART) {
                let why =
                    Absence::Above { what: low.map_or("the minimum", |low| low.id), value, bound: high.id, limit };
                [Some(high), low].into_iter().flatten().for_each(|column| self.set(column, Err(why.clone())));
            } else if !column.id.ends_with("_mean") && self.record.figure(column).is_some() {
                self.record.set(column, bound);
            }
        }
    }

    /// Holds the figures against each other, and gives every missing one a reason.
    pub(crate) fn complete(&mut self, tool: Tool) {
        let Times { mean, p50, p99, max } = self.times;
        let rising = [(Some(p50), p99), (Some(p50), max), (Some(p99), max), (Some(mean), max)];
        self.hold(&[&rising[..], &[(None, p50), (None, p99), (None, mean)]].concat(), self.least_ns);
        // Little's law: in a closed loop no more transactions are under way than there are jobs.
        let per_s = self.record.figure(throughput(&self.record.group));
        if per_s == Some(0.0) {
            self.warnings.push(Warning::NothingCompleted);
        }
        if let Some((per_s, ns)) = per_s.zip(self.record.figure(mean))
            && self.timed
            && !self.is_open()
        {
            let (jobs, busy) = (f64::from(self.record.jobs), per_s * ns / 1e9);
            if busy > jobs {
                self.compare(("the number of jobs", jobs), ("throughput × mean time", busy), APART);
            }
        }
        let (other, why) =
            if self.is_open() { (TRANSACTION_TIMES, Absence::OpenLoop) } else { (RESPONSE_TIMES, Absence::ClosedLoop) };
        other.all().into_iter().for_each(|column| self.set(column, Err(why.clone())));
        if !self.is_open() {
            self.absent.entry(column::RATE_TPS.id).or_insert(Absence::ClosedLoop);
        }
        // Two columns have the figures of others, in other units.
        for (column, of, unit) in
            [(COMMIT_LATENCY_MS, TRANSACTION_TIMES.mean, 1e6), (COMMIT_THROUGHPUT_TPS, TX_PER_S, 1.0)]
        {
            if let Some(value) = self.record.figure(of) {
                self.record.set(column, value / unit);
            } else if let Some(why) = self.absent.get(of.id).cloned() {
                self.absent.insert(column.id, why);
            }
        }
        for column in COLUMNS.iter().filter(|c| c.is_figure()) {
            if self.record.figure(column).is_some() {
                continue;
            }
            let why = self.absent.entry(column.id).or_insert(Absence::NotLookedFor(tool));
            self.record.leave_out(column, why.to_string());
        }
        self.absent.retain(|id, _| !self.record.figures.contains_key(*id));
        self.record.notes.extend(self.warnings.iter().map(|warning| Note::Text(warning.to_string())));
    }
}
