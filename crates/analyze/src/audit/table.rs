//! Reads tables of results from text: separated values, Markdown, and what is boxed by bars. Cells stay text, because their digits
//! say how precise they are; [`super::Sheet`] knows what the columns mean.

use std::collections::BTreeSet;

use super::finding::{AuditError, Reason, Severity};
use super::header::{Header, Unit, is_text, words};
use super::number::{self, Cell, Number, Style, with_point};

/// One table of text cells. Every row has as many cells as there are headers; missing ones are empty.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The heading above it with its number, or the name of the file.
    pub(crate) name: String,
    /// Names of the columns as printed; `column 3` if nothing is printed.
    pub headers: Vec<String>,
    /// Oddities of how it is written, with its row (a warning), and assumptions (an info).
    pub(crate) remarks: Vec<(Option<usize>, Severity, Reason)>,
    text: String,
    /// Where the cells end in the text.
    ends: Vec<usize>,
    continued: usize,
}

impl Table {
    fn new<S: AsRef<str>>(headers: &[S]) -> Table {
        let named = |(i, h): (usize, &S)| match h.as_ref().trim() {
            "" => format!("column {}", i + 1),
            name => name.to_owned(),
        };
        Table { headers: headers.iter().enumerate().map(named).collect(), ..Table::default() }
    }

    pub fn rows(&self) -> usize {
        self.ends.len() / self.headers.len().max(1)
    }

    /// A cell, trimmed; empty if there is none.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let index = row * self.headers.len() + column;
        let end = |i: usize| self.ends.get(i).copied().unwrap_or(0);
        let start = index.checked_sub(1).map_or(0, end);
        if column < self.headers.len() { self.text.get(start..end(index)).unwrap_or("") } else { "" }
    }

    /// The text of a row of nothing but a name, which is a heading of those below it.
    pub(crate) fn heading(&self, row: usize) -> Option<&str> {
        let mut cells = (0..self.headers.len()).map(|column| self.cell(row, column)).filter(|cell| !cell.is_empty());
        let name = cells.next().filter(|cell| !is_figure(cell))?;
        cells.next().is_none().then_some(name)
    }

    pub(crate) fn cells(&self, column: usize, rows: usize) -> impl Iterator<Item = &str> {
        (0..self.rows().min(rows)).map(move |row| self.cell(row, column))
    }

    /// Adds a row, or a first one that continues the column names to them; among the lines of a header, only rows have figures.
    fn add(&mut self, cells: &[String], in_header: bool) -> Result<(), AuditError> {
        let is_names = self.rows() == 0 && !(in_header && cells.iter().any(|cell| is_figure(cell)));
        if is_names && self.continue_header(cells)? {
            return Ok(());
        } else if is_names && in_header {
            return Err(AuditError::TwoHeaderRows);
        }
        self.push(cells);
        Ok(())
    }

    /// Adds a row. One with too many cells is kept empty: nobody knows which cell is too many.
    fn push<S: AsRef<str>>(&mut self, cells: &[S]) {
        let (columns, count) = (self.headers.len(), cells.len());
        let cell = |at: usize| cells.get(at).map_or("", |cell| cell.as_ref().trim());
        // A line may end with a separator.
        let extra = (columns..count).any(|at| !cell(at).is_empty());
        let repeated = (0..columns).all(|at| cell(at) == self.headers[at]);
        let odd = match count < columns {
            _ if extra => Some(Reason::TooManyCells(count, columns)),
            true => Some(Reason::TooFewCells(count, columns)),
            false => repeated.then_some(Reason::HeaderAgain),
        };
        if let Some(reason) = odd {
            self.remarks.push((Some(self.rows()), Severity::Warning, reason));
        }
        for at in 0..columns {
            self.text.push_str(if extra || repeated { "" } else { cell(at) });
            self.ends.push(self.text.len());
        }
    }

    /// Takes a first row that continues the column names into them: units, or names below a merged one.
    fn continue_header(&mut self, cells: &[String]) -> Result<bool, AuditError> {
        let below = cells.iter().map(|c| c.trim_matches(['[', ']', '(', ')', '*', ' ', '#', '-']));
        let filled: Vec<&str> = below.filter(|c| !c.is_empty()).collect();
        let texts = filled.iter().all(|c| !is_figure(c));
        if texts && filled.len() > 1 && cells.len() > self.headers.len() {
            return Err(AuditError::TwoHeaderRows);
        }
        // An unnamed first column holds the names of rows.
        let unnamed = |(i, h): (usize, &String)| i > 0 && h.starts_with("column ") || self.headers[..i].contains(h);
        let merged = texts && self.headers.iter().enumerate().any(unnamed);
        let named = filled.iter().any(|c| c.contains(|c: char| c.is_alphabetic() || c == '%'));
        let units = filled.iter().all(|c| Unit::parse(c).is_some());
        if !named || !units && !merged || self.continued > 1 || cells.len() != self.headers.len() {
            return Ok(false);
        }
        let mut above = String::new();
        for (header, cell) in self.headers.iter_mut().zip(cells) {
            if !header.starts_with("column ") {
                above.clone_from(header);
            }
            if cell.contains(|c: char| c.is_alphanumeric() || c == '%') {
                let unit = cell.trim_matches(['[', ']', '(', ')', '*', ' ']);
                let joined = if units { format!("{header} [{unit}]") } else { format!("{above} {cell}") };
                joined.trim().clone_into(header);
            }
        }
        self.continued += 1;
        Ok(true)
    }
}

