use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use loadline_model::Snapshot;
use loadline_model::snapshot::counter;
use loadline_workload::{CATALOGUE, Stream};

use super::*;
use crate::data_set::LoadProgress;
use crate::error::Cause;
use crate::registry;
use crate::role::{Administration, ClientSession, ParallelQueries};
use crate::target::Target;
use crate::work::Work;

/// Of a child process: the database in which it commits.
const CHILD: &str = "LOADLINE_TEST_DUCKDB_COMMITS_IN";

fn request(path: &Path, scratch: &Path) -> OpenRequest {
    library();
    OpenRequest::new(&format!("duckdb:{}", path.display()), scratch.to_owned())
}

/// Fetches the library of the tests, whose path cargo puts into [`library::VARIABLE`] (`.cargo/config.toml`).
fn library() {
    let fetched = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/duckdb")).output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
}

fn refused(result: Result<DuckDb, TargetError>) -> TargetError {
    result.err().unwrap_or_else(|| panic!("it was opened"))
}

fn snapshot(target: &dyn Target) -> Snapshot {
    target.observer().unwrap().snapshot().unwrap()
}

/// The next transaction.
fn commit(session: &mut dyn ClientSession, stream: &mut Stream) {
    session.begin().unwrap();
    stream.transaction(session).unwrap();
    session.commit().unwrap();
}

#[test]
fn every_workload_changes_what_it_says_and_logs_as_much_as_it_says() {
    let scratch = tempfile::tempdir().unwrap();
    let target = registry::open(&request(Path::new(""), scratch.path())).unwrap();
    let mut ran = 0;
    for workload in CATALOGUE.iter() {
        if (KIND.capabilities)().refusal(Driver::Client, &workload.needs).is_some() {
            continue;
        }
        let params = workload.params(&BTreeMap::new()).unwrap().with_size(1 << 20);
        let work = Work::new(Arc::clone(workload), params, 1, Default::default());
        match target.create(&work) {
            Err(TargetError::Unsupported(why)) => {
                let (code, why_of) = (workload.code.as_str(), |part: &str| why.contains(part));
                assert!(
                    matches!(code, "STO-SCAN" if why_of("column"))
                        || matches!(code, "DA-PARALLEL" if why_of("--size"))
                        || matches!(code, "LGWR-SIZE" if why_of("LGWR-SIZE.most-kib")),
                    "{code}: {why}"
                );
                continue;
            }
            created => created.unwrap(),
        }
        target.load(&work, 2).unwrap();
        target.load(&work, 2).unwrap();
        target.reset(&work, Driver::Client).unwrap();
        let before = (target.evidence(&work).unwrap(), snapshot(&*target));
        let mut session = target.client_session(&work, 1).unwrap();
        let mut stream = work.stream(1).unwrap();
        let n = 3_u64.next_multiple_of(work.program.cycle());
        (0..n).for_each(|_| commit(session.as_mut(), &mut stream));
        session.begin().unwrap();
        stream.transaction(session.as_mut()).unwrap();
        session.rollback().unwrap();
        let after = (target.evidence(&work).unwrap(), snapshot(&*target));
        if let (Some(before), Some(after)) = (before.0, after.0) {
            let changed = work.stream(1).unwrap().rows_changed_by(&work.program, n);
            assert_eq!((after - before) as u64, changed, "{}", workload.code);
        }
        let redo = before.1.delta(&after.1, counter::REDO_BYTES).unwrap() / n as f64;
        ran += 1;
        let size = workload.redo.filter(|_| workload.scan.is_none());
        let Some(size) = size else { continue };
        // The payload is calibrated before a sweep: here it is the default.
        assert!((size.min / 2.0..=size.max * 2.0).contains(&redo), "{}: {redo} bytes of redo", workload.code);
    }
    assert!(ran > 25, "{ran}");
}

