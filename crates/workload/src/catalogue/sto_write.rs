//! STO-WRITE: parallel creation of a large table.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::program::{Commit, Generator, Program, Step};
use crate::table::{ColumnDef, Fill, RowCount, Scope, Table};
use crate::workload::{Evidence, Kpi, Param, Workload};

const MADE: Table = Table {
    name: "made",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("k", Fill::Scattered { salt: 51, range: 1_000_000 }),
        ColumnDef::bytes("payload", Fill::PayloadOf(400)),
    ],
    rows: RowCount::Empty,
    scope: Scope::Workload,
    updated_in_place: false,
    indexes: &[],
};

const PARAMS: &[Param] =
    &[Param { name: "rows", default: 8192, min: 1, max: 1_000_000, meaning: "rows that a transaction adds" }];

/// STO-WRITE.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-WRITE",
    group: "storage",
    summary: "parallel creation of a large table",
    description: "Each transaction adds 8,192 rows of about 430 bytes to a table by the fastest way that the database has for many rows, and all jobs add to the same one, which is empty before each test. The figure is MiB of the finished table per second. Beside it stands what the database wrote to its data files in the window (each byte goes to its log as well) and what the device under them took; the check data-written holds both against the rows.",
    spoiled_by: "A window so short that the blocks stay in memory: a window of several times the memory's size, or of minutes, shows what storage can take, and a test that had not written nine tenths of its rows at the close is invalid. Space: the table grows with rate and window.",
    kpis: &[
        Kpi { column: column::DATA_MIB_PER_S, title: "table created" },
        Kpi { column: column::PHYSICAL_WRITTEN_MIB_PER_S, title: "written to data files" },
        Kpi { column: column::ROWS_PER_S, title: "rows" },
    ],
    tables: &[MADE],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::BulkLoad, Capability::CommitWait],
    evidence: Some(Evidence { query: "SELECT COUNT(*) FROM {made}", counts: "rows" }),
    instruments: &[Instrument::Device],
    program: |params| Program {
        statements: Vec::new(),
        body: vec![
            Step::bind("seq", Generator::Sequence),
            Step::Bulk { table: 0, rows: params.get("rows").max(1) as u32 },
        ],
        commit: Commit::Wait,
    },
    ..Workload::BASE
};
