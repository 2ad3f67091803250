//! The runs in a folder: found by name, listed from what little of each is needed, and read whole only if every file of them is a
//! plain one inside the folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use loadline_model::column::ELAPSED_S;
use loadline_model::manifest::RunState;
use loadline_model::tries::split;
use loadline_model::variant::Paired;
use loadline_model::{TestRecord, Validity};
use loadline_report::{Headlines, Period, RunData, headlines};
use loadline_store::{StoreError, StoredRun, Tail, is_written, notes, parse_rfc3339};
use serde::Deserialize;

const LARGEST: u64 = 1 << 30;
/// Largest manifest, bytes. Its size is that of the plan and the server's settings.
const LARGEST_MANIFEST: u64 = 16 << 20;
const MOST_FILES: usize = 100_000;

#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) brief: Result<Brief, String>,
}

/// Parts of a manifest that the list shows. Everything else in it is skipped.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Brief {
    pub(super) started_at: String,
    pub(super) state: RunState,
    pub(super) plan: BriefPlan,
    pub(super) target: BriefTarget,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct BriefPlan {
    pub(super) platform: String,
    #[serde(default)]
    pub(super) workloads: Vec<BriefWorkload>,
    #[serde(default, alias = "arms", alias = "levels")]
    pub(super) paired: Option<Paired>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct BriefWorkload {
    pub(super) code: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct BriefTarget {
    #[serde(default)]
    pub(super) product: String,
    #[serde(default)]
    pub(super) version: String,
}

/// Facts that are looked up only for the runs that are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// `None` if there is no test, or if tests cannot be read.
    pub(super) tests: Option<Arc<Tests>>,
    /// Whether a loadline on this machine writes to it.
    pub(super) written: Option<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Tests {
    /// Valid, disturbed and refused ones, and imported ones, which nobody has checked.
    pub(super) counts: [usize; 4],
    pub(super) headlines: Vec<Headlines>,
    pub(super) ended: Option<SystemTime>,
}

impl Tests {
    fn new(records: &[TestRecord]) -> Tests {
        let kinds = [Some(Validity::Valid), Some(Validity::Disturbed), Some(Validity::Refused), None];
        let ended = |r: &TestRecord| {
            let length = Duration::try_from_secs_f64(r.figure(ELAPSED_S)?).ok()?;
            parse_rfc3339(&r.started_at)?.checked_add(length)
        };
        Tests {
            counts: kinds.map(|kind| records.iter().filter(|r| r.validity() == kind).count()),
            headlines: headlines(records),
            ended: records.iter().filter_map(ended).max(),
        }
    }
}

/// Length of a file and when it was changed.
type Stamp = (u64, SystemTime);

#[derive(Debug)]
pub(super) struct Runs {
    pub(super) dir: PathBuf,
    /// As [`super::ServeOptions::audited`].
    audited: fn(RunData) -> RunData,
    /// Manifest read of each run, and when.
    known: Mutex<BTreeMap<String, (Stamp, Arc<Listed>)>>,
    tests: Mutex<BTreeMap<String, (Stamp, Arc<Tests>)>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("there is no run '{0}' here")]
    Unknown(String),
    #[error("the run '{0}' holds what no run has ({1}), and is not read")]
    Odd(String, String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Runs {
    pub(super) fn new(dir: PathBuf, audited: fn(RunData) -> RunData) -> Runs {
        Runs { dir, audited, known: Mutex::default(), tests: Mutex::default() }
    }

    /// All runs, the newest first. Reads only manifests that changed since the last time.
    pub(super) fn list(&self) -> std::io::Result<Vec<Arc<Listed>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeMap::new();
        for entry in std::fs::read_dir(&self.dir)?.flatten() {
            // A link may lead out of the folder.
            let Ok(id) = entry.file_name().into_string() else { continue };
            if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            let path = entry.path().join("manifest.json");
            let Some(stamp) = stamp(&path) else { continue };
            let listed = match known.remove(&id) {
                Some((before, listed)) if before == stamp => listed,
                _ => Arc::new(Listed { id: id.clone(), brief: brief(&path, stamp.0) }),
            };
            next.insert(id, (stamp, listed));
        }
        *known = next;
        let mut all: Vec<Arc<Listed>> = known.values().map(|(_, listed)| Arc::clone(listed)).collect();
        drop(known);
        let started = |l: &Listed| l.brief.as_ref().map_or_else(|_| String::new(), |b| b.started_at.clone());
        all.sort_by_cached_key(|l| std::cmp::Reverse((started(l), l.id.clone())));
        Ok(all)
    }

    /// Tests of the run `id`, read from a file that changed since the last time.
    fn tests(&self, id: &str) -> Option<Arc<Tests>> {
        let folder = self.dir.join(id);
        let stamp = stamp(&folder.join("tests.jsonl")).filter(|(length, _)| *length <= LARGEST)?;
        let mut known = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tests)) = known.get(id).filter(|(before, _)| *before == stamp) {
            return Some(Arc::clone(tests));
        }
        let (records, _) = split(Tail::tests(&folder).records().ok()?.0);
        let tests = Arc::new(Tests::new(&records));
        known.insert(id.to_owned(), (stamp, Arc::clone(&tests)));
        Some(tests)
    }

    pub(super) fn seen(&self, id: &str) -> Seen {
        Seen { tests: self.tests(id), written: is_written(&self.dir.join(id)) }
    }

    pub(super) fn path(&self, id: &str) -> Result<PathBuf, RunError> {
        let unknown = || RunError::Unknown(id.to_owned());
        // One plain name; `..`, `/` and what else a path may hold are none.
        let mut parts = Path::new(id).components();
        let plain = matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(n)), None) if n == id);
        let path = self.dir.join(id);
        let found = std::fs::symlink_metadata(&path).map_err(|_| unknown())?;
        if !plain || !found.is_dir() || stamp(&path.join("manifest.json")).is_none() {
            return Err(unknown());
        }
        match odd(&path, 2, &mut 0) {
            Some(what) => Err(RunError::Odd(id.to_owned(), what)),
            None => Ok(path),
        }
    }

    pub(super) fn read(&self, id: &str) -> Result<(StoredRun, RunData), RunError> {
        let (stored, data) = read_run(&self.path(id)?)?;
        Ok((stored, (self.audited)(data)))
    }
}

