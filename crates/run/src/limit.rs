//! What the hardware allows for the work of a test: the reference log writer, with as many jobs, as much
//! redo per transaction and the same mode of commit, on the filesystem of the database's log.
//!
//! It is measured right before and right after each test: devices differ from one minute to the next by
//! more than any figure may be off.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_collect::CpuSource;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Driver, LimitSource, TestLimit};
use loadline_target::{OpenRequest, Target, Work, open};

use crate::calibrate::{measure, with};
use crate::test::{Measured, Request, TestError, run_test};

/// Warm-up and window of one measurement, s. Half a second of commits is some thousands.
const WARMUP_S: f64 = 0.2;
const WINDOW_S: f64 = 0.5;
/// The redo of the reference may differ from that of the test by this share.
const CLOSE: f64 = 0.05;

/// The reference log writer of a run.
pub struct Reference {
    target: Arc<dyn Target>,
    of: String,
    interrupted: Arc<AtomicBool>,
    cpu: CpuSource,
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
struct Sample {
    tps: f64,
    latency_ns_mean: f64,
}

/// Where on the filesystem of `log_dir` the reference may write: the folder of the run's private files if
/// that lies there, else the nearest folder above the database's own that lets us. Never inside them.
///
/// # Errors
/// Why there is none, and what to do.
pub fn place(info: &TargetInfo, scratch: &Path) -> Result<PathBuf, String> {
    let Some(log_dir) = info.log_dir.as_deref().filter(|_| info.local).map(Path::new) else {
        return Err(
            "the filesystem of the database's log cannot be reached from here: run `loadline probe` there and \
                    bring its figures with --limits FILE"
                .into(),
        );
    };
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let Some(wanted) = device(log_dir) else {
        return Err(format!(
            "{} cannot be looked at from here: run `loadline probe` as a user who can and bring its figures with --limits FILE",
            log_dir.display()
        ));
    };
    if device(scratch) == Some(wanted) {
        return Ok(scratch.to_owned());
    }
    let data_dir = info.data_dir.as_deref().map(Path::new);
    let own = |path: &Path| path.starts_with(log_dir) || data_dir.is_some_and(|d| path.starts_with(d));
    let above = log_dir.ancestors().skip(1).take_while(|p| device(p) == Some(wanted)).filter(|p| !own(p));
    let mut writable = above.filter(|p| tempfile::tempdir_in(p).is_ok());
    match writable.next() {
        Some(path) => Ok(path.to_owned()),
        None => Err(format!(
            "nothing can be written on the filesystem of {}: put --results there, or bring the figures of `loadline probe` \
             with --limits FILE",
            log_dir.display()
        )),
    }
}

impl Reference {
    /// Opens the reference log in `dir`.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn open(dir: &Path, interrupted: &Arc<AtomicBool>) -> Result<Reference, String> {
        let target = open(&OpenRequest::new("wal:", dir.to_owned())).map_err(|e| e.to_string())?;
        let device = target.info().map_err(|e| e.to_string())?.settings.get("device").cloned().unwrap_or_default();
        Ok(Reference {
            target: Arc::from(target),
            of: format!("reference log writer ({device}) in {}", dir.display()),
            interrupted: Arc::clone(interrupted),
            cpu: CpuSource::Local,
        })
    }

