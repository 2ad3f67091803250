//! pgbench's logs: a line for each transaction (`-l`), or for each interval (`--aggregate-interval`). With several threads there is a
//! file for each: `pgbench_log.4711`, `pgbench_log.4711.1`, …

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_model::column::{self, CONFLICTS, ERRORS, TRANSACTION_TIMES, Times};
use loadline_model::{Latencies, TestRecord};

use crate::draft::{self, Seconds};
use crate::error::ImportError;
use crate::group::ImportedTest;
use crate::lines::{Lines, cut};
use crate::tool::Tool;

/// Times since 1970 are above this, s; numbers of clients are below.
pub(crate) const EPOCH_S: f64 = 1e8;
/// Above all numbers of a line.
const MOST: f64 = 1e15;
/// Longest test, s: longer spans are files of different tests.
const LONGEST_S: u64 = 30 * 86_400;
const NO_PERCENTILES: &str = "the log has sums of intervals (--aggregate-interval), and no percentiles";
const NO_RETRIES: &str = "the log has no retries";

/// What the logs of a test say.
#[derive(Debug)]
pub(crate) struct Log {
    /// Its file, or the first of them.
    pub(crate) file: String,
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
pub(crate) fn read(name: &str, first: &str, lines: &mut Lines<'_>) -> Result<Log, ImportError> {
    let fields: Vec<&str> = first.split_whitespace().collect();
    let aggregated = fields.first().and_then(|f| f.parse::<f64>().ok()).is_some_and(|n| n > EPOCH_S);
    let mut log = Log {
        file: name.to_owned(),
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
        width: fields.len(),
        ends: None,
    };
    log.add(first, lines)?;
    while let Some(line) = lines.next_of(Tool::Pgbench)? {
        log.add(&line, lines)?;
    }
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
        let wrong = |field: &str| lines.wrong(format!("'{}' is no number in '{}'", cut(field), cut(line)));
        let number = |at: usize| {
            let field = fields.get(at).copied().unwrap_or_default();
            field.parse::<f64>().ok().filter(|n| (0.0..MOST).contains(n)).ok_or_else(|| wrong(field))
        };
        match self.interval_s {
            Some(_) => self.add_interval(&number),
            None => self.add_transaction(&fields, &number),
        }?;
        if self.to_s - self.from_s > LONGEST_S as f64 {
            return Err(
                lines.wrong("it is more than 30 days after another transaction: these are logs of different tests")
            );
        }
        Ok(())
    }

