//! Loads rows into SQLite with prepared inserts in large transactions.

use loadline_workload::{Datum, Table};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::KNOWLEDGE;
use super::failed;
use crate::data_set::LoadSession;
use crate::error::TargetError;
use crate::loading::{Batch, rows};
use crate::work::Work;

pub(super) fn insert(db: &Connection, work: &Work, table: &Table, batch: &Batch) -> rusqlite::Result<()> {
    let marks = (1..=table.columns.len()).map(|i| format!("?{i}")).collect::<Vec<_>>().join(", ");
    let sql = format!("INSERT INTO {} VALUES ({marks})", KNOWLEDGE.dialect.table_name(work, &table.name));
    let mut statement = db.prepare_cached(&sql)?;
    rows(work, table, batch, |row| {
        let values = row.iter().map(|d| match d {
            Datum::Int(i) => ToSqlOutput::from(*i),
            Datum::Bytes(b) => ToSqlOutput::from(*b),
            Datum::Typed(value) => ToSqlOutput::from(value.text()),
        });
        statement.execute(params_from_iter(values)).map(drop)
    })
}

/// A value as text; `None` for NULL.
pub(super) fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Integer(i) => Some(i.to_string()),
        ValueRef::Real(n) => Some(n.to_string()),
        ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
        ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null => None,
    }
}

impl LoadSession for Connection {
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        let read = || -> rusqlite::Result<Vec<Vec<Option<String>>>> {
            let mut statement = self.prepare(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|i| row.get_ref(i).map(text)).collect())?;
            rows.collect()
        };
        read().map_err(failed(self, "a query about tables"))
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.execute_batch(sql).map_err(failed(self, "a statement on tables"))
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        let done = batches.iter().try_for_each(|batch| insert(self, work, table, batch));
        done.map_err(failed(self, "loading"))
    }

    fn path(&self) -> &'static str {
        "prepared inserts"
    }
}
