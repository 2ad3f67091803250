//! How large a report is, and how its time grows with the tests.

use std::time::{Duration, Instant};

use loadline_report::{Format, RunData};

use crate::common::*;

/// A run of so many tests of two workloads, with throughput over time.
fn long(tests: u32) -> RunData {
    let of_six = run("disk", "run-disk", 1.0);
    let mut long = RunData { records: Vec::new(), ..of_six.clone() };
    for (test, record) in (1..=tests).zip(of_six.records.iter().cycle()) {
        long.over_time.insert(test, of_six.over_time[&record.test].clone());
        let repetition = (test - 1) / 6 + 1;
        long.records.push(loadline_model::TestRecord { test, repetition, ..record.clone() });
    }
    long
}

#[test]
fn a_page_of_sixty_tests_is_below_900_kb() {
    let bytes = text(&[long(60)], Format::Html).len();
    assert!(bytes < 900_000, "{bytes}");
}

/// Time on this machine: `cargo test --release -p loadline-report --test it -- --ignored --nocapture thousand` prints time and
/// peak memory, which should be a second and 150 MB at most.
#[test]
#[ignore = "nightly: measures time"]
#[expect(clippy::print_stdout)]
fn a_report_of_a_thousand_tests_takes_no_longer_than_in_proportion() {
    let fastest = |tests: u32| -> Duration {
        let runs = [long(tests)];
        let once = |_| {
            let begin = Instant::now();
            assert!(text(&runs, Format::Html).contains("</html>"));
            begin.elapsed()
        };
        (0..5).map(once).min().unwrap()
    };
    let (hundred, thousand) = (fastest(100), fastest(1000));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("peak unknown");
    println!("1,000 tests: {thousand:?}, 100 tests: {hundred:?}; {peak}");
    assert!(thousand < hundred * 15, "{thousand:?}, {hundred:?}");
}
