//! pgbench scripts as a workload, compared with pgbench itself on one server.

use std::collections::BTreeMap;

use crate::common::*;

const SEED: &str = "4711";
/// Scripts of all features, each after a line `#### name`; one before `####-` ends without the end of its line.
const FEATURES: &str = include_str!("../../../workload/tests/scripts/features.txt");

/// pgbench with a thread per client, as each job has its own choices.
fn pgbench(server: &Server, args: &[&str]) -> String {
    let out = server.client("pgbench").args(args).arg("postgres").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn measure(server: &Server, dir: &Path, jobs: &str, more: &[&str]) -> Ran {
    measure_for("1s", server, dir, jobs, more)
}

fn measure_for(duration: &str, server: &Server, dir: &Path, jobs: &str, more: &[&str]) -> Ran {
    let (target, dir) = (server.url(), dir.display());
    let line =
        format!("run --target {target} --results {dir} --warmup 300ms --no-probe --duration {duration} --jobs {jobs}");
    run(&[&words(&line)[..], &["--seed", SEED], more].concat())
}

/// Statements of each session of an application, letter by letter, without loadline's own.
fn statements(log: &str, application: &str) -> Vec<Vec<String>> {
    let mut sessions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // The server begins the further lines of an entry with a tab.
    let log = log.replace("\n\t", "\u{0}");
    for entry in log.split('\n') {
        let mut parts = entry.splitn(3, '|');
        let (Some(name), Some(session), Some(said)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Some(sql) = said.strip_prefix("LOG:  statement: ") else { continue };
        if name.contains(application) && !sql.contains("/* loadline") {
            sessions.entry(session).or_default().push(sql.replace('\u{0}', "\n"));
        }
    }
    sessions.into_values().collect()
}

#[test]
fn scripts_of_all_features_send_what_pgbench_sends() {
    let server = Server::start(&["log_statement=all", "log_line_prefix=%a|%p|"]);
    let dir = results();
    let mut files = Vec::new();
    for (name, text) in FEATURES.split("#### ").filter_map(|part| part.split_once('\n')) {
        files.push(write(dir.path(), &format!("{name}.sql"), text.strip_suffix("\n####-\n").unwrap_or(text)));
    }
    assert_eq!(files.len(), 73, "docs/pgbench-scripts.md says so");
    // The same seed chooses the same scripts and draws the same numbers.
    let scripts: Vec<&str> = files.iter().flat_map(|file| ["-f", file]).collect();
    let clients = ["-n", "-t", "500", "-c", "2", "-j", "2", "--random-seed", SEED, "-D", "mine=x y"];
    let report = pgbench(&server, &[&clients[..], &scripts].concat());
    let ran = report.lines().filter(|line| line.starts_with(" - ") && line.contains(" transactions ("));
    assert!(ran.clone().count() == files.len() && ran.clone().all(|line| !line.starts_with(" - 0 ")), "{report}");
    let scripts: Vec<&str> = files.iter().flat_map(|file| ["--pgbench-script", file]).collect();
    let ours = [&scripts[..], &["--define", "mine=x y", "--allow-writes"]].concat();
    // pgbench ends after a number of transactions, loadline after a time: beside others it gets less done in a second.
    let ran = measure_for("5s", &server, dir.path(), "2", &ours);
    let (theirs, ours) = (statements(&server.log(), "pgbench"), statements(&server.log(), " job "));
    assert_eq!(ours.len(), 2, "{}", ran.said());
    let mut compared = 0;
    for theirs in theirs.iter().filter(|session| session.len() > 400) {
        let alike = |ours: &Vec<String>| ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        let most = ours.iter().map(alike).max().unwrap();
        let differ = |session: &Vec<String>| session.get(most).cloned();
        let differ: Vec<_> = ours.iter().map(differ).collect();
        assert_eq!(most, theirs.len(), "pgbench {:?}, loadline {differ:?}", theirs.get(most));
        compared += most;
    }
    assert!(compared > 1400, "{compared} statements");
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn scripts_do_what_pgbench_does_and_are_counted() {
    let server = Server::start(&["log_statement=all", "log_line_prefix=%a|%p|"]);
    let dir = results();
    pgbench(&server, &["-i", "-q", "-s", "1"]);
    let write = |name: &str, text: &str| write(dir.path(), name, text);
    let mixed = write("mixed.sql", "BEGIN;\nSELECT 1 AS a \\gset\nSELECT :a;\nEND;\n") + "@3";
    let short = write("short.sql", "SELECT 1;;\nSELECT 2;\n") + "@2";
    let ran = measure(&server, dir.path(), "2", &["--pgbench-script", &mixed, "--pgbench-script", &short]);
    let test = &tests_of(&ran.folder())[0];
    assert!(sound(test), "{}", ran.said());

    // Each script has a row of its own, and together they are the test.
    let kinds = test["kinds"].as_array().unwrap();
    let tps: Vec<f64> = kinds.iter().map(|kind| kind["tps"].as_f64().unwrap()).collect();
    assert_eq!(kinds.iter().map(|kind| kind["weight"].as_i64()).collect::<Vec<_>>(), [Some(3), Some(2)]);
    assert!((tps.iter().sum::<f64>() / figure(test, "tx_per_s") - 1.0).abs() < 1e-6, "{tps:?}");
    assert!((1.2..1.8).contains(&(tps[0] / tps[1])), "{tps:?}");
    let table = rows_of(&printed(&format!("export {} --format csv --table kinds", ran.folder().display())));
    assert_eq!(table.iter().map(|row| number(row, "tps")).collect::<Vec<_>>(), tps);
    let all: f64 = table.iter().map(|row| number(row, "transactions")).sum();
    assert_eq!(all, figure(test, "commits"));
    // Of a refused test, no figures are shown.
    assert!(refused(test) || ran.out.contains("short.sql (weight 2)"), "{}", ran.said());

    // Some scripts are one transaction of the server, others three: an empty statement is one as well.
    assert_eq!(test["workload"], "PGBENCH");
    ["commits-database", "commits-window"].iter().for_each(|id| passed(test, id));
    let per_tx = figure(test, "commits_database") / figure(test, "commits");
    assert!((1.65..1.95).contains(&per_tx), "3 of 5 scripts commit once, 2 of 5 three times: {per_tx}");
    assert!(!server.has_schema());

    // Scripts only read, unless told otherwise.
    let tpcb = ["--pgbench-script", "builtin:tpcb-like"];
    measure(&server, dir.path(), "1", &tpcb).fails(1, &["builtin:tpcb-like:6:1: ERROR 25006", "--allow-writes"]);
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history").unwrap(), "0");
    let before = server.log().len();
    let ran = measure(&server, dir.path(), "1,2", &[&tpcb[..], &["--allow-writes"]].concat());
    let tests = tests_of(&ran.folder());
    assert_eq!(tests.len(), 2, "{}", ran.said());
    // No session repeats what one of the test before drew: it would find those rows in caches.
    let sessions = statements(&server.log()[before..], " job ");
    let first = |session: &Vec<String>| session.iter().find(|sql| sql.contains("UPDATE pgbench_accounts")).cloned();
    let firsts: std::collections::BTreeSet<_> = sessions.iter().filter_map(first).collect();
    assert!(firsts.len() >= 3 && firsts.len() == sessions.len(), "{} sessions begin with {firsts:#?}", sessions.len());
    all_passed(&tests, &["commits-database", "commits-window"]);
    for test in &tests {
        assert!(sound(test), "{}", ran.said());
        assert!((figure(test, "statements_per_tx") - 7.0).abs() < 0.01);
    }
    let sums = "SELECT (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)";
    assert_eq!(server.sql(sums).unwrap(), "t");

    scripts_that_fail(&server, dir.path());
    what_scripts_did_is_proven(&server);
}

fn scripts_that_fail(server: &Server, dir: &Path) {
    let write = |name: &str, text: &str| write(dir, name, text);
    // One that loses against another is a failed transaction, and its client goes on.
    let conflicting =
        write("lose.sql", "BEGIN ISOLATION LEVEL REPEATABLE READ;\nUPDATE pgbench_branches SET bbalance = 0;\nEND;\n");
    let ran = measure(server, dir, "2", &["--pgbench-script", &conflicting, "--allow-writes"]);
    let test = &tests_of(&ran.folder())[0];
    assert!(figure(test, "errors") > 0.0 && figure(test, "commits") > 0.0, "{}", ran.said());
    passed(test, "window");
    assert!(check(test, "errors")["detail"].as_str().unwrap().contains("lose.sql:2:1: ERROR 40001"), "{}", ran.said());

    // What may commit by itself is not compared with the server's count: no check passes for nothing.
    let block = write("do.sql", "DO $$ BEGIN PERFORM 1; COMMIT; END $$;\n");
    let ran = measure(server, dir, "1", &["--pgbench-script", &block]);
    let test = &tests_of(&ran.folder())[0];
    assert_eq!(outcome(test, "commits-database"), "not-made", "{}", ran.said());

    // What fails with one job is not tried with more, until somebody may have mended it.
    let later = write("later.sql", "SELECT * FROM later;\n");
    let ran = measure(server, dir, "1,2,3", &["--pgbench-script", &later]);
    let folder = ran.folder();
    assert_eq!(tests_of(&folder).len(), 1, "{}", ran.said());
    server.sql("CREATE TABLE later (n int)").unwrap();
    let ran = resumed(&folder, "");
    let tps: Vec<f64> = tests_of(&folder).iter().map(|test| figure(test, "tx_per_s")).collect();
    assert!(tps.len() == 3 && tps[0] == 0.0 && tps[1] > 0.0 && tps[2] > 0.0, "{tps:?}: {}", ran.said());

    // Whatever ends pgbench's client ends the job, with the place.
    for (text, says) in [
        ("SELECT 1;\n\\set x :nosuch\n", "fails.sql:2:1: undefined variable \"nosuch\""),
        ("BEGIN;\nSELECT 1;\n", "the script ends and leaves a transaction open"),
        ("SELECT 1 WHERE false \\gset\n", "\\gset expects one row, the statement returned 0"),
        ("COPY (SELECT 1) TO STDOUT;\n", "COPY TO STDOUT"),
        ("SELECT * FROM nosuch;\n", "fails.sql:1:1: ERROR 42P01: relation \"nosuch\" does not exist"),
    ] {
        let fails = write("fails.sql", text);
        measure(server, dir, "1", &["--pgbench-script", &fails]).fails(1, &[says]);
    }
}

fn what_scripts_did_is_proven(server: &Server) {
    let dir = results();
    server.sql("CREATE TABLE history (note text)").unwrap();
    let measured = |text: &str, more: &[&str]| {
        let path = write(dir.path(), "script.sql", text);
        let ran = measure(server, dir.path(), "2", &[&["--pgbench-script", &path], more].concat());
        tests_of(&ran.folder()).remove(0)
    };
    let insert = "INSERT INTO history VALUES ('x');\n";
    let test = measured(insert, &["--allow-writes", "--evidence", "SELECT count(*)::bigint FROM history"]);
    passed(&test, "work-evidence");
    assert!(test["checks"].as_array().unwrap().iter().all(|check| check["id"] != "read-only"), "it may write");
    let test = measured(insert, &["--allow-writes", "--evidence", "SELECT count(*) / 2 FROM history"]);
    assert!(!sound(&test) && outcome(&test, "work-evidence") == "failed", "{test}");
    // A script that turns the guard off is told of.
    let test = measured(&format!("SET default_transaction_read_only = off;\n{insert}"), &[]);
    assert_eq!(outcome(&test, "read-only"), "noted", "{test}");
    let test = measured("SELECT count(*) FROM history WHERE note = 'y';\n", &[]);
    assert_eq!(outcome(&test, "read-only"), "passed", "{test}");
    // One that sends nothing has no throughput.
    let test = measured("\\if false\nSELECT 1;\n\\endif\n", &[]);
    assert!(!sound(&test), "{test}");
    assert!(check(&test, "work-evidence")["detail"].as_str().unwrap().contains("nothing was sent"), "{test}");
}
