//! The figures of a column, in the unit of its id, with what their digits leave open.

use crate::audit::header::{Unit, is_text};
use crate::audit::interval::Interval;
use crate::audit::number::{self, Cell, Number, Style};
use crate::audit::table::Table;

/// How it is known what a column is, the surest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
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
    pub(crate) how: How,
    /// Rows whose cell should be a number and is none: `NaN`, `####`.
    pub(crate) broken: Vec<usize>,
    /// Rows whose cell is text.
    pub(crate) unread: Vec<usize>,
    /// Rows whose cell holds several numbers, or one that can be read as two.
    pub(crate) unclear: Vec<usize>,
    /// Times which a printed number is one in the unit of the id.
    factor: f64,
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
        let unnamed = if own.is_time() && how > How::Id && id != "elapsed_s" { 1e-3 } else { own.size };
        let unit = unit.filter(|_| how != How::Id);
        let factor = unit.map_or(unnamed, |u| u.size) / own.size;
        let other = unit.and_then(|u| Some(u.other? / u.size));
        let mut column = Column { factor, other, index, id, how, ..Column::default() };
        if !is_text(id) {
            column.read_cells(table, style, &own);
        }
        column
    }

    fn read_cells(&mut self, table: &Table, style: Option<Style>, own: &Unit) {
        let spaced = |cell| matches!(number::read(cell, style), Cell::Number(n) if n.spaced);
        // Where a space separates thousands, a point or a comma may be either.
        let style = style.filter(|_| !table.cells(self.index, super::SAMPLE).any(spaced));
        let (mut digits, mut precision) = (Vec::with_capacity(table.rows()), 2);
        for (row, cell) in table.cells(self.index, usize::MAX).enumerate() {
            let read = number::read(cell, style);
            let factor = if let Cell::Number(n) = &read { self.factor_of(n, own) } else { None };
            let (mut value, mut half, mut printed) = (f64::NAN, 0.0, (0, 0));
            match (read, factor) {
                (Cell::Number(n), Some(factor)) => {
                    (value, half, printed) = (n.value * factor, n.half * factor, (n.zeros, n.digits));
                    precision = precision.max(n.digits - n.zeros.min(n.digits));
                    self.signed += usize::from(n.plus || n.value < 0.0);
                }
                (Cell::Broken, _) => self.broken.push(row),
                (Cell::Absent, _) => {}
                (Cell::Unclear, _) => self.unclear.push(row),
                (Cell::Number(_) | Cell::Text, _) => self.unread.push(row),
            }
            digits.push(printed);
            self.values.push(value);
            self.halves.push(half as f32);
        }
        let exact = COUNTS.contains(&self.id);
        for ((half, value), (zeros, digits)) in self.halves.iter_mut().zip(&self.values).zip(digits) {
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
        let power = match n.unit {
            "" => return Some(self.factor),
            "k" | "K" => 1,
            "M" => 2,
            "G" | "B" => 3,
            _ => 0,
        };
        if power > 0 && (of_blocks || own.kind.starts_with("count")) {
            return Some(self.factor * if of_blocks { 1024f64 } else { 1e3 }.powi(power));
        }
        let unit = Unit::parse(n.unit)?;
        let size = if of_blocks { unit.other.unwrap_or(unit.size) } else { unit.size };
        (unit.family() == own.family()).then(|| size / own.size)
    }

    /// Times which the printed figure of `cell` is one in the unit of the id.
    pub(crate) fn printed_factor(&self, cell: &str, row: usize, style: Option<Style>) -> f64 {
        match (number::read(cell, style), self.value(row)) {
            (Cell::Number(n), Some(value)) if n.value != 0.0 && !matches!(n.unit, "k" | "K" | "M" | "G" | "B") => {
                value / n.value
            }
            _ => self.factor,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.iter().all(|v| v.is_nan())
    }

    /// Whether most of its figures have a sign.
    pub(crate) fn is_change(&self) -> bool {
        self.signed * 2 > self.values.iter().filter(|v| !v.is_nan()).count()
    }

    /// The figure in `row`, in the unit of the id.
    pub(crate) fn value(&self, row: usize) -> Option<f64> {
        self.values.get(row).copied().filter(|v| !v.is_nan())
    }

    /// What the figure in `row` can have been; `cut` if digits were cut off rather than rounded.
    pub(crate) fn interval(&self, row: usize, cut: bool) -> Option<Interval> {
        Some(Interval::around(self.value(row)?, self.halves[row].into(), cut))
    }

    /// Reads the column with its other kilobyte.
    pub(crate) fn scale(&mut self, times: f64) {
        self.factor *= times;
        self.other = None;
        self.values.iter_mut().for_each(|v| *v *= times);
        self.halves.iter_mut().for_each(|h| *h *= times as f32);
    }
}
