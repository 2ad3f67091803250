//! DBL-22: bulk load by the fastest path.

use loadline_model::{Capability, column};

use super::dbl;
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::params::Param;
use crate::program::{Commit, Generator, Program, Step};
use crate::table::Table;
use crate::workload::{Evidence, Kpi, Sweep, Workload};

const TABLES: &[Table] = &[dbl::HEAP, dbl::INDEXED];

const PARAMS: &[Param] = &[
    Param { name: "rows", default: 10_000, min: 1, max: 10_000_000, meaning: "rows per transaction" },
    Param {
        name: "indexes",
        default: 0,
        min: 0,
        max: 1,
        meaning: "0: a table without key or index; 1: one with a primary key and two indexes",
    },
];

/// DBL-22.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-22",
    summary: "bulk load by the fastest path, without and with indexes",
    description: "Each transaction adds 10,000 rows to an empty table by the database's fastest way for rows from outside (COPY in binary format, LOAD DATA LOCAL INFILE, array binds, prepared inserts), and commits durably. Rows are those of the data set's large table: 64 bytes of numbers, 120 of payload. First one job, into a table without key or index and into one with a primary key and two indexes; then the one without over rising numbers of jobs, all into the same table.",
    named_for: dbl::BULK,
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows loaded" },
        Kpi { column: column::DATA_MIB_PER_S, title: "data loaded" },
    ],
    tables: TABLES,
    params: PARAMS,
    needs: &[Capability::Rows, Capability::Redo, Capability::CommitWait, Capability::BulkLoad],
    instruments: &[Instrument::Limit(&[Limit::Log, Limit::Copy, Limit::WriteBandwidth])],
    sweep: Sweep::Parameter { name: "indexes", values: &[0, 1], column: column::INDEXES, then_jobs: true },
    evidence: Some(Evidence {
        query: "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM {heap} UNION ALL SELECT COUNT(*) AS n FROM {indexed}) both_tables",
        counts: "rows in the tables",
    }),
    program: |params| Program {
        statements: Vec::new(),
        body: vec![
            Step::bind("seq", Generator::Sequence),
            Step::Bulk { table: usize::from(params.get("indexes") == 1), rows: params.get("rows").max(1) as u32 },
        ],
        commit: Commit::Wait,
    },
    ..dbl::BASE
};
