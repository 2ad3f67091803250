//! A parser of PL/SQL (PMD's, in Java) reads every script that loadline would send, and refuses it broken.

use std::path::Path;
use std::process::Command;

use super::session::SETUP;
use super::*;

/// All that runs with every workload send, to servers that allow everything or little.
fn sent() -> BTreeSet<String> {
    let (willing, unwilling) = (FakeServer::named("good"), FakeServer::named("no-grants"));
    go_through(&willing, true);
    let target = unwilling.open(false).unwrap();
    target.doctor().unwrap();
    target.create(&work()).unwrap();
    target.clean().unwrap();
    let mut all: BTreeSet<String> = willing.texts().into_iter().chain(unwilling.texts()).collect();
    // What is sent by another thread, on a cluster, or where only one instance can be read.
    let of_all = knowledge::KNOWLEDGE.query("awr-of-all");
    all.extend([SETUP, of_all, "ALTER SYSTEM CANCEL SQL '12, 34567, @1'"].map(str::to_owned));
    let jobs = counters::whose(crate::role::Scope::Jobs, "");
    all.extend(knowledge::KNOWLEDGE.views.iter().map(|view| view.query(false).replace("{whose}", &jobs)));
    all
}

fn run(command: &mut Command) {
    let missing = "missing: a Java development kit and Maven; run ./test --nightly, or: apt-get install default-jdk-headless maven";
    let got = command.output().expect(missing);
    assert!(got.status.success(), "{command:?}: {}", String::from_utf8_lossy(&got.stderr));
}

#[test]
#[ignore = "nightly: a PL/SQL parser, which Maven fetches"]
fn every_script_is_plsql_and_a_broken_one_is_not() {
    let sent = sent();
    for begins in [
        "DECLARE", "CREATE TABLE", "COMMENT", "LOCK", "DROP", "INSERT", "UPDATE", "DELETE", "COMMIT", "SELECT",
        "ALTER", "BEGIN",
    ] {
        assert!(sent.iter().any(|t| t.starts_with(begins)), "{begins} is sent");
    }
    let folder = tempfile::tempdir().unwrap();
    for (i, text) in sent.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{i:03}")), text).unwrap();
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plsql");
    let jars = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("plsql-parser-7.10.0");
    if !jars.join("pmd-plsql-7.10.0.jar").exists() {
        let copy = ["dependency:copy-dependencies".to_owned(), format!("-DoutputDirectory={}", jars.display())];
        run(Command::new("mvn").args(["-B", "-q", "-f"]).arg(sources.join("pom.xml")).args(copy));
    }
    run(Command::new("java").arg("-cp").arg(jars.join("*")).arg(sources.join("Parse.java")).arg(folder.path()));
}
