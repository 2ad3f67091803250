//! Outcomes that a bench keeps between invocations: a JSON file for each, in a folder. Its page is made of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loadline_store::rfc3339;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arena::Outcome;

/// The folder that is `given`, or else `name` in cargo's target directory. Made if missing.
pub(crate) fn folder(given: Option<&Path>, name: &str) -> Outcome<PathBuf> {
    let folder = match given {
        Some(folder) => folder.to_owned(),
        // Cargo builds into <target>/<profile>/loadline-bench.
        None => std::env::current_exe()?.ancestors().nth(2).ok_or("no target directory")?.join(name),
    };
    fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?)
}

pub(crate) fn store(folder: &Path, name: &str, outcome: &impl Serialize) -> Outcome<()> {
    Ok(fs::write(folder.join(format!("{name}.json")), serde_json::to_vec_pretty(outcome)?)?)
}

/// All outcomes in `folder`, in the order of their names.
pub(crate) fn all<T: DeserializeOwned>(folder: &Path) -> Outcome<Vec<T>> {
    let files =
        fs::read_dir(folder)?.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    let mut files: Vec<PathBuf> = files.collect();
    // The order of folders is the filesystem's.
    files.sort();
    files.iter().map(|path| Ok(serde_json::from_slice(&fs::read(path)?)?)).collect()
}

/// Head of a table in Markdown, whose columns are separated by ` | `.
pub(crate) fn head(columns: &str) -> String {
    format!("| {columns} |\n|{}", " --- |".repeat(columns.matches(" | ").count() + 1))
}

/// Today, `2030-12-31`.
pub(crate) fn today() -> String {
    rfc3339(SystemTime::now()).chars().take(10).collect()
}

/// A folder in `folder` for the runs of one invocation, which the servers' users can pass through. Removed when dropped.
pub(crate) fn runs(folder: &Path) -> Outcome<tempfile::TempDir> {
    let scratch = tempfile::Builder::new().prefix("runs-").tempdir_in(folder)?;
    fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(scratch)
}
