//! A table whose columns are known: figures in the units of our ids, with the interval that their digits leave.

mod infer;
mod mapping;
mod series;

use loadline_model::column::column;

pub(crate) use infer::is_rate;
pub use mapping::{Mapping, MappingError};
pub use series::Series;
pub(crate) use series::TEXT_KEYS;

use crate::audit::header::Header;
use crate::audit::names::{self, Meaning, is_text};
use crate::audit::table::number::{self, Printed, Style, Value};
use crate::audit::table::{Remark, Table};
use crate::audit::unit::{Of, Unit};

/// Rows by which units and kinds of columns are recognised.
const SAMPLE: usize = 1000;

/// Columns that count sessions, servers and bytes of a block: whole numbers are exact.
const EXACT: [&str; 4] = ["jobs", "nodes", "threads", "block_bytes"];

/// A figure as printed: what it can have been before it was rounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// As printed, in the unit of the column's id.
    pub value: f64,
    /// Half of the unit of its last digit.
    half: f32,
    /// The same if zeros at the end of a whole number are no digits, which no other cell of the column contradicts.
    loose: f32,
}

const MISSING: Figure = Figure { value: f64::NAN, half: 0.0, loose: 0.0 };

impl Figure {
    /// Half the width of what it can have been, as its digits say.
    #[must_use]
    pub fn half(&self) -> f64 {
        self.half.into()
    }

    /// The same if zeros at the end of a whole number may be no digits.
    #[must_use]
    pub fn loose(&self) -> f64 {
        self.loose.into()
    }
}

/// How the meaning of a column was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Its header is an id of ours.
    Id,
    /// The user said so.
    Mapped,
    /// By the words of its header.
    Inferred,
}

/// A column with a known meaning.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Its position in the table.
    pub index: usize,
    /// Id of the column that it is.
    pub id: &'static str,
    /// How that was found.
    pub how: How,
    /// Unit that the header names, if it does and the id's is another one.
    pub printed: Option<Unit>,
    /// Times which a printed number is one in the unit of the id.
    pub factor: f64,
    /// The factor with the other kilobyte, if the header leaves it open.
    pub or: Option<f64>,
    /// Rows whose cell should be a number and is none: `NaN`, `####`.
    pub broken: Vec<usize>,
    /// Rows whose cell is text.
    pub unread: Vec<usize>,
    /// Whether the cells count over the whole test: the figures are those per second.
    pub counted: bool,
    /// Whether the words of its header may mean much else.
    pub ambiguous: bool,
    /// Whether it is computed of other columns.
    pub derived: bool,
    figures: Vec<Figure>,
}

/// A table with its known columns.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its known columns, in their order.
    pub columns: Vec<Bound>,
    /// Other columns of numbers, as printed.
    pub others: Vec<Bound>,
    /// What was assumed, and what was odd.
    pub remarks: Vec<Remark>,
    /// How it writes numbers.
    pub style: Style,
}

