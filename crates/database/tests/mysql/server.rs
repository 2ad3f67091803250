//! The shared server. It lives as long as a test holds it, and is removed with the last.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use loadline_database::{OpenRequest, Target, TargetError, Work};
use loadline_workload::Arg;

use crate::shared::*;

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
/// Server-wide counters and settings: tests that look at them run alone.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) struct Server {
    pub(crate) target: Box<dyn Target>,
    scratch: tempfile::TempDir,
}

/// The shared server, for one test at a time.
pub(crate) struct Alone {
    _alone: MutexGuard<'static, ()>,
    server: Arc<Server>,
}

impl std::ops::Deref for Alone {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

pub(crate) fn server_alone() -> Alone {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let server = shared.upgrade().unwrap_or_else(|| Arc::new(Server::start("", &[])));
    *shared = Arc::downgrade(&server);
    drop(shared);
    Alone { _alone: alone(), server }
}

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// A private server; `query` is what its URL goes on with.
    pub(crate) fn start(query: &str, settings: &[(&str, &str)]) -> Server {
        Server::open(&format!("mariadb-temp:{query}"), settings)
    }

    pub(crate) fn open(url: &str, settings: &[(&str, &str)]) -> Server {
        let scratch = scratch();
        let mut request = OpenRequest::new(url, scratch.path().to_owned());
        request.settings = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        // Without MariaDB's binaries the error says which package to install.
        Server { target: loadline_database::open(&request).unwrap(), scratch }
    }

    /// Where its files are.
    pub(crate) fn scratch(&self) -> &std::path::Path {
        self.scratch.path()
    }

    /// Stops it; what is left of it is there.
    pub(crate) fn into_scratch(self) -> tempfile::TempDir {
        drop(self.target);
        self.scratch
    }

    pub(crate) fn socket(&self) -> PathBuf {
        let data = PathBuf::from(self.target.info().unwrap().data_dir.unwrap());
        data.parent().unwrap().join("socket/s")
    }

    /// This server as a user's: loadline does not own it.
    pub(crate) fn as_users(&self, user: &str) -> Result<Box<dyn Target>, TargetError> {
        loadline_database::open(&self.request(user))
    }

    pub(crate) fn request(&self, user: &str) -> OpenRequest {
        let url = format!("mysql://{user}@/?socket={}", self.socket().display());
        OpenRequest::new(&url, std::env::temp_dir())
    }

    /// Runs statements with MariaDB's own client.
    pub(crate) fn sql(&self, statements: &str) -> String {
        sql(&self.socket(), statements)
    }
}

/// Runs statements with MariaDB's own client.
pub(crate) fn sql(socket: &Path, sql: &str) -> String {
    let mut mariadb = Command::new("mariadb");
    let out =
        mariadb.args(["--no-defaults", "-N", "-B", "-uroot", "-S"]).arg(socket).args(["-e", sql]).output().unwrap();
    assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// Sockets of the private servers in `scratch`, in the order of this variable.
pub(crate) fn sockets(scratch: &Path, variable: &str) -> Vec<PathBuf> {
    let sockets = std::fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().path().join("socket/s"));
    let mut found: Vec<_> = sockets.map(|socket| (sql(&socket, &format!("SELECT @@{variable}")), socket)).collect();
    found.sort();
    found.into_iter().map(|(_, socket)| socket).collect()
}

/// Kills the private server at `socket`.
pub(crate) fn kill(socket: &Path) {
    kill_by(&socket.with_file_name("pid"));
}

/// As many transactions of each job of LGWR-LAT1 as its number, and one.
pub(crate) fn run(target: &dyn Target, work: &Work, jobs: u32) {
    for job in 0..jobs {
        let mut client = target.client_session(work, job).unwrap();
        for key in 0..i64::from(job) + 1 {
            let row = Arg::Int(work.start(job).first_key + key);
            let rows = client.execute_and_commit(0, &[Arg::Bytes(&[7; 500]), row]).unwrap().0;
            assert_eq!(rows, 1, "job {job}: its rows are there");
        }
    }
}
