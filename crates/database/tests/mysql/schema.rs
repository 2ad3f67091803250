//! loadline's database: made, resumed, cleaned, and never mixed up with a foreign one.

use std::sync::{Arc, Mutex};

use loadline_database::{LoadProgress, Secret};
use loadline_model::snapshot::counter;
use loadline_model::{Capability, Severity};

use crate::server::*;
use crate::shared::*;

#[test]
fn what_loadline_made_goes_and_what_others_made_stays() {
    let server = server_alone();
    let target = &server.target;
    let databases = || server.sql("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'loadline'");
    let work = loaded(target.as_ref(), work("LGWR-LAT1", &[]), 2);
    target.abilities().driver().unwrap().install(&work).unwrap();
    // A load that was cut off is resumed.
    server.sql(
        "DELETE FROM loadline.lgwr_lat1_redo WHERE id = 130; UPDATE loadline.lgwr_lat1_redo SET n = 5 WHERE id = 7",
    );
    target.load(&work, 3).unwrap();
    let rows = "SELECT COUNT(*), MIN(id), MAX(id), SUM(n) FROM loadline.lgwr_lat1_redo";
    assert_eq!(server.sql(rows), "384\t0\t383\t5", "rows that jobs changed stay");
    server.sql("CREATE TABLE loadline.theirs (a INT)");
    let said = target.clean().unwrap().join("; ");
    assert!(said.contains("left alone") && said.contains("lgwr_lat1_redo") && said.contains("lgwr_lat1_run"), "{said}");
    assert_eq!(server.sql("SHOW TABLES FROM loadline"), "theirs");
    // It has no mark any more and holds something: it is not loadline's.
    assert_refused(target.create(&work), &["made_by_loadline"]);
    server.sql("DROP TABLE loadline.theirs");
    // Empty, made by an administrator for a user who may not make one: taken, and left there.
    target.create(&work).unwrap();
    target.clean().unwrap();
    assert_eq!(databases(), "1");
    server.sql("DROP DATABASE loadline");
    target.create(&work).unwrap();
    let said = target.clean().unwrap();
    assert!(said.contains(&"the database loadline".to_owned()), "{said:?}");
    assert_eq!((databases().as_str(), target.clean().unwrap().len()), ("0", 0));
}

#[test]
fn a_poor_user_is_told_what_is_missing() {
    let server = server_alone();
    server.sql("CREATE OR REPLACE USER poor@localhost WITH MAX_USER_CONNECTIONS 9");
    let grants = [("GRANT ALL ON loadline.*", Severity::Refused), ("GRANT PROCESS", Severity::Warning)];
    a_poor_user_is_told(server.as_users("poor").unwrap().as_ref(), &grants, 5, "max_user_connections = 9");
    server.sql("DROP USER poor@localhost");
}

#[test]
fn accounts_are_quoted_as_each_sql_mode_reads_them() {
    let server = server_alone();
    for (user, account, mode) in [
        ("o'brien%40x", "'o''brien@x'@'localhost'", "NO_BACKSLASH_ESCAPES"),
        ("a%5Cb", r"'a\\b'@'localhost'", "ANSI_QUOTES"),
    ] {
        server.sql(&format!("SET sql_mode = '{mode}'; CREATE OR REPLACE USER {account}"));
        let findings = server.as_users(user).unwrap().doctor().unwrap();
        let grant = format!("GRANT PROCESS ON *.* TO {account}");
        assert!(findings.iter().any(|f| f.advice.contains(&grant)), "{grant}: {findings:?}");
        server.sql(&format!("SET sql_mode = '{mode}'; DROP USER {account}"));
    }
}

#[test]
fn a_password_is_asked_for_when_the_server_wants_one_and_once() {
    let server = server_alone();
    server
        .sql("CREATE OR REPLACE USER asked@localhost IDENTIFIED BY 'tops3cret'; CREATE OR REPLACE USER free@localhost");
    for (user, answer, questions, refusal) in [
        ("asked", Some("tops3cret"), 1, None),
        ("free", Some("unused"), 0, None),
        ("asked", Some("wr0ng"), 1, Some("password for user 'asked' is wrong")),
        ("asked", None, 1, Some("no password was given")),
    ] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&asked);
        let mut request = server.request(user);
        request.ask_password = Arc::new(move |whose| {
            said.lock().unwrap().push(whose.to_owned());
            answer.map(|a| Secret::new(a.to_owned()))
        });
        let opened = loadline_database::open(&request).and_then(|target| target.doctor().map(drop));
        match refusal {
            Some(words) => assert_refused(opened, &[words]),
            None => assert_eq!(opened, Ok(())),
        }
        let asked = asked.lock().unwrap();
        assert!(asked.len() == questions && asked.iter().all(|a| a.starts_with("user asked at ")), "{asked:?}");
    }
    server.sql("DROP USER asked@localhost; DROP USER free@localhost");
}

