//! Reads from the database's own cache: filled before a test, it must serve nearly all blocks.

use loadline_database::TargetError;
use loadline_model::check::Check;
use loadline_window::Request;
use loadline_workload::Instrument as InstrumentSpec;

use super::{EndedTest, Instrument, Kind, RunContext};
use crate::checks::blocks_read::{CACHE_HIT, cache_hit};
use crate::figures::Figures;
use crate::queries::rows;

pub(super) const KIND: Kind = Kind {
    make: |listed| (listed == InstrumentSpec::CacheHit).then(|| Box::new(CacheHit) as Box<dyn Instrument>),
    columns: &[],
    absent: "",
};

struct CacheHit;

impl Instrument for CacheHit {
    fn prepare(&mut self, request: &mut Request, _: &RunContext<'_>) -> Result<(), TargetError> {
        for table in request.work.workload.tables {
            rows(request.target.as_ref(), &request.work, table.name)?;
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
