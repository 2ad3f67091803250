//! A workload with its parameters: what a target prepares and runs.

use std::sync::Arc;

use loadline_workload::{
    JobStart, NEW_KEYS_PER_JOB, Params, Program, RowCount, Stream, StreamError, Table, Template, Workload, draw_offset,
    pool,
};

use crate::error::TargetError;
use crate::render::Rendered;

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
        let program = workload.make(&params);
        Work { workload, params, program, seed, compressibility }
    }

    /// Parallel workers of a query, the session's own process among them; `None` if the workload does not ask
    /// for any, and a session works alone.
    #[must_use]
    pub fn parallel_workers(&self) -> Option<u32> {
        let workers = self.workload.workers()?;
        Some(u32::try_from(self.params.get(workers)).unwrap_or(1).max(1))
    }

    /// The bytes that payloads of `job` are cut from.
    #[must_use]
    pub fn pool(&self, job: u32) -> Arc<[u8]> {
        Arc::from(pool(self.seed, job, self.compressibility))
    }

    /// Where the variables of `job` begin. The rows that it owns are those of the first table of which jobs
    /// own rows.
    #[must_use]
    pub fn start(&self, job: u32) -> JobStart {
        let owned = self.workload.tables.iter().find(|t| matches!(t.rows, RowCount::PerJob(_)));
        JobStart {
            first_key: owned.map_or(0, |t| t.first_key(job, &self.params)),
            new_key: i64::from(job) * NEW_KEYS_PER_JOB,
            draw: draw_offset(self.seed, job),
        }
    }

    /// A query in portable SQL with the full names that `table` gives; its variables are parameters of the workload.
    ///
    /// # Errors
    /// When it cannot be read or has another variable, a mistake in the workload.
    pub(crate) fn query(&self, query: &str, table: impl FnMut(&str) -> String) -> Result<String, TargetError> {
        let code = self.workload.code;
        let template =
            Template::parse(query).map_err(|e| TargetError::Usage(format!("the query «{query}» of {code}: {e}")))?;
        let is_param = |name: &str| self.workload.params.iter().any(|p| p.name == name);
        if let Some(var) = template.vars().find(|v| !is_param(v)) {
            return Err(TargetError::Usage(format!("the query «{query}» of {code} has the variable «{var}»")));
        }
        Ok(template.render(table, |name| self.params.get(name).to_string()))
    }

    /// Queries that are asked before or after a test, with what they are for.
    fn queries(&self) -> Vec<(String, &'static str)> {
        let evidence = self.workload.evidence.iter().map(|e| ("evidence".to_owned(), e.query));
        let consistency = self.workload.consistency.iter().map(|c| (format!("must be 0: {}", c.what), c.query));
        let unchanged = self.workload.unchanged.iter().map(|c| (format!("must not change: {}", c.what), c.query));
        evidence.chain(consistency).chain(unchanged).collect()
    }

    /// The same for people to read, each with `end`; `full` gives a query the full names of the tables.
    pub(crate) fn rendered_queries(
        &self,
        full: impl Fn(&Work, &str) -> Result<String, TargetError>,
        end: &str,
    ) -> Vec<Rendered> {
        let sql = |(title, query)| Some(Rendered::new(title, full(self, query).ok()? + end));
        self.queries().into_iter().filter_map(sql).collect()
    }

    /// Table number `number` of the workload.
    ///
    /// # Errors
    /// When there is none, a mistake in the workload.
    pub(crate) fn table(&self, number: usize) -> Result<&'static Table, TargetError> {
        let table = self.workload.tables.get(number);
        table.ok_or_else(|| TargetError::Usage(format!("the workload has no table number {number}")))
    }

    /// The program compiled for `job`.
    ///
    /// # Errors
    /// When the program is not sound (a mistake in the workload).
    pub fn stream(&self, job: u32) -> Result<Stream, TargetError> {
        Stream::new(&self.program, self.start(job), self.pool(job), 0)
            .map_err(|e| TargetError::Usage(format!("the program of {} is not sound: {e}", self.workload.code)))
    }
}

/// What the client's loop makes of a failed transaction.
impl From<StreamError<TargetError>> for TargetError {
    fn from(e: StreamError<TargetError>) -> TargetError {
        match e {
            StreamError::Execute(e) => e,
            StreamError::Rows { .. } => TargetError::Statement(e.to_string()),
            StreamError::Compute(_) => TargetError::Unsupported(e.to_string()),
        }
    }
}
