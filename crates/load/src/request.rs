//! Parameters of a test: the work, its jobs and where they run, the window.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_collect::CpuSource;
use loadline_database::{Target, Work};
use loadline_model::{Driver, JobLoad};

use crate::schedule::{Parts, Shared};
use crate::warmup::Warmup;
use crate::{RunningJobs, TestError};

/// Tallies of each part of the jobs. One takes 540 KiB, so more jobs share them; so many do not wait for each other.
pub(crate) const TALLIES: u32 = 256;

#[derive(Clone)]
pub struct Request {
    pub target: Arc<dyn Target>,
    pub work: Arc<Work>,
    pub driver: Driver,
    pub jobs: u32,
    pub warmup: Warmup,
    /// Window, s.
    pub duration_s: f64,
    pub load: JobLoad,
    pub cpu: CpuSource,
    /// Block device under the log, if it is on this machine.
    pub disk: Option<String>,
    pub data_disk: Option<String>,
    /// Processes of this machine that are a proxy between jobs and server, part of what is measured, or why they are unknown; `None`
    /// without a proxy.
    pub proxy: Option<Result<Vec<u32>, String>>,
    pub parts: Parts,
    pub place: Place,
    /// Whether hardware events of the database's processes are counted.
    pub perf_events: bool,
    pub interrupted: Arc<AtomicBool>,
}

impl Request {
    /// One second of so many jobs in a closed loop, without a warm-up: by the client driver, in this process and on this machine.
    pub fn new(target: &Arc<dyn Target>, work: &Arc<Work>, jobs: u32) -> Request {
        Request {
            target: Arc::clone(target),
            work: Arc::clone(work),
            driver: Driver::Client,
            jobs,
            warmup: Warmup::Seconds(0.0),
            duration_s: 1.0,
            load: JobLoad::default(),
            cpu: CpuSource::Local,
            disk: None,
            data_disk: None,
            proxy: None,
            parts: Parts::One,
            place: Place::Here,
            perf_events: false,
            interrupted: Arc::default(),
        }
    }

    /// Number in the test of the job of this number here.
    pub(crate) fn number(&self, job: u32) -> u32 {
        if let Place::Part { first_job, .. } = self.place { first_job + job } else { job }
    }

    /// Whether its jobs may pass another window: those of a closed loop without pauses, whose books are all their own.
    pub(crate) fn may_repeat_window(&self) -> bool {
        let is_here = self.driver == Driver::Client && matches!(self.place, Place::Here) && self.jobs <= TALLIES;
        let is_plain = JobLoad { keys: None, ..self.load.clone() } == JobLoad::default();
        is_here && is_plain && self.parts == Parts::One && self.work.workload.scripts.is_none()
    }

    pub(crate) fn all_jobs(&self) -> u32 {
        if let Place::Part { all_jobs, .. } = self.place { all_jobs } else { self.jobs }
    }
}

#[derive(Clone, Default)]
pub enum Place {
    #[default]
    Here,
    /// In this process; they are a part of those of a test, whose other jobs run elsewhere.
    Part {
        /// Number of the first one in the test.
        first_job: u32,
        all_jobs: u32,
    },
    Remote(Arc<dyn RemoteJobs>),
}

pub trait RemoteJobs: Send + Sync {
    /// Opens the sessions of all jobs of a test. What the jobs do is then in `shared`, which is brought up to date until the
    /// window starts, and after its end; in the window nothing is heard of them.
    /// An error names who cannot, and why: no session of those that answer is open then.
    fn open(&self, request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RunningJobs>, TestError>;
}
