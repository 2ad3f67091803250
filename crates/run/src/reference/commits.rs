//! The limit of commits if the filesystem of the log cannot be reached: the smallest durable transaction of the database
//! itself, which updates one row of 16 bytes, by as many jobs.

use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::Work;
use loadline_load::Request;
use loadline_model::Driver;
use loadline_workload::LOG_APPENDS;

use super::{Subject, throughput_in, with_work};

/// Warm-up of one measurement, s.
const WARMUP_S: f64 = 0.2;
/// Windows to try, s.
const WINDOWS_S: [f64; 2] = [0.5, 3.0];

/// The smallest transactions of a run, made on first use.
#[derive(Default)]
pub(crate) struct SmallestCommits(Mutex<Option<Arc<Work>>>);

impl SmallestCommits {
    /// Transactions per second of as many jobs with the same driver.
    pub(super) fn sample(&self, subject: Subject<'_>) -> Result<f64, String> {
        let like = subject.request;
        let work = self.work(like).map_err(|e| e.to_string())?;
        like.target.load(&work, like.jobs).map_err(|e| e.to_string())?;
        throughput_in(WINDOWS_S, &with_work(like, work, WARMUP_S))
    }

    fn work(&self, like: &Request) -> Result<Arc<Work>, loadline_database::TargetError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = &*made {
            return Ok(Arc::clone(work));
        }
        let usage = |e: loadline_workload::ParamError| loadline_database::TargetError::Usage(e.to_string());
        let params = LOG_APPENDS.params(&[("payload".to_owned(), 16)].into()).map_err(usage)?;
        let work = Arc::new(Work::new(Arc::clone(&LOG_APPENDS), params, like.work.seed, like.work.compressibility));
        like.target.create(&work)?;
        if let Some(driver) = like.target.abilities().database_driver.filter(|_| like.driver == Driver::Database) {
            driver.install(&work)?;
        }
        // The target is prepared for the test again.
        like.target.reset(&like.work, like.driver)?;
        *made = Some(Arc::clone(&work));
        Ok(work)
    }
}