impl<'a> Sheet<'a> {
    /// Finds out what the columns of `table` are: what `mapping` says, ids of ours, then words and units of the headers.
    #[must_use]
    pub fn new(table: &'a Table, mapping: &Mapping) -> Sheet<'a> {
        let width = table.headers.len();
        let cells = (0..table.rows().min(SAMPLE)).flat_map(|r| (0..width).map(move |c| table.cell(r, c)));
        let mut sheet =
            Sheet { table, columns: Vec::new(), others: Vec::new(), remarks: Vec::new(), style: number::style(cells) };
        let headers: Vec<Header> = (0..width).map(|c| header_of(table, sheet.style, c)).collect();
        for how in [How::Mapped, How::Id] {
            for (index, header) in headers.iter().enumerate() {
                let text = table.headers[index].as_str();
                let id = if how == How::Mapped { mapping.of(text) } else { names::find(text) };
                // A target that is a number is a rate.
                let rate = id == Some("target") && how == How::Id && sheet.is_number(index);
                if let Some(id) = id {
                    sheet.bind(index, header, if rate { "rate_tps" } else { id }, how);
                }
            }
        }
        // What is sure comes first: of two columns of one meaning, that one is used.
        let mut read: Vec<(usize, Meaning)> =
            headers.iter().enumerate().filter_map(|(i, h)| Some((i, names::read(h)?))).collect();
        // Beside the time of the whole transaction, that of its commit is a part.
        let is_latency = |m: &Meaning| m.id == "commit_latency_ms";
        if read.iter().filter(|(_, m)| is_latency(m)).count() > 1 {
            let of_commit = |index: usize| headers[index].words.iter().any(|w| w == "commit");
            read.iter_mut()
                .filter(|(i, m)| is_latency(m) && of_commit(*i))
                .for_each(|(_, m)| m.id = "commit_time_ns_mean");
        }
        let parts = |id: &str| read.iter().filter(|(_, m)| m.id == id && m.rank >= names::PART).count();
        let parts: Vec<&str> = read.iter().map(|(_, m)| m.id).filter(|id| parts(id) > 1).collect();
        read.retain(|(_, m)| m.rank < names::PART || !parts.contains(&m.id));
        read.sort_by_key(|(index, m)| {
            (!infer::has_own_dimension(&headers[*index], m.id), headers[*index].unit.is_none(), m.rank, *index)
        });
        for (index, meaning) in read {
            sheet.bind(index, &headers[index], meaning.id, How::Inferred);
            if let Some(bound) = sheet.columns.last_mut().filter(|c| c.index == index && c.how == How::Inferred) {
                bound.ambiguous = meaning.ambiguous;
            }
        }
        sheet.remarks.sort_by_key(|r| r.column);
        sheet.bare_bandwidth(&headers);
        sheet.rate_is_throughput(&headers);
        sheet.threads_are_jobs();
        sheet.rate_of_the_times(&headers);
        sheet.queries_are_transactions();
        sheet.columns.sort_by_key(|c| c.index);
        sheet.infer_times();
        sheet.infer_shares();
        sheet.without_ambiguous();
        sheet.without_clock();
        sheet.unused();
        sheet.read_others(&headers);
        sheet
    }

    fn bind(&mut self, index: usize, header: &Header, mut id: &'static str, how: How) {
        let text = self.table.headers[index].as_str();
        let absent = |row| matches!(number::value(self.table.cell(row, index), self.style), Value::Absent);
        // One without a cell is none that a law can be checked with.
        if self.columns.iter().any(|c| c.index == index) || (0..self.table.rows()).all(absent) {
            return;
        }
        let text_like = |row: &usize| matches!(number::value(self.table.cell(*row, index), self.style), Value::Text);
        let rows = self.table.rows().min(SAMPLE);
        // Names of jobs are no jobs.
        if how == How::Inferred && !is_text(id) && (0..rows).filter(text_like).count() * 2 > rows {
            return;
        }
        if how == How::Inferred && self.is_total(id, header) {
            id = "redo_mib_per_s";
        }
        if let (Some(first), Some(second), How::Inferred) = (&header.unit, &header.second, how) {
            let (first, second) = (&first.text, &second.text);
            let message = format!(
                "column '{text}' names two units, {first} and {second}: it was not used; say which with --columns '{text}={id}'"
            );
            self.remarks.push(Remark { row: None, column: Some(index), odd: true, message });
            return;
        }
        if let Some(other) = self.columns.iter().find(|c| c.id == id) {
            let other = &self.table.headers[other.index];
            self.remark_of(index, format!("column '{text}' would be {id} as well as '{other}': it was not used"));
            return;
        }
        let own = Unit::of_id(id);
        let printed = header.unit.clone().filter(|u| how != How::Id && u.dimension.of == own.dimension.of);
        let times = |size: f64| size / own.size;
        // A time without a unit is in ms more often than in anything else.
        let unnamed =
            if own.dimension.of == Of::Time && how == How::Inferred && id != "elapsed_s" { 1e-3 } else { own.size };
        let factor = times(printed.as_ref().map_or(unnamed, |u| u.size));
        let or = printed.as_ref().and_then(|u| u.or).map(times);
        let own_heading = column(id).is_some_and(|c| c.heading().eq_ignore_ascii_case(text.trim()));
        if how == How::Inferred && !is_text(id) && !own_heading {
            let unit = printed.as_ref().filter(|u| u.text != text.trim());
            let unit = unit.map_or(String::new(), |u| format!(" in {}", u.text));
            self.remark_of(index, format!("column '{text}' was taken for {id}{unit}"));
        }
        let mut bound = Bound { printed, factor, or, ..Bound::new(index, id, how) };
        if !is_text(id) {
            bound.read(self.table, self.style);
        }
        self.columns.push(bound);
    }

    /// Whether most cells of a column are numbers.
    fn is_number(&self, index: usize) -> bool {
        let rows = self.table.rows().min(SAMPLE);
        let number = |row: &usize| matches!(number::value(self.table.cell(*row, index), self.style), Value::Number(_));
        (0..rows).filter(number).count() * 4 >= rows * 3
    }

    /// Reads the columns of numbers that are none of ours.
    pub(crate) fn read_others(&mut self, headers: &[Header]) {
        self.others.clear();
        for (index, header) in headers.iter().enumerate().filter(|(i, _)| self.columns.iter().all(|c| c.index != *i)) {
            if !self.is_number(index) {
                continue;
            }
            self.others.push(Bound::raw(index, header.unit.clone(), self.table, self.style));
        }
    }

    fn remark(&mut self, message: String) {
        self.remarks.push(Remark { row: None, column: None, odd: false, message });
    }

    fn remark_of(&mut self, column: usize, message: String) {
        self.remarks.push(Remark { row: None, column: Some(column), odd: false, message });
    }

    /// The column of throughput in transactions per second that the table has.
    #[must_use]
    pub fn throughput(&self) -> Option<&'static str> {
        ["commit_throughput_tps", "tx_per_s"].into_iter().find(|id| self.has(id))
    }

