use loadline_model::Driver;
use loadline_model::snapshot::counter;

use super::*;
use crate::data_set::LoadProgress;
use crate::embedded::Engine;
use crate::embedded::tests::{commit, fetch_duckdb, loaded, snapshot};
use crate::error::Cause;
use crate::kind::TargetKind as _;
use crate::registry;
use crate::role::{Administration, BlockCache, ParallelQueries};
use crate::target::Target;
use crate::work::Work;

fn request(path: &Path, scratch: &Path) -> OpenRequest {
    fetch_duckdb();
    OpenRequest::new(&format!("duckdb:{}", path.display()), scratch.to_owned())
}

fn refused(result: Result<DuckDb, TargetError>) -> TargetError {
    result.err().unwrap_or_else(|| panic!("it was opened"))
}

/// A commit has returned when its redo is in the file and synced: one write and one sync of the log each.
#[test]
fn a_commit_is_written_and_synced_before_it_returns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let target = registry::open(&request(&path, dir.path())).unwrap();
    let work = loaded(&*target, "LGWR-LAT1", &[]);
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
    target.abilities().tables.unwrap().checkpoint().unwrap();
    let after = snapshot(&*target);
    let grown = |name| before.delta(&after, name).unwrap();
    assert!(grown(counter::CHECKPOINTS) == 1.0 && grown(counter::BLOCK_WRITES) >= 1.0);
    assert!(!log.exists(), "the log is empty");
}

#[test]
fn the_second_of_two_transactions_that_change_a_row_is_a_conflict() {
    let scratch = tempfile::tempdir().unwrap();
    let target = registry::open(&request(Path::new(""), scratch.path())).unwrap();
    let work = loaded(&*target, "TP-LIGHT", &[("accounts", 2)]);
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
    let work = Work::from_catalogue("DA-SCAN", &[]).unwrap().with_size(32 << 20);
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
        (snapshot(&*target), target.abilities().tables.unwrap().table_bytes(&work, &table).unwrap().unwrap());
    let grown = |name| before.delta(&after, name).unwrap();
    let read = grown(counter::READ_BYTES);
    assert!(read > 0.0 && read <= bytes as f64, "{read} of {bytes}");
    // Of nine columns it reads two of a few bits.
    let of_columns = target.abilities().tables.unwrap().bytes_read(&work, &table).unwrap().unwrap() as f64;
    assert!(of_columns > 0.0 && of_columns < bytes as f64 / 4.0, "{of_columns} of {bytes}");
    let writing = Work::from_catalogue("DBL-INDEX", &[]).unwrap();
    let unread = target.abilities().tables.unwrap().bytes_read(&writing, "built");
    assert!(matches!(&unread, Err(TargetError::Unsupported(why)) if why.contains("'built'")), "{unread:?}");
    assert_eq!(read, grown(counter::BLOCK_READS) * LAYOUT.block_bytes as f64);
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
    // The number of the storage's version follows a checksum and four letters.
    let newer = at("newer.db");
    drop(open(&newer, &[]).unwrap());
    let mut bytes = std::fs::read(&newer).unwrap();
    bytes[12..20].copy_from_slice(&9999_u64.to_le_bytes());
    std::fs::write(&newer, &bytes).unwrap();
    for (name, part) in [("foreign.db", "'mine'"), ("view.db", "'seen'"), ("newer.db", "newer.db")] {
        let before = std::fs::read(at(name)).unwrap();
        let e = refused(open(&at(name), &[]));
        assert!(matches!(&e, TargetError::Refused(m) if m.contains(part)), "{e}");
        assert_eq!(std::fs::read(at(name)).unwrap(), before, "{name}");
    }
    for (name, value, part) in
        [("thread", "2", "did you mean 'threads'"), ("threads", "0", "1 to 1024"), ("memory_limit", "much", "512MiB")]
    {
        let e = refused(open(&at("new.db"), &[(name, value)]));
        assert!(e.to_string().contains(part), "{name}={value}: {e}");
    }
    let place = NAMES.place("duckdb:/d/x.db?lib=/a%20b/lib.so").unwrap();
    assert_eq!((place.database, place.parameter), (Some("/d/x.db".into()), Some("/a b/lib.so".into())));
    assert!(KIND.is_temporary("duckdb:?lib=/x") && !KIND.is_temporary("duckdb:x.db"));
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
fn tests_of_the_storage_get_less_memory_than_loads() {
    let scratch = tempfile::tempdir().unwrap();
    let target = DuckDb::open(&request(Path::new(""), scratch.path())).unwrap();
    let work = loaded(&target, "TP-LIGHT", &[("accounts", 2)]);
    let limit = || target.shown_settings().unwrap()["memory_limit"].clone();
    let usual = limit();
    assert_eq!(target.set_cache_for_one_read(1 << 20).unwrap(), Some(8 << 20));
    assert_eq!(limit(), usual);
    target.reset(&work, Driver::Client).unwrap();
    assert_eq!(limit(), "8.0 MiB");
    target.set_cache(None).unwrap();
    assert_eq!(limit(), usual);
}

#[test]
fn workers_are_started_and_ended() {
    let scratch = tempfile::tempdir().unwrap();
    let target = DuckDb::open(&request(Path::new(""), scratch.path())).unwrap();
    assert!(target.threads.workers().is_empty() && target.threads.sample().is_none());
    let work = Work::from_catalogue("DA-PARALLEL", &[("workers", 3)]).unwrap().with_size(64 << 20);
    target.reset(&work, Driver::Client).unwrap();
    assert_eq!(target.threads.workers().len(), 2);
    target.load(&work, 1).unwrap();
    let tried = target.try_parallel(&work).unwrap().unwrap();
    assert!(tried.planned == 3 && (1..=3).contains(&tried.launched), "{tried:?}");
    let sample = target.threads.sample().unwrap();
    assert_eq!(sample.sessions.values().sum::<u32>(), 2);
    target.reset(&Work::from_catalogue("DA-SCAN", &[]).unwrap(), Driver::Client).unwrap();
    assert_eq!(target.threads.workers().len(), 0);
}
