use std::collections::BTreeMap;

use loadline_model::plan::Payload;
use loadline_model::snapshot::counter;
use loadline_workload::{Arg, CATALOGUE, Effect, Execute, Limit, LoopRows, Looping};
use rusqlite::params_from_iter;

use super::*;
use crate::embedded::tests::{commit, loaded};
use crate::registry;
use crate::role::{Administration, Scope};

fn request(url: &str, scratch: &std::path::Path) -> OpenRequest {
    OpenRequest::new(url, scratch.to_owned())
}

/// Without a statement journal the rows changed before the failure stay until the transaction is rolled back.
#[test]
fn an_update_that_fails_midway_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let target = registry::open(&request(&format!("sqlite:{}", path.display()), dir.path())).unwrap();
    // A single range, which every transaction changes.
    let work = loaded(&*target, "LGWR-LAT25", &[("own-rows", 25)]);
    // Row 5 cannot get the number that row 10 has.
    let table = KNOWLEDGE.dialect.table_name(&work, "redo");
    let unique = format!("CREATE UNIQUE INDEX apart ON {table} (CASE WHEN id IN (5, 10) THEN n END)");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("UPDATE {table} SET n = 1 WHERE id = 10; {unique}")).unwrap();
    let mut session = target.client_session(&work, 0).unwrap();
    let mut stream = work.stream(0).unwrap();
    session.begin().unwrap();
    assert!(stream.transaction(session.as_mut()).is_err());
    session.rollback().unwrap();
    assert_eq!(target.evidence(&work).unwrap(), Some(1));
    db.execute_batch("DROP INDEX apart").unwrap();
    commit(session.as_mut(), &mut stream);
    assert_eq!(target.evidence(&work).unwrap(), Some(26));
}

#[test]
fn the_caches_of_sixteen_sessions_are_an_eighth_of_the_memory() {
    let kib = |memory: u64| connect::default("cache_size", memory);
    assert_eq!(kib(16 << 30), format!("-{}", (2 << 20) / 16));
    assert_eq!((kib(1 << 30), kib(4 << 40)), ("-16384".to_owned(), "-1048576".to_owned()));
}

#[test]
fn pages_rows_and_checkpoints_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let mut request = request("sqlite:", scratch.path());
    // A cache of few pages, so that reads must go to the file.
    request.settings.insert("cache_size".into(), "10".into());
    let target = registry::open(&request).unwrap();
    let work = Work::from_catalogue("LGWR-LAT25", &[]).unwrap();
    target.create(&work).unwrap();
    target.load(&work, 2).unwrap();
    target.settle().unwrap();
    let mut session = target.client_session(&work, 1).unwrap();
    let mut stream = work.stream(1).unwrap();
    let now = || target.observer().unwrap().snapshot().unwrap();
    let before = now();
    for _ in 0..20 {
        commit(session.as_mut(), &mut stream);
    }
    session.publish_counters().unwrap();
    let after = now();
    let grown = |name| before.delta(&after, name).unwrap();
    assert_eq!(grown(counter::ROWS_CHANGED) as u64, 20 * work.program.rows_per_tx());
    let (gets, reads) = (grown(counter::BLOCK_GETS), grown(counter::BLOCK_READS));
    assert!(reads > 0.0 && gets > reads, "{gets} pages requested, {reads} read");
    assert_eq!(grown(counter::READ_BYTES), reads * 1024.0);
    assert!(grown(counter::READ_CALLS) > 0.0 && grown(counter::READ_CALLS) <= reads, "some are in the log still");
    assert!(grown(counter::READ_NS) > 0.0 && grown(counter::REDO_WRITE_NS) > 0.0);
    assert_eq!((grown(counter::CHECKPOINTS), grown(counter::BLOCK_WRITES)), (0.0, 0.0), "the log takes it all");
    target.settle().unwrap();
    let settled = now();
    assert_eq!(after.delta(&settled, counter::CHECKPOINTS), Some(1.0));
    assert!(after.delta(&settled, counter::BLOCK_WRITES).unwrap() > 0.0);
    // One that another thread makes is nobody's wait.
    (0..20).for_each(|_| commit(session.as_mut(), &mut stream));
    let ask = || target.abilities().tables.unwrap().checkpoint().unwrap();
    std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
    let asked = now();
    let grown = |name| settled.delta(&asked, name).unwrap();
    assert_eq!((grown(counter::CHECKPOINTS), grown(counter::BUFFER_WAIT_NS)), (1.0, 0.0));
    assert!(grown(counter::BLOCK_WRITES) > 0.0);
}

