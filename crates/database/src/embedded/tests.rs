use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use loadline_model::snapshot::counter;
use loadline_model::{Driver, Severity, Snapshot};
use loadline_workload::{CATALOGUE, Stream};

use super::*;
use crate::data_set::LoadProgress;
use crate::registry;
use crate::role::ClientSession;
use crate::work::Work;
use crate::workload_tables::workload_tables;
use crate::{duckdb, sqlite};

/// Of a child process: the URL of the database in which it commits.
const CHILD: &str = "LOADLINE_TEST_COMMITS_IN";

/// Fetches DuckDB's library, whose path cargo puts into its variable (`.cargo/config.toml`).
pub(crate) fn fetch_duckdb() {
    let fetched = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/duckdb")).output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
}

fn open(url: &str, scratch: &Path) -> Result<Box<dyn Target>, TargetError> {
    if url.starts_with("duckdb") {
        fetch_duckdb();
    }
    registry::open(&OpenRequest::new(url, scratch.to_owned()))
}

pub(crate) fn snapshot(target: &dyn Target) -> Snapshot {
    target.observer().unwrap().snapshot().unwrap()
}

pub(crate) fn commit(session: &mut dyn ClientSession, stream: &mut Stream) {
    session.begin().unwrap();
    stream.transaction(session).unwrap();
    session.commit().unwrap();
}

/// The work of a workload, with its tables loaded for one job.
pub(crate) fn loaded(target: &dyn Target, code: &str, given: &[(&str, i64)]) -> Work {
    let work = Work::from_catalogue(code, given).unwrap();
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    work
}

#[test]
fn the_files_can_be_read() {
    for file in [&sqlite::KNOWLEDGE, &duckdb::KNOWLEDGE] {
        let knowledge = file.checked(|_| &[]);
        assert!(!knowledge.absent.is_empty() && !knowledge.settings.is_empty());
    }
}

#[test]
fn the_doctor_finds_what_the_rules_name() {
    let scratch = tempfile::tempdir().unwrap();
    for (url, ids) in [
        ("sqlite:", &["version", "journal-mode", "synchronous", "page-size"][..]),
        ("duckdb:", &["version", "log-sync"]),
    ] {
        let findings = open(url, scratch.path()).unwrap().doctor().unwrap();
        // The last is of the filesystem.
        let (_, found) = findings.split_last().unwrap();
        assert!(found.iter().map(|f| f.id.as_str()).eq(ids.iter().copied()), "{findings:?}");
        assert!(found.iter().all(|f| f.severity == Severity::Ok && f.value != "–"), "{findings:?}");
    }
}

#[test]
fn the_doctor_objects_to_what_the_rules_name() {
    for (file, fact, value, severity, shown, advice) in [
        (&sqlite::KNOWLEDGE, "page_size", "4096", Severity::Warning, "4096", "is invalid with larger ones"),
        (&sqlite::KNOWLEDGE, "writer", "python3 writes", Severity::Impossible, "locked", "python3 writes"),
        (&duckdb::KNOWLEDGE, "log-sync", "1", Severity::Refused, "1", "commits are not durable"),
    ] {
        let known = Known { settings: &BTreeMap::new(), facts: [(fact, value.to_owned())].into() };
        let found = rules::judge(&file.rules, &known);
        let is_it = |f: &Finding| f.severity == severity && f.value == shown && f.advice.contains(advice);
        assert!(found.iter().any(is_it), "{fact}: {found:?}");
    }
}

