//! Terminal output of `loadline run`: tables of tests, and the page of key figures.

use loadline_analyze::shape;
use loadline_model::column::{self, Cell, column};
use loadline_model::disturbance::why_invalid_in_common;
use loadline_model::{Column, TestRecord};

use crate::content::{Hidden, default_columns, sentence, stop, test_cell};
use crate::doc::{Head, Notes};
use crate::text::{clean, column_width, grid, superscript, total, wrapped};
use crate::words::spans;

mod line;
mod page;

pub use line::{done_line, test_line};
pub use page::end_page;

/// Columns of log-writer tests by importance, for narrow terminals. Others follow in the table's order.
const TELLING: [&Column; 15] = [
    column::TEST,
    column::JOBS,
    column::COMMIT_THROUGHPUT_TPS,
    column::COMMIT_LATENCY_MS,
    column::COMMIT_TIME_NS_P99,
    column::REDO_MIB_PER_S,
    column::ERRORS,
    column::REDO_KIB_PER_TX,
    column::LOG_FILE_SYNC_MS,
    column::CPU_BUSY_PCT,
    column::COMMIT_TIME_NS_P50,
    column::ELAPSED_S,
    column::COMMIT_TIME_NS_MAX,
    column::REDO_SYNC_WRITES_PER_S,
    column::REDO_WRITES_PER_S,
];
/// The same for other groups, after their KPIs.
const TELLING_BESIDES: [&Column; 6] = [
    column::COMMIT_LATENCY_MS,
    column::TRANSACTION_TIME_NS_MEAN,
    column::TRANSACTION_TIME_NS_P99,
    column::ERRORS,
    column::CPU_BUSY_PCT,
    column::ELAPSED_S,
];
/// Columns that are never left out.
const NEVER_LEFT_OUT: usize = 3;
/// Width of text on a terminal of unknown width.
const PROSE: usize = 100;

/// `records` as tables for a terminal `width` characters wide (`None`: unlimited), one per platform and workload. Columns
/// that do not fit are named below the tables, as are the reasons for invalid tests (marked ✗) and missing figures. A scan
/// of commit time over redo is described in words.
#[must_use]
pub fn terminal_table(records: &[TestRecord], width: Option<usize>) -> String {
    if records.is_empty() {
        return "No test was completed.\n".to_owned();
    }
    let prose = width.unwrap_or(PROSE).clamp(40, PROSE);
    let (mut notes, mut hidden) = (Notes::default(), Hidden::default());
    let mut left_out: Vec<String> = Vec::new();
    let mut out = String::new();
    for group in groups(records) {
        let (scans, tests): (Vec<&TestRecord>, Vec<&TestRecord>) = group.iter().partition(|r| !r.sizes.is_empty());
        let all = if tests.is_empty() { Vec::new() } else { default_columns(&tests, &mut hidden) };
        let columns = fitting(&all, &tests, width);
        for c in all.iter().filter(|c| !columns.iter().any(|k| k.id == c.id)) {
            if !left_out.contains(&c.heading()) {
                left_out.push(c.heading());
            }
        }
        let head: Vec<Head> = columns.iter().map(|c| Head::of(c)).collect();
        let rows: Vec<Vec<String>> =
            tests.iter().map(|r| columns.iter().map(|c| shown(r, c, &mut notes)).collect()).collect();
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&wrapped(&title(&group), "", width.unwrap_or(usize::MAX)));
        if !rows.is_empty() {
            out.push_str(&grid(&head, &rows));
        }
        for scan in scans {
            let said = if scan.valid { sentence(&shape(&scan.sizes)) } else { "no shape is given".to_owned() };
            let cross = if scan.valid { "" } else { "✗" };
            out.push_str(&wrapped(&format!("Test {}{cross}: {said}.", scan.test), "", prose));
        }
    }
    out.push_str(&below(records, &left_out, (notes, hidden), prose));
    out
}

/// Tests by platform, run, workload and driver, in order of first appearance.
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

