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
        let varies = |id: &str| {
            let mut seen = (0..self.table.rows()).filter_map(|row| self.value(id, row));
            let first = seen.next();
            seen.any(|v| Some(v) != first)
        };
        SETTINGS.into_iter().find(|id| varies(id))
    }

    /// Columns of the table whose cells tell series apart.
    fn keys(&self) -> Vec<usize> {
        let swept = self.swept();
        let known = |id: &&str| self.column(id).map(|c| c.index);
        let mut keys: Vec<usize> = TEXT_KEYS.iter().filter_map(known).collect();
        keys.extend(SETTINGS.iter().filter(|id| Some(**id) != swept).filter_map(known));
        // Other columns of text that repeat, such as an engine's name.
        let rows = self.table.rows().min(SAMPLE);
        for index in (0..self.table.headers.len()).filter(|i| !self.columns.iter().any(|c| c.index == *i)) {
            let mut cells: Vec<&str> = self.table.cells(index, SAMPLE).collect();
            let text = cells.iter().filter(|c| matches!(number::read(c, self.style), Cell::Text)).count();
            cells.sort_unstable();
            cells.dedup();
            if text * 2 > rows && cells.len() * 2 <= rows.max(2) {
                keys.push(index);
            }
        }
        keys.sort_unstable();
        keys
    }

    /// The series of the table, in the order of their first rows.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        let keys = self.keys();
        let mut found: HashMap<String, usize> = HashMap::new();
        let mut all: Vec<Vec<usize>> = Vec::new();
        let mut key = String::new();
        for row in 0..self.table.rows() {
            key.clear();
            for index in &keys {
                key.push_str(self.table.cell(row, *index));
                key.push('\u{1f}');
            }
            match found.get(&key) {
                Some(at) => all[*at].push(row),
                None => {
                    found.insert(key.clone(), all.len());
                    all.push(vec![row]);
                }
            }
        }
        // A label names what is not the same everywhere.
        let differs = |i: &usize| all.iter().any(|rows| self.table.cell(rows[0], *i) != self.table.cell(0, *i));
        let telling: Vec<usize> = keys.into_iter().filter(differs).collect();
        let label = |row: usize| {
            let name = |i: &usize| {
                let cell = self.table.cell(row, *i);
                let number = matches!(number::read(cell, self.style), Cell::Number(_));
                if number { format!("{} {cell}", self.table.headers[*i]) } else { cell.to_owned() }
            };
            telling.iter().map(name).filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
        };
        all.into_iter().map(|rows| Series { label: label(rows[0]), rows }).collect()
    }
}
