//! Separated values: commas, semicolons or tabs. Quotes as in RFC 4180.

use super::{ReadError, Shape, Table, is_figure};
use crate::audit::finding::Reason;

const SAMPLE: usize = 40;

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
    while !rest.is_empty() && counts.len() < SAMPLE {
        (rest, _) = record(rest, separator, &mut cells);
        counts.extend((!is_blank(&cells)).then_some(cells.len()));
    }
    let with = |n: usize| counts.iter().filter(|c| **c == n).count();
    let most = counts.iter().copied().filter(|n| *n > 1).max_by_key(|n| (with(*n), *n))?;
    Some((with(most), most, separator))
}

/// Whether columns are set apart by spaces: a third of the lines, at least, has several figures.
fn is_aligned(text: &str) -> bool {
    let figures =
        |line: &&str| !line.contains([';', '\t']) && line.split(' ').filter(|word| is_figure(word)).count() >= 2;
    let rows = text.lines().take(SAMPLE).filter(figures).count();
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    rows > 0
        && rows * 3 >= text.lines().take(SAMPLE).filter(|l| l.contains(' ')).count()
        && !first.contains([',', ';', '\t'])
}

/// Reads all tables. A blank line and a line of names begin another one.
pub(super) fn read(text: &str) -> Result<Vec<Table>, ReadError> {
    if is_aligned(text) {
        return Err(Shape::Aligned.into());
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
                    table.remark(Some(table.rows()), true, Reason::OpenQuote);
                }
                table.add(&cells)?;
            }
            None if cells.len() != width => other = Some(cells.clone()).filter(|_| names()),
            _ if cells.iter().all(|h| h.trim().is_empty() || is_figure(h)) => {
                let shown = |cells: &[String]| cells.join(" ").chars().take(80).collect();
                return Err(match other {
                    Some(names) => ReadError::Header(shown(&names), names.len(), width),
                    None => ReadError::NoHeader(shown(&cells)),
                });
            }
            _ => tables.push(Table::new(&cells)),
        }
    }
    Ok(tables)
}