/// Everything about the stored run at `path`; its warnings are those of the data.
///
/// # Errors
/// There is no run, or it is damaged.
pub fn read_run(path: &Path) -> Result<(StoredRun, RunData), StoreError> {
    let mut stored = StoredRun::open(path)?;
    let warnings = std::mem::take(&mut stored.warnings);
    let mut data = RunData::new(stored.manifest.clone(), stored.records.clone(), warnings);
    data.notes = notes(stored.path())?;
    for test in stored.records.iter().map(|r| r.test) {
        data.add(test, &stored.series(test)?, &stored.histograms(test)?);
    }
    Ok((stored, data))
}

/// Test number `test` of a stored run for its page; `None` if there is none of that number.
///
/// # Errors
/// A file of the test is damaged.
pub fn period(stored: &StoredRun, data: &RunData, test: u32) -> Result<Option<Period>, StoreError> {
    if data.records.iter().all(|r| r.test != test) {
        return Ok(None);
    }
    let (snapshots, series, activity) = (stored.snapshots(test)?, stored.series(test)?, stored.activity(test)?);
    Ok(Period::of_test(data, test, &snapshots, series, activity))
}

/// Length and time of a plain file that is no link.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::symlink_metadata(path).ok().filter(|m| m.is_file())?;
    Some((found.len(), found.modified().ok()?))
}

fn brief(path: &Path, length: u64) -> Result<Brief, String> {
    if length > LARGEST_MANIFEST {
        return Err(format!("its manifest has {length} bytes"));
    }
    let text = std::fs::read(path).map_err(|e| e.to_string())?;
    serde_json::from_slice(&text).map_err(|e| format!("its manifest is damaged: {e}"))
}

/// Anything in a folder that is neither a plain file of usual size nor a folder of such. Links could lead anywhere, and reading a
/// pipe would never end.
fn odd(folder: &Path, depth: usize, seen: &mut usize) -> Option<String> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        *seen += 1;
        let name = || entry.file_name().to_string_lossy().into_owned();
        let Ok(found) = entry.metadata() else { continue };
        if found.is_dir() {
            let inside = if depth > 0 { odd(&entry.path(), depth - 1, seen) } else { Some("a folder".to_owned()) };
            if let Some(what) = inside {
                return Some(format!("{}/{what}", name()));
            }
        } else if !found.is_file() {
            return Some(format!("{}: no plain file", name()));
        } else if found.len() > LARGEST {
            return Some(format!("{}: {} bytes", name(), found.len()));
        }
        if *seen > MOST_FILES {
            return Some(format!("more than {MOST_FILES} files"));
        }
    }
    None
}