#[test]
fn which_counters_a_user_without_privileges_loses() {
    // With a binary log, performance_schema is read as well.
    let server = Server::start("", &[("log_bin", "bin")]);
    server.sql("CREATE USER poor@localhost");
    let all: Vec<String> = server.target.observer().unwrap().snapshot().unwrap().counters.into_keys().collect();
    let lost = || {
        let theirs = server.as_users("poor").unwrap().observer().unwrap().snapshot().unwrap().counters;
        all.iter().filter(|name| !theirs.contains_key(*name)).cloned().collect::<Vec<_>>()
    };
    let metric = |name: &String| name.starts_with("INNODB_METRICS.");
    let time = |name: &String| name.starts_with("performance_schema.") || name == counter::LOG_WAIT_NS;
    assert!(all.iter().any(metric) && all.iter().any(time), "{all:?}");
    assert!(lost().iter().all(|name| metric(name) || time(name)), "{:?}", lost());
    assert!(lost().iter().any(metric) && lost().iter().any(time), "{:?}", lost());
    let times = || {
        let findings = server.as_users("poor").unwrap().doctor().unwrap();
        findings.into_iter().find(|f| f.id == "performance_schema").unwrap()
    };
    assert!(times().severity == Severity::Warning && times().advice.contains("GRANT SELECT ON performance_schema.*"));
    server.sql("GRANT SELECT ON performance_schema.* TO poor@localhost");
    assert_eq!(times().severity, Severity::Ok);
    assert!(lost().iter().all(metric) && !lost().is_empty(), "{:?}", lost());
    server.sql("GRANT PROCESS ON *.* TO poor@localhost");
    assert_eq!(lost(), Vec::<String>::new());
}

#[test]
fn a_server_that_is_read_only_for_this_user_is_no_target() {
    let server = server_alone();
    server.sql("CREATE OR REPLACE USER boss@localhost; GRANT SUPER, CREATE, DROP ON *.* TO boss@localhost");
    server.sql("SET GLOBAL read_only = ON");
    let found = |user: &str| {
        let target = server.as_users(user).unwrap();
        let finding = target.doctor().unwrap().into_iter().find(|f| f.id == "read_only").unwrap();
        (finding.severity, target.create(&work("LGWR-LAT1", &[])).is_ok())
    };
    let all = [found("root"), found("boss")];
    server.sql("GRANT READ_ONLY ADMIN ON *.* TO boss@localhost");
    let granted = found("boss");
    server.sql("SET GLOBAL read_only = OFF; DROP USER boss@localhost");
    server.target.clean().unwrap();
    // What the doctor says is what happens.
    assert_eq!(all, [(Severity::Ok, true), (Severity::Impossible, false)]);
    assert_eq!(granted, (Severity::Ok, true));
}

/// The query of a MySQL's replication group, asked of members that are made up.
#[test]
fn a_group_rests_if_its_members_are_offline() {
    let known: toml::Table = include_str!("../../src/mysql.toml").parse().unwrap();
    let rests = known["queries"]["group-rests"].as_str().unwrap();
    for (states, said) in [("'OFFLINE'", "1"), ("'ONLINE'), ('RECOVERING'", "0"), ("'OFFLINE'), ('ERROR'", "0")] {
        let members = format!("(WITH members (MEMBER_STATE) AS (VALUES ({states})) SELECT * FROM members) AS members");
        let sql = rests.replace("performance_schema.replication_group_members", &members);
        assert_eq!(server_alone().sql(&sql), said, "{states}");
    }
    let none =
        rests.replace("performance_schema.replication_group_members", "(SELECT 1 AS MEMBER_STATE LIMIT 0) AS none");
    assert_eq!(server_alone().sql(&none), "NULL", "that is not said");
}

#[test]
fn rows_come_in_the_same_by_either_path() {
    let server = server_alone();
    let target = &server.target;
    let work = work("SRV-QUERY1", &[]);
    let sum = "SELECT COUNT(*), SUM(CRC32(CONCAT_WS(',', id, k, n, HEX(payload)))) FROM loadline.data_lookup";
    let cut = "DELETE FROM loadline.data_lookup WHERE id DIV 4096 = 5";
    let sql = |sql: &str| server.sql(sql);
    let whole = the_data_set_is_loaded_once_and_resumed(target.as_ref(), &sql, sum, cut);
    target.abilities().tables.unwrap().drop_data_set().unwrap();
    // A server that takes no rows from files gets inserts, and workloads that need more are skipped.
    // They are given back as the load goes on: the server has few of them.
    server.sql("SET GLOBAL local_infile = 0; SET GLOBAL max_prepared_stmt_count = 12");
    let progress = LoadProgress::default();
    target.create(&work).unwrap();
    target.load_watched(&work, 1, &progress).unwrap();
    let (done, inserted) = (progress.done(), server.sql(sum));
    let missing = target.capabilities().unwrap().missing;
    server.sql("SET GLOBAL local_infile = 1; SET GLOBAL max_prepared_stmt_count = 16382");
    assert!(done[0].path.contains("prepared inserts") && done[0].rows_loaded == 100_000, "{done:?}");
    assert_eq!(inserted, whole);
    assert!(
        missing.iter().any(|(_, c, why)| *c == Capability::BulkLoad && why.contains("local_infile")),
        "{missing:?}"
    );
    target.clean_after_run(false).unwrap();
}

#[test]
fn whole_tables_of_a_workload_are_loaded_once_and_indexed_then() {
    let server = server_alone();
    let keys = [
        "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_NAME = 'sto_read_async_spread'",
        "1",
        "ALTER TABLE loadline.sto_read_async_spread DROP INDEX by_k",
    ];
    let (open, sql) = (|| server.as_users("root").unwrap(), |sql: &str| server.sql(sql));
    let path = "LOAD DATA LOCAL INFILE";
    whole_tables_are_loaded_once_and_then_indexed(server.target.as_ref(), &open, &sql, keys, path);
    assert_eq!(server.sql("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'sto%'"), "0");
}
