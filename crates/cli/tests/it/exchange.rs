//! Results of other tools as runs, and runs for other programs.

use serde_json::json;

use crate::common::*;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exchange/tests/it/data").join(name);
    path.to_str().unwrap().to_owned()
}

fn import(dir: &Path, args: &[&str]) -> Vec<PathBuf> {
    let ran = ok(&[&["import"], args, &["--runs", dir.to_str().unwrap()]].concat());
    assert!(ran.err.contains("not checked by loadline"), "{}", ran.err);
    ran.out.lines().map(PathBuf::from).collect()
}

#[test]
fn imported_runs_stand_beside_others_and_pass_no_checks() {
    let results = results();
    let dir = results.path();
    let (rate, log) = (file("pgbench-rate.txt"), file("pgbench-rate.32572"));
    let folders = import(dir, &["pgbench", &rate, &log]);
    let stored = &tests_of(&folders[0])[0];
    assert!(stored["valid"].is_null() && stored["checks"].as_array().unwrap().is_empty(), "{stored}");
    let files = stored["imported"]["files"].as_array().unwrap();
    assert_eq!((files.len(), &stored["imported"]["version"]), (2, &"15.18".into()));
    let sum = Command::new("sha256sum").arg(&log).output().unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(files[1]["sha256"].as_str().unwrap()));

    let name = folders[0].to_str().unwrap();
    let csv = report(&folders[0], "--format csv --columns test,valid,nodes,driver,job_load,tx_per_s");
    assert_eq!(csv, "test,valid,nodes,driver,job_load,tx_per_s\n1,,,,,45.880253\n");
    let json: Value = serde_json::from_str(&report(&folders[0], "--format json")).unwrap();
    let summary = ["valid", "refused", "imported"].map(|key| json["summary"][key].as_u64());
    assert_eq!((summary, &json["runs"][0]["tests"][0]["valid"]), ([Some(0), Some(0), Some(1)], &Value::Null));

    // Beside a run of our own.
    let own = lat1("null:?pause=1ms", dir, "--jobs 1 --duration 200ms --warmup 200ms --no-probe").folder();
    let own = own.to_str().unwrap().to_owned();
    assert!(ok(&["report", &own, name, "--format", "text"]).out.contains("1 test is imported from pgbench 15.18"));
    assert_eq!(run(&["compare", &own, name]).code, 0, "nothing could be compared, and nobody asked for a verdict");
    assert_eq!(run(&["compare", &own, name, "--fail-if-slower", "3%"]).code, 2);
    assert_eq!(run(&["run", "--resume", name, "--target", "null:"]).code, 2);
    assert_eq!(run(&["report", name, "--anonymous"]).code, 2);
    let redacted = report(&folders[0], "--redact --format text");
    assert!(redacted.contains("file-1") && !redacted.contains("pgbench-rate"), "{redacted}");
    ok(&["audit", name]);
}

#[test]
fn imports_are_compared_and_files_of_one_run_are_a_sweep() {
    let results = results();
    let dir = results.path();
    let faster = dir.join("faster.txt");
    let text = read(file("pgbench-select.txt"));
    std::fs::write(&faster, text.replace("tps = 14699", "tps = 29398")).unwrap();
    let files = ["pgbench", &file("pgbench-select.txt"), faster.to_str().unwrap()];
    let folders = import(dir, &files);
    let names: Vec<&str> = folders.iter().map(|f| f.to_str().unwrap()).collect();
    let ratio = ok(&["compare", names[0], names[1], "--format", "csv"]).out;
    assert!(ratio.contains("PGBENCH-SELECT-ONLY,2,tx_per_s"), "{ratio}");
    let sweep = import(dir, &[&files[..], &["--one-run", "--title", "Blue"]].concat());
    let tests = tests_of(&sweep[0]);
    assert_eq!((sweep.len(), &tests[1]["test"], &tests[0]["platform"]), (1, &json!(2), &json!("Blue (imported)")));
    assert_ne!(tests[0]["imported"]["files"], tests[1]["imported"]["files"], "each has its own file");
}

#[test]
fn warnings_are_told_and_a_bad_file_leaves_nothing_behind() {
    let results = results();
    let into = results.path().join("runs");
    let warned = ok(&["import", "fio", &file("fio-error.json"), "--runs", into.to_str().unwrap()]).err;
    assert!(warned.contains("warning: test 1: it ran 9.12 of 30 s"), "{warned}");
    let (good, dir) = (file("pgbench-tpcb.txt"), results.path().join("none"));
    for bad in [&file("sysbench-rw.txt"), &good, "/nowhere/x", "/tmp"] {
        let ran = run(&["import", "pgbench", &good, bad, "--results", dir.to_str().unwrap()]);
        assert!(ran.code == 2 && !dir.exists(), "{bad}: {}", ran.said());
    }
}

#[test]
fn a_run_is_exported_as_tables_and_as_a_log() {
    let results = results();
    let dir = results.path();
    let folders = import(dir, &["pgbench", &file("pgbench-rate.txt"), &file("pgbench-rate.32572")]);
    let name = folders[0].to_str().unwrap();
    let [out, parquet] = ["tables", "parquet"].map(|name| dir.join(name).to_str().unwrap().to_owned());
    ok(&["export", name, "--format", "csv", "--output", &out]);
    let counts = read(format!("{out}/histograms.csv"));
    let counts = counts.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 92);
    let one = ok(&["export", name, "--format", "csv", "--table", "series"]).out;
    assert_eq!(one, read(format!("{out}/series.csv")));
    let rows: Value = serde_json::from_str(&ok(&["export", name, "--format", "json", "--table", "tests"]).out).unwrap();
    assert_eq!(rows[0]["tx_per_s"], json!(45.880253));
    let log = ok(&["export", name, "--format", "hlog", "--output", "-"]).out;
    assert!(log.starts_with("#[loadline: run ") && log.contains("\nTag=1-transaction,0.000,2.000,"), "{log}");
    for args in [
        vec!["--format", "csv", "--output", &out],
        vec!["--format", "csv", "--output", "-"],
        vec!["--format", "hlog", "--table", "tests"],
        vec!["--format", "csv", "--table", "other"],
    ] {
        assert_eq!(run(&[&["export", name], &args[..]].concat()).code, 2, "{args:?}");
    }
    let ran = run(&["export", name, "--format", "parquet", "--output", &parquet]);
    assert_eq!(ran.code, if cfg!(feature = "parquet") { 0 } else { 2 }, "{}", ran.said());
}
