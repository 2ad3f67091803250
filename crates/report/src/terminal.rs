//! Terminal output of `loadline run`: the line of each test, and the page of key figures that it ends with.

use loadline_analyze::bound_of_sweep;
use loadline_analyze::kpi::rate_of;
use loadline_analyze::sweep::{JOBS, swept_value};
use loadline_model::disturbance::judged;
use loadline_model::format::ABSENT;
use loadline_model::{TestRecord, column};
use minijinja::context;

use crate::RunData;
use crate::content::{aging, bounded, load, nodes, not_measured, page, qualified, verdict};
use crate::doc::Block;
use crate::platform_run::{PlatformRun, sides};
use crate::templates::{prose, stored};
use crate::text::for_terminal;
use crate::words::{name, place, unit, value};

/// Most sweeps with a sentence on what bounds them; with more, only the report has it.
const FEW: usize = 8;

/// The line of a test that is done: its main figures and the verdict, without line break.
pub fn done_line(r: &TestRecord) -> String {
    let skew = if let column::Cell::Number(ms) = column::START_SKEW_MS.cell(r) { Some(ms) } else { None };
    let rate = rate_of(&[r]);
    let context = context! {
        r => stored(r),
        of_log => r.group == "log-writer" || r.kpis.is_empty(),
        jobs => place(JOBS, r.jobs),
        delay => r.level().map(|level| level.delay_ms.to_string()),
        // The swept value follows the jobs.
        swept => r.swept().map(|over| place(over, swept_value(r))),
        rate => r.figure(rate).map_or(ABSENT.to_owned(), |v| value(rate, v)),
        unit => unit(rate),
        skew,
        disturbed => r.is_disturbed().then(|| judged(r)),
        kept_by => r.kept_by(),
    };
    prose("done-line", context)
}

/// The platform's key figures for a terminal `width` characters wide (`None`: unlimited).
pub fn end_page(run: &RunData, width: Option<usize>) -> String {
    let blocks: Vec<Block> = sides(std::slice::from_ref(run)).iter().flat_map(blocks).collect();
    for_terminal(&blocks, width).trim_start_matches('\n').to_owned()
}

fn blocks(side: &PlatformRun<'_>) -> Vec<Block> {
    let records = &side.run.records;
    let mut out = vec![Block::Table(page(side, &format!("Key figures of {}", side.label), false))];
    if records.is_empty() {
        out = vec![Block::para(format!("Key figures of {}: no test was completed.", side.label))];
    }
    out.extend([nodes::table(side.run), load::table(records)].into_iter().flatten().map(Block::Table));
    let mut said = vec![verdict(records.iter(), true)];
    said.extend(qualified::tried_again(records.iter()).into_iter().chain(qualified::tells_apart(records)));
    said.extend(not_measured(side));
    said.extend(records.iter().filter(|r| !r.aging().is_empty()).map(|test| aging::verdict(test, "")));
    if side.sweeps.len() <= FEW {
        let bounds = side.sweeps.iter().filter_map(|s| Some((s, bound_of_sweep(s, records)?)));
        said.extend(bounds.map(|(sweep, bound)| bounded(&name(sweep, &side.sweeps), &bound)));
    }
    let remarkable = qualified::noted_sentences(records).chain(qualified::noticed(records));
    said.extend(remarkable.map(|text| format!("! {text}")));
    out.push(Block::List { items: said });
    out
}
