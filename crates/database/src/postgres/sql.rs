//! Renders a workload in PostgreSQL's SQL: tables, statements, queries.

use loadline_workload::{IndexAtom, LogicalType, Scope, Table, Template};

use crate::error::TargetError;
use crate::loading::table_stem;
use crate::work::Work;

/// The schema that holds everything loadline makes.
pub(super) const SCHEMA: &str = "loadline";

/// Fill factor of tables whose rows are updated in place, %.
pub(super) const IN_PLACE_PCT: u64 = 45;
const IN_PLACE: &str = " WITH (fillfactor = 45, autovacuum_enabled = false)";

/// Quotes a name for SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Beginning of loadline's own queries while something is watched: they are left out of the statements. (The server cuts off
/// comments before a statement.)
pub(super) const OWN: &str = "SELECT /* loadline */";

/// `sql` with that beginning.
pub(super) fn own(sql: &str) -> String {
    sql.replacen("SELECT", OWN, 1)
}

/// Full name of a table of the workload, or of an index ([`IndexAtom`]).
pub(super) fn table_name(work: &Work, table: &str) -> String {
    if let Some(index) = IndexAtom::parse(table) {
        let name = quoted(&format!("{}_{}", table_stem(work, index.table), index.column));
        // CREATE INDEX takes no schema, DROP INDEX does.
        return if index.new { name } else { format!("{}.{name}", quoted(SCHEMA)) };
    }
    format!("{}.{}", quoted(SCHEMA), quoted(&table_stem(work, table)))
}

/// The statement that creates `table`. A table that is loaded as a whole gets its keys and indexes from
/// [`after_loading`].
pub(super) fn create_table(work: &Work, table: &Table) -> String {
    let later = table.is_whole();
    let mut lines = Vec::new();
    for column in &table.columns {
        let kind = match column.logical {
            LogicalType::Int => "bigint",
            LogicalType::Bytes => "bytea",
            LogicalType::Text => "text",
            LogicalType::Timestamp => "timestamp",
            LogicalType::Numeric => "numeric(18,2)",
            LogicalType::Boolean => "boolean",
            LogicalType::Json => "jsonb",
        };
        let key = if table.primary_key() == Some(column.name.as_str()) && !later { " PRIMARY KEY" } else { "" };
        lines.push(format!("  {} {kind} NOT NULL{key}", quoted(&column.name)));
    }
    // Free space in each page for new row versions: updates stay on their page (HOT) and do not change the index, so a
    // change is one log record. Autovacuum would log pages that no transaction changed, and HOT pruning makes it
    // unnecessary. The data set never changes.
    let options = match (table.updated_in_place, table.scope == Scope::DataSet) {
        (true, _) => IN_PLACE,
        (_, true) => " WITH (autovacuum_enabled = false)",
        _ => "",
    };
    let name = table_name(work, &table.name);
    let mut sql = format!("CREATE TABLE {name} (\n{}\n){options};", lines.join(",\n"));
    for column in table.columns.iter().filter(|c| c.logical == LogicalType::Bytes) {
        // Neither compressed nor stored out of line, so the redo has the size that the workload specifies.
        sql.push_str(&format!("\nALTER TABLE {name} ALTER COLUMN {} SET STORAGE PLAIN;", quoted(&column.name)));
    }
    if !later {
        sql.push_str(&create_indexes(work, table));
    }
    sql
}

fn create_indexes(work: &Work, table: &Table) -> String {
    let stem = table_stem(work, &table.name);
    let index = |column: &String| {
        let name = quoted(&format!("{stem}_{column}"));
        format!("\nCREATE INDEX {name} ON {} ({});", table_name(work, &table.name), quoted(column))
    };
    table.indexes.iter().map(index).collect()
}

/// Creates keys and indexes of a table that is loaded as a whole, after loading.
pub(super) fn after_loading(work: &Work, table: &Table) -> String {
    let name = table_name(work, &table.name);
    let key = table.primary_key().map(|key| format!("ALTER TABLE {name} ADD PRIMARY KEY ({});", quoted(key)));
    key.unwrap_or_default() + &create_indexes(work, table)
}

/// A statement of the program with `$1`, `$2` … for its variables in order, as a client sends it.
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

/// Renders a query on the workload's tables.
pub(super) fn query(work: &Work, query: &str) -> Result<String, TargetError> {
    work.query(query, |table| table_name(work, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fill_factor_is_the_reported_one() {
        assert!(IN_PLACE.contains(&format!("fillfactor = {IN_PLACE_PCT},")));
    }

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's"), "'it''s'");
    }
}
