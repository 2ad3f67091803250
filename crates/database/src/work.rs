//! A workload with its parameters, as a target prepares and runs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use loadline_model::plan::Payload;
use loadline_workload::{
    JobStart, NEW_KEYS_PER_JOB, Params, Piece, Pool, Program, RowCount, Stream, StreamError, Table, Template, Workload,
    draw_offset, find,
};

use crate::error::TargetError;

#[derive(Debug, Clone)]
pub struct Work {
    pub workload: Arc<Workload>,
    pub params: Params,
    pub program: Program,
    pub seed: u64,
    /// Seed of what jobs draw: keys, values, payloads, think times. Each window of a run has its own
    /// ([`loadline_model::seed_of_window`]).
    pub draws: u64,
    pub payload: Payload,
    /// Nodes of the target over which its jobs are spread, the first ones; `None`: all.
    pub nodes: Option<u32>,
}

/// Pools of jobs: more of them share one, because a pool is larger than a session.
const JOB_POOLS: u32 = 64;

/// Seed and number of a pool, and the bits of what its payloads are.
type PoolKey = (u64, u32, [u64; 2]);

static SHARED: Mutex<BTreeMap<PoolKey, Weak<Pool>>> = Mutex::new(BTreeMap::new());

impl Work {
    /// Builds the program for these parameters. Jobs draw with the seed of the rows.
    pub fn new(workload: Arc<Workload>, params: Params, seed: u64, payload: Payload) -> Work {
        let program = workload.make(&params);
        Work { workload, params, program, seed, draws: seed, payload, nodes: None }
    }

    /// The work of the workload `code` with the parameters `given`, all others at their defaults, and seed 42.
    pub fn from_catalogue(code: &str, given: &[(&str, i64)]) -> Result<Work, TargetError> {
        Work::with(find(code).map_err(|e| TargetError::Usage(e.to_string()))?, given)
    }

    /// As [`Work::from_catalogue`], of a workload that need not be of the catalogue.
    pub fn with(workload: Arc<Workload>, given: &[(&str, i64)]) -> Result<Work, TargetError> {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let params = workload.params(&given).map_err(|e| TargetError::Usage(e.to_string()))?;
        Ok(Work::new(workload, params, 42, Payload::default()))
    }

    /// This work for a data set of so many bytes.
    #[must_use]
    pub fn with_size(self, bytes: u64) -> Work {
        let program = self.workload.make(&self.params.clone().with_size(bytes));
        Work { params: self.params.with_size(bytes), program, ..self }
    }

    /// Number of the node of `job`, from 0, of a target with `nodes` of them: jobs are assigned in turn.
    pub fn node(&self, job: u32, nodes: usize) -> usize {
        let used = self.nodes.map_or(nodes, |n| nodes.min(n as usize));
        job as usize % used.max(1)
    }

    /// Parallel workers of a query, including the session's own process; `None` if the workload does not ask for
    /// parallel queries.
    pub fn parallel_workers(&self) -> Option<u32> {
        let workers = self.workload.workers.as_ref()?;
        Some(u32::try_from(self.params.get(workers)).unwrap_or(1).max(1))
    }

    /// Pool number `number`: the bytes from which payloads of loaded rows are taken.
    pub fn pool(&self, number: u32) -> Pool {
        Pool::new(self.seed, number, self.payload)
    }

    /// The bytes from which the payloads of `job` are taken in both drivers. They are no bytes of loaded rows: a change that
    /// writes what is there costs databases less redo, or none.
    pub fn pool_of_job(&self, job: u32) -> Arc<Pool> {
        let number = job % JOB_POOLS;
        let bits = [self.payload.compressibility, self.payload.duplicates.unwrap_or(0.0)].map(f64::to_bits);
        let key = (self.draws, number, bits);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = shared.get(&key).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(Pool::new(!self.draws, number, self.payload));
        shared.retain(|_, pool| pool.strong_count() > 0);
        shared.insert(key, Arc::downgrade(&pool));
        pool
    }

    /// Start values of the variables of `job`. Its own rows are in the first table with rows per job.
    pub fn start(&self, job: u32) -> JobStart {
        let owned = self.workload.tables.iter().find(|t| matches!(t.rows, RowCount::PerJob(_)));
        JobStart {
            first_key: owned.map_or(0, |t| t.first_key(job, &self.params)),
            new_key: i64::from(job) * NEW_KEYS_PER_JOB,
            draw: draw_offset(self.draws, job),
        }
    }

