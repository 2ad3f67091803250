//! How the database grows old in a window: throughput, 99th percentile, size of the tables and what is unused in them, in parts.

use std::sync::Arc;
use std::thread::JoinHandle;

use loadline_analyze::steady::drift;
use loadline_database::{TargetError, Wear};
use loadline_load::{JobResult, Request, Shared};
use loadline_model::record::AgePoint;
use loadline_model::{Column, Detail, column};

use super::{Instrument, beside_jobs, outcome, wait_until};
use crate::evidence::Evidence;
use crate::test::Test;

/// Parts of a window: as many as a look at a warm-up has values at most.
pub(crate) const AGE_PARTS: usize = 60;
const SIZES: [&Column; 3] = [column::TABLES_MIB, column::TABLES_FREE_MIB, column::DEAD_ROWS];
pub(super) const COLUMNS: &[&Column] = &[SIZES[0], SIZES[1], SIZES[2], column::AGING_PCT];
pub(super) const ABSENT: &str = "the window is not recorded in parts (--aging)";

#[derive(Default)]
pub(super) struct Aging {
    thread: Option<JoinHandle<Result<Vec<Wear>, String>>>,
    /// What the database said at the end of each part.
    outcome: Option<Result<Vec<Wear>, String>>,
}

impl Instrument for Aging {
    fn follows_window(&self) -> bool {
        true
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        let (target, shared) = (Arc::clone(&request.target), Arc::clone(shared));
        let ask = move || -> Result<Vec<Wear>, String> {
            let queries = target.abilities().queries.ok_or("this target has no tables")?;
            let mut seen = Vec::new();
            for part in 1..=AGE_PARTS as u64 {
                // The last one before the window ends and the jobs are told so.
                let at = move |window: &loadline_load::Schedule| {
                    window.open_ns + window.window_ns() / AGE_PARTS as u64 * part
                        - (window.window_ns() / 1000).min(100_000_000)
                };
                match wait_until(&shared, at) {
                    Ok(()) => seen.push(queries.wear()),
                    Err(_) => break,
                }
            }
            Ok(seen)
        };
        self.thread = Some(beside_jobs("aging", ask)?);
        Ok(())
    }

    fn stop(&mut self, _: &[JobResult]) {
        self.outcome = self.thread.take().map(outcome);
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let none = Vec::new();
        let (seen, why) = match &self.outcome {
            Some(Ok(seen)) => (seen, "loadline has no query for it on this database"),
            Some(Err(why)) => (&none, why.as_str()),
            None => (&none, "it was not asked for"),
        };
        for column in SIZES {
            match seen.last().and_then(|wear| wear.get(column.id)) {
                Some(Ok(value)) => test.set(column, *value),
                Some(Err(why)) => test.set_absent(column, why.clone()),
                None => test.set_absent(column, why),
            }
        }
        let parts = &e.merged().parts;
        let each_s = e.measured.schedule.window_s() / parts.len().max(1) as f64;
        let point = |(n, times): (usize, &loadline_model::PartLatencies)| AgePoint {
            t_s: (n + 1) as f64 * each_s,
            tps: times.count() as f64 / each_s,
            p99_ns: times.quantile_ns(0.99),
            sizes: seen
                .get(n)
                .into_iter()
                .flatten()
                .filter_map(|(id, v)| Some((id.clone(), *v.as_ref().ok()?)))
                .collect(),
        };
        let points: Vec<AgePoint> = parts.iter().enumerate().map(point).collect();
        let rates: Vec<f64> = points.iter().map(|point| point.tps).collect();
        test.add(Detail::Aging, points);
        let change = drift(&rates).map(|drift| drift.change * 100.0);
        test.set_or_absent(column::AGING_PCT, change, "no transaction completed in the window");
    }
}
