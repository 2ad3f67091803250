//! How the data set was loaded: its rate is a figure of the platform too.

use loadline_model::format::{bytes, number};
use loadline_model::manifest::TableLoad;

use crate::doc::{Block, Cell, Head, Row, Table};
use crate::side::Side;

/// The tables that the runs loaded; nothing where none did.
pub(crate) fn blocks(sides: &[Side<'_>]) -> Vec<Block> {
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
        Head::number("Rows", "").tip("Rows that it has."),
        Head::number("Loaded", "rows").tip("The others were in place already."),
        Head::number("Values", "").tip("Bytes of the values, without what the database adds to them."),
        Head::number("Load", "s").tip("Until all rows were in."),
        Head::number("Finish", "s").tip("Keys, indexes and statistics after that."),
        Head::number("Rate", "rows/s").tip("Rows loaded / load: keys, indexes and statistics are not in it."),
        Head::number("Rate", "MiB/s").tip("Bytes of values / load: keys, indexes and statistics are not in it."),
        Head::number("Sessions", "").tip("Sessions that loaded at the same time."),
        Head::text("By"),
        Head::text("Fingerprint").tip("Of the rows, with the version of the data."),
    ]);
    vec![Block::heading("Data set"), Block::Table(Table { class: "facts", head, rows, ..Table::default() })]
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
