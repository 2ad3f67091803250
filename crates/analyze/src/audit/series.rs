//! The series of tests of a sheet, which laws look at, and what they find there.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Figure, Finding, Graded, Reason, Severity};
use super::header::{is_text, words};
use super::number::{self, Cell};
use super::sheet::{Column, SAMPLE, Sheet};

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;

impl Sheet<'_> {
    pub(super) fn find_series(&mut self) {
        let (table, sheet) = (self.table, &*self);
        let all: Vec<usize> = (0..table.rows()).collect();
        let varies = |id: &str, rows: &[usize]| {
            let mut seen = rows.iter().filter_map(|row| sheet.value(id, *row));
            seen.next().is_some_and(|first| seen.any(|v| v != first))
        };
        let series_over = |swept: Option<&'static str>| {
            let telling: Vec<usize> = (0..table.headers.len()).filter(|i| is_key(sheet, *i, swept)).collect();
            let series = series_of(sheet, &telling, swept);
            (swept, telling, series)
        };
        let mut over = words("setting").filter(|id| varies(id, &all)).map(|id| (id, series_over(Some(id))));
        let over = over.find(|(id, (.., series))| series.iter().any(|rows| varies(id, rows)));
        let (swept, mut telling, series) = over.map_or_else(|| series_over(None), |(_, found)| found);
        telling.retain(|i| series.iter().any(|rows| table.cell(rows[0], *i) != table.cell(series[0][0], *i)));
        (self.swept, self.telling, self.series) = (swept, telling, series);
    }

    /// The columns that a name in a formula stands for, as a product, and a factor.
    pub(crate) fn resolve(&self, name: &str) -> Option<(Vec<usize>, f64)> {
        let (ids, factor) = match name {
            "tps" => (vec![self.throughput()?], 1.0),
            "jobs" => (self.jobs.clone(), 1.0),
            "time_ms" if self.has("commit_latency_ms") => (vec!["commit_latency_ms"], 1.0),
            "time_ms" => (vec!["transaction_time_ns_mean"], 1e-6),
            id => (vec![id], 1.0),
        };
        let place = |id: &str| self.columns.iter().position(|c| c.id == id);
        Some((ids.into_iter().map(place).collect::<Option<_>>()?, factor))
    }

    /// Relative error of a rate whose counters are read up to `seconds` late; 0 if the length of the test is not known.
    pub(crate) fn late(&self, row: usize, seconds: f64) -> f64 {
        self.value("elapsed_s", row).filter(|s| *s > 0.0).map_or(0.0, |elapsed| seconds / elapsed)
    }

    /// Places of columns in the sheet; those that are missing are left out.
    pub(crate) fn places(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.resolve(id)).flat_map(|(places, _)| places).collect()
    }

    fn series_name(&self, row: usize) -> String {
        let (table, style) = (self.table, self.style);
        let name = |i: &usize| match (number::read(table.cell(row, *i), style), table.cell(row, *i)) {
            (Cell::Number(_), cell) => format!("{} {cell}", table.headers[*i]),
            (_, cell) => cell.to_owned(),
        };
        self.telling.iter().map(name).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Which test a row is: its series, the setting that is swept, and its number.
    fn test(&self, row: usize) -> String {
        let settings = self.swept.into_iter().chain(["test"]).map(|id| (id, self.text(id, row)));
        let settings = settings.filter(|(_, text)| !text.is_empty()).map(|(id, text)| format!("{id} {text}"));
        let parts = [self.series_name(row)].into_iter().chain(settings).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ").chars().take(100).collect()
    }

    /// Adds a finding about the table, or about the series that has the row `of`. `columns` are places in the sheet.
    pub(crate) fn about(&self, of: Option<usize>, (law, severity): Graded, columns: &[usize], reason: Reason) {
        let test = of.map_or_else(String::new, |row| self.series_name(row));
        let (table, row, deviation_pct) = (self.table.name.clone(), None, None);
        let columns = columns.iter().map(|c| self.columns[*c].id).collect();
        let (printed, recomputed) = (String::new(), String::new());
        let found = Finding { severity, table, row, test, columns, law, printed, recomputed, deviation_pct, reason };
        self.found.borrow_mut().push(found);
    }

    /// Adds a finding about `row`, unless a thousand rows have the same one. `recomputed` is of the last column, in the unit of its id; a
    /// finding has it in the unit that is printed.
    pub(crate) fn find(&self, graded: Graded, row: usize, columns: &[usize], recomputed: Option<f64>, reason: Reason) {
        let ((law, mut severity), mut reason) = (graded, reason);
        if severity == Severity::Error && matches!(self.text("valid", row), "false" | "no") {
            (severity, reason) = (Severity::Warning, Reason::Invalid(Box::new(reason)));
        }
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry((law, severity)).or_insert(0);
        *count += 1;
        if *count > LISTED {
            return;
        }
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        self.about(None, (law, severity), &sorted, reason);
        let mut all = self.found.borrow_mut();
        let Some(found) = all.last_mut() else { return };
        (found.row, found.test) = (Some(row + 1), self.test(row));
        let Some(column) = columns.last().map(|c| &self.columns[*c]) else { return };
        self.table.cell(row, column.index).clone_into(&mut found.printed);
        let factor = column.printed_factor(&found.printed, row, self.style);
        found.recomputed = recomputed.map_or_else(String::new, |r| Figure(r / factor).to_string());
        let deviation = column.value(row).zip(recomputed).map(|(p, r)| (p / r - 1.0) * 100.0);
        found.deviation_pct = deviation.filter(|d| d.is_finite());
    }

    pub(crate) fn findings(self) -> Vec<Finding> {
        for ((law, severity), count) in self.counts.take() {
            if count > LISTED {
                self.about(None, (law, severity), &[], Reason::More(count - LISTED));
            }
        }
        let mut all = self.found.into_inner();
        all.sort_by(|a, b| (a.severity, a.law, a.row).cmp(&(b.severity, b.law, b.row)));
        all
    }
}

