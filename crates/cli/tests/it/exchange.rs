//! Results of other tools as runs, and runs for other programs.

use std::path::{Path, PathBuf};

use crate::common::{ok, results, run, tests_of};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exchange/tests/it/data").join(name);
    path.to_str().unwrap().to_owned()
}

/// Imports files into `dir`, and returns the folders.
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
    let [pgbench] = folders.as_slice() else { panic!("{folders:?}") };
    let stored = tests_of(pgbench);
    assert!(stored[0]["valid"].is_null() && stored[0]["checks"].as_array().unwrap().is_empty(), "{}", stored[0]);
    let files = stored[0]["imported"]["files"].as_array().unwrap();
    assert_eq!((files.len(), &stored[0]["imported"]["version"]), (2, &"15.18".into()));
    let sum = std::process::Command::new("sha256sum").arg(&log).output().unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(files[1]["sha256"].as_str().unwrap()));

    let name = pgbench.to_str().unwrap();
    let text = ok(&["report", name, "--format", "text"]).out;
    assert!(text.contains("1 test is imported from pgbench 15.18: not checked by loadline."), "{text}");
    assert!(
        text.contains("pgbench-rate.32572, 3245 bytes, SHA-256") && text.contains("4 transactions were skipped"),
        "{text}"
    );
    let key = &text[text.find("Key figures").unwrap()..text.find("Imported, not checked").unwrap()];
    assert!(key.contains("PGBENCH-TPC-B-SORT-OF") && key.contains("not checked"), "the first page has them: {text}");
    assert!(!text.contains("\n, not measured") && !text.contains(": , not"), "{text}");
    let page = ok(&["report", name, "--test", "1", "--format", "text"]).out;
    for shown in [&text, &page] {
        let bare = shown.to_lowercase().replace("neither valid nor invalid", "");
        assert!(
            !bare.contains("all valid") && !bare.contains("it is valid") && !bare.contains("is invalid"),
            "{shown}"
        );
    }
    assert!(page.contains("Test 1 is imported from pgbench 15.18, not checked by loadline."), "{page}");
    let html = ok(&["report", name, "--format", "html", "--output", "-"]).out;
    assert!(html.contains("not checked by loadline") && !html.contains("all valid"));
    let csv = ok(&["report", name, "--format", "csv", "--columns", "test,valid,nodes,driver,job_load,tx_per_s"]).out;
    assert_eq!(csv, "test,valid,nodes,driver,job_load,tx_per_s\n1,,,,,45.880253\n");
    let json: serde_json::Value = serde_json::from_str(&ok(&["report", name, "--format", "json"]).out).unwrap();
    assert!(json["runs"][0]["tests"][0]["valid"].is_null());
    assert_eq!(
        (&json["summary"]["valid"], &json["summary"]["invalid"], &json["summary"]["imported"]),
        (&0.into(), &0.into(), &1.into())
    );

    // Beside a run of our own.
    let plan = ["--workload", "LGWR-LAT1", "--jobs", "1", "--duration", "200ms", "--warmup", "200ms", "--no-probe"];
    let own = run(&[&["run", "--target", "null:?pause=1ms", "--results", dir.to_str().unwrap()], &plan[..]].concat())
        .folder();
    let own = own.to_str().unwrap();
    let both = ok(&["report", own, name, "--format", "text"]).out;
    assert!(both.contains("1 test is imported from pgbench 15.18"), "{both}");
    let compared = run(&["compare", own, name]);
    assert_eq!(compared.code, 0, "nothing could be compared, and nobody asked for a verdict: {}", compared.said());
    assert_eq!(run(&["compare", own, name, "--fail-if-slower", "3%"]).code, 2);
    let said = compared.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("different definitions of work") && said.contains("that of pgbench"), "{said}");
    assert!(!said.contains("The manifests name the same"), "{said}");
    let resumed = run(&["run", "--resume", name, "--target", "null:"]);
    assert!(resumed.code == 2 && resumed.err.contains("nothing to go on with"), "{}", resumed.said());
    let anonymous = run(&["report", name, "--anonymous"]);
    assert!(anonymous.code == 2 && anonymous.err.contains("it is imported"), "{}", anonymous.said());
    let redacted = ok(&["report", name, "--redact", "--format", "text"]).out;
    assert!(redacted.contains("file file-1") && !redacted.contains("pgbench-rate"), "{redacted}");
    let audited = ok(&["audit", name]);
    assert!(audited.err.contains("imported from pgbench 15.18, not checked by loadline"), "{}", audited.err);
}

