//! Figures that loadline did not measure: imported ones and published ones. Their source, what an audit found in them, and what
//! qualifies them.

use loadline_model::Imported;
use loadline_model::format::counted;
use minijinja::context;

use super::evidence::noted;
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::templates::prose;
use crate::words::{are, distinct};

/// The tests of all sides that are imported, in a sentence; `None` without any.
pub(super) fn verdict(sides: &[PlatformRun<'_>]) -> Option<String> {
    let records = || sides.iter().flat_map(|side| &side.run.records).filter_map(|r| r.imported());
    let tools = distinct(records().map(Imported::tool_and_version));
    let tests = records().count();
    let said = format!("{} {} imported from {}", counted(tests, "test"), are(tests), tools.join(" and "));
    (tests > 0).then(|| format!("{said}: not checked by loadline."))
}

/// The section on imported tests; empty without any.
pub(super) fn imported(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for side in sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| p.imported)) {
        blocks.extend(source(side, true));
        blocks.push(Block::List { items: files(side).into_iter().chain(noted(&side.run.records)).collect() });
    }
    let blocks = Block::explained(blocks, &prose("imported", ()));
    Section::new("imported", "Imported, not checked", blocks)
}

/// The section on published platforms; empty without any. A brief one does not list what audits found.
pub(super) fn published(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let published = sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| !p.imported));
    let blocks = published.flat_map(|side| source(side, !brief)).collect();
    let blocks = Block::explained(blocks, &prose("published", ()));
    Section::new("published", "Published, not measured", blocks)
}

/// Where the figures of `side` come from, and what an audit of their table found: how much, and if `listed`, what.
fn source(side: &PlatformRun<'_>, listed: bool) -> Vec<Block> {
    let Some(published) = &side.run.published else { return Vec::new() };
    let label = &side.label;
    let errors = published.findings.iter().filter(|f| f.is_error).count();
    let (found, tests, source) = (published.findings.len(), side.run.records.len(), &published.source);
    let mut blocks = vec![Block::para(prose("source", context! { label, tests, source, found, errors }))];
    if listed && !published.findings.is_empty() {
        let list = Block::List { items: published.findings.iter().map(|f| f.said.clone()).collect() };
        blocks.push(Block::details(format!("The audit of {label}"), vec![list]));
    }
    blocks
}

fn files(side: &PlatformRun<'_>) -> Vec<String> {
    let files = side.run.records.iter().filter_map(|r| r.imported()).flat_map(|i| &i.files);
    distinct(files.map(|file| format!("file {}, {} bytes, SHA-256 {}", file.name, file.bytes, file.sha256)))
}
