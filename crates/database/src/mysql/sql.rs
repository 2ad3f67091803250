//! A workload in MariaDB's SQL: tables, statements, evidence.

use loadline_workload::{Fill, IndexAtom, LogicalType, Table, Template, limit};

use crate::error::TargetError;
use crate::loading::table_stem;
use crate::work::Work;

/// The database that holds everything loadline creates.
pub(super) const DATABASE: &str = "loadline";
/// Beginning of the comment that marks tables and procedures as loadline's.
pub(super) const MARK: &str = "made by loadline";

/// Why a commit in a procedure does not wait: see docs/inside.md for the measurement.
pub(super) const NO_WAIT_IN_PROCEDURES: &str = "in MariaDB (10.6 and newer) a COMMIT inside a stored procedure returns \
     before its log is on disk if another session is writing the log and there is no binary log: the wait comes at the end \
     of CALL (that of MySQL waits)";

/// A quoted name, safe whatever it contains.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Full name of an object in loadline's database.
pub(super) fn full_name(name: &str) -> String {
    format!("{}.{}", quoted(DATABASE), quoted(name))
}

/// Full name of a table of the workload, or an index of one ([`IndexAtom`]).
pub(super) fn table_name(work: &Work, table: &str) -> String {
    if let Some(index) = IndexAtom::parse(table) {
        let name = quoted(&format!("by_{}", index.column));
        // Names of indexes are local to their table.
        return if index.new { name } else { format!("{name} ON {}", table_name(work, index.table)) };
    }
    format!("{}.{}", quoted(DATABASE), quoted(&table_stem(work, table)))
}

/// The statement that creates `table`. [`after_loading`] adds the indexes of a table that is loaded as a
/// whole.
pub(super) fn create_table(work: &Work, table: &Table) -> String {
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match (column.logical, &column.fill) {
                (LogicalType::Int, _) => "BIGINT".to_owned(),
                // Inline, and large enough for every value of the workload's parameter.
                (LogicalType::Bytes, Fill::Payload(size) | Fill::FirstHalf(size) | Fill::SecondHalf(size)) => {
                    let most = work.workload.params.iter().find(|p| p.name == *size).map_or(8000, |p| p.max);
                    if most <= 8000 { format!("VARBINARY({most})") } else { "LONGBLOB".to_owned() }
                }
                (LogicalType::Bytes, Fill::PayloadOf(bytes)) if *bytes <= 8000 => format!("VARBINARY({bytes})"),
                (LogicalType::Bytes, _) => "LONGBLOB".to_owned(),
                (LogicalType::Text, _) => {
                    let longest = column.value_bytes(&work.params).max(255);
                    format!("VARCHAR({longest}) CHARACTER SET utf8mb4")
                }
                (LogicalType::Timestamp, _) => "DATETIME".to_owned(),
                (LogicalType::Numeric, _) => "DECIMAL(18,2)".to_owned(),
                (LogicalType::Boolean, _) => "BOOLEAN".to_owned(),
                (LogicalType::Json, _) => "JSON".to_owned(),
            };
            format!("  {} {kind} NOT NULL", quoted(&column.name))
        })
        .collect();
    lines.extend(table.primary_key().map(|key| format!("  PRIMARY KEY ({})", quoted(key))));
    if !table.is_whole() {
        lines.extend(table.indexes.iter().map(|column| format!("  {}", index(column))));
    }
    format!(
        "CREATE TABLE {} (\n{}\n) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET = binary COMMENT = '{MARK}'",
        table_name(work, &table.name),
        lines.join(",\n")
    )
}

fn index(column: &str) -> String {
    format!("KEY {} ({})", quoted(&format!("by_{column}")), quoted(column))
}

/// The statement that adds the indexes of a table that is loaded as a whole. Sorting all rows takes one pass;
/// row by row, each row costs a read once the index is larger than the buffer pool.
pub(super) fn after_loading(work: &Work, table: &Table) -> Option<String> {
    let adds: Vec<String> = table.indexes.iter().map(|column| format!("ADD {}", index(column))).collect();
    let any = table.is_whole() && !adds.is_empty();
    any.then(|| format!("ALTER TABLE {} {}", table_name(work, &table.name), adds.join(", ")))
}

/// Refreshes a table's statistics, on this server only.
pub(super) fn analyze(work: &Work, table: &str) -> String {
    format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {}", table_name(work, table))
}

/// The query for the size of a table, bytes.
pub(super) fn table_size(work: &Work, table: &str) -> String {
    format!(
        "SELECT DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{}'",
        table_stem(work, table).replace('\'', "''")
    )
}

/// A statement of the program with `?` in the order of its variables, as a client sends it.
pub(super) fn statement(work: &Work, template: &Template) -> String {
    template.render_with(|table| table_name(work, table), |_| "?".to_owned(), limit, renewed)
}

/// See [`loadline_workload::Piece::Renew`]. An assignment sees those before it, so the columns cannot change places: of each,
/// the first byte moves to the end.
pub(super) fn renewed(columns: &[String; 2]) -> String {
    columns.each_ref().map(|c| format!("{c} = CONCAT(SUBSTRING({c}, 2), SUBSTRING({c}, 1, 1))")).join(", ")
}

/// Isolation level of jobs that read and change rows, as on other databases. Under the default here,
/// REPEATABLE READ, a transaction fails in MariaDB 11.6 and newer (`innodb_snapshot_isolation`) if it changes
/// a row that another one changed since its first read.
pub(super) fn isolation(work: &Work) -> Option<&'static str> {
    work.program.reads_and_writes().then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
}

pub(super) fn query(work: &Work, query: &str) -> Result<String, TargetError> {
    work.query(query, |table| table_name(work, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_quotes() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
