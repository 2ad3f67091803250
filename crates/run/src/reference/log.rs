//! The limit of commits: the reference log writer with the same jobs, redo per transaction and commit mode, on the
//! filesystem of the database's log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::{OpenRequest, Target, TargetError, Work, kind_of, open};
use loadline_load::Request;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Driver, LogWriterPoint, TestLimit, column};
use loadline_workload::{CATALOGUE, Commit, LOG_APPENDS, ParamError, RedoSize};

use super::place::{check_free_space, not_here};
use super::{Lengths, LogSource, Part, References, Sample, Subject, with_work};
use crate::calibrate::{fit, measure, with};
use crate::test::MIB;

pub(super) const LENGTHS: Lengths = Lengths { warmup_s: 0.2, windows_s: [0.5, 3.0] };
/// Minimum free space, bytes: at most five log files, and the same again as a reserve.
pub(crate) const MIN_FREE_BYTES: u64 = 640 << 20;
/// Maximum relative difference between the redo of the reference and of the test.
const REDO_TOLERANCE: f64 = 0.05;
/// Smallest transaction of the reference log, and the unit in which larger ones grow, bytes. A device writes larger
/// blocks than both.
const SMALLEST_BYTES: f64 = 128.0;
const UNIT_BYTES: f64 = 64.0;
/// Least redo of a transaction that writes any, bytes. A mean below is that of other work: the jobs changed nothing.
const LEAST_REDO: f64 = 16.0;
/// Largest transaction of the reference, bytes. Larger ones are measured in parts.
const LARGEST_BYTES: f64 = 32.0 * MIB;
/// Redo that is enough to measure that of a transaction, bytes: the reference log counts exactly.
const ENOUGH_BYTES: f64 = 16.0 * 1024.0;

/// Whether `seen` and `wanted` bytes of redo per transaction are the same work for the reference.
fn same_redo(seen: f64, wanted: f64) -> bool {
    let unit = if wanted < SMALLEST_BYTES { SMALLEST_BYTES } else { UNIT_BYTES };
    (seen - wanted).abs() <= (REDO_TOLERANCE * wanted).max(unit)
}

/// The reference log, in a temporary folder.
const LOG_URL: &str = "wal:";

pub(crate) struct LogWriter {
    target: Arc<dyn Target>,
    of: String,
    interrupted: Arc<AtomicBool>,
}

impl LogWriter {
    pub(crate) fn open(dir: &Path, interrupted: &Arc<AtomicBool>) -> Result<LogWriter, String> {
        // First, because they take the space.
        clean_leftovers(dir).map_err(|e| e.to_string())?;
        check_free_space(dir, "the reference log writer", MIN_FREE_BYTES)?;
        let target = open(&OpenRequest::new(LOG_URL, dir.to_owned())).map_err(|e| e.to_string())?;
        let info = target.info().map_err(|e| e.to_string())?;
        Ok(LogWriter {
            target: Arc::from(target),
            of: format!("reference log writer ({}) in {}", device_of(&info), dir.display()),
            interrupted: Arc::clone(interrupted),
        })
    }

    /// This work with parameters that write `redo_bytes` per transaction in the reference log.
    fn equivalent_work(&self, work: &Work, redo_bytes: f64) -> Result<Work, String> {
        let like = match work.workload.redo {
            Some(_) => work.clone(),
            None => {
                // Records of about 1 KiB, in the commit mode of the work.
                let (wait, rows) = (work.program.commit == Commit::Wait, (redo_bytes / 1024.0).round().max(1.0));
                appends(work, &[("wait", wait.into()), ("rows", rows as i64)]).map_err(|e| e.to_string())?
            }
        };
        let size = like.workload.redo.ok_or("the workload is not defined by its redo")?;
        let size = RedoSize { min: redo_bytes, nominal: redo_bytes, max: redo_bytes, ..size };
        let expected = Some(redo_bytes.max(ENOUGH_BYTES));
        let probe = |work: &Work| measure(&self.target, work, expected, &self.interrupted);
        let is_met = |seen| same_redo(seen, redo_bytes);
        let (parameters, seen) = fit(&like, size, is_met, probe).map_err(|e| e.to_string())?;
        match seen.filter(|seen| !is_met(*seen)) {
            Some(seen) => {
                Err(format!("the reference writes {seen:.0} bytes of redo per transaction, not {redo_bytes:.0}"))
            }
            None => Ok(with(&like, &parameters)),
        }
    }

    fn request(&self, work: &Arc<Work>, jobs: u32) -> Request {
        Request { interrupted: Arc::clone(&self.interrupted), ..Request::new(&self.target, work, jobs) }
    }
}