    /// `client number time script seconds µs [lag] [retries]`.
    fn add_transaction(
        &mut self,
        fields: &[&str],
        number: &dyn Fn(usize) -> Result<f64, ImportError>,
    ) -> Result<(), ImportError> {
        let (client, n) = (number(0)? as u64, number(1)? as u64);
        let entry = self.clients.entry(client).or_default();
        *entry = (entry.0 + 1, entry.1.max(n));
        let end_s = number(4)? + number(5)? / 1e6;
        if self.width >= 8 {
            self.retries = Some(self.retries.unwrap_or_default().saturating_add(number(7)? as u64));
        }
        let mut ns = 0.0;
        match fields.get(2).copied().unwrap_or_default() {
            "skipped" => self.skipped += 1,
            "failed" | "serialization" | "deadlock" | "other" => self.failed += 1,
            _ => {
                ns = number(2)? * 1e3;
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
    fn add_interval(&mut self, number: &dyn Fn(usize) -> Result<f64, ImportError>) -> Result<(), ImportError> {
        let (start_s, count, sum_ns, max_ns) = (number(0)?, number(1)? as u64, number(2)? * 1e3, number(5)? * 1e3);
        if self.to_s > 0.0 && start_s > self.to_s && self.interval_s == Some(0) {
            self.interval_s = Some((start_s - self.to_s) as u64);
        }
        self.seconds.add(start_s as u64, count, sum_ns);
        self.count = self.count.saturating_add(count);
        self.max_ns = self.max_ns.max(max_ns);
        if self.width >= 11 {
            self.skipped = self.skipped.saturating_add(number(10)? as u64);
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

    /// Adds the log of another thread.
    pub(crate) fn join(&mut self, log: Log) -> Result<(), ImportError> {
        let file = &self.file;
        let different =
            |what: &str| ImportError::of_file(&log.file, format!("{what} {file}: they are not of one test"));
        if (log.interval_s.is_some(), log.width) != (self.interval_s.is_some(), self.width) {
            return Err(different("its lines have other columns than those of"));
        }
        if let (Some(a @ 1..), Some(b @ 1..)) = (log.interval_s, self.interval_s)
            && a != b
        {
            return Err(different("its intervals have another length than those of"));
        }
        if log.from_s > self.to_s + 60.0 || self.from_s > log.to_s + 60.0 {
            return Err(different("its times are apart from those of"));
        }
        if log.interval_s.is_none() && log.clients.keys().any(|client| self.clients.contains_key(client)) {
            return Err(different("it has clients that are also in"));
        }
        let ((first, last), (of_log, to_log)) = (self.ends(), log.ends());
        self.ends = Some((first.max(of_log), last.min(to_log)));
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

    /// Completed transactions.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether transactions are missing: each client numbers its own.
    pub(crate) fn is_sampled(&self) -> bool {
        let ran: f64 = self.clients.values().map(|(_, last)| *last as f64).sum();
        let logged: u64 = self.clients.values().map(|(lines, _)| lines).sum();
        (logged as f64) < ran * (1.0 - draft::APART)
    }

    /// Adds times, and unless it is a sample, errors and throughput over time.
    pub(crate) fn add_to(self, test: &mut ImportedTest, times: Times, sampled: bool) {
        test.started_s = Some(self.from_s).filter(|s| s.is_finite());
        let record: &mut TestRecord = &mut test.record;
        let from_s = self.from_s;
        if !sampled {
            // Intervals have failures only with --failures-detailed: the report counts them all.
            for (column, n) in [(ERRORS, Some(self.failed)), (CONFLICTS, self.retries)] {
                if let Some(n) = n.filter(|_| self.interval_s.is_none() && record.figure(column).is_none()) {
                    record.set(column, n as f64);
                }
            }
            let series = self.seconds.series(from_s, self.interval_s.unwrap_or(1), self.whole());
            // Progress of the report, if any, is better than none.
            if !series.rows.is_empty() {
                test.set_series(series, times);
            } else if test.series.rows.is_empty() {
                test.note(
                    "the log has no whole interval between its first and its last: there is no throughput over time",
                );
            }
        }
        if self.skipped > 0 && !test.record.notes.iter().any(|note| note.contains("were skipped")) {
            test.note(format!(
                "{} transactions were skipped, as they could not meet the latency limit any more",
                self.skipped
            ));
        }
        if self.count == 0 {
            return;
        }
        if self.interval_s.is_none() {
            test.set_times(times, self.times);
            return;
        }
        test.note(format!(
            "its longest time is of the {} transactions in whole intervals of the log (--aggregate-interval), which lacks the last one",
            self.count
        ));
        test.record.set(times.max, self.max_ns);
        for column in [times.p50, times.p99] {
            test.record.leave_out(column, NO_PERCENTILES);
        }
    }

    fn ends(&self) -> (u64, u64) {
        self.ends.unwrap_or_else(|| self.seconds.ends())
    }

    /// Seconds, or begins of intervals, of which nothing is missing. The test began within the first second, and ended within the last.
    /// pgbench rounds the begin of its first interval down to a second, and writes none that the end cut off.
    fn whole(&self) -> Range<u64> {
        match self.interval_s {
            None => {
                let (first, last) = self.seconds.ends();
                first.saturating_add(1)..last
            }
            Some(0) => 0..0,
            Some(step) => {
                let (first, last) = self.ends();
                first.saturating_add(step)..last.saturating_add(1)
            }
        }
    }

    /// Whether its lines are intervals.
    pub(crate) fn is_of_intervals(&self) -> bool {
        self.interval_s.is_some()
    }

    /// The test of a log without a report.
    pub(crate) fn test(self) -> Result<ImportedTest, ImportError> {
        if self.count == 0 {
            return Err(ImportError::of_file(&self.file, "the log has no completed transaction"));
        }
        if self.interval_s.is_some() {
            let what =
                "sums of intervals do not say how many clients there were: import the log with the printed report";
            return Err(ImportError::of_file(&self.file, what));
        }
        let sampled = self.is_sampled();
        let clients = u32::try_from(self.clients.len()).unwrap_or(u32::MAX).max(1);
        let mut test = draft::of_transactions("pgbench log", &self.test_name(), clients, TRANSACTION_TIMES);
        test.note("the log does not say what its transactions are, nor how many clients there were beyond those in it");
        let (count, span_s) = (self.count as f64, self.to_s - self.from_s);
        if self.width == 7 {
            test.note("column 7 of the log is the schedule lag or the retries, and the log does not say which: it is not used");
        }
        self.add_to(&mut test, TRANSACTION_TIMES, sampled);
        match () {
            () if sampled => {
                let why = "the log is a sample of the transactions (--sampling-rate), which gives no throughput";
                test.note(
                    "the log is a sample of the transactions (--sampling-rate): percentiles are those of the sample",
                );
                for column in [column::TX_PER_S, column::COMMIT_THROUGHPUT_TPS, column::COMMITS, ERRORS] {
                    test.record.leave_out(column, why);
                }
            }
            () if span_s > 0.0 => {
                test.record.set(column::ELAPSED_S, span_s);
                test.record.set_throughput(count / span_s);
                test.set_count(count, 0.0);
                test.note("the time is that from the begin of the first to the end of the last transaction in the log");
            }
            () => {
                let why = "the log is too short: it begins and ends at one time";
                for column in [column::TX_PER_S, column::COMMIT_THROUGHPUT_TPS, column::ELAPSED_S] {
                    test.record.leave_out(column, why);
                }
            }
        }
        if test.record.figure(CONFLICTS).is_none() {
            test.record.leave_out(CONFLICTS, NO_RETRIES);
        }
        Ok(test)
    }
}
