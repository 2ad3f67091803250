//! The figures of a column, in the unit of its id, with what their digits leave open.

use crate::audit::interval::Interval;
use crate::audit::number::{self, Cell, Number, Style};
use crate::audit::table::Table;
use crate::audit::unit::Unit;
use crate::audit::words::is_text;

/// How it is known what a column is, the surest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The user says it.
    Mapped,
    /// Its header is an id of ours.
    Id,
    /// Its header names its subject and its unit.
    Unit,
    /// By words only.
    #[default]
    Words,
}

/// Columns that hold counts, so that whole numbers were not rounded.
const COUNTS: [&str; 8] = ["jobs", "nodes", "threads", "test", "run", "repetition", "warehouses", "rows_per_tx"];

/// A column of a table that is known.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Its place in the table, from 0.
    pub index: usize,
    /// Its id.
    pub id: &'static str,
    /// How that is known.
    pub how: How,
    /// Rows whose cell should be a number and is none: `NaN`, `####`.
    pub broken: Vec<usize>,
    /// Rows whose cell is text.
    pub unread: Vec<usize>,
    /// Rows whose cell holds several numbers, and those that can be read as two.
    pub(crate) several: Vec<usize>,
    pub(crate) ambiguous: Vec<usize>,
    /// Times which a printed number is one in the unit of the id.
    pub(crate) factor: f64,
    /// The factor with the other kilobyte, as a multiple of `factor`, if the header leaves it open.
    pub(crate) other: Option<f64>,
    /// Figures with a sign.
    signed: usize,
    values: Vec<f64>,
    halves: Vec<f32>,
}

impl Column {
    pub(crate) fn read(
        table: &Table,
        style: Option<Style>,
        index: usize,
        (id, how): (&'static str, How),
        unit: Option<&Unit>,
    ) -> Column {
        let own = Unit::of_id(id);
        // A time without a unit is in ms more often than in anything else.
        let unnamed = if own.kind == "time" && how > How::Id && id != "elapsed_s" { 1e-3 } else { own.size };
        let unit = unit.filter(|_| how != How::Id);
        let mut column = Column {
            factor: unit.map_or(unnamed, |u| u.size) / own.size,
            other: unit.and_then(|u| Some(u.other? / u.size)),
            index,
            id,
            how,
            ..Column::default()
        };
        if !is_text(id) {
            column.read_cells(table, style, &own);
        }
        column
    }

    fn read_cells(&mut self, table: &Table, style: Option<Style>, own: &Unit) {
        let spaced = |cell| matches!(number::read(cell, style), Cell::Number(n) if n.spaced);
        // Where a space separates thousands, a point or a comma may be either.
        let style = style.filter(|_| !table.cells(self.index, super::SAMPLE).any(spaced));
        let mut zeros: Vec<(u8, u8)> = Vec::with_capacity(table.rows());
        let mut precision = 2;
        for (row, cell) in table.cells(self.index, usize::MAX).enumerate() {
            let read = number::read(cell, style);
            let factor = if let Cell::Number(n) = &read { self.factor_of(n, own) } else { None };
            let (mut value, mut half, mut digits) = (f64::NAN, 0.0, (0, 0));
            match (read, factor) {
                (Cell::Number(n), Some(factor)) => {
                    (value, half, digits) = (n.value * factor, n.half * factor, (n.zeros, n.digits));
                    precision = precision.max(n.digits - n.zeros.min(n.digits));
                    self.signed += usize::from(n.plus || n.value < 0.0);
                }
                (Cell::Broken, _) => self.broken.push(row),
                (Cell::Absent, _) => {}
                (Cell::Several, _) => self.several.push(row),
                (Cell::Ambiguous, _) => self.ambiguous.push(row),
                (Cell::Number(_) | Cell::Text, _) => self.unread.push(row),
            }
            self.values.push(value);
            self.halves.push(half as f32);
            zeros.push(digits);
        }
        let exact = COUNTS.contains(&self.id);
        for ((half, value), (zeros, digits)) in self.halves.iter_mut().zip(&self.values).zip(zeros) {
            // Zeros at the end are digits if another cell has as many of them.
            *half *= 10f32.powi(zeros.min(digits.saturating_sub(precision)).into());
            if exact && value.fract() == 0.0 {
                *half = 0.0;
            }
        }
    }

    /// The factor of a cell, which may have a unit of its own.
    fn factor_of(&self, n: &Number<'_>, own: &Unit) -> Option<f64> {
        // The k of a block has 1,024 bytes.
        let of_blocks = self.id == "block_bytes";
        let thousand: f64 = if of_blocks { 1024.0 } else { 1e3 };
        let power = match n.unit {
            "" => return Some(self.factor),
            "k" | "K" => 1,
            "M" => 2,
            "G" | "B" => 3,
            _ => 0,
        };
        if power > 0 && (of_blocks || own.kind.contains('.')) {
            return Some(self.factor * thousand.powi(power));
        }
        let unit = Unit::parse(n.unit)?;
        let family = |kind: &str| kind.split('.').next().unwrap_or("").replace("size", "bytes");
        let size = if of_blocks { unit.other.unwrap_or(unit.size) } else { unit.size };
        (family(&unit.kind) == family(&own.kind)).then(|| size / own.size)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.iter().all(|v| v.is_nan())
    }

    /// Whether most of its figures have a sign.
    pub(crate) fn is_change(&self) -> bool {
        self.signed * 2 > self.values.iter().filter(|v| !v.is_nan()).count()
    }

    /// The figure in `row`, in the unit of the id.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<f64> {
        self.values.get(row).copied().filter(|v| !v.is_nan())
    }

    /// What the figure in `row` can have been; `cut` if digits were cut off rather than rounded.
    pub(crate) fn interval(&self, row: usize, cut: bool) -> Option<Interval> {
        Some(Interval::around(self.value(row)?, self.halves[row].into(), cut))
    }

    pub(crate) fn scale(&mut self, times: f64) {
        self.factor *= times;
        self.other = None;
        self.values.iter_mut().for_each(|v| *v *= times);
        self.halves.iter_mut().for_each(|h| *h *= times as f32);
    }
}
