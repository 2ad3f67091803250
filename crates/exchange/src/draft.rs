//! A test as it is read: figures with the reasons for those that are missing.

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_model::column::{self, COMMITS, ELAPSED_S, RESPONSE_TIMES, TRANSACTION_TIMES, Times};
use loadline_model::{Column, Latencies, Series, TestRecord};

use crate::group::ImportedTest;

/// Two statements of the same figure may be apart by this share: more is said in a note.
pub(crate) const APART: f64 = 0.02;

/// Name of work in the manner of loadline's codes: `PGBENCH-SELECT-ONLY`.
fn code(tool: &str, name: &str) -> String {
    const MOST: usize = 60;
    let words = [tool, name].into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    let out = words.filter(|word| !word.is_empty()).map(str::to_uppercase).collect::<Vec<_>>().join("-");
    out.chars().take(MOST).collect()
}

/// Times of `open` loops are from the scheduled start.
pub(crate) fn times(open: bool) -> Times {
    if open { RESPONSE_TIMES } else { TRANSACTION_TIMES }
}

/// A test without figures of `jobs` jobs that did transactions, named as in [`code`].
pub(crate) fn of_transactions(tool: &str, name: &str, jobs: u32, times: Times) -> ImportedTest {
    test(&code(tool, name), "transaction-processing", jobs, [column::TX_PER_S, times.p99, times.mean])
}

/// A test without figures of `jobs` jobs that read or wrote files, named as in [`code`].
pub(crate) fn of_storage(tool: &str, name: &str, jobs: u32, times: Times) -> ImportedTest {
    test(&code(tool, name), "storage", jobs, [column::IO_PER_S, times.p99, times.mean])
}

fn test(workload: &str, group: &str, jobs: u32, kpis: [&Column; 3]) -> ImportedTest {
    let kpis = kpis.map(|c| c.id.to_owned()).to_vec();
    let record = TestRecord { group: group.to_owned(), jobs, kpis, ..TestRecord::blank(workload) };
    ImportedTest { record, series: Series::default(), histograms: Vec::new(), started_s: None }
}

impl ImportedTest {
    /// Adds a note for the reader.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.record.notes.push(text.into());
    }

    /// Sets median, 99th percentile and maximum of `times` to those of `all`, and the mean unless `times` has one; keeps `all`.
    pub(crate) fn set_times(&mut self, times: Times, all: Latencies) {
        let record = &mut self.record;
        for (column, value) in
            [(times.p50, all.quantile_ns(0.5)), (times.p99, all.quantile_ns(0.99)), (times.max, all.max_ns())]
        {
            if let Some(value) = value {
                record.set(column, value as f64);
            }
        }
        if let Some(mean) = all.mean_ns() {
            self.set_mean(times, mean);
        }
        self.histograms.push(("transaction".to_owned(), all));
    }

    /// Sets the mean of `times`, ns, in all columns that have it.
    pub(crate) fn set_mean(&mut self, times: Times, ns: f64) {
        if times.mean == TRANSACTION_TIMES.mean {
            self.record.set_mean_time(ns)
        } else {
            self.record.set(times.mean, ns)
        }
    }

    /// Sets a figure if it is stated, or says why it is not.
    pub(crate) fn set_or(&mut self, column: &Column, stated: Option<f64>, why: &str) {
        match stated {
            Some(value) => self.record.set(column, value),
            None => self.record.leave_out(column, why),
        }
    }

    /// Adds throughput over time. With `times` from the scheduled start, those of the series are none of transactions.
    pub(crate) fn set_series(&mut self, mut series: Series, times: Times) {
        if times.mean != TRANSACTION_TIMES.mean {
            series.columns.truncate(2);
            series.rows.iter_mut().for_each(|row| row.truncate(2));
        }
        self.series = series;
    }

    /// Says in a note if two statements of one figure are apart.
    pub(crate) fn compare(&mut self, stated: (&str, f64), computed: (&str, f64)) {
        self.compare_within(stated, computed, APART);
    }

    /// The same if they may be apart by `share`.
    pub(crate) fn compare_within(&mut self, (what, stated): (&str, f64), (how, computed): (&str, f64), share: f64) {
        let apart = (stated - computed).abs() / stated.abs().max(computed.abs());
        if apart > share {
            self.note(format!(
                "contradictory: {what} is {stated:.3}, but {how} gives {computed:.3}, {:.0} % apart",
                apart * 100.0
            ));
        }
    }

    /// The number of transactions, held against throughput and time if there are both. `unsure_s`: what the time may be off by.
    pub(crate) fn set_count(&mut self, transactions: f64, unsure_s: f64) {
        self.record.set(COMMITS, transactions);
        let (tps, s) = (self.record.figure(column::TX_PER_S), self.record.figure(ELAPSED_S));
        if let (Some(tps), Some(s)) = (tps, s.filter(|s| *s > 0.0)) {
            let share = APART + unsure_s / s;
            self.compare_within(("the number of transactions", transactions), ("throughput × time", tps * s), share);
        }
    }
}

/// Throughput and mean time of intervals, as a series.
#[derive(Debug, Default)]
pub(crate) struct Seconds {
    /// Transactions and the sum of their times, ns, by interval.
    by_interval: BTreeMap<u64, (u64, f64)>,
}

impl Seconds {
    /// Adds `count` transactions that took `sum_ns` together and ended in second `second` of the test.
    pub(crate) fn add(&mut self, second: u64, count: u64, sum_ns: f64) {
        let entry = self.by_interval.entry(second).or_default();
        *entry = (entry.0.saturating_add(count), entry.1 + sum_ns);
    }

    /// Adds all of `other`.
    pub(crate) fn extend(&mut self, other: Seconds) {
        other.by_interval.into_iter().for_each(|(second, (count, sum_ns))| self.add(second, count, sum_ns));
    }

    /// The first and the last interval; 0 without any.
    pub(crate) fn ends(&self) -> (u64, u64) {
        let (first, last) = (self.by_interval.keys().next(), self.by_interval.keys().next_back());
        first.copied().zip(last.copied()).unwrap_or_default()
    }

    /// One row for each interval of `step` seconds that begins in `whole`. The test began at `from_s`, s since 1970.
    pub(crate) fn series(&self, from_s: f64, step: u64, whole: Range<u64>) -> Series {
        let row = |at: u64| {
            let (count, sum_ns) = self.by_interval.get(&at).copied().unwrap_or_default();
            let mean = (count > 0).then(|| sum_ns / count as f64 / 1e6);
            vec![Some(at as f64 - from_s), Some(count as f64 / step.max(1) as f64), mean]
        };
        series(whole.step_by(usize::try_from(step.max(1)).unwrap_or(1)).map(row).collect())
    }
}

/// Intervals as a series. Each has its end, s, then its throughput and its mean latency, ms, or only the first.
pub(crate) fn intervals<const N: usize>(ends: Vec<(f64, [Option<f64>; N])>) -> Series {
    let mut from = 0.0;
    let row = |(at, cells): (f64, [Option<f64>; N])| {
        let begin = std::mem::replace(&mut from, at);
        std::iter::once(Some(begin)).chain(cells).collect()
    };
    series(ends.into_iter().map(row).collect())
}

/// Time, throughput and mean latency, as many of them as the first row has.
fn series(rows: Vec<Vec<Option<f64>>>) -> Series {
    let all = ["t_s", column::COMMIT_THROUGHPUT_TPS.id, column::COMMIT_LATENCY_MS.id];
    let columns = all.iter().take(rows.first().map_or(0, Vec::len)).map(|&id| id.to_owned()).collect();
    Series { columns, rows }
}
