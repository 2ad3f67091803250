//! LGWR-THR: huge transactions, about 480 KiB of redo each, commit that does not wait.

use super::lgwr;
use crate::instrument::Instrument;
use crate::program::Commit;
use crate::workload::{Param, RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(480);

/// LGWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-THR",
    group: "log-writer",
    summary: "huge transactions, about 480 KiB of redo each, commit that does not wait",
    description: "Each transaction changes 480 of the job's own rows and commits without waiting. The figure is the rate at which the platform can write redo.",
    spoiled_by: "A log that is not written at all within the window (a log buffer larger than what is written), a log on tmpfs, checkpoints forced by a small log.",
    kpis: lgwr::THROUGHPUT_KPIS,
    tables: lgwr::TABLES,
    params: &PARAMS,
    needs: lgwr::NEEDS_NOWAIT,
    redo: Some(RedoSize {
        min: 432.0 * 1024.0,
        nominal: 480.0 * 1024.0,
        max: 528.0 * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    program: |params| lgwr::program(params, Commit::Nowait),
    instruments: &[Instrument::Limit],
    ..Workload::BASE
};
