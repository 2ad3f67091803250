//! Refusals of the server for one workload do not end the run: the workload is skipped with the reason, and the rest is measured.
//!
//! And what a failure has to do with a full disk of the database: PostgreSQL ends when it cannot write its log, MariaDB waits in
//! silence or refuses rows, and neither names the disk to its clients.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loadline_database::{Target, TargetError, Work};
use loadline_load::TestError;
use loadline_model::format::{bytes, counted};
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::{PlannedWorkload, SkippedWorkload};
use loadline_model::variant::Letter;
use loadline_storage::StorageFacts;

use super::{Context, StudyError};
use crate::live::Event;

/// With less free space a server may have failed for it: PostgreSQL gives a whole file of its log, 16 MiB, back when it fails.
const TIGHT_BYTES: u64 = 64 << 20;

/// Part of a workload that the server refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    Whole,
    /// Tests with so many jobs, and so those with more.
    Jobs(u32),
    /// A value of the swept parameter.
    Value(String, i64),
    /// One of several arms that are compared with the first, in tests with so many jobs and more.
    Arm(Letter, u32),
}

#[derive(Default)]
pub(super) struct Refusals {
    /// Each with the code of its workload.
    all: Vec<(String, Refused)>,
    /// The first one: the run's error, if nothing at all could be measured.
    pub(super) first: Option<StudyError>,
}

impl Refusals {
    /// Whether a test of `code` with so many jobs, this value of the swept parameter or this `other` arm of its pairs is left out.
    pub(super) fn leaves_out(&self, code: &str, jobs: u32, value: Option<i64>, other: Option<Letter>) -> bool {
        let of_test = |refused: &Refused| match refused {
            Refused::Whole => true,
            Refused::Jobs(from) => value.is_none() && jobs >= *from,
            Refused::Value(_, refused) => value == Some(*refused),
            Refused::Arm(arm, from) => other == Some(*arm) && jobs >= *from,
        };
        self.all.iter().any(|(of, refused)| of == code && of_test(refused))
    }
}

/// Whether a full disk is why, if the server refused what it was asked, or no rate meets the objective; `None` for other failures. A lost
/// session is no refusal, as the server may have started anew, unless a full disk ended it.
fn is_full_disk(failure: &StudyError) -> Option<bool> {
    match failure {
        StudyError::Objective(_) => Some(false),
        StudyError::Target(e) | StudyError::Test { source: TestError::Target(e), .. } => {
            let refused = matches!(e, TargetError::Server(_) | TargetError::Unsupported(_) | TargetError::NoSpace(_));
            refused.then(|| e.is_full_disk())
        }
        _ => None,
    }
}

impl Context<'_> {
    /// The workload with its tables there, also for later tests of `variant`; `None` if the server refuses it, and `refused` is left out.
    pub(super) fn prepared(
        &mut self,
        workload: &PlannedWorkload,
        variant: usize,
        refused: Refused,
    ) -> Result<Option<Arc<Work>>, StudyError> {
        let key = (variant, workload.code.clone());
        if let Some(work) = self.works.get(&key) {
            return Ok(Some(Arc::clone(work)));
        }
        match self.prepare(workload) {
            Ok(work) => Ok(Some(Arc::clone(self.works.entry(key).or_insert(work)))),
            Err(e) => self.leave_out_refused(workload, refused, e).map(|()| None),
        }
    }

    /// Leaves out of `workload` what was `refused` if `failure` is the server's refusal and the server still answers; else returns it.
    /// Drops the tables of one that is left out as a whole, and a data set that is not complete, if a disk is full: they may be what filled
    /// it.
    pub(super) fn leave_out_refused(
        &mut self,
        workload: &PlannedWorkload,
        refused: Refused,
        failure: StudyError,
    ) -> Result<(), StudyError> {
        let full_disk = match is_full_disk(&failure) {
            Some(full_disk) if !self.stopped() && self.side.target.info().is_ok() => full_disk,
            _ => return Err(failure),
        };
        let failure = explained(failure, self.side.target.as_ref(), &self.side.info);
        if self.tries.end_try() {
            self.warn(format!("{}: a disturbed test could not be measured again: {failure}", workload.code));
            return Ok(());
        }
        let why = match &failure {
            StudyError::Test { source, .. } => source.to_string(),
            failure => failure.to_string(),
        };
        let measured = self.records.iter().any(|r| r.workload == workload.code);
        let reason = match &refused {
            Refused::Jobs(jobs) if measured => format!("with {} and more: {why}", counted(*jobs as usize, "job")),
            Refused::Value(name, value) => format!("with {name} = {value}: {why}"),
            Refused::Arm(arm, 0) => format!("arm {arm}: {why}"),
            Refused::Arm(arm, jobs) => format!("arm {arm} with {} and more: {why}", counted(*jobs as usize, "job")),
            Refused::Jobs(_) | Refused::Whole => why,
        };
        if refused == Refused::Whole
            && let Ok(work) = self.work(workload, &Default::default())
        {
            self.drop_unneeded_tables(&work);
        }
        if full_disk {
            self.drop_partial_data_set();
        }
        let skipped = SkippedWorkload { code: workload.code.clone(), reason };
        self.listener.on(Event::Skipped(&skipped));
        self.manifest.plan.skipped.push(skipped);
        self.refused.all.push((workload.code.clone(), refused));
        self.refused.first.get_or_insert(failure);
        Ok(self.folder.write_manifest(&self.manifest)?)
    }

    /// Drops a data set whose loading filled a disk: no other workload can use it, and none could write. One that the user keeps stays.
    fn drop_partial_data_set(&mut self) {
        let keeps = self.manifest.plan.keep_data;
        let role = if keeps { None } else { self.side.target.abilities().tables };
        let Some(role) = role else { return };
        let is_partial = role.data_set().is_ok_and(|tables| tables.iter().any(|table| !table.complete));
        if let Some(e) = is_partial.then(|| role.drop_data_set()).and_then(Result::err) {
            self.warn(format!("the data set that filled the disk could not be dropped: {e}"));
        }
    }
}

