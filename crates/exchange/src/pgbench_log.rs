//! pgbench's logs: a line for each transaction (`-l`), or for each interval (`--aggregate-interval`). With several threads there is a
//! file for each: `pgbench_log.4711`, `pgbench_log.4711.1`, …

use std::collections::BTreeMap;

use loadline_model::Latencies;
use loadline_model::column::{COMMITS, CONFLICTS, ERRORS};

use crate::absence::Absence;
use crate::draft::{APART, ImportedTest};
use crate::error::ImportError;
use crate::fields::MOST;
use crate::lines::{Lines, cut};
use crate::series::{EPOCH_S, Seconds};

/// Longest test, s: longer spans are files of different tests.
const LONGEST_S: f64 = 30.0 * 86_400.0;

/// What the logs of a test say.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Length of an interval, s, if the lines are intervals: 0 until two are read.
    interval_s: Option<u64>,
    times: Latencies,
    /// The longest of intervals, ns.
    max_ns: f64,
    /// Transactions of intervals.
    count: u64,
    failed: u64,
    retries: Option<u64>,
    /// Number of the file, lines and highest number of a transaction, by client.
    clients: BTreeMap<u64, (usize, u64, u64)>,
    seconds: Seconds,
    /// Begin of the first and end of the last transaction, s since 1970; 0 before any.
    from_s: f64,
    to_s: f64,
    /// Columns of a line.
    width: usize,
    /// Latest first and earliest last interval of all threads.
    whole: Option<(u64, u64)>,
}

/// Whether a file that begins with `line` is a log.
pub(crate) fn is_log(line: &str) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let numbers = fields.iter().filter(|f| f.parse::<f64>().is_ok()).count();
    fields.len() >= 6 && numbers + 1 >= fields.len()
}

