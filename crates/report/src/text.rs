//! A document as plain text, and the layout of terminal tables.

use std::fmt::Write as _;

use crate::doc::{Block, Cell, Document, Head, Note, Row, Table};
use crate::words::cut;

/// Separates two columns.
const GAP: &str = "  ";
/// Line width of text.
const PROSE: usize = 100;

/// The document's figures, without the evidence.
pub(crate) fn render(document: &Document) -> String {
    let mut out = format!("{}\n", clean(&document.title));
    out.push_str(&wrapped(&document.subtitle, "", PROSE));
    let _ = write!(out, "\n{}\n", clean(&document.verdict));
    for remark in &document.remarks {
        out.push_str(&wrapped(remark, "  ", PROSE));
    }
    for section in document.sections.iter().filter(|s| s.in_text) {
        let title = clean(&section.title);
        let _ = write!(out, "\n{title}\n{}\n", "=".repeat(title.chars().count()));
        section.blocks.iter().for_each(|b| block(&mut out, b, PROSE));
    }
    out
}

/// A block that text has; charts and what is folded it has not.
pub(crate) fn block(out: &mut String, block: &Block, prose: usize) {
    match block {
        Block::Table(t) => table(out, t, prose),
        Block::Para { text } => {
            out.push('\n');
            out.push_str(&wrapped(text, "", prose));
        }
        Block::List { items } => {
            out.push('\n');
            items.iter().for_each(|item| out.push_str(&wrapped(&format!("- {item}"), "", prose)));
        }
        Block::Notes { markdown: text } | Block::Code { text } => {
            out.push('\n');
            text.lines().for_each(|line| {
                let _ = writeln!(out, "{}", clean(line));
            });
        }
        // Captions name the workload already; the rest is evidence or charts.
        _ => {}
    }
}

/// A table with its caption, remarks and notes; text is wrapped at `prose`.
pub(crate) fn table(out: &mut String, t: &Table, prose: usize) {
    out.push('\n');
    if !t.caption.is_empty() {
        let sub = if t.sub.is_empty() { String::new() } else { format!(" ({})", clean(&t.sub)) };
        let _ = writeln!(out, "{}{sub}", clean(&t.caption));
    }
    let rows = cells_of(t);
    out.push_str(&grid(&t.head, &rows));
    for r in t.rows.iter().filter(|r| !r.remark.is_empty()) {
        let name = r.cells.first().map(|c| c.text.as_str()).filter(|n| !n.is_empty() && !r.invalid && r.first);
        let name = name.map(|n| format!("{n}: ")).unwrap_or_default();
        let cross = if r.invalid { "✗ " } else { "" };
        out.push_str(&wrapped(&format!("{cross}{name}{}", r.remark), "", prose));
    }
    for n in &t.notes {
        out.push_str(&wrapped(&format!("{} {}", superscript(&n.mark), n.text), "", prose));
    }
}

/// The cells as printed; a heading row has one.
fn cells_of(t: &Table) -> Vec<Vec<String>> {
    t.rows
        .iter()
        .map(|r| {
            if !r.title.is_empty() {
                return vec![clean(&r.title)];
            }
            let cells = r.cells.iter().enumerate();
            cells
                .map(|(i, c)| {
                    let cross = if r.invalid && i == 0 { "✗" } else { "" };
                    format!("{}{}{cross}", clean(&c.text), superscript(&c.mark))
                })
                .collect()
        })
        .collect()
}

