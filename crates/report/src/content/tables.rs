//! A section for each component group, with the test tables: one per platform and workload, as in published studies.

use loadline_analyze::kpi::LATENCY;
use loadline_analyze::{Sweep, SweepPoint};
use loadline_model::column::*;
use loadline_model::column::{self, Cell as Value};
use loadline_model::disturbance::judged;
use loadline_model::{Column, Table as Columns, TestRecord};
use minijinja::context;

use super::figure::figure;
use super::{charts, qualified, stop, waits};
use crate::columns::is_numeric;
use crate::doc::{Block, Cell, Head, Notes, Row, Section, Table};
use crate::platform_run::{PlatformRun, group_title, groups, workloads_of};
use crate::spec::TableSpec;
use crate::templates::prose;
use crate::words::{distinct, name, place, swept_title, title_of};

/// The group whose tables keep columns without figures: they have the layout of published studies.
const ALL_COLUMNS_GROUP: &str = "log-writer";

/// A section for each component group: charts, wait histograms and test tables of its workloads. These have the columns `chosen`, or the
/// group's by default.
pub(crate) fn sections(sides: &[PlatformRun<'_>], chosen: Option<&[&'static Column]>) -> Vec<Section> {
    groups(sides.iter()).iter().map(|group| section(sides, group, chosen)).collect()
}

fn section(sides: &[PlatformRun<'_>], group: &str, chosen: Option<&[&'static Column]>) -> Section {
    let mut blocks = Vec::new();
    // When printed, a workload starts a new page if its tables do not fit on the current one.
    let (mut on_page, mut charted, mut timed) = (0, false, false);
    for workload in workloads_of(sides, group) {
        let mut of_tests = of_workload(sides, &workload, chosen);
        let page = on_page > 0 && on_page + of_tests.len() > 2;
        on_page = if page { of_tests.len() } else { on_page + of_tests.len() };
        blocks.push(Block::Heading { text: workload.clone(), page });
        for side in sides {
            let notes = side.run.notes.get(&workload);
            blocks.extend(notes.map(|markdown| Block::Notes { markdown: markdown.clone() }));
        }
        let charts = charts::of_workload(sides, &workload);
        charted |= !charts.is_empty();
        blocks.extend(charts);
        blocks.append(&mut of_tests);
        let mut histograms = waits::of_workload(sides, group, &workload);
        timed |= !histograms.is_empty();
        blocks.append(&mut histograms);
    }
    if charted {
        blocks.push(Block::Legend {
            text: prose("charts", context! { pages => sides.iter().any(|side| !side.run.pages.is_empty()) }),
        });
    }
    if timed {
        blocks.push(Block::para(prose("waits", ())));
    }
    let id = TABLES.iter().find(|t| t.group == group).map_or("other", |t| t.group);
    Section { group: true, ..Section::new(id, group_title(group), blocks) }
}

/// The tables of a workload: its tests by platform, and means over repetitions.
fn of_workload(sides: &[PlatformRun<'_>], workload: &str, chosen: Option<&[&'static Column]>) -> Vec<Block> {
    let mut tables = Vec::new();
    for side in sides {
        let of_workload: Vec<&TestRecord> = side.run.records.iter().filter(|r| r.workload == workload).collect();
        let columns = chosen.map_or_else(|| default_columns(&of_workload), <[_]>::to_vec);
        tables.extend(Block::table(tests(side, workload, &of_workload, &columns)));
        for sweep in side.sweeps.iter().filter(|s| s.workload == workload) {
            tables.extend(means(side, sweep).map(Block::Table));
        }
    }
    tables
}

/// Default columns of `records`' group, without run and workload, which the caption names, and outside [`ALL_COLUMNS_GROUP`] without those
/// in which no test has a figure: the evidence says why.
fn default_columns(records: &[&TestRecord]) -> Vec<&'static Column> {
    let group = records.first().map_or("", |r| r.group.as_str());
    let mut out: Vec<&'static Column> = Columns::for_group(group)
        .shown()
        .into_iter()
        .filter(|c| ![column::RUN, column::WORKLOAD].contains(c))
        .collect();
    if group != ALL_COLUMNS_GROUP {
        out.retain(|c| records.iter().any(|r| !matches!(c.cell(r), Value::Absent)));
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
    for over in records.iter().filter_map(|r| column(r.swept()?)) {
        add(over, column::JOBS);
    }
    out
}

