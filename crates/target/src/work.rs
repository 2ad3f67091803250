//! A workload with its parameters: what a target prepares and runs.

use std::sync::Arc;

use loadline_workload::{Params, Piece, Program, Stream, StreamError, Template, Workload, pool};

use crate::error::TargetError;

/// A workload made concrete.
#[derive(Debug, Clone)]
pub struct Work {
    /// The workload.
    pub workload: &'static Workload,
    /// Its parameters.
    pub params: Params,
    /// Its transaction program with these parameters.
    pub program: Program,
    /// Seed of all randomness.
    pub seed: u64,
    /// Share of the payload that compresses away, 0…1.
    pub compressibility: f64,
}

impl Work {
    /// A workload with parameters.
    #[must_use]
    pub fn new(workload: &'static Workload, params: Params, seed: u64, compressibility: f64) -> Work {
        let program = (workload.program)(&params);
        Work { workload, params, program, seed, compressibility }
    }

    /// The bytes that payloads of `job` are cut from.
    #[must_use]
    pub fn pool(&self, job: u32) -> Arc<[u8]> {
        Arc::from(pool(self.seed, job, self.compressibility))
    }

    /// First key of the rows that `job` owns (in the workload's first table).
    #[must_use]
    pub fn first_key(&self, job: u32) -> i64 {
        self.workload.tables.first().map_or(0, |t| t.first_key(job, &self.params))
    }

    /// The workload's evidence query, if it has one, with the full names that `table` gives.
    ///
    /// # Errors
    /// When it cannot be read or has a variable, a mistake in the workload.
    pub(crate) fn evidence(&self, table: impl FnMut(&str) -> String) -> Result<Option<String>, TargetError> {
        let Some(evidence) = self.workload.evidence else { return Ok(None) };
        let code = self.workload.code;
        let template = Template::parse(evidence.query)
            .map_err(|e| TargetError::Usage(format!("the evidence query of {code}: {e}")))?;
        if template.pieces.iter().any(|p| matches!(p, Piece::Var(_))) {
            return Err(TargetError::Usage(format!("the evidence query of {code} has a variable")));
        }
        Ok(Some(template.render(table, |_| String::new())))
    }

    /// The program compiled for `job`.
    ///
    /// # Errors
    /// When the program is not sound (a mistake in the workload).
    pub fn stream(&self, job: u32) -> Result<Stream, TargetError> {
        Stream::new(&self.program, self.first_key(job), self.pool(job), 0)
            .map_err(|e| TargetError::Usage(format!("the program of {} is not sound: {e}", self.workload.code)))
    }
}

/// What the evidence query returned; the sum over an empty table is NULL.
///
/// # Errors
/// When it is no whole number.
pub(crate) fn evidence_value(text: Option<String>) -> Result<i64, TargetError> {
    let text = text.unwrap_or_else(|| "0".into());
    text.parse()
        .map_err(|_| TargetError::Statement(format!("the evidence query returned «{text}», which is no whole number")))
}

/// What the client's loop makes of a failed transaction.
impl From<StreamError<TargetError>> for TargetError {
    fn from(e: StreamError<TargetError>) -> TargetError {
        match e {
            StreamError::Execute(e) => e,
            StreamError::Rows { .. } => TargetError::Statement(e.to_string()),
        }
    }
}
