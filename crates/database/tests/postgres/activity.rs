//! Statistics views: what they say of known work, and that reading them is loadline's own work.

use loadline_database::Scope;
use loadline_model::activity::{Topic, Value, growth};
use loadline_model::snapshot::counter;

use crate::server::*;
use crate::shared::*;

#[test]
fn views_grow_by_the_work_of_others_and_by_none_of_loadlines() {
    let db = server().database("activity");
    let target = db.target();
    db.psql("CREATE TABLE \"odd name\" (id int PRIMARY KEY, v int)");
    let mut observer = target.observer().unwrap();
    let (before, counted) = (views(target.as_ref()), observer.snapshot().unwrap());
    let after_counted = observer.snapshot().unwrap();
    assert_eq!(counted.delta(&after_counted, counter::COMMITS), Some(0.0));
    db.psql("INSERT INTO \"odd name\" SELECT g, g FROM generate_series(1, 1000) g; UPDATE \"odd name\" SET v = 0 WHERE id <= 10");
    let grown = growth(&before, views(target.as_ref()));
    let tables = find(&grown, "pg_stat_user_tables");
    let of = |column| cell(tables, "public.odd name", column);
    assert_eq!((of("inserts"), of("updates"), of("deletes")), (1000.0, 10.0, 0.0));
    assert!(cell(find(&grown, "pg_stat_user_indexes"), "odd name_pkey", "scans") >= 1.0);
    let statements = find(&grown, "pg_stat_statements");
    assert!(statements.absent.as_ref().unwrap().contains("CREATE EXTENSION"), "{statements:?}");
    let io = find(&grown, "pg_stat_io");
    assert!(io.absent.as_ref().is_none_or(|why| why.contains("from version 16 on")), "{io:?}");
    let settings = grown.iter().find(|v| v.topic == Topic::Settings).unwrap();
    assert!(settings.rows.iter().any(|r| settings.key(r) == ["listen_addresses"]), "{settings:?}");
    for view in grown.iter().filter(|v| v.topic != Topic::Statements && !v.title.contains("pg_stat_io")) {
        assert_eq!(view.absent, None, "{}", view.title);
    }
}

#[test]
fn a_reset_of_the_statistics_is_seen() {
    let db = server().database("resets");
    let target = db.target();
    db.psql("CREATE TABLE t AS SELECT generate_series(1, 10) AS id");
    let mut observer = target.observer().unwrap();
    let (before, counted) = (views(target.as_ref()), observer.snapshot().unwrap());
    db.psql("SELECT pg_stat_reset()");
    db.psql("INSERT INTO t SELECT generate_series(1, 1000)");
    let (grown, counted_after) = (growth(&before, views(target.as_ref())), observer.snapshot().unwrap());
    for title in ["pg_stat_user_tables", "pg_statio_user_tables", "pg_stat_user_indexes"] {
        let why = find(&grown, title).absent.clone().unwrap();
        assert!(why.starts_with("its statistics were reset at 20"), "{why}");
    }
    assert_eq!(find(&grown, "pg_stat_slru").absent, None, "it is not of one database");
    let at = |of: &loadline_model::Snapshot| of.counters.get("pg_stat_database.stats_reset").copied();
    assert!(at(&counted_after).unwrap() > 1.7e9 && at(&counted) != at(&counted_after));
}

#[test]
fn waits_of_all_clients_and_the_servers_own_work_are_sampled() {
    let db = server().database("scopes");
    let target = db.target();
    let mut all = target.observer_of(Scope::All).unwrap();
    let sleep = || drop(db.psql("SELECT pg_sleep(2) /* scopes */"));
    let mut background = || all.sample_waits().unwrap().unwrap().background.is_some();
    let seen = waits_of_all_clients_are_sampled(target.as_ref(), "Timeout:PgSleep", sleep, || {
        assert!(background(), "a superuser sees the checkpointer");
    });
    assert!(seen >= 1);
}

#[test]
fn a_snapshot_of_all_counts_all_databases_and_open_transactions() {
    let (db, other) = (server().database("counted"), server().database("elsewhere"));
    let target = db.target();
    let mut jobs = target.observer().unwrap();
    let mut all = target.observer_of(Scope::All).unwrap();
    // The first reading publishes what opening the session did.
    all.snapshot().unwrap();
    let before = (jobs.snapshot().unwrap(), all.snapshot().unwrap());
    other.psql("CREATE TABLE t (id int)");
    for _ in 0..7 {
        other.psql("INSERT INTO t VALUES (1)");
    }
    // An ended session has published its counters.
    let after = (jobs.snapshot().unwrap(), all.snapshot().unwrap());
    assert_eq!(before.0.delta(&after.0, counter::COMMITS), Some(0.0));
    // The other tests of this binary commit too.
    assert!(before.1.delta(&after.1, counter::COMMITS).unwrap() >= 7.0);
    assert!(before.1.delta(&after.1, "pg_stat_database.tup_inserted").unwrap() >= 7.0);

    other.psql("CREATE TABLE locked (id int)");
    let mut open = crate::server::open_transaction("elsewhere", "LOCK TABLE locked; SELECT 'SEKRET'");
    let idle = "Client:idle in transaction";
    wait_for("the open transaction", || all.sample_waits().unwrap().unwrap().sessions.contains_key(idle));

    let mut waits = crate::server::open_transaction("elsewhere", "SELECT * FROM locked");
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'elsewhere' AND wait_event_type = 'Lock'";
    wait_for("it to be blocked", || db.psql(blocked) != "0");
    let views = views(target.as_ref());
    let running = find(&views, "Statements and open transactions");
    let text = |value: &Option<Value>| if let Some(Value::Text(text)) = value { text.clone() } else { String::new() };
    let rows: Vec<Vec<String>> = running.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let row = |state: &str, statement: &str| {
        let found = rows.iter().find(|row| row[2] == state && row[0] == statement);
        found.unwrap_or_else(|| panic!("no {state} {statement}: {rows:?}"))
    };
    let (holds, blocked) = (row("idle in transaction", "SELECT '…';"), row("active", "SELECT * FROM locked;"));
    assert_eq!((blocked[5].as_str(), &blocked[6]), ("Lock:relation", &holds[1]));
    assert!(!format!("{running:?}").contains("loadline"), "{running:?}");
    for psql in [&mut open, &mut waits] {
        psql.kill().unwrap();
        psql.wait().unwrap();
    }
}
