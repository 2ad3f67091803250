//! Transaction processing: nothing deadlocks, money and stock add up, and a row that is changed behind
//! loadline's back makes the test invalid. And the log writer's mix.

use crate::common::*;

/// Twenty accounts and seven items for sixteen jobs: everybody waits for everybody, and nobody in a circle.
fn jobs_that_meet_all_the_time(target: &str, driver: &str) {
    let dir = results();
    let few = |code| format!(" --parameter TP-{code}.accounts=20 --parameter TP-{code}.items=7");
    let crowded = ["MEDIUM", "HEAVY", "MIXED"].map(few).concat();
    let more = format!("--workload TP-LIGHT,TP-MEDIUM,TP-HEAVY,TP-MIXED --parameter TP-LIGHT.accounts=20{crowded}");
    let short = "--jobs 16 --duration 1s --warmup 300ms --no-probe";
    let ran = on(target, dir.path(), &format!("{more} --driver {driver} {short}"));
    let tests = tests_of(&ran.folder());
    assert_eq!(tests.len(), 4, "{}", ran.said());
    // No error before or after the window either.
    all_passed(&tests, &["errors", "consistency", "work-evidence"]);
    for t in &tests {
        assert!(sound(t) && figure(t, "errors") == 0.0, "{target} with the {driver} driver: {t}");
        assert!(figure(t, "transaction_time_ns_p99") >= figure(t, "transaction_time_ns_p50"), "{t}");
    }
    // The mix has the statements of its parts by their shares, the same with every driver.
    let statements = figure(&tests[3], "statements_per_tx");
    assert!((statements - (0.45 + 0.05 + 0.30 + 0.15 * 5.0 + 0.05 * 25.0)).abs() < 1e-9, "{statements}");
    kinds_are_all(&tests[3], &["lookup", "report", "light", "medium", "heavy"]);
}

/// Each kind has a row of its own, and together they are the test.
fn kinds_are_all(test: &Value, names: &[&str]) {
    passed(test, "kinds");
    let kinds = test["kinds"].as_array().unwrap();
    assert_eq!(kinds.iter().map(|kind| kind["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    let sum = |key: &str| kinds.iter().map(|kind| kind[key].as_f64().unwrap()).sum::<f64>();
    assert!((sum("tps") / figure(test, "commit_throughput_tps") - 1.0).abs() < 1e-6, "{test}");
    assert_eq!(sum("transactions"), figure(test, "commits"));
    for kind in kinds.iter().filter(|kind| kind["transactions"] != 0) {
        let [p50, p95, p99] =
            [&kind["transaction_ns"][1], &kind["p95_ns"], &kind["transaction_ns"][2]].map(|ns| ns.as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p95 && p95 <= p99, "{kind}");
    }
}

#[test]
fn jobs_that_meet_at_their_rows_never_fail() {
    for (target, driver) in [("postgres-temp:", "client"), ("postgres-temp:", "database"), ("mariadb-temp:", "client")]
    {
        jobs_that_meet_all_the_time(target, driver);
    }
}

#[test]
fn money_or_stock_that_vanishes_makes_a_test_invalid() {
    let server = Server::start(&[]);
    let dir = results();
    let more = "--workload TP-LIGHT,TP-MEDIUM --jobs 2 --duration 2s --warmup 500ms --no-probe";
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
fn the_log_writers_mix_is_held_against_the_same_mix() {
    let dir = results();
    // Redo per transaction is checked: with the few transactions of a busy machine, whole pages that PostgreSQL logs at first weigh
    // more, and so does a large transaction at the window's start or end.
    let times = "--jobs 2 --duration 1500ms --warmup 600ms";
    for target in ["sqlite:", "postgres-temp:"] {
        let ran = on(target, dir.path(), &format!("--workload LGWR-MIXED --driver client {times}"));
        let t = &sound_tests(&ran)[0];
        kinds_are_all(t, &["small", "medium", "large"]);
        let rows = figure(t, "rows_per_tx");
        // 16, 3 and 1 of 20 change 1, 25 and 125 rows.
        assert!((rows - 10.8).abs() < 1e-9, "{target}: {rows}");
        passed(t, "work-evidence");
        let seen = figure(t, "redo_bytes_per_tx");
        let limit = &t["limit"];
        assert!(limit["tps"].as_f64().unwrap() > 0.0, "{target}: {t}");
        // Jobs stop anywhere in their turn: the window's mean is that of whole turns but for its start and end.
        let slack = 1.0 + 2.0 * 125.0 * 1024.0 / seen / figure(t, "commits");
        let ratio = limit["redo_bytes_per_tx"].as_f64().unwrap() / seen;
        assert!((0.9 / slack..1.1 * slack).contains(&ratio), "{target}: {ratio} ({slack})");
    }
}