/// A deleted account is detected, and a sum over no rows (NULL) is not accepted as 0.
#[test]
fn lost_rows_and_null_are_no_proof() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let target = registry::open(&request(&format!("sqlite:{}", file.display()), dir.path())).unwrap();
    let work = loaded(&*target, "TP-LIGHT", &[("accounts", 20)]);
    let found = || {
        let queries = target.abilities().tables.unwrap();
        work.workload.consistency.iter().map(|c| queries.integer(&work, &c.query)).collect::<Vec<_>>()
    };
    assert!(found().iter().all(|f| matches!(f, Ok(0))), "{:?}", found());
    let half = target.abilities().tables.unwrap().integer(&work, "SELECT max(1.5) FROM {account}");
    assert!(half.as_ref().is_err_and(|e| e.to_string().contains("'1.5'")), "{half:?}");
    let without = |which: &str| {
        let sql = format!("DELETE FROM loadline_tp_light_account WHERE {which}");
        Connection::open(&file).unwrap().execute_batch(&sql).unwrap();
    };
    without("id = 7");
    assert!(matches!(found()[0], Ok(-1)), "{:?}", found());
    without("id >= 0");
    assert!(found().iter().any(|f| f.as_ref().is_err_and(|e| e.to_string().contains("NULL"))), "{:?}", found());
    assert_eq!(target.evidence(&work).unwrap(), Some(0), "no rows are left");
    let none = target.abilities().tables.unwrap().integer(&work, "SELECT id FROM {account}");
    assert!(none.is_err(), "no row: {none:?}");
    let unknown =
        target.abilities().tables.unwrap().integer(&work, "SELECT :nothing FROM {account}").unwrap_err().to_string();
    assert!(unknown.contains("'nothing'"), "{unknown}");
}

/// Number of fcntl locks of this process on the file at `path`.
fn locks(path: &std::path::Path) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let number = format!(":{} ", std::fs::metadata(path).unwrap().ino());
    let all = std::fs::read_to_string("/proc/locks").unwrap();
    all.lines().filter(|l| l.contains(" POSIX ") && l.contains(&number)).count()
}

#[test]
fn opening_the_database_outside_sqlite_keeps_its_locks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    let target = registry::open(&request(&format!("sqlite:{}", path.display()), dir.path())).unwrap();
    let work = Work::from_catalogue("STO-RANDOM", &[]).unwrap().with_size(1 << 20);
    target.create(&work).unwrap();
    target.load(&work, 1).unwrap();
    let mut session = target.client_session(&work, 0).unwrap();
    let mut stream = work.stream(0).unwrap();
    commit(session.as_mut(), &mut stream);
    assert!(locks(&path) > 0, "a session in WAL mode holds a lock on the database as long as it is open");
    let own = target.facts().own_files.clone().unwrap();
    assert_eq!(own.named, [dir.path().join("x.db-wal")]);
    // Sessions may outlive the target.
    drop((own, target));
    assert!(locks(&path) > 0);
    drop(session);
    assert_eq!(locks(&path), 0);
}

#[test]
fn the_log_is_short_to_measure_storage_and_long_for_a_checkpoint_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let target = registry::open(&request("sqlite:", dir.path())).unwrap();
    let log = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path().join("loadline.db-wal");
    let run = |code: &str, transactions: u32| {
        let work = Work::from_catalogue(code, &[]).unwrap().with_size(1 << 20);
        target.create(&work).unwrap();
        target.load(&work, 1).unwrap();
        target.settle().unwrap();
        let before = target.observer().unwrap().snapshot().unwrap();
        let mut session = target.client_session(&work, 0).unwrap();
        let mut stream = work.stream(0).unwrap();
        for _ in 0..transactions {
            commit(session.as_mut(), &mut stream);
        }
        let after = target.observer().unwrap().snapshot().unwrap();
        let counted = before.delta(&after, counter::ROWS_CHANGED).unwrap();
        let changes = u64::from(transactions) * work.program.rows_changed_per_tx();
        assert_eq!(counted as u64, changes, "each change is counted when its statement is done");
        let written = before.delta(&after, counter::BLOCK_WRITES).unwrap();
        (written / changes as f64, session)
    };
    let (written, _) = run("STO-RANDOM", 500);
    assert!((0.8..=1.2).contains(&written), "{written} blocks written per change");
    // The table has so few blocks that some are changed twice before a checkpoint.
    let (written, _) = run("DBWR-THR", 320);
    assert!((0.4..=1.0).contains(&written), "{written} blocks written per change");
    let (written, _session) = run("DBWR-CKPT", 1100);
    assert_eq!(written, 0.0, "everything waits for the requested checkpoint");
    assert!(std::fs::metadata(&log).unwrap().len() > 1100 * 1024);
    let before = target.observer().unwrap().snapshot().unwrap();
    target.abilities().tables.unwrap().checkpoint().unwrap();
    let after = target.observer().unwrap().snapshot().unwrap();
    assert!(before.delta(&after, counter::BLOCK_WRITES).unwrap() > 500.0);
}