/// Removes what reference log writers of dead runs left in `dir`. Returns what was removed.
pub fn clean_leftovers(dir: &Path) -> Result<Vec<String>, TargetError> {
    let request = OpenRequest::new(LOG_URL, dir.to_owned());
    kind_of(LOG_URL)?.clean_leftovers(&request)
}

/// Transactions that append to a log, with these parameters, and with the seed and payload of `work`.
fn appends(work: &Work, given: &[(&str, i64)]) -> Result<Work, ParamError> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Ok(Work::new(Arc::clone(&LOG_APPENDS), LOG_APPENDS.params(&given)?, work.seed, work.payload))
}

/// The log device without its temporary folder: the same in each run.
fn device_of(info: &TargetInfo) -> String {
    let device = info.settings.get("device").cloned().unwrap_or_default();
    let Some(folder) = &info.log_dir else { return device };
    device.replace(&format!(" in '{folder}'"), "").replace(&format!(" in {folder}"), "")
}

/// The commits of a test, on the reference log writer.
#[derive(Default)]
pub(super) struct Commits {
    /// Work with the redo of a transaction that writes, and that redo, bytes.
    work: Option<(Arc<Work>, f64)>,
    /// Whether it measures whole transactions of any redo in their place.
    whole: bool,
}

/// Redo of a transaction that writes any, bytes: as calibrated, of the test if it has ended, or of an earlier one.
fn redo(subject: Subject<'_>) -> Result<f64, String> {
    let measured = match (subject.redo_bytes, subject.figures, subject.earlier_redo_bytes) {
        (Some(calibrated), _, _) => return Ok(calibrated),
        (None, None, Some(earlier)) => earlier,
        (None, _, _) => subject.figure(column::REDO_BYTES_PER_TX)?,
    };
    Ok(measured / subject.request.work.program.writing_share())
}

fn writing_share(subject: Subject<'_>) -> Result<f64, String> {
    if subject.redo_bytes.is_some() {
        return Ok(1.0);
    }
    if subject.request.work.program.counts_changes() {
        return Err("how many of its transactions write is known only as they run".to_owned());
    }
    let share = subject.request.work.program.writing_share();
    Ok(if share > 0.0 && redo(subject)? >= LEAST_REDO { share } else { 0.0 })
}

/// Number of transactions of the reference that write `redo` bytes.
fn parts(redo: f64) -> f64 {
    (redo / LARGEST_BYTES).ceil().max(1.0)
}

impl Part for Commits {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        let writer = match &references.log {
            LogSource::Measured(writer) => writer,
            LogSource::Smallest(commits) if subject.request.work.program.commit == Commit::Wait => {
                self.whole = true;
                let of = "the smallest durable transactions of this database";
                return Ok(Some(Sample::new(commits.sample(subject)?, of)));
            }
            LogSource::Smallest(_) => return Err(not_here("log")),
            LogSource::Points(_) => return Ok(None),
            LogSource::None(reason) => return Err(reason.clone()),
        };
        let redo_now = redo(subject);
        let is_other =
            |(_, measured): &mut (Arc<Work>, f64)| redo_now.as_ref().is_ok_and(|redo| !same_redo(*measured, *redo));
        self.work.take_if(is_other);
        if self.work.is_none() {
            let known = subject.redo_bytes.or(subject.earlier_redo_bytes).is_some() || subject.figures.is_some();
            if !known || writing_share(subject)? == 0.0 {
                return Ok(None);
            }
            let redo = redo_now?;
            let work = writer.equivalent_work(&subject.request.work, redo / parts(redo))?;
            self.work = Some((Arc::new(work), redo));
        }
        let Some((work, redo)) = &self.work else { return Ok(None) };
        let per_s = LENGTHS.rate(&writer.request(work, subject.request.jobs))?;
        Ok(Some(Sample { per_s, of: writer.of.clone(), redo_bytes: Some(*redo) }))
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        let share = writing_share(subject)?;
        if share == 0.0 || self.whole { Ok(share) } else { Ok(share * parts(redo(subject)?)) }
    }

    fn known(&self, subject: Subject<'_>, references: &References) -> Option<Result<TestLimit, String>> {
        let LogSource::Points(points) = &references.log else { return None };
        let work = &subject.request.work;
        let mix = work.program.varies().then_some(work.workload.code.as_str());
        let limit =
            |redo| LogWriterPoint::limit(points, mix, work.program.commit == Commit::Wait, redo, subject.request.jobs);
        Some(redo(subject).map_err(|_| "the redo of its transactions is unknown".to_owned()).and_then(limit))
    }
}

/// If the filesystem of the log cannot be reached: the smallest durable transaction of the database itself, which updates one row of
/// 16 bytes, by as many jobs. Made on first use.
#[derive(Default)]
pub(crate) struct SmallestCommits(Mutex<Option<Arc<Work>>>);

