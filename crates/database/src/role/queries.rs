//! Questions about the workload's tables.

use crate::error::TargetError;
use crate::number::Number;
use crate::work::Work;

/// Answers queries about the tables of a workload.
pub trait Queries {
    /// Result of `query`, portable SQL that returns one integer, summed over all nodes.
    ///
    /// # Errors
    /// When the query fails.
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError>;

    /// The same where a number must be there.
    ///
    /// # Errors
    /// When the query fails, or returns NULL.
    fn integer(&self, work: &Work, query: &str) -> Result<i64, TargetError> {
        self.number(work, query)?.required()
    }

    /// Result of the workload's evidence query, if it has one; the sum over an empty table is 0.
    ///
    /// # Errors
    /// When the query fails.
    fn evidence_query(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        let evidence = work.workload.evidence;
        evidence.map(|e| self.number(work, e.query).map(Number::or_zero)).transpose()
    }

    /// Bytes that a table of the workload takes as it is stored, without its indexes (if the database
    /// keeps them apart); `None` if unknown.
    ///
    /// # Errors
    /// When the database does not answer.
    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError>;
}
