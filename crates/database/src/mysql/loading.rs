//! Bulk load: LOAD DATA LOCAL INFILE with rows generated on the fly; the loader of the data set.

use loadline_workload::{ColumnDef, Datum, LogicalType, Table};

use super::instance::MysqlInstance;
use super::ledger::Ledger;
use super::schema;
use super::server::Mysql;
use super::sql::{self, DATABASE, MARK, create_table, full_name, quoted, table_name};
use super::wire::Connection;
use crate::data_set::{Loader, RECORD};
use crate::error::TargetError;
use crate::loading::{Batch, rows, table_stem};
use crate::work::Work;
use crate::workload_tables::{LoadedTables, LoadsTables};

/// Name of the file that the server requests. There is no such file: its rows are generated.
const FILE: &str = "rows-of-loadline";
/// Approximate length of a packet of rows, bytes.
const PACKET: usize = 128 * 1024;
/// Errors if server or session forbids local files: 1148 and 4166 (MariaDB), 3948 and 3950 (MySQL).
const NOT_ALLOWED: [u16; 4] = [1148, 4166, 3948, 3950];

/// Adds the rows of `batches` by LOAD DATA, or by prepared inserts if the server forbids it.
pub(super) fn add(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
    match load_data(c, work, table, batches) {
        Err(TargetError::Server(_)) if NOT_ALLOWED.contains(&c.last_code) => {
            batches.iter().map(|batch| schema::insert(c, work, table, batch)).sum()
        }
        done => done,
    }
}

/// The LOAD DATA statement of a table. Values are raw bytes; a backslash escapes special ones. Documents are said to be text, as MySQL
/// takes no other (error 3144).
fn statement(work: &Work, table: &Table) -> String {
    let is_document = |c: &ColumnDef| c.logical == LogicalType::Json;
    let name = |c: &ColumnDef| if is_document(c) { format!("@{}", c.name) } else { quoted(&c.name) };
    let names: Vec<String> = table.columns.iter().map(name).collect();
    let set = |c: &ColumnDef| format!("{} = CONVERT(@{} USING utf8mb4)", quoted(&c.name), c.name);
    let set: Vec<String> = table.columns.iter().filter(|c| is_document(c)).map(set).collect();
    let documents =
        if set.is_empty() { String::new() } else { format!(" ({}) SET {}", names.join(", "), set.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE {} CHARACTER SET binary FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' \
         LINES TERMINATED BY '\\n'{documents}",
        table_name(work, &table.name)
    )
}

fn load_data(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
    let sent: u64 = batches.iter().map(Batch::len).sum();
    let mut waiting = batches.iter().flat_map(|batch| split(batch, work, table));
    let done = c.load_local(&statement(work, table), FILE, |out| {
        if let Some(piece) = waiting.next() {
            // `rows` fails only if its callback does.
            let _ = rows(work, table, &piece, |row| -> Result<(), std::convert::Infallible> {
                put_row(out, row);
                Ok(())
            });
        }
    })?;
    if done != sent {
        return Err(TargetError::Statement(format!("{done} rows were loaded instead of {sent}")));
    }
    Ok(done)
}

/// Splits a batch into pieces of about a packet each.
fn split<'a>(batch: &'a Batch, work: &Work, table: &Table) -> impl Iterator<Item = Batch> + use<'a> {
    let rows = (PACKET as u64 / (table.value_bytes(&work.params) + 8)).max(1);
    (0..batch.len().div_ceil(rows)).map(move |i| batch.part(i * rows, rows))
}

fn put_row(out: &mut Vec<u8>, row: &[Datum<'_>]) {
    use std::io::Write as _;
    for (i, datum) in row.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        match datum {
            Datum::Int(i) => drop(write!(out, "{i}")),
            Datum::Bytes(bytes) => bytes.iter().for_each(|b| match b {
                0 => out.extend_from_slice(b"\\0"),
                b'\t' | b'\n' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
                b => out.push(*b),
            }),
            Datum::Typed(value) => out.extend_from_slice(value.text().as_bytes()),
        }
    }
    out.push(b'\n');
}