    /// Work of the same kind that writes `redo_bytes` per transaction here.
    ///
    /// # Errors
    /// When the reference fails, or no payload gives this redo.
    pub fn same_work(&self, work: &Work, redo_bytes: f64) -> Result<Work, String> {
        let size = work.workload.redo.ok_or("the workload is not defined by its redo")?;
        let mut like = work.clone();
        let mut seen = 0.0;
        for _ in 0..4 {
            self.target.create(&like).map_err(|e| e.to_string())?;
            seen = measure(&self.target, &like).map_err(|e| e.to_string())??;
            if (seen / redo_bytes - 1.0).abs() <= CLOSE {
                return Ok(like);
            }
            let (payload, rows) = (like.params.get(size.payload), like.params.get(size.rows).max(1));
            let next = (payload as f64 + (redo_bytes - seen) / rows as f64).round() as i64;
            let range = work.workload.params.iter().find(|p| p.name == size.payload).map_or((1, 1), |p| (p.min, p.max));
            let given = if (range.0..=range.1).contains(&next) {
                [(size.payload.to_owned(), next)].into()
            } else {
                // More than the rows' payloads can hold, or less: another number of rows of the same size.
                let rows = (redo_bytes / (seen / rows as f64)).round().max(1.0) as i64;
                [(size.rows.to_owned(), rows)].into()
            };
            like = with(&like, &given);
        }
        Err(format!("the reference writes {seen:.0} bytes of redo per transaction, not {redo_bytes:.0}"))
    }

    fn sample(&self, work: &Arc<Work>, jobs: u32) -> Result<Sample, TestError> {
        let request = Request {
            target: Arc::clone(&self.target),
            work: Arc::clone(work),
            driver: Driver::Client,
            jobs,
            warmup_s: WARMUP_S,
            duration_s: WINDOW_S,
            rate_tps: None,
            cpu: self.cpu,
            disk: None,
            interrupted: Arc::clone(&self.interrupted),
        };
        let measured = run_test(&request, |_, _| ())?;
        sample_of(&measured)
    }
}

fn sample_of(measured: &Measured) -> Result<Sample, TestError> {
    if let Some(lost) = measured.jobs.iter().find_map(|j| j.lost.clone()) {
        return Err(TestError::Counters(lost));
    }
    let (n, sum) = measured
        .jobs
        .iter()
        .fold((0u64, 0.0), |(n, sum), j| (n + j.transaction.count(), sum + j.transaction.sum_ns() as f64));
    if n == 0 {
        return Err(TestError::Counters("no transaction of the reference completed in its window".into()));
    }
    Ok(Sample { tps: n as f64 / (measured.schedule.window_ns() as f64 / 1e9), latency_ns_mean: sum / n as f64 })
}

/// The limit of one test, half measured.
pub struct Bracket {
    work: Arc<Work>,
    redo_bytes: f64,
    jobs: u32,
    before: Sample,
}

impl Reference {
    /// Measures before a test of `work` with `redo_bytes` per transaction and `jobs` jobs.
    ///
    /// # Errors
    /// Why there is no figure, in words; [`TestError::Interrupted`] is among them.
    pub fn before(&self, work: &Work, redo_bytes: f64, jobs: u32) -> Result<Bracket, String> {
        let work = Arc::new(self.same_work(work, redo_bytes)?);
        let before = self.sample(&work, jobs).map_err(|e| e.to_string())?;
        Ok(Bracket { work, redo_bytes, jobs, before })
    }

    /// Measures after the test.
    ///
    /// # Errors
    /// Why there is no figure, in words.
    pub fn after(&self, bracket: Bracket) -> Result<TestLimit, String> {
        let after = self.sample(&bracket.work, bracket.jobs).map_err(|e| e.to_string())?;
        let before = bracket.before;
        Ok(TestLimit {
            of: self.of.clone(),
            jobs: bracket.jobs,
            redo_bytes_per_tx: bracket.redo_bytes,
            tps: (before.tps + after.tps) / 2.0,
            samples: vec![before.tps, after.tps],
            latency_ns_mean: (before.latency_ns_mean + after.latency_ns_mean) / 2.0,
            source: LimitSource::Run,
        })
    }

    /// One measurement of `work` with `jobs` jobs: transactions per second, and their mean time in ns.
    ///
    /// # Errors
    /// When the reference fails, or the user wants to stop.
    pub fn once(&self, work: &Arc<Work>, jobs: u32) -> Result<(f64, f64), TestError> {
        self.sample(work, jobs).map(|s| (s.tps, s.latency_ns_mean))
    }
}
