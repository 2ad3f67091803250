//! LGWR-LAT25: medium transactions, about 25 KiB of redo each, durable commit.

use super::lgwr;
use crate::instrument::Instrument;
use crate::program::Commit;
use crate::workload::{Param, RedoSize, Workload};

const PARAMS: [Param; 3] = lgwr::params(25);

/// LGWR-LAT25.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT25",
    group: "log-writer",
    summary: "medium transactions, about 25 KiB of redo each, durable commit",
    description: "Each transaction changes 25 of the job's own rows and waits until the changes are durable. Here the bandwidth of the log begins to count beside its latency.",
    spoiled_by: "A commit that does not wait for the device (synchronous commit or fsync off), a write cache that forgets, a log on tmpfs; at the client also its own CPU.",
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
    instruments: &[Instrument::Limit],
    ..Workload::BASE
};
