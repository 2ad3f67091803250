//! Notes on a run in Markdown: `notes.md` of the whole run, `notes/<workload>.md` of a workload.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::atomic::replace;
use crate::error::{StoreError, io_error};

const RUN: &str = "notes.md";
const WORKLOADS: &str = "notes";
/// Most bytes of a file of notes: it is part of every report.
const MOST_BYTES: u64 = 1 << 20;
const READABLE: &str = "Check the file: notes are Markdown in UTF-8.";

/// The notes of the run in folder `run` by workload, and of the whole run under the empty name.
/// Fails if a file is not UTF-8, or larger than 1 MiB.
pub fn notes(run: &Path) -> Result<BTreeMap<String, String>, StoreError> {
    let mut out = BTreeMap::new();
    let mut add = |name: &str, path: &Path| -> Result<(), StoreError> {
        let text = read(path)?;
        if !text.trim().is_empty() {
            out.insert(name.to_owned(), text);
        }
        Ok(())
    };
    add("", &run.join(RUN))?;
    let Ok(entries) = std::fs::read_dir(run.join(WORKLOADS)) else { return Ok(out) };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".md"));
        if let Some(name) = name.filter(|n| !n.is_empty() && !n.starts_with('.')) {
            add(name, &path)?;
        }
    }
    Ok(out)
}

/// Adds the paragraph `text` to the notes of the run in folder `run`, or of its `workload`. Returns the file.
pub fn add_note(run: &Path, workload: Option<&str>, text: &str) -> Result<PathBuf, StoreError> {
    let path = match workload {
        None => run.join(RUN),
        // The code of a user's own workload may be any text.
        Some(code) if code.is_empty() || code.starts_with('.') || code.contains(['/', '\0']) => {
            return Err(StoreError::BadName(code.to_owned()));
        }
        Some(code) => run.join(WORKLOADS).join(format!("{code}.md")),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| io_error("create", folder, e, "Check its permissions."))?;
    }
    let before = read(&path)?;
    let after =
        [before.trim_end(), text.trim()].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n\n") + "\n";
    if after.len() as u64 > MOST_BYTES {
        return Err(too_large(&path));
    }
    replace(&path, after.as_bytes())?;
    Ok(path)
}

/// The file's text; empty if there is none.
fn read(path: &Path) -> Result<String, StoreError> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Ok(meta) if meta.len() > MOST_BYTES => return Err(too_large(path)),
        _ => {}
    }
    std::fs::read_to_string(path).map_err(|e| io_error("read", path, e, READABLE))
}

fn too_large(path: &Path) -> StoreError {
    let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, "notes may have 1 MiB");
    io_error("use", path, cause, "Shorten them.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_added_to_the_run_and_its_workloads() {
        let run = tempfile::tempdir().unwrap();
        assert!(notes(run.path()).unwrap().is_empty());
        add_note(run.path(), None, "One.\n").unwrap();
        add_note(run.path(), None, "Two.").unwrap();
        add_note(run.path(), Some("LGWR-LAT1"), "*Three*").unwrap();
        let all = notes(run.path()).unwrap();
        assert_eq!(all[""], "One.\n\nTwo.\n");
        assert_eq!(all["LGWR-LAT1"], "*Three*\n");
        assert!(add_note(run.path(), Some("../x"), "a").is_err());
        assert!(add_note(run.path(), None, &"x".repeat(2 << 20)).is_err());
        std::fs::write(run.path().join(RUN), [0xff]).unwrap();
        assert!(notes(run.path()).is_err());
    }
}
