//! Refusals of the server for one workload skip that workload, with the reason, and never end the run.

use crate::common::*;

/// Codes of the tests of a run, and of what it left out.
fn tested_and_skipped(folder: &Path) -> [Vec<String>; 2] {
    let codes = |of: &[Value], key: &str| -> Vec<String> {
        of.iter().map(|found| found[key].as_str().unwrap().to_owned()).collect()
    };
    let mut tested = codes(&tests_of(folder), "workload");
    tested.dedup();
    let skipped = manifest_of(folder)["plan"]["skipped"].as_array().cloned().unwrap_or_default();
    [tested, codes(&skipped, "code")]
}

/// Checks the exit code of a run that left workloads out: 1 if one was `named`, or a busy neighbour failed a proof of a test.
fn ends(ran: &Ran, named: bool) {
    let refused = tests_of(&ran.folder()).iter().any(refused);
    assert_eq!(ran.code, i32::from(named || refused), "{}", ran.said());
}

const SHORT: &str = "--duration 300ms --warmup 200ms --size 16MiB --parameter TP-LOOKUP.accounts=1000 --no-probe";

#[test]
fn a_server_that_requires_primary_keys_and_allows_few_statements_refuses_what_it_cannot_do() {
    let server = Maria::start(&["--innodb-force-primary-key=1"]);
    let sql = format!("mariadb --no-defaults -uroot -S {} -e", server.file("s"));
    hold_runs(include_str!("data/demands/refused.toml"), &[("{url}", &server.url("root")), ("{sql}", &sql)]);
}

#[test]
fn what_was_refused_for_want_of_a_privilege_is_measured_by_a_resumed_run() {
    let server = Server::start(&[]);
    server.sql("CREATE ROLE ann LOGIN; GRANT CREATE ON DATABASE postgres TO ann").unwrap();
    let trigger = "CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
                   IF current_query() ILIKE '%dbl_22%' THEN RAISE insufficient_privilege; END IF; END $$; \
                   CREATE EVENT TRIGGER forbid ON ddl_command_start EXECUTE FUNCTION forbid()";
    server.sql(trigger).unwrap();
    let url = server.url().replace("boss@", "ann@");
    let dir = results();
    let ran = on(&url, dir.path(), &format!("--workload DBL-22,TP-LOOKUP --jobs 1 {SHORT}"));
    ends(&ran, true);
    let folder = ran.folder();
    assert_eq!(tested_and_skipped(&folder), [["TP-LOOKUP"], ["DBL-22"]], "{}", ran.said());
    let page = report(&folder, "--format text");
    assert!(page.contains("Skipped: DBL-22: ERROR 42501") && !page.contains("as the run ended before"), "{page}");
    server.sql("DROP EVENT TRIGGER forbid").unwrap();
    ends(&resumed(&folder, ""), false);
    assert_eq!(tested_and_skipped(&folder), [vec!["TP-LOOKUP".to_owned(), "DBL-22".to_owned()], vec![]]);
}

#[test]
fn tests_with_more_sessions_than_are_free_are_left_out() {
    let server = Server::start(&["max_connections=20"]);
    let idle = || {
        let mut psql = server.client("psql");
        Killed(psql.args(["-c", "SELECT pg_sleep(600)", "postgres"]).stdout(Stdio::null()).spawn().unwrap())
    };
    let dir = results();
    let args = format!("--workload LGWR-LAT25,TP-LOOKUP --jobs 1,12 {SHORT}");
    let url = server.url();
    // They come once the run has begun: it knows of those before.
    let ran = std::thread::scope(|scope| {
        let ran = scope.spawn(|| on(&url, dir.path(), &args));
        while !server.has_schema() && !ran.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _others: Vec<_> = (0..10).map(|_| idle()).collect();
        ran.join().unwrap()
    });
    ends(&ran, true);
    assert_eq!(made(&tests_of(&ran.folder()), "jobs"), [("LGWR-LAT25", 1), ("TP-LOOKUP", 1)], "{}", ran.said());
    assert!(ran.err.contains("LGWR-LAT25: with 12 jobs and more"), "{}", ran.said());
}
