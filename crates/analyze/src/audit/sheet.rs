//! A table with its known columns, and their figures in the units of their ids, with what their digits leave open.

use super::finding::{Reason, Shape};
use super::header::{Header, Meaning, Unit, find_column, is_text};
use super::interval::Interval;
use super::mapping::Mapping;
use super::number::{self, Cell, Number, Style};
use super::table::{Remark, Table};

/// Rows by which is decided what a column is.
pub(crate) const SAMPLE: usize = 20_000;

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

const THROUGHPUTS: [&str; 2] = ["commit_throughput_tps", "tx_per_s"];
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
    pub(crate) factor: f64,
    /// The factor with the other kilobyte, as a multiple of `factor`, if the header leaves it open.
    pub(crate) other: Option<f64>,
    signed: usize,
    values: Vec<f64>,
    halves: Vec<f32>,
}

impl Column {
    fn read(sheet: &Sheet<'_>, index: usize, (id, how): (&'static str, How), unit: Option<&Unit>) -> Column {
        let own = Unit::of_id(id);
        // A time without a unit is in ms more often than in anything else.
        let unnamed = if own.is_time() && how > How::Id && id != "elapsed_s" { 1e-3 } else { own.size };
        let unit = unit.filter(|_| how != How::Id);
        let factor = unit.map_or(unnamed, |u| u.size) / own.size;
        let other = unit.and_then(|u| Some(u.other? / u.size));
        let mut column = Column { factor, other, index, id, how, ..Column::default() };
        if !is_text(id) {
            column.read_cells(sheet.table, sheet.style, &own);
        }
        column
    }

    fn read_cells(&mut self, table: &Table, style: Option<Style>, own: &Unit) {
        let spaced = |cell| matches!(number::read(cell, style), Cell::Number(n) if n.spaced);
        // Where a space separates thousands, a point or a comma may be either.
        let style = style.filter(|_| !table.cells(self.index, SAMPLE).any(spaced));
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
        let Cell::Number(n) = number::read(cell, style) else { return self.factor };
        let is_scaled = n.value == 0.0 || matches!(n.unit, "k" | "K" | "M" | "G" | "B");
        self.value(row).filter(|_| !is_scaled).map_or(self.factor, |value| value / n.value)
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

/// A table with its known columns.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its known columns, in their order.
    pub columns: Vec<Column>,
    /// What was assumed, and what was odd.
    pub remarks: Vec<Remark>,
    pub(crate) style: Option<Style>,
}

