//! The tables of `loadline probe`: one an operation and one of the reference log writer, the directories side by side.

use std::fmt::Write as _;

use loadline_model::LogWriterPoint;
use loadline_model::format::{bytes, csv_line, duration_ns, number};
use loadline_model::probe::{Operation, ProbeReport, ProbeRow, ProbedDir};

/// What one directory shows of a row, if it stands alone.
const ALONE: [&str; 9] = ["per s", "MiB/s", "mean", "p50", "p99", "p99.9", "max", "CPU each", "samples"];
/// And if it stands beside others.
const BESIDE: [&str; 4] = ["per s", "MiB/s", "mean", "p99"];
/// What is not there.
const NONE: &str = "–";

/// A heading, why something was not measured, and a table with its head.
struct Section {
    title: &'static str,
    absent: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The report as text for a terminal.
pub(crate) fn text(report: &ProbeReport) -> String {
    let mut out = String::new();
    for (i, dir) in report.dirs.iter().enumerate() {
        let _ = writeln!(out, "{}{}", label(report, i), place(dir));
        let _ = writeln!(out, "    {}", how(dir));
        for fact in device(dir) {
            let _ = writeln!(out, "    {fact}");
        }
        for note in &dir.notes {
            let _ = writeln!(out, "    note: {note}");
        }
    }
    for Section { title, absent, rows } in sections(report) {
        let _ = writeln!(out, "\n{title}");
        for reason in absent {
            let _ = writeln!(out, "  {NONE} {reason}");
        }
        aligned(&rows).for_each(|row| out += &format!("  {row}\n"));
    }
    out
}

/// The report as Markdown.
pub(crate) fn markdown(report: &ProbeReport) -> String {
    let mut out = format!("# Device probe of {}, {}\n\n", report.machine.host, report.at);
    for (i, dir) in report.dirs.iter().enumerate() {
        let _ = writeln!(out, "- {}{}; {}; {}", label(report, i), place(dir), how(dir), device(dir).join("; "));
        for note in &dir.notes {
            let _ = writeln!(out, "  - {note}");
        }
    }
    for Section { title, absent, rows } in sections(report) {
        let _ = writeln!(out, "\n## {title}\n");
        for reason in absent {
            let _ = writeln!(out, "{NONE} {reason}\n");
        }
        for (i, row) in rows.iter().enumerate() {
            let _ = writeln!(out, "| {} |", row.join(" | "));
            if i == 0 {
                let _ = writeln!(out, "|{}", " ---: |".repeat(row.len()));
            }
        }
    }
    out
}

/// One row per directory, operation, size and depth. What is not there is an empty cell.
pub(crate) fn csv(report: &ProbeReport) -> String {
    let columns: Vec<&str> =
        "dir kind filesystem device engine operation size_bytes depth direct per_s mib_per_s mean_ns \
         p50_ns p99_ns p999_ns max_ns cpu_ns_per_op samples elapsed_s file_bytes compressibility dedup"
            .split(' ')
            .collect();
    let maybe = |v: Option<u64>| v.map_or(String::new(), |v| v.to_string());
    let row = |d: &ProbedDir, r: &ProbeRow| {
        vec![
            d.engine.name().to_owned(),
            r.operation.id().to_owned(),
            r.size_bytes.to_string(),
            r.depth.to_string(),
            r.direct.to_string(),
            format!("{:.3}", r.per_s),
            format!("{:.3}", r.mib_per_s),
            format!("{:.0}", r.mean_ns),
            r.p50_ns.to_string(),
            maybe(r.p99_ns),
            maybe(r.p999_ns),
            r.max_ns.to_string(),
            format!("{:.0}", r.cpu_ns_per_op),
            r.samples.to_string(),
            format!("{:.6}", r.elapsed_s),
            d.file_bytes.to_string(),
            d.compressibility.to_string(),
            d.dedup.to_string(),
        ]
    };
    let commits = |p: &LogWriterPoint| {
        vec![
            "log-writer".to_owned(),
            format!("log-writer-{}", p.workload.to_ascii_lowercase()),
            format!("{:.0}", p.redo_bytes_per_tx),
            p.jobs.to_string(),
            "false".to_owned(),
            format!("{:.3}", p.tps),
            format!("{:.3}", redo_mib_per_s(p)),
            format!("{:.0}", p.latency_ns_mean),
        ]
    };
    let of_dir = |d: &ProbedDir| -> Vec<Vec<String>> {
        let device = d.storage.device.clone().unwrap_or_default();
        let begin = [d.dir.clone(), d.kind.clone(), d.storage.filesystem.clone(), device];
        let rest = d.rows.iter().map(|r| row(d, r)).chain(d.log_writer.iter().map(commits));
        let whole = |cells: Vec<String>| {
            let mut cells: Vec<String> = begin.iter().cloned().chain(cells).collect();
            cells.resize(columns.len(), String::new());
            cells
        };
        rest.map(whole).collect()
    };
    csv_line(&columns) + &report.dirs.iter().flat_map(of_dir).map(csv_line).collect::<String>()
}

/// Rows with their cells below each other, aligned right.
fn aligned(rows: &[Vec<String>]) -> impl Iterator<Item = String> {
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    rows.iter().map(move |row| row.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}")).collect::<Vec<_>>().join("  "))
}

/// `A  `, `B  `, … where there are several.
fn label(report: &ProbeReport, i: usize) -> String {
    if report.dirs.len() > 1 { format!("{}  ", letter(i)) } else { String::new() }
}

fn letter(i: usize) -> String {
    match u8::try_from(i) {
        Ok(n) if n < 26 => char::from(b'A' + n).to_string(),
        _ => format!("#{}", i + 1),
    }
}

fn place(d: &ProbedDir) -> String {
    let device = d.storage.device.as_ref().map_or(String::new(), |d| format!(" on {d}"));
    format!("{}: {} ({}){device}", d.dir, d.storage.filesystem, d.storage.mount_options)
}

fn how(d: &ProbedDir) -> String {
    let cache = if d.direct { "O_DIRECT" } else { "page cache" };
    format!(
        "{}, {cache}, test file {}, {:.0} ms a figure, compressibility {}, dedup {}",
        d.engine.name(),
        bytes(d.file_bytes as f64),
        d.window_s * 1e3,
        d.compressibility,
        d.dedup
    )
}

/// What is known of the device, as one line; none for filesystems without one.
fn device(d: &ProbedDir) -> Vec<String> {
    let facts: Vec<String> =
        d.storage.device_facts.iter().map(|(k, v)| format!("{} {v}", k.replace('_', " "))).collect();
    if facts.is_empty() { Vec::new() } else { vec![format!("device: {}", facts.join(", "))] }
}

fn sections(report: &ProbeReport) -> Vec<Section> {
    let mut all: Vec<Section> = Operation::ALL.into_iter().map(|operation| section(report, operation)).collect();
    let rows = commits(report);
    if !rows.is_empty() {
        all.push(Section { title: "Reference log writer: commits by jobs", absent: Vec::new(), rows });
    }
    all
}

/// An operation, with a row per size and depth.
fn section(report: &ProbeReport, operation: Operation) -> Section {
    let rows = report.dirs.iter().flat_map(|d| &d.rows).filter(|r| r.operation == operation);
    let mut keys: Vec<(u64, u32)> = rows.map(|r| (r.size_bytes, r.depth)).collect();
    keys.sort_unstable();
    keys.dedup();
    let alone = report.dirs.len() == 1;
    let shown: &[&str] = if alone { &ALONE } else { &BESIDE };
    let rows = side_by_side(report, &["size", "in flight"], shown, &keys, |dir, (size, depth)| {
        let row = dir.row(operation, *size, *depth)?;
        // Sizes here are powers of two.
        let key = vec![bytes(*size as f64).replace(".0 ", " "), depth.to_string()];
        Some((key, shown.iter().map(|column| cell(row, column)).collect()))
    });
    let absent = report.dirs.iter().enumerate().flat_map(|(i, d)| {
        let absent = d.absent.iter().filter(move |a| a.operation == operation);
        absent.map(move |a| if alone { a.reason.clone() } else { format!("{}: {}", letter(i), a.reason) })
    });
    Section { title: operation.title(), absent: absent.collect(), rows }
}

/// Commits of the reference log writer by workload and jobs; empty where nothing was measured.
fn commits(report: &ProbeReport) -> Vec<Vec<String>> {
    let mut keys: Vec<(&str, u32)> = Vec::new();
    for point in report.dirs.iter().flat_map(|d| &d.log_writer) {
        let key = (point.workload.as_str(), point.jobs);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let fixed = ["workload", "redo", "durable", "jobs"];
    side_by_side(report, &fixed, &["per s", "MiB/s", "mean"], &keys, |dir, (workload, jobs)| {
        let p = dir.log_writer.iter().find(|p| p.workload == *workload && p.jobs == *jobs)?;
        let redo = format!("{:.1} KiB", p.redo_bytes_per_tx / 1024.0);
        let durable = if p.wait { "yes" } else { "no wait" };
        let key = vec![p.workload.clone(), redo, durable.to_owned(), jobs.to_string()];
        Some((key, vec![number(p.tps, 0), number(redo_mib_per_s(p), 1), duration_ns(p.latency_ns_mean)]))
    })
}

/// Head and rows: for each of `keys` the columns `fixed`, as the first directory that knows it has them, then `shown` of each
/// directory. No head without rows.
fn side_by_side<K>(
    report: &ProbeReport,
    fixed: &[&str],
    shown: &[&str],
    keys: &[K],
    cells: impl Fn(&ProbedDir, &K) -> Option<(Vec<String>, Vec<String>)>,
) -> Vec<Vec<String>> {
    let alone = report.dirs.len() == 1;
    let named = move |i: usize| move |c: &&str| if alone { (*c).to_owned() } else { format!("{} {c}", letter(i)) };
    let head = fixed.iter().map(|c| (*c).to_owned());
    let head = head.chain((0..report.dirs.len()).flat_map(|i| shown.iter().map(named(i)))).collect();
    let row = |key: &K| {
        let of_dirs: Vec<_> = report.dirs.iter().map(|dir| cells(dir, key)).collect();
        let first = of_dirs.iter().flatten().next().map(|(key, _)| key.clone()).unwrap_or_default();
        let none = || vec![NONE.to_owned(); shown.len()];
        first
            .into_iter()
            .chain(of_dirs.into_iter().flat_map(|of_dir| of_dir.map_or_else(none, |(_, cells)| cells)))
            .collect()
    };
    if keys.is_empty() { Vec::new() } else { std::iter::once(head).chain(keys.iter().map(row)).collect() }
}

/// Redo per second, MiB/s.
fn redo_mib_per_s(point: &LogWriterPoint) -> f64 {
    point.tps * point.redo_bytes_per_tx / 1048576.0
}

fn cell(r: &ProbeRow, column: &str) -> String {
    let maybe = |v: Option<u64>| v.map_or(NONE.to_owned(), |v| duration_ns(v as f64));
    match column {
        "per s" => number(r.per_s, if r.per_s < 100.0 { 1 } else { 0 }),
        "MiB/s" => number(r.mib_per_s, if r.mib_per_s < 100.0 { 1 } else { 0 }),
        "mean" => duration_ns(r.mean_ns),
        "p50" => duration_ns(r.p50_ns as f64),
        "p99" => maybe(r.p99_ns),
        "p99.9" => maybe(r.p999_ns),
        "max" => duration_ns(r.max_ns as f64),
        "CPU each" => duration_ns(r.cpu_ns_per_op),
        "samples" => number(r.samples as f64, 0),
        _ => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, jobs: u32, tps: f64, wait: bool) -> LogWriterPoint {
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

    /// A report of directories with these points.
    fn report(dirs: Vec<Vec<LogWriterPoint>>) -> ProbeReport {
        let dir = |points: Vec<LogWriterPoint>| {
            serde_json::json!({
                "dir": "/log", "storage": loadline_model::machine::Storage::default(), "kind": "local", "st_dev": 1,
                "engine": "threads", "direct": true, "file_bytes": 16 << 20, "window_s": 1.0, "rounds": 1,
                "compressibility": 0.0, "dedup": 0.0, "notes": [], "rows": [], "absent": [], "log_writer": points,
            })
        };
        let dirs = dirs.into_iter().map(|points| serde_json::from_value(dir(points)).unwrap()).collect();
        let (loadline, at, machine) = (String::new(), String::new(), Default::default());
        ProbeReport { version: loadline_model::probe::VERSION, loadline, at, machine, dirs }
    }

    #[test]
    fn commits_of_each_directory_stand_side_by_side() {
        let table = |dirs| commits(&report(dirs));
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

    #[test]
    fn commits_of_the_log_writer_are_rows_of_the_csv() {
        let csv = csv(&report(vec![vec![point("LGWR-LAT1", 1, 1000.0, true), point("LGWR-THR", 8, 20_000.0, false)]]));
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let [head, lat1, thr] = &lines[..] else { panic!("{csv}") };
        for (name, figures) in [
            ("dir", ["/log", "/log"]),
            ("engine", ["log-writer"; 2]),
            ("operation", ["log-writer-lgwr-lat1", "log-writer-lgwr-thr"]),
            ("size_bytes", ["1536"; 2]),
            ("depth", ["1", "8"]),
            ("per_s", ["1000.000", "20000.000"]),
            ("mib_per_s", ["1.465", "29.297"]),
            ("mean_ns", ["1000000", "400000"]),
            ("max_ns", [""; 2]),
        ] {
            let at = head.iter().position(|column| *column == name).unwrap();
            assert_eq!([lat1[at], thr[at]], figures, "{name}");
        }
        assert!(lines.iter().all(|line| line.len() == head.len()), "{csv}");
    }
}
