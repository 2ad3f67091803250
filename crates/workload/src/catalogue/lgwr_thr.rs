//! LGWR-THR: huge transactions, about 480 KiB of redo each, commit does not wait.

use loadline_model::{Capability, column};

use super::lgwr;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::params::Param;
use crate::program::Commit;
use crate::workload::{Kpi, Workload};

const PARAMS: [Param; 3] = lgwr::params(480);

/// LGWR-THR.
pub(super) static WORKLOAD: Workload = Workload {
    code: "LGWR-THR",
    summary: "huge transactions, about 480 KiB of redo each, commit does not wait",
    description: "Each transaction changes 480 of the job's own rows by one statement, in which the two halves of each row's payload change places, and commits without waiting. Shows the rate at which the platform can write redo.",
    named_for: NamedFor {
        components: &[Component::Log],
        doing: "redo throughput",
        instead: &[lgwr::FEW_CPUS, ONE_WRITER],
    },
    spoiled_by: "A log that is not written within the window (the log buffer is larger than the redo of the window), a log on tmpfs, checkpoints forced by a small log.",
    kpis: &[
        Kpi { column: column::REDO_MIB_PER_S, title: "redo throughput" },
        Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "commit throughput" },
    ],
    params: &PARAMS,
    needs: &[Capability::Redo, Capability::CommitNowait],
    redo: lgwr::redo_kib(432.0, 480.0, 528.0),
    program: |params| lgwr::program(params, Commit::Nowait),
    ..lgwr::BASE
};
