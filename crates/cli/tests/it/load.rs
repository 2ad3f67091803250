//! The data set and the tables of workloads: kept, refused, dropped or changed in mid-run, too large.

use crate::common::*;

#[test]
fn data_are_kept_used_again_refused_and_loaded_anew() {
    let dir = results();
    let file = dir.path().join("kept.db");
    hold_runs(include_str!("data/demands/kept.toml"), &[("{file}", file.to_str().unwrap())]);
    assert!(!file.exists(), "it is cleaned");
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn a_table_dropped_in_mid_run_fails_its_test_and_names_it() {
    let server = Server::start(&[]);
    let dir = results();
    for driver in ["client", "database"] {
        let more = format!(
            "--workload SRV-QUERY1 --size 1MiB --driver {driver} --jobs 1,2 --duration 2s --warmup 0.3s --no-probe"
        );
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
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn money_or_stock_that_vanishes_makes_a_test_invalid() {
    let server = Server::start(&[]);
    let dir = results();
    let more = "--workload TP-LIGHT,TP-MEDIUM --parameter TP-LIGHT.accounts=1000 --parameter TP-MEDIUM.accounts=1000 --jobs 2 --duration 2s --warmup 500ms --no-probe";
    let child = start_on(&server.url(), dir.path(), more);
    let under_way = |what: &str, sql: &str| {
        wait_for(what, || {
            std::thread::sleep(Duration::from_millis(30));
            server.sql(sql).is_ok_and(|n| n.parse::<i64>().unwrap_or(0) > 20)
        });
    };
    // A coin that nobody paid, in the middle of the test.
    under_way("changed accounts", "SELECT sum(changes) FROM loadline.tp_light_account");
    server.sql("UPDATE loadline.tp_light_account SET balance = balance + 1 WHERE id = 5").unwrap();
    // One piece of something that nobody ordered.
    under_way("orders", "SELECT count(*) FROM loadline.tp_medium_orders");
    server.sql("UPDATE loadline.tp_medium_stock SET quantity = quantity - 1 WHERE id = 5").unwrap();
    let ran = ended(child);
    let tests = tests_of(&ran.folder());
    assert_eq!((ran.code, tests.len()), (1, 2), "{}", ran.said());
    for (test, what) in tests.iter().zip(["accounts hold and have spent", "the stock taken equals what was ordered"]) {
        let failed = check(test, "consistency");
        assert_eq!((test["valid"].as_bool(), &failed["outcome"]), (Some(false), &Value::from("failed")), "{test}");
        let detail = failed["detail"].as_str().unwrap();
        assert!(detail.contains(what) && detail.contains("off by 1)"), "{detail}");
        // Nothing else is wrong.
        passed(test, "work-evidence");
    }
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