/// `refused`: workloads that the database does not create, and a part of the reason. `slack`: how far redo may be off its definition.
fn every_workload(url: &str, kind: &dyn TargetKind, slack: f64, refused: &[(&str, &str)]) {
    let scratch = tempfile::tempdir().unwrap();
    let target = open(url, scratch.path()).unwrap();
    let mut ran = 0;
    for workload in CATALOGUE.iter() {
        if kind.capabilities().refusal(Driver::Client, &workload.needs).is_some() {
            continue;
        }
        let params = workload.params(&BTreeMap::new()).unwrap().with_size(1 << 20);
        let work = Work::new(Arc::clone(workload), params, 1, Default::default());
        match target.create(&work) {
            Err(TargetError::Unsupported(why)) => {
                let known = refused.iter().any(|(code, part)| *code == workload.code && why.contains(part));
                assert!(known, "{}: {why}", workload.code);
                continue;
            }
            created => created.unwrap(),
        }
        let load = || {
            let progress = LoadProgress::default();
            target.load_watched(&work, 2, &progress).unwrap();
            progress.done().into_iter().map(|t| (t.table, t.rows_loaded)).collect::<Vec<_>>()
        };
        let mut loaded = load();
        loaded.retain(|(table, _)| table.ends_with(&format!(" of {}", workload.code)));
        assert!(load().is_empty(), "{}: what is complete is not loaded again", workload.code);
        target.reset(&work, Driver::Client).unwrap();
        let before = (target.evidence(&work).unwrap(), snapshot(&*target));
        let mut session = target.client_session(&work, 1).unwrap();
        let mut stream = work.stream(1).unwrap();
        // A whole cycle of a mix: its shares are exact.
        let n = 3_u64.next_multiple_of(work.program.cycle());
        (0..n).for_each(|_| commit(session.as_mut(), &mut stream));
        // What is rolled back leaves no trace.
        session.begin().unwrap();
        stream.transaction(session.as_mut()).unwrap();
        session.rollback().unwrap();
        let after = (target.evidence(&work).unwrap(), snapshot(&*target));
        if let (Some(before), Some(after)) = (before.0, after.0) {
            let changed = work.stream(1).unwrap().rows_changed_by(&work.program, n);
            assert_eq!((after - before) as u64, changed, "{}", workload.code);
        }
        let redo = before.1.delta(&after.1, counter::REDO_BYTES).unwrap() / n as f64;
        drop(session);
        let queries = target.abilities().tables.unwrap();
        let bytes = || workload_tables(&work).map(|table| queries.table_bytes(&work, &table.name).ok().flatten());
        // Its rows are of more than 200 bytes.
        let row_bytes = if workload.code == "STO-READ-ASYNC" { 200 } else { 0 };
        let least = workload_tables(&work).map(|table| row_bytes * table.total_rows(&work.params, 0));
        // DuckDB has so few rows in memory only.
        let has_size = kind.scheme() == "duckdb" || bytes().zip(least).all(|(bytes, least)| bytes > Some(least));
        assert!(has_size, "{}: {:?}", workload.code, bytes().collect::<Vec<_>>());
        target.drop_tables(&work).unwrap();
        assert!(bytes().all(|bytes| bytes.is_none()), "{}", workload.code);
        target.create(&work).unwrap();
        assert_eq!(load(), loaded, "{}: created again, loaded again", workload.code);
        ran += 1;
        // A scan measures the size of each transaction; its default is only the start of the calibration.
        let size = if workload.scan.is_none() { workload.redo } else { None };
        let Some(size) = size else { continue };
        assert!((size.min / slack..=size.max * slack).contains(&redo), "{}: {redo} bytes of redo", workload.code);
    }
    assert!(ran > 25, "{ran}");
}

#[test]
fn every_workload_changes_and_logs_what_it_says_in_sqlite() {
    every_workload("sqlite:", &sqlite::KIND, 1.0, &[]);
}

/// Payloads are calibrated before a sweep: here they are the default, and DuckDB's records are not SQLite's pages.
#[test]
fn every_workload_changes_and_logs_what_it_says_in_duckdb() {
    let refused = [
        ("STO-READ", "--size"),
        ("STO-READ-ASYNC", "--size"),
        ("STO-SCAN", "column"),
        ("DA-PARALLEL", "--size"),
        ("LGWR-SIZE", "LGWR-SIZE.most-kib"),
    ];
    every_workload("duckdb:", &duckdb::KIND, 2.0, &refused);
}

