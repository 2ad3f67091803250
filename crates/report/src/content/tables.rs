//! The test tables: one per platform and workload, as in published studies.

use loadline_analyze::Sweep;
use loadline_analyze::kpi::LATENCY;
use loadline_model::column::{self, Cell as Value, column};
use loadline_model::disturbance::{allowed, why_invalid};
use loadline_model::{Column, Table as Columns, TestRecord};

use super::figure::figure;
use super::{kept, noted, stop};
use crate::columns::is_numeric;
use crate::doc::{Block, Cell, Head, Notes, Row, Table};
use crate::platform_run::PlatformRun;
use crate::words::{name, place, swept_title, title_of, without_numbers};

/// The group whose tables keep columns without figures: they have the layout of published studies.
const ALL_COLUMNS_GROUP: &str = "log-writer";

/// Columns left out of tables, as no test has a figure, with the reasons.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// Reason, headings of columns, workloads.
    reasons: Vec<(String, Vec<String>, Vec<String>)>,
}

impl Hidden {
    pub(crate) fn add(&mut self, column: &Column, records: &[&TestRecord]) {
        for r in records {
            // Without a reason the workload does not have this figure.
            let Some(reason) = r.absent.get(column.id) else { continue };
            let same = without_numbers(reason);
            let index =
                self.reasons.iter().position(|(known, ..)| without_numbers(known) == same).unwrap_or_else(|| {
                    self.reasons.push((reason.clone(), Vec::new(), Vec::new()));
                    self.reasons.len() - 1
                });
            let Some((_, columns, workloads)) = self.reasons.get_mut(index) else { continue };
            for (list, item) in [(columns, column.heading()), (workloads, r.workload.clone())] {
                if !list.contains(&item) {
                    list.push(item);
                }
            }
        }
    }

    /// The reasons in sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let one = |(reason, columns, workloads): &(String, Vec<String>, Vec<String>)| {
            format!("{} ({}): {}.", columns.join(", "), workloads.join(", "), stop(reason))
        };
        self.reasons.iter().map(one).collect()
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let items = self.sentences();
        if items.is_empty() {
            return Vec::new();
        }
        let summary = format!("Columns not shown, as no test has a figure, with the reasons ({})", items.len());
        vec![Block::Details { summary, blocks: vec![Block::List { items }] }]
    }
}

/// The tables of a workload: its tests by platform, and means over repetitions.
pub(crate) fn of_workload(
    sides: &[PlatformRun<'_>],
    workload: &str,
    chosen: Option<&[&'static Column]>,
    hidden: &mut Hidden,
) -> Vec<Block> {
    let mut tables = Vec::new();
    for side in sides {
        let of_workload: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
        if !of_workload.is_empty() {
            let columns = chosen.map_or_else(|| default_columns(&of_workload, hidden), <[_]>::to_vec);
            tables.push(Block::Table(tests(side, workload, &of_workload, &columns)));
        }
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            tables.extend(means(side, sweep).map(Block::Table));
        }
    }
    tables
}

/// The default columns of `records`' group, without run and workload, which the caption names. Columns without any figure
/// go to `hidden`, except in [`ALL_COLUMNS_GROUP`].
pub(crate) fn default_columns(records: &[&TestRecord], hidden: &mut Hidden) -> Vec<&'static Column> {
    let group = records.first().map_or("", |r| r.group.as_str());
    let mut out: Vec<&'static Column> =
        Columns::of(group).shown().into_iter().filter(|c| ![column::RUN, column::WORKLOAD].contains(c)).collect();
    if group != ALL_COLUMNS_GROUP {
        out.retain(|c| {
            let empty = records.iter().all(|r| matches!(c.cell(r), Value::Absent));
            if empty {
                hidden.add(c, records);
            }
            !empty
        });
    }
    let mut add = |column: &'static Column, behind: &Column| {
        if !out.contains(&column) {
            let at = out.iter().position(|c| *c == behind).map_or(0, |p| p + 1);
            out.insert(at, column);
        }
    };
    if records.iter().any(|r| r.repetition > 1) {
        add(column::REPETITION, column::TEST);
    }
    if records.iter().any(|r| records.first().is_some_and(|f| f.driver != r.driver)) {
        add(column::DRIVER, column::TEST);
    }
    for over in records.iter().filter_map(|r| column(r.swept.as_deref()?)) {
        add(over, column::JOBS);
    }
    out
}

