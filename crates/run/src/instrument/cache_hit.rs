//! Reads from the database's own cache: filled before a test, it must serve nearly all blocks.

use loadline_database::TargetError;
use loadline_load::{Request, TestError, Warmup};
use loadline_model::check::Check;
use loadline_workload::Instrument as InstrumentSpec;

use super::{EndedTest, Instrument, Kind, RunContext};
use crate::checks::blocks_read::{CACHE_HIT, cache_hit};
use crate::figures::Figures;
use crate::queries::rows;
use crate::reference::throughput;

pub(super) const KIND: Kind = Kind {
    make: |listed| (listed == InstrumentSpec::CacheHit).then(|| Box::new(CacheHit) as Box<dyn Instrument>),
    columns: &[],
    absent: "",
};

struct CacheHit;

impl Instrument for CacheHit {
    fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        for table in request.work.workload.tables {
            rows(request.target.as_ref(), &request.work, table.name)?;
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

    fn finish(&mut self, ended: &EndedTest<'_>) -> Figures {
        let mut out = Figures::default();
        out.checks.push(match ended.counters {
            Ok(_) => cache_hit(ended.figures, ended.request.target.facts().block_bytes.is_some()),
            Err(why) => Check::require(CACHE_HIT, false, why.clone()),
        });
        out
    }
}
