//! End to end: the data-load group, and the data set: kept, refused, dropped, too large.

use crate::common::*;

/// All workloads of the group, small, one job.
fn plan(dir: &Path) -> String {
    let file = dir.join("plan.toml");
    let text = "group = [\"data-load\"]\njobs = [1]\nduration = \"0.5s\"\nwarmup = \"0.3s\"\nprobe = false\n\
                [parameters]\nDBL-11 = { rows = 3 }\nDBL-12 = { rows = 7 }\nDBL-22 = { rows = 500 }\n\
                DBL-INDEX = { rows = 2000 }\nDBL-STREAM = { rows = 5, batches = 40 }\n";
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

fn group_on(target: &str) {
    let dir = results();
    let ran = on(target, dir.path().join("runs"), &plan(dir.path()));
    let tests = sound_tests(&ran);
    let count = |code: &str| tests.iter().filter(|t| t["workload"] == code).count();
    let counts = ["DBL-11", "DBL-12", "DBL-22", "DBL-STREAM", "DBL-INDEX"].map(count);
    // A parameter that is given is not swept over: one test then, for the one number of jobs.
    assert_eq!(counts, [1, 1, 3, 1, 1], "{}", ran.said());
    for t in &tests {
        let figure = |id: &str| figure(t, id);
        assert_eq!(figure("errors"), 0.0, "{t:#}");
        assert!(near(figure("rows_per_s"), figure("rows_per_tx") * figure("tx_per_s")), "{t:#}");
        assert!(figure("data_mib_per_s") > 0.0, "{t:#}");
        if t["workload"] == "DBL-INDEX" {
            assert_eq!(figure("rows_per_tx"), 2000.0);
            continue;
        }
        // The table itself was asked: it grew by what the jobs say, exactly.
        passed(t, "work-evidence");
        assert_eq!(figure("rows_changed_database") % figure("rows_per_tx"), 0.0);
        // Bytes as stored: more than the payload, less than four times the values of a row.
        let row = figure("data_mib_per_s") * 1024.0 * 1024.0 / figure("rows_per_s");
        let values = if t["workload"] == "DBL-22" { 184.0 } else { 144.0 };
        assert!((120.0..4.0 * values).contains(&row) || figure("rows_changed_database") < 2000.0, "{row}: {t:#}");
    }
    let of = |code: &str| tests.iter().filter(|t| t["workload"] == code).collect::<Vec<_>>();
    assert!(of("DBL-11").iter().all(|t| t["rows_per_tx"] == 3.0 && t["statements_per_tx"] == 3.0));
    assert!(of("DBL-12").iter().all(|t| t["rows_per_tx"] == 7.0 && t["statements_per_tx"] == 1.0));
    let indexes: Vec<_> =
        of("DBL-22").iter().map(|t| (t["swept"].as_str().map(str::to_owned), t["indexes"].as_f64())).collect();
    let swept = Some("indexes".to_owned());
    assert_eq!(indexes, [(swept.clone(), Some(0.0)), (swept, Some(3.0)), (None, Some(0.0))]);
    let stream = of("DBL-STREAM")[0];
    let [p50, p99] = ["p50", "p99"].map(|q| figure(stream, &format!("visible_delay_ns_{q}")));
    assert!(0.0 < p50 && p50 <= p99 && p99 < 5e9, "{stream:#}");
    // The last batches of the window are looked for after its end.
    passed(stream, "batches-seen");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn the_group_on_every_database() {
    ["sqlite:", "postgres-temp:", "mariadb-temp:"].into_iter().for_each(group_on);
}

fn queries(target: &str, results: &Path, more: &str) -> Ran {
    let short = "--workload SRV-QUERY1 --jobs 1 --duration 0.3s --warmup 0.2s --no-probe --size 1MiB";
    let ran = on(target, results, &format!("{short} {more}"));
    if ran.code <= 1 {
        sound_tests(&ran);
    }
    ran
}

#[test]
fn data_are_kept_used_again_refused_and_loaded_anew() {
    let dir = results();
    let (runs, file) = (dir.path().join("runs"), dir.path().join("kept.db"));
    let url = format!("sqlite:{}", file.display());
    let first = queries(&url, &runs, "--keep-data");
    assert!(first.code <= 1 && first.err.contains("loaded lookup: 100,000 rows"), "{}", first.said());
    let manifest = manifest_of(&first.folder());
    let loaded = &manifest["data_set"][0];
    assert!(loaded["rows_loaded"] == 100_000 && loaded["load_s"].as_f64().unwrap() > 0.0, "{loaded:#}");
    // Used again, and kept by a run that does not say so: it did not make them.
    let again = queries(&url, &runs, "");
    assert!(again.code <= 1 && !again.said().contains("loaded lookup") && file.exists(), "{}", again.said());
    let before = std::fs::read_dir(&runs).unwrap().count();
    let other = queries(&url, &runs, "--seed 7");
    other.fails(3, &["other data are in place", "seed 42", "seed 7", "--reload", "loadline clean"]);
    assert_eq!(std::fs::read_dir(&runs).unwrap().count(), before, "nothing was begun");
    let reloaded = queries(&url, &runs, "--seed 7 --reload");
    assert!(reloaded.code <= 1 && reloaded.err.contains("loaded lookup"), "{}", reloaded.said());
    assert!(!file.exists(), "what a run makes goes with it");
    queries(&url, &runs, "--keep-data");
    assert!(file.exists());
    ok(&["clean", "--target", &url]);
    assert!(!file.exists());
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn a_table_dropped_in_mid_run_fails_its_test_and_names_it() {
    let server = Server::start(&[]);
    let dir = results();
    for driver in ["client", "database"] {
        let more = format!("--workload SRV-QUERY1 --driver {driver} --jobs 1,2 --duration 2s --warmup 0.3s --no-probe");
        let child = start_on(&server.url(), dir.path(), &more);
        let jobs = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline%job 1%'";
        wait_for("the second test", || server.sql(jobs).is_ok_and(|n| n == "1"));
        std::thread::sleep(Duration::from_millis(700));
        server.sql("DROP TABLE loadline.data_lookup").unwrap();
        let ran = ended(child);
        assert_ne!(ran.code, 0, "{}", ran.said());
        assert!(ran.said().contains("data_lookup") && ran.said().contains("--resume"), "{}", ran.said());
        let tests = tests_of(&ran.folder());
        let says = |t: &Value| t.to_string().contains("data_lookup");
        assert!(figure(&tests[0], "commits") > 0.0 && !says(&tests[0]), "what was measured stays: {:#}", tests[0]);
        assert!(tests.get(1).is_none_or(|t| t["valid"] == false && says(t)), "{}", ran.said());
    }
}

#[test]
fn the_workloads_own_tables_are_loaded_and_told_as_the_data_set_is() {
    let dir = results();
    let short = "--no-probe --jobs 1 --duration 0.3s --warmup 0.2s --size 4MiB";
    let ran = on("sqlite:", dir.path(), &format!("--workload DBWR-THR,STO-READ-ASYNC {short}"));
    assert!(ran.code <= 1, "{}", ran.said());
    for table in ["loaded blocks of DBWR-THR: 16,", "loaded spread of STO-READ-ASYNC: 13,"] {
        assert_eq!(ran.err.matches(table).count(), 1, "{table}: {}", ran.said());
    }
    let manifest = manifest_of(&ran.folder());
    let mut tables: Vec<_> =
        manifest["data_set"].as_array().unwrap().iter().map(|t| t["table"].as_str().unwrap()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["blocks of DBWR-THR", "spread of STO-READ-ASYNC"], "once each");
}

#[test]
fn ctrl_c_ends_the_load_of_a_workloads_own_table() {
    let dir = results();
    let url = format!("sqlite:{}", dir.path().join("x.db").display());
    let child = start_on(&url, dir.path().join("runs"), "--workload DBWR-THR --size 2GiB --jobs 1 --no-probe");
    // The log of the load, or the file, has grown: rows are coming in.
    let file = dir.path().join("x.db");
    wait_for("the load", || std::fs::metadata(&file).is_ok_and(|m| m.len() > 8 << 20));
    signal(&child, Signal::SIGINT);
    ended(child).fails(130, &[]);
    assert!(!file.exists(), "what was loaded is removed");
}
