//! Common parts of the server workloads: a table that fits every cache, read by key.

use loadline_model::Capability;

use crate::data::{LOOKUP, LOOKUPS};
use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor};
use crate::program::{Effect, Generator, Statement, Step};
use crate::workload::Workload;

/// Common fields.
pub(super) const BASE: Workload = Workload {
    group: "server",
    named_for: NamedFor { components: &[Component::Cpu], doing: "executing queries on cached blocks", instead: &[] },
    spoiled_by: "A cache that does not hold the table (the hit ratio is checked), a client short of CPU, other work on the CPUs. With the client driver, also the network.",
    tables: &[LOOKUP],
    needs: &[Capability::Rows, Capability::ReadRows],
    instruments: &[Instrument::CacheHit, Instrument::Limit(&[Limit::Statements])],
    ..Workload::BASE
};

/// One row by primary key.
pub(super) fn one_row() -> Statement {
    Statement::fixed("SELECT id, k, n, payload FROM {lookup} WHERE id = :id", Effect::Read(1))
}

/// 25 consecutive rows by primary key.
pub(super) fn range() -> Statement {
    Statement::fixed("SELECT id, k, n, payload FROM {lookup} WHERE id BETWEEN :id AND :last", Effect::Read(25))
}

/// A full scan with a filter that no index helps; it passes about one row in ten.
pub(super) fn scan() -> Statement {
    Statement::fixed("SELECT COUNT(*), SUM(n) FROM {lookup} WHERE k < :below", Effect::Read(1))
}

/// A random key from which `rows` rows exist.
pub(super) fn key(rows: u64, salt: u32) -> Step {
    Step::bind("id", Generator::Uniform { from: 0, range: LOOKUPS - rows + 1, salt })
}
