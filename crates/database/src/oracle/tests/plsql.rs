//! A parser of PL/SQL (PMD's, in Java) reads every script that loadline would send.

use std::path::Path;
use std::process::Command;

use super::session::SETUP;
use super::*;

/// Parses `scripts` by name; the reasons of those that are refused.
fn parse(scripts: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plsql");
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let jars = target.join("plsql-parser-7.10.0");
    let missing = "missing: a Java development kit and Maven; run ./test --nightly, or: apt-get install default-jdk-headless maven";
    if !jars.join("pmd-plsql-7.10.0.jar").exists() {
        let got = Command::new("mvn")
            .args(["-B", "-q", "-f"])
            .arg(sources.join("pom.xml"))
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display()))
            .output()
            .expect(missing);
        assert!(got.status.success(), "mvn: {}", String::from_utf8_lossy(&got.stdout));
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in scripts {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let classes = format!("{}/*", jars.display());
    let said = Command::new("java")
        .args(["-cp", &classes])
        .arg(sources.join("Parse.java"))
        .arg(folder.path())
        .output()
        .expect(missing);
    assert!(said.status.success(), "java: {}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8(said.stdout).unwrap();
    let parsed: BTreeMap<String, Option<String>> = said
        .lines()
        .map(|line| match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["ok", name] => ((*name).to_owned(), None),
            ["bad", name, reason @ ..] => ((*name).to_owned(), Some(reason.join(" "))),
            _ => panic!("the parser says {line}"),
        })
        .collect();
    assert_eq!(parsed.keys().collect::<Vec<_>>(), scripts.keys().collect::<Vec<_>>(), "all were read");
    parsed
}

/// PMD's grammar reads OFFSET or FETCH, but not both; a test of `sql.rs` compares the clause with the reference.
fn without_offset(text: &str) -> String {
    let mut words = text.split(" OFFSET ");
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, rest| match rest.split_once(" ROWS FETCH NEXT ") {
        Some((n, rest)) if n.bytes().all(|b| b.is_ascii_digit()) => format!("{text} FETCH FIRST {rest}"),
        _ => format!("{text} OFFSET {rest}"),
    })
}

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
    all.extend([SETUP.to_owned(), awr::OF_ALL.to_owned(), "ALTER SYSTEM CANCEL SQL '12, 34567, @1'".to_owned()]);
    let jobs = counters::whose(crate::scope::Scope::Jobs, "");
    all.extend(knowledge::KNOWLEDGE.views.iter().map(|view| view.query(false).replace("{whose}", &jobs)));
    all
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
    let mut scripts = BTreeMap::new();
    for (i, text) in sent.iter().enumerate() {
        // PMD needs the semicolon that a driver does not send.
        let end = if text.ends_with(';') { "" } else { ";" };
        scripts.insert(format!("{i:03}-whole"), format!("{}{end}", without_offset(text)));
    }
    // Broken ones: each of these words or signs is required wherever it occurs. PMD only skims DDL and LOCK,
    // which the snapshots check, and what follows the values of an UPDATE; DELETE works without FROM.
    let needed = [
        "LOOP", "END IF", "BEGIN", "THEN", ":=", "IS\n", "SET ", "WHERE", "FROM ", "VALUES", "TABLE ", "(", ")", " ||",
        "BETWEEN",
    ];
    let mut broken = 0;
    let read = ["DECLARE", "BEGIN", "SELECT", "INSERT", "UPDATE", "DELETE"];
    let mut blocks = 0;
    for (i, text) in sent.iter().enumerate().filter(|(_, t)| read.iter().any(|r| t.starts_with(r))) {
        let block = text.starts_with("DECLARE");
        blocks += u32::from(block);
        // The blocks of the workloads differ in a number or two.
        if block && blocks > 2 {
            continue;
        }
        for (k, word) in
            needed.iter().enumerate().filter(|(_, w)| !matches!(**w, "WHERE" | "FROM ") || text.starts_with("SELECT"))
        {
            for (n, (at, _)) in text.match_indices(word).enumerate().take(2) {
                let mutated = format!("{}{};", &text[..at], &text[at + word.len()..]);
                scripts.insert(format!("{i:03}-{k:02}-{n:03}-broken"), mutated);
                broken += 1;
            }
        }
    }
    let parsed = parse(&scripts);
    let mut wrong = Vec::new();
    for (name, reason) in &parsed {
        match (name.ends_with("-whole"), reason) {
            (true, Some(reason)) => wrong.push(format!("{reason}\n{}", scripts[name])),
            (false, None) => wrong.push(format!("accepted though it is broken: {name}\n{}", scripts[name])),
            _ => {}
        }
    }
    // A machine that is too slow must not look like a parser that refuses.
    let endless = parsed.values().flatten().filter(|reason| reason.contains("come to an end")).count();
    assert!(endless * 10 <= broken, "{endless} of {broken} were not read in time");
    assert!(broken > 100, "{broken} broken ones were made");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scripts.len(), wrong.join("\n\n"));
}