/// A commit has returned when its redo is in the file and synced: one write and one sync of the log each.
#[test]
fn a_commit_is_written_and_synced_before_it_returns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let target = registry::open(&request(&path, dir.path())).unwrap();
    let work = Work::of("LGWR-LAT1", &[]).unwrap();
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    target.settle().unwrap();
    let mut session = target.client_session(&work, 0).unwrap();
    let mut stream = work.stream(0).unwrap();
    commit(session.as_mut(), &mut stream);
    let (mut before, log) = (snapshot(&*target), dir.path().join("x.db.wal"));
    let size = || std::fs::metadata(&log).unwrap().len();
    for _ in 0..20 {
        let length = size();
        commit(session.as_mut(), &mut stream);
        let after = snapshot(&*target);
        let grown = |name| before.delta(&after, name).unwrap();
        assert_eq!((grown(counter::REDO_SYNCS), grown(counter::ROWS_CHANGED)), (1.0, 1.0));
        assert_eq!(grown(counter::REDO_BYTES) as u64, size() - length);
        assert!(grown(counter::REDO_SYNC_NS) > 0.0 && grown(counter::REDO_WRITE_NS) > 0.0);
        assert_eq!((grown(counter::CHECKPOINTS), grown(counter::BLOCK_WRITES)), (0.0, 0.0));
        before = after;
    }
    target.abilities().checkpoints.unwrap().checkpoint().unwrap();
    let after = snapshot(&*target);
    let grown = |name| before.delta(&after, name).unwrap();
    assert!(grown(counter::CHECKPOINTS) == 1.0 && grown(counter::BLOCK_WRITES) >= 1.0);
    assert!(!log.exists(), "the log is empty");
}

#[test]
fn the_second_of_two_transactions_that_change_a_row_is_a_conflict() {
    let scratch = tempfile::tempdir().unwrap();
    let target = registry::open(&request(Path::new(""), scratch.path())).unwrap();
    let work = Work::of("TP-LIGHT", &[("accounts", 2)]).unwrap();
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    let mut sessions = [0, 1].map(|job| (target.client_session(&work, job).unwrap(), work.stream(job).unwrap()));
    let mut lost = 0;
    for _ in 0..20 {
        let [(a, first), (b, second)] = &mut sessions;
        a.begin().unwrap();
        first.transaction(a.as_mut()).unwrap();
        b.begin().unwrap();
        if let Err(e) = second.transaction(b.as_mut()) {
            let e = TargetError::from(e);
            assert!(matches!(e, TargetError::Conflict(_)), "{e}");
            lost += 1;
        }
        b.rollback().unwrap();
        b.rollback().unwrap();
        a.commit().unwrap();
    }
    assert!((1..20).contains(&lost), "{lost} of 20: half of them draw the same of two rows");
    assert_eq!(target.evidence(&work).unwrap(), Some(20));
}

