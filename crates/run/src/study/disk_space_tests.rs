//! Tests of the check for free disk space.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::testing::{planned, sqlite, target};

const GIB: u64 = 1 << 30;

fn plan(codes: &[&str], more: &str) -> Plan {
    planned(&format!("workload = {codes:?}\npatience = '0'\n{more}"))
}

fn storage(free: u64, mount_point: &str) -> Storage {
    let free_bytes = Some(free);
    Storage { path: format!("{mount_point}/db"), mount_point: mount_point.into(), free_bytes, ..Storage::default() }
}

fn info(data: u64, log: Option<u64>) -> TargetInfo {
    let mut all = BTreeMap::from([("data".to_owned(), storage(data, "/data"))]);
    all.extend(log.map(|free| ("log".to_owned(), storage(free, "/log"))));
    TargetInfo { storage: all, ..TargetInfo::default() }
}

fn database() -> (tempfile::TempDir, Box<dyn Target>) {
    let dir = tempfile::tempdir().unwrap();
    let target = sqlite(dir.path());
    (dir, target)
}

/// The only workload of `plan`.
fn work(plan: &Plan) -> Work {
    work_of(&Default::default(), plan, &plan.workloads[0], &Default::default()).unwrap()
}

/// The only workload of `plan`, with its data.
fn loaded(target: &dyn Target, plan: &Plan) -> Work {
    let work = work(plan);
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    work
}

fn refusal(check: Result<SpaceCheck, StudyError>) -> String {
    check.map(|r| r.notes).unwrap_err().to_string()
}

#[test]
fn workload_tables_count_the_largest_or_all() {
    let (_dir, target) = database();
    let codes = ["DBWR-THR", "STO-RANDOM", "STO-READ-ASYNC"];
    let of = |repeat: u32, free: u64| {
        let plan = plan(&codes, &format!("size = '1GiB'\nrepeat = {repeat}"));
        check(target.as_ref(), &plan, &info(free, None), true)
    };
    assert!(of(1, 2 * GIB).unwrap().notes.is_empty(), "one is dropped before the next is created");
    let said = refusal(of(1, GIB / 2));
    assert!(said.contains("the tables of") && said.contains("512.0 MiB is free"), "{said}");
    let said = refusal(of(2, 2 * GIB));
    assert!(codes.iter().all(|code| said.contains(code)), "all are needed again: {said}");
    let alone = plan(&["DBWR-THR"], "size = '8TiB'");
    let said = refusal(check(target.as_ref(), &alone, &info(100 * GIB, None), true));
    assert!(said.contains("DBWR-THR") && said.contains("TiB"), "{said}");
}

#[test]
fn the_log_is_compared_with_its_own_filesystem() {
    let (_dir, target) = database();
    let need = Size { data: 10 * GIB, indexes: GIB };
    let check = |force, info| check_space(target.as_ref(), &info, "it needs", need, force);
    let log = target.log_space(10 * GIB, GIB).unwrap().bytes;
    assert!(log < 2 * GIB, "log files are reused: {log}");
    assert!(check(false, info(11 * GIB + log, None)).is_ok());
    assert!(check(false, info(11 * GIB, None)).is_err(), "all in one place");
    assert!(check(false, info(11 * GIB, Some(log))).is_ok());
    let said = check(false, info(11 * GIB, Some(log - 1))).unwrap_err().to_string();
    assert!(said.contains("/log/db") && said.contains("--force"), "{said}");
    let notes = check(true, info(GIB, Some(0))).unwrap();
    assert!(notes.len() == 2 && notes[0].contains("/data/db") && notes[1].contains("(--force)"), "{notes:?}");
}

#[test]
fn only_missing_data_need_free_space() {
    let (_dir, target) = database();
    let plan = plan(&["SRV-QUERY1"], "size = '1MiB'");
    let works = [work(&plan)];
    let tables = data_set(&works);
    assert_eq!(tables.iter().map(|(_, t)| t.name.as_str()).collect::<Vec<_>>(), ["lookup"]);
    let all = missing(target.as_ref(), &tables, &[], false);
    assert!(all.data >= 100_000 * 124 && all.indexes == 0, "the key is the table: {all:?}");
    loaded(target.as_ref(), &plan);
    let mut existing = target.abilities().tables.unwrap().data_set().unwrap();
    assert_eq!(missing(target.as_ref(), &tables, &existing, false), Size::default());
    // An interrupted load is resumed if the rest fits.
    existing[0].complete = false;
    let rest = missing(target.as_ref(), &tables, &existing, false);
    assert!(rest.data < all.data / 2, "{rest:?} of {all:?}");
    target.clean().unwrap();
}

#[test]
fn data_that_were_changed_are_refused() {
    let (dir, target) = database();
    let again = |reload| {
        let plan = plan(&["SRV-QUERY1"], &format!("size = '1MiB'\nreload = {reload}"));
        check(target.as_ref(), &plan, &info(GIB, None), true)
    };
    loaded(target.as_ref(), &plan(&["SRV-QUERY1"], "size = '1MiB'"));
    assert!(again(false).is_ok());
    let change = |sql: &str| rusqlite::Connection::open(dir.path().join("x.db")).unwrap().execute_batch(sql).unwrap();
    for (sql, said) in [
        ("DELETE FROM loadline_data_lookup WHERE id > 90000", "is missing"),
        ("UPDATE loadline_data_lookup SET n = -n - 1 WHERE id > 50000", "instead of"),
        (
            "UPDATE loadline_data_lookup SET payload = substr(payload, 1, 99) WHERE id % 10 = 3",
            "99 bytes instead of 100",
        ),
    ] {
        change(sql);
        let refused = refusal(again(false));
        assert!(refused.contains(said) && refused.contains("'lookup'") && refused.contains("--reload"), "{refused}");
    }
    assert!(again(true).unwrap().drop_data_set, "loads anew");
    change("DROP TABLE loadline_data_lookup");
    assert!(again(false).is_ok(), "what is not there is loaded");
    target.clean().unwrap();
}

#[test]
fn a_reload_uses_the_space_of_the_dropped_data() {
    let (_dir, target) = database();
    let plan = plan(&["SRV-QUERY1"], "size = '1MiB'\nreload = true");
    let works = [loaded(target.as_ref(), &plan)];
    let stored = target.abilities().tables.unwrap().table_bytes(&works[0], "lookup").unwrap().unwrap();
    let all = Size::new(target.as_ref(), &works[0], data_set(&works)[0].1).minus_stored(stored);
    let enough = all.all() + target.log_space(all.data, all.indexes).unwrap().bytes;
    let space = check(target.as_ref(), &plan, &info(enough, None), true).unwrap();
    assert!(space.drop_data_set && space.notes.is_empty(), "{space:?}");
    // Refused; the data set is unchanged.
    assert!(check(target.as_ref(), &plan, &info(enough - 1, None), true).is_err());
    assert!(target.abilities().tables.unwrap().data_set().unwrap()[0].complete);
    target.clean().unwrap();
}

#[test]
fn unknown_free_space_is_noted() {
    let notes = |target: &dyn Target| {
        let need = Size { data: GIB, indexes: 0 };
        check_space(target, &TargetInfo::default(), "it needs", need, false).unwrap()
    };
    assert!(notes(target("null:", Path::new("/tmp")).as_ref()).is_empty(), "it keeps nothing");
    assert!(notes(database().1.as_ref())[0].contains("free space on the target is unknown"));
}
