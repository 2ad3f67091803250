//! Common parts of the log-writer workloads: one table, one statement, different numbers of rows.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, Table};
use crate::workload::{Evidence, Kpi, RedoSize, Workload};

/// KPIs of the workloads that measure commit latency.
pub(super) const LATENCY_KPIS: &[Kpi] = &[
    Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "commit throughput" },
    Kpi { column: column::COMMIT_LATENCY_MS, title: "commit latency" },
    Kpi { column: column::COMMIT_TIME_NS_P99, title: "99th percentile of the commit itself" },
];

/// KPIs of the workload that measures redo throughput.
pub(super) const THROUGHPUT_KPIS: &[Kpi] = &[
    Kpi { column: column::REDO_MIB_PER_S, title: "redo throughput" },
    Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "commit throughput" },
];

/// Needs of a durable commit.
pub(super) const NEEDS_WAIT: &[Capability] = &[Capability::Redo, Capability::CommitWait];
/// Needs of a commit that does not wait.
pub(super) const NEEDS_NOWAIT: &[Capability] = &[Capability::Redo, Capability::CommitNowait];

/// The rows whose changes generate the redo.
pub(super) const TABLES: &[Table] = &[Table { updated_in_place: true, ..Table::per_job("redo", COLUMNS, "own-rows") }];

const COLUMNS: &[ColumnDef] = &[
    ColumnDef::int("id", Fill::Key),
    ColumnDef::int("n", Fill::Zero),
    ColumnDef::bytes("payload", Fill::Payload("payload")),
];

/// Every change adds 1 to the row's `n`.
pub(super) const EVIDENCE: Evidence = Evidence { query: "SELECT SUM(n) FROM {redo}", counts: "changed rows" };

/// Common fields: durable commits, their latency.
pub(super) const BASE: Workload = Workload {
    group: "log-writer",
    named_for: NamedFor { components: &[Component::Log], doing: "durable commits", instead: &[ONE_WRITER] },
    spoiled_by: "Commits that do not wait for the device (synchronous commit or fsync off), a write cache that loses data, a log on tmpfs. With the client driver, also a client short of CPU.",
    kpis: LATENCY_KPIS,
    tables: TABLES,
    needs: NEEDS_WAIT,
    evidence: Some(EVIDENCE),
    instruments: &[Instrument::Limit],
    program: |params| program(params, Commit::Wait),
    ..Workload::BASE
};

/// Redo per transaction, KiB.
pub(super) const fn redo_kib(min: f64, nominal: f64, max: f64) -> Option<RedoSize> {
    const KIB: f64 = 1024.0;
    Some(RedoSize { min: min * KIB, nominal: nominal * KIB, max: max * KIB, payload: "payload", rows: "rows" })
}

/// Payloads of about 1 KiB: a row fits a page of every target, so a change is one log record.
pub(super) const PAYLOAD: Param = Param {
    name: "payload",
    default: 950,
    min: 16,
    max: 1900,
    meaning: "bytes of new payload per changed row (calibrated before a sweep)",
};

/// Parameters of a workload that changes `rows` rows per transaction.
pub(super) const fn params(rows: i64) -> [Param; 3] {
    [
        Param { name: "rows", default: rows, min: 1, max: 4096, meaning: "rows changed per transaction" },
        PAYLOAD,
        Param {
            // At least twice the rows of a transaction: no transaction changes a row twice.
            name: "own-rows",
            default: if rows < 64 { 128 } else { 2 * rows },
            min: 1,
            max: 65536,
            meaning: "rows that each job owns and changes in turn",
        },
    ]
}

/// `rows` updates of the job's own rows in turn, each with a new payload.
pub(super) fn program(params: &Params, commit: Commit) -> Program {
    let change = Statement::fixed("UPDATE {redo} SET n = n + 1, payload = :payload WHERE id = :id", Effect::Change(1));
    let body = vec![
        Step::bind("seq", Generator::Sequence),
        Step::bind("id", Generator::OwnRow { rows: params.get("own-rows").max(1) as u64 }),
        Step::bind("payload", Generator::Payload { bytes: params.get("payload").max(0) as u32 }),
        Step::Execute { statement: 0 },
    ];
    let rows = params.get("rows").max(1) as u32;
    let body = if rows == 1 { body } else { vec![Step::Repeat { times: rows, body }] };
    Program { statements: vec![change], body, commit }
}
