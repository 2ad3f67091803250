//! What laws look at: a sheet with its series of tests; and what they find there.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::finding::{Figure, Finding, Reason, Severity};
use super::number::{self, Cell};
use super::sheet::{How, SAMPLE, Sheet};
use super::table::Table;

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;
/// Text columns that say what was measured.
pub(crate) const TEXT_KEYS: [&str; 8] =
    ["platform", "workload", "target", "driver", "job_load", "arm", "level", "repetition"];
/// Settings; a series is over the first that varies within it, the others tell series apart.
pub(crate) const SETTINGS: [&str; 12] = [
    "jobs", "rows_per_tx", "threads", "nodes", "rate_tps", "delay_ms", "block_bytes", "write_pct", "indexes", "groups",
    "queue_depth", "warehouses",
];

/// A sheet with all that laws ask about it.
pub(crate) struct Context<'a> {
    pub(crate) sheet: Sheet<'a>,
    /// Rows that belong together: the tests of one workload on one platform, over rising jobs or another setting.
    pub(crate) series: Vec<Vec<usize>>,
    /// The setting that changes within a series: `jobs`, mostly.
    pub(crate) swept: Option<&'static str>,
    /// The columns whose product are the jobs.
    pub(crate) jobs: Vec<&'static str>,
    /// Columns whose cells tell one series from another, as places in the table.
    telling: Vec<usize>,
    found: RefCell<Vec<Finding>>,
    counts: RefCell<HashMap<(&'static str, Severity), usize>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(sheet: Sheet<'a>) -> Context<'a> {
        let table = sheet.table;
        let all: Vec<usize> = (0..table.rows()).collect();
        let varies = |id: &str, rows: &[usize]| {
            let mut seen = rows.iter().filter_map(|row| sheet.value(id, *row));
            seen.next().is_some_and(|first| seen.any(|v| v != first))
        };
        let series_over = |swept: Option<&'static str>| {
            let telling: Vec<usize> = (0..table.headers.len()).filter(|i| is_key(&sheet, *i, swept)).collect();
            let series = series_of(table, &telling);
            (swept, telling, series)
        };
        let mut over = SETTINGS.into_iter().filter(|id| varies(id, &all)).map(|id| (id, series_over(Some(id))));
        let over = over.find(|(id, (.., series))| series.iter().any(|rows| varies(id, rows)));
        let (swept, mut telling, series) = over.map_or_else(|| series_over(None), |(_, found)| found);
        telling.retain(|i| series.iter().any(|rows| table.cell(rows[0], *i) != table.cell(series[0][0], *i)));
        let (found, counts) = (RefCell::default(), RefCell::default());
        Context { sheet, series, swept, jobs: vec!["jobs"], telling, found, counts }
    }

    pub(crate) fn rows(&self) -> usize {
        self.sheet.table.rows()
    }

    /// The columns that a name in a formula stands for, as a product, and a factor.
    pub(crate) fn resolve(&self, name: &str) -> Option<(Vec<usize>, f64)> {
        let (ids, factor) = match name {
            "tps" => (vec![self.sheet.throughput()?], 1.0),
            "jobs" => (self.jobs.clone(), 1.0),
            "time_ms" if self.sheet.has("commit_latency_ms") => (vec!["commit_latency_ms"], 1.0),
            "time_ms" => (vec!["transaction_time_ns_mean"], 1e-6),
            id => (vec![id], 1.0),
        };
        let place = |id: &str| self.sheet.columns.iter().position(|c| c.id == id);
        Some((ids.into_iter().map(place).collect::<Option<_>>()?, factor))
    }

    pub(crate) fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.sheet.value(if id == "tps" { self.sheet.throughput()? } else { id }, row)
    }

    /// Whether all columns are known at least as surely as by `how`.
    pub(crate) fn is_sure(&self, columns: &[usize], how: How) -> bool {
        columns.iter().all(|c| self.sheet.columns[*c].how <= how)
    }

    /// Relative error of a rate whose counters are read up to `seconds` late; 0 if the length of the test is not known.
    pub(crate) fn late(&self, row: usize, seconds: f64) -> f64 {
        self.value("elapsed_s", row).filter(|s| *s > 0.0).map_or(0.0, |elapsed| seconds / elapsed)
    }

    /// Places of columns in the sheet; those that are missing are left out.
    pub(crate) fn places(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.resolve(id)).flat_map(|(places, _)| places).collect()
    }

    /// What tells the series of a row from others.
    fn series_name(&self, row: usize) -> String {
        let (table, style) = (self.sheet.table, self.sheet.style);
        let name = |i: &usize| match (number::read(table.cell(row, *i), style), table.cell(row, *i)) {
            (Cell::Number(_), cell) => format!("{} {cell}", table.headers[*i]),
            (_, cell) => cell.to_owned(),
        };
        self.telling.iter().map(name).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Which test a row is: its series, the setting that is swept, and its number.
    fn test(&self, row: usize) -> String {
        let settings = self.swept.into_iter().chain(["test"]).map(|id| (id, self.sheet.text(id, row)));
        let settings = settings.filter(|(_, text)| !text.is_empty()).map(|(id, text)| format!("{id} {text}"));
        let parts = [self.series_name(row)].into_iter().chain(settings).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ").chars().take(100).collect()
    }

    /// Adds a finding about the table. `columns` are places in the sheet.
    pub(crate) fn about_table(&self, law: &'static str, severity: Severity, columns: &[usize], reason: Reason) {
        self.find((law, severity), None::<usize>, columns, None, reason);
    }

    /// Adds a finding about the series that has `row`.
    pub(crate) fn about_series(
        &self,
        row: usize,
        law: &'static str,
        severity: Severity,
        columns: &[usize],
        why: Reason,
    ) {
        self.about_table(law, severity, columns, why);
        let name = self.series_name(row);
        self.found.borrow_mut().last_mut().into_iter().for_each(|found| found.test.clone_from(&name));
    }

    /// Adds a finding about `row`, unless a thousand rows have the same one, or about the table. `recomputed` is of the last column, in
    /// the unit of its id; a finding has it in the unit that is printed.
    pub(crate) fn find(
        &self,
        (law, mut severity): (&'static str, Severity),
        row: impl Into<Option<usize>>,
        columns: &[usize],
        recomputed: Option<f64>,
        mut reason: Reason,
    ) {
        let (row, mut columns) = (row.into(), columns.to_vec());
        let (exact, mut test, mut printed, mut recomputed) = (recomputed, String::new(), String::new(), String::new());
        let mut deviation_pct = None;
        if let Some(row) = row {
            if severity == Severity::Error && matches!(self.sheet.text("valid", row), "false" | "no") {
                (severity, reason) = (Severity::Warning, Reason::Invalid(Box::new(reason)));
            }
            let mut counts = self.counts.borrow_mut();
            let count = counts.entry((law, severity)).or_insert(0);
            *count += 1;
            if *count > LISTED {
                return;
            }
            test = self.test(row);
            if let Some(target) = columns.last().map(|c| &self.sheet.columns[*c]) {
                self.sheet.table.cell(row, target.index).clone_into(&mut printed);
                let factor = target.printed_factor(&printed, row, self.sheet.style);
                recomputed = exact.map_or_else(String::new, |r| Figure(r / factor).to_string());
                let deviation = target.value(row).zip(exact).map(|(p, r)| (p / r - 1.0) * 100.0);
                deviation_pct = deviation.filter(|d| d.is_finite());
            }
            columns.sort_unstable();
        }
        let (table, row) = (self.sheet.table.name.clone(), row.map(|row| row + 1));
        let columns = columns.iter().map(|c| self.sheet.columns[*c].id).collect();
        let found = Finding { severity, table, row, test, columns, law, printed, recomputed, deviation_pct, reason };
        self.found.borrow_mut().push(found);
    }

    pub(crate) fn findings(self) -> Vec<Finding> {
        for ((law, severity), count) in self.counts.take() {
            if count > LISTED {
                self.about_table(law, severity, &[], Reason::More(count - LISTED));
            }
        }
        let mut all = self.found.into_inner();
        all.sort_by(|a, b| (a.severity, a.law, a.row).cmp(&(b.severity, b.law, b.row)));
        all
    }
}

/// Rows with the same cells in `telling`. A name that stands once above several rows, in merged cells or in a row of its own, is that of
/// all of them.
fn series_of(table: &Table, telling: &[usize]) -> Vec<Vec<usize>> {
    let merged: Vec<bool> = telling.iter().map(|i| is_merged(table, *i)).collect();
    let mut key = vec![""; telling.len() + 1];
    let mut series: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for row in 0..table.rows() {
        if let Some(heading) = table.heading(row) {
            key[telling.len()] = heading;
            continue;
        }
        for (at, index) in telling.iter().enumerate() {
            let cell = table.cell(row, *index);
            if !merged[at] || !cell.is_empty() {
                key[at] = cell;
            }
        }
        series.entry(key.clone()).or_default().push(row);
    }
    series.into_values().collect()
}

/// Whether the cells of a column are names that stand once above several rows.
fn is_merged(table: &Table, column: usize) -> bool {
    let cells: Vec<&str> = table.cells(column, SAMPLE).collect();
    let names = cells.iter().filter(|cell| !cell.is_empty()).count();
    names > 0 && names * 2 <= cells.len() && !cells.windows(2).any(|two| two[0] == two[1] && !two[0].is_empty())
}

/// Whether the cells of a column tell series apart over `swept`: settings, and text that repeats, such as an engine's name.
fn is_key(sheet: &Sheet<'_>, index: usize, swept: Option<&str>) -> bool {
    // A run may have a row or many.
    if let Some(column) = sheet.at(index).filter(|column| column.id != "run") {
        return TEXT_KEYS.contains(&column.id) || SETTINGS.contains(&column.id) && Some(column.id) != swept;
    }
    let mut cells: Vec<&str> = sheet.table.cells(index, SAMPLE).collect();
    let rows = cells.len();
    if is_merged(sheet.table, index) {
        cells.retain(|cell| !cell.is_empty());
    }
    let text = cells.iter().filter(|cell| matches!(number::read(cell, sheet.style), Cell::Text)).count();
    let is_text = text * 2 > cells.len();
    cells.sort_unstable();
    cells.dedup();
    is_text && cells.len() * 2 <= rows.max(2) || swept.is_some_and(|swept| is_crossed(sheet, index, swept))
}

/// Whether a column of figures that nobody knows is a setting, such as a scale: with each of its values, `swept` has the same values.
fn is_crossed(sheet: &Sheet<'_>, index: usize, swept: &str) -> bool {
    let Some(swept) = sheet.column(swept) else { return false };
    let mut with: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (cell, at) in sheet.table.cells(index, SAMPLE).zip(sheet.table.cells(swept.index, SAMPLE)) {
        with.entry(cell).or_default().insert(at);
    }
    let mut all = with.values();
    with.len() > 1 && all.next().is_some_and(|first| first.len() > 1 && all.all(|other| other == first))
}
