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
        let file = dir.path().join(format!("{name}.sql"));
        std::fs::write(&file, text.strip_suffix("\n####-\n").unwrap_or(text)).unwrap();
        files.push(file.display().to_string());
    }
    // The same seed chooses the same scripts and draws the same numbers.
    let scripts: Vec<&str> = files.iter().flat_map(|file| ["-f", file]).collect();
    let clients = ["-n", "-t", "500", "-c", "2", "-j", "2", "--random-seed", SEED, "-D", "mine=x y"];
    let report = pgbench(&server, &[&clients[..], &scripts].concat());
    let ran = report.lines().filter(|line| line.starts_with(" - ") && line.contains(" transactions ("));
    assert!(ran.clone().count() == files.len() && ran.clone().all(|line| !line.starts_with(" - 0 ")), "{report}");
    let scripts: Vec<&str> = files.iter().flat_map(|file| ["--pgbench-script", file]).collect();
    let ours = [&scripts[..], &["--define", "mine=x y", "--allow-writes"]].concat();
    // pgbench ends after a number of transactions, loadline after a time: beside others it gets less done in a second.
    let (url, results) = (server.url(), dir.path().display());
    let line = format!("run --target {url} --results {results} --warmup 300ms --no-probe --duration 5s --jobs 2");
    let ran = run(&[&words(&line)[..], &["--seed", SEED], &ours].concat());
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

#[test]
fn scripts_do_what_pgbench_does_and_are_counted() {
    let server = Server::start(&["log_statement=all", "log_line_prefix=%a|%p|"]);
    pgbench(&server, &["-i", "-q", "-s", "1"]);
    server.sql("CREATE TABLE history (note text)").unwrap();
    let short = format!("--warmup 300ms --no-probe --seed {SEED}");
    let names = [("{url}", &*server.url()), ("{short}", &short)];
    hold_runs(include_str!("data/demands/scripts.toml"), &names);
    assert!(!server.has_schema());
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history").unwrap(), "0");
    let before = server.log().len();
    hold_runs(include_str!("data/demands/tpcb.toml"), &names);
    // No session repeats what one of the test before drew: it would find those rows in caches.
    let sessions = statements(&server.log()[before..], " job ");
    let first = |session: &Vec<String>| session.iter().find(|sql| sql.contains("UPDATE pgbench_accounts")).cloned();
    let firsts: std::collections::BTreeSet<_> = sessions.iter().filter_map(first).collect();
    assert!(firsts.len() >= 3 && firsts.len() == sessions.len(), "{} sessions begin with {firsts:#?}", sessions.len());
    let sums = "SELECT (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)";
    assert_eq!(server.sql(sums).unwrap(), "t");
}