impl<'a> Sheet<'a> {
    /// Finds out what the columns of `table` are: what `mapping` says, ids of ours, units with a subject, then words.
    #[must_use]
    pub fn new(table: &'a Table, mapping: &Mapping) -> Sheet<'a> {
        let cells = (0..table.headers.len()).flat_map(|c| table.cells(c, SAMPLE));
        let mut sheet = Sheet { table, columns: Vec::new(), remarks: Vec::new(), style: number::style(cells) };
        let mut headers: Vec<Header> = (0..table.headers.len()).map(|c| sheet.header(c)).collect();
        let ranks = headers.iter().filter(|h| h.unit.is_none() && h.is_rank()).count();
        headers.iter_mut().for_each(|h| h.among_ranks = ranks > 2);
        let mut found: Vec<_> = headers.iter().enumerate().filter_map(|(i, h)| sheet.meaning(i, h, mapping)).collect();
        // What one word alone means is known by the other columns.
        let is_alone = |index: usize| headers[index].unit.is_none() && headers[index].words.len() == 1;
        found.sort_by_key(|(how, index, _)| (*how, is_alone(*index)));
        let is_time = |id: &str| Unit::of_id(id).is_time();
        for (how, index, meaning) in found {
            // `p99` alone may be of anything, unless another column is a time, or several are ranks without a unit.
            let alone = how == How::Words && is_alone(index);
            if !alone || !is_time(meaning.id) || ranks > 2 || sheet.columns.iter().any(|c| is_time(c.id)) {
                sheet.bind(index, &headers[index], meaning, how);
            }
        }
        // Shares of the CPU time may have headers of a word each: `user`, `sys`, `idle`.
        let beside_cpu = sheet.columns.iter().any(|c| c.id.starts_with("cpu_"));
        let is_share = |i: &usize| beside_cpu && is_alone(*i) && sheet.is_numeric(*i);
        for index in (0..headers.len()).filter(is_share).collect::<Vec<_>>() {
            let share = Header { unit: Some(Unit::of_id("pct")), ..headers[index].clone() };
            if let Some(meaning) = share.meaning(true).filter(|found| found.id.starts_with("cpu_")) {
                sheet.bind(index, &share, meaning, How::Words);
            }
        }
        // Without a column of jobs, threads are the jobs; without one of transactions, new orders are all that is known of them.
        for (id, wanted) in [("threads", &["jobs"][..]), ("new_orders_per_s", &THROUGHPUTS[..])] {
            let is_there = wanted.iter().any(|id| sheet.has(id));
            if let Some(column) = sheet.columns.iter_mut().find(|c| !is_there && c.id == id) {
                column.id = wanted[0];
                let text = table.headers[column.index].clone();
                sheet.remark(false, Reason::TakenFor(text, wanted[0], String::new()));
            }
        }
        sheet.columns.sort_by_key(|c| c.index);
        let unknown = (0..headers.len()).filter(|i| sheet.at(*i).is_none() && sheet.is_numeric(*i));
        let unknown: Vec<String> = unknown.map(|i| format!("'{}'", table.headers[i])).collect();
        if !unknown.is_empty() {
            sheet.remark(false, Reason::Unknown(unknown.join(", ")));
        }
        sheet
    }

    /// A header, with the unit of its cells where it names none.
    fn header(&self, index: usize) -> Header {
        let mut header = Header::parse(&self.table.headers[index]);
        if header.unit.is_none() {
            let unit = |cell| match number::read(cell, self.style) {
                Cell::Number(n) if !matches!(n.unit, "" | "k" | "K" | "M" | "G" | "B" | "x") => Unit::parse(n.unit),
                _ => None,
            };
            let all: Vec<Unit> = self.table.cells(index, SAMPLE).filter_map(unit).collect();
            let first = all.first().filter(|f| all.iter().all(|u| u.kind == f.kind));
            header.unit = first.filter(|_| all.len() * 2 > self.table.rows().min(SAMPLE)).cloned();
        }
        header
    }

    /// How it is known what a column is, its place, and what it is.
    fn meaning(&self, index: usize, header: &Header, mapping: &Mapping) -> Option<(How, usize, Meaning)> {
        let text = self.table.headers[index].as_str();
        let rate = Some("rate_tps").filter(|_| text == "target" && self.is_numeric(index));
        if let Some(id) = mapping.id(text) {
            return Some((How::Mapped, index, Meaning { id, second: None }));
        }
        if let Some(id) = rate.or_else(|| find_column(text)) {
            return Some((How::Id, index, Meaning { id, second: None }));
        }
        // A unit says what it means, unless it is all of the header.
        let is_by_unit = header.unit.is_some() && (header.bracketed || !header.words.is_empty());
        let how = if is_by_unit { How::Unit } else { How::Words };
        Some((how, index, header.meaning(true)?))
    }

    fn bind(&mut self, index: usize, header: &Header, Meaning { id, second }: Meaning, how: How) {
        let absent = |cell| matches!(number::read(cell, self.style), Cell::Absent);
        if self.at(index).is_some() || self.table.cells(index, SAMPLE).all(absent) {
            return;
        }
        // A second throughput is the same figure once more, and beside a time of transactions that of commits is a part.
        let id = second.filter(|_| self.has(id)).unwrap_or(id);
        let text = self.table.headers[index].clone();
        if let Some(first) = self.column(id) {
            return self.remark(false, Reason::SecondColumn(text, id, self.table.headers[first.index].clone()));
        }
        let column = Column::read(self, index, (id, how), header.unit.as_ref());
        if !is_text(id) {
            let figures = column.values.iter().filter(|v| !v.is_nan()).count();
            if how > How::Id && column.signed * 2 > figures {
                return self.remark(false, Reason::Changes(text));
            }
            if let Some(row) = column.unclear.first() {
                let cell = self.table.cell(*row, index).to_owned();
                self.remark(true, Reason::Unclear(text.clone(), column.unclear.len(), cell));
            }
            if figures == 0 {
                return;
            }
            if how > How::Id {
                let unit = header.unit.as_ref().map_or(String::new(), |u| format!(" in {}", u.text));
                self.remark(false, Reason::TakenFor(text, id, unit));
            }
        }
        self.columns.push(column);
    }

    /// Platforms that stand side by side: columns of one meaning, apart by words that nobody knows.
    pub(crate) fn side_by_side(&self) -> Option<Shape> {
        const RATES: [&str; 5] = ["commit_throughput_tps", "tx_per_s", "queries_per_s", "rows_per_s", "io_per_s"];
        // Ids of columns of figures that are known by words, or would be but for unknown ones, with their headers.
        let mut found: Vec<(&'static str, &String, bool)> = Vec::new();
        for (index, text) in self.table.headers.iter().enumerate().filter(|(index, _)| self.is_numeric(*index)) {
            let header = Header::parse(text);
            let unknown = header.has_unknown_words();
            let id = match self.at(index) {
                Some(column) => Some(column.id).filter(|_| column.how > How::Id),
                None => header.meaning(false).map(|found| found.id).filter(|_| unknown),
            };
            found.extend(id.filter(|id| !is_text(id)).map(|id| (id, text, unknown)));
        }
        let of = |id: &'static str| found.iter().filter(move |(other, ..)| *other == id);
        let mut ids: Vec<&'static str> =
            found.iter().filter(|(id, _, u)| *u && of(id).count() > 1).map(|f| f.0).collect();
        ids.dedup();
        let several = ids.first().filter(|_| ids.len() > 1);
        let first = ids.iter().find(|id| RATES.contains(id)).or(several)?;
        Some(Shape::SideBySide(of(first).map(|(_, text, _)| (*text).clone()).collect()))
    }

    fn is_numeric(&self, index: usize) -> bool {
        let none = |cell: &&str| matches!(number::read(cell, self.style), Cell::Text | Cell::Absent | Cell::Broken);
        self.table.cells(index, SAMPLE).filter(none).count() * 4 <= self.table.rows().min(SAMPLE)
    }

    fn remark(&mut self, odd: bool, reason: Reason) {
        self.remarks.push(Remark { row: None, odd, reason });
    }

    /// The column of throughput in transactions per second that the table has.
    pub(crate) fn throughput(&self) -> Option<&'static str> {
        THROUGHPUTS.into_iter().find(|id| self.has(id))
    }

    pub(crate) fn column(&self, id: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Column> {
        self.columns.iter().find(|c| c.index == index)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.column(id).is_some()
    }

    /// The figure of column `id` in `row`, counted from 0, in the unit of the id.
    #[must_use]
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.column(id)?.value(row)
    }

    /// The text of column `id` in `row`; empty if there is none.
    pub(crate) fn text(&self, id: &str, row: usize) -> &'a str {
        self.column(id).map_or("", |c| self.table.cell(row, c.index))
    }
}
