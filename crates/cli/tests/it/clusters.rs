//! Runs over nodes, and levels of replication.

use crate::common::*;

fn csv(folder: &Path) -> Vec<Row> {
    rows_of(&report(folder, "--format csv"))
}

fn under_on(tests: &[Value]) -> Vec<Value> {
    tests.iter().filter(|t| t["level"]["level"] == "on" && t["arm"] == "B").cloned().collect()
}

#[test]
fn a_level_that_waits_takes_its_round_trip() {
    let results = results();
    let cost = "replica-cost --target postgres-temp: --levels local,on --delay 4ms --workload LGWR-LAT25 --jobs 2 --pairs 2 --duration 500ms --no-probe";
    let ran = measured(&words(&format!("{cost} --warmup 200ms --results {}", results.path().display())));
    let folder = ran.folder();
    let tests = tests_of(&folder);
    let rows = csv(&folder);
    let [local, on] = ["local", "on"].map(|level| rows.iter().find(|row| row["level"] == level).unwrap());
    assert_eq!(tests.len(), 8, "{}", ran.said());
    // Four ms each way; the machine may add to them, never take away.
    assert!(number(on, "rtt_ms") >= 8.0 && number(on, "commit_latency_ms") >= 8.0, "{on:?}");
    assert!(rows.len() == 2 && number(local, "added_ms").is_finite() && number(on, "added_ms").is_finite(), "{rows:?}");
    all_passed(&under_on(&tests), &["replicas", "round-trip"]);
    // Complete: nothing is measured again. A refused window is said by the exit code, also if its cell has another pair.
    let lines: Vec<String> = tests
        .into_iter()
        .enumerate()
        .map(|(n, mut test)| {
            test.as_object_mut().unwrap().remove("checksum");
            (test["valid"], test["checks"]) = ((n > 0).into(), serde_json::json!([]));
            test.to_string()
        })
        .collect();
    std::fs::write(folder.join("tests.jsonl"), lines.join("\n") + "\n").unwrap();
    let again = resumed(&folder, "");
    assert!(again.code == 1 && tests_of(&again.folder()).len() == 8, "{}", again.said());
}

#[test]
fn a_run_is_interrupted_while_its_replicas_catch_up() {
    let results = results();
    let far = "replica-cost --target postgres-temp: --levels local --delay 2s --workload LGWR-LAT125 --jobs 1";
    let short = format!("--pairs 3 --duration 1s --warmup 200ms --no-probe --results {}", results.path().display());
    let child = start(&words(&format!("{far} {short}")));
    folder_with_tests(results.path(), 1);
    // Four seconds pass until the standby has acknowledged the window's redo; the next test waits for that.
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, Signal::SIGINT);
    let ran = ended(child);
    ran.fails(130, &["--resume"]);
    assert_eq!(tests_of(&ran.folder()).len(), 1, "{}", ran.said());
    assert_eq!(leftovers(results.path()), Vec::<String>::new());
}

#[test]
fn levels_of_a_users_own_pair_are_put_back() {
    let results = results();
    let primary = Server::start(&[]);
    let standby = primary.standby();
    let sql = |sql: &str| primary.sql(sql).unwrap();
    wait_for("the standby", || sql("SELECT state FROM pg_stat_replication") == "streaming");
    sql("ALTER SYSTEM SET synchronous_commit = remote_write");
    sql("CREATE ROLE plain LOGIN; GRANT pg_monitor TO plain; GRANT CREATE ON DATABASE postgres TO plain");
    sql("SELECT pg_reload_conf()");
    let settings =
        || sql("SELECT name, setting, source, sourcefile FROM pg_settings WHERE name LIKE 'synchronous\\_%'");
    wait_for("the setting", || settings().contains("remote_write"));
    let before = settings();
    let (url, second) = (primary.url(), standby.url());
    let args = |target: &str, standbys: &[&str], pairs: u32| {
        let short = format!(
            "--workload LGWR-LAT25 --pairs {pairs} --duration 300ms --warmup 200ms --no-probe --results {}",
            results.path().display()
        );
        let standbys: String = standbys.iter().map(|standby| format!(" --standby {standby}")).collect();
        format!("replica-cost --target {target} --levels local,on {short}{standbys}")
    };

    let (plain, same) = (url.replace("boss@", "plain@"), standby.tcp("boss", Some("tops3cret")));
    for (target, standbys, says) in [
        (&url, vec![second.as_str(), &same], "given twice"),
        (&second, vec![&url], "is a read-only standby"),
        (&plain, vec![&second], "GRANT ALTER SYSTEM ON PARAMETER synchronous_commit"),
    ] {
        let ran = run(&words(&args(target, &standbys, 1)));
        assert!(ran.code > 1 && ran.err.contains(says) && !ran.err.contains("tops3cret"), "{says}: {}", ran.said());
    }
    assert_eq!(settings(), before);
    let fsync = |value: &str| {
        standby.sql(&format!("ALTER SYSTEM SET fsync = {value}")).unwrap();
        standby.sql("SELECT pg_reload_conf()").unwrap();
        wait_for("fsync", || standby.sql("SHOW fsync").unwrap() == value);
    };
    fsync("off");
    run(&words(&args(&url, &[&second], 1))).fails(3, &["fsync (standby", "--force"]);
    fsync("on");

    let ran = run(&words(&args(&url, &[&same], 1)));
    assert!(ran.err.contains("synchronous_commit = remote_write (ALTER SYSTEM): levels change it"), "{}", ran.said());
    let tests = tests_of(&ran.folder());
    let has_latency = |t: &Value| t["commit_latency_ms"].as_f64() > Some(0.0);
    assert!(tests.len() == 4 && tests.iter().all(has_latency), "{}", ran.said());
    all_passed(&under_on(&tests), &["replicas"]);
    let rows = csv(&ran.folder());
    assert_eq!(rows.iter().map(|r| r["level"].as_str()).collect::<Vec<_>>(), ["local", "on"], "{rows:?}");
    assert!(rows.iter().all(|r| r["rtt_ms"].is_empty()), "{rows:?}");
    let manifest = read(ran.folder().join("manifest.json"));
    assert!(manifest.contains("postgres://boss@127.0.0.1") && !manifest.contains("tops3cret"), "{manifest}");
    assert_eq!(settings(), before, "{}", ran.said());
    assert!(!primary.has_schema());

    for by in [Signal::SIGINT, Signal::SIGKILL] {
        let child = start(&words(&args(&url, &[&second], 50)));
        wait_for("a level", || settings().contains("walreceiver"));
        signal(&child, by);
        let ran = ended(child);
        if by == Signal::SIGKILL {
            assert_ne!(settings(), before, "{}", ran.said());
            let cleaned = printed(&format!("clean --target {url} --results {}", results.path().display()));
            assert!(cleaned.contains("synchronous_commit: put back to 'remote_write'"), "{cleaned}");
        }
        wait_for("what it was", || settings() == before);
    }
}
