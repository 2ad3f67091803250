//! Rows that belong together: the tests of one workload on one platform, over rising jobs or another setting.

use std::collections::HashMap;

use super::{SAMPLE, Sheet};
use crate::audit::number::{self, Cell};

/// Text columns that say what was measured.
pub(crate) const TEXT_KEYS: [&str; 8] =
    ["platform", "workload", "target", "driver", "job_load", "arm", "level", "repetition"];
/// Settings; the first that varies is what a series is over, the others tell series apart.
pub(crate) const SETTINGS: [&str; 10] = [
    "jobs", "rows_per_tx", "threads", "nodes", "rate_tps", "delay_ms", "block_bytes", "write_pct", "indexes", "groups",
];

/// The rows of one series, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// What tells it from others: `X5-2 LGWR-LAT1`; empty if it is the whole table.
    pub label: String,
    /// Its rows, counted from 0.
    pub rows: Vec<usize>,
}

impl Sheet<'_> {
    /// The setting that changes within a series: `jobs`, mostly.
    #[must_use]
    pub fn swept(&self) -> Option<&'static str> {
        let varies = |id: &&str| {
            let mut seen = (0..self.table.rows()).filter_map(|row| self.value(id, row));
            seen.next().is_some_and(|first| seen.any(|v| v != first))
        };
        SETTINGS.into_iter().find(varies)
    }

    /// Whether the cells of a column tell series apart: settings, and text that repeats, such as an engine's name.
    fn is_key(&self, index: usize, swept: Option<&str>) -> bool {
        if let Some(column) = self.at(index) {
            return TEXT_KEYS.contains(&column.id) || SETTINGS.contains(&column.id) && Some(column.id) != swept;
        }
        let mut cells: Vec<&str> = self.table.cells(index, SAMPLE).collect();
        let (rows, is_text) = (cells.len(), |c: &&&str| matches!(number::read(c, self.style), Cell::Text));
        let text = cells.iter().filter(is_text).count();
        cells.sort_unstable();
        cells.dedup();
        text * 2 > rows && cells.len() * 2 <= rows.max(2)
    }

    /// The series of the table, in the order of their first rows.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        let swept = self.swept();
        let keys: Vec<usize> = (0..self.table.headers.len()).filter(|i| self.is_key(*i, swept)).collect();
        let mut found: HashMap<Vec<&str>, usize> = HashMap::new();
        let mut all: Vec<Series> = Vec::new();
        for row in 0..self.table.rows() {
            let key = keys.iter().map(|i| self.table.cell(row, *i)).collect();
            let at = *found.entry(key).or_insert(all.len());
            if at == all.len() {
                all.push(Series { label: String::new(), rows: Vec::new() });
            }
            all[at].rows.push(row);
        }
        // A label names what is not the same everywhere.
        let cell = |series: &Series, i: usize| self.table.cell(series.rows[0], i);
        let differs = |i: &usize| all.iter().any(|s| cell(s, *i) != self.table.cell(0, *i));
        let telling: Vec<usize> = keys.into_iter().filter(differs).collect();
        let name = |cell: &str, i: usize| match number::read(cell, self.style) {
            Cell::Number(_) => format!("{} {cell}", self.table.headers[i]),
            _ => cell.to_owned(),
        };
        for series in &mut all {
            let names = telling.iter().map(|i| name(self.table.cell(series.rows[0], *i), *i));
            series.label = names.filter(|n| !n.is_empty()).collect::<Vec<_>>().join(" ");
        }
        all
    }
}