#[test]
fn blocks_are_counted_when_they_come_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let work = Work::of("DA-SCAN", &[]).unwrap().with_size(32 << 20);
    let table = work.workload.tables[0].name.clone();
    let load = |target: &dyn Target| {
        let progress = LoadProgress::default();
        target.load_watched(&work, 1, &progress).unwrap();
        progress.done().len()
    };
    let target = registry::open(&request(&path, dir.path())).unwrap();
    assert_eq!(load(&*target), 1);
    target.clean_after_run(true).unwrap();
    drop(target);
    let target = registry::open(&request(&path, dir.path())).unwrap();
    assert_eq!(load(&*target), 0, "it was kept");
    let second = refused(DuckDb::open(&request(&path, dir.path())));
    assert!(matches!(&second, TargetError::Refused(m) if m.contains("x.db")), "a database is one run's: {second}");
    let before = snapshot(&*target);
    let mut session = target.client_session(&work, 0).unwrap();
    let mut stream = work.stream(0).unwrap();
    commit(session.as_mut(), &mut stream);
    let (after, bytes) =
        (snapshot(&*target), target.abilities().queries.unwrap().table_bytes(&work, &table).unwrap().unwrap());
    let grown = |name| before.delta(&after, name).unwrap();
    let read = grown(counter::READ_BYTES);
    assert!(read > 0.0 && read <= bytes as f64, "{read} of {bytes}");
    // Of nine columns it reads two of a few bits.
    let of_columns = target.abilities().queries.unwrap().bytes_read(&work, &table).unwrap().unwrap() as f64;
    assert!(of_columns > 0.0 && of_columns < bytes as f64 / 4.0, "{of_columns} of {bytes}");
    let writing = Work::of("DBL-INDEX", &[]).unwrap();
    let unread = target.abilities().queries.unwrap().bytes_read(&writing, "built");
    assert!(matches!(&unread, Err(TargetError::Unsupported(why)) if why.contains("'built'")), "{unread:?}");
    assert_eq!(read, grown(counter::BLOCK_READS) * calls::BLOCK_BYTES as f64);
    // The questions above read blocks too.
    let warm = snapshot(&*target);
    commit(session.as_mut(), &mut stream);
    let again = warm.delta(&snapshot(&*target), counter::BLOCK_READS).unwrap();
    let first = grown(counter::BLOCK_READS);
    assert!(again < first, "the second time it is cached: {again} blocks, {first} the first time");
    drop(session);
    target.clean().unwrap();
    drop(target);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn unusable_files_and_settings_are_refused_by_name_and_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let open = |path: &Path, settings: &[(&str, &str)]| {
        let mut request = request(path, dir.path());
        request.settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        DuckDb::open(&request)
    };
    for (name, sql) in [("foreign.db", "CREATE TABLE mine (a INTEGER)"), ("view.db", "CREATE VIEW seen AS SELECT 1")] {
        drop(open(&at(name), &[]).unwrap().connect().unwrap().run_sql(sql).unwrap());
    }
    std::fs::write(at("text.db"), "no database, but long enough to be read as one ".repeat(500)).unwrap();
    // The number of the storage's version follows a checksum and four letters.
    let newer = at("newer.db");
    drop(open(&newer, &[]).unwrap());
    let mut bytes = std::fs::read(&newer).unwrap();
    bytes[12..20].copy_from_slice(&9999_u64.to_le_bytes());
    std::fs::write(&newer, &bytes).unwrap();
    for (name, part) in
        [("foreign.db", "'mine'"), ("view.db", "'seen'"), ("text.db", "text.db"), ("newer.db", "newer.db")]
    {
        let before = std::fs::read(at(name)).unwrap();
        let e = refused(open(&at(name), &[]));
        assert!(matches!(&e, TargetError::Refused(m) if m.contains(part)), "{e}");
        assert_eq!(std::fs::read(at(name)).unwrap(), before, "{name}");
    }
    for (path, part) in [(dir.path(), "is a folder"), (Path::new("/nowhere/at/all.db"), "/nowhere/at")] {
        let e = refused(open(path, &[]));
        assert!(matches!(&e, TargetError::Usage(m) if m.contains(part)), "{e}");
    }
    for (name, value, part) in [
        ("thread", "2", "did you mean 'threads'"),
        ("threads", "0", "1 to 1024"),
        ("memory_limit", "much", "memory_limit"),
    ] {
        let e = refused(open(&at("new.db"), &[(name, value)]));
        assert!(e.to_string().contains(part), "{name}={value}: {e}");
    }
    for url in ["duckdb:x.db?threads=2", "duckdb:?lib=", "duckdb:?lib"] {
        assert!(matches!((KIND.check_url)(url), Err(TargetError::Usage(m)) if m.contains("lib=PATH")), "{url}");
    }
    let place = Place::of("duckdb:/d/x.db?lib=/a%20b/lib.so").unwrap();
    assert_eq!((place.path, place.library), (Some("/d/x.db".into()), Some("/a b/lib.so".into())));
    assert!((KIND.is_temporary)("duckdb:?lib=/x") && !(KIND.is_temporary)("duckdb:x.db"));
}