fn tests(side: &PlatformRun<'_>, workload: &str, records: &[&TestRecord], columns: &[&'static Column]) -> Table {
    let notes = Notes::default();
    let drivers = distinct(records.iter().map(|r| r.driver));
    let driver = if let [driver] = drivers[..] { format!(", {driver} driver") } else { String::new() };
    let mut table = TableSpec::<&TestRecord>::new("figures", records.iter().copied());
    for column in columns {
        table = table.column(Head::for_column(column), |r| cell(r, column, &notes));
    }
    let mut table = table
        .lines(|r| Row { invalid: !r.is_usable(), remark: remark(r), link: link(side, r), ..Row::default() })
        .caption(format!("{} – {workload}", side.label))
        .sub(format!("run {}{driver}", side.run.manifest.run))
        .notes(&notes)
        .build();
    // A line separates sweeps.
    for (row, pair) in table.rows.iter_mut().skip(1).zip(records.windows(2)) {
        row.first = pair[0].swept() != pair[1].swept() && row.remark.is_empty();
    }
    table
}

/// Address of the test's page, if it has one.
fn link(side: &PlatformRun<'_>, record: &TestRecord) -> String {
    let has_page = side.run.pages.contains(&record.test);
    if has_page { format!("test-{}.html", record.test) } else { String::new() }
}

fn remark(record: &TestRecord) -> String {
    let mut remarks = Vec::new();
    if !record.valid {
        remarks.push(format!("Test {} is {}.", record.test, stop(&judged(record))));
    }
    // Otherwise the reason says so.
    if let Some(noticed) = record.disturbed_by.as_ref()
        && record.valid
    {
        remarks.push(format!("Noticed at test {}: {noticed}.", record.test));
    }
    if !record.forced.is_empty() {
        remarks.push(format!("Test {} was forced: {}.", record.test, stop(&record.forced.to_string())));
    }
    remarks.extend(qualified::noted_of(record));
    remarks.join(" ")
}

/// A cell as shown; a missing figure has the mark of its reason.
fn cell(record: &TestRecord, column: &Column, notes: &Notes) -> Cell {
    let absent = matches!(column.cell(record), Value::Absent) && is_numeric(column);
    let reason = || record.why_absent(column).unwrap_or_else(|| default_reason(record));
    Cell::from(column.shown(record)).marked(absent.then(|| notes.mark(reason(), &column.heading())))
}

/// The reason for a missing figure if the record gives none.
fn default_reason(record: &TestRecord) -> &'static str {
    // Records of older versions (without KPIs) always had a reason.
    if record.kpis.is_empty() { "the record gives no reason" } else { "this workload has no such figure" }
}

/// Means with intervals, if tests were repeated.
fn means(side: &PlatformRun<'_>, sweep: &Sweep) -> Option<Table> {
    const LOG: [&Column; 6] = [
        COMMIT_THROUGHPUT_TPS, COMMIT_LATENCY_MS, REDO_MIB_PER_S, LOG_FILE_SYNC_MS, COMMIT_TIME_NS_P50,
        COMMIT_TIME_NS_P99,
    ];
    const TIMES: [&Column; 3] = [TRANSACTION_TIME_NS_MEAN, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99];
    if !sweep.points.iter().any(|p| p.tests.len() > 1) {
        return None;
    }
    let log = sweep.kpis.is_empty() || sweep.group == ALL_COLUMNS_GROUP;
    let own = sweep.kpis.iter().filter_map(|id| column(id)).filter(|c| !log && *c != LATENCY);
    let columns: Vec<&'static Column> = distinct(own.chain(if log { LOG.iter() } else { TIMES.iter() }.copied()));
    // Nobody has checked those of other tools.
    let counted = if side.run.published.is_some() { "Tests" } else { "Valid tests" };
    let notes = Notes::default();
    let mut table = TableSpec::<&SweepPoint>::new("figures", sweep.points.iter().filter(|p| !p.tests.is_empty()))
        .text(&swept_title(&sweep.over), |p| place(&sweep.over, p.at))
        .number(counted, "", |p| Cell::from(p.tests.len()).marked(qualified::mark(p, &notes)));
    for column in columns {
        let head = Head { title: title_of(column, log).to_owned(), ..Head::for_column(column) };
        table = table.column(head, |p| figure(&side.run.records, p, column, &notes));
    }
    let table = table
        .caption(format!("{} – {}: means over repetitions", side.label, name(sweep, &side.sweeps)))
        .sub(format!("{}, ± 95 % confidence interval", counted.to_lowercase()))
        .notes(&notes);
    Some(table.build())
}
