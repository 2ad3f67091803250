//! Tests that others disturb, end to end: each makes one disturbance on purpose. That a quiet test is not marked is tested
//! with made-up figures (`run/src/checks/disturbance.rs`): on the machine of the tests nothing is quiet.

use std::process::{Child, Command, Stdio};

use crate::alone;
use crate::common::figures::check;
use crate::common::{Ran, loadline, ok, results, run, signal, tests_of};
use nix::sys::signal::SIGTERM;

/// Processes that use a CPU each. They end with the test.
struct Loops(Vec<Child>);

impl Loops {
    /// `n` loops, started through `program`. If that fails, as for a user who may not raise a priority: directly.
    fn start(n: usize, program: &[&str]) -> Loops {
        let allowed = Command::new(program[0]).args(&program[1..]).arg("true").stderr(Stdio::null()).status();
        let program = if allowed.is_ok_and(|s| s.success()) { program } else { &["env"] };
        let start = |_| {
            let mut command = Command::new(program[0]);
            // Ends by itself if the test is killed.
            command.args(&program[1..]).args(["timeout", "60", "sh", "-c", "while :; do :; done"]);
            command.spawn().unwrap()
        };
        Loops((0..n).map(start).collect())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // timeout(1) passes it on to the loop.
            signal(child, SIGTERM);
            let _ = child.wait();
        }
    }
}

const SHORT: [&str; 7] = ["--jobs", "1", "--duration", "1s", "--warmup", "200ms", "--no-probe"];

/// The run's only test, which must be disturbed by other processes on the CPU, wherever it is shown.
fn assert_disturbed(ran: &Ran) -> serde_json::Value {
    assert_eq!(ran.code, 0, "{}", ran.said());
    assert!(ran.err.lines().last().unwrap().starts_with("1 of 1 tests were disturbed"), "{}", ran.said());
    let test = tests_of(&ran.folder()).remove(0);
    assert_eq!(check(&test, "other-cpu")["outcome"], "failed", "{test:#}");
    assert!(test["disturbed_by"].as_str().unwrap().contains("other processes on the CPU"), "{test:#}");
    assert!(test["other_cpu_pct"].as_f64().unwrap() >= 20.0, "{test:#}");
    assert!(ran.out.contains("! Noticed at test 1: other processes on the CPU"), "{}", ran.said());
    test
}

#[test]
fn a_client_that_shares_its_only_cpu_is_not_valid_unseen() {
    let _alone = alone();
    let dir = results();
    // The first CPU that this process may use.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cpu = allowed.split([',', '-']).next().unwrap();
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", cpu]).arg(loadline().get_program());
    pinned.args(["run", "--target", "null:", "--workload", "LGWR-LAT1", "--results", dir.path().to_str().unwrap()]);
    let busy = Loops::start(1, &["taskset", "-c", cpu]);
    let test = assert_disturbed(&Ran::of(pinned.args(SHORT).output().unwrap()));
    drop(busy);
    let online = std::fs::read_to_string("/proc/stat").unwrap().lines().filter(|l| l.starts_with("cpu")).count() - 1;
    let withheld = test["cpu_withheld_pct"].as_f64().unwrap();
    assert!((withheld - 100.0 * (1.0 - 1.0 / online as f64)).abs() < 0.01, "{test:#}");
    assert_eq!(test["disturbed_by"].as_str().unwrap().contains("CPUs withheld"), online > 1, "{test:#}");
}

#[test]
fn loops_on_all_cpus_are_marked_and_fail_a_strict_run() {
    let _alone = alone();
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let args = [&["run", "--target", "sqlite:", "--workload", "LGWR-LAT1", "--results", path], &SHORT[..]].concat();
    // With -20, loadline itself would take a minute to start.
    let busy = Loops::start(cpus, &["nice", "-n", "-5"]);
    let [plain, strict] = [&args[..], &[&args[..], &["--strict"]].concat()].map(run);
    drop(busy);
    assert_disturbed(&plain);
    assert_eq!(strict.code, 1, "{}", strict.said());
    let folder = plain.folder().display().to_string();
    let columns = ["report", &folder, "--format", "csv", "--columns", "valid,validity", "--output", "-"];
    assert_eq!(ok(&columns).out, "valid,validity\nfalse,disturbed\n");
    assert!(plain.out.contains("throughput without the disturbance"), "{}", plain.said());
    let markdown = ok(&["report", &folder, "--format", "md", "--output", "-"]).out;
    assert!(markdown.contains("Noticed at test 1: other processes on the CPU"), "{markdown}");
}
