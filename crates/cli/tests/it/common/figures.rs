//! Figures and checks of a test, and what must hold of them.

use super::Value;

pub(crate) fn figure(test: &Value, id: &str) -> f64 {
    test[id].as_f64().unwrap_or_else(|| panic!("{}: no {id}: {}", test["workload"], test["absent"][id]))
}

pub(crate) fn check<'a>(test: &'a Value, id: &str) -> &'a Value {
    let found = test["checks"].as_array().unwrap().iter().find(|c| c["id"] == id);
    found.unwrap_or_else(|| panic!("{}: no check {id}: {test}", test["workload"]))
}

pub(crate) fn outcome<'a>(test: &'a Value, id: &str) -> &'a str {
    check(test, id)["outcome"].as_str().unwrap()
}

pub(crate) fn passed(test: &Value, id: &str) {
    let found = check(test, id);
    assert_eq!(found["outcome"], "passed", "{} with {} jobs: {found}", test["workload"], test["jobs"]);
}

pub(crate) fn all_passed(tests: &[Value], ids: &[&str]) {
    tests.iter().for_each(|test| ids.iter().for_each(|id| passed(test, id)));
}
