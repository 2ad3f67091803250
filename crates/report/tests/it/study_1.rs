//! The published log-writer study as a report with its known factors. Writes `target/tmp/study-1.html` to look at.

use crate::common::manifest;
use loadline_model::column::{self, column};
use loadline_model::limits::SizePoint;
use loadline_model::plan::PlannedWorkload;
use loadline_report::{Format, Options, RunData, render};
use std::collections::BTreeMap;

fn platform(name: &str) -> RunData {
    let mut lines = include_str!("../../../../references/log-writer-exadata.csv").lines();
    let ids: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut m = manifest(name, &format!("run-{name}"));
    m.target.product = "Oracle".to_owned();
    m.target.version = "19c".to_owned();
    m.plan.workloads = Vec::<PlannedWorkload>::new();
    let rows = lines.map(|l| ids.iter().copied().zip(l.split(',')).collect::<BTreeMap<&str, &str>>());
    let records = rows
        .filter(|row| row["platform"] == name)
        .map(|row| {
            let number = |id: &str| row[id].parse().unwrap();
            let mut r = crate::common::record(&m, number("test"), row["workload"], number("jobs"), 1.0, 1.0);
            r.nodes = number("nodes");
            r.checks.clear();
            r.figures.clear();
            r.absent.clear();
            r.waits = Default::default();
            for (column, text) in row.iter().filter_map(|(id, text)| Some((column(id)?, text))) {
                if !["platform", "workload", "run", "test", "nodes", "jobs"].contains(&column.id) {
                    r.set(column, text.parse().unwrap());
                }
            }
            for id in [
                column::COMMIT_TIME_NS_P50,
                column::COMMIT_TIME_NS_P99,
                column::COMMIT_TIME_NS_MAX,
                column::ERRORS,
                column::LIMIT_SHARE_PCT,
            ] {
                r.leave_out(id, "the study does not print it");
            }
            for id in [column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99] {
                r.leave_out(id, "the study prints means only");
            }
            r
        })
        .collect();
    RunData::new(m, records, Vec::new())
}

fn written(name: &str, runs: &[RunData]) -> String {
    let page = render(runs, Format::Html, &Options::default()).unwrap();
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn the_factors_of_the_study_are_computed() {
    let page = written("study-1.html", &[platform("X5-2"), platform("X9M-2")]);
    for wanted in
        ["4.95 at 48", "8.25 at 48", "one test each: no interval", "61 tests, all valid.", "still rising at 72 jobs"]
    {
        assert!(page.contains(wanted), "the page lacks '{wanted}'");
    }
}

#[test]
fn the_fixture_is_written_to_look_at() {
    let page = written("two-platforms.html", &crate::common::two_platforms());
    assert!(page.contains("sata ssd · nvme"));
    written("two-scans.html", &crate::common::two_scans());
    let page = written("one-platform.html", &crate::common::two_platforms()[1..]);
    assert!(!page.contains("Factors between platforms"), "one platform has no factors");
}

#[test]
fn on_a_busy_disk_the_lowest_deciles_are_used() {
    let rows = include_str!("../../../analyze/tests/data/commit-time-by-redo.csv").lines();
    let mut run = crate::common::run("busy disk", "run-busy", 1.0);
    run.records.truncate(1);
    let mut scan = crate::common::scan(&run.manifest, 2, None, 0.0);
    scan.sizes = rows
        .map(|l| l.split(',').collect::<Vec<_>>())
        .filter(|r| r[0] == "1 MiB")
        .map(|r| SizePoint {
            redo_bytes: r[1].parse().unwrap(),
            commit_ns: r[2].split(' ').map(|ns| ns.parse().unwrap()).collect(),
            write_ns: Vec::new(),
        })
        .collect();
    run.records.push(scan);
    run.manifest.target.settings.insert("flush_at_bytes".to_owned(), "1048576".to_owned());
    let page = written("busy-disk.html", &[run]);
    for wanted in
        ["(in the lowest deciles: stalls blur the medians)", "flush_at_bytes = 1048576 (1.0 MiB).", "cut off above"]
    {
        assert!(page.contains(wanted), "the page lacks '{wanted}'");
    }
}
