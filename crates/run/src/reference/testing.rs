//! Tests and references for unit tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_collect::CpuSource;
use loadline_database::{OpenRequest, Target, Work, open};
use loadline_model::{Driver, JobLoad};
use loadline_window::{Request, Warmup};

use super::{LogSource, References, Subject, TestFile};

/// A test of `code` on SQLite in `dir`.
pub(crate) fn request(dir: &Path, code: &str, jobs: u32) -> Request {
    let workload = loadline_workload::find(code).unwrap();
    let url = format!("sqlite:{}", dir.join("x.db").display());
    let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new(&url, dir.to_owned())).unwrap());
    Request {
        sessions_per_thread: None,
        target,
        work: Arc::new(Work::new(workload, workload.params(&Default::default()).unwrap(), 1, 0.0)),
        driver: Driver::Client,
        jobs,
        warmup: Warmup::Seconds(0.0),
        duration_s: 1.0,
        load: JobLoad::default(),
        cpu: CpuSource::Local,
        place: loadline_window::Place::Here,
        disk: Some("vda".to_owned()),
        data_disk: Some("vda".to_owned()),
        interrupted: Arc::default(),
    }
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
