//! Figures of one test per second.

use serde::{Deserialize, Serialize};

/// Figures over time. Column 0 is `t_s`, seconds since the window start (negative during warm-up).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Column ids, e.g. `t_s`, `commit_throughput_tps`, `redo_mib_per_s`, `cpu_busy_pct`.
    pub columns: Vec<String>,
    /// Rows; a cell that was not measured is `None`.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl Series {
    /// All cells of column `id`, or `None` if there is no such column.
    pub fn column(&self, id: &str) -> Option<Vec<Option<f64>>> {
        let at = self.columns.iter().position(|c| c == id)?;
        Some(self.rows.iter().map(|row| row.get(at).copied().flatten()).collect())
    }
}
