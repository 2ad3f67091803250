//! The SQL of a workload for people to read, and the missing capabilities.

use loadline_model::Driver;
use loadline_model::capability::{Capabilities, Capability};

use super::procedure;
use super::sql::{NO_WAIT_IN_PROCEDURES, after_loading, create_table, isolation, query, statement};
use crate::render::{NO_COUNTS, NO_SCRIPTS, Rendered, lacking};
use crate::work::Work;

/// Capabilities that are missing on MySQL, whatever the server's settings are.
pub(super) fn of_mysql() -> Capabilities {
    let no_cursor = "a procedure here can only fetch rows by a cursor, which first copies them to a temporary table";
    let no_load = "a procedure cannot receive rows: LOAD DATA needs a client";
    let one_thread = "a query is run by one thread";
    let no_language = "a client computes nothing: procedural code runs inside the database";
    lacking([
        (Driver::Database, Capability::ReadRows, no_cursor),
        (Driver::Database, Capability::BulkLoad, no_load),
        (Driver::Database, Capability::ParallelQuery, one_thread),
        (Driver::Client, Capability::ParallelQuery, one_thread),
        (Driver::Client, Capability::Procedures, no_language),
        (Driver::Database, Capability::Scripts, NO_SCRIPTS),
        (Driver::Database, Capability::CountChanges, NO_COUNTS),
        (Driver::Client, Capability::Scripts, NO_SCRIPTS),
    ])
}

/// The same on MariaDB.
pub(super) fn of_mariadb() -> Capabilities {
    let mut all = of_mysql();
    all.missing.insert(0, no_wait_in_procedures());
    all
}

/// What MariaDB lacks and MySQL has.
pub(super) fn no_wait_in_procedures() -> (Driver, Capability, String) {
    (Driver::Database, Capability::CommitWait, NO_WAIT_IN_PROCEDURES.to_owned())
}

/// The SQL of a workload for people to read, on servers with these `capabilities`.
pub(super) fn all(work: &Work, capabilities: &Capabilities) -> Vec<Rendered> {
    let mut out = Vec::new();
    for table in &work.workload.tables {
        out.push(Rendered::new(format!("table {}", table.name), create_table(work, table)));
        let later = after_loading(work, table);
        out.extend(later.map(|sql| Rendered::new(format!("table {}, when it is loaded", table.name), sql)));
    }
    if let Some(isolation) = isolation(work) {
        out.push(Rendered::new("session", isolation).by(Driver::Client));
    }
    for (i, s) in work.program.statements.iter().enumerate() {
        out.push(Rendered::new(format!("statement {i}"), statement(work, &s.template)).by(Driver::Client));
    }
    let refused = capabilities.refusal_for_good(Driver::Database, &work.workload.needs);
    if refused.is_none() {
        out.extend(procedure::recursive(work).map(|(_, create)| Rendered::new("routine", create).by(Driver::Database)));
        out.push(Rendered::new("procedure", procedure::create(work, false)).by(Driver::Database));
    }
    out.extend(work.rendered_queries(query, ""));
    out
}
