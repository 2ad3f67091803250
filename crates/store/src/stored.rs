//! Reads a run for reports: changes nothing, takes no lock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loadline_model::activity::ACTIVITY_SCHEMA;
use loadline_model::column::column;
use loadline_model::manifest::MANIFEST_SCHEMA;
use loadline_model::tries::split;
use loadline_model::{Activity, Json as _, Latencies, Manifest, Series, Snapshot, TestRecord};

use crate::error::{StoreError, damaged, io_error, json_text};
use crate::jsonl::{self, Tests, changed_warnings};
use crate::snapshots::{SNAPSHOTS_SCHEMA, newer};
use crate::{hlog, layout, series_csv, snapshots};

const READABLE: &str = "Check its permissions and the health of its filesystem.";

#[derive(Debug, Clone)]
pub struct StoredRun {
    pub(crate) path: PathBuf,
    pub manifest: Manifest,
    /// All complete tests, each by the try that counts, in the order of measurement of their first tries.
    pub records: Vec<TestRecord>,
    pub other_tries: Vec<TestRecord>,
    /// Skipped parts, e.g. a torn last line of `tests.jsonl`.
    pub warnings: Vec<String>,
}

impl StoredRun {
    /// Opens the run at `path` (its folder or its `manifest.json`) for reading.
    /// Damage is an error by file and line, a newer layout as well.
    pub fn open(path: &Path) -> Result<StoredRun, StoreError> {
        StoredRun::read(layout::locate(path)?, "was left out").map(|(run, _)| run)
    }

    /// Reads the run in the folder `path`. Returns also the length of its `tests.jsonl` up to the last complete line, bytes. `torn` says
    /// what is done with a torn one.
    pub(crate) fn read(path: PathBuf, torn: &str) -> Result<(StoredRun, u64), StoreError> {
        let manifest = read_manifest(&path)?;
        let file = path.join(layout::TESTS);
        let mut tests = read_tests(&file)?;
        let mut warnings: Vec<String> = torn_warning(&file, &tests, torn).into_iter().collect();
        warnings.extend(changed_warnings(&tests.records));
        warnings.extend(skip_unknown_columns(&file, &mut tests.records));
        let (records, other_tries) = split(tests.records);
        Ok((StoredRun { path, manifest, records, other_tries, warnings }, tests.whole_bytes))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> String {
        layout::id(&self.path)
    }

    pub fn series(&self, test: u32) -> Result<Series, StoreError> {
        let path = self.file(layout::SERIES, test)?;
        let text = String::from_utf8(read(&path)?).map_err(|_| damaged(&path, None, "it is not text"))?;
        series_csv::read(&text).map_err(|(line, what)| damaged(&path, Some(line), what))
    }

    /// The latencies of test number `test` by kind (`transaction`, `commit`, …), with exact sums and maxima.
    pub fn histograms(&self, test: u32) -> Result<Vec<(String, Latencies)>, StoreError> {
        self.file(layout::HISTOGRAMS, test).and_then(|path| read_histograms(&path))
    }

    /// The database's counters of test number `test` at window start (`open`) and end (`close`).
    pub fn snapshots(&self, test: u32) -> Result<Vec<(String, Snapshot)>, StoreError> {
        let path = self.file(layout::SNAPSHOTS, test)?;
        Ok(read_json(&path, SNAPSHOTS_SCHEMA, |text| serde_json::from_slice::<snapshots::File>(text))?.named())
    }

    /// Rows of the database's statistics views for test number `test`; `None` if the run has no such file, as those of older
    /// versions.
    pub fn activity(&self, test: u32) -> Result<Option<Activity>, StoreError> {
        let path = self.file(layout::ACTIVITY, test)?;
        if !path.exists() {
            return Ok(None);
        }
        read_json(&path, ACTIVITY_SCHEMA, Activity::from_json).map(Some)
    }

    fn file(&self, kind: layout::SideFile<'_>, test: u32) -> Result<PathBuf, StoreError> {
        if self.records.iter().chain(&self.other_tries).any(|r| r.test == test) {
            return Ok(layout::side_file(&self.path, kind, test));
        }
        Err(StoreError::NoSuchTest { run: self.path.clone(), test, tests: self.records.len() })
    }
}

/// The latencies of test number `test` of the run at `run` by kind, of a run that may go on.
pub fn histograms(run: &Path, test: u32) -> Result<Vec<(String, Latencies)>, StoreError> {
    read_histograms(&layout::side_file(run, layout::HISTOGRAMS, test))
}

fn read_histograms(path: &Path) -> Result<Vec<(String, Latencies)>, StoreError> {
    hlog::read(&read(path)?).map_err(|(line, what)| damaged(path, Some(line), what))
}

/// A JSON file whose `schema` is at most `known`.
pub(crate) fn read_json<T>(path: &Path, known: u32, made: fn(&[u8]) -> serde_json::Result<T>) -> Result<T, StoreError> {
    let text = read(path)?;
    if let Some(found) = newer(&text, known) {
        return Err(StoreError::Newer { path: path.to_owned(), line: None, found, known });
    }
    made(&text).map_err(|e| damaged(path, Some(e.line().max(1)), json_text(&e)))
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => damaged(path, None, "the file is missing"),
        _ => io_error("read", path, e, READABLE),
    })
}

