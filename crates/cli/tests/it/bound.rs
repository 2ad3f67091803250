//! Bounds of tests, end to end: each test makes one cause on purpose. Which figures name which cause is tested with made-up ones
//! (`analyze/tests/it/bound.rs` and `bound_time.rs`).

use crate::common::*;

/// Runs it for a moment and returns its last test as the JSON report has it.
fn last_test(target: &str, options: &str) -> Value {
    let dir = results();
    let short = "--duration 2s --warmup 300ms --no-probe";
    let line = format!("run --target {target} {short} --results {} {options}", dir.path().display());
    let json = report(&measured(&words(&line)).folder(), "--format json");
    let json: Value = serde_json::from_str(&json).unwrap();
    json["runs"][0]["tests"].as_array().unwrap().last().unwrap().clone()
}

#[track_caller]
fn assert_bounded(test: &Value, by: &str) {
    assert_eq!(test["bounded_by"], by, "{test:#}");
}

#[derive(serde::Deserialize)]
struct Bounds {
    case: Vec<Case>,
}

/// A test that makes one cause (`data/bounds.toml`).
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    target: String,
    options: String,
    by: String,
    large: Option<String>,
    small: Option<(String, f64)>,
}

impl Case {
    /// Makes the cause once; what the test says instead of it, if it does.
    fn missed(&self) -> Option<String> {
        let test = last_test(&self.target, &self.options.replace("{data}", DATA));
        let large = self.large.as_ref().is_none_or(|id| figure(&test, id) > 50.0);
        let small = self.small.as_ref().is_none_or(|(id, most)| figure(&test, id) <= *most);
        let is_named = test["bounded_by"] == *self.by && large && small;
        (!is_named).then(|| format!("{}: {test}", test["bounded_by"]))
    }
}

/// How often each cause is made, and how often it may be missed.
const TRIES: usize = 10;
const MISSED: usize = 1;

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
#[expect(clippy::print_stdout, reason = "how often each cause is named")]
fn each_cause_that_is_made_is_named() {
    let bounds: Bounds = toml::from_str(include_str!("data/bounds.toml")).unwrap();
    let mut wrong = Vec::new();
    for case in bounds.case {
        let missed: Vec<String> = (0..TRIES).filter_map(|_| case.missed()).collect();
        println!("{} of {TRIES}: {} on {} {}", TRIES - missed.len(), case.by, case.target, case.options);
        if missed.len() > MISSED {
            wrong.push(format!("{} {} is not {} but {}", case.target, case.options, case.by, missed.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let alone = last_test("sqlite:", "--workload LGWR-LAT1 --jobs 1");
    assert_eq!(figure(&alone, "writer_wait_pct"), 0.0, "one job has nobody to wait for");
}

/// How fast the device is, and who else uses the CPUs, depends on the machine: the cause must be the largest part.
#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn storage_is_the_cause_if_most_of_the_time_is_spent_on_it() {
    // Changes a row in each of so many blocks that writing them takes longer than the log; each commit is followed by a checkpoint.
    let scattered = "--workload DBWR-THR --parameter DBWR-THR.blocks=500";
    let checkpoints = "--setting wal_autocheckpoint=1 --size 32MiB --jobs 1 --force";
    let writes = last_test("sqlite:", &format!("{scattered} {checkpoints}"));
    let reads = last_test("postgres-temp:", "--workload STO-READ --size 32MiB --jobs 2 --allow-cached");
    for (test, wait, by) in [(&writes, "write_wait_pct", "storage writes"), (&reads, "read_wait_pct", "storage reads")]
    {
        let waits_for_cpu = ["session_cpu_wait_pct", "client_job_cpu_wait_pct"];
        let waits_for_cpu: f64 = waits_for_cpu.iter().filter_map(|id| test[id].as_f64()).sum();
        // A wait that the database times contains that for a CPU, and CPU time of the system calls.
        let slept = 100.0 - figure(test, "session_cpu_pct");
        let wait = figure(test, wait).min(slept) - waits_for_cpu;
        assert!(slept < 100.0, "{test:#}");
        if wait > 55.0 {
            assert_bounded(test, by);
        }
    }
}

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn client_session_and_the_way_between_them_share_the_time_of_one_job() {
    let test = &last_test("postgres-temp:", "--workload SRV-QUERY1 --jobs 1 --driver client");
    // Idle time is sampled, so it can only be cut to the time asleep; CPU times are exact.
    for [run, wait] in [["session_cpu_pct", "session_cpu_wait_pct"], ["client_job_cpu_pct", "client_job_cpu_wait_pct"]]
    {
        let both = figure(test, run) + figure(test, wait);
        assert!(figure(test, run) > 3.0 && both <= 105.0, "{run}: {test:#}");
    }
    assert!(figure(test, "session_idle_pct") > 0.0, "{test:#}");
}
