//! The bound of a workload at its peak.

use loadline_model::TestRecord;
use loadline_model::format::number;

use super::{Bound, BoundBy, bound};
use crate::kpi::THROUGHPUT;
use crate::stats::mean;
use crate::sweep::{Sweep, SweepPoint};

/// The bound of the workload of `sweep` at its peak; `records` may hold other tests as well. `None`
/// without a valid test.
///
/// Repetitions with different limits give an unknown limit. A peak below the highest job count may hide a single
/// writer: with one job there is no queue for it. So if more jobs gave no more throughput and were bound by a single
/// writer, the workload is.
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
        let mut from = there.from;
        if !from.contains(&THROUGHPUT) {
            from.push(THROUGHPUT);
        }
        let because = format!(
            "throughput does not grow with jobs ({} tps with {}, {} with {}); {}",
            number(most, 0),
            peak.jobs,
            number(then, 0),
            beyond.jobs,
            there.because
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
    let mut kinds: Vec<&'static str> = all.iter().map(|(_, b)| b.by.name()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let middle = all.get(all.len() / 2)?.1.clone();
    if kinds.len() > 1 {
        let because = format!("repetitions differ ({}); one of them: {}", kinds.join(", "), middle.sentence());
        return Some(Bound { by: BoundBy::Unknown, because, from: middle.from });
    }
    Some(middle)
}
