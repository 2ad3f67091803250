//! A table with its known columns.

mod column;
mod series;

pub use column::{Column, How};
pub use series::Series;
pub(crate) use series::{SETTINGS, TEXT_KEYS};

use super::header::Header;
use super::mapping::Mapping;
use super::number::{self, Cell, Style};
use super::reason::{Reason, Shape};
use super::table::{Remark, Table};
use super::unit::Unit;
use super::words::{find_column, is_text};

/// Rows by which is decided what a column is.
pub(crate) const SAMPLE: usize = 20_000;

/// A table with its known columns.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its known columns, in their order.
    pub columns: Vec<Column>,
    /// What was assumed, and what was odd.
    pub remarks: Vec<Remark>,
    style: Option<Style>,
}

impl<'a> Sheet<'a> {
    /// Finds out what the columns of `table` are: what `mapping` says, ids of ours, units with a subject, then words.
    #[must_use]
    pub fn new(table: &'a Table, mapping: &Mapping) -> Sheet<'a> {
        let cells = (0..table.headers.len()).flat_map(|c| table.cells(c, SAMPLE));
        let mut sheet = Sheet { table, columns: Vec::new(), remarks: Vec::new(), style: number::style(cells) };
        let headers: Vec<Header> = (0..table.headers.len()).map(|c| sheet.header(c)).collect();
        for how in [How::Mapped, How::Id, How::Unit, How::Words] {
            for (index, header) in headers.iter().enumerate() {
                let text = table.headers[index].as_str();
                let meaning = header.meaning(true);
                let id = match how {
                    How::Mapped => mapping.id(text),
                    How::Id if text == "target" && sheet.is_numeric(index) => Some("rate_tps"),
                    How::Id => find_column(text),
                    How::Unit => meaning.filter(|_| header.is_by_unit()),
                    How::Words => meaning.filter(|id| !header.is_by_unit() && sheet.may_be(header, id)),
                };
                id.into_iter().for_each(|id| sheet.bind(index, header, id, how));
            }
        }
        sheet.bind_shares(&headers);
        sheet.threads_are_jobs();
        sheet.columns.sort_by_key(|c| c.index);
        let unknown = |i: &usize| sheet.at(*i).is_none() && sheet.is_numeric(*i);
        let unknown: Vec<_> = (0..headers.len()).filter(unknown).map(|i| format!("'{}'", table.headers[i])).collect();
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

    /// Whether words alone can mean `id`: `p99` may be of anything, unless another column is a time.
    fn may_be(&self, header: &Header, id: &str) -> bool {
        let is_time = |id: &str| Unit::of_id(id).kind == "time";
        header.unit.is_some() || header.words.len() > 1 || !is_time(id) || self.columns.iter().any(|c| is_time(c.id))
    }

    fn bind(&mut self, index: usize, header: &Header, id: &'static str, how: How) {
        let absent = |cell| matches!(number::read(cell, self.style), Cell::Absent);
        if self.at(index).is_some() || self.table.cells(index, SAMPLE).all(absent) {
            return;
        }
        // NOPM and TPM count different things.
        let per_second = header.unit.as_ref().is_none_or(|u| u.size >= 1.0);
        let of_commit = header.words.iter().any(|w| w == "commit");
        // A second throughput is the same figure once more, and beside a time of transactions that of commits is a part.
        let id = match id {
            "commit_throughput_tps" if how > How::Id && self.has(id) && per_second => "tx_per_s",
            "commit_latency_ms" if how > How::Id && self.has(id) && of_commit => "commit_time_ns_mean",
            id => id,
        };
        let text = &self.table.headers[index];
        if let Some(first) = self.column(id) {
            let other = &self.table.headers[first.index];
            return self.remark(false, Reason::SecondColumn(text.clone(), id, other.clone()));
        }
        let column = Column::read(self.table, self.style, index, (id, how), header.unit.as_ref());
        if !is_text(id) {
            if how > How::Id && column.is_change() {
                return self.remark(false, Reason::Changes(text.clone()));
            }
            if let Some(row) = column.several.first() {
                self.remark(
                    true,
                    Reason::Several(text.clone(), column.several.len(), self.table.cell(*row, index).to_owned()),
                );
            }
            if let Some(row) = column.ambiguous.first() {
                self.remark(
                    true,
                    Reason::Ambiguous(text.clone(), column.ambiguous.len(), self.table.cell(*row, index).to_owned()),
                );
            }
            if column.is_empty() {
                return;
            }
            if how > How::Id {
                let unit = header.unit.as_ref().map_or(String::new(), |u| format!(" in {}", u.text));
                self.remark(false, Reason::TakenFor(text.clone(), id, unit));
            }
        }
        self.columns.push(column);
    }

    /// Shares of the CPU time whose headers are a word each: `user`, `sys`, `idle`.
    fn bind_shares(&mut self, headers: &[Header]) {
        let beside_cpu = self.columns.iter().any(|c| c.id.starts_with("cpu_"));
        for (index, header) in headers.iter().enumerate().filter(|(_, h)| beside_cpu && h.unit.is_none()) {
            if !self.is_numeric(index) {
                continue;
            }
            let share = Header { unit: Some(Unit::of_id("pct")), ..header.clone() };
            if let Some(id) = share.meaning(true).filter(|id| id.starts_with("cpu_") && header.words.len() == 1) {
                self.bind(index, &share, id, How::Words);
            }
        }
    }

    /// Without a column of jobs, threads are the jobs.
    fn threads_are_jobs(&mut self) {
        let jobs = self.has("jobs");
        if let Some(threads) = self.columns.iter_mut().find(|c| !jobs && c.id == "threads") {
            threads.id = "jobs";
            let text = &self.table.headers[threads.index];
            self.remark(false, Reason::TakenFor(text.clone(), "jobs", String::new()));
        }
    }

    /// Platforms that stand side by side: columns of one meaning, apart by words that nobody knows.
    pub(crate) fn side_by_side(&self) -> Option<Shape> {
        const RATES: [&str; 5] = ["commit_throughput_tps", "tx_per_s", "queries_per_s", "rows_per_s", "io_per_s"];
        // Ids of columns of figures that are known by words, or would be but for unknown ones, with their headers.
        let mut found: Vec<(&'static str, &String, bool)> = Vec::new();
        for (index, text) in self.table.headers.iter().enumerate().filter(|(index, _)| self.is_numeric(*index)) {
            let header = Header::parse(text);
            let unknown = header.unknown_words().next().is_some();
            let id = match self.at(index) {
                Some(column) => Some(column.id).filter(|_| column.how > How::Id),
                None => header.meaning(false).filter(|_| unknown),
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

    /// Whether most cells of a column are figures.
    fn is_numeric(&self, index: usize) -> bool {
        let none = |cell: &&str| matches!(number::read(cell, self.style), Cell::Text | Cell::Absent | Cell::Broken);
        self.table.cells(index, SAMPLE).filter(none).count() * 4 <= self.table.rows().min(SAMPLE)
    }

    fn remark(&mut self, odd: bool, reason: Reason) {
        self.remarks.push(Remark { row: None, odd, reason });
    }

    /// The column of throughput in transactions per second that the table has.
    #[must_use]
    pub fn throughput(&self) -> Option<&'static str> {
        ["commit_throughput_tps", "tx_per_s"].into_iter().find(|id| self.has(id))
    }

    /// The known column `id`.
    #[must_use]
    pub fn column(&self, id: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// The known column at place `index` of the table.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<&Column> {
        self.columns.iter().find(|c| c.index == index)
    }

    /// Whether there is a column `id`.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.column(id).is_some()
    }

    /// The figure of column `id` in `row`, counted from 0, in the unit of the id.
    #[must_use]
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.column(id)?.value(row)
    }

    /// The text of column `id` in `row`; empty if there is none.
    #[must_use]
    pub fn text(&self, id: &str, row: usize) -> &'a str {
        self.column(id).map_or("", |c| self.table.cell(row, c.index))
    }

    /// Times which the printed figure of `column` in `row` is one in the unit of the id: a cell may have a unit of its own.
    pub(crate) fn factor(&self, column: &Column, row: usize) -> f64 {
        match (number::read(self.table.cell(row, column.index), self.style), column.value(row)) {
            (Cell::Number(n), Some(value)) if n.value != 0.0 && !matches!(n.unit, "k" | "K" | "M" | "G" | "B") => {
                value / n.value
            }
            _ => column.factor,
        }
    }

    /// Reads a column with its other kilobyte.
    pub(crate) fn scale(&mut self, id: &str, times: f64) {
        self.columns.iter_mut().filter(|c| c.id == id).for_each(|c| c.scale(times));
    }
}
