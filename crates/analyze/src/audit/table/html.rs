//! Tables of an HTML page, by a scanner that forgives what browsers forgive: missing ends, capitals, bare attributes.

use std::borrow::Cow;

use super::number::{self, Style};
use super::{ReadError, Table};

/// Whether `text` holds an HTML table.
pub(super) fn is(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("table")) {
            return true;
        }
    }
    false
}

/// Columns that one cell may span; more is a mistake.
const SPAN: usize = 200;

#[derive(Default, Clone)]
struct Cell {
    text: String,
    header: bool,
    columns: usize,
    rows: usize,
}

#[derive(Default)]
struct Open {
    caption: String,
    rows: Vec<(bool, Vec<Cell>)>,
    /// Inside of `thead`.
    head: bool,
    cell: Option<Cell>,
}

impl Open {
    fn end_cell(&mut self) {
        if let (Some(cell), Some((_, row))) = (self.cell.take(), self.rows.last_mut()) {
            row.push(cell);
        }
    }

    /// Rows with spans filled in: whether each is of the header, and its cells.
    fn grid(self) -> Vec<(bool, Vec<String>)> {
        let mut grid: Vec<(bool, Vec<String>)> = Vec::new();
        // For each column, how many more rows a cell above reaches, and its text.
        let mut above: Vec<(usize, String)> = Vec::new();
        for (head, cells) in self.rows.into_iter().filter(|(_, cells)| !cells.is_empty()) {
            // One cell over all columns is a note.
            if matches!(cells.as_slice(), [note] if note.columns > 1 && !note.header && !grid.is_empty()) {
                continue;
            }
            let header = head || cells.iter().all(|c| c.header);
            let mut row: Vec<String> = Vec::new();
            let fill = |row: &mut Vec<String>, above: &mut Vec<(usize, String)>| {
                while let Some((left, text)) = above.get_mut(row.len()).filter(|(left, _)| *left > 0) {
                    *left -= 1;
                    row.push(text.clone());
                }
            };
            for cell in cells {
                fill(&mut row, &mut above);
                for _ in 0..cell.columns {
                    let column = row.len();
                    if above.len() <= column {
                        above.resize(column + 1, (0, String::new()));
                    }
                    above[column] = (cell.rows - 1, cell.text.clone());
                    row.push(cell.text.clone());
                }
            }
            fill(&mut row, &mut above);
            grid.push((header, row));
        }
        grid
    }

    fn table(self, heading: &str) -> Result<Option<Table>, ReadError> {
        let caption = if self.caption.trim().is_empty() { heading.to_owned() } else { self.caption.trim().to_owned() };
        let grid = self.grid();
        let number = |text: &String| number::parse(text, Style::Point).is_some();
        // Names that span others stand above them, also where no cell says that it is a name.
        let spans = |row: &[String]| row.windows(2).any(|w| w[0] == w[1] && !w[0].trim().is_empty());
        let names = |at: usize| match (at.checked_sub(1).and_then(|above| grid.get(above)), grid.get(at)) {
            (_, Some((true, _))) | (None, _) => true,
            (Some((_, above)), Some((_, row))) => spans(above) && !row.iter().any(number),
            _ => false,
        };
        let headers = (0..grid.len()).take_while(|at| names(*at)).count().max(1);
        let Some(width) = grid.get(headers - 1).map(|(_, row)| row.len()) else { return Ok(None) };
        let name = |column: usize| {
            let mut parts: Vec<&str> = Vec::new();
            for (_, row) in &grid[..headers] {
                let part = row.get(column).map_or("", |text| text.trim());
                // A cell over two lines of names, and one over the whole table, which is a title.
                let title = row.len() > 1 && row.iter().all(|text| text == part);
                if !part.is_empty() && !title && parts.last() != Some(&part) {
                    parts.push(part);
                }
            }
            parts.join(" ")
        };
        let mut table = Table::new((0..width).map(name).collect());
        table.name = caption;
        for (_, row) in &grid[headers..] {
            let cells: Vec<&str> = row.iter().map(|c| c.trim()).collect();
            if table.rows() == 0 && cells.len() == width && super::units_only(&cells) {
                super::add_units(&mut table.headers, &cells);
            } else {
                table.push(cells.iter().copied())?;
            }
        }
        Ok(Some(table))
    }
}

