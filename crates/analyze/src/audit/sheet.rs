//! A table with its known columns, and their figures in the units of their ids, with what their digits leave open.

use std::cell::RefCell;
use std::collections::HashMap;

use loadline_model::format::did_you_mean;
use serde::Deserialize;

use super::finding::{AuditError, Finding, Graded, Reason, Severity, TABLE};
use super::header::{Header, Unit, find_column, is_text, known, words};
use super::number::{self, Cell, Interval, Number, Style};
use super::table::Table;

/// Rows by which is decided what a column is.
pub(crate) const SAMPLE: usize = 20_000;

/// How it is known what a column is, the surest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    /// The user says it.
    Mapped,
    /// Header is an id of ours.
    #[default]
    Id,
    /// Header names its subject and its unit.
    Unit,
    Words,
}

const THROUGHPUTS: [&str; 2] = ["commit_throughput_tps", "tx_per_s"];

/// The power of a thousand that a letter behind a figure stands for.
fn power(unit: &str) -> Option<i32> {
    [("k", 1), ("K", 1), ("M", 2), ("G", 3), ("B", 3)].into_iter().find(|(letter, _)| *letter == unit).map(|p| p.1)
}

/// A column of a table that is known.
#[derive(Debug, Clone, Default)]
pub struct Column {
    pub(crate) index: usize,
    pub(crate) id: &'static str,
    pub(crate) how: How,
    /// Rows whose cell should be a number and is none: `NaN`, `####`.
    pub(crate) broken: Vec<usize>,
    /// Rows whose cell is text, or has another unit.
    pub(crate) unread: Vec<usize>,
    /// Rows whose cell holds several numbers, or one that can be read as two.
    unclear: Vec<usize>,
    /// Times which a printed number is one in the unit of the id.
    pub(crate) factor: f64,
    /// The factor with the other kilobyte, as a multiple of `factor`, if the header leaves it open.
    pub(crate) other: Option<f64>,
    signed: usize,
    /// Figures in the unit of the id, NaN where there is none, and half of their last digits.
    figures: Vec<(f64, f32)>,
}

