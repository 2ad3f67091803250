//! End to end: automatic warm-ups, what their record says, and whether the window was steady.

use crate::common::*;

const AUTO: &str = "--workload LGWR-LAT1 --jobs 2 --no-probe --warmup auto --max-warmup";

#[test]
fn a_warm_up_that_is_too_short_to_tell_is_noted() {
    let dir = results();
    let args = format!("run --target null:?pause=1ms {AUTO} 3s --duration 4s --results {}", dir.path().display());
    let dry = printed(&format!("{args} --dry-run"));
    assert!(dry.contains("4 s after at most 3 s of warm-up") && dry.contains("time        at most about"), "{dry}");
    let ran = command(&args);
    let tests = sound_tests(&ran);
    assert!(tests[0]["warmup_s"].as_f64().unwrap() >= 2.9, "{}", tests[0]["warmup_s"]);
    assert_eq!(outcome(&tests[0], "warm-up"), "noted", "that takes 7 s or more");
    assert!(ran.out.contains("! Test 1 was not steady at its window start: not shown to be steady"), "{}", ran.said());
    let steady = check(&tests[0], "steady");
    assert!(steady["outcome"] == "noted" || steady.to_string().contains("in 40 values of 0.1 s"), "{steady}");
    let plan = &manifest_of(&ran.folder())["plan"];
    assert!(plan["auto_warmup"] == true && plan["warmup_s"] == 3.0, "{plan}");
}

#[test]
#[ignore = "nightly: whether throughput is steady is up to others on the machine"]
fn an_in_database_warm_up_lasts_until_it_is_steady() {
    let dir = results();
    let ran = on("postgres-temp:", &dir, &format!("{AUTO} 9s --driver database --duration 1s"));
    assert_eq!(ran.code, 0, "{}", ran.said());
    let tests = tests_of(&ran.folder());
    let taken_s = tests[0]["warmup_s"].as_f64().unwrap();
    let warm = outcome(&tests[0], "warm-up");
    assert!((6.9..10.0).contains(&taken_s) && (warm == "passed" || taken_s >= 8.9), "{taken_s}: {warm}");
    assert_eq!(outcome(&tests[0], "steady"), "not-made", "one value of a second");
}
