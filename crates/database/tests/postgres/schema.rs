//! The schema (lock, loading, removal), the doctor, several nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use loadline_database::{Results, TextDone, Work};
use loadline_model::{Driver, Severity};
use loadline_workload::Arg;

use crate::server::*;
use crate::shared::*;

#[test]
fn a_second_run_is_refused_until_the_first_ends() {
    let db = server().database("locked");
    let (first, second) = (db.target(), db.target());
    let lock = first.lock().unwrap();
    assert_refused(second.lock(), &["'loadline test-run lock'", "since 20"]);
    assert_refused(second.clean(), &[]);
    drop(lock);
    // The server notices a closed session a little later.
    wait_for("the lock", || second.lock().is_ok());
}

#[test]
fn the_largest_payload_stays_in_line_and_updates_stay_on_their_page() {
    let db = server().database("largest");
    let work = work("LGWR-LAT1", &[("payload", 1900)]);
    let target = db.target();
    prepare(target.as_ref(), &work, 1);
    let mut session = target.abilities().driver().unwrap().database_session(&work, 0).unwrap();
    for _ in 0..300 {
        session.run_slice(0).unwrap();
    }
    let hot = db.psql("SELECT n_tup_hot_upd >= 0.95 * n_tup_upd AND n_tup_upd = 300 FROM pg_stat_user_tables WHERE relname = 'lgwr_lat1_redo'");
    assert_eq!(hot, "t");
    assert_eq!(db.psql("SELECT max(pg_column_size(payload)) FROM loadline.lgwr_lat1_redo"), "1904");
}

#[test]
fn cleaning_removes_only_loadlines_objects() {
    let db = server().database("cleaning");
    let work = work("LGWR-LAT1", &[]);
    let target = db.target();
    assert_eq!(target.clean().unwrap(), Vec::<String>::new());
    target.create(&work).unwrap();
    target.abilities().driver().unwrap().install(&work).unwrap();
    assert!(db.psql("SELECT obj_description('loadline'::regnamespace)").contains("loadline clean removes it"));
    let removed = target.clean().unwrap().join("; ");
    for part in ["loadline.lgwr_lat1_redo", "loadline.lgwr_lat1_run", "schema loadline"] {
        assert!(removed.contains(part), "{removed}");
    }
    assert_eq!(db.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'"), "0");
    db.psql("CREATE SCHEMA loadline; CREATE TABLE loadline.precious(a int)");
    let install = target.abilities().driver().unwrap().install(&work);
    for result in [target.create(&work), install, target.clean().map(drop)] {
        assert_refused(result, &["did not create"]);
    }
    assert_eq!(db.psql("SELECT count(*) FROM loadline.precious"), "0");
}

#[test]
fn missing_privileges_are_named() {
    let s = server();
    let _db = s.database("poor");
    let target = open(&s.socket_url("limited", "poor")).unwrap();
    let grants = [("GRANT CREATE ON DATABASE", Severity::Impossible), ("GRANT pg_monitor", Severity::Warning)];
    // 5 minus 3 for loadline itself.
    a_poor_user_is_told(target.as_ref(), &grants, 2, "CONNECTION LIMIT = 5");
    assert!(target.settle().unwrap().unwrap().contains("no checkpoint"));
}

#[test]
fn nodes_of_one_instance_are_counted_once() {
    let s = server();
    let db = s.database("nodes");
    let mut two = request(&db.url());
    two.nodes = vec![s.tcp_url("postgres", "127.0.0.1", "nodes")];
    let target = loadline_database::open(&two).unwrap();
    assert_eq!(target.facts().nodes, 2);
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 2);
    assert_eq!(db.psql("SELECT count(*) FROM loadline.lgwr_lat1_redo"), "256");
    let _sessions = [target.client_session(&work, 0).unwrap(), target.client_session(&work, 1).unwrap()];
    let over_tcp = "SELECT count(*), count(client_addr) FROM pg_stat_activity WHERE application_name LIKE 'loadline test-run job%' AND datname = 'nodes'";
    assert_eq!(db.psql(over_tcp), "2|1", "jobs are spread over the nodes");
    let one = db.target().observer().unwrap().snapshot().unwrap();
    let both = target.observer().unwrap().snapshot().unwrap();
    let grown = one.delta(&both, "pg_current_wal_insert_lsn").unwrap();
    assert!(grown < 1e9, "the log of one instance is not added up twice: {grown}");
    two.nodes = vec![s.socket_url("postgres", "postgres")];
    assert_usage(loadline_database::open(&two), &["two databases"]);
}

#[test]
fn rows_that_jobs_changed_stay_and_a_table_that_is_gone_is_told_from_a_scripts() {
    let db = server().database("resumed");
    let target = db.target();
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 4);
    let table = "loadline.lgwr_lat1_redo";
    db.psql(&format!("DELETE FROM {table} WHERE id BETWEEN 150 AND 383; UPDATE {table} SET n = 5 WHERE id = 400"));
    target.load(&work, 4).unwrap();
    assert_eq!(db.psql(&format!("SELECT count(*), sum(n) FROM {table}")), "512|5");
    let mut session = target.client_session(&work, 0).unwrap();
    db.psql(&format!("DROP TABLE {table}"));
    let own = target.load(&work, 4).unwrap_err().to_string();
    let script = session.send_text("SELECT FROM loadline_mine", Results::None, &mut TextDone::default());
    let script = script.unwrap_err().to_string();
    assert!(own.contains("somebody dropped it") && !script.contains("somebody dropped it"), "{own}; {script}");
    assert!(script.contains("loadline_mine"), "{script}");
}