/// Width of the widest line of `t`.
pub(crate) fn table_width(t: &Table) -> usize {
    grid(&t.head, &cells_of(t)).lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// `t` at most `width` characters wide, if that can be: columns with one text in all rows go first, into a note, then those of
/// `order`. Returns it with the titles of columns that are left out.
pub(crate) fn narrowed(t: &Table, width: usize, order: &[&str]) -> (Table, Vec<String>) {
    let mut t = t.clone();
    let mut left_out = Vec::new();
    let mut said = Vec::new();
    let same = |t: &Table, index: usize| {
        // In a group, a row without it says what the first one does.
        let grouped = t.rows.iter().any(|r| r.first);
        let repeats = |r: &Row, c: &Cell| grouped && !r.first && c.text.is_empty();
        let mut cells = t.rows.iter().filter_map(|r| r.cells.get(index).filter(|c| !repeats(r, c)));
        let first = cells.next().filter(|c| c.mark.is_empty())?;
        (t.rows.len() > 1 && cells.all(|c| c.text == first.text && c.mark.is_empty())).then(|| first.text.clone())
    };
    let remove = |t: &mut Table, index: usize| {
        t.rows.iter_mut().filter(|r| r.cells.len() > index).for_each(|r| drop(r.cells.remove(index)));
        t.head.remove(index)
    };
    for index in (0..t.head.len()).rev() {
        if let Some(text) = same(&t, index).filter(|_| table_width(&t) > width && !t.head[index].title.is_empty()) {
            let head = remove(&mut t, index);
            said.push([head.title, text, head.unit].join(" ").trim_end().to_owned());
        }
    }
    for title in order {
        let at = t.head.iter().position(|h| h.title == *title);
        if let Some(index) = at.filter(|_| table_width(&t) > width) {
            left_out.push(remove(&mut t, index).title);
        }
    }
    if !said.is_empty() {
        said.reverse();
        t.notes.insert(0, Note { mark: String::new(), text: format!("In all rows: {}.", said.join(", ")) });
    }
    (t, left_out)
}

/// Heading lines of a column: its title, wrapped at the width of the cells, then the unit.
fn heading_lines(head: &Head, cells: usize) -> Vec<String> {
    let title = clean(&head.title);
    let widest_word = title.split(' ').map(|w| w.chars().count()).max().unwrap_or(0);
    let unit = if head.unit.is_empty() { String::new() } else { format!("[{}]", clean(&head.unit)) };
    let width = cells.max(widest_word).max(unit.chars().count());
    let mut lines: Vec<String> = Vec::new();
    for word in title.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if !unit.is_empty() {
        lines.push(unit);
    }
    lines
}

/// Width that a column needs.
pub(crate) fn column_width(head: &Head, cells: usize) -> usize {
    heading_lines(head, cells).iter().map(|l| l.chars().count()).max().unwrap_or(0).max(cells)
}

/// Widest cell of column `index`.
fn widest(rows: &[Vec<String>], columns: usize, index: usize) -> usize {
    let rows = rows.iter().filter(|r| columns == 1 || r.len() > 1);
    rows.filter_map(|r| r.get(index)).map(|c| c.chars().count()).max().unwrap_or(0)
}

/// Headings over rows; numbers are aligned right, texts left. A row of one cell in a table of several columns is a heading
/// of the rows that follow.
pub(crate) fn grid(head: &[Head], rows: &[Vec<String>]) -> String {
    let columns: Vec<(usize, Vec<String>)> = head
        .iter()
        .enumerate()
        .map(|(i, h)| {
            let cells = widest(rows, head.len(), i);
            (column_width(h, cells), heading_lines(h, cells))
        })
        .collect();
    let tall = columns.iter().map(|c| c.1.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(head)
            .zip(&columns)
            .map(
                |((text, h), (width, _))| if h.numeric { format!("{text:>width$}") } else { format!("{text:<width$}") },
            )
            .collect();
        out.push_str(padded.join(GAP).trim_end());
        out.push('\n');
    };
    for i in 0..tall {
        // Headings are aligned at the bottom.
        let cell =
            |c: &'_ Vec<String>| i.checked_sub(tall - c.len()).and_then(|at| c.get(at)).cloned().unwrap_or_default();
        let texts: Vec<String> = columns.iter().map(|c| cell(&c.1)).collect();
        line(&mut texts.iter().map(String::as_str));
    }
    let rules: Vec<String> = columns.iter().map(|c| "─".repeat(c.0)).collect();
    line(&mut rules.iter().map(String::as_str));
    for (i, row) in rows.iter().enumerate() {
        if row.len() == 1 && head.len() > 1 && i > 0 {
            line(&mut std::iter::empty());
        }
        line(&mut row.iter().map(String::as_str));
    }
    out
}

/// Width of a grid with these column widths.
pub(crate) fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// `text` wrapped at `width`, each line with `indent`.
pub(crate) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in clean(text).split_whitespace() {
        let long = word.chars().count();
        if used > 0 && used + 1 + long > width {
            out.push('\n');
            used = 0;
        }
        if used == 0 {
            out.push_str(indent);
            used = indent.chars().count();
        } else {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
    }
    out.push('\n');
    out
}

/// Whether `c` is not seen, but changes what is: a control character, or a mark that turns the direction of a text.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

/// `text` without such characters, so that a record cannot control the terminal.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { ' ' } else { c }).collect()
}

/// Longest name that is shown, characters.
const LONGEST_NAME: usize = 120;

/// A name of a run's platform, product or workload as it is shown: whoever wrote the run chose it.
#[must_use]
pub fn shown_name(name: &str) -> String {
    cut(&clean(name), LONGEST_NAME)
}

/// Superscript digits: `12` becomes `¹²`.
pub(crate) fn superscript(mark: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let high = |c: char| c.to_digit(10).and_then(|d| DIGITS.get(d as usize)).copied().unwrap_or(c);
    mark.chars().map(high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_in_all_rows_leaves_a_narrow_table_first() {
        let row = |cells: [&str; 4]| {
            let first = !cells[0].is_empty();
            Row { cells: cells.map(|c| Cell::from(c.to_owned())).to_vec(), first, ..Row::default() }
        };
        let head = ["Workload", "Throughput", "Detectable", "Pairs"].map(Head::text);
        let wide = Table::of("figures", head, [row(["TP", "10", "5 %", "6"]), row(["", "12", "7 %", "6"])]);
        let titles = |width| {
            let (t, left_out) = narrowed(&wide, width, &["Detectable"]);
            let said = t.notes.iter().map(|n| n.text.clone()).collect::<String>();
            (t.head.iter().map(|h| h.title.clone()).collect::<Vec<_>>().join(" "), said, left_out.join(" "))
        };
        let of = |head: &str, said: &str, left_out: &str| (head.to_owned(), said.to_owned(), left_out.to_owned());
        assert_eq!(titles(table_width(&wide)), of("Workload Throughput Detectable Pairs", "", ""));
        assert_eq!(titles(table_width(&wide) - 1), of("Workload Throughput Detectable", "In all rows: Pairs 6.", ""));
        assert_eq!(titles(12), of("Throughput", "In all rows: Workload TP, Pairs 6.", "Detectable"));
    }

    #[test]
    fn a_name_neither_turns_a_line_nor_fills_a_page() {
        assert_eq!(shown_name("a\u{202e}b\u{1b}[31m\u{2066}c"), "a b [31m c");
        assert_eq!(shown_name(&"x".repeat(200_000)).chars().count(), LONGEST_NAME + 1);
        for plain in ["Array A, new disks", "Ünïcode 日本 👩\u{200d}💻", "می\u{200c}شود"] {
            assert_eq!(shown_name(plain), plain, "joiners belong to words");
        }
        let page = crate::html::Text("a\u{202e}<b>\nc").to_string();
        assert_eq!(page, "a &lt;b&gt;\nc");
    }
}
