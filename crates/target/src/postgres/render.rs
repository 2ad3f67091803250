//! A workload in PostgreSQL's SQL: tables, statements, evidence.

use loadline_model::capability::{Capabilities, Capability, Driver};
use loadline_workload::{LogicalType, Scope, Table, Template};

use super::versions::{NEWEST, Version};
use super::{parallel, procedure};
use crate::error::TargetError;
use crate::loading::table_stem;
use crate::render::Rendered;
use crate::work::Work;

/// The schema that holds everything loadline makes.
pub(super) const SCHEMA: &str = "loadline";

/// A name as SQL takes it whatever it holds.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL takes it whatever it holds.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `lgwr_lat1` for `LGWR-LAT1`.
pub(super) fn prefix(work: &Work) -> String {
    work.workload.code.to_lowercase().replace('-', "_")
}

/// Full name of a table of the workload.
pub(super) fn table_name(work: &Work, table: &str) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(&table_stem(work, table)))
}

/// The statement that makes `table`.
pub(super) fn create_table(work: &Work, table: &Table) -> String {
    let mut lines = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        let kind = match column.logical {
            LogicalType::Int => "bigint",
            LogicalType::Bytes => "bytea",
        };
        let key = if i == 0 { " PRIMARY KEY" } else { "" };
        lines.push(format!("  {} {kind} NOT NULL{key}", quoted(column.name)));
    }
    // Room for the next versions of its rows in each page: updates stay on their page and leave the
    // index alone, so that a change is one log record. Autovacuum would log pages that no transaction
    // has changed, and the rows prune themselves.
    let options = if table.updated_in_place { " WITH (fillfactor = 45, autovacuum_enabled = false)" } else { "" };
    let name = table_name(work, table.name);
    let unless = if table.scope == Scope::DataSet { "IF NOT EXISTS " } else { "" };
    let mut sql = format!("CREATE TABLE {unless}{name} (\n{}\n){options};", lines.join(",\n"));
    for column in table.columns.iter().filter(|c| c.logical == LogicalType::Bytes) {
        // Neither compressed nor moved out of line: the redo is what the workload says it is.
        sql.push_str(&format!("\nALTER TABLE {name} ALTER COLUMN {} SET STORAGE PLAIN;", quoted(column.name)));
    }
    for column in table.indexes {
        let index = quoted(&format!("{}_{column}", table_stem(work, table.name)));
        sql.push_str(&format!("\nCREATE INDEX {unless}{index} ON {name} ({});", quoted(column)));
    }
    sql
}

/// A statement of the program with `$1`, `$2` … in the order of its variables, as a client sends it.
pub(super) fn statement(work: &Work, template: &Template) -> String {
    let mut n = 0;
    template.render(
        |table| table_name(work, table),
        |_| {
            n += 1;
            format!("${n}")
        },
    )
}

/// Types of a statement's parameters.
pub(super) fn parameter_types(work: &Work, template: &Template) -> Vec<u32> {
    use super::protocol::{BYTEA, INT8};
    use loadline_workload::VarType;
    let vars = work.program.vars();
    let kind = |name: &str| vars.iter().find(|(v, _)| *v == name).map_or(VarType::Int, |(_, g)| g.var_type());
    template
        .vars()
        .map(|name| match kind(name) {
            VarType::Int => INT8,
            VarType::Bytes => BYTEA,
        })
        .collect()
}

/// A query about the workload's tables.
///
/// # Errors
/// When it cannot be read, a mistake in the workload.
pub(super) fn query(work: &Work, query: &str) -> Result<String, TargetError> {
    work.query(query, |table| table_name(work, table))
}

/// Everything that is made of a workload, for people to read.
pub(super) fn all(work: &Work) -> Vec<Rendered> {
    let mut out: Vec<Rendered> = work
        .workload
        .tables
        .iter()
        .map(|table| Rendered::new(format!("table {}", table.name), create_table(work, table)))
        .collect();
    if let Some(together) = work.together() {
        let settings = parallel::settings(together);
        let sql: Vec<String> = settings.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
        out.push(Rendered::new("session", sql.join("\n")));
    }
    for (i, s) in work.program.statements.iter().enumerate() {
        out.push(Rendered::new(format!("statement {i}"), statement(work, &s.template)).by(Driver::Client));
    }
    if capabilities().refusal_for_good(Driver::Database, work.workload.needs).is_none() {
        let procedure = procedure::create(work, Version { major: NEWEST });
        out.push(Rendered::new("procedure", procedure).by(Driver::Database));
    }
    for (title, sql) in work.queries() {
        if let Ok(sql) = query(work, sql) {
            out.push(Rendered::new(title, sql));
        }
    }
    out
}

/// What does not fit.
pub(super) fn capabilities() -> Capabilities {
    let no_copy = "a procedure cannot be fed with rows: COPY is the client's";
    let no_language = "a client computes nothing: procedural code runs inside the database";
    Capabilities {
        missing_drivers: Vec::new(),
        missing: vec![
            (Driver::Database, Capability::BulkLoad, no_copy.to_owned()),
            (Driver::Client, Capability::Procedures, no_language.to_owned()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn every_workload_as_sql() {
        for workload in CATALOGUE {
            let work = Work::new(workload, workload.params(&BTreeMap::new()).unwrap(), 1, 0.0);
            let text: String = all(&work).iter().map(|r| format!("-- {}\n{}\n\n", r.title, r.sql)).collect();
            insta::assert_snapshot!(workload.code, text);
        }
    }

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's"), "'it''s'");
    }
}
