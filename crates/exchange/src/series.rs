//! Throughput over time: intervals that a tool printed, of which some cannot be.

use loadline_model::Series;
use loadline_model::column::{COMMIT_LATENCY_MS, COMMIT_THROUGHPUT_TPS};

use crate::absence::Warning;
use crate::draft::{APART, ImportedTest};

/// Times since 1970 are above this, s; times since the start and numbers of clients are below.
pub(crate) const EPOCH_S: f64 = 1e8;

/// An interval as a tool printed it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    /// Line of the file.
    pub(crate) line: u64,
    /// The interval's end, s since the start, or since 1970.
    pub(crate) end_s: f64,
    pub(crate) per_s: f64,
    pub(crate) mean_ms: Option<f64>,
}

impl ImportedTest {
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
}
