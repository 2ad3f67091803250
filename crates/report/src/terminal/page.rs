//! The page of key figures that a run ends with.

use loadline_analyze::{Sweep, bound_of_sweep};

use super::PROSE;
use crate::RunData;
use crate::content::{not_measured, page, stop};
use crate::doc::Table;
use crate::side::{Side, sides};
use crate::text::{clean, table, table_width, wrapped};
use crate::words::name;

/// With more sweeps than this, what bounds each is left to the report: the page stays a page.
const FEW: usize = 8;

/// The platform's key figures on one page for a terminal that is `width` characters wide (`None`: as wide as
/// needed): a line a workload with what it reached, where, at what latency, and whether its tests hold, by
/// component group; then what was planned and not measured, and why.
#[must_use]
pub fn end_page(run: &RunData, width: Option<usize>) -> String {
    let prose = width.unwrap_or(PROSE).clamp(40, PROSE);
    let available = width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for side in &sides(std::slice::from_ref(run)) {
        out.push_str(&wrapped(&format!("Key figures of {}", clean(&side.label)), "", available));
        let full = page(side, "");
        if full.rows.is_empty() {
            out.push_str("No test was finished.\n");
        } else {
            out.push_str(&figures(full, available, prose));
        }
        for text in not_measured(side) {
            out.push_str(&wrapped(&text, "", prose));
        }
        out.push_str(&bounds(side, prose));
    }
    out
}

/// The table as wide as fits: what bounds a workload and its share of the limit go first. Where nothing more
/// can be left out, a sentence a workload fits any width.
fn figures(mut full: Table, available: usize, prose: usize) -> String {
    for title in ["Bounded by", "Of limit"] {
        if table_width(&full) <= available {
            break;
        }
        if let Some(index) = full.head.iter().position(|h| h.title == title) {
            full.head.remove(index);
            full.rows.iter_mut().filter(|r| r.cells.len() > index).for_each(|r| drop(r.cells.remove(index)));
        }
    }
    let mut out = String::new();
    if table_width(&full) <= available {
        table(&mut out, &full, prose);
        return out.trim_start_matches('\n').to_owned();
    }
    for row in &full.rows {
        if !row.title.is_empty() {
            out.push_str(&wrapped(&row.title, "", prose));
            continue;
        }
        let mut cells = row.cells.iter().map(|c| c.text.as_str());
        let mut next = || cells.next().unwrap_or_default();
        let (workload, peak, unit, at, mean, p99, valid) = (next(), next(), next(), next(), next(), next(), next());
        let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
        let said =
            format!("{workload}: peak {peak} {unit}{place}, mean latency {mean}, p99 {p99}, valid tests {valid}.");
        out.push_str(&wrapped(&said, "", prose));
        if !row.remark.is_empty() {
            out.push_str(&wrapped(&format!("✗ {}", row.remark), "", prose));
        }
    }
    out
}

/// What bounds each workload, in sentences.
fn bounds(side: &Side<'_>, prose: usize) -> String {
    if side.sweeps.len() > FEW {
        return String::new();
    }
    let mut out = String::new();
    let said = |sweep: &Sweep| {
        let bound = bound_of_sweep(sweep, &side.run.records)?;
        let name = name(sweep, &side.sweeps);
        let sentence = stop(&bound.sentence()).to_owned();
        Some(match sentence.strip_prefix("not told: ") {
            Some(because) => format!("What bounds {name} is not told: {because}."),
            None => format!("{name} is bounded by {sentence}."),
        })
    };
    for text in side.sweeps.iter().filter_map(said) {
        out.push_str(&wrapped(&text, "", prose));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
