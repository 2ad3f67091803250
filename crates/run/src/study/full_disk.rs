//! What a failure has to do with a full disk of the database: PostgreSQL ends when it cannot write its log, MariaDB waits in
//! silence or refuses rows, and neither names the disk to its clients.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_database::{Target, TargetError};
use loadline_load::TestError;
use loadline_model::format::bytes;
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_storage::StorageFacts;

use super::StudyError;

/// With less free space a server may have failed for it: PostgreSQL needs a whole file of its log, 16 MiB by default, and gives
/// it back when that fails.
const TIGHT_BYTES: u64 = 64 << 20;

/// `failure` with the full disk, if it was one.
pub(super) fn explained(failure: StudyError, target: &dyn Target, info: &TargetInfo) -> StudyError {
    let more = |full| advice(full, target, info).unwrap_or_default();
    // Whatever statement met the full disk, the target cannot go on.
    let with_more = |e: TargetError| match e.is_full_disk() {
        true => TargetError::Refused(format!("{e}{}", more(true))),
        false => e.with(&more(false)),
    };
    match failure {
        StudyError::Target(e) => StudyError::Target(with_more(e)),
        StudyError::Test { test, workload, jobs, source } => {
            let source = match source {
                TestError::Target(e) => TestError::Target(with_more(e)),
                TestError::Counters(text) => TestError::Counters(format!("{text}{}", more(false))),
                other => other,
            };
            StudyError::Test { test, workload, jobs, source }
        }
        other => other,
    }
}

/// What follows the text of a failure. `says_full`: a job met the full disk.
pub(super) fn advice(says_full: bool, target: &dyn Target, info: &TargetInfo) -> Option<String> {
    let mut folders: Vec<String> = info.storage.values().map(|s| s.path.clone()).collect();
    if says_full && info.local {
        // A log of its own, such as a binary log. A server that has ended does not say where.
        folders.extend(target.log_space(0, 0).ok().and_then(|log| log.dir));
    }
    let now = |dir: &String| StorageFacts::of(Path::new(dir)).ok().map(|facts| facts.storage);
    let places: BTreeMap<String, Storage> =
        folders.iter().filter_map(now).map(|s| (format!("{} {}", s.source, s.mount_point), s)).collect();
    words(says_full, places.into_values())
}

fn words(says_full: bool, places: impl Iterator<Item = Storage>) -> Option<String> {
    let places: Vec<(u64, Storage)> = places.filter_map(|s| Some((s.free_bytes?, s))).collect();
    let tight = places.iter().any(|(free, _)| *free < TIGHT_BYTES);
    let shown = places
        .iter()
        .filter(|(free, _)| !tight || *free < TIGHT_BYTES)
        .map(|(free, s)| format!("{} free in {} ({} on {})", bytes(*free as f64), s.path, s.source, s.mount_point));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let what = match (says_full, tight, shown.is_empty()) {
        (true, _, true) => "A disk of the database is full".to_owned(),
        (true, true, false) => format!("A disk of the database is full: now {shown}"),
        // What failed may have been given back already, or it is the database's own limit.
        (true, false, false) => {
            format!("A disk of the database, a tablespace or a limit of tables is full: now {shown}")
        }
        (false, true, _) => format!("A disk of the database is nearly full, which may be the cause: {shown}"),
        (false, false, _) => return None,
    };
    Some(format!(
        ". {what}. Free space there, and start the server again if it ended; or have less written (--size, --duration, --jobs)"
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
        assert!(may.contains("may be the cause: 13.0 MiB free in /sda/db (/dev/sda on /sda). Free"), "{may}");
        let says = of(true, &[full, large]).unwrap();
        assert!(says.contains("is full: now 13.0 MiB free in /sda/db") && !says.contains("sdb"), "{says}");
        let freed = of(true, &[large]).unwrap();
        assert!(freed.contains("limit of tables is full: now 1.0 TiB free in /sdb/db"), "{freed}");
        // On another machine nothing more is known.
        assert!(of(true, &[]).unwrap().contains("A disk of the database is full. Free"));
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
                .contains("table is full. A disk of the database is full.")
        );
        let full = StudyError::Target(refusal(Cause::FullDisk, "no space").into());
        let full = explained(full, target.as_ref(), &info);
        assert!(matches!(full, StudyError::Target(TargetError::Refused(_))), "exit code 3, as everywhere: {full:?}");
        assert_eq!(said(failure(Cause::Other, "no such table")), "test 3 (X, 1 job) failed: no such table");
        assert_eq!(said(TestError::Interrupted), "test 3 (X, 1 job) failed: interrupted");
    }
}
