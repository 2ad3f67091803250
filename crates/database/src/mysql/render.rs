//! The SQL of a workload for people to read.

use loadline_model::Driver;

use super::knowledge::KNOWLEDGE;
use super::procedure;
use crate::kind::TargetKind;
use crate::render::{Rendered, queries, statements, tables};
use crate::work::Work;

/// Isolation level of jobs that read and change rows, as on other databases. Under the default here,
/// REPEATABLE READ, a transaction fails in MariaDB 11.6 and newer (`innodb_snapshot_isolation`) if it changes
/// a row that another one changed since its first read.
pub(super) fn isolation(work: &Work) -> Option<&'static str> {
    work.program.reads_and_writes().then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
}

/// The SQL of a workload for people to read, on servers of this `kind`.
pub(super) fn all(work: &Work, kind: &dyn TargetKind) -> Vec<Rendered> {
    let dialect = &KNOWLEDGE.dialect;
    let mut out = tables(work, dialect);
    out.extend(isolation(work).map(|isolation| Rendered::new("session", isolation).by(Driver::Client)));
    out.extend(statements(work, dialect, ""));
    if kind.capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        out.extend(procedure::recursive(work).map(|(_, create)| Rendered::new("routine", create).by(Driver::Database)));
        out.push(Rendered::new("procedure", procedure::create(work, false)).by(Driver::Database));
    }
    out.extend(queries(work, dialect, ""));
    out
}
