//! Statistics views: what they say of known work, and that reading them is loadline's own work.

use loadline_database::Scope;
use loadline_model::activity::{Topic, Value, growth};
use loadline_model::snapshot::counter;

use crate::server::*;
use crate::shared::*;

#[test]
fn views_grow_by_the_work_of_others_and_by_none_of_loadlines() {
    let server = Server::start("", &[("performance_schema", "1")]);
    let target = server.target.as_ref();
    let mut observer = target.observer().unwrap();
    server.sql("CREATE DATABASE activity; CREATE TABLE activity.`odd name` (id INT PRIMARY KEY, v INT)");
    let (before, counted) = (views(target), observer.snapshot().unwrap());
    views(target);
    assert_eq!(counted.delta(&observer.snapshot().unwrap(), counter::COMMITS), Some(0.0));
    server.sql(
        "USE activity; INSERT INTO `odd name` SELECT seq, seq FROM seq_1_to_1000; UPDATE `odd name` SET v = 0 WHERE id <= 10; CREATE TABLE more (id INT)",
    );
    let grown = growth(&before, views(target));
    let tables = find(&grown, "table_io_waits_summary_by_table");
    let of = |column| cell(tables, "activity.odd name", column);
    assert_eq!((of("inserts"), of("updates"), of("deletes")), (1000.0, 10.0, 0.0));
    assert!(of("time") > 0.0 && of("time") < 60_000.0, "ms: {}", of("time"));
    assert!(cell(find(&grown, "by_index_usage"), "PRIMARY", "fetches") >= 10.0);
    let statements = find(&grown, "by_digest");
    let insert = |column| cell(statements, "INSERT INTO `odd name`", column);
    assert_eq!((insert("calls"), insert("rows changed"), insert("errors")), (1.0, 1000.0, 0.0));
    assert!(insert("total time") >= of("insert time"), "the statement holds its accesses");
    assert!(cell(find(&grown, "By kind of file"), "sql/FRM", "written") > 0.0);
    assert!(cell(find(&grown, "By file"), "activity/more.frm", "write time") > 0.0);
    let waits = find(&grown, "Of the instruments");
    assert!(cell(waits, "wait/io/table", "waits") > 0.0 && !waits.rows.iter().any(|r| waits.key(r) == ["idle"]));
    let settings = grown.iter().find(|v| v.topic == Topic::Settings).unwrap();
    assert!(settings.rows.iter().any(|r| settings.key(r) == ["performance_schema"]), "{settings:?}");
    for view in &grown {
        assert_eq!(view.absent, None, "{}", view.title);
    }
    // A view whose instruments are off would be empty, as if nothing had been done.
    server.sql("UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'statements_digest'");
    server.sql("UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE NAME LIKE 'wait/io/file/%'");
    let off = views(target);
    for (title, words) in [("by_digest", "'statements_digest' is off"), ("By kind of file", "'wait/io/file/%'")] {
        let absent = find(&off, title).absent.clone().unwrap();
        assert!(absent.contains(words) && absent.contains("UPDATE performance_schema"), "{absent}");
    }
}

#[test]
fn without_performance_schema_it_is_said_what_to_do() {
    let server = server_alone();
    let root = server.as_users("root").unwrap();
    let off = views(root.as_ref());
    for topic in [Topic::Waits, Topic::Statements, Topic::Io, Topic::Objects] {
        let view = off.iter().find(|v| v.topic == topic).unwrap();
        let why = view.absent.as_ref().unwrap_or_else(|| panic!("{view:?}"));
        assert!(why.contains("performance_schema = ON") && view.rows.is_empty(), "{why}");
        assert_eq!(why.contains("userstat = ON"), topic == Topic::Objects, "{why}");
    }
    server.sql("SET GLOBAL userstat = ON; CREATE DATABASE userstat; CREATE TABLE userstat.t (id INT PRIMARY KEY)");
    let before = views(root.as_ref());
    server.sql("USE userstat; INSERT INTO t SELECT seq FROM seq_1_to_100");
    let grown = growth(&before, views(root.as_ref()));
    server.sql("SET GLOBAL userstat = OFF; DROP DATABASE userstat");
    assert_eq!(cell(find(&grown, "TABLE_STATISTICS"), "userstat.t", "rows changed"), 100.0);
}

#[test]
fn locks_that_are_waited_for_are_shown_with_their_table() {
    let server = server_alone();
    let root = server.as_users("root").unwrap();
    server.sql("CREATE DATABASE locked; CREATE TABLE locked.t (id INT PRIMARY KEY); INSERT INTO locked.t VALUES (1)");
    let seen = std::thread::scope(|scope| {
        let held = scope.spawn(|| server.sql("BEGIN; DELETE FROM locked.t; SELECT SLEEP(6), \"SEKRET\""));
        let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
        wait_for("the lock", || server.sql(sleeps) == "1");
        let waiting = scope.spawn(|| server.sql("DELETE FROM locked.t"));
        let mut seen = None;
        while seen.is_none() && !held.is_finished() {
            // InnoDB answers from a copy unless nobody asked for 0.1 s.
            std::thread::sleep(std::time::Duration::from_millis(200));
            let now = views(root.as_ref());
            seen = (!find(&now, "INNODB_LOCK_WAITS").rows.is_empty()).then_some(now);
        }
        waiting.join().unwrap();
        seen
    });
    server.sql("DROP DATABASE locked");
    let seen = seen.unwrap();
    assert_eq!(cell(find(&seen, "INNODB_LOCK_WAITS"), "`locked`.`t`", "waited for"), 1.0);
    let transactions = find(&seen, "INNODB_TRX");
    assert_eq!(cell(transactions, "LOCK WAIT", "number"), 1.0);
    assert!((0.0..10.0).contains(&cell(transactions, "RUNNING", "oldest, s")), "{transactions:?}");
    assert!(cell(find(&seen, "process list"), "Query", "number") >= 1.0);
    let running = find(&seen, "Statements and open transactions");
    let of = |statement: &str| running.rows.iter().find(|r| running.key(r)[0] == statement).unwrap();
    let (holds, waits) = (of("SELECT SLEEP(…), \"…\""), of("DELETE FROM locked.t"));
    assert_eq!(waits.last().unwrap(), &Some(Value::Text(running.key(holds)[1].clone())), "{running:?}");
    assert_eq!(holds.last().unwrap(), &None);
}

#[test]
fn waits_of_all_clients_are_sampled_if_all_can_be_seen() {
    let server = server_alone();
    server.sql("CREATE USER IF NOT EXISTS blind@localhost; GRANT ALL ON loadline.* TO blind@localhost");
    let (root, blind) = (server.as_users("root").unwrap(), server.as_users("blind").unwrap());
    let mut unseen = blind.observer_of(Scope::All).unwrap();
    let lock = root.lock().unwrap();
    let sleep = || drop(server.sql("SELECT SLEEP(2)"));
    let seen = waits_of_all_clients_are_sampled(root.as_ref(), "Stage:User sleep", sleep, || {
        assert_eq!(unseen.sample_waits().unwrap(), None, "it may not see them");
    });
    assert_eq!(seen, 1);
    drop(lock);
    for (title, words) in [("process list", "GRANT PROCESS"), ("INNODB_TRX", "PROCESS"), ("As a replica", "denied")] {
        let absent = find(&views(blind.as_ref()), title).absent.clone();
        assert!(absent.as_ref().is_some_and(|why| why.contains(words)), "{title}: {absent:?}");
    }
}
