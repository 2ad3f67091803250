//! Appendix: meaning and source of every column.

use loadline_model::Column;

use crate::columns;
use crate::doc::{Block, Head, Row, Section, Table};
use crate::platform_run::PlatformRun;

/// The section: all columns of the runs' tables, with their sources by kind of target.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let mut kinds: Vec<&str> = Vec::new();
    for side in sides {
        let kind = side.run.manifest.target.kind.as_str();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut head: Vec<Head> = ["Column", "Id", "Meaning"].map(Head::text).into();
    head.extend(kinds.iter().map(|k| Head::text(&format!("Source on {k}"))));
    let rows = columns::of_files(sides.iter().flat_map(|s| &s.run.records)).into_iter().map(|c| {
        let fixed = [c.heading(), c.id.to_owned(), c.meaning.to_owned()];
        Row::of(fixed.into_iter().chain(kinds.iter().map(|k| source(c, k))))
    });
    let table = Table::of("facts", head, rows);
    let summary = "All columns with meaning and source".to_owned();
    let details = Block::Details { summary, blocks: vec![Block::Table(table)] };
    Section { in_text: false, ..Section::of("columns", "Sources of the figures", vec![details]) }
}

fn source(column: &Column, kind: &str) -> String {
    column.source(kind).unwrap_or_default().to_owned()
}