/// `failure` with the full disk, if it was one.
pub(super) fn explained(mut failure: StudyError, target: &dyn Target, info: &TargetInfo) -> StudyError {
    let more = |full| advice(full, target, info).unwrap_or_default();
    match &mut failure {
        // Whatever statement met the full disk, the target cannot go on.
        StudyError::Target(e) | StudyError::Test { source: TestError::Target(e), .. } if e.is_full_disk() => {
            *e = TargetError::Refused(format!("{e}{}", more(true)));
        }
        StudyError::Target(e) | StudyError::Test { source: TestError::Target(e), .. } => {
            *e = e.clone().with(&more(false));
        }
        StudyError::Test { source: TestError::Counters(text), .. } => text.push_str(&more(false)),
        _ => {}
    }
    failure
}

/// Advice after the text of a failure. `says_full`: a job met the full disk.
pub(super) fn advice(says_full: bool, target: &dyn Target, info: &TargetInfo) -> Option<String> {
    let mut folders: Vec<String> = info.storage.values().map(|s| s.path.clone()).collect();
    if says_full && info.local {
        // A log of its own, such as a binary log. A server that has ended does not say where.
        folders.extend(target.log_space(0, 0).ok().and_then(|log| log.dir));
    }
    let now = |dir: &String| StorageFacts::read(Path::new(dir)).ok().map(|facts| facts.storage);
    let places: BTreeMap<String, Storage> =
        folders.iter().filter_map(now).map(|s| (format!("{} {}", s.source, s.mount_point), s)).collect();
    words(says_full, places.into_values())
}

fn words(says_full: bool, places: impl Iterator<Item = Storage>) -> Option<String> {
    let places: Vec<(u64, Storage)> = places.filter_map(|s| Some((s.free_bytes?, s))).collect();
    let what = match says_full {
        // What failed may have been given back already.
        true => "A disk of the database is full, or a tablespace or a limit of tables",
        false if places.iter().any(|(free, _)| *free < TIGHT_BYTES) => {
            "A disk of the database is nearly full, which may be the cause"
        }
        false => return None,
    };
    let free = |(free, s): &(u64, Storage)| {
        format!("{} free in {} ({} on {})", bytes(*free as f64), s.path, s.source, s.mount_point)
    };
    let shown = places.iter().map(free).collect::<Vec<_>>().join(", ");
    let now = if shown.is_empty() { String::new() } else { format!(": now {shown}") };
    Some(format!(
        ". {what}{now}. Free space there, and start the server again if it ended; or have less written (--size, --duration, --jobs)"
    ))
}

#[cfg(test)]
mod tests {
    use loadline_database::{Cause, OpenRequest, Refusal, open};

    use super::*;

    fn place(name: &str, free: Option<u64>) -> Storage {
        let (path, mount_point) = (format!("/{name}/db"), format!("/{name}"));
        Storage { path, mount_point, source: format!("/dev/{name}"), free_bytes: free, ..Storage::default() }
    }

    #[test]
    fn the_full_disk_is_named_with_its_folder_and_free_space() {
        let of = |says, places: &[(&str, u64)]| words(says, places.iter().map(|(n, free)| place(n, Some(*free))));
        let (full, large) = (("sda", 13 << 20), ("sdb", 1 << 40));
        assert_eq!(of(false, &[large]), None, "it is something else");
        let may = of(false, &[full, large]).unwrap();
        assert!(may.contains("may be the cause: now 13.0 MiB free in /sda/db (/dev/sda on /sda), 1.0 TiB"), "{may}");
        assert!(of(true, &[large]).unwrap().contains("limit of tables: now 1.0 TiB free in /sdb/db"));
        // On another machine nothing more is known.
        assert!(of(true, &[]).unwrap().contains("limit of tables. Free"));
        assert_eq!(words(false, [place("x", None)].into_iter()), None);
    }

    #[test]
    fn only_failures_of_the_target_are_explained() {
        let (info, target) = (TargetInfo::default(), open(&OpenRequest::new("null:", "/tmp".into())).unwrap());
        let refusal = |cause, text: &str| Refusal { cause, code: String::new(), text: text.to_owned() };
        let failure = |cause, text| TestError::Target(refusal(cause, text).into());
        let said = |source| {
            let e = StudyError::Test { test: 3, workload: "X".to_owned(), jobs: 1, source };
            explained(e, target.as_ref(), &info).to_string()
        };
        assert!(
            said(failure(Cause::FullDisk, "the table is full"))
                .contains("table is full. A disk of the database is full,")
        );
        let full = StudyError::Target(refusal(Cause::FullDisk, "no space").into());
        let full = explained(full, target.as_ref(), &info);
        assert!(matches!(full, StudyError::Target(TargetError::Refused(_))), "exit code 3, as everywhere: {full:?}");
        assert_eq!(said(failure(Cause::Other, "no such table")), "test 3 (X, 1 job) failed: no such table");
        assert_eq!(said(TestError::Interrupted), "test 3 (X, 1 job) failed: interrupted");
    }
}
