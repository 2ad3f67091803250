//! Parts that unit tests share: plans, targets, figures, snapshots, references, and evidence of jobs on the null engine.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use loadline_collect::{Collected, WindowReading};
use loadline_database::{OpenRequest, Target, Work, open};
use loadline_load::{Books, Held, JobResult, Measured, Request, Schedule, Tally, WindowReadings};
use loadline_model::machine::Machine;
use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::counter;
use loadline_model::{Check, Column, Manifest, Plan, Snapshot};

use crate::evidence::{Evidence, Excuses, Jobs, Proof, RunContext};
use crate::reference::{LogSource, References, Subject, TestFile};
use crate::test::Test;
use crate::{make_plan, planfile};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn planned(text: &str) -> Plan {
    make_plan(&planfile::parse(text).unwrap()).unwrap()
}

pub(crate) fn target(url: &str, dir: &Path) -> Box<dyn Target> {
    open(&OpenRequest::new(url, dir.to_owned())).unwrap()
}

pub(crate) fn sqlite(dir: &Path) -> Box<dyn Target> {
    target(&format!("sqlite:{}", dir.join("x.db").display()), dir)
}

/// A test of which these figures are known.
pub(crate) fn figures(known: &[(&'static Column, f64)]) -> Test {
    let mut figures = Test::default();
    known.iter().for_each(|(column, value)| figures.set(column, *value));
    figures
}

pub(crate) fn snapshot(at_ns: u64, counters: &[(&str, f64)]) -> Snapshot {
    let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Snapshot { at_ns, counters, ..Snapshot::default() }
}

/// A test of `code` on SQLite in `dir`.
pub(crate) fn request(dir: &Path, code: &str, jobs: u32) -> Request {
    let disk = || Some("vda".to_owned());
    let request = Request::new(&Arc::from(sqlite(dir)), &Arc::new(Work::from_catalogue(code, &[]).unwrap()), jobs);
    Request { disk: disk(), data_disk: disk(), ..request }
}

/// References without a log, with a test file in `data_dir`.
pub(crate) fn references(data_dir: Result<PathBuf, String>) -> References {
    References {
        log: LogSource::None("none".to_owned()),
        data_dir,
        test_file: TestFile::default(),
        elsewhere: None,
        rows: Default::default(),
        interrupted: Arc::default(),
    }
}

/// A test about which nothing is known yet.
pub(crate) fn subject(request: &Request) -> Subject<'_> {
    Subject { request, redo_bytes: None, earlier_redo_bytes: None, figures: None }
}

/// A test whose evidence a unit test changes.
pub(crate) struct Case {
    pub(crate) request: Request,
    pub(crate) measured: Measured,
    pub(crate) proof: Proof,
    pub(crate) excuses: Excuses,
    pub(crate) full_disk: Option<String>,
    /// Figures that the checks read.
    pub(crate) test: Test,
}

/// `n` jobs, each with what `one` records of it, in a window of 2 s that begins 1 s after their start.
pub(crate) fn jobs(n: u32, one: impl Fn(&Schedule, &mut Books<'_>)) -> (Schedule, Vec<JobResult>, Tally) {
    let schedule = Schedule { start_ns: 10 * SECOND, open_ns: 11 * SECOND, close_ns: 13 * SECOND };
    let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
    let mut books = Books::new(Held::new(&tally, true));
    let mut run = || {
        one(&schedule, &mut books);
        JobResult { ran_until_ns: schedule.close_ns, ..std::mem::take(&mut books.job) }
    };
    let jobs = (0..n).map(|_| run()).collect();
    drop(books);
    (schedule, jobs, tally.into_inner().unwrap())
}

/// A test of `work` with these jobs, on whose counts the database agrees.
pub(crate) fn case(work: Work, (schedule, jobs, merged): (Schedule, Vec<JobResult>, Tally)) -> Case {
    let target: Arc<dyn Target> = Arc::from(target("null:", Path::new("/tmp")));
    let reading = |at_ns| WindowReading::of_database(at_ns, Ok(Snapshot { at_ns, ..Snapshot::default() }));
    let [open, close] = [schedule.open_ns, schedule.close_ns].map(reading);
    let rows = (merged.total * work.program.rows_changed_per_tx()) as i64;
    let work_has_evidence = work.workload.evidence.is_some();
    let [n, total] = [merged.transaction.count() as f64, merged.total as f64];
    let mut case = Case {
        request: Request::new(&target, &Arc::new(work), jobs.len() as u32),
        measured: Measured {
            schedule,
            opened_at: SystemTime::UNIX_EPOCH,
            warmup: Default::default(),
            counts: Default::default(),
            jobs,
            merged,
            completed_before: 0,
            populations: Vec::new(),
            before: Ok(Snapshot::default()),
            readings: WindowReadings {
                at_start: open.clone(),
                at_end: close.clone(),
                after_start: open,
                after_end: close,
            },
            after: Ok(Snapshot::default()),
            collected: Collected::default(),
            around: None,
            elsewhere: Default::default(),
        },
        proof: Proof { grown: Ok(work_has_evidence.then_some(rows)), consistency: Vec::new(), data_bytes: Ok(None) },
        excuses: Excuses::default(),
        full_disk: None,
        test: Test::default(),
    };
    case.count(counter::COMMITS, n);
    case.count(counter::REDO_SYNCS, n / 2.0);
    case.count_all(counter::COMMITS, total);
    case
}

impl Case {
    /// Sets by how much a counter grows in the window.
    pub(crate) fn count(&mut self, name: &str, grown: f64) {
        let readings = &mut self.measured.readings;
        for (reading, value) in [(&mut readings.at_start, 1000.0), (&mut readings.at_end, 1000.0 + grown)] {
            reading.snapshot.as_mut().unwrap().counters.insert(name.to_owned(), value);
        }
    }

    /// Sets by how much a counter grows from before the jobs until after them.
    pub(crate) fn count_all(&mut self, name: &str, grown: f64) {
        for (snapshot, value) in [(&mut self.measured.before, 0.0), (&mut self.measured.after, grown)] {
            snapshot.as_mut().unwrap().counters.insert(name.to_owned(), value);
        }
    }

    pub(crate) fn checks(&self, make: &[fn(&Evidence<'_>, &mut Test)]) -> Vec<Check> {
        self.made(make).checks
    }

    /// The test after these functions.
    pub(crate) fn made(&self, make: &[fn(&Evidence<'_>, &mut Test)]) -> Test {
        let machine = Machine { cpus: 2, ..Machine::default() };
        let manifest = Manifest { machine, ..Manifest::default() };
        let info = TargetInfo::default();
        let evidence = Evidence {
            request: &self.request,
            run: &RunContext::outside(&manifest),
            proof: &self.proof,
            target: (&info, Ok(info.clone())),
            excuses: self.excuses.clone(),
            remarks: Vec::new(),
            seen: Jobs { full_disk: self.full_disk.clone(), ..Jobs::from(&self.request, &self.measured) },
        };
        let mut test = self.test.clone();
        make.iter().for_each(|make| make(&evidence, &mut test));
        test
    }
}
