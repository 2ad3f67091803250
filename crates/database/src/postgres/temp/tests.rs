//! Tests with real servers: start, stop, kill of either side, leftovers.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::*;
use crate::temp::owner::{self, Owner};
use crate::temp::place::{self, Location, ServerToPlace};
use crate::temp::user::ServerUser;

/// Set for the process that is killed in `a_killed_owner_leaves_nothing`.
const OWNER_SCRATCH: &str = "LOADLINE_TEST_TEMP_SERVER_SCRATCH";

/// Removes leftovers of private PostgreSQL servers.
fn clean_leftovers(request: &OpenRequest) -> Result<Vec<String>, TargetError> {
    crate::temp::clean_leftovers(&PRODUCT, request)
}

/// A scratch folder to which the server's user has access.
fn scratch() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("loadline-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn request(scratch: &Path, settings: &[(&str, &str)]) -> OpenRequest {
    let mut request = OpenRequest::new("postgres-temp:", scratch.to_owned());
    request.settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    request
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn usage(request: &OpenRequest) -> String {
    match TempServer::start(request).map(|server| server.url().to_owned()) {
        Err(TargetError::Usage(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 60 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn segments_of(postmaster: i32) -> usize {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = postmaster.to_string();
    table.lines().filter(|line| line.split_whitespace().nth(4) == Some(&creator)).count()
}

#[test]
fn a_private_server_counts_statements_if_the_library_is_loaded() {
    let statements = |settings: &[(&str, &str)]| {
        let scratch = scratch();
        let target = crate::open(&request(scratch.path(), settings)).unwrap();
        target.abilities().statistics_views.unwrap().views().unwrap().remove(0)
    };
    let counted = statements(&[("shared_preload_libraries", "pg_stat_statements")]);
    assert!(counted.title.contains("pg_stat_statements") && counted.absent.is_none(), "{counted:?}");
    assert!(counted.epoch.is_some() && !counted.rows.is_empty(), "{counted:?}");
    let why = statements(&[]).absent.unwrap();
    assert!(why.contains("--setting shared_preload_libraries=pg_stat_statements"), "{why}");
}

#[test]
fn a_server_starts_answers_and_is_removed_also_in_a_panic() {
    let scratch = scratch();
    let request = request(scratch.path(), &[("wal_buffers", "8MB"), ("my.note", "it's 'here'")]);
    let server = TempServer::start(&request).unwrap();
    let [dir] = &entries(scratch.path())[..] else { panic!("{:?}", entries(scratch.path())) };
    let owner = Owner::read(dir).unwrap().unwrap();
    let postmaster = owner.postmaster.unwrap();
    assert!(lives(postmaster));
    assert!(server.url().starts_with("postgres://postgres@/postgres?host=%2Fvar%2Ftmp%2F"), "{}", server.url());
    assert!(server.url().ends_with("%2Fsocket&port=5432"), "{}", server.url());
    let notes = server.notes().join("\n");
    for part in ["private PostgreSQL 1", "next to the results", "max_connections=300", "my.note=it's 'here'"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let psql = binaries::find(None, &ServerUser::choose(&PRODUCT).unwrap()).unwrap().dir.join("psql");
    let sql = "select concat_ws(' ', current_setting('wal_buffers'), current_setting('data_checksums'), \
               current_setting('listen_addresses') = '', current_setting('my.note'), current_setting('fsync'))";
    let output = Command::new(psql).args(["-XAtc", sql, server.url()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "8MB on t it's 'here' on", "{output:?}");

    // A live owner's server is not touched.
    assert_eq!(clean_leftovers(&request).unwrap(), Vec::<String>::new());
    assert!(lives(postmaster));

    let unwound = std::thread::spawn(move || {
        let _server = server;
        std::panic::resume_unwind(Box::new("as in a panic"));
    });
    assert!(unwound.join().is_err());
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
    assert!(!lives(postmaster));
    assert_eq!(segments_of(postmaster), 0);
}

#[test]
fn a_server_that_was_killed_leaves_nothing() {
    let scratch = scratch();
    let server = TempServer::start(&request(scratch.path(), &[])).unwrap();
    let owner = Owner::read(&entries(scratch.path())[0]).unwrap().unwrap();
    let postmaster = owner.postmaster.unwrap();
    assert!(!owner.shared_memory.is_empty());
    // Its processes create more shared memory when they begin to work.
    std::thread::sleep(Duration::from_millis(700));
    let name = entries(scratch.path())[0].file_name().unwrap().to_str().unwrap().to_owned();
    let user = ServerUser::choose(&PRODUCT).unwrap();
    let processes = processes::running(processes::Marks { name: &name, uid: owner.uid, initdb: None });
    assert!(processes.len() > 3, "{}", processes.len());
    let files: Vec<PathBuf> = processes.iter().flat_map(|p| shared_memory::mapped_files(p.pid, &user)).collect();
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();
    wait_until("the server ends", || !lives(postmaster));
    assert!(owner.shared_memory.iter().all(|file| file.exists()));
    assert_eq!(segments_of(postmaster), 1);
    drop(server);
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
    for file in files.iter().chain(&owner.shared_memory) {
        assert!(!file.exists(), "{file:?} of {files:?}");
    }
    // It is destroyed when the last process ends.
    wait_until("the segment is destroyed", || segments_of(postmaster) == 0);
}

#[test]
fn wrong_settings_are_named_and_nothing_is_left() {
    let scratch = scratch();
    let text = usage(&request(scratch.path(), &[("shared_bufers", "1GB")]));
    assert!(text.contains("has no setting 'shared_bufers': did you mean 'shared_buffers'?"), "{text}");
    let text = usage(&request(scratch.path(), &[("wal_level", "high")]));
    assert!(text.contains("--setting wal_level=high: postgres says: 'invalid value for parameter"), "{text}");
    assert!(text.contains("Available values: minimal, replica, logical"), "{text}");
    // Each is valid alone; only a start shows that they conflict.
    let text = usage(&request(scratch.path(), &[("wal_level", "minimal"), ("max_wal_senders", "5")]));
    assert!(text.contains("max_wal_senders=5, wal_level=minimal"), "{text}");
    assert!(text.contains("postgres says: 'WAL streaming"), "{text}");
    let text = usage(&request(scratch.path(), &[("port", "1")]));
    assert!(text.contains("'port'"), "{text}");
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let scratch = scratch();
    let bin = scratch.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let real = binaries::find(None, &ServerUser::choose(&PRODUCT).unwrap()).unwrap();
    symlink(real.postgres(), bin.join("postgres")).unwrap();
    let script = "#!/bin/sh\necho 'initdb: error: could not write file \"x\": No space left on device' >&2\nexit 1\n";
    std::fs::write(bin.join("initdb"), script).unwrap();
    std::fs::set_permissions(bin.join("initdb"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let results = scratch.path().join("results");
    let mut request = request(&results, &[]);
    request.url = format!("postgres-temp:?bin={}", bin.display());
    match TempServer::start(&request).map(|server| server.url().to_owned()) {
        Err(TargetError::Local(text)) => {
            assert!(text.contains("initdb failed") && text.contains("No space left on device"), "{text}");
            assert!(text.contains(&format!("under '{}' is full: free", results.display())), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!results.exists());
}

/// Not a test: the process that the next test kills.
#[test]
#[ignore = "run by a_killed_owner_leaves_nothing"]
fn owner_process() {
    let Some(scratch) = std::env::var_os(OWNER_SCRATCH).map(PathBuf::from) else { return };
    let mut request = request(&scratch, &[]);
    (request.url, request.replicas) = ("postgres-temp:?standbys=1".to_owned(), 1);
    let server = TempServer::start(&request).unwrap();
    std::fs::write(scratch.join("ready"), server.url()).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let scratch = scratch();
    let name = format!("{}::owner_process", module_path!().split_once("::").unwrap().1);
    let mut killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--ignored"])
        .env(OWNER_SCRATCH, scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the owner has a server", || scratch.path().join("ready").exists());
    std::fs::remove_file(scratch.path().join("ready")).unwrap();
    // A primary and its standby, each with a folder of its own.
    let dirs = entries(scratch.path());
    let owners: Vec<Owner> = dirs.iter().map(|dir| Owner::read(dir).unwrap().unwrap()).collect();
    assert!(owners.len() == 2 && owners.iter().all(|owner| owner.pid == killed.id().cast_signed()));
    let run = || owners.iter().filter(|owner| lives(owner.postmaster.unwrap())).count();
    let request = request(scratch.path(), &[]);
    assert_eq!(clean_leftovers(&request).unwrap(), Vec::<String>::new());
    assert_eq!(run(), 2);

    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().signal(), Some(9));
    wait_until("the servers die with their owner", || run() == 0);
    assert!(dirs.iter().all(|dir| dir.join("data").exists()));
    // Looks like one of loadline's, but contains a foreign file.
    let foreign = scratch.path().join("loadline-pg-mine");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    let removed = clean_leftovers(&request).unwrap();
    assert_eq!(removed.len(), 2, "{removed:?}");
    for dir in dirs {
        assert!(removed.iter().any(|line| line.starts_with(&format!("removed '{}'", dir.display()))), "{removed:?}");
    }
    assert!(foreign.join("letter").exists());
    assert_eq!(entries(scratch.path()), [foreign]);
}

#[test]
fn a_leftover_whose_server_still_runs_is_stopped_by_the_next_start() {
    let scratch = scratch();
    let server = TempServer::start(&request(scratch.path(), &[])).unwrap();
    let dir = entries(scratch.path()).remove(0);
    let mut owner = Owner::read(&dir).unwrap().unwrap();
    // As if the owner had died while the server runs: another start time and a free lock.
    owner.start_ticks += 1;
    owner.write(&dir).unwrap();
    std::fs::remove_file(dir.join(owner::LOCK)).unwrap();
    let next = TempServer::start(&request(scratch.path(), &[])).unwrap();
    assert!(!lives(owner.postmaster.unwrap()));
    assert!(!dir.exists());
    let notes = next.notes().join("\n");
    assert!(notes.contains(&format!("removed '{}'", dir.display())) && notes.contains("still running"), "{notes}");
    drop(next);
    drop(server);
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_long_path_and_a_closed_one() {
    let scratch = scratch();
    let long = scratch.path().join("a, b ".repeat(20));
    let server = TempServer::start(&request(&long, &[])).unwrap();
    let dir = entries(&long).remove(0);
    let sockets = Owner::read(&dir).unwrap().unwrap().sockets.unwrap();
    assert!(sockets.starts_with("/tmp") && sockets.join(".s.PGSQL.5432").exists(), "{sockets:?}");
    assert_eq!(sockets.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(server);
    assert!(!sockets.exists() && !long.exists());

    // A folder to which only root has access; without root there is no such case.
    let closed = scratch.path().join("closed");
    std::fs::DirBuilder::new().mode(0o700).create(&closed).unwrap();
    let user = ServerUser::choose(&PRODUCT).unwrap();
    let binaries = binaries::find(None, &user).unwrap();
    let choose = |dir, scratch| -> Result<Location, TargetError> {
        place::choose(ServerToPlace {
            product: &PRODUCT,
            dir,
            scratch,
            user: &user,
            program: &binaries.postgres(),
            servers: 1,
        })
    };
    let place = choose(None, &closed).unwrap();
    let explicit = choose(Some(&closed), scratch.path());
    if user.switch {
        assert_eq!(place.parent, Path::new("/var/tmp"));
        assert!(place.note.contains("the same device as the results"), "{}", place.note);
        assert!(matches!(explicit, Err(TargetError::Usage(text)) if text.contains("chmod o+x")));
    } else {
        assert_eq!(place.parent, std::fs::canonicalize(&closed).unwrap());
        assert_eq!(explicit.unwrap().parent, place.parent);
    }
}

#[test]
fn missing_directories_are_named() {
    let scratch = scratch();
    let mut request = request(scratch.path(), &[]);
    request.url = format!("postgres-temp:{}/nothing", scratch.path().display());
    let error = TempServer::start(&request).map(|server| server.url().to_owned()).unwrap_err().to_string();
    assert!(error.contains("/nothing'") && error.contains("postgres-temp:/dir"), "{error}");
    request.url = format!("postgres-temp:?bin={}", scratch.path().display());
    assert!(usage(&request).contains("has no 'postgres': postgres-temp: starts PostgreSQL 14 and newer"));
    request.url = "postgres-temp:".to_owned();
    request.nodes = vec!["postgres-temp:".to_owned()];
    assert!(usage(&request).contains("--node"));
}