fn is_figure(cell: &str) -> bool {
    matches!(number::read(cell, Some(Style::Point)), Cell::Number(_) | Cell::Unclear)
}

/// The tables in `text`; `name` is that of the file. The format is recognised by the text itself.
pub fn read(text: &str, name: &str) -> Result<Vec<Table>, AuditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(AuditError::Empty);
    }
    let mut tables = boxed(text)?;
    let inner = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | '{'));
    let is_html = || ["<table", "<html", "<TABLE", "<HTML"].iter().any(|tag| text.contains(tag));
    if text.trim_start().starts_with("{|") || tables.is_empty() && is_html() {
        return Err(AuditError::Html);
    } else if tables.is_empty() && text.trim_start().starts_with(['[', '{']) && inner.starts_with('"') {
        return Err(AuditError::Json);
    } else if tables.is_empty() {
        tables = separated(text)?;
    }
    // One column without a figure is prose.
    tables.retain(|table| table.rows() > 0 && (table.headers.len() > 1 || table.cells(0, MOST).any(is_figure)));
    let count = tables.len();
    for (i, table) in tables.iter_mut().enumerate() {
        let base = if table.name.is_empty() { name } else { table.name.as_str() };
        table.name = if count == 1 { base.to_owned() } else { format!("{base} (table {})", i + 1) };
        match row_per_test(table) {
            Ok(Some(turned)) => *table = turned,
            // Of many tables, such as those of a report, some hold no tests.
            Err(e) if count == 1 => return Err(e),
            _ => {}
        }
    }
    if tables.is_empty() { Err(AuditError::NoTable) } else { Ok(tables) }
}

/// Rows of a table whose rows may be metrics.
const MOST: usize = 200;

/// The table with a row per test, if it is another one.
fn row_per_test(table: &Table) -> Result<Option<Table>, AuditError> {
    let lower: Vec<String> = table.headers.iter().map(|h| h.to_lowercase()).collect();
    let has = |part: &str| lower.iter().any(|h| h.starts_with(part));
    if has("per second") && has("per trans") {
        return Err(AuditError::Awr);
    }
    let is_metric = |text: &str| Header::parse(text).meaning(true).is_some_and(|ids| !is_text(ids[0]));
    if table.headers.iter().skip(1).any(|h| is_metric(h)) || table.rows() > MOST {
        return Ok(None);
    }
    let metrics = table.cells(0, MOST).filter(|cell| is_metric(cell)).count();
    if metrics >= 2 && metrics * 2 >= table.rows() && table.headers.len() > 1 {
        return turned(table).map(Some);
    }
    let is_named = words("metric").any(|word| word == lower[0].trim_matches('*'));
    if is_named { Err(AuditError::MetricsAsRows) } else { Ok(None) }
}

/// Whether a column holds changes: by its name, or by signs and percentages where the metrics are no shares.
fn is_change(table: &Table, column: usize) -> bool {
    let cells = || (0..table.rows()).filter_map(|row| Some((row, with_point(table.cell(row, column))?)));
    let relative = |row: usize, n: Number<'_>| !table.cell(row, 0).contains('%') && matches!(n.unit, "%" | "x" | "×");
    let changes = cells().filter(|(row, n)| n.plus || n.value < 0.0 || relative(*row, *n)).count();
    let named = |word: &String| words("change").any(|change| change == word);
    changes * 2 > cells().count() || Header::parse(&table.headers[column]).words.iter().any(named)
}

