//! LGWR-LAT1: small transactions, 1–2 KiB of redo each, durable commit.

use super::lgwr;
use crate::params::Param;
use crate::workload::Workload;

const PARAMS: [Param; 3] = lgwr::params(1);

/// LGWR-LAT1.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT1",
    summary: "small transactions, 1–2 KiB of redo each, durable commit",
    description: "Each transaction changes one of the job's own rows and waits until the change is durable. Shows the commit latency of short business transactions, and how many of them per second the log writer can make durable.",
    params: &PARAMS,
    redo: lgwr::redo_kib(1.0, 1.5, 2.0),
    ..lgwr::ROW_BY_ROW
};
