//! Results of `loadline probe`: a table for each operation and one of the reference log writer, the directories side by side.

use loadline_model::LogWriterPoint;
use loadline_model::probe::{Operation, ProbeReport, ProbedDir};
use minijinja::context;
use serde_json::{Value, json};

use crate::doc::{Block, Document, Section, Table};
use crate::listing::Listing;
use crate::spec::TableSpec;
use crate::templates::{items, stored};
use crate::words::{grouped, letters};
use crate::{Format, ReportError, templates};

/// The report in `format`.
pub fn render_probe(report: &ProbeReport, format: Format) -> Result<String, ReportError> {
    match format {
        Format::Csv => Ok(csv(report)),
        Format::Json => Ok(serde_json::to_string_pretty(report)? + "\n"),
        Format::Html | Format::Markdown | Format::Text => templates::page(&document(report), format, false),
    }
}

fn document(report: &ProbeReport) -> Document {
    let about = |(i, d)| items("probed-directory", context! { label => label(report, i), d => stored(d) });
    let said = report.dirs.iter().enumerate().flat_map(about);
    let mut sections = vec![Section::new("directories", "Directories", Block::list(said).into_iter().collect())];
    sections.extend(Operation::ALL.into_iter().map(|operation| {
        let absent = report.dirs.iter().enumerate().flat_map(|(i, dir)| {
            let absent = dir.absent.iter().filter(move |absent| absent.operation == operation);
            absent.map(move |absent| format!("{}{}", label(report, i), absent.reason))
        });
        let blocks = Block::list(absent).into_iter().chain(Block::table(of_operation(report, operation)));
        Section::new(operation.id(), operation.title(), blocks.collect())
    }));
    let commits = Block::table(of_log_writer(report)).into_iter().collect();
    sections.push(Section::new("log-writer", "Reference log writer: commits by jobs", commits));
    sections.retain(|section| !section.blocks.is_empty());
    let title = format!("Device probe of {}", report.machine.host);
    Document { title, subtitle: report.at.clone(), sections, ..Document::default() }
}

/// `A: `, `B: `, … where there are several directories.
fn label(report: &ProbeReport, i: usize) -> String {
    if report.dirs.len() > 1 { format!("{}: ", letters(i)) } else { String::new() }
}

fn of_operation(report: &ProbeReport, operation: Operation) -> Table {
    let rows = report.dirs.iter().flat_map(|dir| &dir.rows).filter(|row| row.operation == operation);
    let mut keys: Vec<(u64, u32)> = rows.map(|row| (row.size_bytes, row.depth)).collect();
    keys.sort_unstable();
    keys.dedup();
    let row = |(size, depth): (u64, u32)| {
        context! { size, depth, dirs => each(report, |dir| dir.row(operation, size, depth).map(stored)) }
    };
    TableSpec::new("figures", keys).columns("table of an operation", row).build()
}

fn of_log_writer(report: &ProbeReport) -> Table {
    let points = report.dirs.iter().flat_map(|dir| &dir.log_writer);
    let first = grouped(points, |p| (p.workload.as_str(), p.jobs)).into_iter().map(|(_, of)| of[0]);
    let row = |point: &LogWriterPoint| {
        let is_like = |p: &&LogWriterPoint| (&p.workload, p.jobs) == (&point.workload, point.jobs);
        let dirs = each(report, |dir| dir.log_writer.iter().find(is_like).map(of_commits));
        context! { point => stored(point), dirs }
    };
    TableSpec::new("figures", first).columns("table of the log writer", row).build()
}

/// The letter of each directory, where there are several, and what `of` finds in it.
fn each(report: &ProbeReport, of: impl Fn(&ProbedDir) -> Option<Value>) -> Vec<(Option<String>, Option<Value>)> {
    let several = report.dirs.len() > 1;
    report.dirs.iter().enumerate().map(|(i, dir)| (several.then(|| letters(i)), of(dir))).collect()
}

/// One row per directory, operation, size and depth, and of the log writer per workload and number of jobs, which has no file of the probe's.
fn csv(report: &ProbeReport) -> String {
    let of_dir = |d: &ProbedDir| {
        let dir = stored(d);
        let measured = d.rows.iter().map(|row| context! { dir, file => dir, row => stored(row) });
        let commits = d.log_writer.iter().map(|point| context! { dir, file => (), row => of_commits(point) });
        measured.chain(commits).collect::<Vec<_>>()
    };
    Listing::new("probe", report.dirs.iter().flat_map(of_dir)).csv()
}