/// Reads all tables, each named by its caption or the heading above it.
pub(super) fn read(text: &str) -> Result<Vec<Table>, ReadError> {
    let (mut tables, mut stack): (Vec<Table>, Vec<Open>) = (Vec::new(), Vec::new());
    let (mut heading, mut in_heading, mut in_caption) = (String::new(), false, false);
    let text = &raised(text);
    let mut rest = text.as_ref();
    loop {
        let at = rest.find('<').unwrap_or(rest.len());
        let words = &rest[..at];
        if in_heading {
            heading.push_str(&entities(words));
        } else if let Some(open) = stack.last_mut() {
            if in_caption {
                open.caption.push_str(&entities(words));
            } else if let Some(cell) = &mut open.cell {
                cell.text.push_str(&entities(words));
            }
        }
        let Some(tag) = rest.get(at + 1..).filter(|tag| !tag.is_empty()) else { break };
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let end = end_of_tag(tag);
        let (inner, after) = (&tag[..end], tag.get(end + 1..).unwrap_or(""));
        rest = after;
        let name: String = inner
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '/')
            .collect::<String>()
            .to_ascii_lowercase();
        match name.as_str() {
            "script" | "style" => {
                let closes = |text: &str| text.get(2..2 + name.len()).is_some_and(|n| n.eq_ignore_ascii_case(&name));
                let close = after.match_indices("</").map(|(at, _)| at).find(|at| closes(&after[*at..]));
                rest = &after[close.unwrap_or(after.len())..];
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                heading.clear();
                in_heading = true;
            }
            "/h1" | "/h2" | "/h3" | "/h4" | "/h5" | "/h6" => {
                heading = heading.split_whitespace().collect::<Vec<_>>().join(" ");
                in_heading = false;
            }
            "table" => {
                in_heading = false;
                stack.push(Open::default());
            }
            "caption" => in_caption = true,
            "/caption" => in_caption = false,
            "/table" => {
                if let Some(mut open) = stack.pop() {
                    open.end_cell();
                    tables.extend(open.table(heading.trim())?);
                }
            }
            _ => {
                if let Some(open) = stack.last_mut() {
                    in_table(open, &name, inner);
                }
            }
        }
    }
    while let Some(mut open) = stack.pop() {
        open.end_cell();
        tables.extend(open.table(heading.trim())?);
    }
    Ok(tables)
}

fn in_table(open: &mut Open, name: &str, inner: &str) {
    match name {
        "thead" => open.head = true,
        "/thead" | "tbody" => {
            open.end_cell();
            open.head = false;
        }
        "tr" => {
            open.end_cell();
            open.rows.push((open.head, Vec::new()));
        }
        "/tr" | "/td" | "/th" | "/tbody" => open.end_cell(),
        "td" | "th" => {
            open.end_cell();
            if open.rows.is_empty() {
                open.rows.push((open.head, Vec::new()));
            }
            let span = |which| attribute(inner, which).clamp(1, SPAN);
            open.cell = Some(Cell {
                text: String::new(),
                header: name == "th",
                columns: span("colspan"),
                rows: span("rowspan"),
            });
        }
        "br" | "br/" => {
            if let Some(cell) = &mut open.cell {
                cell.text.push(' ');
            }
        }
        _ => {}
    }
}

/// Position of the `>` that ends a tag, which may hold others in quotes. In a value without quotes, `title=it's`, they are text.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    let mut before = b' ';
    for (at, byte) in tag.bytes().enumerate() {
        match (byte, quote) {
            (b'>', None) => return at,
            (b'"' | b'\'', None) if before == b'=' => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    tag.find('>').unwrap_or(tag.len())
}

/// A number of an attribute; 1 if it is not there.
fn attribute(tag: &str, name: &str) -> usize {
    let lower = tag.to_ascii_lowercase();
    let value = lower.split_once(name).and_then(|(_, after)| after.trim_start().strip_prefix('='));
    let digits = value.map(|v| v.trim_start().trim_start_matches(['"', '\'']));
    let digits: Option<String> = digits.map(|d| d.chars().take_while(char::is_ascii_digit).collect());
    digits.and_then(|d| d.parse().ok()).unwrap_or(1)
}

/// Text whose raised digits are characters of their own: `10,954<sup>1</sup>` is not 109,541.
fn raised(text: &str) -> Cow<'_, str> {
    const SUP: &str = "<sup>";
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(SUP) {
        let (digits, behind) = after.split_once("</sup>").unwrap_or((after, ""));
        out.push_str(before);
        out.extend(digits.chars().map(|c| match c.to_digit(10) {
            Some(digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize).unwrap_or(c),
            None => c,
        }));
        rest = behind;
    }
    if out.is_empty() && rest.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(out + rest) }
}

/// Text without tags, its entities as characters.
pub(super) fn without_tags(text: &str) -> String {
    let text = &raised(text);
    let (mut out, mut rest) = (String::new(), text.as_ref());
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        // "< 1 ms" is no tag.
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
            out.push_str(&rest[..=at]);
            rest = tag;
            continue;
        }
        let Some(end) = tag.find('>') else { break };
        out.push_str(&rest[..at]);
        rest = &tag[end + 1..];
    }
    out.push_str(rest);
    entities(&out)
}

/// Replaces the entities that tables hold.
fn entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let end = tail.find(|c: char| !(c.is_ascii_alphanumeric() || c == '#')).unwrap_or(tail.len());
        let name = &tail[..end];
        match entity(name).filter(|_| rest[at + 1 + name.len()..].starts_with(';')) {
            Some(c) => {
                out.push(c);
                rest = &rest[at + name.len() + 2..];
            }
            None => {
                out.push('&');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "thinsp" => '\u{2009}',
        "micro" | "mu" => 'µ',
        "minus" => '−',
        "ndash" => '–',
        "mdash" => '—',
        "times" => '×',
        "le" => '≤',
        "ge" => '≥',
        _ => {
            let code = name.strip_prefix('#')?;
            let number = match code.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => code.parse(),
            };
            return char::from_u32(number.ok()?);
        }
    })
}