#[test]
fn two_imports_are_compared_if_tool_and_work_are_the_same() {
    let results = results();
    let dir = results.path();
    let faster = dir.join("faster.txt");
    let text = std::fs::read_to_string(file("pgbench-select.txt")).unwrap();
    std::fs::write(&faster, text.replace("tps = 14699", "tps = 29398")).unwrap();
    let folders =
        import(dir, &["pgbench", &file("pgbench-select.txt"), faster.to_str().unwrap(), &file("pgbench-tpcb.txt")]);
    let names: Vec<&str> = folders.iter().map(|f| f.to_str().unwrap()).collect();
    let ratio = ok(&["compare", names[0], names[1], "--format", "csv"]).out;
    assert!(ratio.contains("PGBENCH-SELECT-ONLY,2,tx_per_s"), "{ratio}");
    let said = ok(&["compare", names[0], names[1]]).out;
    assert!(said.contains("not checked by loadline") && said.contains("2.000"), "{said}");
    let other = run(&["compare", names[0], names[2]]);
    assert!(other.code == 0 && other.out.contains("has no test of"), "{}", other.said());
    // One scale is not another.
    std::fs::write(&faster, text.replace("scaling factor: 1", "scaling factor: 100")).unwrap();
    let large = import(dir, &["pgbench", faster.to_str().unwrap()]);
    let scales = run(&["compare", names[0], large[0].to_str().unwrap()]);
    assert!(scales.code == 0 && scales.out.contains("different parameters: scale is 1"), "{}", scales.said());
}

#[test]
fn files_of_one_run_are_a_sweep() {
    let results = results();
    let sweep = import(
        results.path(),
        &["pgbench", &file("pgbench-tpcb.txt"), &file("pgbench-select.txt"), "--one-run", "--title", "Blue"],
    );
    let [sweep] = sweep.as_slice() else { panic!("{sweep:?}") };
    let tests = tests_of(sweep);
    assert_eq!((tests.len(), &tests[1]["test"], &tests[0]["platform"]), (2, &2.into(), &"Blue (imported)".into()));
    assert_ne!(tests[0]["imported"]["files"], tests[1]["imported"]["files"], "each has its own file");
}

#[test]
fn a_bad_file_leaves_nothing_behind() {
    let results = results();
    let dir = results.path().join("runs");
    let (good, other) = (file("pgbench-tpcb.txt"), file("sysbench-rw.txt"));
    for (args, what) in [
        (vec!["pgbench", &good, &other], "sysbench-rw.txt, line 1: it is of sysbench, not of pgbench"),
        (vec!["fio", &good], "pgbench-tpcb.txt, line 1: it is of pgbench, not of fio"),
        (vec!["pgbench", &good, &good], "is named twice"),
        (vec!["pgbench", "/nowhere/x"], "/nowhere/x cannot be read"),
        (vec!["pgbench", "/tmp"], "is a folder"),
    ] {
        let ran = run(&[&["import"], &args[..], &["--results", dir.to_str().unwrap()]].concat());
        assert!(ran.code == 2 && ran.err.contains(what) && !dir.exists(), "{what}: {}", ran.said());
    }
}

#[test]
fn a_run_is_exported_as_tables_and_as_a_log() {
    let results = results();
    let dir = results.path();
    let folders = import(dir, &["pgbench", &file("pgbench-rate.txt"), &file("pgbench-rate.32572")]);
    let name = folders[0].to_str().unwrap();
    let out = dir.join("tables");
    let out = out.to_str().unwrap();
    ok(&["export", name, "--format", "csv", "--output", out]);
    let counts = std::fs::read_to_string(format!("{out}/histograms.csv")).unwrap();
    let sum: u64 = counts.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 92);
    let one = ok(&["export", name, "--format", "csv", "--table", "series"]).out;
    assert_eq!(one, std::fs::read_to_string(format!("{out}/series.csv")).unwrap());
    let log = ok(&["export", name, "--format", "hlog", "--output", "-"]).out;
    assert!(
        log.lines().next().unwrap().starts_with("#[loadline: run ") && log.contains("\nTag=1-transaction,0.000,2.000,"),
        "{log}"
    );
    for (args, what) in [
        (vec!["--format", "csv", "--output", out], "exists already"),
        (vec!["--format", "csv", "--output", "-"], "name it with --table (tests, series, histograms)"),
        (vec!["--format", "hlog", "--table", "tests"], "--table is for --format csv and parquet"),
        (vec!["--format", "csv", "--table", "other"], "tests, series, histograms"),
    ] {
        let ran = run(&[&["export", name], &args[..]].concat());
        assert!(ran.code == 2 && ran.err.contains(what), "{what}: {}", ran.said());
    }
    let parquet_out = dir.join("parquet");
    let parquet = run(&["export", name, "--format", "parquet", "--output", parquet_out.to_str().unwrap()]);
    if cfg!(feature = "parquet") {
        assert_eq!(parquet.code, 0, "{}", parquet.said());
        for table in ["tests", "series", "histograms"] {
            let bytes = std::fs::read(parquet_out.join(format!("{table}.parquet"))).unwrap();
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
        }
    } else {
        assert!(parquet.code == 2 && parquet.err.contains("built without Parquet"), "{}", parquet.said());
    }
}
