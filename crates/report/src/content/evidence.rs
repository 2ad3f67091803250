//! The evidence: invalid tests, missing figures, errors, notes, waits and every check.

use std::collections::BTreeMap;

use loadline_model::column::column;
use loadline_model::format::{counted, number};
use loadline_model::{Outcome, TestRecord};

use super::{disturbed, stop};
use crate::doc::{Block, Cell, Head, Row, Section, Table};
use crate::platform_run::PlatformRun;
use crate::words::spans;

/// Number of waits shown per test.
const TOP_WAITS: usize = 5;

/// The section.
pub(crate) fn section(sides: &[PlatformRun<'_>], on_paper: bool) -> Section {
    let all: Vec<(&str, &TestRecord)> =
        sides.iter().flat_map(|s| s.run.records.iter().map(|r| (s.label.as_str(), r))).collect();
    let several = sides.len() > 1;
    let mut blocks = Vec::new();
    blocks.extend(invalid(&all, several));
    blocks.extend(missing(sides));
    blocks.extend(errors(&all, several));
    blocks.extend(notes(sides));
    blocks.extend(waits(&all, several));
    blocks.extend(checks(&all, several, on_paper));
    Section { in_text: false, ..Section::of("evidence", "Evidence", blocks) }
}

fn lead_head(several: bool) -> Vec<Head> {
    let platform = several.then(|| Head::text("Platform"));
    let rest = [Head::number("Test", ""), Head::text("Workload"), Head::number("Jobs", "")];
    platform.into_iter().chain(rest).collect()
}

fn lead(label: &str, r: &TestRecord, several: bool) -> Vec<Cell> {
    let platform = several.then(|| Cell::from(label));
    let rest = [Cell::from(r.test.to_string()), Cell::from(r.workload.as_str()), Cell::from(r.jobs.to_string())];
    platform.into_iter().chain(rest).collect()
}

fn facts(head: Vec<Head>, rows: Vec<Row>) -> Block {
    Block::Table(Table::of("facts", head, rows))
}

fn invalid(all: &[(&str, &TestRecord)], several: bool) -> Vec<Block> {
    let rows: Vec<Row> = all
        .iter()
        .filter(|(_, r)| !r.valid)
        .map(|(label, r)| {
            let mut cells = lead(label, r, several);
            cells.push(r.invalid_reason.as_deref().unwrap_or("the record gives no reason").into());
            Row { cells, invalid: true, ..Row::default() }
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut head = lead_head(several);
    head.push(Head::text("Why it is invalid"));
    vec![Block::heading("Invalid tests"), facts(head, rows)]
}

/// Every reason for a missing figure, with its columns and tests.
fn missing(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let mut rows = Vec::new();
    for side in sides {
        let mut reasons: Vec<(&str, Vec<String>, Vec<u32>)> = Vec::new();
        for r in &side.run.records {
            for (id, reason) in &r.absent {
                let title = column(id).map_or_else(|| id.clone(), loadline_model::Column::heading);
                let index = reasons.iter().position(|(text, ..)| *text == reason.as_str()).unwrap_or_else(|| {
                    reasons.push((reason.as_str(), Vec::new(), Vec::new()));
                    reasons.len() - 1
                });
                if let Some((_, columns, tests)) = reasons.get_mut(index) {
                    if !columns.contains(&title) {
                        columns.push(title);
                    }
                    if !tests.contains(&r.test) {
                        tests.push(r.test);
                    }
                }
            }
        }
        let total = side.run.records.len();
        for (i, (reason, columns, tests)) in reasons.into_iter().enumerate() {
            let which = if tests.len() == total { "all".to_owned() } else { spans(&tests) };
            let platform = if i == 0 { side.label.as_str() } else { "" };
            let mut row = Row::of([platform, &columns.join(", "), &which, reason]);
            row.first = i == 0;
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let head = ["Platform", "Figure", "Tests", "Why it is missing"].map(Head::text).into();
    vec![Block::heading("Missing figures"), facts(head, rows)]
}

fn errors(all: &[(&str, &TestRecord)], several: bool) -> Vec<Block> {
    let mut rows = Vec::new();
    for (label, r) in all {
        for (text, n) in &r.error_texts {
            let mut cells = lead(label, r, several);
            cells.extend([Cell::from(number(*n as f64, 0)), Cell::from(text.as_str())]);
            rows.push(Row::of(cells));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let mut head = lead_head(several);
    head.extend([Head::number("Times", ""), Head::text("Error")]);
    vec![Block::heading("Errors of transactions"), facts(head, rows)]
}

/// Notes and forced refusals of the records: each text once, with its tests.
fn notes(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let mut items = Vec::new();
    for side in sides {
        let mut texts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for r in &side.run.records {
            for text in r.notes.iter().cloned().chain(Option::from(r.forced.clone())) {
                texts.entry(text).or_default().push(r.test);
            }
        }
        let of = if sides.len() > 1 { format!("{}, ", side.label) } else { String::new() };
        let item = |(text, tests): (String, Vec<u32>)| {
            let word = if tests.len() == 1 { "test" } else { "tests" };
            format!("{of}{word} {}: {}.", spans(&tests), stop(&text))
        };
        items.extend(texts.into_iter().map(item));
        items.extend(disturbed::sentences(&side.run.records).into_iter().map(|text| format!("{of}{text}")));
    }
    if items.is_empty() { Vec::new() } else { vec![Block::heading("Notes"), Block::List { items }] }
}

fn waits(all: &[(&str, &TestRecord)], several: bool) -> Vec<Block> {
    let rows: Vec<Row> = all
        .iter()
        .filter(|(_, r)| r.waits.samples > 0)
        .map(|(label, r)| {
            let mut events: Vec<(&String, &u64)> = r.waits.sessions.iter().collect();
            events.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            let mean = |n: u64| n as f64 / f64::from(r.waits.samples);
            let mut top: Vec<String> =
                events.iter().take(TOP_WAITS).map(|(e, n)| format!("{e} {:.2}", mean(**n))).collect();
            let rest: u64 = events.iter().skip(TOP_WAITS).map(|(_, n)| **n).fold(0, u64::saturating_add);
            if rest > 0 {
                top.push(format!("others {:.2}", mean(rest)));
            }
            let mut cells = lead(label, r, several);
            let shown = if top.is_empty() { "no waits".to_owned() } else { top.join(" · ") };
            cells.extend([Cell::from(number(f64::from(r.waits.samples), 0)), Cell::from(shown)]);
            Row::of(cells)
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut head = lead_head(several);
    head.extend([Head::number("Samples", ""), Head::text("Mean number of job sessions by wait event")]);
    let summary = "Wait profile of the job sessions".to_owned();
    vec![Block::heading("Waits"), Block::Details { summary, blocks: vec![facts(head, rows)] }]
}

/// All checks; on paper those that were noted or failed, as the others fill a page for each test.
fn checks(all: &[(&str, &TestRecord)], several: bool, on_paper: bool) -> Vec<Block> {
    let made: Vec<_> = all.iter().flat_map(|(label, r)| r.checks.iter().map(move |c| (*label, *r, c))).collect();
    if made.is_empty() {
        return Vec::new();
    }
    let n = |o: Outcome| made.iter().filter(|(.., c)| c.outcome == o).count();
    let summary = format!(
        "{}: {} passed, {} noted, {} failed, {} not possible",
        counted(made.len(), "check"),
        n(Outcome::Passed),
        n(Outcome::Noted),
        n(Outcome::Failed),
        n(Outcome::NotMade)
    );
    let told = |o: Outcome| !on_paper || matches!(o, Outcome::Noted | Outcome::Failed);
    let rows: Vec<Row> = made
        .iter()
        .filter(|(.., c)| told(c.outcome))
        .map(|(label, r, c)| {
            let outcome = match c.outcome {
                Outcome::Passed => "passed",
                Outcome::Noted => "noted",
                Outcome::Failed => "FAILED",
                Outcome::NotMade => "not possible",
            };
            let mut cells = lead(label, r, several);
            cells.extend([Cell::from(c.id.to_string()), outcome.into(), c.detail.as_str().into()]);
            Row { cells, invalid: c.outcome == Outcome::Failed, ..Row::default() }
        })
        .collect();
    let mut head = lead_head(several);
    head.extend(["Check", "Outcome", "Value seen and value allowed"].map(Head::text));
    let mut blocks = if rows.is_empty() { Vec::new() } else { vec![facts(head, rows)] };
    if on_paper {
        blocks.push(Block::para("On paper only checks that were noted or failed; --format html has all."));
    }
    vec![Block::heading("Checks"), Block::Details { summary, blocks }]
}
