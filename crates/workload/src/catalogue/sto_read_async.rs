//! STO-READ-ASYNC: random single-block reads, many at a time.

use loadline_model::Capability;

use super::sto;
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Scope, Table};
use crate::workload::{Cache, Kpi, Param, Params, Volume, Workload};

/// Values of the column by which rows are fetched; neighbours in it are anywhere in the table.
const VALUES: u64 = 1 << 30;

const SPREAD: Table = Table {
    name: "spread",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("k", Fill::Scattered { salt: 41, range: VALUES }),
        ColumnDef::bytes("payload", Fill::PayloadOf(200)),
    ],
    rows: RowCount::Share { percent: 80, row_bytes: 256 },
    scope: Scope::Workload,
    updated_in_place: false,
    indexes: &["k"],
};

const PARAMS: &[Param] =
    &[Param { name: "batch", default: 64, min: 1, max: 100_000, meaning: "rows that a query fetches, about" }];

/// Width of the range of values in which about as many rows lie as a batch has.
fn width(params: &Params) -> u64 {
    let batch = params.get("batch").max(1) as u64;
    (VALUES / SPREAD.total_rows(params, 0).max(1)).saturating_mul(batch).clamp(1, VALUES)
}

/// STO-READ-ASYNC.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-READ-ASYNC",
    group: "storage",
    summary: "random block reads from the device in batches, so that many can be under way",
    description: "Each transaction is one query that fetches about 64 rows by a range of a secondary index whose neighbours lie anywhere in a large table, so it needs as many random blocks, and knows them all before it reads the first. A database that prefetches or reads asynchronously has many of these reads under way at once; one that reads block by block has one for each job, and the difference to STO-READ shows which it is. The figures are block reads and MiB per second; blocks are as large as the database has them (column Block: 8 KiB or 16 KiB mostly).",
    spoiled_by: sto::SPOILED_BY,
    kpis: &[
        Kpi { column: "block_reads_per_s", title: "reads" },
        Kpi { column: "read_mib_per_s", title: "data read" },
        Kpi { column: "transaction_time_ns_p50", title: "time of a batch" },
    ],
    tables: &[SPREAD],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::ReadRows],
    cache: Cache::Device,
    volume: Some(|params| Volume { rows: params.get("batch") as f64, ..Volume::default() }),
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
    ..Workload::BASE
};
