//! How the data set was loaded.

use loadline_model::format::{bytes, number};
use loadline_model::manifest::TableLoad;

use crate::doc::{Block, Cell, Head, Row, Table};
use crate::platform_run::PlatformRun;

/// The tables that the runs loaded; empty if none did.
pub(crate) fn blocks(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let several = sides.len() > 1;
    let rows: Vec<Row> = sides
        .iter()
        .flat_map(|side| side.run.manifest.data_set.iter().enumerate().map(move |(i, t)| (side, i, t)))
        .map(|(side, i, t)| {
            let platform = several.then(|| Cell::from(side.label.as_str()));
            Row { cells: platform.into_iter().chain(cells(t)).collect(), first: several && i == 0, ..Row::default() }
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut head: Vec<Head> = several.then(|| Head::text("Platform")).into_iter().collect();
    head.extend([
        Head::text("Table"),
        Head::number("Rows", "").tip("Rows of the table."),
        Head::number("Loaded", "rows").tip("Rows loaded by this run; the others existed already."),
        Head::number("Values", "").tip("Bytes of the values, without the database's overhead."),
        Head::number("Load", "s").tip("Time to load all rows."),
        Head::number("Finish", "s").tip("Time to build keys, indexes and statistics after that."),
        Head::number("Rate", "rows/s").tip("Rows loaded / load, without keys, indexes and statistics."),
        Head::number("Rate", "MiB/s").tip("Bytes of values / load, without keys, indexes and statistics."),
        Head::number("Sessions", "").tip("Parallel loader sessions."),
        Head::text("Method"),
        Head::text("Fingerprint").tip("Fingerprint of the rows, with the version of the data."),
    ]);
    vec![Block::heading("Data set"), Block::Table(Table::of("facts", head, rows))]
}

fn cells(t: &TableLoad) -> Vec<Cell> {
    vec![
        t.table.as_str().into(),
        number(t.rows as f64, 0).into(),
        number(t.rows_loaded as f64, 0).into(),
        bytes(t.bytes_loaded as f64).into(),
        number(t.load_s, 2).into(),
        number(t.finish_s, 2).into(),
        number(t.rows_per_s(), 0).into(),
        number(t.mib_per_s(), 1).into(),
        t.loaders.to_string().into(),
        t.path.as_str().into(),
        format!("{} (version {})", t.fingerprint, t.version).into(),
    ]
}
