//! Common parts of the storage and database-writer workloads: a large table, read and changed at random.

use loadline_model::Capability;

use crate::data::fact_rows;
use crate::named_for::{Component, Instead, NamedFor};
use crate::params::Params;
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Table};
use crate::workload::Workload;

/// The table for changes, with rows as large as those of the data set.
pub(super) const BLOCKS: Table = Table {
    name: "blocks",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("n", Fill::Zero),
        ColumnDef::bytes("payload", Fill::PayloadOf(PAYLOAD)),
    ],
    rows: RowCount::Share { percent: 100, row_bytes: 256 },
    updated_in_place: true,
    ..Table::BASE
};

/// Bytes of the payload of a row.
const PAYLOAD: u32 = 200;

/// Why CPUs may bound reads of blocks.
pub(super) const FEW_CPUS: Instead = Instead {
    component: Component::Cpu,
    why: "With many reads in flight, few CPUs are busy with requests, wake-ups and switches between sessions before the device is. Needed: more CPUs for the same device, or fewer reads in flight.",
};

/// Common fields: random reads of single blocks.
pub(super) const BASE: Workload = Workload {
    group: "storage",
    named_for: NamedFor {
        components: &[Component::DeviceReads],
        doing: "random reads of single blocks",
        instead: &[FEW_CPUS],
    },
    spoiled_by: "Caches: the database's own (a private server's is made small for these tests; on another server use a --size of at least ten times its cache) and the operating system's (loadline makes it drop the data files continuously, if it runs on the same machine and may read them; with direct I/O there is nothing to drop). The check data-source compares the reads counted by the database with those of the device under its data. Other use of that device makes the comparison too good and the figures too low.",
    needs: &[Capability::Rows, Capability::ReadRows],
    ..Workload::BASE
};

/// One row of the large table by primary key.
pub(super) fn one_row() -> Statement {
    Statement::fixed("SELECT id, customer, amount, payload FROM {fact} WHERE id = :id", Effect::Read(1))
}

/// A random key of a table of `rows` rows.
pub(super) fn key(rows: u64, salt: u32) -> Step {
    Step::bind("id", Generator::Uniform { from: 0, range: rows.max(1), salt })
}

/// Rows of [`crate::data::FACT`] and of [`BLOCKS`], which are equally large.
pub(super) fn rows(params: &Params) -> u64 {
    fact_rows(params)
}

/// Changes one row of [`BLOCKS`]: the counter makes every change real, the payload is new.
pub(super) fn update() -> Statement {
    Statement::fixed("UPDATE {blocks} SET n = n + 1, payload = :payload WHERE id = :id", Effect::Change(1))
}

/// A transaction that changes one random row of [`BLOCKS`].
pub(super) fn update_one(params: &Params, commit: Commit) -> Program {
    let body =
        vec![Step::bind("seq", Generator::Sequence), key(rows(params), 0), payload(), Step::Execute { statement: 0 }];
    Program { statements: vec![update()], body, commit }
}

/// The payload that [`update`] writes.
pub(super) fn payload() -> Step {
    Step::bind("payload", Generator::Payload { bytes: PAYLOAD })
}
