//! What laws look at: a sheet with its series of tests; and what they find there.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::finding::{Figure, Finding, Reason, Severity};
use super::number::{self, Cell};
use super::sheet::{How, SAMPLE, Sheet};

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;
/// Text columns that say what was measured.
pub(crate) const TEXT_KEYS: [&str; 8] =
    ["platform", "workload", "target", "driver", "job_load", "arm", "level", "repetition"];
/// Settings; the first that varies is what a series is over, the others tell series apart.
pub(crate) const SETTINGS: [&str; 10] = [
    "jobs", "rows_per_tx", "threads", "nodes", "rate_tps", "delay_ms", "block_bytes", "write_pct", "indexes", "groups",
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
        let varies = |id: &&str| {
            let mut seen = (0..table.rows()).filter_map(|row| sheet.value(id, row));
            seen.next().is_some_and(|first| seen.any(|v| v != first))
        };
        let swept = SETTINGS.into_iter().find(varies);
        let mut telling: Vec<usize> = (0..table.headers.len()).filter(|i| is_key(&sheet, *i, swept)).collect();
        let mut series: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for row in 0..table.rows() {
            series.entry(telling.iter().map(|i| table.cell(row, *i)).collect()).or_default().push(row);
        }
        let series: Vec<Vec<usize>> = series.into_values().collect();
        telling.retain(|i| series.iter().any(|rows| table.cell(rows[0], *i) != table.cell(0, *i)));
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

    /// Which test a row is: what tells its series from others, the setting that is swept, and its number.
    fn test(&self, row: usize) -> String {
        let (table, style) = (self.sheet.table, self.sheet.style);
        let name = |i: &usize| match (number::read(table.cell(row, *i), style), table.cell(row, *i)) {
            (Cell::Number(_), cell) => format!("{} {cell}", table.headers[*i]),
            (_, cell) => cell.to_owned(),
        };
        let series: Vec<String> = self.telling.iter().map(name).filter(|name| !name.is_empty()).collect();
        let settings = self.swept.into_iter().chain(["test"]).map(|id| (id, self.sheet.text(id, row)));
        let settings = settings.filter(|(_, text)| !text.is_empty()).map(|(id, text)| format!("{id} {text}"));
        let parts = [series.join(" ")].into_iter().chain(settings).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ").chars().take(100).collect()
    }

    /// Adds a finding about the table. `columns` are places in the sheet.
    pub(crate) fn about_table(&self, law: &'static str, severity: Severity, columns: &[usize], reason: Reason) {
        self.find((law, severity), None::<usize>, columns, None, reason);
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

/// Whether the cells of a column tell series apart: settings, and text that repeats, such as an engine's name.
fn is_key(sheet: &Sheet<'_>, index: usize, swept: Option<&str>) -> bool {
    if let Some(column) = sheet.at(index) {
        return TEXT_KEYS.contains(&column.id) || SETTINGS.contains(&column.id) && Some(column.id) != swept;
    }
    let mut cells: Vec<&str> = sheet.table.cells(index, SAMPLE).collect();
    let (rows, is_text) = (cells.len(), |c: &&&str| matches!(number::read(c, sheet.style), Cell::Text));
    let text = cells.iter().filter(is_text).count();
    cells.sort_unstable();
    cells.dedup();
    text * 2 > rows && cells.len() * 2 <= rows.max(2)
}
