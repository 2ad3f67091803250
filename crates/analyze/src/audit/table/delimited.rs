//! Separated values: commas, semicolons, tabs, bars, or columns set apart by spaces. Quotes as in RFC 4180.

use super::number::{self, Style};
use super::{ReadError, Table};

/// Lines by which the separator is recognised.
const SAMPLE: usize = 40;

/// What separates cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Byte(u8),
    /// Two spaces or more, as in aligned text.
    Wide,
    /// Any white space.
    Space,
}

const SEPARATORS: [Separator; 6] = [
    Separator::Byte(b','),
    Separator::Byte(b';'),
    Separator::Byte(b'\t'),
    Separator::Byte(b'|'),
    Separator::Wide,
    Separator::Space,
];

/// The cells of one record.
#[derive(Default)]
struct Record {
    text: String,
    ends: Vec<usize>,
    /// A quote was opened and never closed.
    open: bool,
}

impl Record {
    fn cells(&self) -> impl Iterator<Item = &str> + Clone {
        let start = |i: usize| if i == 0 { 0 } else { self.ends[i - 1] };
        self.ends.iter().enumerate().map(move |(i, end)| &self.text[start(i)..*end])
    }

    fn end_cell(&mut self) {
        self.ends.push(self.text.len());
    }

    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether it only rules off a header: `------- ------`, or counts the rows above: `3 rows selected.`
    fn is_rule(&self) -> bool {
        let counts = self.text.ends_with("selected.") && self.text.contains("row");
        counts || self.text.len() > 4 && self.text.bytes().all(|b| matches!(b, b'-' | b'=' | b'~' | b' '))
    }

    /// Reads one record from the start of `text` and returns what follows it.
    fn read<'a>(&mut self, text: &'a str, separator: Separator) -> &'a str {
        self.text.clear();
        self.ends.clear();
        self.open = false;
        let Separator::Byte(by) = separator else {
            let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
            let wide = line.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            let cells: Vec<&str> =
                if separator == Separator::Wide { wide.collect() } else { line.split_whitespace().collect() };
            for cell in cells {
                self.text.push_str(cell);
                self.end_cell();
            }
            return rest;
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let spaces = bytes[at..].iter().take_while(|b| **b == b' ').count();
            if bytes.get(at + spaces) == Some(&b'"') {
                at = self.quoted(text, at + spaces + 1);
            }
            let plain = bytes[at..].iter().position(|b| *b == by || *b == b'\n').unwrap_or(bytes.len() - at);
            self.text.push_str(text[at..at + plain].trim_end_matches('\r'));
            self.end_cell();
            at += plain;
            match bytes.get(at) {
                Some(b'\n') => return &text[at + 1..],
                Some(_) => at += 1,
                None => return "",
            }
        }
    }

    /// Reads a quoted part from `at`, behind its first quote; returns where it ends.
    fn quoted(&mut self, text: &str, mut at: usize) -> usize {
        while let Some(quote) = text[at..].find('"') {
            self.text.push_str(&text[at..at + quote]);
            at += quote + 1;
            if !text[at..].starts_with('"') {
                return at;
            }
            self.text.push('"');
            at += 1;
        }
        self.open = true;
        self.text.push_str(&text[at..]);
        text.len()
    }
}

/// The separator, and the number of cells that most lines have with it.
fn recognise(text: &str) -> Option<(Separator, usize)> {
    let score = |separator: Separator| {
        let (mut rest, mut record, mut counts) = (text, Record::default(), Vec::new());
        while !rest.is_empty() && counts.len() < SAMPLE {
            rest = record.read(rest, separator);
            if !record.is_blank() && !record.is_rule() {
                counts.push(record.ends.len());
            }
        }
        let with = |n: usize| counts.iter().filter(|c| **c == n).count();
        let most = counts.iter().copied().filter(|n| *n > 1).max_by_key(|n| (with(*n), *n))?;
        let share = with(most) as f64 / counts.len() as f64;
        // Prose has spaces, too, and commas.
        let enough = match separator {
            Separator::Byte(_) => share > 0.0,
            Separator::Wide => share > 0.6 && with(most) > 2,
            Separator::Space => share == 1.0 && counts.len() > 1,
        };
        enough.then_some((share, most))
    };
    let cells = |separator| score(separator).map_or(0, |(_, cells)| cells);
    let wide = cells(Separator::Wide) > SEPARATORS[..4].iter().map(|s| cells(*s)).max().unwrap_or(0);
    let scored = SEPARATORS.iter().filter_map(|s| score(*s).map(|(share, cells)| (*s, share, cells)));
    // A space that is as good as another separator is one inside of cells.
    let best = scored.max_by(|(a, share_a, cells_a), (b, share_b, cells_b)| {
        let rank = |s: &Separator, share: &f64| match s {
            // Columns of every line that are set apart by spaces have commas inside of their numbers.
            Separator::Wide if *share == 1.0 && wide => 4,
            Separator::Byte(_) if *share > 0.5 => 3,
            Separator::Wide => 2,
            Separator::Byte(_) => 1,
            Separator::Space => 0,
        };
        rank(a, share_a).cmp(&rank(b, share_b)).then(share_a.total_cmp(share_b)).then(cells_a.cmp(cells_b))
    });
    best.map(|(separator, _, cells)| (separator, cells))
}

/// Whether every cell of a record is a name, as in a line of column names.
fn is_header(record: &Record) -> bool {
    record.cells().all(|cell| number::parse(cell, Style::Point).is_none())
        && record.cells().any(|c| !c.trim().is_empty())
}

/// Reads all tables. A blank line and a line of names begin another one.
pub(super) fn read(text: &str) -> Result<Vec<Table>, ReadError> {
    let (separator, width) = match recognise(text) {
        Some(found) => found,
        // One column, if it has a name and a number.
        None => (Separator::Byte(b','), 1),
    };
    let mut tables: Vec<Table> = Vec::new();
    let (mut rest, mut record, mut blank) = (text, Record::default(), false);
    while !rest.is_empty() {
        rest = record.read(rest, separator);
        if record.is_rule() {
            continue;
        }
        if record.is_blank() {
            // Cells without text are a row of an empty table at most.
            blank = true;
            continue;
        }
        let begins = match tables.last() {
            None => record.ends.len() == width,
            Some(_) => blank && record.ends.len() > 1 && is_header(&record),
        };
        blank = false;
        if begins {
            let named = |c: &str| c.trim().trim_start_matches('#').trim_start().to_owned();
            let headers: Vec<String> = record.cells().map(named).collect();
            if headers.iter().all(|h| h.is_empty() || number::parse(h, Style::Point).is_some()) {
                return Err(ReadError::NoHeader(headers.join(" ").chars().take(80).collect()));
            }
            tables.push(Table::new(headers));
        } else if let Some(table) = tables.last_mut() {
            let row = table.rows();
            if row == 0 && units_below(table, &record) {
                continue;
            }
            table.push(record.cells())?;
            if record.open {
                table.remark(
                    Some(row),
                    "a quote is opened in it and never closed: what follows is in that cell".to_owned(),
                );
            }
        }
    }
    Ok(tables)
}

/// Takes a line of units below the column names into them.
fn units_below(table: &mut Table, record: &Record) -> bool {
    let cells: Vec<&str> = record.cells().map(str::trim).collect();
    if cells.len() != table.headers.len() || !super::units_only(&cells) {
        return false;
    }
    super::add_units(&mut table.headers, &cells);
    true
}
