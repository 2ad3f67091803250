//! Tests and references for unit tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_database::{OpenRequest, Target, Work, open};
use loadline_load::Request;

use super::{LogSource, References, Subject, TestFile};

/// A test of `code` on SQLite in `dir`.
pub(crate) fn request(dir: &Path, code: &str, jobs: u32) -> Request {
    let url = format!("sqlite:{}", dir.join("x.db").display());
    let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new(&url, dir.to_owned())).unwrap());
    let disk = || Some("vda".to_owned());
    Request {
        disk: disk(),
        data_disk: disk(),
        ..Request::new(&target, &Arc::new(Work::from_catalogue(code, &[]).unwrap()), jobs)
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
