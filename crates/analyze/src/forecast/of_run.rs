//! Series of a stored run: its valid sweeps of closed loops over jobs.

use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use loadline_model::{Manifest, TestRecord};

use super::series::{Point, Series, SeriesError};
use crate::sweep::{Sweep, sweeps};

/// The series in `records`, and what was left out or is to be known of them, in words.
///
/// # Errors
/// A figure that no series can have.
pub fn of_run(manifest: &Manifest, records: &[TestRecord]) -> Result<(Vec<Series>, Vec<String>), SeriesError> {
    let mut remarks = Vec::new();
    if manifest.state != RunState::Complete {
        remarks.push("the run is not complete: its tests count as they are".to_owned());
    }
    let invalid = records.iter().filter(|r| !r.valid).count();
    if invalid > 0 {
        remarks.push(format!("{invalid} of {} tests are invalid and left out", records.len()));
    }
    let disturbed = records.iter().filter(|r| r.valid && r.disturbed_by.is_some()).count();
    if disturbed > 0 {
        remarks.push(format!(
            "{disturbed} of {} tests were disturbed by others: what is forecast is the disturbed machine",
            records.len()
        ));
    }
    let mut found = Vec::new();
    for sweep in sweeps(records) {
        let points = Point::of_sweep(&sweep);
        let why = if sweep.over_jobs() { not_closed(&sweep) } else { Some("it is no sweep over jobs") };
        let why =
            why.or_else(|| (points.len() < 2).then_some("it has fewer than 2 valid job counts with a throughput"));
        match why {
            Some(why) => remarks.push(format!("{} is left out: {why}", sweep.workload)),
            None => found.push(Series::new(&sweep.platform, &name(&sweep, records), &points)?),
        }
    }
    Ok((found, remarks))
}

/// Why the jobs of `sweep` are no closed loop, if so.
fn not_closed(sweep: &Sweep) -> Option<&'static str> {
    match &sweep.load {
        load if load.is_mixed() => Some("its jobs are a mix of populations"),
        load if load.has_rate() => Some("its rate was given: no closed loop"),
        _ => None,
    }
}

/// Workload, with what distinguishes the sweep from others of the run.
fn name(sweep: &Sweep, records: &[TestRecord]) -> String {
    let others = || records.iter().filter(|r| r.workload == sweep.workload);
    let mut name = sweep.workload.clone();
    if others().any(|r| r.driver != sweep.driver) {
        name += &format!(", {} driver", sweep.driver);
    }
    if others().any(|r| r.nodes != sweep.nodes) {
        name += &format!(", {}", counted(sweep.nodes as usize, "node"));
    }
    name
}
