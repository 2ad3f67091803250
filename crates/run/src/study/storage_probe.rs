//! A short probe of the storage under log and data before a run's first test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use loadline_model::manifest::TargetInfo;
use loadline_model::plan::Payload;
use loadline_model::probe::{Operation, ProbedDir};
use loadline_storage::probe::{Point, ProbeError, ProbeOptions, probe};

use crate::reference::{Role, probe_options, writable_dir};

/// Shortest and longest time per directory, s, including the creation of the test file.
const SECONDS: [f64; 2] = [1.0, 4.0];
const FILE_BYTES: u64 = 128 << 20;

/// Operations to measure: commits of the log-writer workloads' sizes, single-block reads, bandwidth.
fn points() -> Vec<Point> {
    let point = |operation, size, depth| Point { operation, size, depth };
    let sync = [2 << 10, 4 << 10, 32 << 10, 128 << 10, 512 << 10];
    let mut all: Vec<Point> = sync.map(|size| point(Operation::SyncWriteFdatasyncPrealloc, size, 1)).into();
    all.extend([1, 32].map(|depth| point(Operation::RandomRead, 8 << 10, depth)));
    all.push(point(Operation::SequentialRead, 1 << 20, 8));
    all.push(point(Operation::SequentialWrite, 1 << 20, 8));
    all
}

/// Results by role, and notes about directories that were not probed. A directory is probed no longer than a test takes.
pub(crate) fn by_role(
    info: &TargetInfo,
    scratch: &Path,
    test_s: f64,
    payload: Payload,
    stop: &AtomicBool,
) -> Result<(BTreeMap<String, ProbedDir>, Vec<String>), ProbeError> {
    let (mut found, mut notes): (BTreeMap<String, ProbedDir>, _) = (BTreeMap::new(), Vec::new());
    let seconds = test_s.clamp(SECONDS[0], SECONDS[1]);
    for (role, name) in [(Role::Log, "log"), (Role::Data, "data")] {
        let dir = match writable_dir(info, role, scratch) {
            Ok(dir) => dir,
            Err(reason) => {
                notes.push(format!("the storage under the {name} was not probed: {reason}"));
                continue;
            }
        };
        let device = fs::metadata(&dir).map(|m| m.dev()).ok();
        // Log and data on one filesystem are probed once.
        if found.values().any(|p| Some(p.st_dev) == device) {
            continue;
        }
        let options = ProbeOptions { size: Some(FILE_BYTES), seconds, only: Some(points()), ..probe_options(payload) };
        match probe(&dir, &options, stop, &mut |_| ()) {
            Ok(probed) => {
                found.insert(name.to_owned(), probed);
            }
            Err(ProbeError::Interrupted) => return Err(ProbeError::Interrupted),
            Err(e) => notes.push(format!("the storage under the {name} was not probed: {e}")),
        }
    }
    Ok((found, notes))
}
