//! Creates tables in SQLite and loads them with prepared inserts in large transactions.

use loadline_workload::{Datum, IndexAtom, LogicalType, Table};
use rusqlite::{Connection, params_from_iter};

use super::failed;
use crate::data_set::{Loader, RECORD};
use crate::error::TargetError;
use crate::loading::{Batch, rows, table_stem};
use crate::work::Work;

/// Prefix of all table names.
const PREFIX: &str = "loadline_";

/// Quoted name of a workload's table in the database, or of an index ([`IndexAtom`]).
pub(super) fn table_name(work: &Work, table: &str) -> String {
    match IndexAtom::parse(table) {
        Some(index) => format!("\"{PREFIX}{}_{}\"", table_stem(work, index.table), index.column),
        None => format!("\"{PREFIX}{}\"", table_stem(work, table)),
    }
}

/// The statement that creates `table` with its indexes. Indexes of a table that is loaded as a whole are created after
/// loading.
pub(super) fn create_table(work: &Work, table: &Table) -> String {
    let column = |c: &loadline_workload::ColumnDef| {
        let logical = match c.logical {
            LogicalType::Int | LogicalType::Boolean => "INTEGER",
            LogicalType::Text | LogicalType::Timestamp | LogicalType::Json => "TEXT",
            LogicalType::Numeric => "NUMERIC",
            LogicalType::Bytes => "BLOB",
        };
        let key = if table.primary_key() == Some(c.name.as_str()) { " PRIMARY KEY" } else { "" };
        format!("\"{}\" {logical} NOT NULL{key}", c.name)
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    let mut sql = format!("CREATE TABLE {} ({})", table_name(work, &table.name), columns.join(", "));
    if !table.is_whole() {
        sql.push_str(&create_indexes(work, table));
    }
    sql
}

fn create_indexes(work: &Work, table: &Table) -> String {
    let (stem, name) = (table_stem(work, &table.name), table_name(work, &table.name));
    let index = |column: &String| format!("; CREATE INDEX \"{PREFIX}{stem}_{column}\" ON {name} (\"{column}\")");
    table.indexes.iter().map(index).collect()
}

/// Inserts the rows of `batch`.
pub(super) fn insert(db: &Connection, work: &Work, table: &Table, batch: &Batch) -> rusqlite::Result<()> {
    let marks = (1..=table.columns.len()).map(|i| format!("?{i}")).collect::<Vec<_>>().join(", ");
    let sql = format!("INSERT INTO {} VALUES ({marks})", table_name(work, &table.name));
    let mut statement = db.prepare_cached(&sql)?;
    rows(work, table, batch, |row| {
        let values = row.iter().map(|d| match d {
            Datum::Int(i) => rusqlite::types::ToSqlOutput::from(*i),
            Datum::Bytes(b) => rusqlite::types::ToSqlOutput::from(*b),
            Datum::Typed(value) => rusqlite::types::ToSqlOutput::from(value.text()),
        });
        statement.execute(params_from_iter(values)).map(drop)
    })
}

/// A connection that loads.
pub(super) struct SqliteLoader(pub(super) Connection);

impl Loader for SqliteLoader {
    fn record(&self) -> String {
        format!("\"{PREFIX}{RECORD}\"")
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        table_name(work, &table.name)
    }

    fn quoted(&self, name: &str) -> String {
        format!("\"{name}\"")
    }

    fn hex(&self, bytes: &str) -> String {
        format!("hex({bytes})")
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let text = |value: rusqlite::types::ValueRef<'_>| match value {
            rusqlite::types::ValueRef::Integer(i) => i.to_string(),
            rusqlite::types::ValueRef::Text(t) => String::from_utf8_lossy(t).into_owned(),
            _ => String::new(),
        };
        let read = || -> rusqlite::Result<Vec<Vec<String>>> {
            let mut statement = self.0.prepare(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|i| row.get_ref(i).map(text)).collect())?;
            rows.collect()
        };
        read().map_err(failed(&self.0, "a query about the data set"))
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.0.execute_batch(sql).map_err(failed(&self.0, "loading"))
    }

    fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        let sql = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND name = '{PREFIX}{stem}'");
        Ok(!self.rows(&sql)?.is_empty())
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        self.run(&format!(
            "CREATE TABLE {} (name TEXT PRIMARY KEY, version INTEGER, seed TEXT, compressibility TEXT, data_rows INTEGER, \
             fingerprint TEXT, complete INTEGER, kept INTEGER)",
            self.record()
        ))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        self.run(&format!("DROP TABLE IF EXISTS {}; {}", table_name(work, &table.name), create_table(work, table)))
    }

    fn count_batches(&self, name: &str, key: &str, size: u64) -> String {
        format!("SELECT {key} / {size}, count(*) FROM {name} GROUP BY 1")
    }

    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        let mut add = || {
            let loading = self.0.transaction()?;
            batches.iter().try_for_each(|batch| insert(&loading, work, table, batch))?;
            loading.commit()
        };
        add().map_err(failed(&self.0, "loading"))
    }

    fn drop_data_set(&mut self) -> Result<(), TargetError> {
        drop_tables(self, |name| name.starts_with("data_")).map(drop)
    }

    fn is_finished(&mut self, work: &Work, table: &Table) -> Result<bool, TargetError> {
        let sql = format!(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = '{PREFIX}{}'",
            table_stem(work, &table.name)
        );
        let existing = self.rows(&sql)?.into_iter().flatten().next();
        Ok(existing.and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n >= table.indexes.len()))
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        if !table.is_whole() {
            return Ok(());
        }
        let name = table_name(work, &table.name);
        let indexes = if self.is_finished(work, table)? { String::new() } else { create_indexes(work, table) };
        let complete = complete.map_or(String::new(), |sql| format!("; {sql}"));
        // A sample is enough for the planner; without the limit, ANALYZE reads the whole table.
        self.run(&format!(
            "BEGIN{indexes}; PRAGMA analysis_limit = 1000; ANALYZE {name}{complete}; COMMIT; PRAGMA \
             wal_checkpoint(TRUNCATE)"
        ))
    }

    fn path(&self) -> &'static str {
        "prepared inserts"
    }
}

/// Drops those of loadline's tables for which `which` (given the name without prefix) is true, and returns their names.
pub(super) fn drop_tables(loader: &mut SqliteLoader, which: impl Fn(&str) -> bool) -> Result<Vec<String>, TargetError> {
    let sql = format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '{PREFIX}%'");
    let mut removed = Vec::new();
    for name in loader.rows(&sql)?.into_iter().flatten() {
        if which(name.strip_prefix(PREFIX).unwrap_or(&name)) {
            loader.run(&format!("DROP TABLE \"{name}\""))?;
            removed.push(format!("table {name}"));
        }
    }
    Ok(removed)
}
