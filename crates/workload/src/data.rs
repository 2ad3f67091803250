//! The data set: the tables of `catalogue/data-set.toml`, which many workloads read and none changes.
//!
//! Every value is a function of the row's key and the seed, so a batch can be made from its index alone, in any order and
//! by any number of loaders.

use std::sync::LazyLock;

use loadline_model::plan::Payload;
use loadline_model::random::{FNV_START, fnv1a};

use crate::draw::scatter;
use crate::params::Params;
use crate::pool::Pool;
use crate::source::{Source, UserError};
use crate::table::{Datum, Fill, Scope, Table};

/// Version of the data. Raise it with every change of a table or a value, so that old data are not taken for new data;
/// the golden fingerprints in the tests check this.
pub const VERSION: u32 = 1;

pub const CUSTOMERS: u64 = 10_000;
pub const LOOKUPS: u64 = 100_000;

/// All tables of the data set. None if the file cannot be read, which the tests detect.
pub static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| read().unwrap_or_default());

fn read() -> Result<Vec<Table>, UserError> {
    let text = include_str!("../catalogue/data-set.toml").to_owned();
    let source = Source { file: "data-set.toml".to_owned(), text, is_own: false };
    let document = source.document()?;
    Table::read_all(source.root(&document), &[], Scope::DataSet)
}

pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// Number of distinct values of `column`, a scattered column of `fact`.
pub fn fact_groups(column: &str, params: &Params) -> u64 {
    let fill = table("fact").and_then(|fact| fact.columns.iter().find(|c| c.name == column)).map(|c| &c.fill);
    let Some(&Fill::Scattered { salt, range }) = fill else { return 0 };
    let rows = fact_rows(params);
    // With this many rows per group, the probability of an empty one is below 10⁻¹⁵.
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

pub fn fact_rows(params: &Params) -> u64 {
    table("fact").map_or(0, |fact| fact.total_rows(params, 0))
}

/// Rows of each sampled batch in a fingerprint.
const SAMPLED_ROWS: u64 = 16;
/// Batches in a fingerprint besides the first and the last.
const SAMPLED_BATCHES: i64 = 16;

/// A number that changes with the rows of `table`: FNV-1a over all rows of its first batch and samples of others.
pub fn fingerprint(table: &Table, params: &Params, seed: u64, payload: Payload) -> u64 {
    let batches = table.batches(params, 0);
    let sample = (0..SAMPLED_BATCHES).map(|i| scatter(i, 77, batches.max(1)) as u64);
    let mut hash = FNV_START;
    for batch in [0, batches.saturating_sub(1)].into_iter().chain(sample) {
        let pool = Pool::new(seed, batch as u32, payload);
        let keys = table.batch(params, 0, batch);
        let every = if batch == 0 { 1 } else { (keys.end - keys.start).max(1) as u64 / SAMPLED_ROWS };
        let mut row = Vec::new();
        for (index, key) in keys.enumerate().step_by(every.max(1) as usize) {
            table.row(key, index as u64, params, &pool, &mut row);
            hash = row.iter().fold(hash, |hash, datum| match datum {
                Datum::Int(i) => fnv1a(hash, &i.to_le_bytes()),
                Datum::Bytes(bytes) => fnv1a(hash, bytes),
                Datum::Typed(value) => fnv1a(hash, value.text().as_bytes()),
            });
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn params() -> Params {
        crate::find("SRV-QUERY1").unwrap().params(&BTreeMap::new()).unwrap()
    }

    /// If this fails, the data have changed: raise [`VERSION`], then write the new numbers here.
    #[test]
    fn the_golden_fingerprints_hold() {
        let params = params();
        assert_eq!(table("customer").unwrap().total_rows(&params, 0), CUSTOMERS);
        assert_eq!(table("lookup").unwrap().total_rows(&params, 0), LOOKUPS);
        let of = |t: &Table| {
            let hash = fingerprint(t, &params, 42, Payload::default());
            format!("{VERSION} {} {} {hash:016x}", t.name, t.total_rows(&params, 0))
        };
        assert_eq!(
            TABLES.iter().map(of).collect::<Vec<_>>(),
            [
                "1 fact 524287 d60bf8d0e08cfc51",
                "1 customer 10000 25489db6b38b3105",
                "1 product 1000 61286ed8f7649a05",
                "1 lookup 100000 3fac42866b434ca4",
            ]
        );
    }

    #[test]
    fn a_fingerprint_depends_on_all_that_the_rows_depend_on() {
        let (params, fact) = (params(), table("fact").unwrap());
        let plain = Payload::default();
        let one = fingerprint(fact, &params, 42, plain);
        assert_eq!(one, fingerprint(fact, &params, 42, plain));
        assert_ne!(one, fingerprint(fact, &params, 43, plain));
        assert_ne!(one, fingerprint(fact, &params, 42, Payload { compressibility: 0.5, ..plain }));
        assert_ne!(one, fingerprint(fact, &params, 42, Payload { duplicates: Some(0.5), ..plain }));
        assert_ne!(one, fingerprint(fact, &params.clone().with_size(params.size_bytes() * 2), 42, plain));
    }

    #[test]
    fn a_batch_is_the_same_whatever_was_computed_before() {
        let (params, fact) = (params(), table("fact").unwrap());
        let rows = |batch: u64| {
            let (pool, mut row, mut out) = (Pool::new(42, batch as u32, Payload::default()), Vec::new(), String::new());
            for (i, key) in fact.batch(&params, 0, batch).enumerate() {
                fact.row(key, i as u64, &params, &pool, &mut row);
                out.push_str(&format!("{row:?}"));
            }
            out
        };
        let last = fact.batches(&params, 0) - 1;
        let forward: Vec<String> = [0, 1, last].map(rows).into();
        let backward: Vec<String> = [last, 1, 0].map(rows).into_iter().rev().collect();
        assert_eq!(forward, backward);
    }
}
