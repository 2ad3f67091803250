//! Common parts of the log-writer workloads: one table, one statement per transaction, different numbers of rows.
//!
//! A transaction of several rows changes a range of them by one statement, so that its time is the log's and not that of
//! hundreds of statements. A row has two halves of a payload, which change places: as incompressible as before, and neither
//! sent by a client nor looked up.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, Instead, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, Half, Table};
use crate::workload::{Evidence, Kpi, RedoSize, Workload};

/// Rows whose changes generate the redo, many by one statement.
const RANGES: Table = rows_with(&[
    ColumnDef::int("id", Fill::Key),
    ColumnDef::int("n", Fill::Zero),
    ColumnDef::bytes("head", Fill::Half("payload", Half::First)),
    ColumnDef::bytes("tail", Fill::Half("payload", Half::Second)),
]);

/// The same for statements that change one row, with a payload from the job's pool.
const SINGLE: Table = rows_with(&[
    ColumnDef::int("id", Fill::Key),
    ColumnDef::int("n", Fill::Zero),
    ColumnDef::bytes("payload", Fill::Payload("payload")),
]);

const fn rows_with(columns: &'static [ColumnDef]) -> Table {
    Table { updated_in_place: true, ..Table::per_job("redo", columns, "own-rows") }
}

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
    tables: &[RANGES],
    needs: &[Capability::Redo, Capability::CommitWait],
    evidence: Some(Evidence { query: "SELECT SUM(n) FROM {redo}", counts: "changed rows" }),
    // A transaction cannot change more rows than the job owns.
    at_most: &[("rows", "own-rows")],
    instruments: &[Instrument::Limit(&[Limit::Log])],
    program: |params| program(params, Commit::Wait),
    ..Workload::BASE
};

/// The same with a statement for each row.
pub(super) const ROW_BY_ROW: Workload = Workload { tables: &[SINGLE], program: row_by_row, ..BASE };

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
            default: if rows == 1 { 128 } else { 8 * rows + 32 },
            min: 1,
            max: 65536,
            meaning: "rows that each job owns and changes in turn",
        },
    ]
}

/// Changes the job's own rows one by one, in turn.
fn row_by_row(params: &Params) -> Program {
    let one = vec![
        Step::bind("seq", Generator::Sequence),
        Step::bind("id", Generator::OwnRow { rows: own_rows(params) }),
        Step::bind("payload", Generator::Payload { bytes: params.get("payload").max(0) as u32 }),
        Step::Execute { statement: 0 },
    ];
    let sql = "UPDATE {redo} SET n = n + 1, payload = :payload WHERE id = :id";
    let times = params.get("rows").max(1) as u32;
    Program {
        statements: vec![Statement::fixed(sql, Effect::Change(1))],
        body: if times == 1 { one } else { vec![Step::Repeat { times, body: one }] },
        commit: Commit::Wait,
    }
}

fn own_rows(params: &Params) -> u64 {
    params.get("own-rows").max(1) as u64
}

/// Changes `rows` of the job's own rows, in turn, by statement number `statement`, which is returned too.
pub(super) fn change(params: &Params, rows: u64, statement: usize) -> (Statement, Vec<Step>) {
    let own = own_rows(params);
    let (sql, mut steps) = if rows <= 1 {
        let id = Step::bind("id", Generator::OwnRow { rows: own });
        ("UPDATE {redo} SET n = n + 1, {renew head tail} WHERE id = :id", vec![id])
    } else {
        let first = Step::bind("first", Generator::OwnRange { rows, ranges: (own / rows).max(1) });
        let last = Step::bind("last", Generator::Plus { var: "first", by: rows as i64 - 1 });
        ("UPDATE {redo} SET n = n + 1, {renew head tail} WHERE id BETWEEN :first AND :last", vec![first, last])
    };
    steps.push(Step::Execute { statement });
    (Statement::fixed(sql, Effect::Change(rows.max(1))), steps)
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
