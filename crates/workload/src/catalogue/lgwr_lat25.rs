//! LGWR-LAT25: medium transactions, about 25 KiB of redo each, durable commit.

use super::lgwr;
use crate::params::Param;
use crate::program::Commit;
use crate::workload::{RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(25);

/// LGWR-LAT25.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT25",
    group: "log-writer",
    summary: "medium transactions, about 25 KiB of redo each, durable commit",
    description: "Each transaction changes 25 of the job's own rows and waits until the changes are durable. Besides the latency of the log, its bandwidth begins to matter.",
    spoiled_by: "Commits that do not wait for the device (synchronous commit or fsync off), a write cache that loses data, a log on tmpfs. With the client driver, also a client short of CPU.",
    kpis: lgwr::LATENCY_KPIS,
    tables: lgwr::TABLES,
    params: &PARAMS,
    needs: lgwr::NEEDS_WAIT,
    redo: Some(RedoSize {
        min: 22.5 * 1024.0,
        nominal: 25.0 * 1024.0,
        max: 27.5 * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    program: |params| lgwr::program(params, Commit::Wait),
    ..Workload::BASE
};
