//! The page of key figures that a run ends with.

use loadline_analyze::{Sweep, bound_of_sweep};
use loadline_model::Validity;

use super::PROSE;
use crate::RunData;
use crate::content::{disturbed, kept_tests, kept_verdict, load, nodes, not_measured, noted, page, stop};
use crate::doc::{Row, Table};
use crate::platform_run::{PlatformRun, sides};
use crate::text::{clean, narrowed, superscript, table, table_width, wrapped};
use crate::words::name;

const VALID: &str = "Valid tests";
/// Columns of loads that a narrow terminal does without, the first ones first.
const AT_LAST: [&str; 8] =
    ["Connect p50", "Connect p99", "Connecting", "Thinking", "Response p50", "Response p99", "Transaction mean", "p50"];
/// Most sweeps with a sentence on what bounds them; with more, only the report has it.
const FEW: usize = 8;

/// The platform's key figures on one page for a terminal `width` characters wide (`None`: unlimited): one line per workload
/// by component group, then the planned workloads that were not measured, with reasons.
#[must_use]
pub fn end_page(run: &RunData, width: Option<usize>) -> String {
    let prose = width.unwrap_or(PROSE).clamp(40, PROSE);
    let available = width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for side in &sides(std::slice::from_ref(run)) {
        out.push_str(&wrapped(&format!("Key figures of {}", clean(&side.label)), "", available));
        let full = page(side, "");
        if full.rows.is_empty() {
            out.push_str("No test was completed.\n");
        } else {
            out.push_str(&figures(side, &full, available, prose));
        }
        for more in [nodes::table(side.run), load::table(side.run)].into_iter().flatten() {
            let (more, left_out) = narrowed(&more, available, &AT_LAST);
            if table_width(&more) <= available {
                table(&mut out, &more, prose);
                out.push_str(&without(&left_out, prose));
            } else {
                out.push_str(&wrapped(
                    &format!("{}: too wide for this terminal; the report has it.", more.caption),
                    "",
                    prose,
                ));
            }
        }
        for text in not_measured(side) {
            out.push_str(&wrapped(&text, "", prose));
        }
        out.push_str(&bounds(side, prose));
        let records = &side.run.records;
        let remarkable = noted::sentences(records).chain(disturbed::sentences(records));
        for (n, text) in remarkable.enumerate() {
            out.push_str(if n == 0 { "\n" } else { "" });
            out.push_str(&wrapped(&format!("! {text}"), "", prose));
        }
    }
    out
}

/// What the report has and a narrow terminal has not.
fn without(left_out: &[String], prose: usize) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    wrapped(&format!("For want of width without {}: the report has it.", left_out.join(", ")), "", prose)
}

/// The table, narrowed if it would be too wide; if it still is, one sentence per workload.
fn figures(side: &PlatformRun<'_>, full: &Table, available: usize, prose: usize) -> String {
    let mut out = String::new();
    let (narrow, left_out) = narrowed(full, available, &["Bounded by", "Of limit", VALID]);
    if table_width(&narrow) <= available {
        table(&mut out, &narrow, prose);
        if left_out.iter().any(|title| title == VALID) {
            let valid = side.run.records.iter().filter(|r| r.validity() == Some(Validity::Valid)).count();
            let kept = kept_verdict(valid, kept_tests(side.run.records.iter()));
            out.push_str(&wrapped(&format!("{valid} of {} tests are valid{kept}.", side.run.records.len()), "", prose));
        }
        let left_out: Vec<String> = left_out.into_iter().filter(|title| title != VALID).collect();
        return out.trim_start_matches('\n').to_owned() + &without(&left_out, prose);
    }
    for row in &full.rows {
        if row.title.is_empty() {
            out.push_str(&wrapped(&sentence(full, row), "", prose));
        } else {
            out.push_str(&wrapped(&row.title, "", prose));
        }
        if !row.remark.is_empty() {
            let cross = if row.remark.contains(" invalid: ") { "✗ " } else { "" };
            out.push_str(&wrapped(&format!("{cross}{}", row.remark), "", prose));
        }
    }
    for note in &full.notes {
        out.push_str(&wrapped(&format!("{} {}", superscript(&note.mark), note.text), "", prose));
    }
    out
}

/// A row of the page as a sentence.
fn sentence(full: &Table, row: &Row) -> String {
    let mut said = String::new();
    for (head, cell) in full.head.iter().zip(&row.cells) {
        let text = format!("{}{}", cell.text, superscript(&cell.mark));
        let what = head.title.to_lowercase();
        said.push_str(&match (head.title.as_str(), head.unit.as_str()) {
            ("Workload", _) => format!("{text}:"),
            // The unit of the peak.
            ("", _) if text.is_empty() => String::new(),
            ("", _) => format!(" {text}"),
            ("Peak", _) => format!(" peak {text}"),
            ("at", _) if text.is_empty() => String::new(),
            ("at", _) => format!(" at {text}"),
            ("Latency", which) => format!(", {which} {text}"),
            (_, "") => format!(", {what} {text}"),
            (_, unit) => format!(", {what} {text} {unit}"),
        });
    }
    said + "."
}

/// What bounds each workload, in sentences.
fn bounds(side: &PlatformRun<'_>, prose: usize) -> String {
    if side.sweeps.len() > FEW {
        return String::new();
    }
    let mut out = String::new();
    let said = |sweep: &Sweep| {
        let bound = bound_of_sweep(sweep, &side.run.records)?;
        let name = name(sweep, &side.sweeps);
        let sentence = stop(&bound.sentence()).to_owned();
        Some(match sentence.strip_prefix("limit unknown: ") {
            Some(because) => format!("The limit of {name} is unknown: {because}."),
            None => format!("{name} is bounded by {sentence}."),
        })
    };
    for text in side.sweeps.iter().filter_map(said) {
        out.push_str(&wrapped(&text, "", prose));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