fn of_commits(point: &LogWriterPoint) -> Value {
    json!({
        "engine": "log-writer",
        "operation": format!("log-writer-{}", point.workload.to_ascii_lowercase()),
        "size_bytes": point.redo_bytes_per_tx.round(),
        "depth": point.jobs,
        "direct": false,
        "per_s": point.tps,
        "mib_per_s": point.tps * point.redo_bytes_per_tx / 1048576.0,
        "mean_ns": point.latency_ns_mean,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, jobs: u32, tps: f64, wait: bool) -> Value {
        json!({"of": "O_DIRECT", "workload": workload, "mix": false, "wait": wait, "redo_bytes_per_tx": 1536, "jobs": jobs,
            "tps": tps, "latency_ns_mean": f64::from(jobs) / tps * 1e9})
    }

    /// A report of directories with these points.
    fn report(dirs: &[&[Value]]) -> ProbeReport {
        let dir = |points: &&[Value]| {
            json!({
                "dir": "/log", "storage": loadline_model::machine::Storage::default(), "kind": "local", "st_dev": 1,
                "engine": "threads", "direct": true, "file_bytes": 16 << 20, "window_s": 1.0, "rounds": 1,
                "compressibility": 0.0, "dedup": 0.0, "notes": [], "rows": [], "absent": [], "log_writer": points,
            })
        };
        let dirs = dirs.iter().map(dir).map(|dir| serde_json::from_value(dir).unwrap()).collect();
        let (loadline, at, machine) = (String::new(), String::new(), Default::default());
        ProbeReport { version: loadline_model::probe::VERSION, loadline, at, machine, dirs }
    }

    #[test]
    fn commits_of_each_directory_stand_side_by_side() {
        let said = |dirs: &[&[Value]]| render_probe(&report(dirs), Format::Markdown).unwrap().replace('\u{a0}', " ");
        let (one, two) = (point("LGWR-LAT1", 1, 1000.0, true), point("LGWR-THR", 8, 20_000.0, false));
        assert!(!said(&[&[]]).contains("Reference log writer"), "not measured");
        let alone = said(&[std::slice::from_ref(&one)]);
        assert!(alone.contains("| workload | redo | durable | jobs | per s | MiB/s | mean |"), "{alone}");
        assert!(alone.contains("| LGWR-LAT1 | 1.5 KiB | yes | 1 | 1,000 | 1.5 | 1.00 ms |"), "{alone}");
        let both = said(&[std::slice::from_ref(&one), &[one.clone(), two]]);
        assert!(both.contains("| jobs | A per s | A MiB/s | A mean | B per s | B MiB/s | B mean |"), "{both}");
        assert!(both.contains("| LGWR-THR | 1.5 KiB | no wait | 8 | – | – | – | 20,000 | 29.3 | 400.0 µs |"), "{both}");
    }

    #[test]
    fn commits_of_the_log_writer_are_rows_of_the_csv() {
        let csv = csv(&report(&[&[point("LGWR-LAT1", 1, 1000.0, true), point("LGWR-THR", 8, 20_000.0, false)]]));
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let [head, lat1, thr] = &lines[..] else { panic!("{csv}") };
        for (name, figures) in [
            ("dir", ["/log", "/log"]),
            ("engine", ["log-writer"; 2]),
            ("operation", ["log-writer-lgwr-lat1", "log-writer-lgwr-thr"]),
            ("size_bytes", ["1536"; 2]),
            ("depth", ["1", "8"]),
            ("per_s", ["1000", "20000"]),
            ("mib_per_s", ["1.46484375", "29.296875"]),
            ("mean_ns", ["1000000", "400000"]),
            ("max_ns", [""; 2]),
        ] {
            let at = head.iter().position(|column| *column == name).unwrap();
            assert_eq!([lat1[at], thr[at]], figures, "{name}");
        }
        assert!(lines.iter().all(|line| line.len() == head.len()), "{csv}");
    }
}
