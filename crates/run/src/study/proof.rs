//! Queries before and after a test that prove its work.

use loadline_database::{Target, TargetError, Work};
use loadline_workload::{RowCount, Step};

use crate::queries::{self, bytes_read, integer, table_bytes};

/// Results of queries before and after a test.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    /// Growth of the evidence query's result, or why the query failed; `None` without a query.
    pub(crate) grown: Result<Option<i64>, String>,
    /// Consistency queries with their results, which must be 0.
    pub(crate) consistency: Vec<(String, Result<Option<i64>, String>)>,
    /// Bytes of the whole tables that a transaction reads or loads, if it does.
    pub(crate) data_bytes: Result<Option<f64>, String>,
}

/// Results of the queries before a test.
pub(crate) struct BeforeTest {
    evidence: Option<i64>,
    unchanged: Vec<Result<Option<i64>, String>>,
}

impl BeforeTest {
    pub(crate) fn query(target: &dyn Target, work: &Work) -> Result<BeforeTest, TargetError> {
        let ask = |query| integer(target, work, query).map_err(|e| format!("before the test: {e}"));
        let unchanged = work.workload.unchanged.iter().map(|c| ask(&c.query));
        Ok(BeforeTest { evidence: target.evidence(work)?, unchanged: unchanged.collect() })
    }

    /// Runs the queries after the test.
    pub(crate) fn proof(&self, target: &dyn Target, work: &Work) -> Proof {
        let after = target.evidence(work).map_err(|e| e.to_string());
        let grown = after.map(|after| self.evidence.zip(after).map(|(before, after)| after - before));
        Proof { grown, consistency: self.consistency(target, work), data_bytes: data_bytes(target, work) }
    }

    /// Results of the consistency queries; 0 means consistent.
    fn consistency(&self, target: &dyn Target, work: &Work) -> Vec<(String, Result<Option<i64>, String>)> {
        let ask = |query: &str| integer(target, work, query).map_err(|e| e.to_string());
        let absolute = work.workload.consistency.iter().map(|c| (c.what.clone(), ask(&c.query)));
        let off = |(query, before): (&str, &Result<Option<i64>, String>)| {
            Ok(ask(query)?.zip(before.clone()?).map(|(now, was)| now - was))
        };
        let unchanged = work.workload.unchanged.iter().zip(&self.unchanged);
        absolute.chain(unchanged.map(|(c, was)| (c.what.clone(), off((c.query.as_str(), was))))).collect()
    }
}

/// Bytes of the whole tables that a transaction reads or loads.
fn data_bytes(target: &dyn Target, work: &Work) -> Result<Option<f64>, String> {
    let Some(volume) = work.workload.volume(&work.params) else { return bulk_bytes(target, work) };
    let mut sum = 0.0;
    for table in &volume.tables {
        match bytes_read(target, work, table).map_err(|e| e.to_string())? {
            Some(bytes) => sum += bytes as f64,
            None => return Err("the size of the target's tables is unknown".to_owned()),
        }
    }
    Ok((!volume.tables.is_empty()).then_some(sum * volume.share))
}

/// Bytes of the rows that a transaction adds in bulk, or to the only table.
fn bulk_bytes(target: &dyn Target, work: &Work) -> Result<Option<f64>, String> {
    let bulk = work.program.body.iter().find_map(|step| match step {
        Step::Bulk { table, rows } => Some((work.workload.tables.get(*table)?, u64::from(*rows))),
        _ => None,
    });
    let only = match work.workload.tables.as_slice() {
        [table] if table.rows == RowCount::Empty => Some((table, work.program.rows_changed_per_tx())),
        _ => None,
    };
    let Some((table, rows)) = bulk.or(only) else { return Ok(None) };
    let there = queries::rows(target, work, &table.name).map_err(|e| e.to_string())?;
    let bytes = table_bytes(target, work, &table.name).map_err(|e| e.to_string())?;
    match bytes.zip(there.filter(|n| *n > 0)) {
        Some((bytes, there)) => Ok(Some(bytes as f64 / there as f64 * rows as f64)),
        None => Err("the size of the target's tables is unknown".to_owned()),
    }
}
