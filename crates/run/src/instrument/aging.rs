//! How the database grows old in a window: throughput, 99th percentile, size of the tables and what is unused in them, in parts.

use std::sync::Arc;

use loadline_analyze::steady::drift;
use loadline_database::{TargetError, Wear};
use loadline_load::{JobResult, Parts, Request, Schedule, Shared};
use loadline_model::record::AgePoint;
use loadline_model::{Detail, Latencies, column};

use super::{Beside, Instrument, wait_until};
use crate::evidence::RunContext;
use crate::test::Test;

/// Parts of a window: as many as a look at a warm-up has values at most.
const AGE_PARTS: usize = 60;

#[derive(Default)]
pub(super) struct Aging {
    /// Counts of the jobs in each part.
    shared: Arc<Shared>,
    /// Sizes by the database at the end of each part.
    sizes: Beside<Vec<Wear>>,
    /// Until when all jobs ran, ns.
    ran_until_ns: u64,
}

impl Instrument for Aging {
    fn follows_window(&self) -> bool {
        true
    }

    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        request.parts = Parts::Equal(AGE_PARTS);
        Ok(())
    }

    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        self.shared = Arc::clone(shared);
        let (target, shared) = (Arc::clone(&request.target), Arc::clone(shared));
        let ask = move || -> Result<Vec<Wear>, String> {
            let queries = target.abilities().tables.ok_or("this target has no tables")?;
            // The last one before the window ends and the jobs are told so.
            let before_ns = |window: &Schedule| (window.window_ns() / 1000).min(100_000_000);
            let part = |n: u64| move |w: &Schedule| w.open_ns + w.window_ns() / AGE_PARTS as u64 * n - before_ns(w);
            let wear = |n| wait_until(&shared, part(n)).ok().map(|()| queries.wear());
            Ok((1..=AGE_PARTS as u64).map_while(wear).collect())
        };
        self.sizes.start("aging", ask)
    }

    fn stop(&mut self, jobs: &[JobResult]) {
        self.sizes.join();
        self.ran_until_ns = jobs.iter().map(|job| job.ran_until_ns).min().unwrap_or(0);
    }

    fn report_interrupted(&self, test: &mut Test) -> Option<f64> {
        let (seen, why) = match &self.sizes.outcome {
            Ok(seen) => (seen.as_slice(), "loadline has no query for it on this database"),
            Err(why) => (&[][..], why.as_str()),
        };
        for column in column::WEAR {
            match seen.last().and_then(|wear| wear.get(column.id)) {
                Some(Ok(value)) => test.set(column, *value),
                Some(Err(why)) => test.set_absent(column, why.clone()),
                None => test.set_absent(column, why),
            }
        }
        let points = self.points(seen);
        let known_s = points.last().map(|last| last.t_s);
        let rates: Vec<f64> = points.iter().map(|point| point.tps).collect();
        test.add(Detail::Aging, points);
        let change = drift(&rates).map(|drift| drift.change * 100.0);
        let too_few = "no transaction completed in the window, or it has too few parts";
        test.set_or_absent(column::AGING_PCT, change, too_few);
        known_s
    }
}

impl Aging {
    /// The parts of the window through which all jobs ran.
    fn points(&self, seen: &[Wear]) -> Vec<AgePoint> {
        let Some(window) = self.shared.window() else { return Vec::new() };
        let parts = self.shared.parts();
        // Parts are rounded up, all together by less than a nanosecond each.
        let ran_ns = self.ran_until_ns.saturating_sub(window.open_ns) + parts.len() as u64;
        let ended = (ran_ns / self.shared.part_ns(window)) as usize;
        let each_s = window.window_s() / parts.len().max(1) as f64;
        let point = |(n, times): (usize, &Latencies)| {
            let known = seen.get(n).into_iter().flatten();
            AgePoint {
                t_s: (n + 1) as f64 * each_s,
                tps: times.count() as f64 / each_s,
                p99_ns: times.quantile_ns(0.99),
                sizes: known.filter_map(|(id, v)| Some((id.clone(), *v.as_ref().ok()?))).collect(),
            }
        };
        parts.iter().enumerate().take(ended).map(point).collect()
    }
}
