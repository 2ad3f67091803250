//! Both drivers: the same work, the same bytes, honest times.

use loadline_target::{ClientSession, Target, TargetError, Work, clock};
use loadline_workload::{Arg, Execute};

use crate::server::{Db, server, work};

struct Executor<'a>(&'a mut dyn ClientSession);

impl Execute for Executor<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.0.execute(statement, args)
    }
}

struct Autocommit<'a>(&'a mut dyn ClientSession, u64);

impl Execute for Autocommit<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let (rows, done) = self.0.execute_and_commit(statement, args)?;
        self.1 = done;
        Ok(rows)
    }
}

fn prepared(db: &Db, work: &Work, jobs: u32) -> Box<dyn Target> {
    let target = db.target();
    target.create(work).unwrap();
    target.load(work, jobs).unwrap();
    target.install(work).unwrap();
    target
}

/// One transaction at the client, as the runner does it.
fn transact(stream: &mut loadline_workload::Stream, work: &Work, session: &mut dyn ClientSession) {
    if work.program.is_single_statement() {
        let before = clock::now_ns();
        let mut autocommit = Autocommit(session, 0);
        stream.transaction(&mut autocommit).unwrap();
        let done = autocommit.1;
        assert!(before < done && done <= clock::now_ns(), "the commit began in between");
    } else {
        session.begin().unwrap();
        stream.transaction(&mut Executor(session)).unwrap();
        session.commit().unwrap();
    }
}

fn contents(db: &Db, work: &Work) -> String {
    let table = format!("loadline.{}_redo", work.workload.code.to_lowercase().replace('-', "_"));
    db.psql(&format!("SELECT count(*), sum(n), md5(string_agg(id || ':' || n || ':' || encode(payload, 'hex'), ',' ORDER BY id)) FROM {table}"))
}

#[test]
fn both_drivers_write_the_same_bytes_and_the_evidence_equals_the_work() {
    let db = server().database("drivers");
    for code in ["LGWR-LAT1", "LGWR-LAT25", "LGWR-THR"] {
        let work = work(code, &[]);
        let target = prepared(&db, &work, 3);
        let loaded = contents(&db, &work);
        let job = 1;
        let mut done = 0;
        let mut session = target.database_session(&work, job).unwrap();
        while done < 20 {
            // A slice whose end is past does one transaction.
            let slice = session.run_slice(0).unwrap();
            assert_eq!((slice.transaction.count(), slice.commit.count()), (0, 0));
            assert!(slice.end.is_some());
            done += 1;
        }
        let in_database = contents(&db, &work);
        assert_ne!(loaded, in_database);
        let rows = 20 * work.program.rows_per_tx() as i64;
        assert_eq!(target.evidence(&work).unwrap(), Some(rows), "{code}");

        let target = prepared(&db, &work, 3);
        assert_eq!(contents(&db, &work), loaded, "{code}: loading is deterministic");
        let mut client = target.client_session(&work, job).unwrap();
        let mut stream = work.stream(job).unwrap();
        for _ in 0..20 {
            transact(&mut stream, &work, client.as_mut());
        }
        assert_eq!(contents(&db, &work), in_database, "{code}");
        assert_eq!(target.evidence(&work).unwrap(), Some(rows), "{code}");
    }
}

#[test]
fn a_slice_counts_each_of_its_transactions_once() {
    let db = server().database("slices");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    let mut session = target.database_session(&work, 0).unwrap();
    let (mut transactions, mut last_end) = (0, 0);
    for _ in 0..3 {
        let before = clock::now_ns();
        let until = before + 300_000_000;
        let slice = session.run_slice(until).unwrap();
        let after = clock::now_ns();
        let end = slice.end.unwrap();
        transactions += slice.transaction.count() + 1;
        assert_eq!(slice.transaction.count(), slice.commit.count());
        // The two clocks agree to well under a millisecond on one machine.
        let slack = 500_000;
        assert!(slice.first_start_ns + slack >= before && end.end_ns <= after + slack);
        assert!(end.end_ns + 1_000 >= until && end.start_ns <= end.commit_ns && end.commit_ns <= end.end_ns);
        assert!(slice.first_start_ns >= last_end, "slices do not overlap");
        last_end = end.end_ns;
        // What the transactions took fits into the slice, and fills most of it.
        let busy = slice.transaction.sum_ns() as f64 + (end.end_ns - end.start_ns) as f64;
        let wall = (end.end_ns - slice.first_start_ns) as f64;
        assert!(busy <= wall + 1e3 && busy > 0.8 * wall, "{busy} of {wall}");
        assert!(slice.commit.sum_ns() < slice.transaction.sum_ns());
        assert!(slice.transaction.quantile_ns(0.5) <= slice.transaction.max_ns());
        let mean = slice.transaction.mean_ns().unwrap();
        let middle = slice.transaction.histogram().mean();
        assert!((mean / middle - 1.0).abs() < 0.02, "histogram mean {middle}, exact mean {mean}");
    }
    assert_eq!(target.evidence(&work).unwrap(), Some(transactions as i64));
}

