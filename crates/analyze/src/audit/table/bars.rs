//! Tables between bars: Markdown, and the boxes of SQL shells and other tools.

use super::{ReadError, Shape, Table, is_figure};

/// Characters that rules are drawn with; bars are replaced before.
const RULE: &str = "-|+:= \t─━═┼╪╬┌┐└┘├┤┬┴╔╗╚╝╠╣╦╩╞╡╤╧╟╢╥╨╫╭╮╰╯┏┓┗┛┣┫┳┻╋┠┨┯┷";

/// Whether a line rules off a header: `|---|:--:|`, `---+---`, `╠═══╬═══╣`.
fn is_rule(line: &str) -> bool {
    let drawn = |c: char| c != '|' && c != ' ' && c != ':' && c != '+';
    !line.is_empty() && line.chars().all(|c| RULE.contains(c)) && line.contains(drawn)
}

/// The cells of a line, without what only formats them.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = if line.ends_with("\\|") { line } else { line.strip_suffix('|').unwrap_or(line) };
    let hidden = line.replace("\\|", "\u{1}");
    hidden.split('|').map(|cell| plain(&cell.replace('\u{1}', "|"))).collect()
}

/// A cell without emphasis, code marks, links and tags.
fn plain(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some(open) = rest.find('<') {
        let inside = &rest[open + 1..];
        let tag = inside.find('>').filter(|_| inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'));
        let Some(close) = tag else { break };
        // A raised mark is a footnote, with what stands in it.
        let after = &inside[close + 1..];
        let raised = inside.starts_with("sup>").then(|| after.find("</sup>")).flatten();
        text.push_str(&rest[..open]);
        text.push_str(if inside.starts_with("br") { " " } else { "" });
        rest = &after[raised.unwrap_or(0)..];
    }
    text.push_str(rest);
    let text = text.replace("&nbsp;", " ");
    let text = text.trim().trim_matches(['*', '`']).trim();
    match (text.strip_prefix('['), text.split_once("](")) {
        (Some(_), Some((name, _))) => name.trim_start_matches('[').to_owned(),
        _ => text.trim_start_matches("__").trim_end_matches("__").to_owned(),
    }
}

/// Reads all tables, each named by the heading above it; `None` if no line rules off a header.
pub(super) fn read(text: &str) -> Result<Option<Vec<Table>>, ReadError> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut open, mut ruled, mut doubled) = (String::new(), false, false, false);
    let mut above: Vec<String> = Vec::new();
    for line in text.lines() {
        let bars: String = line.trim().chars().map(|c| if "│┃║┆┊╎".contains(c) { '|' } else { c }).collect();
        // Bars that stand twice are one border, if the rule says so.
        let line = if doubled { bars.replace("||", "|") } else { bars };
        if is_rule(&line) {
            doubled |= line.contains("++") || line.contains("||");
            ruled = true;
            if !open && !above.is_empty() {
                let rows: Vec<Vec<String>> = above.drain(..).map(|line| cells(&line)).collect();
                tables.extend(header(&rows, &heading)?);
                open = true;
            }
        } else if !line.contains('|') {
            (open, ruled, doubled) = (false, false, false);
            above.clear();
            if let Some(title) = line.strip_prefix('#') {
                title.trim_start_matches('#').trim().clone_into(&mut heading);
            }
        } else if let (true, Some(table)) = (open, tables.last_mut()) {
            let row = cells(&line);
            let texts: Vec<&str> = row.iter().map(String::as_str).collect();
            if table.rows() > 0 || !table.continue_header(&texts) {
                table.push(texts.iter().copied())?;
            }
        } else {
            // Above the first rule, only the last line is a header; inside of a box, all are.
            if !ruled {
                above.clear();
            }
            above.push(line);
        }
    }
    Ok((!tables.is_empty()).then_some(tables))
}

/// A table with the header in `rows`, which may be several lines in a box.
fn header(rows: &[Vec<String>], heading: &str) -> Result<Option<Table>, ReadError> {
    let Some((first, rest)) = rows.split_first() else { return Ok(None) };
    let mut table = Table::new(first.iter().cloned());
    heading.clone_into(&mut table.name);
    for row in rest {
        let texts: Vec<&str> = row.iter().map(String::as_str).collect();
        if table.rows() > 0 || texts.iter().any(|cell| is_figure(cell)) {
            // No rule stands below its header.
            table.push(texts.iter().copied())?;
        } else if !table.continue_header(&texts) {
            return Err(Shape::TwoHeaderRows.into());
        }
    }
    Ok(Some(table))
}
