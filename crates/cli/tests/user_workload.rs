//! Workloads of users: the documented example runs end to end, is resumed without its file, and a broken file
//! starts nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::{leftovers, ok, results, run, tests_of};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/queue.toml").canonicalize().unwrap()
}

#[test]
fn the_example_runs_and_is_proved_on_every_database_with_tables() {
    let dir = results();
    let (path, example) = (dir.path().to_str().unwrap(), example());
    for (target, driver) in [
        ("sqlite:", "client"),
        ("postgres-temp:", "client"),
        ("postgres-temp:", "database"),
        ("mariadb-temp:", "client"),
    ] {
        let args = ["--jobs", "1,3", "--duration", "500ms", "--warmup", "200ms", "--no-probe", "--results", path];
        let of = ["run", "--workload-file", example.to_str().unwrap(), "--target", target, "--driver", driver];
        let ran = ok(&[&of[..], &args[..]].concat());
        let tests = tests_of(&ran.folder());
        assert_eq!(tests.len(), 2, "{target}: {}", ran.said());
        for t in &tests {
            assert_eq!((&t["workload"], &t["valid"]), (&"QUEUE".into(), &true.into()), "{target}: {t}");
            let checks = t["checks"].as_array().unwrap();
            for id in ["work-evidence", "consistency"] {
                let check = checks.iter().find(|c| c["id"] == id).unwrap();
                assert_eq!(check["outcome"], "passed", "{target}: {check}");
            }
            assert_eq!(t["kpis"][2], "transaction_time_ns_p99");
        }
    }
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn a_run_is_resumed_and_reported_without_the_file() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::copy(example(), &file).unwrap();
    let plan = dir.path().join("plan.toml");
    // A file that a plan names lies beside it; parameters are given as for any other workload.
    let keys =
        "workload-file = [\"mine.toml\"]\njobs = [1, 2]\nduration = \"300ms\"\nwarmup = \"200ms\"\nprobe = false\n";
    std::fs::write(&plan, format!("{keys}[parameters.QUEUE]\nbatch = 5\n")).unwrap();
    let ran = ok(&["run", plan.to_str().unwrap(), "--results", path]);
    let folder = ran.folder();
    let tests = std::fs::read_to_string(folder.join("tests.jsonl")).unwrap();
    // The second test is taken away, as if the run had been cut off before it.
    std::fs::write(folder.join("tests.jsonl"), format!("{}\n", tests.lines().next().unwrap())).unwrap();
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains("puts batches of messages"), "the text is in the manifest");
    std::fs::write(folder.join("manifest.json"), manifest.replace("\"complete\"", "\"interrupted\"")).unwrap();
    std::fs::remove_file(&file).unwrap();
    ok(&["run", "--resume", folder.to_str().unwrap(), "--results", path]);
    let tests = tests_of(&folder);
    assert_eq!(tests.iter().map(|t| t["jobs"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(tests.iter().all(|t| t["valid"] == true && t["parameters"]["batch"] == 5), "{tests:?}");
    let report = ok(&["report", folder.to_str().unwrap(), "--format", "text", "--output", "-"]).out;
    assert!(report.contains("QUEUE"), "{report}");
}

#[test]
fn it_is_shown_as_those_of_the_catalogue_are() {
    let example = example();
    let page = ok(&["workloads", "--workload-file", example.to_str().unwrap()]).out;
    for part in [
        "# QUEUE: puts batches",
        "in 3 of 4 transactions",
        "`batch` | 3 | 1 to 1000",
        "CREATE TABLE \"loadline\".\"queue_message\"",
        "CREATE TABLE `loadline`.`queue_message`",
        "\"LOADLINE_QUEUE_MESSAGE\"",
        "CREATE PROCEDURE \"loadline\".\"queue_run\"",
        "As many messages were counted as were put",
    ] {
        assert!(page.to_lowercase().contains(&part.to_lowercase()), "no «{part}» in\n{page}");
    }
    let csv = ok(&["workloads", "QUEUE", "--workload-file", example.to_str().unwrap(), "--format", "csv"]).out;
    assert!(
        csv.lines().nth(1).is_some_and(|l| l.starts_with("QUEUE,") && l.contains("postgres=database+client")),
        "{csv}"
    );
    let plan = ok(&["run", "--workload-file", example.to_str().unwrap(), "--workload", "TP-LIGHT", "--dry-run"]).out;
    assert!(plan.contains("TP-LIGHT") && plan.contains("QUEUE") && !plan.contains("TP-HEAVY"), "{plan}");
}

#[test]
fn a_broken_file_starts_nothing() {
    let dir = results();
    let file = dir.path().join("broken.toml");
    let text = std::fs::read_to_string(example()).unwrap();
    let cases = [
        ("name = \"put\"", "name = \"putt\"", "«put» is not known: did you mean «putt»"),
        ("rows = 100", "rows = -1", "is -1, but must be between 1"),
        ("code = \"QUEUE\"", "code = \"LGWR-LAT1\"", "the catalogue has a workload LGWR-LAT1"),
        ("WHERE id = :channel", "WHERE id = {channel", "opening brace"),
        ("[[parameter]]", "[[parameters]]", "did you mean «parameter»"),
        ("min = 1\n", "min = \n", ""),
    ];
    for (from, to, says) in cases {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        for command in ["run", "workloads"] {
            let mut args = vec![command, "--workload-file", file.to_str().unwrap()];
            if command == "run" {
                args.extend(["--results", dir.path().to_str().unwrap()]);
            }
            let ran = run(&args);
            assert_eq!(ran.code, 2, "{to}: {}", ran.said());
            assert!(ran.err.contains(says) && ran.err.contains("broken.toml:"), "{to}: {}", ran.said());
        }
    }
    let missing = run(&["run", "--workload-file", "/nonexistent/w.toml"]);
    assert!(missing.code == 2 && missing.err.contains("/nonexistent/w.toml"), "{}", missing.said());
    assert_eq!(leftovers(dir.path()), vec!["broken.toml".to_owned()], "nothing was made");
}
