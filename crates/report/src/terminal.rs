//! The table that `loadline run` ends with.

use loadline_model::column::{Cell, column};
use loadline_model::{Column, Table, TestRecord};

use crate::content::{stop, test_cell};
use crate::doc::{Head, Notes};
use crate::text::{clean, column_width, grid, superscript, total, wrapped};

/// What a narrow terminal shows, the most telling first. The rest follows in the table's order.
const TELLING: [&str; 15] = [
    "test",
    "jobs",
    "commit_throughput_tps",
    "commit_latency_ms",
    "commit_time_ns_p99",
    "redo_mib_per_s",
    "errors",
    "redo_kib_per_tx",
    "log_file_sync_ms",
    "cpu_busy_pct",
    "commit_time_ns_p50",
    "elapsed_s",
    "commit_time_ns_max",
    "redo_sync_writes_per_s",
    "redo_writes_per_s",
];
/// Never left out, however narrow the terminal is.
const NEVER_LEFT_OUT: usize = 3;
/// Prose on a terminal of unknown width.
const PROSE: usize = 100;

/// `records` as tables for a terminal that is `width` characters wide (`None`: as wide as needed),
/// one a platform and workload. Columns that do not fit are left out and named below; invalid
/// tests are marked ✗ with their reason below, and every reason for a missing figure stands once.
#[must_use]
pub fn terminal_table(records: &[TestRecord], width: Option<usize>) -> String {
    if records.is_empty() {
        return "No test was finished.\n".to_owned();
    }
    let all = usual(records);
    let columns = fitting(&all, records, width);
    let head: Vec<Head> = columns.iter().map(|c| Head::of(c)).collect();
    let mut notes = Notes::default();
    let mut out = String::new();
    for group in groups(records) {
        let rows: Vec<Vec<String>> =
            group.iter().map(|r| columns.iter().map(|c| shown(r, c, &mut notes)).collect()).collect();
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&wrapped(&title(&group), "", width.unwrap_or(usize::MAX)));
        out.push_str(&grid(&head, &rows));
    }
    let prose = width.unwrap_or(PROSE).clamp(40, PROSE);
    out.push_str(&below(records, &all, &columns, notes, prose));
    out
}

/// Tests of one platform, run, workload and driver, in the order in which they first appear.
fn groups(records: &[TestRecord]) -> Vec<Vec<&TestRecord>> {
    let same = |a: &TestRecord, b: &TestRecord| {
        a.platform == b.platform && a.run == b.run && a.workload == b.workload && a.driver == b.driver
    };
    let mut out: Vec<Vec<&TestRecord>> = Vec::new();
    for record in records {
        match out.iter_mut().find(|g| g.first().is_some_and(|first| same(first, record))) {
            Some(group) => group.push(record),
            None => out.push(vec![record]),
        }
    }
    out
}

fn title(group: &[&TestRecord]) -> String {
    group
        .first()
        .map_or_else(String::new, |r| format!("{} – {} ({} driver, run {})", r.platform, r.workload, r.driver, r.run))
}

/// The table's columns; run and workload stand above it.
fn usual(records: &[TestRecord]) -> Vec<&'static Column> {
    let group = records.first().map_or("", |r| r.group.as_str());
    let mut out: Vec<&'static Column> =
        Table::of(group).shown_columns().filter(|c| !["run", "workload"].contains(&c.id)).collect();
    if records.iter().any(|r| r.repetition > 1)
        && let Some(c) = column("repetition")
    {
        let at = out.iter().position(|c| c.id == "test").map_or(0, |p| p + 1);
        out.insert(at, c);
    }
    out
}

/// Those of `all` that fit `width`: the most telling ones, in the table's order.
fn fitting(all: &[&'static Column], records: &[TestRecord], available: Option<usize>) -> Vec<&'static Column> {
    let Some(available) = available else { return all.to_vec() };
    let widths: Vec<usize> = all
        .iter()
        .map(|c| {
            let mut notes = Notes::default();
            let cells = records.iter().map(|r| shown(r, c, &mut notes).chars().count() + 1).max().unwrap_or(0);
            column_width(&Head::of(c), cells)
        })
        .collect();
    // A column without a single figure tells least, whatever it is called.
    let empty = |c: &Column| records.iter().all(|r| matches!(c.cell(r), Cell::Absent));
    let rank = |c: &Column| TELLING.iter().position(|t| *t == c.id).filter(|n| *n < NEVER_LEFT_OUT || !empty(c));
    let mut order: Vec<(usize, usize)> = all
        .iter()
        .enumerate()
        .map(|(index, c)| (rank(c).unwrap_or(TELLING.len() + usize::from(empty(c))), index))
        .collect();
    order.sort_unstable();
    let mut kept: Vec<usize> = Vec::new();
    let mut full = false;
    for (rank, index) in order {
        let with: Vec<usize> = kept.iter().chain([&index]).filter_map(|i| widths.get(*i).copied()).collect();
        let fits = total(&with) <= available;
        // A less telling column does not slip into the room that a telling one was too wide for.
        if rank < NEVER_LEFT_OUT || (fits && !(full && rank >= TELLING.len())) {
            kept.push(index);
        }
        full |= !fits;
    }
    kept.sort_unstable();
    kept.into_iter().filter_map(|i| all.get(i).copied()).collect()
}

fn shown(record: &TestRecord, column: &Column, notes: &mut Notes) -> String {
    let cell = test_cell(record, column, notes);
    let cross = match (column.id, record.valid) {
        ("test", false) => "✗",
        _ => "",
    };
    format!("{}{}{cross}", clean(&cell.text), superscript(&cell.mark))
}

/// Invalid tests, reasons for missing figures, and what was left out.
fn below(records: &[TestRecord], all: &[&Column], columns: &[&Column], notes: Notes, prose: usize) -> String {
    let mut out = String::new();
    let several_runs = records.iter().any(|r| records.first().is_some_and(|f| f.run != r.run));
    for r in records {
        let run = if several_runs { format!(" of run {}", r.run) } else { String::new() };
        if !r.valid {
            let reason = r.invalid_reason.as_deref().unwrap_or("the record gives no reason");
            out.push_str(&wrapped(&format!("✗ Test {}{run} is invalid: {}.", r.test, stop(reason)), "", prose));
        }
        if let Some(forced) = &r.forced {
            out.push_str(&wrapped(&format!("! Test {}{run} was forced: {}.", r.test, stop(forced)), "", prose));
        }
    }
    for note in notes.finish() {
        out.push_str(&wrapped(&format!("{} {}", superscript(&note.mark), note.text), "", prose));
    }
    let left_out: Vec<String> =
        all.iter().filter(|c| !columns.iter().any(|k| k.id == c.id)).map(|c| c.heading()).collect();
    if !left_out.is_empty() {
        let run = records.first().map_or("RUN", |r| r.run.as_str());
        let text = format!(
            "Left out for want of width: {}. All columns: `loadline report {run} --format csv --output -`, or a wider \
             terminal.",
            left_out.join(", ")
        );
        out.push_str(&wrapped(&text, "", prose));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
