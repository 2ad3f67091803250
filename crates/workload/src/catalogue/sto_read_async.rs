//! STO-READ-ASYNC: random single-block reads, many at a time.

use loadline_model::column;

use super::sto;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Table};
use crate::workload::{Kpi, Volume, Workload};

/// Number of values of the column `k`; neighbouring values are anywhere in the table. Many more than rows of the largest
/// data set (8 TiB have 2.7 · 10¹⁰), so that a range can hold any number of rows.
const VALUES: u64 = 1 << 40;

const SPREAD: Table = Table {
    name: "spread",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("k", Fill::Scattered { salt: 41, range: VALUES }),
        ColumnDef::bytes("payload", Fill::PayloadOf(200)),
    ],
    rows: RowCount::Share { percent: 80, row_bytes: 256 },
    indexes: &["k"],
    ..Table::BASE
};

const PARAMS: &[Param] =
    &[Param { name: "batch", default: 64, min: 1, max: 100_000, meaning: "rows per query, approximately" }];

/// Width of a range of values that holds about one batch of rows; all values if a batch is larger than the table.
fn width(params: &Params) -> u64 {
    let (rows, batch) = (SPREAD.total_rows(params, 0).max(1), params.get("batch").max(1) as u64);
    let width = u128::from(VALUES) * u128::from(batch) / u128::from(rows);
    u64::try_from(width).unwrap_or(VALUES).clamp(1, VALUES)
}

/// Rows that a query fetches, on average: rows are spread evenly over the values.
fn expected_rows(params: &Params) -> f64 {
    SPREAD.total_rows(params, 0) as f64 * width(params) as f64 / VALUES as f64
}

/// STO-READ-ASYNC.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-READ-ASYNC",
    summary: "random block reads from the device in batches, so that many can run at once",
    description: "Each transaction is one query that fetches about 64 rows by a range of a secondary index whose neighbours are anywhere in a large table. So it needs as many random blocks, and knows all of them before it reads the first. A database that prefetches or reads asynchronously has many of these reads in flight; one that reads block by block has one per job. The difference to STO-READ shows which. The figures are block reads and MiB per second; the block size is the database's (column Block: usually 8 KiB or 16 KiB).",
    kpis: &[
        Kpi { column: column::BLOCK_READS_PER_S, title: "reads" },
        Kpi { column: column::READ_MIB_PER_S, title: "data read" },
        Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "time of a batch" },
    ],
    tables: &[SPREAD],
    params: PARAMS,
    instruments: &[Instrument::Device, Instrument::Limit(&[Limit::BatchReads])],
    volume: Some(|params| Volume { rows: expected_rows(params), ..Volume::default() }),
    program: |params| {
        let width = width(params);
        Program {
            statements: vec![Statement::fixed(
                "SELECT id, k, payload FROM {spread} WHERE k BETWEEN :low AND :high",
                Effect::ReadAny,
            )],
            body: vec![
                Step::bind("seq", Generator::Sequence),
                Step::bind("low", Generator::Uniform { from: 0, range: VALUES - width + 1, salt: 0 }),
                Step::bind("high", Generator::Plus { var: "low", by: width as i64 - 1 }),
                Step::Execute { statement: 0 },
            ],
            commit: Commit::Wait,
        }
    },
    ..sto::BASE
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::draw::scatter;

    fn params(batch: i64, bytes: u64) -> Params {
        WORKLOAD.params(&BTreeMap::from([("batch".to_owned(), batch)])).unwrap().with_size(bytes)
    }

    #[test]
    fn a_batch_has_as_many_rows_as_it_says_at_any_size() {
        for bytes in [32 << 20, 128 << 20, 512 << 30, 8 << 40] {
            for batch in [1, 64, 1000] {
                let expected = expected_rows(&params(batch, bytes));
                assert!((expected / batch as f64 - 1.0).abs() < 0.03, "{batch} at {bytes} bytes: {expected}");
            }
        }
    }

    #[test]
    fn a_batch_larger_than_the_table_is_the_table() {
        let params = params(100_000, 1 << 20);
        let rows = SPREAD.total_rows(&params, 0);
        assert!(rows < 100_000);
        assert_eq!(expected_rows(&params), rows as f64);
        assert_eq!(width(&params), VALUES);
    }

    #[test]
    fn what_is_expected_is_what_is_there() {
        let params = params(64, 16 << 20);
        let Fill::Scattered { salt, range } = SPREAD.columns[1].fill else { panic!("the column is spread") };
        let width = width(&params) as i64;
        let rows = SPREAD.total_rows(&params, 0) as i64;
        let low = VALUES as i64 / 3;
        let there =
            (0..rows).map(|key| scatter(key, salt, range)).filter(|k| (low..low + 8 * width).contains(k)).count();
        assert!((there as f64 / 8.0 / 64.0 - 1.0).abs() < 0.2, "{there} rows in eight ranges of 64");
    }
}