fn turned(table: &Table) -> Result<Table, AuditError> {
    let units = table.headers.iter().position(|h| h.to_lowercase().starts_with("unit"));
    let figures = |c: &usize| table.cells(*c, MOST).filter(|cell| is_figure(cell)).count();
    // Without figures it is a remark; one metric in several rows is that of several tests.
    let columns = (1..table.headers.len()).filter(|c| Some(*c) != units && figures(c) > 0);
    let (changes, tests): (Vec<usize>, Vec<usize>) = columns.partition(|c| is_change(table, *c));
    let metrics: BTreeSet<&str> = table.cells(0, MOST).collect();
    // `8 clients`, `32 clients`: what is counted names the column; `Clients`, `8`, `32`: the first one does.
    let unit = |c: &usize| with_point(&table.headers[*c]).map(|n| n.unit);
    let counted = tests.iter().map(unit).collect::<Option<Vec<_>>>().and_then(|units| units.first().copied());
    let counted = counted.map(|unit| if unit.is_empty() { table.headers[0].as_str() } else { unit });
    let metric = |row: usize| match units.map(|unit| table.cell(row, unit)) {
        Some(unit) if !unit.is_empty() => format!("{} [{unit}]", table.cell(row, 0)),
        _ => table.cell(row, 0).to_owned(),
    };
    let label = std::iter::once(counted.unwrap_or("configuration").to_owned());
    let mut made = Table::new(&label.chain((0..table.rows()).map(metric)).collect::<Vec<_>>());
    (made.name, made.remarks) = (table.name.clone(), table.remarks.clone());
    // What could not be used of its lines is no metric now.
    made.remarks.iter_mut().for_each(|remark| remark.0 = None);
    let changes = changes.iter().map(|column| Reason::Changes(table.headers[*column].clone()));
    let assumed = std::iter::once(Reason::Turned(tests.len())).chain(changes);
    made.remarks.extend(assumed.map(|reason| (None, Severity::Info, reason)));
    for column in &tests {
        let name = table.headers[*column].as_str();
        let name = if counted.is_some() { name.trim_end_matches(|c: char| !c.is_ascii_digit()) } else { name };
        made.push(&std::iter::once(name).chain(table.cells(*column, MOST)).collect::<Vec<_>>());
    }
    if tests.is_empty() || metrics.len() < table.rows() { Err(AuditError::MetricsAsRows) } else { Ok(made) }
}

/// Characters that rules are drawn with; bars are replaced before.
const RULE: &str = "-|+:= \t─━═┼╪╬┌┐└┘├┤┬┴╔╗╚╝╠╣╦╩╞╡╤╧╟╢╥╨╫╭╮╰╯┏┓┗┛┣┫┳┻╋┠┨┯┷";

/// The cells of a line, without what only formats them.
fn cells(line: &str) -> Vec<String> {
    let hidden = line.trim().replace("\\|", "\u{1}");
    let inner = hidden.strip_prefix('|').unwrap_or(&hidden);
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| plain(&cell.replace('\u{1}', "|"))).collect()
}

/// A cell without emphasis, code marks, links and tags; a raised mark is a footnote.
fn plain(cell: &str) -> String {
    let mut pieces = cell.split('<');
    let mut text = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        let is_tag = piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match piece.split_once('>') {
            Some(("sup", _)) => {}
            Some((tag, after)) if is_tag => text += &format!("{}{after}", if tag.starts_with("br") { " " } else { "" }),
            _ => text += &format!("<{piece}"),
        }
    }
    let text = text.replace("&nbsp;", " ");
    let text = text.trim().trim_matches(['*', '`']).trim();
    match text.split_once("](") {
        Some((name, _)) if text.starts_with('[') => name.trim_start_matches('[').to_owned(),
        _ => text.trim_start_matches("__").trim_end_matches("__").to_owned(),
    }
}

/// Tables between bars: Markdown and boxes, each named by the heading above it; none if no line rules off a header.
fn boxed(text: &str) -> Result<Vec<Table>, AuditError> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut open, mut ruled, mut doubled) = (String::new(), false, false, false);
    let mut above: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let bars: String = line.trim().chars().map(|c| if "│┃║┆┊╎".contains(c) { '|' } else { c }).collect();
        // Bars that stand twice are one border, if the rule says so.
        let line = if doubled { bars.replace("||", "|") } else { bars };
        // `|---|:--:|`, `---+---`, `╠═══╬═══╣`
        if line.chars().all(|c| RULE.contains(c)) && line.contains(|c: char| !"| :+".contains(c)) {
            doubled |= line.contains("++") || line.contains("||");
            ruled = true;
            if !open && !above.is_empty() {
                let mut table = Table { name: heading.clone(), ..Table::new(&above[0]) };
                // Without a rule below its header, they are all of the table.
                above[1..].iter().try_for_each(|row| table.add(row, true))?;
                tables.push(table);
                open = true;
            }
        } else if !line.contains('|') {
            (open, ruled, doubled) = (false, false, false);
            above.clear();
            if line.starts_with('#') {
                line.trim_start_matches('#').trim().clone_into(&mut heading);
            }
        } else if let (true, Some(table)) = (open, tables.last_mut()) {
            table.add(&cells(&line), false)?;
        } else {
            // Above the first rule, only the last line is a header; inside of a box, all are.
            if !ruled {
                above.clear();
            }
            above.push(cells(&line));
        }
    }
    Ok(tables)
}

