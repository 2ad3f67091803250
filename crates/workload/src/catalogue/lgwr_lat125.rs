//! LGWR-LAT125: large transactions, about 125 KiB of redo each, durable commit.

use super::lgwr;
use crate::params::Param;
use crate::workload::Workload;

const PARAMS: [Param; 3] = lgwr::params(125);

/// LGWR-LAT125.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-LAT125",
    summary: "large transactions, about 125 KiB of redo each, durable commit",
    description: "Each transaction changes 125 of the job's own rows by one statement, in which the two halves of each row's payload change places, and waits until the changes are durable, as payment systems do.",
    params: &PARAMS,
    redo: lgwr::redo_kib(112.5, 125.0, 137.5),
    ..lgwr::BASE
};
