//! Appendix: meaning and source of every column.

use loadline_model::Column;

use crate::columns;
use crate::doc::{Block, Head, Section};
use crate::platform_run::PlatformRun;
use crate::spec::TableSpec;
use crate::words::distinct;

/// The section: all columns of the runs' tables, with their sources by kind of target.
pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let columns = columns::of_files(sides.iter().flat_map(|s| &s.run.records));
    let mut table = TableSpec::<&Column>::of("facts", columns)
        .text("Column", Column::heading)
        .text("Id", |c| c.id)
        .text("Meaning", |c| c.meaning);
    for kind in distinct(sides.iter().map(|side| side.run.manifest.target.kind.as_str())) {
        table = table.column(Head::text(&format!("Source on {kind}")), |c| c.source(kind).unwrap_or_default());
    }
    let details = Block::details("All columns with meaning and source", vec![Block::Table(table.build())]);
    Section::evidence("columns", "Sources of the figures", vec![details])
}
