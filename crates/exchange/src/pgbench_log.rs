//! pgbench's logs: a line for each transaction (`-l`), or for each interval (`--aggregate-interval`). With several threads there is a
//! file for each: `pgbench_log.4711`, `pgbench_log.4711.1`, …

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_model::Latencies;
use loadline_model::column::{self, COMMITS, CONFLICTS, ELAPSED_S, ERRORS};

use crate::absence::Absence;
use crate::draft::{APART, ImportedTest};
use crate::error::ImportError;
use crate::fields::{MOST, number};
use crate::lines::{Lines, cut};
use crate::series::{EPOCH_S, Seconds};

/// Longest test, s: longer spans are files of different tests.
const LONGEST_S: f64 = 30.0 * 86_400.0;

/// What the logs of a test say.
#[derive(Debug)]
pub(crate) struct Log {
    /// The name of the file, or of the first of them.
    file: String,
    /// Length of an interval, s, if the lines are intervals: 0 until two are read.
    interval_s: Option<u64>,
    times: Latencies,
    /// The longest, ns.
    max_ns: f64,
    count: u64,
    failed: u64,
    skipped: u64,
    retries: Option<u64>,
    /// Lines and highest number of a transaction, by client.
    clients: BTreeMap<u64, (u64, u64)>,
    seconds: Seconds,
    /// Begin of the first and end of the last transaction, s since 1970.
    from_s: f64,
    to_s: f64,
    /// Columns of a line.
    width: usize,
    /// First and last interval that all threads have.
    ends: Option<(u64, u64)>,
}

/// Whether a file that begins with `line` is a log.
pub(crate) fn is_log(line: &str) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let numbers = fields.iter().filter(|f| f.parse::<f64>().is_ok()).count();
    fields.len() >= 6 && numbers + 1 >= fields.len()
}

/// The log that begins with the line `first`.
pub(crate) fn read(first: &str, lines: &mut Lines<'_>) -> Result<Log, ImportError> {
    let aggregated = first.split_whitespace().next().and_then(number).is_some_and(|n| n > EPOCH_S);
    let mut log = Log {
        file: lines.file().to_owned(),
        interval_s: aggregated.then_some(0),
        times: Latencies::new(),
        max_ns: 0.0,
        count: 0,
        failed: 0,
        skipped: 0,
        retries: None,
        clients: BTreeMap::new(),
        seconds: Seconds::default(),
        from_s: f64::INFINITY,
        to_s: 0.0,
        width: first.split_whitespace().count(),
        ends: None,
    };
    log.add(first, lines)?;
    while let Some(line) = lines.next()? {
        log.add(&line, lines)?;
    }
    if !lines.ended() {
        return Err(lines.wrong("the file ends within this line: the log is cut off"));
    }
    log.ends = aggregated.then(|| log.seconds.ends());
    Ok(log)
}