/// The manifest of the run folder `run`, without its tests.
pub fn read_manifest(run: &Path) -> Result<Manifest, StoreError> {
    let path = run.join(layout::MANIFEST);
    let manifest: Manifest = read_json(&path, MANIFEST_SCHEMA, Manifest::from_json)?;
    if manifest.schema == 0 {
        return Err(damaged(&path, None, "its 'schema' is 0, which is invalid"));
    }
    Ok(manifest)
}

/// The contents of `tests.jsonl`, which is missing as long as no test was stored.
fn read_tests(path: &Path) -> Result<Tests, StoreError> {
    match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => jsonl::parse(path, &[]),
        Ok(bytes) => jsonl::parse(path, &bytes),
        Err(e) => Err(io_error("read", path, e, READABLE)),
    }
}

/// Removes figures of columns that only another version has. Returns a note of them.
fn skip_unknown_columns(file: &Path, records: &mut [TestRecord]) -> Option<String> {
    let mut unknown = BTreeSet::new();
    for record in records {
        let ids = record.figures.keys().chain(record.absent.keys());
        unknown.extend(ids.filter(|id| column(id).is_none()).cloned());
        record.figures.retain(|id, _| !unknown.contains(id));
        record.absent.retain(|id, _| !unknown.contains(id));
    }
    (!unknown.is_empty()).then(|| {
        let names = Vec::from_iter(unknown).join(", ");
        format!(
            "'{}': another version of loadline wrote columns that this one does not have, skipped: {names}",
            file.display()
        )
    })
}

fn torn_warning(file: &Path, tests: &Tests, what_was_done: &str) -> Option<String> {
    let (line, bytes) = tests.torn?;
    Some(format!(
        "'{}', line {line}: the last line is torn ({bytes} bytes; loadline was killed while writing it) and \
         {what_was_done}; the {} before it are complete",
        file.display(),
        if tests.records.len() == 1 { "1 test".to_owned() } else { format!("{} tests", tests.records.len()) },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_checks_of_another_version_are_skipped_with_one_note() {
        let mut record = TestRecord::blank("TP-LIGHT");
        record.figures = [("commits".to_owned(), 5.0), ("since_gone".to_owned(), 1.0)].into();
        record.absent = [("gone_too".to_owned(), "none".to_owned())].into();
        let text = serde_json::to_string(&record).unwrap();
        let with = |check: &str| text.replacen("\"checks\":[]", &format!("\"checks\":[{check}]"), 1);
        let check =
            r#"{"id":"read-soon","outcome":"failed","detail":"late"},{"id":"errors","outcome":"passed","detail":"0"}"#;
        let read: TestRecord = serde_json::from_str(&with(check)).unwrap();
        assert_eq!(read.checks.iter().map(|check| check.id.to_string()).collect::<Vec<_>>(), ["errors"]);
        assert!(serde_json::from_str::<TestRecord>(&with(r#"{"id":"errors"}"#)).is_err(), "damage is no other version");
        let mut records = [read.clone(), read];
        let note = skip_unknown_columns(Path::new("x/tests.jsonl"), &mut records).unwrap();
        assert!(note.contains("x/tests.jsonl") && note.ends_with("gone_too, since_gone"), "{note}");
        assert!(records.iter().all(|r| r.figures.len() == 1 && r.absent.is_empty()));
        assert_eq!(skip_unknown_columns(Path::new("x"), &mut records), None);
    }
}
