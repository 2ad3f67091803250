//! Tables between bars: Markdown, and the boxes of SQL shells and other tools.

use super::{Shape, Table, is_figure};

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
        match piece.split_once('>').filter(|_| is_tag) {
            Some(("sup", _)) => {}
            Some((tag, after)) => text += &format!("{}{after}", if tag.starts_with("br") { " " } else { "" }),
            None => text += &format!("<{piece}"),
        }
    }
    let text = text.replace("&nbsp;", " ");
    let text = text.trim().trim_matches(['*', '`']).trim();
    match text.split_once("](").filter(|_| text.starts_with('[')) {
        Some((name, _)) => name.trim_start_matches('[').to_owned(),
        None => text.trim_start_matches("__").trim_end_matches("__").to_owned(),
    }
}

/// Reads all tables, each named by the heading above it; none if no line rules off a header.
pub(super) fn read(text: &str) -> Result<Vec<Table>, Shape> {
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
                tables.push(header(&above, &heading)?);
                open = true;
            }
        } else if !line.contains('|') {
            (open, ruled, doubled) = (false, false, false);
            above.clear();
            if line.starts_with('#') {
                line.trim_start_matches('#').trim().clone_into(&mut heading);
            }
        } else if let (true, Some(table)) = (open, tables.last_mut()) {
            table.add(&cells(&line))?;
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

/// A table with the header in `rows`, which may be several lines in a box, and all of it if no rule stands below its header.
fn header(rows: &[Vec<String>], heading: &str) -> Result<Table, Shape> {
    let mut table = Table::new(&rows[0]);
    heading.clone_into(&mut table.name);
    for row in &rows[1..] {
        if table.rows() > 0 || row.iter().any(|cell| is_figure(cell)) {
            table.push(row);
        } else if !table.continue_header(row)? {
            return Err(Shape::TwoHeaderRows);
        }
    }
    Ok(table)
}