#[test]
fn a_query_beyond_the_memory_limit_fails_and_the_session_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut request = request(Path::new(""), dir.path());
    request.settings = [("memory_limit", "32MiB"), ("max_temp_directory_size", "0KiB")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let db = DuckDb::open(&request).unwrap().connect().unwrap();
    match db.texts("SELECT len(list(range)) FROM range(20000000)") {
        Err(TargetError::Server(refusal)) => {
            assert!(refusal.cause == Cause::Limit && !refusal.text.contains('\n'), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(db.texts("SELECT 7 / 2").unwrap(), [[Some("3".to_owned())]], "whole numbers are divided as such");
}

#[test]
fn workers_are_started_and_ended() {
    let scratch = tempfile::tempdir().unwrap();
    let target = DuckDb::open(&request(Path::new(""), scratch.path())).unwrap();
    assert!(target.threads.workers().is_empty() && target.threads.sample().is_none());
    let work = Work::of("DA-PARALLEL", &[("workers", 3)]).unwrap().with_size(64 << 20);
    target.reset(&work, Driver::Client).unwrap();
    assert_eq!(target.threads.workers().len(), 2);
    target.load(&work, 1).unwrap();
    let tried = target.try_parallel(&work).unwrap().unwrap();
    assert!(tried.planned == 3 && (1..=3).contains(&tried.launched), "{tried:?}");
    let sample = target.threads.sample().unwrap();
    assert_eq!(sample.sessions.values().sum::<u32>(), 2);
    target.reset(&Work::of("DA-SCAN", &[]).unwrap(), Driver::Client).unwrap();
    assert_eq!(target.threads.workers().len(), 0);
}

/// Commits until it is killed, and tells each commit that has returned.
#[test]
#[ignore = "run by tests that kill it"]
fn committing_process() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let target = registry::open(&request(&path, path.parent().unwrap())).unwrap();
    let work = Work::of("LGWR-LAT1", &[]).unwrap();
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    let (mut session, mut stream) = (target.client_session(&work, 0).unwrap(), work.stream(0).unwrap());
    let mut out = std::io::stdout();
    for n in 1.. {
        commit(session.as_mut(), &mut stream);
        // Not by println!, which the harness may keep.
        out.write_all(format!("committed {n}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

fn child(path: &Path) -> (std::process::Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "duckdb::tests::committing_process", "--ignored", "--nocapture", "--test-threads", "1"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines.filter_map(|line| Some(line.split_once("committed ")?.1.to_owned())))
}

/// Kills a process that commits after `commits` commits, and looks for them.
fn kill_after(commits: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let (mut process, mut told) = child(&path);
    let mut last: i64 = told.by_ref().nth(commits).unwrap().parse().unwrap();
    let locked = refused(DuckDb::open(&request(&path, dir.path())));
    assert!(matches!(&locked, TargetError::Refused(m) if m.contains("x.db")), "{locked}");
    process.kill().unwrap();
    process.wait().unwrap();
    // What it told before it died.
    told.for_each(|n| last = n.parse().unwrap_or(last));
    let target = registry::open(&request(&path, dir.path())).unwrap();
    let found = target.evidence(&Work::of("LGWR-LAT1", &[]).unwrap()).unwrap().unwrap();
    assert!((last..=last + 1).contains(&found), "{last} commits returned, {found} are there");
    target.clean().unwrap();
}

#[test]
fn commits_that_returned_survive_kills() {
    (0..3).for_each(|n| kill_after(7 * n + 3));
}

#[test]
#[ignore = "nightly: 200 kills take minutes"]
fn commits_that_returned_survive_two_hundred_kills() {
    (0..200).for_each(|n| kill_after(n * 37 % 101));
}
