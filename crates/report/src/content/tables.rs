//! The test tables: one a platform and workload, as in published studies.

use loadline_analyze::Sweep;
use loadline_model::column::{Cell as Value, column};
use loadline_model::{Column, Table as Columns, TestRecord};

use super::key::{figure, name};
use super::stop;
use crate::columns::is_numeric;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::side::Side;

/// The section: per workload the tables of all platforms, two to a page on paper.
pub(crate) fn section(sides: &[Side<'_>], workloads: &[String], chosen: Option<&[&'static Column]>) -> Section {
    let mut blocks = Vec::new();
    let mut on_page = 0;
    for workload in workloads {
        let mut tables = Vec::new();
        for side in sides {
            let of_workload: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == *workload).collect();
            if !of_workload.is_empty() {
                tables.push(Block::Table(tests(side, workload, &of_workload, chosen)));
            }
            for sweep in side.sweeps.iter().filter(|s| s.workload == *workload) {
                tables.extend(means(side, sweep).map(Block::Table));
            }
        }
        let page = on_page > 0 && on_page + tables.len() > 2;
        on_page = if page { tables.len() } else { on_page + tables.len() };
        blocks.push(Block::Heading { text: workload.clone(), page });
        blocks.append(&mut tables);
    }
    Section { id: "tests", title: "Tests".to_owned(), in_text: true, blocks }
}

/// The usual columns of `records`' group. Run and workload stand above the table, not in it.
fn usual(records: &[&TestRecord]) -> Vec<&'static Column> {
    let group = records.first().map_or("", |r| r.group.as_str());
    let mut out: Vec<&'static Column> =
        Columns::of(group).shown_columns().filter(|c| !["run", "workload"].contains(&c.id)).collect();
    let after = |id: &str, out: &[&'static Column]| out.iter().position(|c| c.id == id).map_or(0, |p| p + 1);
    if records.iter().any(|r| r.repetition > 1)
        && let Some(c) = column("repetition")
    {
        out.insert(after("test", &out), c);
    }
    if records.iter().any(|r| records.first().is_some_and(|f| f.driver != r.driver))
        && let Some(c) = column("driver")
    {
        out.insert(after("test", &out), c);
    }
    out
}

fn tests(side: &Side<'_>, workload: &str, records: &[&TestRecord], chosen: Option<&[&'static Column]>) -> Table {
    let columns = chosen.map_or_else(|| usual(records), <[_]>::to_vec);
    let mut notes = Notes::default();
    let rows = records.iter().map(|r| test_row(r, &columns, &mut notes)).collect();
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
        let reason = record.invalid_reason.as_deref().unwrap_or("the record gives no reason");
        remarks.push(format!("Test {} is invalid: {}.", record.test, stop(reason)));
    }
    if let Some(forced) = &record.forced {
        remarks.push(format!("Test {} was forced: {}.", record.test, stop(forced)));
    }
    Row {
        cells: columns.iter().map(|c| cell(record, c, notes)).collect(),
        invalid: !record.valid,
        first: false,
        remark: remarks.join(" "),
    }
}

/// A cell as people see it; a figure that is missing carries the mark of its reason.
pub(crate) fn cell(record: &TestRecord, column: &Column, notes: &mut Notes) -> Cell {
    let absent = matches!(column.cell(record), Value::Absent);
    let mark = if absent && is_numeric(column) {
        let reason = record.absent.get(column.id).map_or("the record gives no reason", String::as_str);
        notes.mark(reason, &column.heading())
    } else {
        String::new()
    };
    Cell { text: column.shown(record), mark }
}

/// Means with intervals, if anything was repeated.
fn means(side: &Side<'_>, sweep: &Sweep) -> Option<Table> {
    const FIGURES: [&str; 6] = [
        "commit_throughput_tps",
        "commit_latency_ms",
        "redo_mib_per_s",
        "log_file_sync_ms",
        "commit_time_ns_p50",
        "commit_time_ns_p99",
    ];
    if !sweep.points.iter().any(|p| p.tests.len() > 1) {
        return None;
    }
    let columns: Vec<&'static Column> = FIGURES.iter().filter_map(|id| column(id)).collect();
    let mut notes = Notes::default();
    let rows = sweep
        .points
        .iter()
        .filter(|p| !p.tests.is_empty())
        .map(|p| {
            let mut cells: Vec<Cell> = vec![p.jobs.to_string().into(), p.tests.len().to_string().into()];
            cells.extend(columns.iter().map(|c| figure(&side.run.records, p, c.id, &mut notes)));
            Row { cells, ..Row::default() }
        })
        .collect();
    let ambiguous = side.sweeps.iter().filter(|s| s.workload == sweep.workload).count() > 1;
    Some(Table {
        caption: format!("{} – {}: means over repetitions", side.label, name(sweep, ambiguous)),
        sub: "valid tests, ± 95 % confidence interval".to_owned(),
        class: "figures",
        head: [Head::number("Jobs", ""), Head::number("Valid tests", "")]
            .into_iter()
            .chain(columns.iter().map(|c| Head::of(c)))
            .collect(),
        rows,
        notes: notes.finish(),
    })
}