struct MysqlLoader {
    connection: Connection,
    ledger: Ledger,
}

impl LoadsTables for Mysql {
    fn open_loader(&self) -> Result<Box<dyn Loader + '_>, TargetError> {
        let MysqlInstance { endpoint, ledger, .. } = self.first();
        Ok(Box::new(MysqlLoader { connection: endpoint.connect_loading()?, ledger: ledger.clone() }))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn in_step<T>(&self, f: impl FnOnce() -> Result<T, TargetError>) -> Result<T, TargetError> {
        self.caught_up(f)
    }
}

impl Loader for MysqlLoader {
    fn record(&self) -> String {
        full_name(RECORD)
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        table_name(work, &table.name)
    }

    fn quoted(&self, name: &str) -> String {
        quoted(name)
    }

    fn hex(&self, bytes: &str) -> String {
        format!("HEX({bytes})")
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let rows = self.connection.query(sql)?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.connection.run(sql)
    }

    fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{stem}'"
        );
        Ok(self.connection.value(&sql)?.as_deref() == Some("1"))
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        schema::ensure(&mut self.connection)?;
        self.run(&format!(
            "CREATE TABLE {} (name VARCHAR(64) PRIMARY KEY, version BIGINT NOT NULL, seed VARCHAR(40) NOT NULL, \
             compressibility VARCHAR(40) NOT NULL, data_rows BIGINT NOT NULL, fingerprint VARCHAR(16) NOT NULL, complete INT \
             NOT NULL, kept INT NOT NULL) ENGINE = InnoDB CHARACTER SET binary COMMENT = '{MARK}'",
            self.record()
        ))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        self.run(&format!("DROP TABLE IF EXISTS {}", table_name(work, &table.name)))?;
        self.run(&create_table(work, table))
    }

    fn count_batches(&self, name: &str, key: &str, size: u64) -> String {
        format!("SELECT {key} DIV {size}, COUNT(*) FROM {name} GROUP BY 1")
    }

    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        self.run("BEGIN")?;
        let added = add(&mut self.connection, work, table, batches);
        if added.as_ref().is_err_and(|e| !e.is_lost()) {
            self.run("ROLLBACK")?;
        }
        added?;
        self.run("COMMIT")
    }

    fn drop_data_set(&mut self) -> Result<(), TargetError> {
        let tables = self.rows(&format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME LIKE \
             'data\\_%' AND TABLE_COMMENT LIKE '{MARK}%'"
        ))?;
        tables.iter().flatten().try_for_each(|table| self.run(&format!("DROP TABLE {}", full_name(table))))
    }

    fn is_finished(&mut self, work: &Work, table: &Table) -> Result<bool, TargetError> {
        let indexes = self.connection.number(&format!(
            "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{DATABASE}' AND \
             TABLE_NAME = '{}' AND INDEX_NAME LIKE 'by\\_%'",
            table_stem(work, &table.name)
        ))?;
        Ok(indexes.is_some_and(|n| n as usize >= table.indexes.len()))
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        if let Some(indexes) = sql::after_loading(work, table)
            && !self.is_finished(work, table)?
        {
            self.run(&indexes)?;
        }
        // The optimizer needs the statistics, and a table's size is read from them.
        self.run(&sql::analyze(work, &table.name))?;
        complete.map_or(Ok(()), |sql| self.run(sql))
    }

    fn path(&self) -> &'static str {
        // Another error would have ended the load.
        match NOT_ALLOWED.contains(&self.connection.last_code) {
            true => "prepared inserts, as the server allows no LOAD DATA LOCAL",
            false => "LOAD DATA LOCAL INFILE",
        }
    }

    fn close(&mut self) -> Result<(), TargetError> {
        self.ledger.book(&mut self.connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_as_load_data_reads_them() {
        let mut out = Vec::new();
        put_row(&mut out, &[Datum::Int(-7), Datum::Bytes(b"a\t\n\\\0\xff'")]);
        assert_eq!(out, b"-7\ta\\\t\\\n\\\\\\0\xff'\n");
    }
}
