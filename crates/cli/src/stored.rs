//! Reads a stored run as reports take it.

use std::path::Path;

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
