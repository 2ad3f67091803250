//! Tests that others disturb, end to end: each makes one disturbance on purpose. That a quiet test is not marked is tested
//! with made-up figures (`run/src/figures/disturbance.rs`): on the machine of the tests nothing is quiet.

use crate::alone;
use crate::common::*;

/// Processes that use a CPU each. They end with the test, or by themselves if that is killed.
struct Loops(Child);

impl Loops {
    /// `n` loops, started through `program`: nice(1) starts them for a user who may not raise a priority, too.
    fn start(n: usize, program: &str) -> Loops {
        let loops = format!("for i in $(seq {n}); do while :; do :; done & done; wait");
        let mut command = Command::new("timeout");
        Loops(command.arg("60").args(words(program)).args(["sh", "-c", &loops]).spawn().unwrap())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        // timeout(1) passes it on to its group.
        signal(&self.0, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

const SHORT: &str = "--workload LGWR-LAT1 --jobs 1 --duration 1s --warmup 200ms --no-probe";

/// The run's only test, which must be disturbed by other processes on the CPU, wherever it is shown.
fn assert_disturbed(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.said());
    assert!(ran.err.lines().last().unwrap().starts_with("1 of 1 tests were disturbed"), "{}", ran.said());
    let test = tests_of(&ran.folder()).remove(0);
    assert_eq!(outcome(&test, "other-cpu"), "failed", "{test:#}");
    assert!(test["disturbed_by"].as_str().unwrap().contains("other processes on the CPU"), "{test:#}");
    assert!(figure(&test, "other_cpu_pct") >= 20.0, "{test:#}");
    assert!(ran.out.contains("! Noticed at test 1: other processes on the CPU"), "{}", ran.said());
    test
}

#[test]
fn a_client_that_shares_its_only_cpu_is_not_valid_unseen() {
    let _alone = alone();
    let dir = results();
    // The first CPU that this process may use.
    let status = read("/proc/self/status");
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cpu = allowed.split([',', '-']).next().unwrap();
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", cpu]).arg(loadline().get_program());
    pinned.args(words(&format!("run --target null: --results {} {SHORT}", dir.path().display())));
    let busy = Loops::start(1, &format!("taskset -c {cpu}"));
    let test = assert_disturbed(&Ran::from_output(pinned.output().unwrap()));
    drop(busy);
    let online = read("/proc/stat").lines().filter(|l| l.starts_with("cpu")).count() - 1;
    let withheld = figure(&test, "cpu_withheld_pct");
    assert!((withheld - 100.0 * (1.0 - 1.0 / online as f64)).abs() < 0.01, "{test:#}");
    assert_eq!(test["disturbed_by"].as_str().unwrap().contains("CPUs withheld"), online > 1, "{test:#}");
}

#[test]
fn loops_on_all_cpus_are_marked_and_fail_a_strict_run() {
    let _alone = alone();
    let dir = results();
    let line = format!("run --target sqlite: --results {} {SHORT}", dir.path().display());
    let busy = all_busy();
    let [plain, strict] = ["", "--strict"].map(|more| command(&format!("{line} {more}")));
    drop(busy);
    assert_disturbed(&plain);
    assert_eq!(strict.code, 1, "{}", strict.said());
    let folder = plain.folder();
    assert_eq!(report(&folder, "--format csv --columns valid,validity"), "valid,validity\nfalse,disturbed\n");
    assert!(plain.out.contains("throughput without the disturbance"), "{}", plain.said());
    let markdown = report(&folder, "--format md");
    assert!(markdown.contains("Noticed at test 1: other processes on the CPU"), "{markdown}");
}

/// The command line of a run, or of two arms, of LGWR-LAT1, with time for second tries.
fn patient(command: &str, results: &Path) -> String {
    let short = "--workload LGWR-LAT1 --jobs 1 --duration 2s --warmup 200ms --no-probe --patience 300%";
    format!("{command} {short} --results {}", results.display())
}

/// A loop for each CPU. With -20, loadline itself would take a minute to start.
fn all_busy() -> Loops {
    Loops::start(std::thread::available_parallelism().unwrap().get(), "nice -n -5")
}

/// The tries of a run's only test: the first is disturbed, the others are tries of it, and the report has one row that counts them.
fn assert_tried_again(ran: &Ran) -> Vec<Value> {
    let folder = ran.folder();
    let tries = tests_of(&folder);
    let firsts: Vec<_> = tries.iter().map(|test| test["try_of"].as_u64()).collect();
    assert!((2..=3).contains(&tries.len()), "{}", ran.said());
    assert_eq!(firsts, [&[None][..], &vec![Some(1); tries.len() - 1]].concat());
    assert_eq!(outcome(&tries[0], "other-cpu"), "failed", "{}", ran.said());
    assert_eq!(ran.code, 0, "{}", ran.said());
    assert!(ran.out.contains("1 of 1 tests needed a second try"), "{}", ran.said());
    // Where nothing is quiet, none of them may be valid.
    let valid = tries.iter().any(|test| test["valid"] == true);
    let row = format!("tries,valid\n{},{valid}\n", tries.len());
    assert_eq!(report(&folder, "--format csv --columns tries,valid"), row);
    tries
}

#[test]
fn a_test_that_was_disturbed_is_measured_again_when_the_machine_is_quiet() {
    let _alone = alone();
    let dir = results();
    let busy = all_busy();
    let child = start(&words(&patient("run --target null:?pause=1ms", dir.path())));
    folder_with_tests(dir.path(), 1);
    drop(busy);
    let ran = ended(child);
    assert_tried_again(&ran);
    assert!(ran.err.contains("(test 1 again)"), "{}", ran.said());
}

#[test]
#[ignore = "nightly: several windows and waits, alone on the machine"]
fn a_pair_is_measured_again_as_a_whole_in_its_order() {
    let _alone = alone();
    let dir = results();
    let _busy = all_busy();
    let arms = "ab --target-a null:?pause=1ms --target-b null:?pause=2ms --pairs 1";
    let pair = command(&patient(arms, dir.path()));
    let windows = tests_of(&pair.folder());
    let arms: Vec<_> = windows.iter().map(|test| test["arm"].as_str().unwrap()).collect();
    assert!(arms.len() > 2 && arms.chunks(2).all(|of_try| of_try == &arms[..2]), "{arms:?} {}", pair.said());
    let firsts: Vec<_> = windows.iter().map(|test| test["try_of"].as_u64()).collect();
    assert_eq!(firsts, [&[None; 2][..], &vec![Some(1); arms.len() - 2]].concat());
}

#[test]
#[ignore = "nightly: several windows and waits, alone on the machine"]
fn a_resumed_run_keeps_its_tries() {
    let _alone = alone();
    let dir = results();
    let busy = all_busy();
    let child = start(&words(&patient("run --target null:?pause=1ms", dir.path())));
    let folder = folder_with_tests(dir.path(), 1);
    kill(child);
    let before = tests_of(&folder);
    let ran = resumed(&folder, "");
    drop(busy);
    assert_eq!(assert_tried_again(&ran)[..before.len()], before);
}