/// The most important columns of `all` that fit, in the table's order.
fn fitting(all: &[&'static Column], records: &[&TestRecord], available: Option<usize>) -> Vec<&'static Column> {
    let Some(available) = available else { return all.to_vec() };
    let widths: Vec<usize> = all
        .iter()
        .map(|c| {
            let mut notes = Notes::default();
            let cells = records.iter().map(|r| shown(r, c, &mut notes).chars().count() + 1).max().unwrap_or(0);
            column_width(&Head::of(c), cells)
        })
        .collect();
    // Columns without any figure come last.
    let empty = |c: &Column| records.iter().all(|r| matches!(c.cell(r), Cell::Absent));
    let telling = by_importance(records);
    let rank = |c: &Column| telling.iter().position(|t| *t == c).filter(|n| *n < NEVER_LEFT_OUT || !empty(c));
    let mut order: Vec<(usize, usize)> = all
        .iter()
        .enumerate()
        .map(|(index, c)| (rank(c).unwrap_or(telling.len() + usize::from(empty(c))), index))
        .collect();
    order.sort_unstable();
    let mut kept: Vec<usize> = Vec::new();
    let mut full = false;
    for (rank, index) in order {
        let with: Vec<usize> = kept.iter().chain([&index]).filter_map(|i| widths.get(*i).copied()).collect();
        let fits = total(&with) <= available;
        // No less important column takes the place of one that was too wide.
        if rank < NEVER_LEFT_OUT || (fits && !(full && rank >= telling.len())) {
            kept.push(index);
        }
        full |= !fits;
    }
    kept.sort_unstable();
    kept.into_iter().filter_map(|i| all.get(i).copied()).collect()
}

/// Columns by importance for `records`: identity of the test, then the KPIs.
fn by_importance(records: &[&TestRecord]) -> Vec<&'static Column> {
    if records.iter().any(|r| r.group == "log-writer" || r.kpis.is_empty()) {
        return TELLING.to_vec();
    }
    let swept = records.iter().filter_map(|r| column(r.swept.as_deref()?));
    // The first KPIs of all workloads come before any second KPI.
    let most = records.iter().map(|r| r.kpis.len()).max().unwrap_or(0);
    let kpis = (0..most).flat_map(|n| records.iter().filter_map(move |r| column(r.kpis.get(n)?)));
    let mut out: Vec<&'static Column> = Vec::new();
    for telling in [column::TEST, column::JOBS].into_iter().chain(swept).chain(kpis).chain(TELLING_BESIDES) {
        if !out.contains(&telling) {
            out.push(telling);
        }
    }
    out
}

fn shown(record: &TestRecord, column: &Column, notes: &mut Notes) -> String {
    let cell = test_cell(record, column, notes);
    let cross = match (column == column::TEST, record.valid) {
        (true, false) => "✗",
        _ => "",
    };
    format!("{}{}{cross}", clean(&cell.text), superscript(&cell.mark))
}

/// Invalid tests, reasons for missing figures, and columns left out.
fn below(records: &[TestRecord], left_out: &[String], (notes, hidden): (Notes, Hidden), prose: usize) -> String {
    let mut out = String::new();
    let several_runs = records.iter().any(|r| records.first().is_some_and(|f| f.run != r.run));
    let mut invalid: Vec<(&str, String, Vec<u32>)> = Vec::new();
    for r in records.iter().filter(|r| !r.valid) {
        let reason = why_invalid_in_common(r);
        match invalid.iter_mut().find(|(run, known, _)| *run == r.run && *known == reason) {
            Some((.., tests)) => tests.push(r.test),
            None => invalid.push((&r.run, reason, vec![r.test])),
        }
    }
    let of = |run: &str| if several_runs { format!(" of run {run}") } else { String::new() };
    for (run, reason, tests) in invalid {
        let (word, is) = if tests.len() == 1 { ("Test", "is") } else { ("Tests", "are") };
        out.push_str(&wrapped(
            &format!("✗ {word} {}{} {is} invalid: {}.", spans(&tests), of(run), stop(&reason)),
            "",
            prose,
        ));
    }
    for r in records {
        if !r.forced.is_empty() {
            out.push_str(&wrapped(
                &format!("! Test {}{} was forced: {}.", r.test, of(&r.run), stop(&r.forced.to_string())),
                "",
                prose,
            ));
        }
    }
    for note in notes.finish() {
        out.push_str(&wrapped(&format!("{} {}", superscript(&note.mark), note.text), "", prose));
    }
    for sentence in hidden.sentences() {
        out.push_str(&wrapped(&format!("Not shown: {sentence}"), "", prose));
    }
    if !left_out.is_empty() {
        let run = records.first().map_or("RUN", |r| r.run.as_str());
        let text = format!(
            "Left out, as the terminal is too narrow: {}. All columns: `loadline report {run} --format csv --output -`, or a wider \
             terminal.",
            left_out.join(", ")
        );
        out.push_str(&wrapped(&text, "", prose));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
