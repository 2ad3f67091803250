//! Reads from the database's own cache: filled before a test, it must serve nearly all blocks.

use loadline_database::TargetError;
use loadline_load::{Request, TestError, Warmup};
use loadline_model::CheckId;
use loadline_workload::{Instrument as InstrumentSpec, Workload};

use super::{Instrument, RunContext, boxed};
use crate::checks::blocks_read::cache_hit;
use crate::evidence::{Evidence, rows_of};
use crate::reference::throughput;
use crate::test::{Test, failed};

pub(super) fn listed_by(workload: &Workload) -> Option<Box<dyn Instrument>> {
    boxed(workload.has(InstrumentSpec::CacheHit).then_some(CacheHit))
}

struct CacheHit;

impl Instrument for CacheHit {
    fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        for table in &request.work.workload.tables {
            rows_of(request.target.as_ref(), &request.work, &table.name)?;
        }
        // That does not read the indexes. The warm-up does, but it may be short for that, and a server that counts late counts
        // it as well.
        if !run.records.iter().any(|r| r.workload == request.work.workload.code) {
            let warmup = match request.warmup {
                Warmup::UntilSteady { .. } => Warmup::Seconds(1.0),
                fixed => fixed,
            };
            let warm = Request { warmup, duration_s: 1.0, ..request.clone() };
            // What else fails, fails in the test as well.
            if let Err(TestError::Target(e)) = throughput(&warm) {
                return Err(e);
            }
        }
        Ok(())
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let verdict = match &e.counters {
            Ok(_) => cache_hit(test, e.request.target.facts().block_bytes.is_some()),
            Err(why) => failed(why.as_str()),
        };
        test.check(CheckId::CacheHit, verdict);
    }
}
