//! STO-SCAN: parallel sequential reads of a large table.

use loadline_model::{Capability, column};

use super::sto;
use crate::instrument::Instrument;
use crate::named_for::{Component, NamedFor};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::workload::{Kpi, Volume, Workload};

const PARAMS: &[Param] = &[Param {
    name: "rows",
    default: 65_536,
    min: 1_000,
    max: 100_000_000,
    meaning: "rows of the piece that a query reads",
}];

/// Rows of a piece, at most those of the table.
fn piece(params: &Params) -> u64 {
    (params.get("rows").max(1) as u64).min(sto::rows(params)).max(1)
}

/// STO-SCAN.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-SCAN",
    group: "storage",
    summary: "parallel sequential reads of a large table from the device",
    description: "Each transaction is one query that reads a piece of a large table (65,536 rows, about 16 MiB) by a range of the primary key, in which order the table is stored, and sums a column. Pieces are random, so jobs read different ones. The figure is MiB of the table per second: what storage delivers to large sequential reads through the database.",
    named_for: NamedFor {
        components: &[Component::DeviceReads],
        doing: "sequential reads, at the bandwidth of the device",
        instead: &[],
    },
    spoiled_by: sto::SPOILED_BY,
    kpis: &[
        Kpi { column: column::DATA_MIB_PER_S, title: "data read" },
        Kpi { column: column::ROWS_PER_S, title: "rows" },
        Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "time of a piece" },
    ],
    tables: sto::READ_TABLES,
    params: PARAMS,
    needs: &[Capability::Rows, Capability::ReadRows],
    instruments: &[Instrument::Device],
    volume: Some(|params| Volume {
        rows: piece(params) as f64,
        tables: &["fact"],
        share: piece(params) as f64 / sto::rows(params).max(1) as f64,
        ..Volume::default()
    }),
    program: |params| {
        let piece = piece(params);
        Program {
            statements: vec![Statement::fixed(
                "SELECT COUNT(*), SUM(amount) FROM {fact} WHERE id BETWEEN :id AND :last",
                Effect::Read(1),
            )],
            body: vec![
                Step::bind("seq", Generator::Sequence),
                sto::key(sto::rows(params) - piece + 1, 0),
                Step::bind("last", Generator::Plus { var: "id", by: piece as i64 - 1 }),
                Step::Execute { statement: 0 },
            ],
            commit: Commit::Wait,
        }
    },
    ..Workload::BASE
};