fn tests(side: &PlatformRun<'_>, workload: &str, records: &[&TestRecord], columns: &[&'static Column]) -> Table {
    let mut notes = Notes::default();
    // A line separates sweeps.
    let begins = |i: usize| i > 0 && records.get(i - 1).map(|r| &r.swept) != records.get(i).map(|r| &r.swept);
    let row = |(i, r): (usize, &&TestRecord)| {
        let row = test_row(r, columns, &mut notes);
        Row { first: begins(i) && row.remark.is_empty(), ..row }
    };
    let rows = records.iter().enumerate().map(row).collect();
    let drivers = records
        .first()
        .map(|r| format!(", {} driver", r.driver))
        .filter(|_| records.iter().all(|r| records.first().is_some_and(|f| f.driver == r.driver)));
    Table {
        caption: format!("{} – {workload}", side.label),
        sub: format!("run {}{}", side.run.manifest.run, drivers.unwrap_or_default()),
        class: "figures",
        head: columns.iter().map(|c| Head::of(c)).collect(),
        rows,
        notes: notes.finish(),
    }
}

fn test_row(record: &TestRecord, columns: &[&'static Column], notes: &mut Notes) -> Row {
    let mut remarks = Vec::new();
    if !record.valid {
        remarks.push(format!("Test {} is invalid: {}.", record.test, stop(&why_invalid(record))));
    }
    // Otherwise the reason says so.
    if let Some(disturbed) = record.disturbed_by.as_ref().filter(|_| record.valid) {
        let kept = if allowed(record).is_empty() { "" } else { " (kept by --allow-disturbed)" };
        remarks.push(format!("Test {} was disturbed: {disturbed}{kept}.", record.test));
    }
    if !record.forced.is_empty() {
        remarks.push(format!("Test {} was forced: {}.", record.test, stop(&record.forced.to_string())));
    }
    remarks.extend(noted::of_test(record));
    Row {
        cells: columns.iter().map(|c| cell(record, c, notes)).collect(),
        invalid: !record.valid,
        first: false,
        remark: remarks.join(" "),
        ..Row::default()
    }
}

/// A cell as shown; a missing figure has the mark of its reason.
pub(crate) fn cell(record: &TestRecord, column: &Column, notes: &mut Notes) -> Cell {
    let absent = matches!(column.cell(record), Value::Absent);
    let mark = if absent && is_numeric(column) {
        let reason = record.why_absent(column).unwrap_or_else(|| default_reason(record));
        notes.mark(reason, &column.heading())
    } else {
        String::new()
    };
    Cell { text: column.shown(record), mark }
}

/// The reason for a missing figure if the record gives none.
fn default_reason(record: &TestRecord) -> &'static str {
    // Records of older versions (without KPIs) always had a reason.
    if record.kpis.is_empty() { "the record gives no reason" } else { "this workload has no such figure" }
}

/// Means with intervals, if tests were repeated.
fn means(side: &PlatformRun<'_>, sweep: &Sweep) -> Option<Table> {
    const LOG: [&Column; 6] = [
        column::COMMIT_THROUGHPUT_TPS,
        column::COMMIT_LATENCY_MS,
        column::REDO_MIB_PER_S,
        column::LOG_FILE_SYNC_MS,
        column::COMMIT_TIME_NS_P50,
        column::COMMIT_TIME_NS_P99,
    ];
    const TIMES: [&Column; 3] =
        [column::TRANSACTION_TIME_NS_MEAN, column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99];
    if !sweep.points.iter().any(|p| p.tests.len() > 1) {
        return None;
    }
    let log = sweep.kpis.is_empty() || sweep.group == ALL_COLUMNS_GROUP;
    let own = sweep.kpis.iter().filter_map(|id| column(id)).filter(|c| !log && *c != LATENCY);
    let mut columns: Vec<&'static Column> = Vec::new();
    for column in own.chain(if log { LOG.iter() } else { TIMES.iter() }.copied()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    // Nobody has checked those of other tools.
    let counted = if side.run.published.is_some() { "Tests" } else { "Valid tests" };
    let mut notes = Notes::default();
    let rows = sweep
        .points
        .iter()
        .filter(|p| !p.tests.is_empty())
        .map(|p| {
            let tests = Cell { text: p.tests.len().to_string(), mark: kept::mark(p, &mut notes) };
            let mut cells: Vec<Cell> = vec![place(&sweep.over, p.at).into(), tests];
            cells.extend(columns.iter().map(|c| figure(&side.run.records, p, c, &mut notes)));
            Row::of(cells)
        })
        .collect();
    Some(Table {
        caption: format!("{} – {}: means over repetitions", side.label, name(sweep, &side.sweeps)),
        sub: format!("{}, ± 95 % confidence interval", counted.to_lowercase()),
        class: "figures",
        head: [Head::text(&swept_title(&sweep.over)), Head::number(counted, "")]
            .into_iter()
            .chain(columns.iter().map(|c| Head { title: title_of(c, log).to_owned(), ..Head::of(c) }))
            .collect(),
        rows,
        notes: notes.finish(),
    })
}