#[test]
fn unusable_files_are_refused_by_name_and_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("text.db"), "no database, but long enough to be read as one ".repeat(500)).unwrap();
    // The identifier is that of loadline's databases.
    let shared = "PRAGMA application_id = 1819238756; CREATE TABLE loadline_data_a (a); CREATE TABLE loadlinea (a)";
    for (name, sql) in
        [("foreign.db", "CREATE TABLE mine (a)"), ("shared.db", shared), ("empty.db", "PRAGMA user_version = 7")]
    {
        rusqlite::Connection::open(at(name)).unwrap().execute_batch(sql).unwrap();
    }
    for (scheme, name, part) in [
        ("sqlite", "text.db", "text.db"),
        ("duckdb", "text.db", "text.db"),
        ("sqlite", "foreign.db", "contains 'mine' that loadline did not create"),
        ("sqlite", "shared.db", "contains 'loadlinea' that loadline did not create"),
        ("sqlite", "empty.db", "contains a database that loadline did not create"),
        ("sqlite", "", "is a folder"),
        ("duckdb", "", "is a folder"),
        ("sqlite", "none/x.db", "/none"),
        ("duckdb", "none/x.db", "/none"),
    ] {
        let before = std::fs::read(at(name)).ok();
        let refused = open(&format!("{scheme}:{}", at(name).display()), dir.path()).map(drop).unwrap_err();
        assert!(matches!(&refused, TargetError::Refused(m) | TargetError::Usage(m) if m.contains(part)), "{refused}");
        assert_eq!(std::fs::read(at(name)).ok(), before, "{name}");
    }
}

/// Commits until it is killed, and tells each commit that has returned.
#[test]
#[ignore = "run by tests that kill it"]
fn committing_process() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let target = open(&url, Path::new("/nowhere")).unwrap();
    let _lock = target.lock().unwrap();
    let work = loaded(&*target, "LGWR-LAT1", &[]);
    let (mut session, mut stream) = (target.client_session(&work, 0).unwrap(), work.stream(0).unwrap());
    let mut out = std::io::stdout();
    for n in 1.. {
        commit(session.as_mut(), &mut stream);
        // Not by println!, which the harness may keep.
        out.write_all(format!("committed {n}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

fn child(url: &str) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::tests::committing_process", "--ignored", "--nocapture", "--test-threads", "1"])
        .env(CHILD, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines.filter_map(|line| Some(line.split_once("committed ")?.1.to_owned())))
}

/// Kills a process that commits after `commits` commits, and looks for them.
fn kill_after(scheme: &str, commits: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("x.db");
    let url = format!("{scheme}:{}", path.display());
    let (mut process, mut told) = child(&url);
    let mut last: i64 = told.by_ref().nth(commits).unwrap().parse().unwrap();
    let locked = open(&url, dir.path()).and_then(|target| target.lock().map(drop));
    assert!(matches!(&locked, Err(TargetError::Refused(m)) if m.contains("x.db")), "{locked:?}");
    assert!(open(&url, dir.path()).and_then(|target| target.clean()).is_err(), "a database in use is not removed");
    process.kill().unwrap();
    process.wait().unwrap();
    // What it told before it died.
    told.for_each(|n| last = n.parse().unwrap_or(last));
    let target = open(&url, dir.path()).unwrap();
    let found = target.evidence(&Work::from_catalogue("LGWR-LAT1", &[]).unwrap()).unwrap().unwrap();
    assert!((last..=last + 1).contains(&found), "{scheme}: {last} commits returned, {found} are there");
    target.clean().unwrap();
    drop(target);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn commits_that_returned_survive_kills() {
    (0..3).for_each(|n| kill_after("duckdb", 7 * n + 3));
    kill_after("sqlite", 11);
}

#[test]
#[ignore = "nightly: 200 kills take minutes"]
fn commits_that_returned_survive_two_hundred_kills() {
    (0..200).for_each(|n| kill_after("duckdb", n * 37 % 101));
}