/// Rows with the same cells in `telling`. A name that stands once above several rows is that of all of them.
fn series_of(sheet: &Sheet<'_>, telling: &[usize], swept: Option<&str>) -> Vec<Vec<usize>> {
    let table = sheet.table;
    let merged: Vec<bool> = telling.iter().map(|i| is_merged(sheet, *i, swept)).collect();
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

/// Whether the cells of a column are names that stand once above several rows: the first row has one, and the column stands before that
/// of the setting `swept`, or before all figures. Further right, an empty cell is a setting that does not apply, or a row without a note.
fn is_merged(sheet: &Sheet<'_>, index: usize, swept: Option<&str>) -> bool {
    let is_figure = |c: &&Column| !is_text(c.id) && !["test", "run"].contains(&c.id);
    let bound = sheet.columns.iter().find(|c| swept.map_or_else(|| is_figure(c), |id| c.id == id));
    let cells: Vec<&str> = sheet.table.cells(index, SAMPLE).collect();
    let first = (0..cells.len()).find(|row| sheet.table.heading(*row).is_none());
    let names = cells.iter().filter(|cell| !cell.is_empty()).count();
    let is_repeated = || cells.windows(2).any(|two| two[0] == two[1] && !two[0].is_empty());
    let is_left = bound.is_none_or(|column| index < column.index);
    is_left && names * 2 <= cells.len() && first.is_some_and(|row| !cells[row].is_empty()) && !is_repeated()
}

/// Whether the cells of a column tell series apart over `swept`: settings, and text that repeats; not notes, most of which are their own.
fn is_key(sheet: &Sheet<'_>, index: usize, swept: Option<&str>) -> bool {
    // A run may have a row or many.
    if let Some(column) = sheet.at(index).filter(|column| column.id != "run") {
        return words("key").chain(words("setting")).any(|id| id == column.id && Some(id) != swept);
    }
    let mut cells: Vec<&str> = sheet.table.cells(index, SAMPLE).collect();
    let rows = cells.len();
    let text = cells.iter().filter(|cell| matches!(number::read(cell, sheet.style), Cell::Text)).count();
    cells.retain(|cell| !cell.is_empty());
    let (filled, is_merged) = (cells.len(), is_merged(sheet, index, swept));
    cells.sort_unstable();
    cells.dedup();
    let (all, most) = if is_merged { (filled, rows) } else { (rows, filled) };
    text * 2 > all && cells.len() * 2 <= most.max(2) || swept.is_some_and(|swept| is_crossed(sheet, index, swept))
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
