//! STO-SCAN: parallel sequential reads of a large table.

use loadline_model::column;

use super::sto;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Table};
use crate::workload::{Kpi, Volume, Workload};

/// Bytes of a row as stored, about. Large rows cost the executor little per byte; one must fit a page of 1 KiB.
const ROW: u64 = 1024;

const WIDE: Table = Table {
    name: "wide",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("n", Fill::Scattered { salt: 61, range: 1_000_000 }),
        ColumnDef::bytes("payload", Fill::PayloadOf(940)),
    ],
    rows: RowCount::Share { percent: 100, row_bytes: ROW },
    ..Table::BASE
};

const PARAMS: &[Param] = &[Param {
    name: "rows",
    default: 32_768,
    min: 1_000,
    max: 100_000_000,
    meaning: "rows of the piece that a query reads, at most a sixth of the table",
}];

fn rows(params: &Params) -> u64 {
    WIDE.total_rows(params, 0)
}

/// Rows of a piece.
fn piece(params: &Params) -> u64 {
    (params.get("rows").max(1) as u64).min(rows(params) / 6).max(1)
}

/// STO-SCAN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-SCAN",
    summary: "parallel sequential reads of a large table from the device",
    description: "Each transaction is one query that reads a piece of a large table (32,768 rows of about 1 KiB) by a range of the primary key, in which order the table is stored, and sums a column of 8 bytes: little work per byte. Pieces are random, so jobs read different ones. Serial queries: more in flight come from more jobs, and from what the database or the operating system reads ahead. What is read ahead stays in the page cache until it is used with a --size of 512 MiB or more; a smaller table would then be read from the cache, so it is dropped earlier, and the device reads it again. The figure is MiB of the table per second: what storage delivers to large sequential reads through the database.",
    named_for: NamedFor {
        components: &[Component::DeviceReads],
        doing: "sequential reads, at the bandwidth of the device",
        instead: &[],
    },
    kpis: &[
        Kpi { column: column::DATA_MIB_PER_S, title: "data read" },
        Kpi { column: column::ROWS_PER_S, title: "rows" },
        Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "time of a piece" },
    ],
    tables: &[WIDE],
    params: PARAMS,
    instruments: &[Instrument::Device, Instrument::Limit(&[Limit::ReadBandwidth])],
    volume: Some(|params| Volume {
        rows: piece(params) as f64,
        tables: &["wide"],
        share: piece(params) as f64 / rows(params).max(1) as f64,
        ..Volume::default()
    }),
    program: |params| {
        let piece = piece(params);
        Program {
            statements: vec![Statement::fixed(
                "SELECT COUNT(*), SUM(n) FROM {wide} WHERE id BETWEEN :id AND :last",
                Effect::Read(1),
            )],
            body: vec![
                Step::bind("seq", Generator::Sequence),
                sto::key(rows(params) - piece + 1, 0),
                Step::bind("last", Generator::Plus { var: "id", by: piece as i64 - 1 }),
                Step::Execute { statement: 0 },
            ],
            commit: Commit::Wait,
        }
    },
    ..sto::BASE
};
