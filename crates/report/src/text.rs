//! A document as plain text, and the layout of terminal tables.

use std::fmt::Write as _;

use crate::doc::{Block, Cell, Document, Head, Row, Table};
use crate::words::{cut, lower};

const GAP: &str = "  ";
const PROSE: usize = 100;

/// The document's figures, without the evidence.
pub(crate) fn render(document: &Document) -> String {
    let mut out = format!("{}\n", clean(&document.title));
    out.push_str(&wrapped(&document.subtitle, "", PROSE));
    if !document.verdict.is_empty() {
        let _ = write!(out, "\n{}\n", clean(&document.verdict));
    }
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

/// `blocks` for a terminal of `width` characters (`None`: unlimited).
pub(crate) fn for_terminal(blocks: &[Block], width: Option<usize>) -> String {
    let (prose, available) = (width.unwrap_or(PROSE).clamp(40, PROSE), width.unwrap_or(usize::MAX));
    let mut out = String::new();
    for of in blocks {
        match of {
            Block::Table(t) => fitted(&mut out, t, (available, prose)),
            of => block(&mut out, of, prose),
        }
    }
    out
}

/// A block that text has; charts and what is folded it has not.
pub(crate) fn block(out: &mut String, block: &Block, prose: usize) {
    match block {
        Block::Table(t) => table(out, t, prose),
        Block::Para { text } | Block::Answer { sentence: text, .. } => {
            out.push('\n');
            out.push_str(&wrapped(text, "", prose));
        }
        Block::List { items } => {
            out.push('\n');
            // What is marked already needs no dash.
            let dash = |item: &str| if item.starts_with("! ") { "" } else { "- " };
            items.iter().for_each(|item| out.push_str(&wrapped(&format!("{}{item}", dash(item)), "", prose)));
        }
        Block::Notes { markdown: text } | Block::Code { text } => {
            out.push('\n');
            text.lines().for_each(|line| {
                let _ = writeln!(out, "{}", clean(line));
            });
        }
        Block::Beside { blocks } => blocks.iter().for_each(|of| self::block(out, of, prose)),
        // Captions name the workload already; the rest is evidence or charts.
        _ => {}
    }
}

/// A table with its caption, remarks and notes; text is wrapped at `prose`.
pub(crate) fn table(out: &mut String, t: &Table, prose: usize) {
    caption(out, t, prose);
    out.push_str(&grid(&t.head, &cells_of(t)));
    for r in t.rows.iter().filter(|r| !r.remark.is_empty()) {
        out.push_str(&wrapped(&remark(r), "", prose));
    }
    notes(out, t, prose);
}

fn caption(out: &mut String, t: &Table, prose: usize) {
    out.push('\n');
    if !t.caption.is_empty() {
        let sub = if t.sub.is_empty() { String::new() } else { format!(" ({})", t.sub) };
        out.push_str(&wrapped(&format!("{}{sub}", t.caption), "", prose));
    }
}

fn notes(out: &mut String, t: &Table, prose: usize) {
    for (note, number) in t.notes.iter().zip(1..) {
        out.push_str(&wrapped(&format!("{} {note}", superscript(&[number])), "", prose));
    }
}

/// A row's remark; that of the first of several rows begins with their name.
fn remark(row: &Row) -> String {
    let name = row.cells.first().map(|c| c.text.as_str()).filter(|n| !n.is_empty() && !row.invalid && row.first);
    let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
    format!("{}{name}{}", if row.invalid { "✗ " } else { "" }, row.remark)
}

/// The cells as printed; a heading row has one.
fn cells_of(t: &Table) -> Vec<Vec<String>> {
    let row = |r: &Row| {
        if !r.title.is_empty() {
            return vec![clean(&r.title)];
        }
        let cross = |i: usize| if r.invalid && i == 0 { "✗" } else { "" };
        let cell = |(i, c): (usize, &Cell)| format!("{}{}{}", clean(&c.text), superscript(&c.marks), cross(i));
        r.cells.iter().enumerate().map(cell).collect()
    };
    t.rows.iter().map(row).collect()
}

fn table_width(t: &Table) -> usize {
    grid(&t.head, &cells_of(t)).lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

/// A table `width` characters wide: as [`narrowed`], or if it is still too wide, a sentence for each row.
fn fitted(out: &mut String, t: &Table, (width, prose): (usize, usize)) {
    let (narrow, said) = narrowed(t, width);
    if table_width(&narrow) <= width {
        table(out, &narrow, prose);
        said.iter().for_each(|sentence| out.push_str(&wrapped(sentence, "", prose)));
        return;
    }
    caption(out, t, prose);
    for row in &t.rows {
        out.push_str(&wrapped(&if row.title.is_empty() { sentence(t, row) } else { row.title.clone() }, "", prose));
        if !row.remark.is_empty() {
            out.push_str(&wrapped(&remark(row), "", prose));
        }
    }
    notes(out, t, prose);
}

/// A row as a sentence: `LGWR-LAT1: peak 5,800 tps, at 4 jobs, latency [mean] 690 µs.`
fn sentence(t: &Table, row: &Row) -> String {
    let mut cells = t.head.iter().zip(&row.cells).map(|(head, cell)| {
        let text = format!("{}{}", cell.text, superscript(&cell.marks));
        match (cell.text.is_empty(), head.title.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!(" {text}"),
            (false, false) => format!(", {} {text}", lower(&head.heading())),
        }
    });
    let name = cells.next().map(|_| row.cells.first().map_or("", |cell| &cell.text)).unwrap_or_default();
    format!("{name}:{}.", cells.collect::<String>().trim_start_matches(','))
}

/// `t` without columns of one text in all rows, then without dispensable ones, the last first, until it fits; and what is said of these.
fn narrowed(t: &Table, width: usize) -> (Table, Vec<String>) {
    let mut t = t.clone();
    let (mut said, mut left_out) = (Vec::new(), Vec::new());
    let same = |t: &Table, index: usize| {
        // In a group, a row without it says what the first one does.
        let grouped = t.rows.iter().any(|r| r.first);
        let repeats = |r: &Row, c: &Cell| grouped && !r.first && c.text.is_empty();
        let mut cells = t.rows.iter().filter_map(|r| r.cells.get(index).filter(|c| !repeats(r, c)));
        let first = cells.next().filter(|c| c.marks.is_empty())?;
        (t.rows.len() > 1 && cells.all(|c| c.text == first.text && c.marks.is_empty())).then(|| first.text.clone())
    };
    for index in (0..t.head.len()).rev() {
        if let Some(text) = same(&t, index)
            && table_width(&t) > width
            && !t.head[index].title.is_empty()
        {
            let head = t.remove(index);
            said.insert(0, [head.title, text, head.unit].join(" ").trim_end().to_owned());
        }
    }
    for index in (0..t.head.len()).rev() {
        if t.head[index].dispensable && table_width(&t) > width {
            left_out.push(t.remove(index).title);
        }
    }
    let in_all = (!said.is_empty()).then(|| format!("In all rows: {}.", said.join(", ")));
    let without = format!("For want of width without {}: the report has all columns.", left_out.join(", "));
    (t, in_all.into_iter().chain((!left_out.is_empty()).then_some(without)).collect())
}

/// Heading lines of a column: its title, wrapped at the width of the cells, then the unit.
fn heading_lines(head: &Head, cells: usize) -> Vec<String> {
    let title = clean(&head.title);
    let widest_word = title.split(' ').map(|w| w.chars().count()).max().unwrap_or(0);
    let unit = if head.unit.is_empty() { String::new() } else { format!("[{}]", clean(&head.unit)) };
    let width = cells.max(widest_word).max(unit.chars().count());
    // Blanks at which no title is broken.
    let mut lines: Vec<String> = wrapped(&title, "", width).lines().map(|line| line.replace('\u{a0}', " ")).collect();
    if !unit.is_empty() {
        lines.push(unit);
    }
    lines
}

fn widest(rows: &[Vec<String>], columns: usize, index: usize) -> usize {
    let rows = rows.iter().filter(|r| columns == 1 || r.len() > 1);
    rows.filter_map(|r| r.get(index)).map(|c| c.chars().count()).max().unwrap_or(0)
}

/// Headings over rows. A row of one cell in a table of several columns is a heading of the rows that follow.
pub(crate) fn grid(head: &[Head], rows: &[Vec<String>]) -> String {
    let cells: Vec<usize> = (0..head.len()).map(|i| widest(rows, head.len(), i)).collect();
    let headings: Vec<Vec<String>> = head.iter().zip(&cells).map(|(h, cells)| heading_lines(h, *cells)).collect();
    let longest = |lines: &Vec<String>| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = headings.iter().zip(cells).map(|(lines, cells)| longest(lines).max(cells)).collect();
    let tall = headings.iter().map(Vec::len).max().unwrap_or(0);
    // Headings are aligned at the bottom.
    let line = |lines: &Vec<String>, i: usize| lines.get((i + lines.len()).checked_sub(tall)?).cloned();
    let heading = |i: usize| headings.iter().map(|lines| line(lines, i).unwrap_or_default()).collect();
    let mut lines: Vec<Vec<String>> = (0..tall).map(heading).collect();
    lines.push(widths.iter().map(|width| "─".repeat(*width)).collect());
    for (i, row) in rows.iter().enumerate() {
        if row.len() == 1 && head.len() > 1 && i > 0 {
            lines.push(Vec::new());
        }
        lines.push(row.clone());
    }
    let padded = |((text, h), width): ((&String, &Head), &usize)| {
        if h.numeric { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    let joined = |line: Vec<String>| line.iter().zip(head).zip(&widths).map(padded).collect::<Vec<_>>().join(GAP);
    lines.into_iter().map(|line| joined(line).trim_end().to_owned() + "\n").collect()
}

pub(crate) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
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
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { ' ' } else { c }).collect()
}

/// Longest name that is shown, characters.
const LONGEST_NAME: usize = 120;

/// A name of a run's platform, product or workload as it is shown: whoever wrote the run chose it.
pub fn shown_name(name: &str) -> String {
    cut(&clean(name), LONGEST_NAME)
}

/// Superscript digits: `[1, 12]` becomes `¹ ¹²`.
fn superscript(marks: &[usize]) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let high = |c: char| c.to_digit(10).and_then(|d| DIGITS.get(d as usize)).copied().unwrap_or(c);
    let mark = |mark: &usize| mark.to_string().chars().map(high).collect::<String>();
    marks.iter().map(mark).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_in_all_rows_leaves_a_narrow_table_first() {
        let row = |cells: [&str; 4]| {
            let first = !cells[0].is_empty();
            Row { cells: cells.map(Cell::from).to_vec(), first, ..Row::default() }
        };
        let [workload, throughput, detectable, pairs] =
            ["Workload", "Throughput", "Detectable", "Pairs"].map(Head::text);
        let head = vec![workload, throughput, Head { dispensable: true, ..detectable }, pairs];
        let rows = vec![row(["TP", "10", "5 %", "6"]), row(["", "12", "7 %", "6"])];
        let wide = Table { head, rows, ..Table::default() };
        let titles = |width| {
            let (t, said) = narrowed(&wide, width);
            (t.head.iter().map(|h| h.title.as_str()).collect::<Vec<_>>().join(" "), said.join(" "))
        };
        let of = |head: &str, said: &str| (head.to_owned(), said.to_owned());
        assert_eq!(titles(table_width(&wide)), of("Workload Throughput Detectable Pairs", ""));
        assert_eq!(titles(table_width(&wide) - 1), of("Workload Throughput Detectable", "In all rows: Pairs 6."));
        let both =
            "In all rows: Workload TP, Pairs 6. For want of width without Detectable: the report has all columns.";
        assert_eq!(titles(12), of("Throughput", both));
    }

    #[test]
    fn a_name_neither_turns_a_line_nor_fills_a_page() {
        assert_eq!(shown_name("a\u{202e}b\u{1b}[31m\u{2066}c"), "a b [31m c");
        assert_eq!(shown_name(&"x".repeat(200_000)).chars().count(), LONGEST_NAME + 1);
        for plain in ["Array A, new disks", "Ünïcode 日本 👩\u{200d}💻", "می\u{200c}شود"] {
            assert_eq!(shown_name(plain), plain, "joiners belong to words");
        }
        let page = crate::escape::Text("a\u{202e}<b>\nc").to_string();
        assert_eq!(page, "a &lt;b&gt;\nc");
    }
}
