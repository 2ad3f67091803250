//! The part of `loadline probe` that runs the reference log writer, and its table.

use loadline_model::LogWriterPoint;
use loadline_model::format::{duration_ns, number};
use loadline_model::probe::{ProbeReport, ProbedDir};

/// Heading of the table.
pub(crate) const TITLE: &str = "Reference log writer: commits by jobs";

/// Head and rows: workload, redo, jobs, then what each directory shows; empty where nothing was measured.
pub(crate) fn rows(report: &ProbeReport, letter: impl Fn(usize) -> String) -> Vec<Vec<String>> {
    let mut keys: Vec<(String, u32)> = Vec::new();
    for point in report.dirs.iter().flat_map(|d| &d.log_writer) {
        let key = (point.workload.clone(), point.jobs);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return Vec::new();
    }
    let alone = report.dirs.len() == 1;
    let mut head = ["workload", "redo", "durable", "jobs"].map(str::to_owned).to_vec();
    for i in 0..report.dirs.len() {
        head.extend(
            ["per s", "MiB/s", "mean"].map(|c| if alone { c.to_owned() } else { format!("{} {c}", letter(i)) }),
        );
    }
    let mut rows = vec![head];
    for (workload, jobs) in keys {
        let of = |d: &'_ ProbedDir| d.log_writer.iter().find(|p| p.workload == workload && p.jobs == jobs).cloned();
        let points: Vec<Option<LogWriterPoint>> = report.dirs.iter().map(of).collect();
        let first = points.iter().flatten().next();
        let redo = first.map_or(0.0, |p| p.redo_bytes_per_tx);
        let durable = if first.is_some_and(|p| p.wait) { "yes" } else { "no wait" };
        let mut cells = vec![workload, format!("{:.1} KiB", redo / 1024.0), durable.to_owned(), jobs.to_string()];
        for point in points {
            match point {
                Some(p) => cells.extend([number(p.tps, 0), number(mib_per_s(&p), 1), duration_ns(p.latency_ns_mean)]),
                None => cells.extend(["–"; 3].map(str::to_owned)),
            }
        }
        rows.push(cells);
    }
    rows
}

/// Redo per second, MiB/s.
pub(crate) fn mib_per_s(point: &LogWriterPoint) -> f64 {
    point.tps * point.redo_bytes_per_tx / 1048576.0
}

/// Name of the operation in files.
pub(crate) fn operation(point: &LogWriterPoint) -> String {
    format!("log-writer-{}", point.workload.to_ascii_lowercase())
}