impl SmallestCommits {
    /// Transactions per second of as many jobs with the same driver.
    fn sample(&self, subject: Subject<'_>) -> Result<f64, String> {
        let like = subject.request;
        let work = self.work(like).map_err(|e| e.to_string())?;
        like.target.load(&work, like.jobs).map_err(|e| e.to_string())?;
        LENGTHS.rate(&with_work(like, work))
    }

    fn work(&self, like: &Request) -> Result<Arc<Work>, TargetError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = &*made {
            return Ok(Arc::clone(work));
        }
        let work = appends(&like.work, &[("payload", 16)]).map_err(|e| TargetError::Usage(e.to_string()))?;
        let work = Arc::new(work);
        like.target.create(&work)?;
        if let Some(driver) = like.target.abilities().database_driver
            && like.driver == Driver::Database
        {
            driver.install(&work)?;
        }
        // The target is prepared for the test again.
        like.target.reset(&like.work, like.driver)?;
        *made = Some(Arc::clone(&work));
        Ok(work)
    }
}

/// Job counts at which `loadline probe` measures the reference log writer.
pub const GRID_JOBS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Measures the reference log writer in `dir` with the nominal redo of every log-writer workload, at each of [`GRID_JOBS`], in about `seconds`. Calls `tick` before each measurement.
/// Fails if no log can be created there, no transaction completes in a longer window either, or the user interrupts.
pub fn grid(
    dir: &Path,
    seconds: f64,
    seed: u64,
    interrupted: &Arc<AtomicBool>,
    mut tick: impl FnMut(&str, u32),
) -> Result<Vec<LogWriterPoint>, String> {
    let reference = LogWriter::open(dir, interrupted)?;
    let swept: Vec<_> = CATALOGUE.iter().filter(|w| w.scan.is_none()).filter_map(|w| Some((w, w.redo?))).collect();
    let each_s = seconds / (swept.len() * GRID_JOBS.len()) as f64 - Lengths::AROUND_S;
    let warmup_s = (each_s / 3.0).clamp(0.03, LENGTHS.warmup_s);
    let window_s = (each_s - warmup_s).max(0.1);
    let lengths = Lengths { warmup_s, windows_s: [window_s, LENGTHS.windows_s[1].max(window_s)] };
    let mut points = Vec::new();
    for (workload, redo) in swept {
        let params = workload.params(&BTreeMap::new()).map_err(|e| e.to_string())?;
        let like = Work::new(Arc::clone(workload), params, seed, Default::default());
        let work = Arc::new(reference.equivalent_work(&like, redo.nominal)?);
        for jobs in GRID_JOBS {
            tick(&workload.code, jobs);
            let rate = lengths.rate(&reference.request(&work, jobs));
            let tps = rate.map_err(|e| format!("{} with {jobs} jobs: {e}", workload.code))?;
            points.push(LogWriterPoint {
                of: reference.of.clone(),
                workload: workload.code.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_no_temporary_folder() {
        let of = |device: &str, dir: Option<&str>| {
            let settings = [("device".to_owned(), device.to_owned())].into();
            device_of(&TargetInfo { settings, log_dir: dir.map(str::to_owned), ..TargetInfo::default() })
        };
        let dir = Some("/a, b/loadline-wal-X");
        assert_eq!(of("direct log in /a, b/loadline-wal-X, O_DIRECT, pwrite", dir), "direct log, O_DIRECT, pwrite");
        assert_eq!(of("file log in '/a, b/loadline-wal-X', fdatasync", dir), "file log, fdatasync");
        assert_eq!(of("a device in use", None), "a device in use");
    }

    #[test]
    fn any_redo_has_a_reference() {
        let dir = tempfile::tempdir().unwrap();
        let writer = LogWriter::open(dir.path(), &Arc::default()).unwrap();
        assert!(!writer.of.contains("loadline-wal-"), "{}", writer.of);
        let work = Work::from_catalogue("DBL-11", &[]).unwrap();
        for redo in [LEAST_REDO, 90.0, 130.0, 180.0, 370.0, 1500.0, 19_341.0, 1e6, 4e6] {
            let like = writer.equivalent_work(&work, redo).unwrap();
            let seen = measure(&writer.target, &like, Some(ENOUGH_BYTES), &AtomicBool::new(false)).unwrap();
            assert!(same_redo(seen, redo), "{seen} for {redo}");
        }
        assert!(same_redo(1050.0, 1000.0) && !same_redo(1100.0, 1000.0) && !same_redo(300.0, 100.0));
        assert_eq!([1.0, LARGEST_BYTES, 3.5 * LARGEST_BYTES].map(parts), [1.0, 1.0, 4.0], "larger ones in parts");
    }
}
