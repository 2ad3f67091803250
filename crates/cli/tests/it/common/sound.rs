//! Demands on a test that was measured on any machine, however busy it is.

use loadline_model::CheckId;

use super::{Path, Ran, Value, run, tests_of};

/// Whether others on the machine can have failed a check of this test, because it is one of times. Tests of these checks are nightly ones, or
/// of made-up figures (`run/src/checks`).
fn is_of_time(id: &str, test: &Value) -> bool {
    match id {
        // A job waits for a CPU between two transactions: the time outside them grows. Transactions that overlap are a fault.
        "littles-law" => test["outside_tx_pct"].as_f64().is_some_and(|share| share > 0.0),
        // An agent gets its CPU late, and starts late.
        "agents" => test["by_agent"].as_array().unwrap().iter().all(|agent| agent["failed"].is_null()),
        // Transactions take longer than half of a short window.
        "window" => {
            let mean_ns = test["transaction_time_ns_mean"].as_f64();
            mean_ns.zip(test["elapsed_s"].as_f64()).is_some_and(|(mean_ns, s)| mean_ns > s * 1e9 / 2.0)
        }
        // A snapshot is read late, and jobs in the database say only once a slice how far they are.
        "commits-window" => test["driver"] == "database",
        // Of few transactions, pages that are logged whole and those at the window's edges are a large part.
        "redo-size" => test["commits"].as_f64().is_some_and(|commits| commits < 1000.0),
        _ => false,
    }
}

fn failed(test: &Value) -> impl Iterator<Item = &str> {
    let checks = test["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["outcome"] == "failed").map(|check| check["id"].as_str().unwrap())
}

/// Whether a check says that others used the machine. Tests run beside each other and disturb each other;
/// tests/alone/disturbance.rs is about that.
fn is_of_disturbance(id: &str) -> bool {
    serde_json::from_value::<CheckId>(id.into()).is_ok_and(CheckId::is_of_disturbance)
}

pub(crate) fn refused(test: &Value) -> bool {
    failed(test).any(|id| !is_of_disturbance(id))
}

/// Whether a test is valid, or others on the machine can have failed each check that it failed.
pub(crate) fn sound(test: &Value) -> bool {
    let by_others = |id: &str| is_of_disturbance(id) || is_of_time(id, test);
    failed(test).all(by_others) && (test["valid"] == true) == (failed(test).count() == 0)
}

/// The tests of a run that ended in order: they are sound, and its exit code says whether one of them is refused.
#[track_caller]
pub(crate) fn sound_tests(ran: &Ran) -> Vec<Value> {
    let tests = tests_of(&ran.folder());
    assert!(!tests.is_empty(), "{}", ran.said());
    if let Some(test) = tests.iter().find(|test| !sound(test)) {
        panic!("{}: {}\n{}", test["workload"], test["invalid_reason"], ran.said());
    }
    let refused = tests.iter().any(refused);
    // A pair of arms with a refused window is left out, which is an answer as long as there are others.
    let answered = refused && tests.iter().all(|test| test["arm"].is_string()) && ran.code == 0;
    assert!(ran.code == i32::from(refused) || answered, "{}", ran.said());
    tests
}

/// Runs, and demands [`sound_tests`]. What reads the run afterwards finds it [`as_on_a_quiet_machine`].
#[track_caller]
pub(crate) fn measured<S: AsRef<str>>(args: &[S]) -> Ran {
    let ran = run(args);
    sound_tests(&ran);
    as_on_a_quiet_machine(&ran.folder());
    ran
}

/// Stores the tests of a run as a quiet machine would have judged them: what others failed is passed.
pub(crate) fn as_on_a_quiet_machine(folder: &Path) {
    let mut tests = tests_of(folder);
    if tests.iter().all(|test| test["valid"] == true) {
        return;
    }
    for test in tests.iter_mut().filter(|test| test["valid"] != true && sound(test)) {
        let test = test.as_object_mut().unwrap();
        test.insert("valid".to_owned(), true.into());
        test.remove("invalid_reason");
        test.remove("checksum");
        for check in test["checks"].as_array_mut().unwrap().iter_mut().filter(|check| check["outcome"] == "failed") {
            check["outcome"] = "passed".into();
            check["detail"] = "a quiet machine".into();
        }
    }
    let lines: String = tests.iter().map(|test| format!("{test}\n")).collect();
    std::fs::write(folder.join("tests.jsonl"), lines).unwrap();
}
