//! Loads tables with array binds. Never run against a live server, like all of this module.

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_workload::{ColumnDef, LogicalType, Table};

use super::schema;
use super::session::{Bind, OraSession};
use super::sql::{mark, quoted, table_name};
use crate::data_set::{Loader, RECORD};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::work::Work;

/// A session that loads.
pub(super) struct OraLoader(pub(super) Box<dyn OraSession>);

/// Name of loadline's table with this stem.
pub(super) fn name_of(stem: &str) -> String {
    format!("{}{}", super::sql::PREFIX, stem.to_uppercase())
}

impl Loader for OraLoader {
    fn record(&self) -> String {
        quoted(&name_of(RECORD))
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        quoted(&table_name(work, table.name))
    }

    fn as_text(&self, column: &ColumnDef) -> String {
        let name = quoted(&column.name.to_uppercase());
        if column.logical == LogicalType::Bytes { format!("RAWTOHEX({name})") } else { name }
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let rows = self.0.query(sql, &[])?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.0.execute(sql, &[])?;
        self.0.execute("COMMIT", &[])?;
        Ok(())
    }

    fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        let name = name_of(stem);
        Ok(schema::tables(self.0.as_mut())?.into_iter().any(|(table, ours)| ours && table == name))
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        let record = self.record();
        schema::make(
            self.0.as_mut(),
            &format!(
                "CREATE TABLE {record} (\"NAME\" VARCHAR2(64) NOT NULL, \"VERSION\" NUMBER(10) NOT NULL, \"SEED\" \
                 VARCHAR2(40) NOT NULL, \"COMPRESSIBILITY\" VARCHAR2(40) NOT NULL, \"DATA_ROWS\" NUMBER(19) NOT NULL, \
                 \"FINGERPRINT\" VARCHAR2(16) NOT NULL, \"COMPLETE\" NUMBER(1) NOT NULL, \"KEPT\" NUMBER(1) NOT NULL)"
            ),
        )?;
        schema::make(self.0.as_mut(), &format!("COMMENT ON TABLE {record} IS '{}'", mark()))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        let existing = schema::tables(self.0.as_mut())?;
        schema::create_anew(self.0.as_mut(), &existing, work, table)
    }

    fn counted(&mut self, work: &Work, table: &Table) -> Result<BTreeMap<u64, u64>, TargetError> {
        let (size, name) = (table.batch_rows(&work.params), quoted(&table_name(work, table.name)));
        let key = quoted(&table.columns.first().map_or("ID", |c| c.name).to_uppercase());
        let batch = format!("TRUNC({key} / {size})");
        let rows = self.rows(&format!("SELECT {batch}, COUNT(*) FROM {name} GROUP BY {batch}"))?;
        let number = |v: Option<&String>| v.and_then(|v| v.parse().ok());
        Ok(rows.iter().filter_map(|row| Some((number(row.first())?, number(row.get(1))?))).collect())
    }

    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        let added = batches.iter().try_for_each(|batch| schema::insert(self.0.as_mut(), work, table, batch).map(drop));
        if let Err(e) = added.and_then(|()| self.0.execute("COMMIT", &[]).map(drop)) {
            if !e.lost {
                self.0.rollback()?;
            }
            return Err(e.into());
        }
        Ok(())
    }

    fn remove(&mut self, work: &Work, table: &Table, keys: &Range<i64>) -> Result<(), TargetError> {
        let delete = schema::Loading::of(work, table).delete;
        self.0.execute(&delete, &[Bind::Int(keys.start), Bind::Int(keys.end - 1)])?;
        self.0.execute("COMMIT", &[])?;
        Ok(())
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        if table.is_whole() {
            let name = table_name(work, table.name);
            self.0.call(&format!("BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, '{name}'); END;"), &[])?;
        }
        complete.map_or(Ok(()), |sql| self.run(sql))
    }

    fn path(&self) -> &'static str {
        "array binds"
    }
}
