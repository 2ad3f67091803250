//! Queries on the workload's tables.

use crate::error::TargetError;
use crate::number::Number;
use crate::work::Work;

/// Runs queries on the workload's tables.
pub trait Queries {
    /// Result of `query`, portable SQL that returns one integer, summed over all nodes.
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError>;

    /// The same if a number is required.
    fn integer(&self, work: &Work, query: &str) -> Result<i64, TargetError> {
        self.number(work, query)?.required()
    }

    /// Result of the workload's evidence query, if it has one; NULL counts as 0.
    fn evidence_query(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        let evidence = work.workload.evidence.as_ref();
        evidence.map(|e| self.number(work, &e.query).map(Number::or_zero)).transpose()
    }

    /// Stored size of a table of the workload, bytes, without its indexes (if the database stores them separately);
    /// `None` if unknown.
    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError>;
}
