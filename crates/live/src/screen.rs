//! A run on a terminal: a pure function from the run to rows of text.

use loadline_report::{clean, live_table, live_text};
use unicode_width::UnicodeWidthChar as _;

use crate::now::Now;

/// The rows of `now`, known by `name`, as it is at `clock_s` (s since 1970), on a terminal of this size.
pub fn draw(now: &Now, name: &str, clock_s: f64, width: usize, height: usize) -> Vec<String> {
    let platform = now.platform().unwrap_or_default();
    let text = live_text(&now.shown(clock_s), width);
    let head = clean(&format!("{name}  {platform}"));
    let mut rows: Vec<String> = [head.trim_end()].into_iter().chain(text.lines()).map(|row| cut(row, width)).collect();
    if rows.len() >= height {
        rows.retain(|row| !row.is_empty());
    }
    let more = rows.len().saturating_sub(height.saturating_sub(1));
    let more = if more == 0 { String::new() } else { format!("; {more} rows more on a higher terminal") };
    rows.resize(height.saturating_sub(1), String::new());
    rows.push(cut(&format!("q quits{more}"), width));
    rows.truncate(height);
    rows
}

/// The table of `now` as it is at `clock_s` (s since 1970), for a terminal of this size: a line for each workload.
pub fn table(now: &Now, clock_s: f64, width: usize, height: usize) -> String {
    let rows = live_table(&now.shown(clock_s), width, height);
    rows.lines().map(|row| cut(row, width)).collect::<Vec<_>>().join("\n")
}

/// `row` in at most so many cells.
fn cut(row: &str, width: usize) -> String {
    let mut end = 0;
    let fits = |c: &char| {
        end += c.width().unwrap_or(0);
        end <= width
    };
    row.chars().take_while(fits).collect()
}

/// Codes that make a terminal show `rows`, from its upper left corner on. Colour marks only what a cross marks as well.
pub fn escaped(rows: &[String], colours: bool) -> String {
    let row = |(n, row): (usize, &String)| match row {
        row if n == 0 => format!("\x1b[1m{row}\x1b[0m\x1b[K"),
        row if colours && row.contains('✗') => format!("\x1b[31m{row}\x1b[0m\x1b[K"),
        row => format!("{row}\x1b[K"),
    };
    let rows: Vec<String> = rows.iter().enumerate().map(row).collect();
    format!("\x1b[H{}\x1b[J", rows.join("\r\n"))
}
