//! Figures of the data-load table that come from the jobs' own times and parameters.

use loadline_model::TestRecord;
use loadline_target::Work;

use crate::job::JobResult;

/// Sets them.
pub(crate) fn load_figures(record: &mut TestRecord, work: &Work, merged: &JobResult) {
    let times = merged.transaction.mean_ns().zip(merged.commit.mean_ns());
    match times {
        Some((all, commit)) => record.set("sql_service_time_s", (all - commit).max(0.0) / 1e9),
        None => {
            let why = record.absent.get("commit_time_ns_mean").cloned();
            let why = why.unwrap_or_else(|| "no transaction completed in the window".to_owned());
            record.leave_out("sql_service_time_s", why);
        }
    }
    if work.params.to_map().contains_key("indexes") {
        record.set("indexes", work.params.get("indexes") as f64);
    } else {
        record.leave_out("indexes", "only DBL-22 loads tables without and with indexes");
    }
}
