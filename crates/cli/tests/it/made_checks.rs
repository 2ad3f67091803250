//! Which checks the quick plan makes on each database: none is dropped in silence.

use std::collections::BTreeMap;

use crate::common::*;
use crate::kept::{self, Items};

/// Checks that a busy neighbour can fail on any machine, or a window of a quarter of a second: the record is right and says so.
/// Whether these passed is left open here, not whether they were made.
const OF_TIME: [&str; 14] = [
    "client-cpu", "cpu-steal", "data-source", "data-written", "littles-law", "memory-pressure", "other-cpu",
    "other-io", "other-sessions", "other-sessions-cpu", "redo-size", "steady", "unknown-cpu", "window",
];
/// Checks that need counters read in time, or a window that long transactions made longer: a busy neighbour decides whether they are
/// made, as in some tests of the runs kept.
const MADE_OR_NOT: [&str; 5] = ["commits-database", "commits-window", "other-sessions", "other-sessions-cpu", "steady"];
/// Tests in which any other check may be not made, with its reason: what it reads of the system was read too late.
const NOT_READ: usize = 2;
/// Of both kinds, those that no neighbour can fail in every test of the plan.
const NEVER_IN_ALL: [&str; 6] =
    ["commits-database", "commits-window", "data-source", "data-written", "littles-law", "redo-size"];

/// Outcomes of the checks of each test, by database, workload, jobs and check. What was kept is a set of outcomes, those that
/// repeated runs had; an outcome in it counts as the set.
fn outcomes(database: &str, target: &str, kept: &Items) -> Items {
    let results = results();
    let short = "--jobs 1,4 --duration 250ms --warmup 200ms --size 16MiB --seed 7 --no-probe";
    let ran = on(target, &results, &format!("--plan quick {short}"));
    assert!(ran.code == 0 || ran.code == 1, "{}", ran.said());
    let (mut now, mut passes, mut made) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut not_read: BTreeMap<String, usize> = BTreeMap::new();
    for test in tests_of(&ran.folder()) {
        let of_test = format!("{database} {} {}", test["workload"].as_str().unwrap(), test["jobs"]);
        for check in test["checks"].as_array().unwrap() {
            let (id, outcome) = (check["id"].as_str().unwrap(), check["outcome"].as_str().unwrap());
            let (id_of_item, kept) = (format!("{of_test} {id}"), kept.get(&format!("{of_test} {id}")));
            let known = kept.is_some_and(|set| {
                let made = set.split('|').any(|o| o != "not-made");
                let passed = set.split('|').any(|o| o == "passed" || o == "noted");
                set.split('|').any(|o| o == outcome)
                    || (passed && (outcome == "passed" || outcome == "noted"))
                    || (made && OF_TIME.contains(&id) && outcome != "not-made")
                    || (MADE_OR_NOT.contains(&id) && outcome != "failed")
                    || (made && outcome == "not-made" && {
                        *not_read.entry(id.to_owned()).or_default() += 1;
                        true
                    })
            });
            *passes.entry(id.to_owned()).or_insert(0) += usize::from(outcome == "passed");
            *made.entry(id.to_owned()).or_insert(0) += usize::from(outcome != "not-made");
            let value = if known { kept.cloned().unwrap_or_default() } else { outcome.to_owned() };
            assert!(now.insert(id_of_item, value).is_none(), "{of_test}: {id} twice");
        }
    }
    for (id, tests) in not_read {
        // On a busy machine counters are not read in some windows of a quarter of a second, each with its reason.
        let most = NOT_READ.max((made[&id] + tests) / 10);
        assert!(tests <= most, "{database}: {id} not made in {tests} tests in which it was, of {}", made[&id] + tests);
    }
    for id in NEVER_IN_ALL {
        let passed = |(item, set): (&String, &String)| item.ends_with(&format!(" {id}")) && set.contains("passed");
        assert!(!kept.iter().any(passed) || passes[id] > 0, "{database}: {id} passed in no test");
    }
    for id in MADE_OR_NOT {
        let always = |(item, set): &(&String, &String)| item.ends_with(&format!(" {id}")) && !set.contains("not-made");
        let always = kept.iter().filter(always).count();
        // A few tests say nothing: whether others had a session in a quarter of a second is theirs to decide.
        assert!(always < 10 || made[id] * 2 >= always, "{database}: {id} made in {} of {always} tests", made[id]);
    }
    now
}

fn the_quick_plan_makes_the_same_checks(database: &str, target: &str) {
    let mut then = kept::items("checks.txt");
    then.retain(|id, _| id.starts_with(&format!("{database} ")));
    assert!(then.len() > 500, "{}", then.len());
    kept::compare(&format!("checks of {database}"), &then, &outcomes(database, target, &then));
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "every workload in a window: ./test")]
fn the_quick_plan_makes_the_same_checks_on_sqlite() {
    the_quick_plan_makes_the_same_checks("sqlite", "sqlite:");
}

#[test]
#[ignore = "nightly: every workload in a window on every server"]
fn the_quick_plan_makes_the_same_checks_on_servers() {
    the_quick_plan_makes_the_same_checks("postgres", "postgres-temp:");
    the_quick_plan_makes_the_same_checks("mariadb", "mariadb-temp:");
}