#[test]
fn the_procedures_buckets_are_those_of_the_model() {
    use loadline_model::histogram::LogLinear;
    let db = server().database("buckets");
    let values: Vec<u64> = (1..3000).chain((4..36).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1])).collect();
    let list = values.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    // The expressions are taken out of the procedure itself.
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    drop(target);
    let source = db.psql("SELECT prosrc FROM pg_proc WHERE proname = 'lgwr_lat1_run'");
    let expression = |name: &str| {
        let line = source.lines().find(|l| l.trim().starts_with(&format!("{name} := "))).unwrap();
        line.trim().trim_start_matches(&format!("{name} := ")).trim_end_matches(';').to_owned()
    };
    let octave = expression("l_octave");
    let bucket = expression("l_bucket");
    let sql = format!(
        "SELECT string_agg(({bucket})::int::text, ',' ORDER BY i) FROM (SELECT i, l_us, {octave} AS l_octave \
         FROM unnest(ARRAY[{list}]::float8[]) WITH ORDINALITY AS u(l_us, i)) x"
    );
    let got: Vec<usize> = db.psql(&sql).split(',').map(|n| n.parse().unwrap()).collect();
    for (us, bucket) in values.iter().zip(got) {
        assert_eq!(bucket - 1, LogLinear::index(*us), "{us} µs");
    }
}

#[test]
fn a_row_that_is_missing_is_an_error_that_names_the_statement() {
    let db = server().database("missing_row");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    db.psql("DELETE FROM loadline.lgwr_lat1_redo WHERE id = 0");
    let mut session = target.database_session(&work, 0).unwrap();
    match session.run_slice(0).map(|_| ()) {
        Err(TargetError::Statement(e)) => assert!(e.contains("statement 0 touched 0 rows instead of 1"), "{e}"),
        other => panic!("{other:?}"),
    }
    let mut client = target.client_session(&work, 0).unwrap();
    let mut stream = work.stream(0).unwrap();
    let e = TargetError::from(stream.transaction(&mut Autocommit(client.as_mut(), 0)).unwrap_err()).to_string();
    assert!(e.contains("statement 0 touched 0 rows instead of 1"), "{e}");
}

#[test]
fn a_failed_transaction_is_rolled_back_and_the_session_lives_on() {
    let db = server().database("rollback");
    let work = work("LGWR-LAT25", &[]);
    let target = prepared(&db, &work, 1);
    db.psql("ALTER TABLE loadline.lgwr_lat25_redo ADD CHECK (length(payload) > 100)");
    let mut s = target.client_session(&work, 0).unwrap();
    let good = [7_u8; 200];
    s.begin().unwrap();
    assert_eq!(s.execute(0, &[Arg::Bytes(&good), Arg::Int(0)]).unwrap(), 1);
    match s.execute(0, &[Arg::Bytes(b"short"), Arg::Int(1)]) {
        Err(TargetError::Statement(e)) => assert!(e.starts_with("ERROR 23514: "), "{e}"),
        other => panic!("{other:?}"),
    }
    let e = s.commit().unwrap_err().to_string();
    assert!(e.contains("ROLLBACK"), "a failed transaction is not taken for committed: {e}");
    s.rollback().unwrap();
    assert_eq!(target.evidence(&work).unwrap(), Some(0));
    s.begin().unwrap();
    assert_eq!(s.execute(0, &[Arg::Bytes(&good), Arg::Int(0)]).unwrap(), 1);
    s.rollback().unwrap();
    assert_eq!(target.evidence(&work).unwrap(), Some(0));
    s.begin().unwrap();
    assert_eq!(s.execute(0, &[Arg::Bytes(&good), Arg::Int(0)]).unwrap(), 1);
    s.commit().unwrap();
    assert_eq!(target.evidence(&work).unwrap(), Some(1));
    assert!(matches!(s.execute_and_commit(0, &[Arg::Bytes(b"no"), Arg::Int(0)]), Err(TargetError::Statement(_))));
    s.rollback().unwrap();
    assert_eq!(s.execute_and_commit(0, &[Arg::Bytes(&good), Arg::Int(0)]).unwrap().0, 1);
    assert_eq!(target.evidence(&work).unwrap(), Some(2));
}

