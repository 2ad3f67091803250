//! Workloads of users: the documented example runs end to end, and is resumed without its file.

use crate::common::*;

/// Workloads of these tests.
const TYPED: &str = include_str!("data/typed.toml");
const MAYBE: &str = include_str!("data/maybe.toml");

#[test]
#[cfg(feature = "servers")]
fn every_part_of_the_language_is_proved_on_every_database_with_tables() {
    let dir = results();
    let (unix, json) = ("EXTRACT(EPOCH FROM at) - 946684800", "doc ->> 'id'");
    // Only a client counts rows and writes them in bulk; MariaDB returns no changed row.
    for (target, driver, others, at, doc) in [
        ("sqlite:", "client", "rest maybe", "unixepoch(at) - 946684800", "CONCAT(doc ->> 'id', '')"),
        ("postgres-temp:", "client", "rest maybe", unix, json),
        ("postgres-temp:", "database", "", unix, json),
        ("mariadb-temp:", "client", "rest", "TIMESTAMPDIFF(SECOND, '2000-01-01', at)", "JSON_VALUE(doc, '$.id')"),
    ] {
        let typed = dir.path().join("typed.toml");
        std::fs::write(&typed, TYPED.replace("{{at}}", at).replace("{{doc}}", doc)).unwrap();
        let others = words(others).into_iter().map(|name| format!(" --workload-file {DATA}/{name}.toml"));
        let files = format!("--workload-file {}{}", typed.display(), others.collect::<String>());
        let names = [("{target}", target), ("{driver}", driver), ("{others}", &files)];
        hold_runs(include_str!("data/demands/language.toml"), &names);
    }
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn an_error_of_a_statement_names_it() {
    let (server, dir) = (Server::start(&[]), results());
    // A procedure counts rows as well, if their number is known.
    let exact = MAYBE.replace("[0, 1]", "1").replace("RETURNING id", "");
    let (one, unknown) = (MAYBE.replace("[0, 1]", "[1, 1]"), MAYBE.replace("id % 2", "nosuch"));
    for (name, text) in [("one.toml", one), ("exact.toml", exact), ("unknown.toml", unknown)] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let names = [("{url}", &*server.url()), ("{dir}", dir.path().to_str().unwrap())];
    hold_runs(include_str!("data/demands/errors.toml"), &names);
}

#[test]
fn a_run_is_resumed_and_reported_without_the_file() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::copy(EXAMPLE, &file).unwrap();
    let plan = dir.path().join("plan.toml");
    // A file that a plan names lies beside it; parameters are given as for any other workload.
    let keys =
        "workload-file = [\"mine.toml\"]\njobs = [1, 2]\nduration = \"300ms\"\nwarmup = \"200ms\"\nprobe = false\n";
    std::fs::write(&plan, format!("{keys}[parameters.QUEUE]\nbatch = 5\n")).unwrap();
    let ran = run(&["run", plan.to_str().unwrap(), "--results", path]);
    let folder = ran.folder();
    let tests = read(folder.join("tests.jsonl"));
    // The second test is taken away, as if the run had been cut off before it.
    std::fs::write(folder.join("tests.jsonl"), format!("{}\n", tests.lines().next().unwrap())).unwrap();
    let manifest = read(folder.join("manifest.json"));
    assert!(manifest.contains("puts batches of messages"), "the text is in the manifest");
    std::fs::write(folder.join("manifest.json"), manifest.replace("\"complete\"", "\"interrupted\"")).unwrap();
    std::fs::remove_file(&file).unwrap();
    sound_tests(&resumed(&folder, ""));
    let tests = tests_of(&folder);
    assert_eq!(tests.iter().map(|t| t["jobs"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(tests.iter().all(|t| t["parameters"]["batch"] == 5), "{tests:?}");
    let text = report(&folder, "--format text");
    assert!(text.contains("QUEUE"), "{text}");
}
