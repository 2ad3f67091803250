//! LGWR-LAT1: small transactions, 1–2 KiB of redo each, durable commit.

use super::lgwr;
use crate::params::Param;
use crate::program::Commit;
use crate::workload::{RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(1);

/// LGWR-LAT1.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT1",
    group: "log-writer",
    summary: "small transactions, 1–2 KiB of redo each, durable commit",
    description: "Each transaction changes one of the job's own rows and waits until the change is durable. Shows the commit latency of short business transactions, and how many of them per second the log writer can make durable.",
    spoiled_by: "Commits that do not wait for the device (synchronous commit or fsync off), a write cache that loses data, a log on tmpfs. With the client driver, also a client short of CPU.",
    kpis: lgwr::LATENCY_KPIS,
    tables: lgwr::TABLES,
    params: &PARAMS,
    needs: lgwr::NEEDS_WAIT,
    redo: Some(RedoSize {
        min: 1.0 * 1024.0,
        nominal: 1.5 * 1024.0,
        max: 2.0 * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    program: |params| lgwr::program(params, Commit::Wait),
    ..Workload::BASE
};
