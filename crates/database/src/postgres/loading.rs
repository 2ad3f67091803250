//! Loads tables: COPY in several sessions, then keys and indexes.

use loadline_workload::{ColumnDef, LogicalType, Table};

use super::schema;
use super::sql::{SCHEMA, after_loading, create_table, literal, quoted, table_name};
use super::wire::Connection;
use crate::data_set::{Loader, RECORD};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::work::Work;

fn name_of(stem: &str) -> String {
    format!("{}.{}", quoted(SCHEMA), quoted(stem))
}

impl Loader for Connection {
    fn record(&self) -> String {
        name_of(RECORD)
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        table_name(work, &table.name)
    }

    fn quoted(&self, name: &str) -> String {
        quoted(name)
    }

    fn hex(&self, bytes: &str) -> String {
        format!("encode({bytes}, 'hex')")
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let rows = self.query(sql)?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.query(sql).map(drop)
    }

    fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        let name = literal(&name_of(stem));
        Ok(self.value(&format!("SELECT to_regclass({name})"))?.is_some())
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        schema::ensure(self)?;
        self.run(&format!(
            "CREATE TABLE {} (name text PRIMARY KEY, version bigint NOT NULL, seed text NOT NULL, compressibility text \
             NOT NULL, data_rows bigint NOT NULL, fingerprint text NOT NULL, complete integer NOT NULL, kept integer NOT \
             NULL)",
            self.record()
        ))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        let name = table_name(work, &table.name);
        self.run(&format!("DROP TABLE IF EXISTS {name}; {}", create_table(work, table)))
    }

    fn count_batches(&self, name: &str, key: &str, size: u64) -> String {
        format!("SELECT {key} / {size}, count(*) FROM {name} GROUP BY 1")
    }

    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        self.query("BEGIN")?;
        let copied = schema::copy(self, work, table, batches);
        if copied.as_ref().is_err_and(|e| !e.is_lost()) {
            self.query("ROLLBACK")?;
        }
        copied?;
        self.run("COMMIT")
    }

    fn drop_data_set(&mut self) -> Result<(), TargetError> {
        let tables = self.rows(&format!(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') AND relkind = 'r' AND relname ~ \
             '^data_'"
        ))?;
        tables.iter().flatten().try_for_each(|table| self.run(&format!("DROP TABLE {}", name_of(table))))
    }

    fn is_finished(&mut self, work: &Work, table: &Table) -> Result<bool, TargetError> {
        let name = literal(&table_name(work, &table.name));
        let count = format!("SELECT count(*) FROM pg_index WHERE indrelid = {name}::regclass");
        let wanted = usize::from(table.primary_key().is_some()) + table.indexes.len();
        Ok(self.number::<usize>(&count)?.is_some_and(|n| n >= wanted))
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        let name = table_name(work, &table.name);
        let complete = complete.map_or(String::new(), |sql| format!("{sql}; "));
        if !table.is_whole() {
            // In an explicit transaction, so that it counts as one commit.
            return self.run(&format!("BEGIN; ANALYZE {name}; {complete}COMMIT"));
        }
        let keys = if self.is_finished(work, table)? { String::new() } else { after_loading(work, table) };
        // Creating the key reads every row and sets its hint bits, so readers need not do it during a test. No query
        // filters by payload, and statistics on payloads take as long as on all other columns together.
        let payloads = table.columns.iter().filter(|c| c.logical == LogicalType::Bytes);
        let leave_out =
            |c: &ColumnDef| format!("ALTER TABLE {name} ALTER COLUMN {} SET STATISTICS 0; ", quoted(&c.name));
        let leave_out: String = payloads.map(leave_out).collect();
        self.run(&format!("BEGIN; {keys}{leave_out}ANALYZE {name}; {complete}COMMIT"))
    }

    fn path(&self) -> &'static str {
        "COPY, binary"
    }

    fn close(&mut self) -> Result<(), TargetError> {
        self.publish()
    }
}
