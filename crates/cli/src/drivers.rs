//! With which drivers a target runs a workload.

use loadline_database::TargetKind;
use loadline_model::Driver;
use loadline_run::plan::{Refusal, refusal};
use loadline_workload::Workload;

/// Each driver, with the reason if the target cannot run the workload with it.
pub(crate) fn drivers(workload: &Workload, kind: &TargetKind) -> Vec<(Driver, Option<Refusal>)> {
    Driver::ALL.iter().map(|d| (*d, refusal(workload, kind, *d))).collect()
}

/// The drivers with which the target runs the workload, preferred first.
pub(crate) fn runs_with(workload: &Workload, kind: &TargetKind) -> Vec<Driver> {
    drivers(workload, kind).into_iter().filter(|(_, refused)| refused.is_none()).map(|(d, _)| d).collect()
}
