//! Both drivers: the same work, the same bytes, correct times.

use loadline_database::{Target, TargetError, Work};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

fn prepared(db: &Db, work: &Work, jobs: u32) -> Box<dyn Target> {
    let target = db.target();
    prepare(target.as_ref(), work, jobs);
    target
}

#[test]
fn both_drivers_write_the_same_bytes_and_the_evidence_equals_the_work() {
    let db = server().database("drivers");
    let contents = |work: &Work| {
        let code = work.workload.code.to_lowercase().replace('-', "_");
        let table = format!("loadline.{code}_{}", work.workload.tables[0].name);
        db.psql(&format!("SELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM {table} t"))
    };
    // The commit start is measured in every seventh transaction of one statement: two of twenty in each of nine sessions.
    assert_eq!(both_drivers_write_the_same_bytes(db.target().as_ref(), contents), 18);
}

#[test]
fn a_slice_counts_each_of_its_transactions_once() {
    // How well the two clocks agree depends on how fast the server answered.
    slices(server().database("slices").target().as_ref(), &work("LGWR-LAT1", &[]), 300_000_000, 100_000_000, 0.0);
}

#[test]
#[ignore = "nightly: the clocks agree as well as the fastest answer, and others take time from a slice"]
fn transactions_fill_most_of_a_slice() {
    slices(server().database("full_slices").target().as_ref(), &work("LGWR-LAT1", &[]), 300_000_000, 500_000, 0.8);
}

#[test]
fn a_session_can_be_used_after_a_failed_transaction() {
    let db = server().database("rollback");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    db.psql("ALTER TABLE loadline.lgwr_lat1_redo ADD CHECK (length(payload) > 100)");
    let (_, committed) =
        a_failed_statement_is_an_error_and_the_session_lives_on(target.as_ref(), &work, b"short", "23514");
    let e = committed.unwrap_err().to_string();
    assert!(e.contains("ROLLBACK"), "a failed transaction is not taken for committed: {e}");
}

#[test]
fn a_killed_backend_is_a_lost_session() {
    let db = server().database("killed");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 2);
    let kill = |job: u32| {
        let killed = db.psql(&format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
             WHERE application_name = 'loadline test-run job {job}' AND datname = 'killed'"
        ));
        assert_eq!(killed, "t");
    };
    let mut client = target.client_session(&work, 0).unwrap();
    kill(0);
    match client.execute_and_commit(0, &[Arg::Bytes(&[1; 100]), Arg::Int(0)]) {
        Err(TargetError::Lost(e)) => assert!(e.contains("57P01"), "contains the server's reason: {e}"),
        other => panic!("{other:?}"),
    }
    let mut database = target.abilities().driver().unwrap().database_session(&work, 1).unwrap();
    let worker =
        std::thread::spawn(move || database.run_slice(loadline_storage::now_ns() + 20_000_000_000).map(|_| ()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(1);
    assert!(matches!(worker.join().unwrap(), Err(TargetError::Lost(_))));
}

#[test]
fn a_call_that_hangs_is_cancelled_at_the_client_and_in_the_server() {
    let db = server().database("cancelled");
    let work = work("LGWR-LAT1", &[]);
    let target = prepared(&db, &work, 1);
    let mut session = target.abilities().driver().unwrap().database_session(&work, 0).unwrap();
    let canceller = session.canceller();
    let worker = std::thread::spawn(move || session.run_slice(loadline_storage::now_ns() + 60_000_000_000).map(|_| ()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    canceller.cancel();
    assert!(matches!(worker.join().unwrap(), Err(TargetError::Lost(_))));
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline test-run job%' AND datname = 'cancelled'";
    wait_for("the server to notice that its client has gone", || db.psql(left) == "0");
}

#[test]
fn commit_modes_and_settings_reach_the_sessions() {
    let db = server().database("modes");
    db.psql("ALTER DATABASE modes SET jit = on; ALTER DATABASE modes SET statement_timeout = '1min'");
    let findings = db.target().doctor().unwrap();
    for (id, value) in [("jit", "on"), ("statement_timeout", "1min")] {
        assert!(findings.iter().any(|f| f.id == id && f.value == value), "those of others' sessions: {findings:?}");
    }
    for (code, expected) in [("LGWR-LAT1", "on off 0"), ("LGWR-THR", "off off 0")] {
        let work = work(code, &[("rows", 1), ("own-rows", 8)]);
        let target = prepared(&db, &work, 1);
        let table = format!("loadline.{}_redo", code.to_lowercase().replace('-', "_"));
        // A trigger reads the settings inside the job's transaction.
        db.psql(&format!(
            "CREATE TABLE IF NOT EXISTS seen(driver text, s text); \
             CREATE OR REPLACE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO seen SELECT TG_TABLE_NAME, concat_ws(' ', current_setting('synchronous_commit'), \
             current_setting('jit'), current_setting('statement_timeout')); RETURN NULL; END $$; \
             CREATE TRIGGER look AFTER UPDATE ON {table} EXECUTE FUNCTION look()"
        ));
        let mut client = target.client_session(&work, 0).unwrap();
        transact(&mut work.stream(0).unwrap(), &work, client.as_mut());
        target.abilities().driver().unwrap().database_session(&work, 0).unwrap().run_slice(0).unwrap();
        assert_eq!(db.psql("SELECT string_agg(s, ',') FROM seen"), format!("{expected},{expected}"), "{code}");
        db.psql("DROP TABLE seen");
    }
}
