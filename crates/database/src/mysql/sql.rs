//! A workload in MariaDB's SQL: tables, statements, evidence.

use loadline_workload::{Fill, IndexAtom, LogicalType, Table, Template};

use crate::error::TargetError;
use crate::loading::table_stem;
use crate::work::Work;

/// The database that holds everything loadline makes.
pub(super) const DATABASE: &str = "loadline";
/// Beginning of the comment by which tables and procedures are known as loadline's.
pub(super) const MARK: &str = "made by loadline";

/// Why a commit in a procedure does not wait: see docs/ARCHITECTURE.md for the measurement.
pub(super) const NO_WAIT_IN_PROCEDURES: &str = "in MariaDB (10.6 and newer) a COMMIT inside a stored procedure returns \
     before its log is on disk as soon as another session writes the log, unless there is a binary log: the wait comes at \
     the end of CALL";

/// A name as SQL takes it whatever it holds.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Full name of what loadline makes in its database.
pub(super) fn full_name(name: &str) -> String {
    format!("{}.{}", quoted(DATABASE), quoted(name))
}

/// `lgwr_lat1` for `LGWR-LAT1`.
pub(super) fn prefix(work: &Work) -> String {
    work.workload.code.to_lowercase().replace('-', "_")
}

/// Full name of a table of the workload, or an index of one ([`IndexAtom`]).
pub(super) fn table_name(work: &Work, table: &str) -> String {
    if let Some(index) = IndexAtom::parse(table) {
        let name = quoted(&format!("by_{}", index.column));
        // Its name is known within its table only.
        return if index.new { name } else { format!("{name} ON {}", table_name(work, index.table)) };
    }
    format!("{}.{}", quoted(DATABASE), quoted(&table_stem(work, table)))
}

/// The statement that makes `table`: one that is loaded as a whole without the indexes that [`after_loading`]
/// makes.
pub(super) fn create_table(work: &Work, table: &Table) -> String {
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match (column.logical, column.fill) {
                (LogicalType::Int, _) => "BIGINT".to_owned(),
                // Inline, and large enough for every value that the workload's parameter can take.
                (LogicalType::Bytes, Fill::Payload(size)) => {
                    let most = work.workload.params.iter().find(|p| p.name == size).map_or(8000, |p| p.max);
                    if most <= 8000 { format!("VARBINARY({most})") } else { "LONGBLOB".to_owned() }
                }
                (LogicalType::Bytes, Fill::PayloadOf(bytes)) if bytes <= 8000 => format!("VARBINARY({bytes})"),
                (LogicalType::Bytes, _) => "LONGBLOB".to_owned(),
            };
            format!("  {} {kind} NOT NULL", quoted(column.name))
        })
        .collect();
    lines.extend(table.primary_key().map(|key| format!("  PRIMARY KEY ({})", quoted(key))));
    if !table.is_whole() {
        lines.extend(table.indexes.iter().map(|column| format!("  {}", index(column))));
    }
    format!(
        "CREATE TABLE {} (\n{}\n) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET = binary COMMENT = '{MARK}'",
        table_name(work, table.name),
        lines.join(",\n")
    )
}

fn index(column: &str) -> String {
    format!("KEY {} ({})", quoted(&format!("by_{column}")), quoted(column))
}

/// What is made of a table that is loaded as a whole when its rows are there: sorted, an index takes one pass,
/// and row by row it takes a read for each once it is larger than the buffer pool.
pub(super) fn after_loading(work: &Work, table: &Table) -> Option<String> {
    let adds: Vec<String> = table.indexes.iter().map(|column| format!("ADD {}", index(column))).collect();
    let any = table.is_whole() && !adds.is_empty();
    any.then(|| format!("ALTER TABLE {} {}", table_name(work, table.name), adds.join(", ")))
}

/// Has the server look at a table anew. It is no change that a replica needs.
pub(super) fn analyze(work: &Work, table: &str) -> String {
    format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {}", table_name(work, table))
}

/// The query for what a table takes, bytes.
pub(super) fn table_size(work: &Work, table: &str) -> String {
    format!(
        "SELECT DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{}'",
        table_stem(work, table).replace('\'', "''")
    )
}

/// A statement of the program with `?` in the order of its variables, as a client sends it.
pub(super) fn statement(work: &Work, template: &Template) -> String {
    template.render(|table| table_name(work, table), |_| "?".to_owned())
}

/// The isolation of job sessions that read and change: that of the other databases. Under REPEATABLE READ, the
/// default here, MariaDB 11.6 and newer (`innodb_snapshot_isolation`) fail a transaction that changes a row
/// which another has changed since its first read.
pub(super) fn isolation(work: &Work) -> Option<&'static str> {
    work.program.reads_and_writes().then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
}

/// A query about the workload's tables.
///
/// # Errors
/// When it cannot be read, a mistake in the workload.
pub(super) fn query(work: &Work, query: &str) -> Result<String, TargetError> {
    work.query(query, |table| table_name(work, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
