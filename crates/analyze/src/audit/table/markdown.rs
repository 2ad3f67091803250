//! Tables between bars: Markdown, and what psql and mysql print.

use super::{ReadError, Table, html};

/// Whether a line rules off a header: `|---|:--:|`, `---+---`, `+----+----+`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains("--")
        && line.contains(['|', '+'])
        && line.bytes().all(|b| matches!(b, b'-' | b'|' | b'+' | b':' | b' ' | b'\t' | b'='))
}

/// The same with a dash per column: `|-|:-:|`. Below a header only: a row of a table may be nothing but dashes.
fn is_short_rule(line: &str) -> bool {
    line.contains('|') && line.contains('-') && line.bytes().all(|b| matches!(b, b'-' | b'|' | b':' | b' '))
}

/// Whether `text` holds such a table: a line of cells above a rule.
pub(super) fn is(text: &str) -> bool {
    let mut above = false;
    text.lines().any(|line| {
        let found = above && (is_rule(line) || is_short_rule(line));
        above = line.contains('|') && !is_rule(line);
        found
    })
}

/// The cells of a line, without what only formats them.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = if line.ends_with("\\|") { line } else { line.strip_suffix('|').unwrap_or(line) };
    let (mut cells, mut cell, mut escaped) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '|' if !escaped => cells.push(std::mem::take(&mut cell)),
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            // Only a bar is escaped here.
            _ if escaped && c != '|' => cell.extend(['\\', c]),
            _ => cell.push(c),
        }
        escaped = false;
    }
    cells.push(cell);
    cells.iter().map(|cell| plain(cell)).collect()
}

/// A cell without emphasis, code marks and links.
fn plain(cell: &str) -> String {
    let cell = html::without_tags(cell);
    let cell = cell.trim().trim_matches(['*', '`']).trim();
    match (cell.strip_prefix('['), cell.split_once("](")) {
        (Some(_), Some((text, _))) => text.trim_start_matches('[').to_owned(),
        _ => cell.trim_start_matches("__").trim_end_matches("__").to_owned(),
    }
}

/// Reads all tables, each named by the heading above it.
pub(super) fn read(text: &str) -> Result<Vec<Table>, ReadError> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut open, mut above) = (String::new(), false, None);
    for line in text.lines() {
        let trimmed = line.trim();
        if is_rule(trimmed) || (!open && above.is_some() && is_short_rule(trimmed)) {
            if let (false, Some(names)) = (open, above.take()) {
                let mut table = Table::new(cells(names));
                table.name.clone_from(&heading);
                tables.push(table);
                open = true;
            }
        } else if !trimmed.contains('|') {
            open = false;
            if let Some(title) = trimmed.strip_prefix('#') {
                title.trim_start_matches('#').trim().clone_into(&mut heading);
            }
        } else if let (true, Some(table)) = (open, tables.last_mut()) {
            let row = cells(trimmed);
            let texts: Vec<&str> = row.iter().map(String::as_str).collect();
            if table.rows() == 0 && texts.len() == table.headers.len() && super::units_only(&texts) {
                super::add_units(&mut table.headers, &texts);
                continue;
            }
            table.push(texts.iter().copied())?;
        }
        above = (!open && trimmed.contains('|')).then_some(trimmed);
    }
    Ok(tables)
}
