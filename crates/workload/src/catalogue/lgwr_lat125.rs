//! LGWR-LAT125: large transactions, about 125 KiB of redo each, durable commit.

use super::lgwr;
use crate::instrument::Instrument;
use crate::program::Commit;
use crate::workload::{Param, RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(125);

/// LGWR-LAT125.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT125",
    group: "log-writer",
    summary: "large transactions, about 125 KiB of redo each, durable commit",
    description: "Each transaction changes 125 of the job's own rows and waits until the changes are durable, as payment systems do.",
    spoiled_by: "A commit that does not wait for the device (synchronous commit or fsync off), a write cache that forgets, a log on tmpfs; at the client also its own CPU.",
    kpis: lgwr::LATENCY_KPIS,
    tables: lgwr::TABLES,
    params: &PARAMS,
    needs: lgwr::NEEDS_WAIT,
    redo: Some(RedoSize {
        min: 112.5 * 1024.0,
        nominal: 125.0 * 1024.0,
        max: 137.5 * 1024.0,
        payload: "payload",
        rows: "rows",
    }),
    evidence: Some(lgwr::EVIDENCE),
    program: |params| lgwr::program(params, Commit::Wait),
    instruments: &[Instrument::Limit],
    ..Workload::BASE
};
