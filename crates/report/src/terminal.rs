//! The tables that `loadline run` ends with: every test, then a line a workload.

use loadline_analyze::sweep::{LATENCY, RESPONSE, THROUGHPUT};
use loadline_analyze::{bound_of_sweep, shape, sweeps};
use loadline_model::column::{Cell, column};
use loadline_model::format::ABSENT;
use loadline_model::{Column, Table, TestRecord};

use crate::content::{figure, name, sentence, stop, test_cell};
use crate::doc::{Cell as Shown, Head, Notes};
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
/// Figures at the peak beside throughput and latency, with how they are headed; those that no workload has are
/// not shown.
const MORE: [(&str, &str, &str); 2] = [("commit_time_ns_p99", "Commit p99", "ms"), ("redo_mib_per_s", "Redo", "MiB/s")];
/// Why a workload has no peak.
const NO_VALID: &str = "no valid test has a throughput";
/// Prose on a terminal of unknown width.
const PROSE: usize = 100;

/// `records` as tables for a terminal that is `width` characters wide (`None`: as wide as needed),
/// one a platform and workload, then a line a workload: its peak, how far that is from the limit, and
/// what bounds it. Columns that do not fit are left out and named below; invalid tests are marked ✗
/// with their reason below, and every reason for a missing figure stands once. A scan of commit time
/// over redo has its shape in words instead of a table.
#[must_use]
pub fn terminal_table(records: &[TestRecord], width: Option<usize>) -> String {
    if records.is_empty() {
        return "No test was finished.\n".to_owned();
    }
    let swept: Vec<&TestRecord> = records.iter().filter(|r| r.sizes.is_empty()).collect();
    let all = if swept.is_empty() { Vec::new() } else { usual(&swept) };
    let columns = fitting(&all, &swept, width);
    let prose = width.unwrap_or(PROSE).clamp(40, PROSE);
    let head: Vec<Head> = columns.iter().map(|c| Head::of(c)).collect();
    let mut notes = Notes::default();
    let mut out = String::new();
    for group in groups(records) {
        let (scans, tests): (Vec<&TestRecord>, Vec<&TestRecord>) = group.iter().partition(|r| !r.sizes.is_empty());
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
            let said = if scan.valid { sentence(&shape(&scan.sizes)) } else { "no shape is told".to_owned() };
            let cross = if scan.valid { "" } else { "✗" };
            out.push_str(&wrapped(&format!("Test {}{cross}: {said}.", scan.test), "", prose));
        }
    }
    out.push_str(&workloads(records, &mut notes, width.unwrap_or(usize::MAX), prose));
    out.push_str(&below(records, &all, &columns, notes, prose));
    out
}

/// The platform's key figures: a line a workload that was swept, and what bounds it in words. A workload
/// without a valid test has its line too, with the reason.
fn workloads(records: &[TestRecord], notes: &mut Notes, available: usize, prose: usize) -> String {
    let sweeps = sweeps(records);
    let (mut rows, mut words) = (Vec::new(), String::new());
    let has = |id: &str| sweeps.iter().any(|s| s.peak().is_some_and(|p| p.figure(id).is_some()));
    let more: Vec<(&str, Head)> = MORE.iter().filter(|m| has(m.0)).map(|m| (m.0, Head::number(m.1, m.2))).collect();
    for sweep in &sweeps {
        let own: Vec<TestRecord> =
            records.iter().filter(|r| r.run == sweep.run && r.platform == sweep.platform).cloned().collect();
        let alike = sweeps.iter().filter(|s| s.workload == sweep.workload && s.run == sweep.run).count();
        let mut name = name(sweep, alike > 1);
        if sweeps.iter().any(|s| s.run != sweep.run) {
            name = format!("{name} on {} (run {})", sweep.platform, sweep.run);
        }
        let Some(peak) = sweep.peak() else {
            let none = format!("{ABSENT}{}", superscript(&notes.mark(NO_VALID, "")));
            rows.push(std::iter::once(clean(&name)).chain((0..5 + more.len()).map(|_| none.clone())).collect());
            continue;
        };
        let shown = |cell: Shown| format!("{}{}", clean(&cell.text), superscript(&cell.mark));
        let mut figure = |id: &str| shown(figure(&own, peak, id, notes));
        let latency = if peak.figure(RESPONSE).is_some() { RESPONSE } else { LATENCY };
        let mut row = vec![clean(&name), figure(THROUGHPUT), peak.jobs.to_string(), figure(latency)];
        row.extend(more.iter().map(|(id, _)| figure(id)));
        row.push(figure("limit_share_pct"));
        let bound = bound_of_sweep(sweep, &own);
        row.push(bound.as_ref().map_or("not told", |b| b.by.name()).to_owned());
        rows.push(row);
        if let Some(b) = bound {
            let sentence = stop(&b.sentence()).to_owned();
            let said = match sentence.strip_prefix("not told: ") {
                Some(because) => format!("What bounds {name} is not told: {because}."),
                None => format!("{name} is bounded by {sentence}."),
            };
            words.push_str(&wrapped(&said, "", prose));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = vec![
        Head::text("Workload"),
        Head::number("Peak", "tps"),
        Head::number("at", "jobs"),
        Head::number("Latency", "ms"),
    ];
    head.extend(more.into_iter().map(|(_, head)| head));
    head.extend([Head::number("Of limit", "%"), Head::text("Bounded by")]);
    let mut table = grid(&head, &rows);
    if table.lines().any(|l| l.chars().count() > available) {
        // No column can be left out; as sentences they fit any width.
        let says = |row: &Vec<String>| {
            let parts = head.iter().zip(row).skip(1).map(|(h, cell)| match h.unit.as_str() {
                "" => format!("{} {cell}", h.title.to_lowercase()),
                unit => format!("{} {cell} {unit}", h.title.to_lowercase()),
            });
            wrapped(
                &format!("{}: {}.", row.first().map_or("", String::as_str), parts.collect::<Vec<_>>().join(", ")),
                "",
                prose,
            )
        };
        table = rows.iter().map(says).collect();
    }
    let mut platforms: Vec<&str> = sweeps.iter().map(|s| s.platform.as_str()).collect();
    platforms.dedup();
    let words = if words.is_empty() { words } else { format!("\n{words}") };
    let title = wrapped(&format!("Key figures of {}", clean(&platforms.join(", "))), "", available);
    format!("\n{title}{table}{words}")
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
fn usual(records: &[&TestRecord]) -> Vec<&'static Column> {
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
