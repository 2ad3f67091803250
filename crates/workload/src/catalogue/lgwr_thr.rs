//! LGWR-THR: huge transactions, about 480 KiB of redo each, commit does not wait.

use super::lgwr;
use crate::params::Param;
use crate::program::Commit;
use crate::workload::{RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(480);

/// LGWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-THR",
    group: "log-writer",
    summary: "huge transactions, about 480 KiB of redo each, commit does not wait",
    description: "Each transaction changes 480 of the job's own rows and commits without waiting. Shows the rate at which the platform can write redo.",
    spoiled_by: "A log that is not written within the window (the log buffer is larger than the redo of the window), a log on tmpfs, checkpoints forced by a small log.",
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
    ..Workload::BASE
};
