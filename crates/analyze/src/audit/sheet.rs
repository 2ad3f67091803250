//! A table with its known columns, and what is found in it.

mod column;

pub(crate) use column::{Column, How};

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use super::finding::{Finding, Reason, Severity, Shape, shown};
use super::header::{Header, Unit, find_column, is_text};
use super::interval::Interval;
use super::number::{self, Cell, Style};
use super::table::Table;
use super::told::Mapping;

/// Rows by which is decided what a column is.
pub(crate) const SAMPLE: usize = 20_000;
/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;
/// Law of findings about how a table is written, and what was assumed of it.
const TABLE: &str = "table";
/// Text columns that say what was measured.
pub(crate) const TEXT_KEYS: [&str; 8] =
    ["platform", "workload", "target", "driver", "job_load", "arm", "level", "repetition"];
/// Settings of a test.
pub(crate) const SETTINGS: [&str; 10] = [
    "jobs", "rows_per_tx", "threads", "nodes", "rate_tps", "delay_ms", "block_bytes", "write_pct", "indexes", "groups",
];

/// A table with its known columns.
#[derive(Debug)]
pub struct Sheet<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its known columns, in their order.
    pub columns: Vec<Column>,
    pub(crate) style: Option<Style>,
    /// The columns whose product are the jobs.
    pub(crate) jobs: Vec<&'static str>,
    /// Columns that tell tests apart.
    telling: Vec<(usize, &'static str)>,
    found: RefCell<Vec<Finding>>,
    /// Findings about rows, by law and severity.
    counts: RefCell<HashMap<(&'static str, Severity), usize>>,
}

impl<'a> Sheet<'a> {
    /// Finds out what the columns of `table` are: what `mapping` says, ids of ours, units with a subject, then words.
    #[must_use]
    pub fn new(table: &'a Table, mapping: &Mapping) -> Sheet<'a> {
        let style = number::style((0..table.headers.len()).flat_map(|c| table.cells(c, SAMPLE)));
        let (columns, telling, found, counts) = Default::default();
        let mut sheet = Sheet { table, columns, style, jobs: vec!["jobs"], telling, found, counts };
        sheet.bind_columns(mapping);
        let varies = |c: &&Column| table.cells(c.index, SAMPLE).any(|cell| cell != table.cell(0, c.index));
        let telling =
            TEXT_KEYS.iter().chain(&SETTINGS).chain(&["test"]).filter_map(|id| sheet.column(id)).filter(varies);
        sheet.telling = telling.map(|c| (c.index, c.id)).collect();
        for (row, severity, reason) in &table.remarks {
            match row {
                Some(row) => sheet.find((TABLE, *severity), *row, &[], None, reason.clone()),
                None => sheet.about_table(TABLE, *severity, &[], reason.clone()),
            }
        }
        sheet
    }

    fn bind_columns(&mut self, mapping: &Mapping) {
        let table = self.table;
        let mut headers: Vec<Header> = (0..table.headers.len()).map(|c| self.header(c)).collect();
        let ranks = headers.iter().filter(|h| h.unit.is_none() && h.is_rank()).count();
        headers.iter_mut().for_each(|h| h.among_ranks = ranks > 2);
        let mut found: Vec<_> = headers.iter().enumerate().filter_map(|(i, h)| self.meaning(i, h, mapping)).collect();
        // What one word alone means is known by the other columns.
        let is_alone = |index: usize| headers[index].unit.is_none() && headers[index].words.len() == 1;
        // Of new orders and all transactions, the throughput is that of all.
        let is_part = |index: usize| headers[index].words.iter().any(|w| w == "nopm");
        found.sort_by_key(|(how, index, _)| (*how, is_alone(*index), is_part(*index)));
        let is_time = |id: &str| Unit::of_id(id).is_time();
        for (how, index, ids) in found {
            // `p99` alone may be of anything, unless another column is a time, or several are ranks without a unit.
            let alone = how == How::Words && is_alone(index);
            if !alone || !is_time(ids[0]) || ranks > 2 || self.columns.iter().any(|c| is_time(c.id)) {
                self.bind(index, &headers[index], &ids, how);
            }
        }
        // Shares of the CPU time may have headers of a word each: `user`, `sys`, `idle`.
        let beside_cpu = self.columns.iter().any(|c| c.id.starts_with("cpu_"));
        for index in (0..headers.len()).filter(|i| beside_cpu && is_alone(*i)) {
            let share = Header { unit: Some(Unit::of_id("pct")), ..headers[index].clone() };
            let ids = share.meaning(true);
            if ids.first().is_some_and(|id| id.starts_with("cpu_")) && self.is_numeric(index) {
                self.bind(index, &share, &ids, How::Words);
            }
        }
        // Without a column of jobs, threads are the jobs.
        let has_jobs = self.has("jobs");
        if let Some(threads) = self.columns.iter_mut().find(|c| !has_jobs && c.id == "threads") {
            threads.id = "jobs";
            let text = table.headers[threads.index].clone();
            self.remark(Severity::Info, Reason::TakenFor(text, "jobs", String::new()));
        }
        self.columns.sort_by_key(|c| c.index);
        let unknown = (0..headers.len()).filter(|i| self.at(*i).is_none() && self.is_numeric(*i));
        let unknown: Vec<String> = unknown.map(|i| format!("'{}'", table.headers[i])).collect();
        if !unknown.is_empty() {
            self.remark(Severity::Info, Reason::Unknown(unknown.join(", ")));
        }
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
    fn meaning(&self, index: usize, header: &Header, mapping: &Mapping) -> Option<(How, usize, Vec<&'static str>)> {
        let text = self.table.headers[index].as_str();
        let rate = Some("rate_tps").filter(|_| text == "target" && self.is_numeric(index));
        let mapped = mapping.id(text).map(|id| (How::Mapped, index, vec![id]));
        let by_id = || rate.or_else(|| find_column(text)).map(|id| (How::Id, index, vec![id]));
        mapped.or_else(by_id).or_else(|| {
            let how = if header.is_by_unit() { How::Unit } else { How::Words };
            Some((how, index, header.meaning(true))).filter(|(.., ids)| !ids.is_empty())
        })
    }

    fn bind(&mut self, index: usize, header: &Header, ids: &[&'static str], how: How) {
        let absent = |cell| matches!(number::read(cell, self.style), Cell::Absent);
        if self.at(index).is_some() || self.table.cells(index, SAMPLE).all(absent) {
            return;
        }
        let text = self.table.headers[index].clone();
        // A second throughput is the same figure once more, and beside a time of transactions that of commits is a part.
        let id = match ids.iter().find(|id| !self.has(id)) {
            Some(id) => *id,
            None => {
                let first = self.column(ids[0]).map_or(0, |c| c.index);
                let why = Reason::SecondColumn(text, ids[0], self.table.headers[first].clone());
                return self.remark(Severity::Info, why);
            }
        };
        let column = Column::read(self.table, self.style, index, (id, how), header.unit.as_ref());
        if !is_text(id) {
            if how > How::Id && column.is_change() {
                return self.remark(Severity::Info, Reason::Changes(text));
            }
            if let Some(row) = column.unclear.first() {
                let cell = self.table.cell(*row, index).to_owned();
                self.remark(Severity::Warning, Reason::Unclear(text.clone(), column.unclear.len(), cell));
            }
            if column.is_empty() {
                return;
            }
            if how > How::Id {
                let unit = header.unit.as_ref().map_or(String::new(), |u| format!(" in {}", u.text));
                self.remark(Severity::Info, Reason::TakenFor(text, id, unit));
            }
        }
        self.columns.push(column);
    }

    /// Platforms that stand side by side: rates of one meaning, or two other such columns, apart by words that nobody knows.
    pub(crate) fn side_by_side(&self) -> Option<Shape> {
        const RATES: [&str; 5] = ["commit_throughput_tps", "tx_per_s", "queries_per_s", "rows_per_s", "io_per_s"];
        let unknown = |index: &usize| Header::parse(&self.table.headers[*index]).has_unknown_words();
        let id = |index: usize| match self.at(index) {
            Some(column) => Some(column.id).filter(|_| column.how > How::Id),
            None => {
                Header::parse(&self.table.headers[index]).meaning(false).first().copied().filter(|_| unknown(&index))
            }
        };
        let numeric = (0..self.table.headers.len()).filter(|index| self.is_numeric(*index));
        let mut found: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        numeric.for_each(|i| {
            id(i).filter(|id| !is_text(id)).into_iter().for_each(|id| found.entry(id).or_default().push(i))
        });
        found.retain(|_, places| places.len() > 1 && places.iter().any(unknown));
        let rate = found.iter().find(|(id, _)| RATES.contains(id));
        let (_, places) = rate.or(found.iter().next().filter(|_| found.len() > 1))?;
        Some(Shape::SideBySide(places.iter().map(|index| self.table.headers[*index].clone()).collect()))
    }

    /// Whether most cells of a column are figures.
    fn is_numeric(&self, index: usize) -> bool {
        let none = |cell: &&str| matches!(number::read(cell, self.style), Cell::Text | Cell::Absent | Cell::Broken);
        self.table.cells(index, SAMPLE).filter(none).count() * 4 <= self.table.rows().min(SAMPLE)
    }

    pub(crate) fn rows(&self) -> usize {
        self.table.rows()
    }

    /// The column of throughput in transactions per second that the table has.
    pub(crate) fn throughput(&self) -> Option<&'static str> {
        ["commit_throughput_tps", "tx_per_s"].into_iter().find(|id| self.has(id))
    }

    pub(crate) fn column(&self, id: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// The known column at place `index` of the table.
    pub(crate) fn at(&self, index: usize) -> Option<&Column> {
        self.columns.iter().find(|c| c.index == index)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.column(id).is_some()
    }

    /// The figure of column `id`, or of `tps`, in `row`, counted from 0, in the unit of the id.
    #[must_use]
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.column(if id == "tps" { self.throughput()? } else { id })?.value(row)
    }

    /// What the figure of column `id` in `row` can have been.
    pub(crate) fn interval(&self, id: &str, row: usize) -> Option<Interval> {
        self.column(id)?.interval(row, false)
    }

    /// The text of column `id` in `row`; empty if there is none.
    pub(crate) fn text(&self, id: &str, row: usize) -> &'a str {
        self.column(id).map_or("", |c| self.table.cell(row, c.index))
    }

    /// The columns that a name in a formula stands for, as a product, and a factor.
    pub(crate) fn resolve(&self, name: &str) -> Option<(Vec<usize>, f64)> {
        let place = |id: &str| self.columns.iter().position(|c| c.id == id);
        match name {
            "tps" => Some((vec![place(self.throughput()?)?], 1.0)),
            "jobs" => Some((self.jobs.iter().map(|id| place(id)).collect::<Option<Vec<_>>>()?, 1.0)),
            "time_ms" if place("commit_latency_ms").is_none() => Some((vec![place("transaction_time_ns_mean")?], 1e-6)),
            "time_ms" => Some((vec![place("commit_latency_ms")?], 1.0)),
            id => Some((vec![place(id)?], 1.0)),
        }
    }

    /// Places of columns in the sheet; those that are missing are left out.
    pub(crate) fn places(&self, ids: &[&str]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.resolve(id)).flat_map(|(places, _)| places).collect()
    }

    /// Whether all columns are known at least as surely as by `how`.
    pub(crate) fn is_sure(&self, columns: &[usize], how: How) -> bool {
        columns.iter().all(|c| self.columns[*c].how <= how)
    }

    /// Relative error of a rate whose counters are read up to `seconds` late; 0 if the length of the test is not known.
    pub(crate) fn late(&self, row: usize, seconds: f64) -> f64 {
        self.value("elapsed_s", row).filter(|s| *s > 0.0).map_or(0.0, |elapsed| seconds / elapsed)
    }

    /// Whether two rows are of the same platform and workload, as far as texts tell.
    pub(crate) fn is_series(&self, rows: [usize; 2]) -> bool {
        let mut texts = self.telling.iter().filter(|(_, id)| is_text(id));
        texts.all(|(index, _)| self.table.cell(rows[0], *index) == self.table.cell(rows[1], *index))
    }

    /// Which test a row is.
    fn test(&self, row: usize) -> String {
        let name = |(index, id): &(usize, &'static str)| match self.table.cell(row, *index) {
            "" => None,
            cell if is_text(id) => Some(cell.to_owned()),
            cell => Some(format!("{id} {cell}")),
        };
        self.telling.iter().filter_map(name).collect::<Vec<_>>().join(", ").chars().take(100).collect()
    }

    pub(crate) fn remark(&self, severity: Severity, reason: Reason) {
        self.about_table(TABLE, severity, &[], reason);
    }

    /// Adds a finding about the table. `columns` are places in the sheet.
    pub(crate) fn about_table(&self, law: &'static str, severity: Severity, columns: &[usize], reason: Reason) {
        let columns = columns.iter().map(|c| self.columns[*c].id).collect();
        let (table, [test, printed, recomputed]) = (self.table.name.clone(), [const { String::new() }; 3]);
        let deviation_pct = None;
        let found =
            Finding { severity, table, row: None, test, columns, law, printed, recomputed, deviation_pct, reason };
        self.found.borrow_mut().push(found);
    }

    /// Adds a finding about `row`, unless a thousand rows have the same one. `recomputed` is of the last column, in the unit
    /// of its id; a finding has it in the unit that is printed.
    pub(crate) fn find(
        &self,
        (law, mut severity): (&'static str, Severity),
        row: usize,
        columns: &[usize],
        recomputed: Option<f64>,
        mut reason: Reason,
    ) {
        if severity == Severity::Error && matches!(self.text("valid", row), "false" | "no") {
            (severity, reason) = (Severity::Warning, Reason::Invalid(Box::new(reason)));
        }
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry((law, severity)).or_insert(0);
        *count += 1;
        if *count > LISTED {
            return;
        }
        let mut places = columns.to_vec();
        places.sort_unstable();
        self.about_table(law, severity, &places, reason);
        let mut all = self.found.borrow_mut();
        let Some(found) = all.last_mut() else { return };
        (found.row, found.test) = (Some(row + 1), self.test(row));
        if let Some(target) = columns.last().map(|c| &self.columns[*c]) {
            self.table.cell(row, target.index).clone_into(&mut found.printed);
            let factor = target.printed_factor(&found.printed, row, self.style);
            found.recomputed = recomputed.map_or_else(String::new, |r| shown(r / factor));
            let deviation = target.value(row).zip(recomputed).map(|(p, r)| (p / r - 1.0) * 100.0);
            found.deviation_pct = deviation.filter(|d| d.is_finite());
        }
    }

    /// All findings, the worst first.
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
