//! The SQL of a workload for people to read, and the missing capabilities.

use loadline_model::Driver;
use loadline_model::capability::{Capabilities, Capability};

use super::knowledge::KNOWLEDGE;
use super::procedure;
use crate::render::{NO_COUNTS, NO_LANGUAGE, NO_SCRIPTS, Rendered, lacking, queries, statements, tables};
use crate::work::Work;

/// Why a commit in a procedure does not wait: see docs/inside.md for the measurement.
pub(super) const NO_WAIT_IN_PROCEDURES: &str = "in MariaDB (10.6 and newer) a COMMIT inside a stored procedure returns \
     before its log is on disk if another session is writing the log and there is no binary log: the wait comes at the end \
     of CALL (that of MySQL waits)";

/// Capabilities that are missing on MySQL, whatever the server's settings are.
pub(super) fn of_mysql() -> Capabilities {
    let no_cursor = "a procedure here can only fetch rows by a cursor, which first copies them to a temporary table";
    let no_load = "a procedure cannot receive rows: LOAD DATA needs a client";
    let one_thread = "a query is run by one thread";
    lacking([
        (Driver::Database, Capability::ReadRows, no_cursor),
        (Driver::Database, Capability::BulkLoad, no_load),
        (Driver::Database, Capability::ParallelQuery, one_thread),
        (Driver::Client, Capability::ParallelQuery, one_thread),
        (Driver::Client, Capability::Procedures, NO_LANGUAGE),
        (Driver::Database, Capability::Scripts, NO_SCRIPTS),
        (Driver::Database, Capability::CountChanges, NO_COUNTS),
        (Driver::Client, Capability::Scripts, NO_SCRIPTS),
    ])
}

pub(super) fn of_mariadb() -> Capabilities {
    let mut all = of_mysql();
    all.missing.insert(0, no_wait_in_procedures());
    all
}

/// Abilities that MariaDB lacks and MySQL has.
pub(super) fn no_wait_in_procedures() -> (Driver, Capability, String) {
    (Driver::Database, Capability::CommitWait, NO_WAIT_IN_PROCEDURES.to_owned())
}

/// Isolation level of jobs that read and change rows, as on other databases. Under the default here,
/// REPEATABLE READ, a transaction fails in MariaDB 11.6 and newer (`innodb_snapshot_isolation`) if it changes
/// a row that another one changed since its first read.
pub(super) fn isolation(work: &Work) -> Option<&'static str> {
    work.program.reads_and_writes().then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
}

/// The SQL of a workload for people to read, on servers with these `capabilities`.
pub(super) fn all(work: &Work, capabilities: &Capabilities) -> Vec<Rendered> {
    let dialect = &KNOWLEDGE.dialect;
    let mut out = tables(work, dialect);
    out.extend(isolation(work).map(|isolation| Rendered::new("session", isolation).by(Driver::Client)));
    out.extend(statements(work, dialect, ""));
    if capabilities.refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        out.extend(procedure::recursive(work).map(|(_, create)| Rendered::new("routine", create).by(Driver::Database)));
        out.push(Rendered::new("procedure", procedure::create(work, false)).by(Driver::Database));
    }
    out.extend(queries(work, dialect, ""));
    out
}
