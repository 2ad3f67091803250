//! Reads a stored run as reports take it, and checks which of its workloads are asked for.

use std::collections::BTreeSet;
use std::path::Path;

use loadline_model::format::did_you_mean;
use loadline_report::RunData;
use loadline_store::{StoredRun, notes};

use crate::exit::Failure;
use crate::output;

/// Everything about a stored run; its warnings are those of the data.
pub(crate) fn load(path: &Path) -> Result<(StoredRun, RunData), Failure> {
    let mut stored = StoredRun::open(path)?;
    let warnings = std::mem::take(&mut stored.warnings);
    let mut data = RunData::new(stored.manifest.clone(), stored.records.clone(), warnings);
    data.notes = notes(stored.path())?;
    for test in stored.records.iter().map(|r| r.test) {
        data.add(test, &stored.series(test)?, &stored.histograms(test)?);
    }
    if let Some(published) = &data.published {
        output::say(&format!("{}: {}", stored.id(), published.source));
    }
    Ok((stored, data))
}

/// Refuses a workload that is named, but of which there is no test.
pub(crate) fn check_workloads<'a>(named: &[String], there: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let there: BTreeSet<&str> = there.collect();
    let Some(unknown) = named.iter().find(|code| !there.contains(code.as_str())) else { return Ok(()) };
    let near = did_you_mean(unknown, there.iter().copied());
    let there = there.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("--workload {unknown}: there is no test of it{near}; there are {there}")))
}
