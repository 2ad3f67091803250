//! Whether the packages are the same when somebody else makes them.

use std::path::Path;
use std::process::Command;

use crate::build::Source;
use crate::{Result, command, dist};

/// Builds HEAD once more, in another directory, and compares each package by its bytes.
pub(crate) fn reproduce(source: &Source) -> Result<()> {
    let first = source.target.join("dist");
    let sums = |folder: &Path| {
        let path = folder.join("SHA256SUMS");
        std::fs::read_to_string(&path)
            .map_err(|e| format!("{}: {e}; first `cargo run -p xtask -- dist`", path.display()))
    };
    let before = sums(&first)?;
    let elsewhere = tempfile::tempdir_in(&source.target)?;
    let clone = elsewhere.path().join("clone");
    command::run(Command::new("git").args(["clone", "--quiet"]).args([&source.root, &clone]))?;
    let again = dist(&Source::at(&clone, Some(elsewhere.path().join("target")))?)?;
    let differs: Vec<&str> = sums(&again)?
        .lines()
        .zip(before.lines())
        .filter(|(again, before)| again != before)
        .filter_map(|(_, before)| before.split_whitespace().nth(1))
        .collect();
    if !differs.is_empty() {
        return Err(format!("not the same bytes: {}", differs.join(", ")).into());
    }
    println!("the same bytes, built in two directories");
    Ok(())
}