impl Log {
    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.len() != self.width {
            return Err(lines.wrong(format!(
                "it has {} columns, the lines before have {}: the log is cut off or of two tests",
                fields.len(),
                self.width
            )));
        }
        let value = |at: usize| {
            let field = fields.get(at).copied().unwrap_or_default();
            let value = field.parse::<f64>().ok().filter(|n| (0.0..MOST).contains(n));
            value.ok_or_else(|| lines.wrong(format!("'{}' is no number that can be, in '{}'", cut(field), cut(line))))
        };
        match self.interval_s {
            Some(_) => self.add_interval(&value),
            None => self.add_transaction(fields.get(2).copied().unwrap_or_default(), &value),
        }?;
        if self.to_s - self.from_s > LONGEST_S {
            return Err(
                lines.wrong("it is more than 30 days after another transaction: these are logs of different tests")
            );
        }
        Ok(())
    }

    /// `client number time script seconds µs [lag] [retries]`; `time` may be a word.
    fn add_transaction(
        &mut self,
        time: &str,
        value: &dyn Fn(usize) -> Result<f64, ImportError>,
    ) -> Result<(), ImportError> {
        let (client, n) = (value(0)? as u64, value(1)? as u64);
        let entry = self.clients.entry(client).or_default();
        *entry = (entry.0 + 1, entry.1.max(n));
        let end_s = value(4)? + value(5)? / 1e6;
        if self.width >= 8 {
            self.retries = Some(self.retries.unwrap_or_default().saturating_add(value(7)? as u64));
        }
        let mut ns = 0.0;
        match time {
            "skipped" => self.skipped += 1,
            "failed" | "serialization" | "deadlock" | "other" => self.failed += 1,
            _ => {
                ns = value(2)? * 1e3;
                self.times.record(ns as u64);
                self.count += 1;
                self.max_ns = self.max_ns.max(ns);
                self.seconds.add(end_s as u64, 1, ns);
            }
        }
        self.from_s = self.from_s.min(end_s - ns / 1e9);
        self.to_s = self.to_s.max(end_s);
        Ok(())
    }

    /// `start count sum sum² min max [lag: sum sum² min max] [skipped] [retried retries] [serialization deadlock]`; times in µs.
    fn add_interval(&mut self, value: &dyn Fn(usize) -> Result<f64, ImportError>) -> Result<(), ImportError> {
        let (start_s, count, sum_ns, max_ns) = (value(0)?, value(1)? as u64, value(2)? * 1e3, value(5)? * 1e3);
        if self.to_s > 0.0 && start_s > self.to_s && self.interval_s == Some(0) {
            self.interval_s = Some((start_s - self.to_s) as u64);
        }
        self.seconds.add(start_s as u64, count, sum_ns);
        self.count = self.count.saturating_add(count);
        self.max_ns = self.max_ns.max(max_ns);
        if self.width >= 11 {
            self.skipped = self.skipped.saturating_add(value(10)? as u64);
        }
        self.from_s = self.from_s.min(start_s);
        self.to_s = self.to_s.max(start_s);
        Ok(())
    }

    /// Name of the test that it is a log of: that of the file without the number of the thread.
    pub(crate) fn test_name(&self) -> String {
        let without = |name: &str| {
            let (rest, end) = name.rsplit_once('.')?;
            end.chars().all(|c| c.is_ascii_digit()).then(|| rest.to_owned())
        };
        without(&self.file).filter(|rest| without(rest).is_some()).unwrap_or_else(|| self.file.clone())
    }

    /// An error of the whole file.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> ImportError {
        ImportError::Wrong { file: self.file.clone(), line: None, what: what.into() }
    }

    /// Adds the log of another thread.
    pub(crate) fn join(&mut self, log: Log) -> Result<(), ImportError> {
        let step = |log: &Log| log.interval_s.filter(|s| *s > 0);
        let different = if (log.interval_s.is_some(), log.width) != (self.interval_s.is_some(), self.width) {
            Some("its lines have other columns than those of")
        } else if step(&log).zip(step(self)).is_some_and(|(a, b)| a != b) {
            Some("its intervals have another length than those of")
        } else if log.from_s > self.to_s + 60.0 || self.from_s > log.to_s + 60.0 {
            Some("its times are apart from those of")
        } else if log.clients.keys().any(|client| self.clients.contains_key(client)) {
            Some("it has clients that are also in")
        } else {
            None
        };
        if let Some(what) = different {
            return Err(log.wrong(format!("{what} {}: they are not of one test", self.file)));
        }
        self.ends = self.ends.zip(log.ends).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
        self.times.merge(&log.times);
        self.interval_s = self.interval_s.max(log.interval_s);
        self.max_ns = self.max_ns.max(log.max_ns);
        self.count = self.count.saturating_add(log.count);
        self.failed = self.failed.saturating_add(log.failed);
        self.skipped = self.skipped.saturating_add(log.skipped);
        self.retries = self.retries.zip(log.retries).map(|(a, b)| a.saturating_add(b));
        self.clients.extend(log.clients);
        self.seconds.extend(log.seconds);
        self.from_s = self.from_s.min(log.from_s);
        self.to_s = self.to_s.max(log.to_s);
        Ok(())
    }

    /// Adds percentiles and throughput over time to the test of a report, and holds the two against each other.
    pub(crate) fn add_to_report(&self, test: &mut ImportedTest) {
        let processed = test.record.figure(COMMITS).unwrap_or_default();
        let logged = self.count as f64;
        if self.interval_s.is_some() {
            return self.add_to(test, false);
        }
        let sampled = self.is_sampled() || logged < processed * (1.0 - APART);
        if sampled {
            test.note(format!(
                "the log has {logged} of {processed} transactions (--sampling-rate, or files are missing): percentiles are those of this \
                 sample"
            ));
        } else {
            test.compare(("the number of transactions", processed), ("the log", logged), APART);
        }
        let printed = test.record.figure(test.times.mean).filter(|_| test.timed && !sampled);
        self.add_to(test, sampled);
        test.timed = true;
        if let Some((printed, logged)) = printed.zip(test.record.figure(test.times.mean)) {
            test.compare(("the mean latency [ns]", printed), ("the log", logged), APART);
        }
    }

    /// Whether transactions are missing: each client numbers its own.
    fn is_sampled(&self) -> bool {
        let ran: f64 = self.clients.values().map(|(_, last)| *last as f64).sum();
        let logged: u64 = self.clients.values().map(|(lines, _)| lines).sum();
        (logged as f64) < ran * (1.0 - APART)
    }

    /// Adds times, and unless it is a sample, errors and throughput over time.
    fn add_to(&self, test: &mut ImportedTest, sampled: bool) {
        test.started_s = Some(self.from_s).filter(|s| s.is_finite());
        if !sampled {
            // Intervals have failures only with --failures-detailed: the report counts them all.
            for (column, n) in [(ERRORS, Some(self.failed)), (CONFLICTS, self.retries)] {
                if let Some(n) = n.filter(|_| self.interval_s.is_none() && test.record.figure(column).is_none()) {
                    test.set(column, Ok(n as f64));
                }
            }
            test.set_series(self.seconds.rows(self.from_s, self.interval_s.unwrap_or(1), self.whole()));
            // Progress of the report, if any, is better than none.
            if test.series.rows.is_empty() {
                test.note(
                    "the log has no whole interval between its first and its last: there is no throughput over time",
                );
            }
        }
        if self.count == 0 {
            return;
        }
        let times = test.times;
        if self.interval_s.is_some() {
            test.note(format!(
                "its longest time is of the {} transactions in whole intervals of the log (--aggregate-interval), which lacks the last one",
                self.count
            ));
            for column in [times.p50, times.p99] {
                let what = "percentiles, only sums of intervals (--aggregate-interval)";
                test.set(column, Err(Absence::NotIn { place: "the log", what }));
            }
        } else {
            let quantile = |q| self.times.quantile_ns(q).map(|ns| ns as f64).ok_or(Absence::NothingTimed);
            test.set(times.p50, quantile(0.5));
            test.set(times.p99, quantile(0.99));
            test.set_mean(self.times.mean_ns().ok_or(Absence::NothingTimed));
            test.histograms.push(("transaction".to_owned(), self.times.clone()));
        }
        test.set(times.max, Ok(self.max_ns));
    }

    /// Seconds, or begins of intervals, of which nothing is missing. The test began within the first second, and ended within the last.
    /// pgbench rounds the begin of its first interval down to a second, and writes none that the end cut off.
    fn whole(&self) -> Range<u64> {
        match (self.interval_s, self.ends) {
            (None, _) | (_, None) => {
                let (first, last) = self.seconds.ends();
                first.saturating_add(1)..last
            }
            (Some(0), _) => 0..0,
            (Some(step), Some((first, last))) => first.saturating_add(step)..last.saturating_add(1),
        }
    }

    /// The test of a log without a report.
    pub(crate) fn test(self) -> Result<ImportedTest, ImportError> {
        if self.count == 0 {
            return Err(self.wrong("the log has no completed transaction"));
        }
        if self.interval_s.is_some() {
            let what =
                "sums of intervals do not say how many clients there were: import the log with the printed report";
            return Err(self.wrong(what));
        }
        let sampled = self.is_sampled();
        let jobs = u32::try_from(self.clients.len()).unwrap_or(u32::MAX).max(1);
        let name = format!("pgbench log {}", self.test_name());
        let mut test = ImportedTest::new("transaction-processing", &name, jobs, false);
        test.note("the log does not say what its transactions are, nor how many clients there were beyond those in it");
        test.timed = false;
        let (count, span_s) = (self.count as f64, self.to_s - self.from_s);
        let rate = "rate that was asked for";
        test.set(column::RATE_TPS, Err(Absence::NotIn { place: "the log", what: rate }));
        test.set(CONFLICTS, Err(Absence::NotIn { place: "the log", what: "retries" }));
        if self.width == 7 {
            test.note("column 7 of the log is the schedule lag or the retries, and the log does not say which: it is not used");
        }
        if self.skipped > 0 {
            test.note(format!("{} transactions were skipped, as they were late", self.skipped));
        }
        self.add_to(&mut test, sampled);
        let why = Absence::NoSpan;
        if sampled || span_s <= 0.0 {
            for column in [column::TX_PER_S, column::COMMIT_THROUGHPUT_TPS, COMMITS, ERRORS, ELAPSED_S] {
                test.set(column, Err(why.clone()));
            }
        } else {
            test.record.set(ELAPSED_S, span_s);
            test.record.set_throughput(count / span_s);
            test.set_count(count, 0.0);
            test.note("the time is that from the begin of the first to the end of the last transaction in the log");
        }
        Ok(test)
    }
}