#[test]
fn the_data_set_is_loaded_once_and_resumed() {
    let db = server().database("data_set");
    let target = db.target();
    let sum = "SELECT md5(string_agg(id || ' ' || k || ' ' || n || encode(payload, 'hex'), ',' ORDER BY id)), count(*), (SELECT \
               count(*) FROM pg_indexes WHERE schemaname = 'loadline' AND tablename = 'data_lookup') FROM loadline.data_lookup";
    let cut = "ALTER TABLE loadline.data_lookup DROP CONSTRAINT data_lookup_pkey; DELETE FROM loadline.data_lookup WHERE \
               id / 4096 = 3";
    let whole = crate::shared::the_data_set_is_loaded_once_and_resumed(target.as_ref(), &|sql| db.psql(sql), sum, cut);
    assert!(whole.ends_with("|100000|1"), "the key is created after loading: {whole}");
    // A run without --keep-data removes the data set, unless an earlier run kept it.
    assert_eq!(db.psql("SELECT count(*) FROM pg_tables WHERE schemaname = 'loadline'"), "2");
    let work = work("SRV-QUERY1", &[]);
    target.clean_after_run(false).unwrap();
    target.load(&work, 1).unwrap();
    assert_eq!(db.psql("SELECT count(*) FROM loadline.data_lookup"), "100000");
    target.abilities().tables.unwrap().drop_data_set().unwrap();
    target.load(&Work { seed: work.seed + 1, ..work }, 1).unwrap();
    target.clean_after_run(false).unwrap();
    assert_eq!(db.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'"), "0");
}

#[test]
fn whole_workload_tables_are_loaded_once_and_then_indexed() {
    let db = server().database("whole");
    let keys = [
        "SELECT count(*) FROM pg_indexes WHERE tablename = 'sto_read_async_spread'",
        "0",
        "DROP INDEX loadline.sto_read_async_spread_k; ALTER TABLE loadline.sto_read_async_spread DROP CONSTRAINT \
         sto_read_async_spread_pkey",
    ];
    let (target, open) = (db.target(), || db.target());
    whole_tables_are_loaded_once_and_then_indexed(target.as_ref(), &open, &|sql| db.psql(sql), keys, "COPY");
    assert_eq!(db.psql("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'sto%'"), "0");
}

#[test]
fn data_without_statistics_are_not_complete() {
    let db = server().database("statistics");
    let target = db.target();
    let work = work("SRV-QUERY1", &[]);
    // The step with ANALYZE in it fails.
    db.psql(
        "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF tg_tag = 'ALTER TABLE' AND \
         current_query() LIKE '%ANALYZE%' THEN RAISE 'cut off'; END IF; END $$; \
         CREATE EVENT TRIGGER cut ON ddl_command_end EXECUTE FUNCTION public.no()",
    );
    target.create(&work).unwrap();
    assert!(target.load(&work, 1).is_err());
    let found = target.abilities().tables.unwrap().data_set().unwrap();
    assert!(found.iter().all(|t| !t.complete), "{found:?}");
    db.psql("DROP EVENT TRIGGER cut");
    target.load(&work, 1).unwrap();
    assert!(target.abilities().tables.unwrap().data_set().unwrap()[0].complete);
    let analyzed = "SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'data_lookup'";
    assert_eq!(db.psql(analyzed), "t");
    target.clean().unwrap();
}

#[test]
fn a_query_gets_the_requested_workers_for_any_size_of_its_table() {
    let db = server().database("together");
    let target = db.target();
    let work = |workers: i64| work("DA-PARALLEL", &[("workers", workers)]).with_size(2 << 20);
    loaded(target.as_ref(), work(1), 1);
    for workers in [12, 2, 1] {
        target.reset(&work(workers), Driver::Client).unwrap();
        // For the size of this table the planner would use at most seven.
        let tried = target.abilities().parallel_queries.unwrap().try_parallel(&work(workers)).unwrap().unwrap();
        assert_eq!((tried.planned, tried.launched), (workers as u32, workers as u32));
    }
    assert_eq!(
        target.abilities().parallel_queries.unwrap().max_parallel_workers().unwrap().map(|m| m.workers),
        Some(17)
    );

    // Workers start and end all the time: one that has just started must not hide the others.
    target.reset(&work(8), Driver::Client).unwrap();
    let mut session = target.client_session(&work(8), 0).unwrap();
    let mut observer = target.observer().unwrap();
    let stop = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                session.execute_and_commit(0, &[Arg::Int(-5)]).unwrap();
            }
        });
        let samples: Vec<_> = (0..2000).map(|_| observer.sample_waits().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(samples.iter().all(Option::is_some));
        samples.into_iter().flatten().map(|s| s.sessions.values().sum::<u32>()).max()
    });
    assert!(most > Some(1), "{most:?}");
}
