//! The limit of commits: the reference log writer with the same jobs, redo per transaction and commit mode, on the
//! filesystem of the database's log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_collect::CpuSource;
use loadline_database::{OpenRequest, Target, Work, open};
use loadline_model::{Driver, LogWriterPoint, TestLimit, column};
use loadline_workload::{CATALOGUE, Commit, LOG_APPENDS};

use super::place::check_free_space;
use super::{LogSource, Part, References, Subject, throughput};
use crate::calibrate::{measure_expected, with};
use crate::window::{Request, TestError};

/// Warm-up and window of one measurement, s: enough for thousands of commits.
const WARMUP_S: f64 = 0.2;
const WINDOW_S: f64 = 0.5;
/// Minimum free space, bytes: at most five log files, and the same again as a reserve.
pub(crate) const MIN_FREE_BYTES: u64 = 640 << 20;
/// Maximum relative difference between the redo of the reference and of the test.
const REDO_TOLERANCE: f64 = 0.05;

/// The reference log writer of a run.
pub(crate) struct LogWriter {
    target: Arc<dyn Target>,
    of: String,
    interrupted: Arc<AtomicBool>,
}

/// Time per measurement outside warm-up and window, s: sessions, counters.
const OVERHEAD_S: f64 = 0.1;

impl LogWriter {
    /// Opens the reference log in `dir`.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn open(dir: &Path, interrupted: &Arc<AtomicBool>) -> Result<LogWriter, String> {
        check_free_space(dir, "the reference log writer", MIN_FREE_BYTES)?;
        let target = open(&OpenRequest::new("wal:", dir.to_owned())).map_err(|e| e.to_string())?;
        let device = target.info().map_err(|e| e.to_string())?.settings.get("device").cloned().unwrap_or_default();
        Ok(LogWriter {
            target: Arc::from(target),
            of: format!("reference log writer ({}) in {}", device_description(&device), dir.display()),
            interrupted: Arc::clone(interrupted),
        })
    }

    /// The same work with parameters that write `redo_bytes` per transaction in the reference log.
    ///
    /// # Errors
    /// If the reference fails, or no parameters give this redo.
    fn equivalent_work(&self, work: &Work, redo_bytes: f64) -> Result<Work, String> {
        let mut like = match work.workload.redo {
            Some(_) => work.clone(),
            None => appends(work, redo_bytes)?,
        };
        let size = like.workload.redo.ok_or("the workload is not defined by its redo")?;
        let mut seen = 0.0;
        for _ in 0..4 {
            seen = measure_expected(&self.target, &like, redo_bytes).map_err(|e| e.to_string())?;
            if (seen / redo_bytes - 1.0).abs() <= REDO_TOLERANCE {
                return Ok(like);
            }
            let (payload, rows) = (like.params.get(size.payload), like.program.mean_rows_changed_per_tx().max(1.0));
            let next = (payload as f64 + (redo_bytes - seen) / rows).round() as i64;
            let range = like.workload.params.iter().find(|p| p.name == size.payload).map_or((1, 1), |p| (p.min, p.max));
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

    fn throughput(&self, work: &Arc<Work>, jobs: u32, warmup_s: f64, duration_s: f64) -> Result<f64, TestError> {
        throughput(&Request {
            target: Arc::clone(&self.target),
            work: Arc::clone(work),
            driver: Driver::Client,
            jobs,
            warmup_s,
            duration_s,
            rate_tps: None,
            cpu: CpuSource::Local,
            disk: None,
            data_disk: None,
            interrupted: Arc::clone(&self.interrupted),
        })
    }
}

/// Transactions that append about `redo_bytes` in records of about 1 KiB, in the commit mode of `work`.
fn appends(work: &Work, redo_bytes: f64) -> Result<Work, String> {
    let wait = i64::from(work.program.commit == Commit::Wait);
    let rows = (redo_bytes / 1024.0).round().max(1.0) as i64;
    let given = BTreeMap::from([("wait".to_owned(), wait), ("rows".to_owned(), rows)]);
    let params = LOG_APPENDS.params(&given).map_err(|e| e.to_string())?;
    Ok(Work::new(&LOG_APPENDS, params, work.seed, work.compressibility))
}

/// Describes a log device without its temporary folder. Input: `file log in '…', fdatasync, blocks of …`.
fn device_description(device: &str) -> &str {
    device.split_once("', ").map_or(device, |(_, how)| how)
}

/// The commits of a test, on the reference log writer.
#[derive(Default)]
pub(super) struct Commits {
    /// Work with the redo of the test, and that redo, bytes.
    work: Option<(Arc<Work>, f64)>,
}

/// Redo of a transaction that writes any, bytes.
fn redo(subject: Subject<'_>) -> Result<f64, String> {
    match subject.redo_bytes {
        Some(calibrated) => Ok(calibrated),
        None => Ok(subject.figure(column::REDO_BYTES_PER_TX)? / writing_share(subject)),
    }
}

/// Share of the transactions that write redo.
fn writing_share(subject: Subject<'_>) -> f64 {
    if subject.redo_bytes.is_some() { 1.0 } else { subject.request.work.program.writing_share() }
}

impl Part for Commits {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<f64>, String> {
        let writer = match &references.log {
            LogSource::Measured(writer) => writer,
            LogSource::Points(_) => return Ok(None),
            LogSource::None(reason) => return Err(reason.clone()),
        };
        if self.work.is_none() {
            if subject.redo_bytes.or(subject.figures.map(|_| 0.0)).is_none() {
                return Ok(None);
            }
            let redo = redo(subject)?;
            self.work = Some((Arc::new(writer.equivalent_work(&subject.request.work, redo)?), redo));
        }
        let Some((work, _)) = &self.work else { return Ok(None) };
        let tps = writer.throughput(work, subject.request.jobs, WARMUP_S, WINDOW_S);
        tps.map(Some).map_err(|e| e.to_string())
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(writing_share(subject))
    }

    fn of(&self, references: &References) -> String {
        match &references.log {
            LogSource::Measured(writer) => writer.of.clone(),
            _ => String::new(),
        }
    }

    fn redo_bytes(&self) -> Option<f64> {
        self.work.as_ref().map(|(_, redo)| *redo)
    }

    fn known(&self, subject: Subject<'_>, references: &References) -> Option<Result<TestLimit, String>> {
        let LogSource::Points(points) = &references.log else { return None };
        let work = &subject.request.work;
        let mix = work.program.varies().then_some(work.workload.code);
        let limit =
            |redo| LogWriterPoint::limit(points, mix, work.program.commit == Commit::Wait, redo, subject.request.jobs);
        Some(redo(subject).map_err(|_| "the redo of its transactions is unknown".to_owned()).and_then(limit))
    }
}

/// Job counts at which `loadline probe` measures the reference log writer.
pub const GRID_JOBS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Measures the reference log writer in `dir` with the nominal redo of every log-writer workload, at each of [`GRID_JOBS`], in about `seconds`. Calls `tick` before each measurement.
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
    let reference = LogWriter::open(dir, interrupted)?;
    let swept: Vec<_> = CATALOGUE.iter().filter(|w| w.scan().is_none()).filter_map(|w| Some((*w, w.redo?))).collect();
    let each_s = seconds / (swept.len() * GRID_JOBS.len()) as f64 - OVERHEAD_S;
    let warmup_s = (each_s / 3.0).clamp(0.03, WARMUP_S);
    let window_s = (each_s - warmup_s).max(0.1);
    let mut points = Vec::new();
    for (workload, redo) in swept {
        let params = workload.params(&BTreeMap::new()).map_err(|e| e.to_string())?;
        let work = Arc::new(reference.equivalent_work(&Work::new(workload, params, seed, 0.0), redo.nominal)?);
        for jobs in GRID_JOBS {
            tick(workload.code, jobs);
            let tps = match reference.throughput(&work, jobs, warmup_s, window_s) {
                Ok(tps) => tps,
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
                tps,
                // A closed loop without pauses.
                latency_ns_mean: f64::from(jobs) / tps * 1e9,
            });
        }
    }
    Ok(points)
}
