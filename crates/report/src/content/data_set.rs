//! How the data set was loaded.

use loadline_model::format::{bytes, number};
use loadline_model::manifest::TableLoad;

use crate::doc::Block;
use crate::platform_run::PlatformRun;
use crate::spec::TableSpec;

/// The tables that the runs loaded; empty if none did.
pub(crate) fn blocks(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let loads = sides.iter().flat_map(|side| side.run.manifest.data_set.iter().map(move |t| (side.label.as_str(), t)));
    let table = TableSpec::<(&str, &TableLoad)>::of("facts", loads)
        .text("Platform", |(label, _)| label)
        .once()
        .when(sides.len() > 1)
        .text("Table", |(_, t)| &t.table)
        .number("Rows", "", |(_, t)| number(t.rows as f64, 0))
        .tip("Rows of the table.")
        .number("Loaded", "rows", |(_, t)| number(t.rows_loaded as f64, 0))
        .tip("Rows loaded by this run; the others existed already.")
        .number("Values", "", |(_, t)| bytes(t.bytes_loaded as f64))
        .tip("Bytes of the values, without the database's overhead.")
        .number("Load", "s", |(_, t)| number(t.load_s, 2))
        .tip("Time to load all rows.")
        .number("Finish", "s", |(_, t)| number(t.finish_s, 2))
        .tip("Time to build keys, indexes and statistics after that.")
        .number("Rate", "rows/s", |(_, t)| number(t.rows_per_s(), 0))
        .tip("Rows loaded / load, without keys, indexes and statistics.")
        .number("Rate", "MiB/s", |(_, t)| number(t.mib_per_s(), 1))
        .tip("Bytes of values / load, without keys, indexes and statistics.")
        .number("Sessions", "", |(_, t)| t.loaders.to_string())
        .tip("Parallel loader sessions.")
        .text("Method", |(_, t)| &t.path)
        .text("Fingerprint", |(_, t)| format!("{} (version {})", t.fingerprint, t.version))
        .tip("Fingerprint of the rows, with the version of the data.");
    Block::under("Data set", Block::table(table.build()))
}
