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

#[cfg(test)]
pub(crate) mod tests {
    use loadline_model::machine::{Machine, Storage};
    use loadline_model::probe::{Engine, VERSION};

    use super::*;

    pub(crate) fn point(workload: &str, jobs: u32, tps: f64, wait: bool) -> LogWriterPoint {
        LogWriterPoint {
            of: "O_DIRECT".to_owned(),
            workload: workload.to_owned(),
            mix: false,
            wait,
            redo_bytes_per_tx: 1536.0,
            jobs,
            tps,
            latency_ns_mean: f64::from(jobs) / tps * 1e9,
        }
    }

    fn directory(log_writer: Vec<LogWriterPoint>) -> ProbedDir {
        ProbedDir {
            dir: "/log".to_owned(),
            storage: Storage::default(),
            kind: "local".to_owned(),
            st_dev: 1,
            logical_block_bytes: None,
            engine: Engine::Threads,
            engine_reason: None,
            direct: true,
            file_bytes: 16 << 20,
            window_s: 1.0,
            rounds: 1,
            compressibility: 0.0,
            dedup: 0.0,
            notes: Vec::new(),
            rows: Vec::new(),
            absent: Vec::new(),
            log_writer,
        }
    }

    /// A report of directories with these points.
    pub(crate) fn report(dirs: Vec<Vec<LogWriterPoint>>) -> ProbeReport {
        let dirs = dirs.into_iter().map(directory).collect();
        let (loadline, at, machine) = (String::new(), String::new(), Machine::default());
        ProbeReport { version: VERSION, loadline, at, machine, dirs }
    }

    fn table(dirs: Vec<Vec<LogWriterPoint>>) -> Vec<Vec<String>> {
        rows(&report(dirs), |i| ["A", "B"][i].to_owned())
    }

    #[test]
    fn commits_of_each_directory_stand_side_by_side() {
        let (one, two) = (point("LGWR-LAT1", 1, 1000.0, true), point("LGWR-THR", 8, 20_000.0, false));
        assert_eq!(table(vec![Vec::new()]), Vec::<Vec<String>>::new(), "not measured");
        let alone = table(vec![vec![one.clone()]]);
        assert_eq!(alone[0], ["workload", "redo", "durable", "jobs", "per s", "MiB/s", "mean"]);
        assert_eq!(alone[1], ["LGWR-LAT1", "1.5 KiB", "yes", "1", "1,000", "1.5", "1.00 ms"]);
        let both = table(vec![vec![one.clone()], vec![one, two]]);
        assert_eq!(both[0][4..], ["A per s", "A MiB/s", "A mean", "B per s", "B MiB/s", "B mean"]);
        assert_eq!(both[2][..7], ["LGWR-THR", "1.5 KiB", "no wait", "8", "–", "–", "–"]);
        assert_eq!(both[2][7..], ["20,000", "29.3", "400.0 µs"]);
    }
}