    /// The known column `id`.
    #[must_use]
    pub fn column(&self, id: &str) -> Option<&Bound> {
        self.columns.iter().find(|c| c.id == id)
    }

    /// Whether there is a column `id`.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.column(id).is_some()
    }

    /// The figure of column `id` in `row`, counted from 0, in the unit of the id.
    #[must_use]
    pub fn figure(&self, id: &str, row: usize) -> Option<Figure> {
        self.column(id)?.figure(row)
    }

    /// The same without its interval.
    #[must_use]
    pub fn value(&self, id: &str, row: usize) -> Option<f64> {
        self.figure(id, row).map(|f| f.value)
    }

    /// The text of column `id` in `row`; empty if there is none.
    #[must_use]
    pub fn text(&self, id: &str, row: usize) -> &'a str {
        self.column(id).map_or("", |c| self.table.cell(row, c.index))
    }

    /// Reads the column with its other kilobyte, or with any other factor.
    pub fn scale(&mut self, id: &str, times: f64) {
        if let Some(column) = self.columns.iter_mut().find(|c| c.id == id) {
            column.scale(times);
        }
    }
}

/// A header, with the unit of its cells where it names none.
pub(crate) fn header_of(table: &Table, style: Style, index: usize) -> Header {
    let mut header = Header::parse(&table.headers[index]);
    if header.unit.is_none() {
        let rows = table.rows().min(SAMPLE);
        let unit = |row| match number::value(table.cell(row, index), style) {
            Value::Number(printed) => Unit::parse(printed.suffix).filter(|u| !u.is_multiplier()),
            _ => None,
        };
        let units: Vec<Unit> = (0..rows).filter_map(unit).collect();
        let first = units.first().filter(|f| units.iter().all(|u| (u.dimension, u.piece) == (f.dimension, f.piece)));
        header.unit = first.filter(|_| units.len() * 2 > rows).cloned();
    }
    header
}

impl Bound {
    fn new(index: usize, id: &'static str, how: How) -> Bound {
        Bound {
            index,
            id,
            how,
            printed: None,
            factor: 1.0,
            or: None,
            broken: Vec::new(),
            unread: Vec::new(),
            counted: false,
            ambiguous: false,
            derived: false,
            figures: Vec::new(),
        }
    }