impl Column {
    fn read(sheet: &Sheet<'_>, index: usize, (id, how): (&'static str, How), unit: Option<&Unit>) -> Column {
        let own = Unit::of_id(id);
        // A time without a unit is in ms more often than in anything else.
        let unnamed = if own.is_time() && how > How::Id && id != "elapsed_s" { 1e-3 } else { own.size };
        let unit = if how != How::Id { unit } else { None };
        let factor = unit.map_or(unnamed, |u| u.size) / own.size;
        let other = unit.and_then(|u| Some(u.other? / u.size));
        let mut column = Column { factor, other, index, id, how, ..Column::default() };
        if is_text(id) {
            return column;
        }
        let spaced = |cell| matches!(number::read(cell, sheet.style), Cell::Number(n) if n.spaced);
        // Where a space separates thousands, a point or a comma may be either.
        let style = if !sheet.table.cells(index, SAMPLE).any(spaced) { sheet.style } else { None };
        let figures = || sheet.table.cells(index, usize::MAX).map(move |cell| number::read(cell, style));
        let digits = |cell| if let Cell::Number(n) = cell { n.digits - n.zeros.min(n.digits) } else { 0 };
        let precision = figures().map(digits).max().unwrap_or(0).max(2);
        let is_count = words("count").any(|count| count == id);
        for (row, read) in figures().enumerate() {
            let factor = if let Cell::Number(n) = &read { column.factor_of(n, &own) } else { None };
            let (mut value, mut half) = (f64::NAN, 0.0);
            match (read, factor) {
                (Cell::Number(n), Some(factor)) => {
                    // Zeros at the end are digits if another cell has as many of them.
                    let open = n.zeros.min(n.digits.saturating_sub(precision));
                    (value, half) = (n.value * factor, n.half * factor * 10f64.powi(open.into()));
                    column.signed += usize::from(n.plus || n.value < 0.0);
                }
                (Cell::Broken, _) => column.broken.push(row),
                (Cell::Absent, _) => {}
                (Cell::Unclear, _) => column.unclear.push(row),
                (Cell::Number(_) | Cell::Text, _) => column.unread.push(row),
            }
            column.figures.push((value, if is_count && value.fract() == 0.0 { 0.0 } else { half as f32 }));
        }
        column
    }

    fn factor_of(&self, n: &Number<'_>, own: &Unit) -> Option<f64> {
        // The k of a block has 1,024 bytes.
        let of_blocks = self.id == "block_bytes";
        if n.unit.is_empty() {
            return Some(self.factor);
        } else if let Some(power) = power(n.unit)
            && (of_blocks || own.kind.starts_with("count"))
        {
            return Some(self.factor * if of_blocks { 1024f64 } else { 1e3 }.powi(power));
        }
        let unit = Unit::parse(n.unit)?;
        let size = if of_blocks { unit.other.unwrap_or(unit.size) } else { unit.size };
        (unit.family() == own.family()).then(|| size / own.size)
    }

    /// Times which the printed figure of `cell` is one in the unit of the id.
    pub(crate) fn printed_factor(&self, cell: &str, row: usize, style: Option<Style>) -> f64 {
        let Cell::Number(n) = number::read(cell, style) else { return self.factor };
        let is_scaled = n.value == 0.0 || power(n.unit).is_some();
        if is_scaled { self.factor } else { self.value(row).map_or(self.factor, |value| value / n.value) }
    }

    pub(crate) fn value(&self, row: usize) -> Option<f64> {
        self.figures.get(row).map(|(value, _)| *value).filter(|value| !value.is_nan())
    }

    /// Interval of the figure in `row`; `cut` if digits were cut off rather than rounded.
    pub(crate) fn interval(&self, row: usize, cut: bool) -> Option<Interval> {
        Some(Interval::around(self.value(row)?, self.figures[row].1.into(), cut))
    }

    pub(crate) fn scale(&mut self, times: f64) {
        self.factor *= times;
        self.figures.iter_mut().for_each(|(value, half)| (*value, *half) = (*value * times, *half * times as f32));
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(Vec<(String, &'static str)>);

impl Mapping {
    /// Parses `HEADER=ID,…`. A header may hold commas.
    pub fn parse(text: &str) -> Result<Mapping, AuditError> {
        let (mut all, mut open) = (Mapping::default(), String::new());
        for part in text.split(',') {
            open += part;
            let Some((header, id)) = open.rsplit_once('=') else {
                open.push(',');
                continue;
            };
            let (header, id) = (header.trim(), id.trim());
            let unknown = || AuditError::Unknown(id.to_owned(), did_you_mean(id, known()));
            let found = find_column(id).ok_or_else(unknown)?;
            if header.is_empty() {
                return Err(AuditError::Mapping(part.to_owned()));
            } else if all.id(header).is_some() || all.0.iter().any(|(_, id)| *id == found) {
                let twice = if all.id(header).is_some() { header } else { id };
                return Err(AuditError::Twice(twice.to_owned()));
            }
            all.0.push((header.to_owned(), found));
            open.clear();
        }
        if open.is_empty() { Ok(all) } else { Err(AuditError::Mapping(open.trim_end_matches(',').to_owned())) }
    }

    pub fn check(&self, tables: &[Table]) -> Result<(), AuditError> {
        let there = || tables.iter().flat_map(|t| &t.headers);
        let missing = self.0.iter().find(|(header, _)| !there().any(|h| is_same(h, header)));
        missing.map_or(Ok(()), |(header, _)| Err(AuditError::NoColumn(header.clone(), quoted(there()))))
    }

    pub(crate) fn id(&self, header: &str) -> Option<&'static str> {
        self.0.iter().find(|(h, _)| is_same(h, header)).map(|(_, id)| *id)
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Whether two names are the same but for case and spaces around them.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

/// A table with its known columns, and all that laws ask about it.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    pub(crate) table: &'a Table,
    /// Known columns, in their order.
    pub columns: Vec<Column>,
    pub(crate) style: Option<Style>,
    /// Rows that belong together: the tests of one workload on one platform, over rising jobs or another setting.
    pub(crate) series: Vec<Vec<usize>>,
    /// The setting that changes within a series: `jobs`, mostly.
    pub(crate) swept: Option<&'static str>,
    pub(crate) jobs: Vec<&'static str>,
    /// Columns whose cells tell one series from another, as places in the table.
    pub(super) telling: Vec<usize>,
    pub(super) found: RefCell<Vec<Finding>>,
    pub(super) counts: RefCell<HashMap<Graded, usize>>,
}

impl<'a> Sheet<'a> {
    /// Finds out what the columns of `table` are: what `mapping` says, ids of ours, units with a subject, then words.
    pub fn new(table: &'a Table, mapping: &Mapping) -> Sheet<'a> {
        let all = 0..table.headers.len();
        let style = number::style(all.clone().flat_map(|c| table.cells(c, SAMPLE)));
        let (columns, series, telling, found) = Default::default();
        let (swept, jobs, counts) = (None, vec!["jobs"], RefCell::default());
        let mut sheet = Sheet { table, columns, style, series, swept, jobs, telling, found, counts };
        let mut headers: Vec<Header> = all.clone().map(|c| sheet.header(c)).collect();
        let ranks = headers.iter().filter(|h| h.unit.is_none() && h.is_rank()).count();
        headers.iter_mut().for_each(|h| h.among_ranks = ranks > 2);
        // What one word alone means is known by the other columns.
        let is_alone = |index: usize| headers[index].unit.is_none() && headers[index].words.len() == 1;
        let is_time = |id: &str| Unit::of_id(id).is_time();
        let mut found: Vec<_> = all.clone().filter_map(|i| sheet.meaning(i, &headers[i], mapping)).collect();
        found.sort_by_key(|(how, index, _)| (*how, is_alone(*index)));
        let mut named = Vec::new();
        for (how, index, ids) in found {
            // `p99` alone may be of anything, unless another column is a time, or several are ranks without a unit.
            let alone = how == How::Words && is_alone(index) && is_time(ids[0]);
            let is_known = !alone || ranks > 2 || sheet.columns.iter().any(|c| is_time(c.id));
            named.extend((is_known && sheet.bind(index, &headers[index], &ids, how)).then_some(index));
        }
        // Shares of the CPU time may have headers of a word each: `user`, `sys`, `idle`.
        let beside_cpu = sheet.columns.iter().any(|c| c.id.starts_with("cpu_"));
        for index in all.clone().filter(|i| beside_cpu && is_alone(*i)) {
            let share = Header { unit: Some(Unit::of_id("pct")), ..headers[index].clone() };
            let ids = share.meaning(true).filter(|ids| ids[0].starts_with("cpu_") && sheet.is_numeric(index));
            named.extend(ids.filter(|ids| sheet.bind(index, &share, ids, How::Words)).map(|_| index));
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
        let unknown = all.filter(|i| !named.contains(i) && sheet.is_numeric(*i));
        let unknown = quoted(unknown.map(|i| &table.headers[i]));
        if !unknown.is_empty() {
            sheet.remark(false, Reason::Unknown(unknown));
        }
        sheet.find_series();
        sheet
    }

    /// A header, with the unit of its cells where it names none.
    fn header(&self, index: usize) -> Header {
        let mut header = Header::parse(&self.table.headers[index]);
        if header.unit.is_none() {
            let unit = |cell| match number::read(cell, self.style) {
                Cell::Number(n) if !matches!(n.unit, "" | "x") && power(n.unit).is_none() => Unit::parse(n.unit),
                _ => None,
            };
            let all: Vec<Unit> = self.table.cells(index, SAMPLE).filter_map(unit).collect();
            let first = all.first().filter(|f| all.iter().all(|u| u.kind == f.kind));
            header.unit = if all.len() * 2 > self.table.rows().min(SAMPLE) { first.cloned() } else { None };
        }
        header
    }

    /// How it is known what a column is, its place, and its id, with one that it has if there is that column already.
    fn meaning(&self, index: usize, header: &Header, mapping: &Mapping) -> Option<(How, usize, Vec<&'static str>)> {
        let text = self.table.headers[index].as_str();
        if let Some(id) = mapping.id(text) {
            return Some((How::Mapped, index, vec![id]));
        }
        let rate = if text == "target" && self.is_numeric(index) { Some("rate_tps") } else { None };
        if let Some(id) = rate.or_else(|| find_column(text)) {
            return Some((How::Id, index, vec![id]));
        }
        // A unit says what it means, unless it is all of the header.
        let is_by_unit = header.unit.is_some() && !header.words.is_empty();
        Some((if is_by_unit { How::Unit } else { How::Words }, index, header.meaning(true)?))
    }

    /// Takes a column for the first of `ids` that is not there yet; returns whether it is used, or a remark says why not.
    fn bind(&mut self, index: usize, header: &Header, ids: &[&'static str], how: How) -> bool {
        let absent = |cell| matches!(number::read(cell, self.style), Cell::Absent);
        // A second throughput is the same figure once more, and beside a time of transactions that of commits is a part.
        let Some(id) = ids.iter().copied().find(|id| !self.has(id)).or(ids.last().copied()) else { return false };
        if self.at(index).is_some() || self.table.cells(index, SAMPLE).all(absent) {
            return self.at(index).is_some();
        }
        let text = self.table.headers[index].clone();
        if let Some(first) = self.column(id) {
            self.remark(false, Reason::SecondColumn(text, id, self.table.headers[first.index].clone()));
            return true;
        }
        let column = Column::read(self, index, (id, how), header.unit.as_ref());
        let figures = column.figures.iter().filter(|(value, _)| !value.is_nan()).count();
        if how > How::Id && column.signed * 2 > figures {
            self.remark(false, Reason::Changes(text));
            return true;
        }
        if let Some(row) = column.unclear.first() {
            let cell = self.table.cell(*row, index).to_owned();
            self.remark(true, Reason::Unclear(text.clone(), column.unclear.len(), cell));
        }
        if figures > 0 && how > How::Id {
            let unit = header.unit.as_ref().map_or(String::new(), |u| format!(" in {}", u.text));
            self.remark(false, Reason::TakenFor(text, id, unit));
        }
        let is_used = figures > 0 || is_text(id);
        let is_said = is_used || !column.unclear.is_empty();
        self.columns.extend(is_used.then_some(column));
        is_said
    }

    /// Platforms that stand side by side: columns of one meaning, apart by words that nobody knows.
    pub(crate) fn side_by_side(&self) -> Option<AuditError> {
        const RATES: [&str; 5] = ["commit_throughput_tps", "tx_per_s", "queries_per_s", "rows_per_s", "io_per_s"];
        // Ids of columns of figures that are known by words, or would be but for unknown ones, with their headers.
        let mut found: Vec<(&'static str, &String, bool)> = Vec::new();
        for (index, text) in self.table.headers.iter().enumerate().filter(|(index, _)| self.is_numeric(*index)) {
            let header = Header::parse(text);
            let unknown = header.has_unknown_words();
            let id = match self.at(index) {
                Some(column) => (column.how > How::Id).then_some(column.id),
                None if unknown => header.meaning(false).map(|ids| ids[0]),
                None => None,
            };
            found.extend(id.filter(|id| !is_text(id)).map(|id| (id, text, unknown)));
        }
        let of = |id: &'static str| found.iter().filter(move |(other, ..)| *other == id);
        let mut ids: Vec<&str> = found.iter().filter(|(id, _, u)| *u && of(id).count() > 1).map(|f| f.0).collect();
        ids.dedup();
        let several = if ids.len() > 1 { ids.first() } else { None };
        let first = ids.iter().find(|id| RATES.contains(id)).or(several)?;
        Some(AuditError::SideBySide(quoted(of(first).map(|(_, text, _)| *text))))
    }

    fn is_numeric(&self, index: usize) -> bool {
        let none = |cell: &&str| matches!(number::read(cell, self.style), Cell::Text | Cell::Absent | Cell::Broken);
        self.table.cells(index, SAMPLE).filter(none).count() * 4 <= self.table.rows().min(SAMPLE)
    }

    fn remark(&self, odd: bool, reason: Reason) {
        self.about(None, (TABLE, if odd { Severity::Warning } else { Severity::Info }), &[], reason);
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

    /// The figure of column `id` in `row`, counted from 0, in the unit of the id; of `tps`, either throughput.
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.column(if id == "tps" { self.throughput()? } else { id })?.value(row)
    }

    /// The text of column `id` in `row`; empty if there is none.
    pub(crate) fn text(&self, id: &str, row: usize) -> &'a str {
        self.column(id).map_or("", |c| self.table.cell(row, c.index))
    }
}
