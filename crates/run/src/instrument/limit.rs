//! What the hardware allows for a test: the reference log writer does the same work right before and after it.

use loadline_database::TargetError;
use loadline_model::{LogWriterPoint, TestLimit, column};
use loadline_workload::{Commit, Instrument as Listed};

use super::{Instrument, Kind, Limits, Over, Run};
use crate::figures::Figures;
use crate::reference::Bracket;
use crate::window::Request;

pub(super) const KIND: Kind = Kind {
    make: |listed| (listed == Listed::Limit).then(|| Box::new(Limit { half: Ok(None) }) as Box<dyn Instrument>),
    columns: &[column::LIMIT_TPS, column::LIMIT_SHARE_PCT],
    absent: "the limit of the log is measured for workloads that are defined by their redo",
};

struct Limit {
    /// What was measured before the test, if that is what is done, or why it could not be.
    half: Result<Option<Bracket>, String>,
}

impl Instrument for Limit {
    fn prepare(&mut self, request: &mut Request, run: &Run<'_>) -> Result<(), TargetError> {
        self.half = match run.limits {
            Limits::Reference(reference) => {
                redo_bytes(request, run).and_then(|redo| reference.before(&request.work, redo, request.jobs)).map(Some)
            }
            Limits::Points(_) => Ok(None),
            Limits::None(reason) => Err(reason.clone()),
        };
        Ok(())
    }

    fn finish(&mut self, over: &Over<'_>) -> Figures {
        let mut out = Figures::default();
        match self.limit(over) {
            Ok(limit) => {
                out.set(column::LIMIT_TPS, limit.tps);
                let share = over.figures.figure(column::COMMIT_THROUGHPUT_TPS).map(|tps| tps / limit.tps * 100.0);
                out.set_or_leave_out(column::LIMIT_SHARE_PCT, share, "there is no throughput to hold against it");
                out.limit = Some(limit);
            }
            Err(why) => out.leave_all_out(KIND.columns, &why),
        }
        out
    }
}

impl Limit {
    /// Measures the other half, or looks it up.
    fn limit(&mut self, over: &Over<'_>) -> Result<TestLimit, String> {
        let half = std::mem::replace(&mut self.half, Ok(None))?;
        match (half, over.run.limits) {
            (Some(half), Limits::Reference(reference)) => reference.after(half),
            (_, Limits::Points(points)) => {
                let seen = over.figures.figure(column::REDO_BYTES_PER_TX);
                let redo = redo_bytes(over.request, over.run)
                    .or_else(|_| seen.ok_or("the redo of its transactions is not known"))?;
                let work = &over.request.work;
                let mix = work.program.varies().then_some(work.workload.code);
                LogWriterPoint::limit(points, mix, work.program.commit == Commit::Wait, redo, over.request.jobs)
            }
            _ => Err("it was not measured".to_owned()),
        }
    }
}

/// Redo per transaction that the limit is measured with, bytes: what calibration saw.
fn redo_bytes(request: &Request, run: &Run<'_>) -> Result<f64, String> {
    let calibrated = run.manifest.calibration.get(request.work.workload.code).and_then(|c| c.redo_bytes_per_tx);
    calibrated.ok_or_else(|| "the redo of its transactions is not known before the test".to_owned())
}
