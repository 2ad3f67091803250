//! Limit of the hardware for a test: the reference log writer with the same jobs, redo per transaction and commit
//! mode, on the filesystem of the database's log.
//!
//! Measured directly before and after each test, because the speed of a device changes within minutes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_collect::CpuSource;
use loadline_database::{OpenRequest, Target, Work, open};
use loadline_model::format::bytes;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Driver, LimitSource, LogWriterPoint, TestLimit};
use loadline_workload::{CATALOGUE, Commit, Instrument};

use crate::calibrate::{measure, with};
use crate::window::{Measured, Request, TestError, run_test};

/// Warm-up and window of one measurement, s: enough for thousands of commits.
const WARMUP_S: f64 = 0.2;
const WINDOW_S: f64 = 0.5;
/// Minimum free space, bytes: at most five log files, and the same again as a reserve.
pub const MIN_FREE_BYTES: u64 = 640 << 20;
/// Maximum relative difference between the redo of the reference and of the test.
const REDO_TOLERANCE: f64 = 0.05;

/// The reference log writer of a run.
pub struct Reference {
    target: Arc<dyn Target>,
    of: String,
    interrupted: Arc<AtomicBool>,
    cpu: CpuSource,
}

/// Time per measurement outside warm-up and window, s: sessions, counters.
const OVERHEAD_S: f64 = 0.1;

/// One measurement.
#[derive(Debug, Clone, Copy)]
struct Sample {
    tps: f64,
    latency_ns_mean: f64,
}

/// A directory of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its log directory.
    Log,
    /// Its data directory.
    Data,
}

/// A writable folder on the filesystem of the database's log or data: the run's `scratch` folder if it is there, else
/// the nearest writable parent of the database's directory. Never inside the database's directories.
///
/// # Errors
/// Why there is none, and what the user can do.
pub fn writable_dir(info: &TargetInfo, role: Role, scratch: &Path) -> Result<PathBuf, String> {
    let (dir, what) = match role {
        Role::Log => (&info.log_dir, "log"),
        Role::Data => (&info.data_dir, "data"),
    };
    let Some(log_dir) = dir.as_deref().filter(|_| info.local).map(Path::new) else {
        return Err(format!(
            "the filesystem of the database's {what} is not accessible from here: run `loadline probe` on the \
            database's machine and pass its figures with --limits FILE"
        ));
    };
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let Some(wanted) = device(log_dir) else {
        return Err(format!(
            "{} cannot be read by this user: run `loadline probe` as a user who can read it and pass its figures with \
            --limits FILE",
            log_dir.display()
        ));
    };
    if device(scratch) == Some(wanted) {
        return Ok(scratch.to_owned());
    }
    let dirs = [&info.log_dir, &info.data_dir];
    let own = |path: &Path| dirs.iter().filter_map(|d| d.as_deref()).any(|d| path.starts_with(d));
    let above = log_dir.ancestors().skip(1).take_while(|p| device(p) == Some(wanted)).filter(|p| !own(p));
    let mut writable = above.filter(|p| tempfile::tempdir_in(p).is_ok());
    match writable.next() {
        Some(path) => Ok(path.to_owned()),
        None => Err(format!(
            "no writable folder found on the filesystem of {}: put --results there, or pass the figures of `loadline \
            probe` with --limits FILE",
            log_dir.display()
        )),
    }
}

impl Reference {
    /// Opens the reference log in `dir`.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(dir: &Path, interrupted: &Arc<AtomicBool>) -> Result<Reference, String> {
        if let Ok(s) = nix::sys::statvfs::statvfs(dir) {
            let free = s.blocks_available().saturating_mul(s.fragment_size());
            if free < MIN_FREE_BYTES {
                return Err(format!(
                    "the reference log writer needs {} of free space in {}, but only {} are free",
                    bytes(MIN_FREE_BYTES as f64),
                    dir.display(),
                    bytes(free as f64)
                ));
            }
        }
        let target = open(&OpenRequest::new("wal:", dir.to_owned())).map_err(|e| e.to_string())?;
        let device = target.info().map_err(|e| e.to_string())?.settings.get("device").cloned().unwrap_or_default();
        Ok(Reference {
            target: Arc::from(target),
            of: format!("reference log writer ({}) in {}", device_description(&device), dir.display()),
            interrupted: Arc::clone(interrupted),
            cpu: CpuSource::Local,
        })
    }

    /// The same work with parameters that write `redo_bytes` per transaction in the reference log.
    ///
    /// # Errors
    /// If the reference fails, or no parameters give this redo.
    pub fn equivalent_work(&self, work: &Work, redo_bytes: f64) -> Result<Work, String> {
        let size = work.workload.redo.ok_or("the workload is not defined by its redo")?;
        let mut like = work.clone();
        let mut seen = 0.0;
        for _ in 0..4 {
            seen = measure(&self.target, &like).map_err(|e| e.to_string())?;
            if (seen / redo_bytes - 1.0).abs() <= REDO_TOLERANCE {
                return Ok(like);
            }
            let (payload, rows) = (like.params.get(size.payload), like.program.mean_rows_changed_per_tx().max(1.0));
            let next = (payload as f64 + (redo_bytes - seen) / rows).round() as i64;
            let range = work.workload.params.iter().find(|p| p.name == size.payload).map_or((1, 1), |p| (p.min, p.max));
            let given = if (range.0..=range.1).contains(&next) {
                [(size.payload.to_owned(), next)].into()
            } else {
                // Outside the range of the payload: change the number of rows instead.
                let rows = (redo_bytes / (seen / rows)).round().max(1.0) as i64;
                [(size.rows.to_owned(), rows)].into()
            };
            like = with(&like, &given);
        }
        Err(format!("the reference writes {seen:.0} bytes of redo per transaction, not {redo_bytes:.0}"))
    }

    fn sample(&self, work: &Arc<Work>, jobs: u32) -> Result<Sample, TestError> {
        self.sample_for(work, jobs, WARMUP_S, WINDOW_S)
    }

    fn sample_for(&self, work: &Arc<Work>, jobs: u32, warmup_s: f64, duration_s: f64) -> Result<Sample, TestError> {
        let request = Request {
            target: Arc::clone(&self.target),
            work: Arc::clone(work),
            driver: Driver::Client,
            jobs,
            warmup_s,
            duration_s,
            rate_tps: None,
            cpu: self.cpu,
            disk: None,
            data_disk: None,
            interrupted: Arc::clone(&self.interrupted),
        };
        let measured = run_test(&request, &mut (), |_, _| ())?;
        sample_of(&measured)
    }
}

