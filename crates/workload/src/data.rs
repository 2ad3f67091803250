//! The data set: a few tables of fixed row shapes that many workloads read. Nothing changes them.
//!
//! `fact` grows with `--size`; the others do not. Every value follows from a row's key and the seed, so any
//! batch can be made anew from its index alone, in any order and by any number of loaders.

use crate::table::{ColumnDef, Fill, RowCount, Scope, Table};
use crate::workload::Params;

/// Version of the data: raised with every change of a table or a value, so that old data are not taken for
/// new ones. The golden fingerprints of the tests hold it to that.
pub const VERSION: u32 = 1;

/// Rows of `customer`.
pub const CUSTOMERS: u64 = 10_000;
/// Rows of `product`.
pub const PRODUCTS: u64 = 1_000;
/// Rows of `lookup`: some 20 MiB, which every database's cache holds.
pub const LOOKUPS: u64 = 100_000;
/// Bytes of a row of `fact`, about, as databases store it.
const FACT_ROW: u64 = 256;

const fn scattered(name: &'static str, salt: u32, range: u64) -> ColumnDef {
    ColumnDef::int(name, Fill::Scattered { salt, range })
}

const BASE: Table = Table {
    name: "",
    columns: &[],
    rows: RowCount::Empty,
    scope: Scope::DataSet,
    updated_in_place: false,
    indexes: &[],
};

/// Sales: the large table. Groups of 10, 10⁴ and 10⁶ values, keys of two dimensions, a measure, a day.
pub const FACT: Table = Table {
    name: "fact",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        scattered("customer", 1, CUSTOMERS),
        scattered("product", 2, PRODUCTS),
        scattered("g10", 3, 10),
        scattered("g10k", 4, 10_000),
        scattered("g1m", 5, 1_000_000),
        scattered("amount", 6, 100_000),
        scattered("day", 7, 3_650),
        ColumnDef::bytes("payload", Fill::PayloadOf(120)),
    ],
    rows: RowCount::Share { percent: 100, row_bytes: FACT_ROW },
    ..BASE
};

/// Customers: a dimension.
pub const CUSTOMER: Table = Table {
    name: "customer",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        scattered("region", 11, 25),
        scattered("segment", 12, 5),
        ColumnDef::bytes("payload", Fill::PayloadOf(60)),
    ],
    rows: RowCount::Fixed(CUSTOMERS),
    ..BASE
};

/// Products: a dimension.
pub const PRODUCT: Table = Table {
    name: "product",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        scattered("category", 21, 50),
        scattered("price", 22, 10_000),
        ColumnDef::bytes("payload", Fill::PayloadOf(40)),
    ],
    rows: RowCount::Fixed(PRODUCTS),
    ..BASE
};

/// What is looked up by key: small enough for every cache.
pub const LOOKUP: Table = Table {
    name: "lookup",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        scattered("k", 31, 1_000),
        scattered("n", 32, 1_000_000),
        ColumnDef::bytes("payload", Fill::PayloadOf(100)),
    ],
    rows: RowCount::Fixed(LOOKUPS),
    ..BASE
};

/// All tables of the data set.
pub const TABLES: [Table; 4] = [FACT, CUSTOMER, PRODUCT, LOOKUP];

/// Groups of `fact` by `column`, one of its columns of scattered values: how many different ones there are.
#[must_use]
pub fn fact_groups(column: &str, params: &Params) -> u64 {
    let fill = FACT.columns.iter().find(|c| c.name == column).map(|c| c.fill);
    let Some(Fill::Scattered { salt, range }) = fill else { return 0 };
    let rows = fact_rows(params);
    // With so many rows a group that has none is less likely than one in 10¹⁵.
    if rows / 50 >= range {
        return range;
    }
    let mut seen = vec![false; range as usize];
    for key in 0..rows as i64 {
        if let Some(group) = seen.get_mut(crate::draw::scatter(key, salt, range) as usize) {
            *group = true;
        }
    }
    seen.into_iter().filter(|s| *s).count() as u64
}

/// Rows of `fact` for the size that `params` say.
#[must_use]
pub fn fact_rows(params: &Params) -> u64 {
    FACT.total_rows(params, 0)
}
