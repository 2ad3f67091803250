//! Common parts of the log-writer workloads: one table, one statement per transaction, different numbers of rows.
//!
//! A transaction of several rows changes a range of them by one statement, so that its time is the log's and not that of
//! hundreds of statements. The new payload of a row is its old one, rotated by a byte: as incompressible as before, and
//! neither sent by a client nor looked up.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, Table};
use crate::workload::{Evidence, Kpi, RedoSize, Workload};

/// Columns of the rows whose changes generate the redo.
const COLUMNS: &[ColumnDef] = &[
    ColumnDef::int("id", Fill::Key),
    ColumnDef::int("n", Fill::Zero),
    ColumnDef::bytes("payload", Fill::Payload("payload")),
];

/// Common fields: durable commits, their latency.
pub(super) const BASE: Workload = Workload {
    group: "log-writer",
    named_for: NamedFor { components: &[Component::Log], doing: "durable commits", instead: &[FEW_CPUS, ONE_WRITER] },
    spoiled_by: "Commits that do not wait for the device (synchronous commit or fsync off), a write cache that loses data, a log on tmpfs. With the client driver, also a client short of CPU.",
    kpis: &[
        Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "commit throughput" },
        Kpi { column: column::COMMIT_LATENCY_MS, title: "commit latency" },
        Kpi { column: column::COMMIT_TIME_NS_P99, title: "99th percentile of the commit itself" },
    ],
    tables: &[Table { updated_in_place: true, ..Table::per_job("redo", COLUMNS, "own-rows") }],
    needs: &[Capability::Redo, Capability::CommitWait],
    evidence: Some(Evidence { query: "SELECT SUM(n) FROM {redo}", counts: "changed rows" }),
    // A transaction cannot change more rows than the job owns.
    at_most: &[("rows", "own-rows")],
    instruments: &[Instrument::Limit(&[Limit::Log])],
    program: |params| program(params, Commit::Wait),
    ..Workload::BASE
};

/// Why CPUs may bound a log-writer workload.
pub(super) const FEW_CPUS: Instead = Instead {
    component: Component::Cpu,
    why: "A device may take redo faster than few CPUs change rows and copy them to the log, the more so the larger the transactions: the share of the limit says how much faster. Needed: more CPUs for the same device.",
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
            // Eight ranges and some rows: a row rests until no other transaction can need its last version, and the last
            // range ends before the rows of the next job. (A database that locks the key after a range would make jobs wait
            // for each other.)
            name: "own-rows",
            default: if rows == 1 { 128 } else { 8 * rows + 64 },
            min: 1,
            max: 65536,
            meaning: "rows that each job owns and changes in turn",
        },
    ]
}

/// The statement that changes one row, with a payload from the job's pool.
pub(super) const ONE_ROW: &str = "UPDATE {redo} SET n = n + 1, payload = :payload WHERE id = :id";

/// Changes one of the job's own rows, in turn, by statement number `statement`.
pub(super) fn one_row(params: &Params, statement: usize) -> Vec<Step> {
    vec![
        Step::bind("id", Generator::OwnRow { rows: params.get("own-rows").max(1) as u64 }),
        Step::bind("payload", Generator::Payload { bytes: params.get("payload").max(0) as u32 }),
        Step::Execute { statement },
    ]
}

/// Changes `rows` of the job's own rows, in turn, by statement number `statement`, which is returned too.
pub(super) fn change(params: &Params, rows: u64, statement: usize) -> (Statement, Vec<Step>) {
    if rows <= 1 {
        return (Statement::fixed(ONE_ROW, Effect::Change(1)), one_row(params, statement));
    }
    let range = "UPDATE {redo} SET n = n + 1, payload = {rotate payload} WHERE id BETWEEN :first AND :last";
    let own = params.get("own-rows").max(1) as u64;
    let steps = vec![
        Step::bind("first", Generator::OwnRange { rows, ranges: (own / rows).max(1) }),
        Step::bind("last", Generator::Plus { var: "first", by: rows as i64 - 1 }),
        Step::Execute { statement },
    ];
    (Statement::fixed(range, Effect::Change(rows)), steps)
}

/// One statement that changes `rows` rows.
pub(super) fn program(params: &Params, commit: Commit) -> Program {
    let (statement, mut steps) = change(params, params.get("rows").max(1) as u64, 0);
    steps.insert(0, Step::bind("seq", Generator::Sequence));
    Program { statements: vec![statement], body: steps, commit }
}

/// Transactions of any redo, with which the reference log writer measures the limit of other workloads' commits.
pub static LOG_APPENDS: Workload = Workload {
    code: "LOG-APPENDS",
    params: &[
        Param { name: "rows", default: 1, min: 1, max: 65_536, meaning: "records per transaction" },
        PAYLOAD,
        Param { name: "own-rows", default: 1, min: 1, max: 1, meaning: "not used" },
        Param { name: "wait", default: 1, min: 0, max: 1, meaning: "whether the commit waits" },
    ],
    at_most: &[],
    redo: redo_kib(0.0, 1.0, 65_536.0),
    program: |params| program(params, if params.get("wait") == 1 { Commit::Wait } else { Commit::Nowait }),
    ..BASE
};