    /// Renders a query in portable SQL; `table` returns the full name of a table. Its variables are parameters of the
    /// workload.
    pub(crate) fn query(&self, query: &str, table: impl FnMut(&str) -> String) -> Result<String, TargetError> {
        let code = &self.workload.code;
        let template =
            Template::parse(query).map_err(|e| TargetError::Usage(format!("the query '{query}' of {code}: {e}")))?;
        let is_param = |name: &str| self.workload.params.iter().any(|p| p.name == name);
        if let Some(var) = template.vars().find(|v| !is_param(v)) {
            return Err(TargetError::Usage(format!("the query '{query}' of {code} uses the unknown variable '{var}'")));
        }
        Ok(template.render(table, |name| self.params.get(name).to_string()))
    }

    pub(crate) fn table(&self, number: usize) -> Result<&Table, TargetError> {
        let table = self.workload.tables.get(number);
        table.ok_or_else(|| TargetError::Usage(format!("the workload has no table number {number}")))
    }

    /// Bytes of new content that a statement makes for each row it changes ([`Piece::Renew`]).
    pub(crate) fn renewed_bytes(&self, template: &Template) -> u32 {
        let names = template.pieces.iter().filter_map(|p| if let Piece::Renew(names) = p { Some(names) } else { None });
        let column = |name: &String| self.workload.tables.iter().flat_map(|t| &t.columns).find(|c| c.name == *name);
        let bytes: u64 = names.flatten().filter_map(column).map(|c| c.value_bytes(&self.params)).sum();
        bytes.min(u32::MAX.into()) as u32
    }

    pub fn stream(&self, job: u32) -> Result<Stream, TargetError> {
        Stream::new(&self.program, self.start(job), self.pool_of_job(job), 0)
            .map_err(|e| TargetError::Usage(format!("the program of {} is invalid: {e}", self.workload.code)))
    }
}

/// The error of a failed transaction in the client's loop.
impl From<StreamError<TargetError>> for TargetError {
    fn from(e: StreamError<TargetError>) -> TargetError {
        match e {
            StreamError::Execute { place, error } => error.at(&place),
            StreamError::Rows { .. } => TargetError::Statement(e.to_string()),
            StreamError::Compute(_) => TargetError::Unsupported(e.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use loadline_workload::{Arg, Execute};

    use super::*;

    /// The first transactions as text.
    struct Sent<'a>(&'a Work, String);

    impl Execute for Sent<'_> {
        type Error = TargetError;

        fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
            self.1 += &format!("{statement}{args:?} ");
            Ok(self.0.program.statements[statement].effect.rows().unwrap())
        }

        fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, TargetError> {
            Ok(rows.into())
        }
    }

    fn sent(work: &Work, job: u32) -> String {
        let (mut sent, mut stream) = (Sent(work, String::new()), work.stream(job).unwrap());
        (0..20).for_each(|_| stream.transaction(&mut sent).unwrap());
        sent.1
    }

    #[test]
    fn windows_draw_other_keys_and_payloads_for_the_same_rows() {
        for code in
            ["STO-READ", "STO-RANDOM", "DBWR-CKPT", "TP-LIGHT", "TP-LOOKUP", "DBL-11", "LGWR-LAT1", "LGWR-LAT25"]
        {
            let first = Work::from_catalogue(code, &[]).unwrap();
            let later = Work { draws: 7, ..first.clone() };
            assert_ne!(sent(&first, 1), sent(&later, 1), "{code}");
            assert_eq!(sent(&later, 1), sent(&later.clone(), 1), "{code}: the same seed draws the same");
            assert_ne!(sent(&later, 0), sent(&later, 1), "{code}: jobs draw their own");
            // Else a row may get the payload again that it has, from an earlier window or as it was loaded.
            assert_ne!(first.pool_of_job(1), later.pool_of_job(1), "{code}");
            assert_ne!(*first.pool_of_job(1), first.pool(1), "{code}");
            assert_eq!(first.pool(3), later.pool(3), "{code}: rows that are loaded do not depend on it");
        }
    }
}
