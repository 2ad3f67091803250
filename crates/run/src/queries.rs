//! Queries about a workload's tables; `None` if the target answers none.

use loadline_database::{Target, TargetError, Work};

/// Result of `query`, one integer.
pub(crate) fn integer(target: &dyn Target, work: &Work, query: &str) -> Result<Option<i64>, TargetError> {
    target.abilities().queries.map(|queries| queries.integer(work, query)).transpose()
}

pub(crate) fn rows(target: &dyn Target, work: &Work, table: &str) -> Result<Option<i64>, TargetError> {
    integer(target, work, &format!("SELECT COUNT(*) FROM {{{table}}}"))
}

/// Bytes of `table`, as it is stored, that a query over all of its rows reads; `None` if unknown.
pub(crate) fn bytes_read(target: &dyn Target, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
    target.abilities().queries.map_or(Ok(None), |queries| queries.bytes_read(work, table))
}

/// Bytes of `table` as it is stored; `None` if unknown.
pub(crate) fn table_bytes(target: &dyn Target, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
    target.abilities().queries.map_or(Ok(None), |queries| queries.table_bytes(work, table))
}
