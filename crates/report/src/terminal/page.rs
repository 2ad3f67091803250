//! The page of key figures that a run ends with.

use loadline_analyze::{BoundBy, Sweep, bound_of_sweep};
use loadline_model::format::counted;

use crate::RunData;
use crate::content::{disturbed, kept_tests, kept_verdict, load, nodes, not_measured, noted, page, stop};
use crate::doc::Block;
use crate::platform_run::{PlatformRun, sides};
use crate::text::for_terminal;
use crate::words::{name, validities};

/// Most sweeps with a sentence on what bounds them; with more, only the report has it.
const FEW: usize = 8;

/// The platform's key figures on one page for a terminal `width` characters wide (`None`: unlimited): one line per workload
/// by component group, then the planned workloads that were not measured, with reasons.
#[must_use]
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
    out.extend([nodes::table(side.run), load::table(side.run)].into_iter().flatten().map(Block::Table));
    let valid = records.iter().filter(|r| r.valid).count();
    let kept = kept_verdict(valid, kept_tests(records.iter()));
    let mut said = vec![format!("{}: {}{kept}.", counted(records.len(), "test"), validities(records.iter()))];
    said.extend(disturbed::tried_again(records.iter()).into_iter().chain(disturbed::tells_apart(records)));
    said.extend(not_measured(side));
    if side.sweeps.len() <= FEW {
        said.extend(side.sweeps.iter().filter_map(|sweep| bound(side, sweep)));
    }
    let remarkable = noted::sentences(records).chain(disturbed::sentences(records));
    said.extend(remarkable.map(|text| format!("! {text}")));
    out.push(Block::List { items: said });
    out
}

/// What bounds a sweep, in a sentence.
fn bound(side: &PlatformRun<'_>, sweep: &Sweep) -> Option<String> {
    let bound = bound_of_sweep(sweep, &side.run.records)?;
    let name = name(sweep, &side.sweeps);
    let because = stop(&bound.because);
    Some(match bound.by {
        BoundBy::Unknown => format!("The limit of {name} is unknown: {because}."),
        by => format!("{name} is bounded by {}: {because}.", by.name()),
    })
}
