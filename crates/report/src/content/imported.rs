//! Imported tests: their source, and what qualifies their figures. loadline has checked none of them.

use loadline_model::Imported;
use loadline_model::format::counted;

use super::{standing, stop};
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::words::spans;

/// The tests of all sides that are imported, in a sentence; `None` without any.
pub(super) fn verdict(sides: &[PlatformRun<'_>]) -> Option<String> {
    let records = || sides.iter().flat_map(|side| &side.run.records).filter_map(|r| r.imported.as_ref());
    let mut tools: Vec<String> = Vec::new();
    for tool in records().map(Imported::tool_and_version) {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    let (tests, are) = match records().count() {
        0 => return None,
        1 => ("1 test".to_owned(), "is"),
        n => (format!("{n} tests"), "are"),
    };
    Some(format!("{tests} {are} imported from {}: not checked by loadline.", tools.join(" and ")))
}

/// The section; empty without imported tests.
pub(super) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let imported = sides.iter().filter_map(|side| Some((side, side.run.published.as_ref().filter(|p| p.imported)?)));
    let mut blocks: Vec<Block> = Vec::new();
    for (side, published) in imported {
        let tests = counted(side.run.records.len(), "test");
        let source = format!("{}: {tests}, {}.", side.label, stop(&published.source));
        blocks.extend(standing::audited(&side.label, source, &published.findings));
        blocks.push(Block::List { items: files(side).into_iter().chain(notes(side)).collect() });
    }
    if !blocks.is_empty() {
        blocks.push(Block::para(
            "Another tool measured these figures. loadline has no counters of the database, no checks and no settings for them: \
             they are neither valid nor invalid. A figure that the tool does not state is absent.",
        ));
    }
    Section::of("imported", "Imported, not checked", blocks)
}

/// The files, each once.
fn files(side: &PlatformRun<'_>) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for file in side.run.records.iter().filter_map(|r| r.imported.as_ref()).flat_map(|i| &i.files) {
        let line = format!("file {}, {} bytes, SHA-256 {}", file.name, file.bytes, file.sha256);
        if !said.contains(&line) {
            said.push(line);
        }
    }
    said
}

/// What is to mind, each note once with its tests.
fn notes(side: &PlatformRun<'_>) -> Vec<String> {
    let mut said: Vec<(&str, Vec<u32>)> = Vec::new();
    for record in &side.run.records {
        for note in &record.notes {
            match said.iter_mut().find(|(known, _)| known == note) {
                Some((_, tests)) => tests.push(record.test),
                None => said.push((note, vec![record.test])),
            }
        }
    }
    let one = |(note, tests): (&str, Vec<u32>)| {
        format!("test{} {}: {}", if tests.len() == 1 { "" } else { "s" }, spans(&tests), stop(note))
    };
    said.into_iter().map(one).collect()
}
