//! LGWR-LAT1: small transactions, 1–2 KiB of redo each, durable commit.

use super::lgwr;
use crate::instrument::Instrument;
use crate::program::Commit;
use crate::workload::{Param, RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(1);

/// LGWR-LAT1.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT1",
    group: "log-writer",
    summary: "small transactions, 1–2 KiB of redo each, durable commit",
    description: "Each transaction changes one of the job's own rows and waits until the change is durable. The figure is the commit latency that short business transactions see, and how many of them the log writer can make durable per second.",
    spoiled_by: "A commit that does not wait for the device (synchronous commit or fsync off), a write cache that forgets, a log on tmpfs; at the client also its own CPU.",
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
    instruments: &[Instrument::Limit],
    ..Workload::BASE
};
