//! pgbench's log of transactions (`-l`), a line for each. With several threads there is a file for each: `pgbench_log.4711`,
//! `pgbench_log.4711.1`, … A log of intervals (`--aggregate-interval`) has no percentiles, and is refused.

use std::collections::BTreeMap;

use loadline_model::Latencies;
use loadline_model::column::{COMMITS, CONFLICTS, ERRORS};

use crate::draft::{APART, EPOCH_S, ImportedTest};
use crate::lines::{Lines, MOST, cut};
use crate::source::{Absence, ImportError};

/// Longest test, s: longer spans are files of different tests.
const LONGEST_S: f64 = 30.0 * 86_400.0;

#[derive(Debug, Default)]
pub(crate) struct Log {
    times: Latencies,
    failed: u64,
    retries: Option<u64>,
    /// Number of the file, lines and highest number of a transaction, by client.
    clients: BTreeMap<u64, (usize, u64, u64)>,
    /// Transactions and the sum of their times, ns, by the second in which they ended.
    seconds: BTreeMap<u64, (u64, f64)>,
    /// Begin of the first and end of the last transaction, s since 1970; 0 before any.
    from_s: f64,
    to_s: f64,
    width: usize,
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
        let begin = first.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
        if begin.is_some_and(|n| n > EPOCH_S) {
            return Err(lines.wrong(
                "a log of intervals (--aggregate-interval) has no percentiles, and is not read: log transactions (-l)",
            ));
        }
        if self.width == 0 {
            self.width = first.split_whitespace().count();
        }
        let mut line = Some(first);
        while let Some(text) = line {
            self.add(file, &text, lines)?;
            line = lines.next()?;
        }
        if lines.ended { Ok(()) } else { Err(lines.wrong("the file ends within this line: the log is cut off")) }
    }

    /// Takes in `client number time script seconds µs [lag] [retries]`; `time` may be a word.
    fn add(&mut self, file: usize, line: &str, lines: &Lines<'_>) -> Result<(), ImportError> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (has, had) = (fields.len(), self.width);
        if has != had {
            let what = format!("it has {has} columns, the lines before have {had}: the log is cut off or of two tests");
            return Err(lines.wrong(what));
        }
        let value = |at: usize| {
            let field = fields.get(at).copied().unwrap_or_default();
            let value = field.parse::<f64>().ok().filter(|n| (0.0..MOST).contains(n));
            value.ok_or_else(|| lines.wrong(format!("'{}' is no number that can be, in '{}'", cut(field), cut(line))))
        };
        let (client, n) = (value(0)? as u64, value(1)? as u64);
        let entry = self.clients.entry(client).or_insert((file, 0, 0));
        if entry.0 != file {
            return Err(lines.wrong(format!("client {client} is also in another file: these are logs of two tests")));
        }
        *entry = (file, entry.1 + 1, entry.2.max(n));
        let (end_s, mut ns) = (value(4)? + value(5)? / 1e6, 0.0);
        if self.width >= 8 {
            self.retries = Some(self.retries.unwrap_or_default().saturating_add(value(7)? as u64));
        }
        match fields.get(2).copied().unwrap_or_default() {
            "skipped" => {}
            "failed" | "serialization" | "deadlock" | "other" => self.failed += 1,
            _ => {
                ns = value(2)? * 1e3;
                self.times.record(ns as u64);
                let second = self.seconds.entry(end_s as u64).or_default();
                *second = (second.0 + 1, second.1 + ns);
            }
        }
        let begin_s = end_s - ns / 1e9;
        self.from_s = if self.to_s > 0.0 { self.from_s.min(begin_s) } else { begin_s };
        self.to_s = self.to_s.max(end_s);
        if self.to_s - self.from_s > LONGEST_S {
            return Err(lines.wrong("it is more than 30 days after another line: these are logs of different tests"));
        }
        Ok(())
    }

    /// Adds percentiles and throughput over time to the test of a report, and holds the two against each other.
    pub(crate) fn add_to(self, test: &mut ImportedTest) {
        test.started_s = Some(self.from_s);
        let times = test.times;
        let processed = test.record.figure(COMMITS).unwrap_or_default();
        let logged = self.times.count() as f64;
        // Each client numbers its own transactions.
        let ran: f64 = self.clients.values().map(|(_, _, last)| *last as f64).sum();
        let lines: f64 = self.clients.values().map(|(_, lines, _)| *lines as f64).sum();
        let printed = if test.timed { test.record.figure(times.mean) } else { None };
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
            self.set_seconds(test);
        }
        let quantile = |q| self.times.quantile_ns(q).map(|ns| ns as f64).ok_or(Absence::NothingTimed);
        test.set(times.p50, quantile(0.5));
        test.set(times.p99, quantile(0.99));
        test.set(times.max, self.times.max_ns().map(|ns| ns as f64).ok_or(Absence::NothingTimed));
        test.set(times.mean, self.times.mean_ns().ok_or(Absence::NothingTimed));
        test.timed = true;
        test.histograms.push(("transaction".to_owned(), self.times));
    }

    /// Adds the whole seconds: the test began within the first, and ended within the last.
    fn set_seconds(&self, test: &mut ImportedTest) {
        let row = |second: u64| {
            let (count, sum_ns) = self.seconds.get(&second).copied().unwrap_or_default();
            let mean_ms = (count > 0).then(|| sum_ns / count as f64 / 1e6);
            vec![Some(second as f64 - self.from_s), Some(count as f64), mean_ms]
        };
        if let (Some((first, _)), Some((last, _))) = (self.seconds.first_key_value(), self.seconds.last_key_value()) {
            test.set_series((first.saturating_add(1)..*last).map(row).collect());
        }
    }
}
