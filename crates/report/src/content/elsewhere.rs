//! Figures that loadline did not measure: imported ones and published ones. Their source, what an audit found in them, and what
//! qualifies them.

use loadline_model::Imported;
use loadline_model::format::counted;

use super::{count, stop};
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::templates::prose;
use crate::words::{distinct, grouped, spans};

/// The tests of all sides that are imported, in a sentence; `None` without any.
pub(super) fn verdict(sides: &[PlatformRun<'_>]) -> Option<String> {
    let records = || sides.iter().flat_map(|side| &side.run.records).filter_map(|r| r.imported.as_ref());
    let tools = distinct(records().map(Imported::tool_and_version));
    let (tests, are) = match records().count() {
        0 => return None,
        1 => ("1 test".to_owned(), "is"),
        n => (format!("{n} tests"), "are"),
    };
    Some(format!("{tests} {are} imported from {}: not checked by loadline.", tools.join(" and ")))
}

/// The section on imported tests; empty without any.
pub(super) fn imported(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for side in sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| p.imported)) {
        blocks.extend(source(side, true));
        blocks.push(Block::List { items: files(side).into_iter().chain(notes(side)).collect() });
    }
    let blocks = Block::explained(blocks, &prose("imported", ()));
    Section::of("imported", "Imported, not checked", blocks)
}

/// The section on published platforms; empty without any. A brief one does not list what audits found.
pub(super) fn published(sides: &[PlatformRun<'_>], brief: bool) -> Section {
    let published = sides.iter().filter(|side| side.run.published.as_ref().is_some_and(|p| !p.imported));
    let blocks = published.flat_map(|side| source(side, !brief)).collect();
    let blocks = Block::explained(blocks, &prose("published", ()));
    Section::of("published", "Published, not measured", blocks)
}

/// Where the figures of `side` come from, and what an audit of their table found: how much, and if `listed`, what.
fn source(side: &PlatformRun<'_>, listed: bool) -> Vec<Block> {
    let Some(published) = &side.run.published else { return Vec::new() };
    let (label, tests) = (&side.label, counted(side.run.records.len(), "test"));
    let found = match published.findings.len() {
        0 => String::new(),
        n => {
            let errors = published.findings.iter().filter(|f| f.is_error).count();
            let of_them =
                if errors == 0 { String::new() } else { format!(" ({} among them)", counted(errors, "error")) };
            let kinds = count(n, "kind of finding", "kinds of findings");
            format!(" An audit of its table (`loadline audit`) has {kinds}{of_them}.")
        }
    };
    let mut blocks = vec![Block::para(format!("{label}: {tests}, {}.{found}", stop(&published.source)))];
    if listed && !published.findings.is_empty() {
        let list = Block::List { items: published.findings.iter().map(|f| f.said.clone()).collect() };
        blocks.push(Block::details(format!("The audit of {label}"), vec![list]));
    }
    blocks
}

/// The files, each once.
fn files(side: &PlatformRun<'_>) -> Vec<String> {
    let files = side.run.records.iter().filter_map(|r| r.imported.as_ref()).flat_map(|i| &i.files);
    distinct(files.map(|file| format!("file {}, {} bytes, SHA-256 {}", file.name, file.bytes, file.sha256)))
}

/// What is to mind, each note once with its tests.
fn notes(side: &PlatformRun<'_>) -> impl Iterator<Item = String> {
    let said = side.run.records.iter().flat_map(|r| r.notes.iter().map(move |note| (note, r.test)));
    grouped(said, |(note, _)| *note).into_iter().map(|(note, of)| {
        let tests: Vec<u32> = of.into_iter().map(|(_, test)| test).collect();
        format!("test{} {}: {}", if tests.len() == 1 { "" } else { "s" }, spans(&tests), stop(&note.to_string()))
    })
}
