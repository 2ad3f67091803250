//! Renders a workload as SQL, and lists the missing capabilities.

use loadline_model::capability::{Capabilities, Capability, Driver};

use super::sql::{after_loading, create_table, query, statement};
use super::versions::{NEWEST, Version};
use super::{parallel, procedure};
use crate::render::{NO_COUNTS, Rendered, lacking};
use crate::work::Work;

/// What the drivers cannot do.
pub(super) fn capabilities() -> Capabilities {
    let no_copy = "a procedure cannot receive rows: COPY needs a client";
    let no_language = "a client computes nothing: procedural code runs inside the database";
    let no_scripts = "pgbench scripts are run by a client, as pgbench does";
    lacking([
        (Driver::Database, Capability::BulkLoad, no_copy),
        (Driver::Client, Capability::Procedures, no_language),
        (Driver::Database, Capability::Scripts, no_scripts),
        (Driver::Database, Capability::CountChanges, NO_COUNTS),
    ])
}

/// Renders all SQL of a workload.
pub(super) fn all(work: &Work) -> Vec<Rendered> {
    let mut out = Vec::new();
    for table in &work.workload.tables {
        out.push(Rendered::new(format!("table {}", table.name), create_table(work, table)));
        if table.is_whole() {
            out.push(Rendered::new(format!("table {}, when it is loaded", table.name), after_loading(work, table)));
        }
    }
    if let Some(workers) = work.parallel_workers() {
        let settings = parallel::settings(workers);
        let sql: Vec<String> = settings.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
        out.push(Rendered::new("session", sql.join("\n")));
        out.push(Rendered::new("tables, before each test", parallel::table_settings(work).join("\n")));
    }
    for (i, s) in work.program.statements.iter().enumerate() {
        out.push(Rendered::new(format!("statement {i}"), statement(work, &s.template)).by(Driver::Client));
    }
    if capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        let procedure = procedure::create(work, Version { major: NEWEST });
        out.push(Rendered::new("procedure", procedure).by(Driver::Database));
    }
    out.extend(work.rendered_queries(query, ""));
    out
}
