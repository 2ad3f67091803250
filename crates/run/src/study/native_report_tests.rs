//! Tests of the database's own report, from a fake target to the run folder.

use std::sync::atomic::AtomicI64;

use crate::plan::PlanSpec;
use loadline_collect::CpuSource;
use loadline_database::{
    Abilities, Administration, ClientDriver, ClientSession, Doctor, Facts, NativeReports, Observation, Observer, Target,
    Work,
};
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::Jobs;
use loadline_model::{Column, Finding, Note, column};

use super::same::Changes;
use super::*;
use crate::event::Silent;
use crate::plan::make_plan;

/// The null engine, with reports.
struct Reporting {
    inner: Box<dyn Target>,
    marks: AtomicI64,
    /// Errors of marks and of reports, if any.
    refuses: [Option<&'static str>; 2],
}

impl Target for Reporting {
    fn facts(&self) -> &Facts {
        self.inner.facts()
    }
    fn info(&self) -> Result<TargetInfo, TargetError> {
        self.inner.info()
    }
    fn abilities(&self) -> Abilities<'_> {
        Abilities { native_reports: Some(self), ..self.inner.abilities() }
    }
}

impl NativeReports for Reporting {
    fn native_mark(&self) -> Result<i64, TargetError> {
        match self.refuses[0] {
            Some(why) => Err(TargetError::Refused(why.into())),
            None => Ok(self.marks.fetch_add(1, Ordering::Relaxed)),
        }
    }
    fn native_report(&self, from: i64) -> Result<String, TargetError> {
        match self.refuses[1] {
            Some(why) => Err(TargetError::Refused(why.into())),
            None => Ok(format!("from {from}")),
        }
    }
}

impl Administration for Reporting {}

impl Doctor for Reporting {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        self.inner.doctor()
    }
}

impl ClientDriver for Reporting {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        self.inner.client_session(work, job)
    }
}

impl Observation for Reporting {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.inner.observer()
    }
    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.inner.evidence(work)
    }
    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        self.inner.absent_columns()
    }
}

/// Runs two tests and returns the folder and the records.
fn two_tests(
    results: &Path,
    asked: bool,
    refuses: [Option<&'static str>; 2],
) -> (PathBuf, Vec<TestRecord>, Arc<Reporting>) {
    let request = OpenRequest::new("null:", results.to_owned());
    let inner = loadline_database::open(&request).unwrap();
    let target = Arc::new(Reporting { inner, marks: AtomicI64::new(7), refuses });
    let spec =
        PlanSpec { target: Some("null:".into()), workload: Some(vec!["LGWR-LAT1".into()]), ..PlanSpec::default() };
    let mut plan = make_plan(&spec).unwrap();
    // The kind of target decides the folder of reports.
    plan.target = "oracle://u@h/s".into();
    (plan.jobs, plan.duration_s, plan.warmup_s, plan.native_report) = (Jobs::List(vec![1, 2]), 0.2, 0.2, asked);
    let folder = RunFolder::create(results, "r").unwrap();
    let manifest = Manifest {
        schema: MANIFEST_SCHEMA,
        run: folder.id(),
        loadline_version: "0".into(),
        started_at: rfc3339(SystemTime::now()),
        plan,
        target: target.info().unwrap(),
        machine: loadline_collect::inventory::machine(),
        ..Manifest::default()
    };
    let side = Side {
        target: Arc::clone(&target) as Arc<dyn Target>,
        lock: None,
        info: target.info().unwrap(),
        findings: Vec::new(),
        changes: Changes::default(),
        cpu: CpuSource::Local,
        disk: None,
        data_disk: None,
        data_files: Err(String::new()),
        server_memory: None,
        max_jobs: 2,
        forced: None,
        references: Err("not probed".to_owned()),
        drop_data_set: false,
        without: None,
        space: Vec::new(),
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    let tries = Tries::new(&manifest.plan, &[], Vec::new());
    let mut context = Context {
        side,
        parked: Default::default(),
        variants: None,
        said_narrow: false,
        manifest,
        known: Default::default(),
        folder,
        records: Vec::new(),
        tries,
        stored: 0,
        agents: None,
        interrupted,
        left_out: Vec::new(),
        refused: Default::default(),
    };
    context.measure(&mut Silent).unwrap();
    (context.folder.path().to_owned(), context.records, target)
}

#[test]
fn each_test_has_its_report() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, records, _) = two_tests(dir.path(), true, [None, None]);
    assert_eq!(records.len(), 2);
    for (test, says) in [(1, "from 7"), (2, "from 8")] {
        assert_eq!(std::fs::read_to_string(folder.join(format!("awr/{test}.html"))).unwrap(), says);
    }
}

#[test]
fn without_the_option_there_is_no_report() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _, target) = two_tests(dir.path(), false, [None, None]);
    assert!(!folder.join("awr").exists());
    assert_eq!(target.marks.load(Ordering::Relaxed), 7, "no mark was taken");
}

#[test]
fn a_missing_report_is_noted_and_the_test_stays_valid() {
    for refuses in [[Some("no grant"), None], [None, Some("no grant")]] {
        let dir = tempfile::tempdir().unwrap();
        let (folder, records, _) = two_tests(dir.path(), true, refuses);
        assert!(!folder.join("awr").exists());
        for record in &records {
            assert!(
                record.notes.iter().any(|n| matches!(n, Note::NoNativeReport { why, .. } if why.contains("no grant"))),
                "{:?}",
                record.notes
            );
            assert!(record.figure(column::COMMIT_THROUGHPUT_TPS).is_some());
        }
    }
}
