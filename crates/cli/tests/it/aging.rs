//! A window in parts: what becomes of throughput, tables and dead rows.

use crate::common::*;

#[test]
fn a_window_is_seen_to_grow_old_on_each_database() {
    for (target, known, absent) in [
        ("sqlite:", &["tables_mib", "tables_free_mib"][..], &["dead_rows"][..]),
        ("postgres-temp:", &["tables_mib", "dead_rows"], &["tables_free_mib"]),
        ("mariadb-temp:", &["tables_mib", "tables_free_mib", "dead_rows"], &[]),
    ] {
        let results = results();
        let line = format!(
            "run --plan aging --target {target} --jobs 2 --duration 3s --warmup 200ms --no-probe --parameter TP-MIXED.accounts=1000 \
             --parameter TP-MIXED.entries=1000 --results {}",
            results.path().display()
        );
        let ran = measured(&words(&line));
        let [test] = &tests_of(&ran.folder())[..] else { panic!("{}", ran.said()) };
        let parts = test["aging"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["tps"].as_f64().unwrap() * 0.05).sum();
        assert!(parts.len() == 60 && (sum - test["commits"].as_f64().unwrap()).abs() < 1e-3, "{target}: {sum}, {test}");
        assert!(parts.iter().any(|part| part["p99_ns"].as_u64().is_some_and(|ns| ns > 0)), "{test}");
        assert!(test["aging_pct"].as_f64().is_some_and(f64::is_finite), "{test}");
        for id in known {
            let last = parts.iter().rev().find_map(|part| part[id].as_f64());
            assert!(last.is_some() && last == test[id].as_f64(), "{target} {id}: {test}");
        }
        assert!(absent.iter().all(|id| test["absent"][id].is_string() && parts[0][id].is_null()), "{test}");
        // New orders only: the tables grow.
        let sizes: Vec<f64> = parts.iter().filter_map(|part| part["tables_mib"].as_f64()).collect();
        assert!(target != "postgres-temp:" || sizes.last() > sizes.first(), "{sizes:?}");
        let page = words(&report(&ran.folder(), "--format text")).join(" ");
        let verdicts = ["throughput falls", "throughput rises", "no fall is shown"];
        assert!(page.contains("Aging") && verdicts.iter().any(|said| page.contains(said)), "{page}");
    }
}

#[test]
fn an_interrupted_window_keeps_the_parts_that_ended() {
    let results = results();
    let line = "--plan aging --jobs 2 --duration 60s --warmup 200ms --no-probe --parameter TP-MIXED.accounts=1000 --parameter \
                TP-MIXED.entries=1000";
    let child = start_on("sqlite:", results.path(), line);
    // Seconds of the window.
    folder_with(results.path(), "live.jsonl", |live| live.matches("\"event\":\"second\"").count() >= 4);
    signal(&child, Signal::SIGINT);
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{}", ran.said());
    let folder = ran.folder();
    let [test] = &tests_of(&folder)[..] else { panic!("{}", ran.said()) };
    let parts = test["aging"].as_array().unwrap();
    assert!((1..60).contains(&parts.len()) && parts.iter().all(|part| part["tps"].as_f64() > Some(0.0)), "{test}");
    assert!(test["tables_mib"].is_number() && test["commit_throughput_tps"].is_null(), "{test}");
    assert_eq!(test["valid"], false, "nothing proves it: {test}");
    let page = words(&report(&folder, "--format text")).join(" ");
    assert!(page.contains("the window was interrupted"), "{page}");
    let again = run(&["run", "--resume", folder.to_str().unwrap()]);
    assert!(again.err.contains("nothing was left to measure") && tests_of(&folder).len() == 1, "{}", again.said());
}
