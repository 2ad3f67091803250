//! The hardware limit of a test: the reference log writer does the same work directly before and after it.

use loadline_database::TargetError;
use loadline_model::{LogWriterPoint, TestLimit, column};
use loadline_workload::{Commit, Instrument as InstrumentSpec};

use super::{EndedTest, Instrument, Kind, Limits, RunContext};
use crate::figures::Figures;
use crate::reference::PendingLimit;
use crate::window::Request;

pub(super) const KIND: Kind = Kind {
    make: |listed| {
        (listed == InstrumentSpec::Limit).then(|| Box::new(Limit { pending: Ok(None) }) as Box<dyn Instrument>)
    },
    columns: &[column::LIMIT_TPS, column::LIMIT_SHARE_PCT],
    absent: "the limit of the log is measured only for workloads defined by their redo",
};

struct Limit {
    /// The measurement before the test, if one is made, or why it failed.
    pending: Result<Option<PendingLimit>, String>,
}

impl Instrument for Limit {
    fn prepare(&mut self, request: &mut Request, run: &RunContext<'_>) -> Result<(), TargetError> {
        self.pending = match run.limits {
            Limits::Reference(reference) => {
                redo_bytes(request, run).and_then(|redo| reference.before(&request.work, redo, request.jobs)).map(Some)
            }
            Limits::Points(_) => Ok(None),
            Limits::None(reason) => Err(reason.clone()),
        };
        Ok(())
    }

    fn finish(&mut self, ended: &EndedTest<'_>) -> Figures {
        let mut out = Figures::default();
        match self.limit(ended) {
            Ok(limit) => {
                out.set(column::LIMIT_TPS, limit.tps);
                let share = ended.figures.figure(column::COMMIT_THROUGHPUT_TPS).map(|tps| tps / limit.tps * 100.0);
                out.set_or_absent(column::LIMIT_SHARE_PCT, share, "there is no throughput to compare with it");
                out.limit = Some(limit);
            }
            Err(why) => out.set_all_absent(KIND.columns, &why),
        }
        out
    }
}

impl Limit {
    /// Measures after the test, or looks the limit up.
    fn limit(&mut self, ended: &EndedTest<'_>) -> Result<TestLimit, String> {
        let pending = std::mem::replace(&mut self.pending, Ok(None))?;
        match (pending, ended.run.limits) {
            (Some(pending), Limits::Reference(reference)) => reference.after(pending),
            (_, Limits::Points(points)) => {
                let seen = ended.figures.figure(column::REDO_BYTES_PER_TX);
                let redo = redo_bytes(ended.request, ended.run)
                    .or_else(|_| seen.ok_or("the redo of its transactions is unknown"))?;
                let work = &ended.request.work;
                let mix = work.program.varies().then_some(work.workload.code);
                LogWriterPoint::limit(points, mix, work.program.commit == Commit::Wait, redo, ended.request.jobs)
            }
            _ => Err("it was not measured".to_owned()),
        }
    }
}

/// Redo per transaction for the limit, bytes, as calibrated.
fn redo_bytes(request: &Request, run: &RunContext<'_>) -> Result<f64, String> {
    let calibrated = run.manifest.calibration.get(request.work.workload.code).and_then(|c| c.redo_bytes_per_tx);
    calibrated.ok_or_else(|| "the redo of its transactions is unknown before the test".to_owned())
}
