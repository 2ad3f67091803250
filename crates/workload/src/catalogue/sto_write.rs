//! STO-WRITE: parallel creation of a large table.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::Param;
use crate::program::{Commit, Generator, Program, Step};
use crate::table::{ColumnDef, Fill, Table};
use crate::workload::{Evidence, Kpi, Workload};

const MADE: Table = Table {
    name: "made",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("k", Fill::Scattered { salt: 51, range: 1_000_000 }),
        ColumnDef::bytes("payload", Fill::PayloadOf(400)),
    ],
    ..Table::BASE
};

const PARAMS: &[Param] =
    &[Param { name: "rows", default: 8192, min: 1, max: 1_000_000, meaning: "rows added per transaction" }];

/// STO-WRITE.
pub(super) static WORKLOAD: Workload = Workload {
    code: "STO-WRITE",
    group: "storage",
    summary: "parallel creation of a large table",
    description: "Each transaction adds 8,192 rows of about 430 bytes to a table by the database's fastest way for many rows. All jobs add to the same table, which is empty before each test. The figure is MiB of the finished table per second. Next to it are the bytes that the database wrote to its data files in the window (each byte is logged as well) and the bytes written to the device; the check data-written compares both with the rows.",
    named_for: NamedFor {
        components: &[Component::DeviceWrites],
        doing: "new blocks, at the bandwidth of the device",
        instead: &[
            ONE_WRITER,
            Instead {
                component: Component::Log,
                why: "A database that logs new rows writes each byte to its log first and once more to the data files, so sessions wait for the log before the data device is busy. Needed: a log on a device of its own, or a load that is not logged.",
            },
            Instead {
                component: Component::Cpu,
                why: "On a fast device, making, checking and logging the rows takes longer than writing them. Needed: more CPUs for the same device.",
            },
        ],
    },
    spoiled_by: "A window so short that the blocks stay in memory: a window of several times the memory's size, or of minutes, shows what storage can take. A test that has not written nine tenths of its rows at the window end is invalid. Disk space: the table grows with rate and window.",
    kpis: &[
        Kpi { column: column::DATA_MIB_PER_S, title: "table created" },
        Kpi { column: column::PHYSICAL_WRITTEN_MIB_PER_S, title: "written to data files" },
        Kpi { column: column::ROWS_PER_S, title: "rows" },
    ],
    tables: &[MADE],
    params: PARAMS,
    needs: &[Capability::Rows, Capability::BulkLoad, Capability::CommitWait],
    evidence: Some(Evidence { query: "SELECT COUNT(*) FROM {made}", counts: "rows" }),
    instruments: &[Instrument::Device, Instrument::Limit(&[Limit::WriteBandwidth, Limit::Copy])],
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
