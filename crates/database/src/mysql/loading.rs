//! Loads rows: LOAD DATA LOCAL INFILE with rows generated on the fly, or prepared inserts.

use std::sync::Arc;

use loadline_workload::{ColumnDef, Datum, LogicalType, Table};

use super::instance::Ledger;
use super::knowledge::KNOWLEDGE;
use super::protocol::Row;
use super::schema;
use super::wire::Connection;
use crate::data_set::LoadSession;
use crate::error::TargetError;
use crate::loading::{Batch, in_parts, rows};
use crate::work::Work;

/// Rows of a prepared insert.
const ROWS_PER_INSERT: usize = 64;
/// Name of the file that the server requests. There is no such file: its rows are generated.
const FILE: &str = "rows-of-loadline";
/// Approximate length of a packet of rows, bytes.
const PACKET: usize = 128 * 1024;
/// Errors if server or session forbids local files: 1148 and 4166 (MariaDB), 3948 and 3950 (MySQL).
const NOT_ALLOWED: [u16; 4] = [1148, 4166, 3948, 3950];

/// Adds the rows of `batches` by LOAD DATA, or by prepared inserts if the server forbids it.
pub(super) fn add(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
    let done = match load_data(c, work, table, batches) {
        Err(TargetError::Server(_)) if NOT_ALLOWED.contains(&c.last_code) => {
            batches.iter().map(|batch| insert(c, work, table, batch)).sum()
        }
        done => done,
    }?;
    let sent: u64 = batches.iter().map(Batch::len).sum();
    if done != sent {
        return Err(TargetError::Statement(format!("{done} rows were loaded instead of {sent}")));
    }
    Ok(done)
}

/// The LOAD DATA statement of a table. Values are raw bytes; a backslash escapes special ones. Documents are said to be text, as MySQL
/// takes no other (error 3144).
fn statement(work: &Work, table: &Table) -> String {
    let dialect = &KNOWLEDGE.dialect;
    let is_document = |c: &ColumnDef| c.logical == LogicalType::Json;
    let name = |c: &ColumnDef| if is_document(c) { format!("@{}", c.name) } else { dialect.quoted(&c.name) };
    let names: Vec<String> = table.columns.iter().map(name).collect();
    let set = |c: &ColumnDef| format!("{} = CONVERT(@{} USING utf8mb4)", dialect.quoted(&c.name), c.name);
    let set: Vec<String> = table.columns.iter().filter(|c| is_document(c)).map(set).collect();
    let documents =
        if set.is_empty() { String::new() } else { format!(" ({}) SET {}", names.join(", "), set.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE '{FILE}' INTO TABLE {} CHARACTER SET binary FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' \
         LINES TERMINATED BY '\\n'{documents}",
        dialect.table_name(work, &table.name)
    )
}

fn load_data(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
    let mut waiting = batches.iter().flat_map(|batch| split(batch, work, table));
    c.load_local(&statement(work, table), FILE, |out| {
        if let Some(piece) = waiting.next() {
            // `rows` fails only if its callback does.
            let _ = rows(work, table, &piece, |row| -> Result<(), std::convert::Infallible> {
                put_row(out, row);
                Ok(())
            });
        }
    })
}

fn insert(c: &mut Connection, work: &Work, table: &Table, batch: &Batch) -> Result<u64, TargetError> {
    let name = KNOWLEDGE.dialect.table_name(work, &table.name);
    let mark = |c: &ColumnDef| if c.logical == LogicalType::Json { "CONVERT(? USING utf8mb4)" } else { "?" };
    let one = format!("({})", table.columns.iter().map(mark).collect::<Vec<_>>().join(", "));
    let insert = |n: usize| format!("INSERT INTO {name} VALUES {}", vec![one.as_str(); n].join(", "));
    let mut whole = c.prepare(&insert(ROWS_PER_INSERT))?;
    let done = in_parts(work, table, batch, ROWS_PER_INSERT as u64, |args| {
        let rows = args.len() / table.columns.len().max(1);
        if rows == ROWS_PER_INSERT {
            return c.execute(&mut whole, args);
        }
        let mut rest = c.prepare(&insert(rows))?;
        let done = c.execute(&mut rest, args)?;
        c.close_statement(rest)?;
        Ok(done)
    })?;
    // The server limits their number (max_prepared_stmt_count), and a load has many batches.
    c.close_statement(whole)?;
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

pub(super) struct MysqlLoader {
    pub(super) connection: Connection,
    pub(super) ledger: Arc<Ledger>,
}

impl LoadSession for MysqlLoader {
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        self.connection.query(sql)
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.connection.run(sql)
    }

    fn ensure(&mut self) -> Result<(), TargetError> {
        schema::ensure(&mut self.connection)
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        add(&mut self.connection, work, table, batches).map(drop)
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
