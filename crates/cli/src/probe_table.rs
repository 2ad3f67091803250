//! The tables of `loadline probe`.

use std::fmt::Write as _;

use loadline_model::LogWriterPoint;
use loadline_model::format::{bytes, duration_ns, number};
use loadline_model::probe::{Operation, ProbeReport, ProbeRow, ProbedDir};

use crate::listing::Listing;
use crate::probe_log_writer;

/// What one directory shows of a row, if it stands alone.
const ALONE: [&str; 9] = ["per s", "MiB/s", "mean", "p50", "p99", "p99.9", "max", "CPU each", "samples"];
/// And if it stands beside others.
const BESIDE: [&str; 4] = ["per s", "MiB/s", "mean", "p99"];
/// What is not there.
const NONE: &str = "–";

/// One table an operation, the directories side by side.
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
    for table in tables(report) {
        let _ = writeln!(out, "\n{}", table.operation.title());
        for reason in &table.absent {
            let _ = writeln!(out, "  {NONE} {reason}");
        }
        let Some(head) = table.rows.first() else { continue };
        let widths = widths_of(&table.rows, head.len());
        aligned(&mut out, &table.rows, &widths);
    }
    let log_writer = probe_log_writer::rows(report, letter);
    if let Some(head) = log_writer.first() {
        let _ = writeln!(out, "\n{}", probe_log_writer::TITLE);
        aligned(&mut out, &log_writer, &widths_of(&log_writer, head.len()));
    }
    out
}

fn widths_of(rows: &[Vec<String>], columns: usize) -> Vec<usize> {
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    (0..columns).map(width).collect()
}

fn aligned(out: &mut String, rows: &[Vec<String>], widths: &[usize]) {
    for row in rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(c, w)| format!("{c:>w$}")).collect();
        let _ = writeln!(out, "  {}", cells.join("  "));
    }
}

/// The same as Markdown.
pub(crate) fn markdown(report: &ProbeReport) -> String {
    let mut out = format!("# Device probe of {}, {}\n\n", report.machine.host, report.at);
    for (i, dir) in report.dirs.iter().enumerate() {
        let _ = writeln!(out, "- {}{}; {}; {}", label(report, i), place(dir), how(dir), device(dir).join("; "));
        for note in &dir.notes {
            let _ = writeln!(out, "  - {note}");
        }
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let body = |out: &mut String, rows: &[Vec<String>]| {
        for (i, row) in rows.iter().enumerate() {
            *out += &line(row);
            if i == 0 {
                *out += &line(&vec!["---:".to_owned(); row.len()]);
            }
        }
    };
    for table in tables(report) {
        let _ = writeln!(out, "\n## {}\n", table.operation.title());
        for reason in &table.absent {
            let _ = writeln!(out, "{NONE} {reason}\n");
        }
        body(&mut out, &table.rows);
    }
    let log_writer = probe_log_writer::rows(report, letter);
    if !log_writer.is_empty() {
        let _ = writeln!(out, "\n## {}\n", probe_log_writer::TITLE);
        body(&mut out, &log_writer);
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
            d.dir.clone(),
            d.kind.clone(),
            d.storage.filesystem.clone(),
            d.storage.device.clone().unwrap_or_default(),
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
    let commits = |d: &ProbedDir, p: &LogWriterPoint| {
        let mut cells = vec![
            d.dir.clone(),
            d.kind.clone(),
            d.storage.filesystem.clone(),
            d.storage.device.clone().unwrap_or_default(),
            "log-writer".to_owned(),
            probe_log_writer::operation(p),
            format!("{:.0}", p.redo_bytes_per_tx),
            p.jobs.to_string(),
            "false".to_owned(),
            format!("{:.3}", p.tps),
            format!("{:.3}", probe_log_writer::mib_per_s(p)),
            format!("{:.0}", p.latency_ns_mean),
        ];
        cells.resize(columns.len(), String::new());
        cells
    };
    let of = |d: &ProbedDir| -> Vec<Vec<String>> {
        d.rows.iter().map(|r| row(d, r)).chain(d.log_writer.iter().map(|p| commits(d, p))).collect()
    };
    let rows = report.dirs.iter().flat_map(of).collect();
    Listing { columns, rows }.csv()
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

/// One operation: a head, then a row per size and depth.
struct Table {
    operation: Operation,
    rows: Vec<Vec<String>>,
    absent: Vec<String>,
}

fn tables(report: &ProbeReport) -> Vec<Table> {
    Operation::ALL.into_iter().map(|operation| table(report, operation)).collect()
}

fn table(report: &ProbeReport, operation: Operation) -> Table {
    let mut keys: Vec<(u64, u32)> = report
        .dirs
        .iter()
        .flat_map(|d| d.rows.iter().filter(|r| r.operation == operation).map(|r| (r.size_bytes, r.depth)))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let alone = report.dirs.len() == 1;
    let shown: &[&str] = if alone { &ALONE } else { &BESIDE };
    let mut rows = Vec::new();
    if !keys.is_empty() {
        let mut head = vec!["size".to_owned(), "in flight".to_owned()];
        for i in 0..report.dirs.len() {
            head.extend(shown.iter().map(|c| if alone { (*c).to_owned() } else { format!("{} {c}", letter(i)) }));
        }
        rows.push(head);
    }
    for (size, depth) in keys {
        let mut cells = vec![size_text(size), depth.to_string()];
        for dir in &report.dirs {
            match dir.row(operation, size, depth) {
                Some(row) => cells.extend(shown.iter().map(|c| cell(row, c))),
                None => cells.extend(shown.iter().map(|_| NONE.to_owned())),
            }
        }
        rows.push(cells);
    }
    let absent = report.dirs.iter().enumerate().flat_map(|(i, d)| {
        let of = d.absent.iter().filter(move |a| a.operation == operation);
        of.map(move |a| if alone { a.reason.clone() } else { format!("{}: {}", letter(i), a.reason) })
    });
    Table { operation, rows, absent: absent.collect() }
}

/// Sizes here are powers of two.
fn size_text(size: u64) -> String {
    bytes(size as f64).replace(".0 ", " ")
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
    use crate::probe_log_writer::tests::{point, report};

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
