//! What fits and what does not.

use std::collections::BTreeMap;

use loadline_database::{OpenRequest, open};
use loadline_model::plan::{JobsSpec, PlanSpec, TimeSpec};

use super::*;
use crate::make_plan;

const GIB: u64 = 1 << 30;

fn plan(codes: &[&str], size: &str, change: impl FnOnce(&mut PlanSpec)) -> Plan {
    let workload = Some(codes.iter().map(|c| (*c).to_owned()).collect());
    let mut spec = PlanSpec { workload, size: Some(size.into()), ..PlanSpec::default() };
    change(&mut spec);
    make_plan(&spec).unwrap()
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

/// A database in a folder of its own, which goes with it.
fn database() -> (tempfile::TempDir, Box<dyn Target>) {
    let dir = tempfile::tempdir().unwrap();
    let target =
        open(&OpenRequest::new(&format!("sqlite:{}", dir.path().join("x.db").display()), dir.path().into())).unwrap();
    (dir, target)
}

fn refusal(room: Result<Room, StudyError>) -> String {
    room.map(|r| r.notes).unwrap_err().to_string()
}

#[test]
fn the_workloads_own_tables_count_the_largest_or_all() {
    let (_dir, target) = database();
    let codes = ["DBWR-THR", "STO-RANDOM", "STO-READ-ASYNC"];
    let of = |repeat: u32, free: u64| {
        let plan = plan(&codes, "1GiB", |s| s.repeat = Some(repeat));
        look(target.as_ref(), &plan, &info(free, None), true)
    };
    assert!(of(1, 2 * GIB).unwrap().notes.is_empty(), "one goes before the next comes");
    let said = refusal(of(1, GIB / 2));
    assert!(said.contains("the tables of") && said.contains("512.0 MiB is free"), "{said}");
    let said = refusal(of(2, 2 * GIB));
    assert!(codes.iter().all(|code| said.contains(code)), "all are needed again: {said}");
    let alone = plan(&["DBWR-THR"], "8TiB", |_| ());
    let said = refusal(look(target.as_ref(), &alone, &info(100 * GIB, None), true));
    assert!(said.contains("DBWR-THR") && said.contains("TiB"), "{said}");
}

#[test]
fn the_log_is_held_against_its_own_filesystem() {
    let (_dir, target) = database();
    let need = |force| {
        let need = Need { what: "it needs".into(), data: Size { data: 10 * GIB, indexes: GIB }, given_back: 0 };
        move |target: &dyn Target, info: &TargetInfo| fits(target, info, &need, force)
    };
    let log = target.log_space(10 * GIB, GIB).unwrap().bytes;
    assert!(log < 2 * GIB, "it is used again: {log}");
    let try_it = need(false);
    assert!(try_it(target.as_ref(), &info(11 * GIB + log, None)).is_ok());
    assert!(try_it(target.as_ref(), &info(11 * GIB, None)).is_err(), "all in one place");
    assert!(try_it(target.as_ref(), &info(11 * GIB, Some(log))).is_ok());
    let said = try_it(target.as_ref(), &info(11 * GIB, Some(log - 1))).unwrap_err().to_string();
    assert!(said.contains("/log/db") && said.contains("--force"), "{said}");
    let notes = need(true)(target.as_ref(), &info(GIB, Some(0))).unwrap();
    assert!(notes.len() == 2 && notes[0].contains("/data/db") && notes[1].contains("(--force)"), "{notes:?}");
}

#[test]
fn only_what_is_missing_needs_room() {
    let (_dir, target) = database();
    let plan = plan(&["SRV-QUERY1"], "1MiB", |_| ());
    let works = [work(&plan, &plan.workloads[0]).unwrap()];
    let tables = data_set(&works);
    assert_eq!(tables.iter().map(|(_, t)| t.name).collect::<Vec<_>>(), ["lookup"]);
    let all = missing(target.as_ref(), &tables, &[]);
    assert!(all.data >= 100_000 * 124 && all.indexes == 0, "the key is the table: {all:?}");
    target.create(&works[0]).unwrap();
    target.load(&works[0], 1).unwrap();
    let mut there = target.abilities().data_set.unwrap().data_set().unwrap();
    assert_eq!(missing(target.as_ref(), &tables, &there), Size::default());
    // A load that was cut off at its end is gone on with where the rest fits.
    there[0].complete = false;
    let rest = missing(target.as_ref(), &tables, &there);
    assert!(rest.data < all.data / 2, "{rest:?} of {all:?}");
    target.clean().unwrap();
}

#[test]
fn data_are_loaded_anew_in_the_room_of_those_that_go() {
    let (_dir, target) = database();
    let plan = plan(&["SRV-QUERY1"], "1MiB", |s| s.reload = Some(true));
    let works = [work(&plan, &plan.workloads[0]).unwrap()];
    target.create(&works[0]).unwrap();
    target.load(&works[0], 1).unwrap();
    let stored = target.abilities().queries.unwrap().table_bytes(&works[0], "lookup").unwrap().unwrap();
    let all = Size::of(target.as_ref(), &works[0], data_set(&works)[0].1);
    let log = target.log_space(all.data, all.indexes).unwrap().bytes;
    let enough = all.all() + log - stored;
    let room = look(target.as_ref(), &plan, &info(enough, None), true).unwrap();
    assert!(room.drop_data_set && room.notes.is_empty(), "{room:?}");
    // Refused, and the data are there as before.
    let said = refusal(look(target.as_ref(), &plan, &info(enough - 1, None), true));
    assert!(said.contains("that are dropped first"), "{said}");
    assert!(target.abilities().data_set.unwrap().data_set().unwrap()[0].complete);
    target.clean().unwrap();
}

#[test]
fn what_is_not_known_is_said() {
    let target = open(&OpenRequest::new("null:", "/tmp".into())).unwrap();
    let need = |data| Need { what: "it needs".into(), data: Size { data, indexes: 0 }, given_back: 0 };
    assert!(fits(target.as_ref(), &TargetInfo::default(), &need(GIB), false).unwrap().is_empty(), "it keeps nothing");
    let (_dir, target) = database();
    let notes = fits(target.as_ref(), &TargetInfo::default(), &need(GIB), false).unwrap();
    assert!(notes[0].contains("not known"), "{notes:?}");
}

/// Asks after each test whether the tables of a workload are there.
struct Watching {
    request: OpenRequest,
    work: Work,
    seen: Vec<(String, bool)>,
}

impl crate::event::Listener for Watching {
    fn on(&mut self, event: crate::event::Event<'_>) {
        if let crate::event::Event::TestDone(record) = event {
            let target = open(&self.request).unwrap();
            let there = target.abilities().queries.unwrap().table_bytes(&self.work, "spread").unwrap().is_some();
            self.seen.push((record.workload.clone(), there));
        }
    }
}

#[test]
fn a_workloads_tables_go_after_its_last_test() {
    for repeat in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let request = OpenRequest::new(&format!("sqlite:{}", dir.path().join("x.db").display()), dir.path().into());
        let codes = ["STO-READ-ASYNC", "TP-LOOKUP"];
        let plan = plan(&codes, "1MiB", |s| {
            s.target = Some(request.url.clone());
            s.repeat = Some(repeat);
            s.jobs = Some(JobsSpec::List(vec![1]));
            s.duration = Some(TimeSpec::Text("0.3s".into()));
            s.warmup = Some(TimeSpec::Text("0.2s".into()));
            s.probe = Some(false);
        });
        let work = work(&plan, plan.workloads.iter().find(|w| w.code == codes[0]).unwrap()).unwrap();
        let study = super::super::Study {
            plan,
            request: request.clone(),
            results: dir.path().join("runs"),
            resume: None,
            command: Vec::new(),
            version: String::new(),
            limits: None,
            interrupted: Default::default(),
        };
        let mut watching = Watching { request, work, seen: Vec::new() };
        study.run(&mut watching).unwrap();
        let expected = [(codes[0], true), (codes[1], repeat == 2), (codes[0], true), (codes[1], false)];
        let expected: Vec<_> = expected.map(|(c, t)| (c.to_owned(), t)).into_iter().take(2 * repeat as usize).collect();
        assert_eq!(watching.seen, expected, "{repeat} repetitions");
    }
}