/// Describes a log device without its temporary folder. Input: `file log in '…', fdatasync, blocks of …`.
fn device_description(device: &str) -> &str {
    device.split_once("', ").map_or(device, |(_, how)| how)
}

fn sample_of(measured: &Measured) -> Result<Sample, TestError> {
    if let Some(lost) = measured.jobs.iter().find_map(|j| j.lost.clone()) {
        return Err(TestError::Counters(lost));
    }
    let merged = &measured.merged.transaction;
    let (n, sum) = (merged.count(), merged.sum_ns() as f64);
    if n == 0 {
        return Err(TestError::Counters("no transaction of the reference completed in its window".into()));
    }
    Ok(Sample { tps: n as f64 / (measured.schedule.window_s()), latency_ns_mean: sum / n as f64 })
}

/// The limit of one test, measured before but not yet after it.
pub struct PendingLimit {
    work: Arc<Work>,
    redo_bytes: f64,
    jobs: u32,
    before: Sample,
}

impl Reference {
    /// Measures before a test of `work` with `redo_bytes` per transaction and `jobs` jobs.
    ///
    /// # Errors
    /// Why there is no figure, also if interrupted.
    pub fn before(&self, work: &Work, redo_bytes: f64, jobs: u32) -> Result<PendingLimit, String> {
        let work = Arc::new(self.equivalent_work(work, redo_bytes)?);
        let before = self.sample(&work, jobs).map_err(|e| e.to_string())?;
        Ok(PendingLimit { work, redo_bytes, jobs, before })
    }

    /// Measures after the test.
    ///
    /// # Errors
    /// Why there is no figure.
    pub fn after(&self, bracket: PendingLimit) -> Result<TestLimit, String> {
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
}

/// Job counts at which `loadline probe` measures the reference log writer.
pub const GRID_JOBS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Measures the reference log writer in `dir` with the nominal redo of every workload that has the instrument
/// `Limit`, at each of [`GRID_JOBS`], in about `seconds`. Calls `tick` before each measurement.
///
/// # Errors
/// If no log can be created there, or the user interrupts.
pub fn grid(
    dir: &Path,
    seconds: f64,
    seed: u64,
    interrupted: &Arc<AtomicBool>,
    mut tick: impl FnMut(&str, u32),
) -> Result<Vec<LogWriterPoint>, String> {
    let reference = Reference::open(dir, interrupted)?;
    let swept: Vec<_> =
        CATALOGUE.iter().filter(|w| w.has(Instrument::Limit)).filter_map(|w| Some((*w, w.redo?))).collect();
    let each_s = seconds / (swept.len() * GRID_JOBS.len()) as f64 - OVERHEAD_S;
    let warmup_s = (each_s / 3.0).clamp(0.03, WARMUP_S);
    let window_s = (each_s - warmup_s).max(0.1);
    let mut points = Vec::new();
    for (workload, redo) in swept {
        let params = workload.params(&BTreeMap::new()).map_err(|e| e.to_string())?;
        let work = Arc::new(reference.equivalent_work(&Work::new(workload, params, seed, 0.0), redo.nominal)?);
        for jobs in GRID_JOBS {
            tick(workload.code, jobs);
            let sample = match reference.sample_for(&work, jobs, warmup_s, window_s) {
                Ok(sample) => sample,
                // Nothing completed in the short window: no figure at this job count.
                Err(TestError::Counters(_)) => continue,
                Err(e) => return Err(e.to_string()),
            };
            points.push(LogWriterPoint {
                of: reference.of.clone(),
                workload: workload.code.to_owned(),
                mix: work.program.varies(),
                wait: work.program.commit == Commit::Wait,
                redo_bytes_per_tx: redo.nominal,
                jobs,
                tps: sample.tps,
                latency_ns_mean: sample.latency_ns_mean,
            });
        }
    }
    Ok(points)
}