    /// A column that is none of ours, as printed.
    pub(crate) fn raw(index: usize, printed: Option<Unit>, table: &Table, style: Style) -> Bound {
        let mut bound = Bound { printed, ..Bound::new(index, "", How::Inferred) };
        bound.read(table, style);
        bound
    }

    /// The figure in `row`, in the unit of the id.
    #[must_use]
    pub fn figure(&self, row: usize) -> Option<Figure> {
        self.figures.get(row).copied().filter(|f| !f.value.is_nan())
    }

    fn scale(&mut self, times: f64) {
        self.factor *= times;
        self.or = self.or.map(|or| or / times);
        for figure in &mut self.figures {
            figure.value *= times;
            figure.half *= times as f32;
            figure.loose *= times as f32;
        }
    }

    /// Reads all cells.
    fn read(&mut self, table: &Table, style: Style) {
        let mut zeros: Vec<(u8, u8)> = Vec::new();
        let mut precision = 2;
        for row in 0..table.rows() {
            let value = number::value(table.cell(row, self.index), style);
            let read = match value {
                Value::Number(printed) => self.scaled(&printed).map(|f| (f, printed)),
                _ => None,
            };
            match (read, value) {
                (Some((figure, printed)), _) => {
                    precision = precision.max(printed.digits);
                    zeros.push((printed.zeros, printed.digits.saturating_add(printed.zeros)));
                    self.figures.push(figure);
                    continue;
                }
                (None, Value::Broken) => self.broken.push(row),
                (None, Value::Text | Value::Number(_)) => self.unread.push(row),
                (None, Value::Absent) => {}
            }
            self.figures.push(MISSING);
            zeros.push((0, 0));
        }
        let exact = EXACT.contains(&self.id);
        for (figure, (zeros, digits)) in self.figures.iter_mut().zip(zeros) {
            let open = zeros.min(digits.saturating_sub(precision));
            figure.loose = figure.half * 10f32.powi(open.into());
            if exact && figure.value.fract() == 0.0 {
                (figure.half, figure.loose) = (0.0, 0.0);
            }
        }
    }

    /// A printed number in the unit of the id.
    fn scaled(&self, printed: &Printed<'_>) -> Option<Figure> {
        // Behind a number they point to a footnote, and behind 10 they may be its power.
        let raised = |c| "⁰¹²³⁴⁵⁶⁷⁸⁹".contains(c);
        let note = !printed.suffix.is_empty() && printed.suffix.chars().all(raised) && printed.value != 10.0;
        let factor = if printed.suffix.is_empty() || note { self.factor } else { self.factor_of(printed.suffix)? };
        let half = 0.5 * 10f64.powi(printed.place) * factor;
        let value = printed.value * factor;
        value.is_finite().then_some(Figure { value, half: half as f32, loose: half as f32 })
    }

    /// The factor of a cell with a unit of its own.
    fn factor_of(&self, suffix: &str) -> Option<f64> {
        let suffix = suffix.trim_end_matches(['*', '†', ')']);
        if self.id.is_empty() && matches!(suffix, "x" | "×") {
            return Some(1.0);
        }
        let own = if self.id.is_empty() { self.printed.clone().or(Unit::parse(suffix))? } else { Unit::of_id(self.id) };
        // The k of a block size has 1,024 bytes.
        if own.dimension.of == Of::Bytes && own.size == 1.0 {
            let binary = match suffix.to_lowercase().as_str() {
                "k" | "kb" => 1024.0,
                "m" | "mb" => 1_048_576.0,
                "g" | "gb" => 1_073_741_824.0,
                _ => 0.0,
            };
            if binary > 0.0 {
                return Some(binary);
            }
        }
        let letter = match suffix {
            "" => Some(1.0),
            "k" | "K" => Some(1e3),
            "M" => Some(1e6),
            "G" | "B" => Some(1e9),
            _ => None,
        };
        match letter {
            Some(times) if own.dimension.of == Of::One || times == 1.0 => Some(self.factor * times),
            _ => {
                let unit = Unit::parse(suffix)?;
                (unit.dimension.of == own.dimension.of).then(|| unit.size / own.size)
            }
        }
    }
}