/// Executes each statement in the database and as a loop, and compares the answers.
struct Both<'a> {
    db: Connection,
    work: &'a Work,
    looping: Looping<'a>,
    compared: usize,
}

impl Both<'_> {
    fn query(&self, sql: &str, args: &[i64]) -> Vec<Vec<i64>> {
        let mut query = self.db.prepare(sql).unwrap();
        let columns = query.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|i| row.get(i)).collect();
        query.query_map(params_from_iter(args), row).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

impl Execute for Both<'_> {
    type Error = std::convert::Infallible;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Self::Error> {
        let rows = self.looping.execute(statement, args)?;
        let number = |arg: &Arg<'_>| if let Arg::Int(number) = arg { *number } else { panic!("a payload") };
        let (of, args) = (&self.work.program.statements[statement], args.iter().map(number).collect::<Vec<_>>());
        if of.effect == Effect::Command {
            self.db.execute(&sql(self.work, of), []).unwrap();
            let (key, table) =
                ("SELECT k, id FROM {built} ORDER BY k, id", |t: &str| KNOWLEDGE.dialect.table_name(self.work, t));
            let keys = self.query(&self.work.query(key, table).unwrap(), &[]);
            assert!(keys.iter().map(|key| (key[0], key[1])).eq(self.looping.keys.iter().copied()));
            self.compared += keys.len();
        } else {
            let answer = self.query(&sql(self.work, of), &args);
            assert_eq!(answer, self.looping.answer, "{} {args:?}", self.work.workload.code);
            self.compared += answer.len();
        }
        Ok(rows)
    }

    fn bulk(&mut self, _: usize, _: i64, _: u32) -> Result<u64, Self::Error> {
        panic!("no loop loads rows");
    }
}

#[test]
fn loops_over_the_rows_answer_as_the_database() {
    let scratch = tempfile::tempdir().unwrap();
    let target = Sqlite::open(&request("sqlite:", scratch.path())).unwrap();
    let mut compared = Vec::new();
    for workload in CATALOGUE.iter() {
        let Some(Limit::Loop(of)) = workload.limits.iter().find(|l| matches!(l, Limit::Loop(_))) else { continue };
        let given = workload.params.iter().flat_map(|p| p.choices.iter().map(|v| (p.name.to_owned(), *v)));
        let given = given.map(|one| BTreeMap::from([one])).chain([BTreeMap::new()]);
        for given in given {
            let params = workload.params(&given).unwrap().with_size(4 << 20);
            let work = Work::new(Arc::clone(workload), params, 7, Payload { compressibility: 0.3, duplicates: None });
            target.create(&work).unwrap();
            target.load(&work, 1).unwrap();
            let rows = LoopRows::new(&workload.tables, &work.params, work.seed, work.payload, 128 << 20);
            assert_eq!(rows.rows(), rows.of_all);
            let db = target.connector.connect(Commit::Wait).unwrap();
            let mut both = Both { db, work: &work, looping: Looping::new(*of, &rows), compared: 0 };
            let mut stream = work.stream(1).unwrap();
            (0..3).for_each(|_| stream.transaction(&mut both).unwrap());
            assert!(both.compared >= 3, "{}", workload.code);
            compared.push(workload.code.as_str());
        }
    }
    compared.dedup();
    let codes = ["SRV-SCAN", "DBL-INDEX", "DA-SCAN", "DA-AGG", "DA-JOIN", "DA-SORT", "DA-WINDOW", "DA-PARALLEL"];
    assert!(codes.iter().all(|code| compared.contains(code)), "{compared:?}");
}

#[test]
fn settings_are_shown_and_what_it_does_not_count_has_a_reason() {
    use loadline_model::activity::{Topic, Value};
    let scratch = tempfile::tempdir().unwrap();
    let mut request = request("sqlite:", scratch.path());
    request.settings.extend([("mmap_size", "65536"), ("page_size", "4096")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    let target = registry::open(&request).unwrap();
    let views = target.abilities().tables.unwrap();
    let all = views.views().unwrap();
    let of = |topic| all.iter().find(|v| v.topic == topic).unwrap();
    let counted: Vec<_> = Topic::ALL.into_iter().filter(|topic| of(*topic).absent.is_none()).collect();
    assert_eq!(counted, [Topic::Settings], "{all:?}");
    let shows = |name: &str, value: &str| {
        let shown = [name, value].map(|text| Some(Value::Text(text.to_owned())));
        of(Topic::Settings).rows.iter().any(|row| row[..2] == shown)
    };
    assert!(shows("mmap_size", "65536") && shows("journal_mode", "wal") && !shows("page_size", "4096"), "{all:?}");
    assert!(matches!(target.observer_of(Scope::All).err(), Some(TargetError::Unsupported(_))));
}