impl Log {
    /// Takes in file number `file`, which begins with the line `first`.
    pub(crate) fn add_file(&mut self, file: usize, first: String, lines: &mut Lines<'_>) -> Result<(), ImportError> {
        if self.width == 0 {
            self.width = first.split_whitespace().count();
            let begin = first.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
            self.interval_s = begin.filter(|n| *n > EPOCH_S).map(|_| 0);
        }
        let (mut line, mut ends) = (Some(first), None);
        while let Some(text) = line {
            let at = self.add(file, &text, lines)?;
            if self.interval_s == Some(0) {
                self.interval_s = ends.map(|(_, last)| at.saturating_sub(last)).or(Some(0));
            }
            ends = Some(ends.map_or((at, at), |(first, _)| (first, at)));
            line = lines.next()?;
        }
        if !lines.ended() {
            return Err(lines.wrong("the file ends within this line: the log is cut off"));
        }
        let (a, b) = (self.whole, ends);
        self.whole = a.zip(b).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))).or(b);
        Ok(())
    }

    /// Takes in one line; its second.
    fn add(&mut self, file: usize, line: &str, lines: &Lines<'_>) -> Result<u64, ImportError> {
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
        let (begin_s, end_s) = match self.interval_s {
            Some(_) => self.add_interval(&value)?,
            None => self.add_transaction(file, fields.get(2).copied().unwrap_or_default(), &value, lines)?,
        };
        self.from_s = if self.to_s > 0.0 { self.from_s.min(begin_s) } else { begin_s };
        self.to_s = self.to_s.max(end_s);
        if self.to_s - self.from_s > LONGEST_S {
            return Err(lines.wrong("it is more than 30 days after another line: these are logs of different tests"));
        }
        Ok(end_s as u64)
    }

    /// `client number time script seconds µs [lag] [retries]`; `time` may be a word.
    fn add_transaction(
        &mut self,
        file: usize,
        time: &str,
        value: &dyn Fn(usize) -> Result<f64, ImportError>,
        lines: &Lines<'_>,
    ) -> Result<(f64, f64), ImportError> {
        let (client, n) = (value(0)? as u64, value(1)? as u64);
        let entry = self.clients.entry(client).or_insert((file, 0, 0));
        if entry.0 != file {
            return Err(lines.wrong(format!("client {client} is also in another file: these are logs of two tests")));
        }
        *entry = (file, entry.1 + 1, entry.2.max(n));
        let end_s = value(4)? + value(5)? / 1e6;
        if self.width >= 8 {
            self.retries = Some(self.retries.unwrap_or_default().saturating_add(value(7)? as u64));
        }
        match time {
            "skipped" => Ok((end_s, end_s)),
            "failed" | "serialization" | "deadlock" | "other" => {
                self.failed += 1;
                Ok((end_s, end_s))
            }
            _ => {
                let ns = value(2)? * 1e3;
                self.times.record(ns as u64);
                self.seconds.add(end_s as u64, 1, ns);
                Ok((end_s - ns / 1e9, end_s))
            }
        }
    }

    /// `start count sum sum² min max …`; times in µs.
    fn add_interval(&mut self, value: &dyn Fn(usize) -> Result<f64, ImportError>) -> Result<(f64, f64), ImportError> {
        let (start_s, count, sum_ns, max_ns) = (value(0)?, value(1)? as u64, value(2)? * 1e3, value(5)? * 1e3);
        self.seconds.add(start_s as u64, count, sum_ns);
        self.count = self.count.saturating_add(count);
        self.max_ns = self.max_ns.max(max_ns);
        Ok((start_s, start_s))
    }

    /// Adds percentiles and throughput over time to the test of a report, and holds the two against each other.
    pub(crate) fn add_to(self, test: &mut ImportedTest) {
        test.started_s = Some(self.from_s);
        let times = test.times;
        if let Some(step) = self.interval_s {
            test.note(format!(
                "its longest time is of the {} transactions in whole intervals of the log (--aggregate-interval), which lacks the last one",
                self.count
            ));
            for column in [times.p50, times.p99] {
                let what = "percentiles, only sums of intervals (--aggregate-interval)";
                test.set(column, Err(Absence::NotIn { place: "the log", what }));
            }
            test.set(times.max, Ok(self.max_ns));
            // pgbench rounds the begin of its first interval down to a second, and writes none that the end cut off.
            let (first, last) = self.whole.filter(|_| step > 0).unwrap_or_default();
            test.set_series(self.seconds.rows(self.from_s, step, first.saturating_add(step)..last.saturating_add(1)));
            return;
        }
        let processed = test.record.figure(COMMITS).unwrap_or_default();
        let logged = self.times.count() as f64;
        // Each client numbers its own transactions.
        let ran: f64 = self.clients.values().map(|(_, _, last)| *last as f64).sum();
        let lines: f64 = self.clients.values().map(|(_, lines, _)| *lines as f64).sum();
        let printed = test.record.figure(times.mean).filter(|_| test.timed);
        if lines < ran * (1.0 - APART) || logged < processed * (1.0 - APART) {
            test.note(format!(
                "the log has {logged} of {processed} transactions (--sampling-rate, or files are missing): percentiles are those of this \
                 sample"
            ));
        } else {
            test.compare(("the number of transactions", processed), ("the log", logged), APART);
            if let Some((printed, logged)) = printed.zip(self.times.mean_ns()) {
                test.compare(("the mean latency [ns]", printed), ("the log", logged), APART);
            }
            // Versions before 15 state neither.
            for (column, n) in [(ERRORS, Some(self.failed)), (CONFLICTS, self.retries)] {
                if let (Some(n), None) = (n, test.record.figure(column)) {
                    test.set(column, Ok(n as f64));
                }
            }
            // The test began within the first second, and ended within the last.
            let (first, last) = self.seconds.ends();
            test.set_series(self.seconds.rows(self.from_s, 1, first.saturating_add(1)..last));
        }
        let quantile = |q| self.times.quantile_ns(q).map(|ns| ns as f64).ok_or(Absence::NothingTimed);
        test.set(times.p50, quantile(0.5));
        test.set(times.p99, quantile(0.99));
        test.set(times.max, self.times.max_ns().map(|ns| ns as f64).ok_or(Absence::NothingTimed));
        test.set(test.times.mean, self.times.mean_ns().ok_or(Absence::NothingTimed));
        test.timed = true;
        test.histograms.push(("transaction".to_owned(), self.times));
    }
}
