//! Common parts of the server workloads: a table that fits every cache, read by key.

use crate::data::{LOOKUP, LOOKUPS};
use crate::named_for::{Component, NamedFor};
use crate::program::{Effect, Generator, Statement, Step};
use crate::table::Table;

/// The table that is read.
pub(super) const TABLES: &[Table] = &[LOOKUP];

/// What they are named for.
pub(super) const NAMED_FOR: NamedFor =
    NamedFor { components: &[Component::Cpu], doing: "executing queries on cached blocks", instead: &[] };

/// What can spoil the figures of these workloads.
pub(super) const SPOILED_BY: &str = "A cache that does not hold the table (the hit ratio is checked), a client short of CPU, other work on the CPUs. With the client driver, also the network.";

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
