//! Common parts of the data-load workloads: the inserted rows.

use loadline_model::Capability;

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::program::{Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, Table};
use crate::workload::{Evidence, Workload};

/// Bytes of payload per row.
const PAYLOAD: u32 = 120;

/// Common fields: conventional inserts.
pub(super) const BASE: Workload = Workload {
    group: "data-load",
    named_for: NamedFor {
        components: &[Component::Log, Component::Cpu],
        doing: "the way of a few rows through statements to a durable commit",
        instead: &[ONE_WRITER],
    },
    spoiled_by: "Other work on the log and the data files, a table that extends its file on slow storage, checkpoints and cleaners that write during the load (they belong to it, but a window of less than a minute may contain none or one), replication triggers.",
    tables: &[ENTRY],
    needs: &[Capability::Rows, Capability::Redo, Capability::CommitWait],
    evidence: Some(Evidence { query: "SELECT COUNT(*) FROM {entry}", counts: "rows in the table" }),
    instruments: &[Instrument::Limit(&[Limit::Statements, Limit::Log, Limit::Copy, Limit::WriteBandwidth])],
    ..Workload::BASE
};

/// What bulk loads are named for.
pub(super) const BULK: NamedFor = NamedFor {
    components: &[Component::Cpu, Component::Log, Component::DeviceWrites],
    doing: "the way of many rows through the loader to log and data files",
    instead: &[ONE_WRITER],
};

/// What the building of an index is named for.
pub(super) const BUILD: NamedFor =
    NamedFor { components: &[Component::Cpu], doing: "one process that sorts rows into an index", instead: &[] };

/// The rows of conventional inserts: 24 bytes of numbers, 120 bytes of payload.
const ENTRY: Table = Table {
    name: "entry",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("customer", Fill::Zero),
        ColumnDef::int("product", Fill::Zero),
        ColumnDef::bytes("payload", Fill::PayloadOf(PAYLOAD)),
    ],
    ..Table::BASE
};

/// A table with the columns of the data set's large table, without key or index.
pub(super) const HEAP: Table = Table { name: "heap", columns: &FACT_COLUMNS_PLAIN, ..Table::BASE };
/// The same with a primary key and two indexes.
pub(super) const INDEXED: Table =
    Table { name: "indexed", columns: FACT_COLUMNS, indexes: &["customer", "product"], ..Table::BASE };

const FACT_COLUMNS: &[ColumnDef] = crate::data::FACT.columns;

const FACT_COLUMNS_PLAIN: [ColumnDef; 9] = {
    let mut columns = [FACT_COLUMNS[0]; 9];
    let mut i = 0;
    while i < columns.len() {
        columns[i] = FACT_COLUMNS[i];
        i += 1;
    }
    columns[0] = ColumnDef::int("id", Fill::PlainKey);
    columns
};

/// Names of a row's variables.
#[derive(Clone, Copy)]
pub(super) struct RowVars {
    sequence: &'static str,
    id: &'static str,
    customer: &'static str,
    product: &'static str,
    payload: &'static str,
}

/// Variables of a row inserted by its own statement.
pub(super) const ONE: RowVars =
    RowVars { sequence: "seq", id: "id", customer: "customer", product: "product", payload: "payload" };

impl RowVars {
    /// Binds the values of the next row.
    pub(super) fn bind(self) -> [Step; 5] {
        use crate::data::{CUSTOMERS, PRODUCTS};
        [
            Step::bind(self.sequence, Generator::Sequence),
            Step::bind(self.id, Generator::NewKey),
            Step::bind(self.customer, Generator::Uniform { from: 0, range: CUSTOMERS, salt: 1 }),
            Step::bind(self.product, Generator::Uniform { from: 0, range: PRODUCTS, salt: 2 }),
            Step::bind(self.payload, Generator::Payload { bytes: PAYLOAD }),
        ]
    }

    fn tuple(self) -> String {
        format!("(:{}, :{}, :{}, :{})", self.id, self.customer, self.product, self.payload)
    }
}

/// Most rows that one statement inserts.
pub(super) const MAX_ROWS: usize = 100;

/// Variables of the rows of one statement.
pub(super) fn several(rows: usize) -> Vec<RowVars> {
    use std::sync::OnceLock;
    // Variable names are `&'static str`; these are made once and leaked.
    static NAMES: OnceLock<Vec<[&'static str; 5]>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let name = |what: &str, i: usize| -> &'static str { Box::leak(format!("{what}{i}").into_boxed_str()) };
        (1..=MAX_ROWS).map(|i| ["seq", "id", "customer", "product", "payload"].map(|what| name(what, i))).collect()
    });
    let vars =
        |n: &[&'static str; 5]| RowVars { sequence: n[0], id: n[1], customer: n[2], product: n[3], payload: n[4] };
    names.iter().take(rows.max(1)).map(vars).collect()
}

/// One statement that inserts these rows.
pub(super) fn insert(rows: &[RowVars]) -> Statement {
    let tuples = rows.iter().map(|r| r.tuple()).collect::<Vec<_>>().join(", ");
    let sql = format!("INSERT INTO {{entry}} (id, customer, product, payload) VALUES {tuples}");
    Statement::fixed(&sql, Effect::Change(rows.len() as u64))
}

/// A transaction of one statement that inserts `rows` rows.
pub(super) fn one_statement(rows: i64) -> Program {
    let rows = several(rows.max(1) as usize);
    let mut body: Vec<Step> = rows.iter().flat_map(|r| r.bind()).collect();
    body.push(Step::Execute { statement: 0 });
    Program { statements: vec![insert(&rows)], body, commit: crate::program::Commit::Wait }
}
