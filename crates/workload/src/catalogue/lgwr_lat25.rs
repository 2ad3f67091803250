//! LGWR-LAT25: medium transactions, about 25 KiB of redo each, durable commit.

use super::lgwr;
use crate::params::Param;
use crate::workload::Workload;

const PARAMS: [Param; 3] = lgwr::params(25);

/// LGWR-LAT25.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT25",
    summary: "medium transactions, about 25 KiB of redo each, durable commit",
    description: "Each transaction changes 25 of the job's own rows by one statement, in which the two halves of each row's payload change places, and waits until the changes are durable. Besides the latency of the log, its bandwidth begins to matter.",
    params: &PARAMS,
    redo: lgwr::redo_kib(22.5, 25.0, 27.5),
    ..lgwr::BASE
};