/// Lines by which is decided how values are separated.
const LINES: usize = 40;

/// Reads the cells of one record from the start of `text`; returns what follows it, and whether a quote was never closed.
fn record<'a>(text: &'a str, separator: char, cells: &mut Vec<String>) -> (&'a str, bool) {
    cells.clear();
    let (mut cell, mut quoted, mut chars) = (String::new(), false, text.char_indices().peekable());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if quoted && chars.next_if(|(_, next)| *next == '"').is_some() => cell.push('"'),
            '"' if quoted || cell.trim().is_empty() => quoted = !quoted,
            '\n' if !quoted => {
                cells.push(cell);
                return (&text[at + 1..], false);
            }
            '\r' if !quoted => {}
            _ if c == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(c),
        }
    }
    cells.push(cell);
    ("", quoted)
}

/// Whether a record holds nothing, or only rules off a header.
fn is_blank(cells: &[String]) -> bool {
    cells.iter().all(|cell| cell.bytes().all(|b| matches!(b, b'-' | b'=' | b' ')))
}

/// How many of the first lines have the most frequent number of cells, that number, and the separator.
fn score(text: &str, separator: char) -> Option<(usize, usize, char)> {
    let (mut rest, mut cells, mut counts) = (text, Vec::new(), Vec::new());
    while !rest.is_empty() && counts.len() < LINES {
        (rest, _) = record(rest, separator, &mut cells);
        counts.extend((!is_blank(&cells)).then_some(cells.len()));
    }
    let with = |n: usize| counts.iter().filter(|c| **c == n).count();
    let most = counts.iter().copied().filter(|n| *n > 1).max_by_key(|n| (with(*n), *n))?;
    Some((with(most), most, separator))
}

/// Whether columns are set apart by spaces: a third of the lines, at least, has several figures, as many as other words.
fn is_aligned(text: &str) -> bool {
    let figures = |l: &str| l.split(' ').filter(|word| is_figure(word)).count();
    let is_row =
        |l: &&str| !l.contains([';', '\t']) && figures(l) >= 2 && figures(l) * 2 >= l.split_whitespace().count();
    let (lines, rows) = (|| text.lines().take(LINES), text.lines().take(LINES).filter(is_row).count());
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    rows > 0 && rows * 3 >= lines().filter(|l| l.contains(' ')).count() && !first.contains([',', ';', '\t'])
}

/// Tables of separated values: commas, semicolons or tabs, quotes as in RFC 4180. A blank line and a line of names begin another one.
fn separated(text: &str) -> Result<Vec<Table>, AuditError> {
    if is_aligned(text) {
        return Err(AuditError::Aligned);
    }
    // One column has no separator.
    let best = [',', ';', '\t'].into_iter().filter_map(|separator| score(text, separator)).max();
    let (_, width, separator) = best.unwrap_or((0, 1, ','));
    let mut tables: Vec<Table> = Vec::new();
    let (mut rest, mut cells, mut blank) = (text, Vec::new(), false);
    // A line of names that are not as many as the cells of most lines.
    let mut other: Option<Vec<String>> = None;
    while !rest.is_empty() {
        let open;
        (rest, open) = record(rest, separator, &mut cells);
        let was_blank = std::mem::replace(&mut blank, is_blank(&cells));
        if blank {
            continue;
        }
        let names = || cells.len() > 1 && cells.iter().all(|cell| !is_figure(cell));
        match tables.last_mut() {
            Some(table) if !(was_blank && names()) => {
                if open {
                    table.remarks.push((Some(table.rows()), Severity::Warning, Reason::OpenQuote));
                }
                table.add(&cells, false)?;
            }
            // The title of a sheet.
            None if cells.len() > 1 && cells.iter().filter(|cell| !cell.trim().is_empty()).count() == 1 => {}
            None if cells.len() != width => other = if names() { Some(cells.clone()) } else { None },
            _ if cells.iter().all(|h| h.trim().is_empty() || is_figure(h)) => {
                let shown = |cells: &[String]| cells.join(" ").chars().take(80).collect();
                return Err(match other {
                    Some(names) => AuditError::Header(shown(&names), names.len(), width),
                    None => AuditError::NoHeader(shown(&cells)),
                });
            }
            _ => tables.push(Table::new(&cells)),
        }
    }
    Ok(tables)
}
