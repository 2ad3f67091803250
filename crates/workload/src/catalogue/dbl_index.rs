//! DBL-INDEX: how fast an index is built.

use loadline_model::column;

use super::dbl;
use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::params::Param;
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Table};
use crate::workload::{Kpi, Sweep, Volume, Workload};

/// The indexed table.
pub(crate) const BUILT: Table = Table {
    name: "built",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("k", Fill::Scattered { salt: 41, range: 1 << 40 }),
        ColumnDef::bytes("payload", Fill::PayloadOf(120)),
    ],
    rows: RowCount::Total("rows"),
    ..Table::BASE
};

const PARAMS: &[Param] =
    &[Param { name: "rows", default: 100_000, min: 1_000, max: 1 << 40, meaning: "rows of the indexed table" }];

/// DBL-INDEX.
pub(super) static WORKLOAD: Workload = Workload {
    code: "DBL-INDEX",
    summary: "builds an index over rows in random order and drops it, repeatedly",
    description: "Each transaction creates an index on a column whose values are in random order, and drops it again; one job. The figure is how many rows per second are read, sorted and written to the index (the time includes the drop, which takes little). One process builds it; the server's settings determine the memory of its sort.",
    named_for: dbl::BUILD,
    kpis: &[
        Kpi { column: column::ROWS_PER_S, title: "rows indexed" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "time to create and drop the index" },
    ],
    tables: &[BUILT],
    params: PARAMS,
    instruments: &[Instrument::Limit(&[Limit::Loop(Loop::Keys), Limit::WriteBandwidth])],
    sweep: Sweep::Once,
    evidence: None,
    volume: Some(|params| Volume {
        rows: params.get("rows") as f64,
        tables: &["built"],
        share: 1.0,
        ..Volume::default()
    }),
    program: |_| Program {
        statements: vec![
            Statement::fixed("CREATE INDEX {new index built.k} ON {built} (k)", Effect::Command),
            Statement::fixed("DROP INDEX {old index built.k}", Effect::Command),
        ],
        body: vec![
            Step::bind("seq", Generator::Sequence),
            Step::Execute { statement: 0 },
            Step::Execute { statement: 1 },
        ],
        commit: Commit::Wait,
    },
    ..dbl::BASE
};