#[test]
fn a_killed_backend_is_a_lost_session() {
    let db = server().database("killed");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 2);
    let kill = |job: u32| {
        let pid = db.psql(&format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'loadline test-run job {job}'"
        ));
        assert_eq!(pid, "t");
    };
    let mut client = target.client_session(&work, 0).unwrap();
    kill(0);
    match client.execute_and_commit(0, &[Arg::Bytes(&[1; 100]), Arg::Int(0)]) {
        Err(TargetError::Lost(e)) => assert!(e.contains("57P01"), "the server's reason is told: {e}"),
        other => panic!("{other:?}"),
    }
    let mut database = target.database_session(&work, 1).unwrap();
    let worker = std::thread::spawn(move || database.run_slice(clock::now_ns() + 20_000_000_000).map(|_| ()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(1);
    assert!(matches!(worker.join().unwrap(), Err(TargetError::Lost(_))));
}

#[test]
fn a_call_that_hangs_is_cancelled_at_the_client_and_in_the_server() {
    let db = server().database("cancelled");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    let mut session = target.database_session(&work, 0).unwrap();
    let canceller = session.canceller();
    let worker = std::thread::spawn(move || session.run_slice(clock::now_ns() + 60_000_000_000).map(|_| ()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    canceller.cancel();
    assert!(matches!(worker.join().unwrap(), Err(TargetError::Lost(_))));
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline test-run job%' AND datname = 'cancelled'";
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while db.psql(left) != "0" {
        assert!(std::time::Instant::now() < until, "the server still works for a client that is gone");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn commit_modes_reach_the_session() {
    let db = server().database("modes");
    for (code, expected) in [("LGWR-LAT1", 1), ("LGWR-THR", 0)] {
        let work = work(code, &[("rows", 1), ("own-rows", 8)]);
        let target = prepared(&db, &work, 1);
        let mut client = target.client_session(&work, 0).unwrap();
        let mut observer = target.observer().unwrap();
        client.publish_counters().unwrap();
        let syncs = |observer: &mut Box<dyn loadline_target::Observer>| {
            observer.snapshot().unwrap().counters["loadline.commits"]
        };
        let before = syncs(&mut observer);
        let mut stream = work.stream(0).unwrap();
        let lsn = |what: &str| db.psql(&format!("SELECT {what}() - '0/0'::pg_lsn")).parse::<f64>().unwrap();
        let mut flushed_at_once = 0;
        for _ in 0..10 {
            transact(&mut stream, &work, client.as_mut());
            flushed_at_once += i32::from(lsn("pg_current_wal_flush_lsn") >= lsn("pg_current_wal_insert_lsn"));
        }
        client.publish_counters().unwrap();
        assert_eq!(syncs(&mut observer) - before, 10.0 + 20.0, "10 of ours and 20 of psql");
        if expected == 1 {
            assert!(flushed_at_once >= 8, "a durable commit is flushed when it returns: {flushed_at_once} of 10");
        }
        drop(client);
        drop(target);
        db.psql("DROP SCHEMA loadline CASCADE");
    }
}

#[test]
fn the_cost_of_the_loop_itself_is_small() {
    let db = server().database("overhead");
    let work = work("LGWR-LAT1", &[]);
    let ns = db.target().in_database_overhead_ns(&work).unwrap().unwrap();
    assert!((200.0..100_000.0).contains(&ns), "{ns} ns");
}
