//! Tests with real servers: start, stop, kill of either side, leftovers.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::owner::{OWNER, Owner};
use super::process::{Marks, group};
use super::settings::SERVERS;
use super::*;
use crate::target::Target;

/// The target of the process that is killed, and its scratch folder.
const OWNED: &str = "LOADLINE_TEST_OWNED";
const SCRATCH: &str = "LOADLINE_TEST_OWNED_SCRATCH";
/// How often `nothing_is_left_by_kills_at_any_moment` kills, and from which seed it draws.
const KILLS: &str = "LOADLINE_KILLS";
const SEED: &str = "LOADLINE_KILLS_SEED";

/// A scratch folder to which the server's user has access.
fn scratch() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("loadline-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

fn request(scratch: &Path, settings: &[(&str, &str)]) -> OpenRequest {
    let mut request = OpenRequest::new("postgres-temp:", scratch.to_owned());
    request.settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    request
}

fn open(scratch: &Path, settings: &[(&str, &str)]) -> Box<dyn Target> {
    crate::open(&request(scratch, settings)).unwrap()
}

fn clean(request: &OpenRequest) -> Vec<String> {
    clean_leftovers(&SERVERS.postgres, request).unwrap()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn folders(scratch: &Path) -> Vec<PathBuf> {
    entries(scratch).into_iter().filter(|path| path.is_dir()).collect()
}

fn started(scratch: &Path) -> Vec<i32> {
    let of_dir = |dir: PathBuf| Some(Owner::read(&dir).ok()??.started(&dir));
    folders(scratch).into_iter().filter_map(of_dir).flatten().collect()
}

fn lives(pid: i32) -> bool {
    group(pid).is_some()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "not within two minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The owner of the server in `dir`, and the server's process.
fn server_in(dir: &Path) -> (Owner, i32) {
    let owner = Owner::read(dir).unwrap().unwrap();
    let postmaster = *owner.started(dir).last().unwrap();
    (owner, postmaster)
}

/// System V segments of these creators.
fn segments_of(creators: &[i32]) -> usize {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = |line: &str| line.split_whitespace().nth(4).and_then(|pid| pid.parse().ok());
    table.lines().filter(|line| creator(line).is_some_and(|pid| creators.contains(&pid))).count()
}

/// Files of shared memory that processes of the server's user map.
fn mapped(pids: &str) -> BTreeSet<PathBuf> {
    let user = User::choose(&SERVERS.postgres).unwrap();
    let command = format!("cat /proc/{pids}/maps 2>/dev/null");
    let maps = user.command("sh", Signal::SIGKILL).args(["-c", &command]).output().unwrap().stdout;
    let maps = String::from_utf8_lossy(&maps).into_owned();
    let file = |line: &str| line.find("/dev/shm/PostgreSQL.").map(|at| PathBuf::from(line[at..].trim_end()));
    maps.lines().filter_map(file).collect()
}

#[test]
fn a_private_server_counts_statements_if_the_library_is_loaded() {
    let statements = |settings: &[(&str, &str)]| {
        let scratch = scratch();
        let target = open(scratch.path(), settings);
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
    let settings = [("wal_buffers", "8MB"), ("event_source", "it's 'here'")];
    let server = open(scratch.path(), &settings);
    let [dir] = &entries(scratch.path())[..] else { panic!("{:?}", entries(scratch.path())) };
    let (_, postmaster) = server_in(dir);
    assert!(lives(postmaster));
    let notes = server.info().unwrap().notes.join("\n");
    for part in ["private PostgreSQL 1", "next to the results", "max_connections=300", "event_source=it's 'here'"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let sql = "select concat_ws(' ', current_setting('wal_buffers'), current_setting('data_checksums'), \
               current_setting('listen_addresses') = '', current_setting('event_source'), current_setting('fsync'))";
    let socket = dir.join("socket");
    let psql = Command::new("psql").args(["-XAtc", sql, "-U", "postgres", "-h"]).arg(socket).arg("postgres").output();
    let psql = psql.unwrap();
    assert_eq!(String::from_utf8_lossy(&psql.stdout).trim(), "8MB on t it's 'here' on", "{psql:?}");

    // A live owner's server is not touched.
    assert_eq!(clean(&request(scratch.path(), &[])), Vec::<String>::new());
    assert!(lives(postmaster));

    let unwound = std::thread::spawn(move || {
        let _server = server;
        std::panic::resume_unwind(Box::new("as in a panic"));
    });
    assert!(unwound.join().is_err());
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
    assert!(!lives(postmaster));
    assert_eq!(segments_of(&[postmaster]), 0);
}

#[test]
fn a_server_that_was_killed_leaves_nothing() {
    let scratch = scratch();
    let server = open(scratch.path(), &[]);
    let dir = entries(scratch.path()).remove(0);
    let (owner, postmaster) = server_in(&dir);
    // Its processes create more shared memory when they begin to work.
    std::thread::sleep(Duration::from_millis(700));
    let name = dir.file_name().unwrap().to_str().unwrap();
    let processes = Marks { name, uid: owner.uid, started: &[] }.running();
    assert!(processes.len() > 3, "{}", processes.len());
    let files: BTreeSet<PathBuf> = processes.iter().flat_map(|pid| mapped(&pid.to_string())).collect();
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();
    wait_until("the server ends", || !lives(postmaster));
    assert!(!files.is_empty() && files.iter().all(|file| file.exists()), "{files:?}");
    assert_eq!(segments_of(&[postmaster]), 1);
    drop(server);
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
    assert!(!files.iter().any(|file| file.exists()), "{files:?}");
    // It is destroyed when the last process ends.
    wait_until("the segment is destroyed", || segments_of(&[postmaster]) == 0);
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let scratch = scratch();
    let bin = scratch.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let user = User::choose(&SERVERS.postgres).unwrap();
    symlink(Program::find(&SERVERS.postgres, None, &user).unwrap().path, bin.join("postgres")).unwrap();
    let script = "#!/bin/sh\necho 'initdb: error: could not write file \"x\": No space left on device' >&2\nexit 1\n";
    std::fs::write(bin.join("initdb"), script).unwrap();
    std::fs::set_permissions(bin.join("initdb"), Permissions::from_mode(0o755)).unwrap();
    let results = scratch.path().join("results");
    let mut request = request(&results, &[]);
    request.url = format!("postgres-temp:?bin={}", bin.display());
    let text = crate::open(&request).map(drop).unwrap_err().to_string();
    assert!(text.contains("initdb failed") && text.contains("No space left on device"), "{text}");
    assert!(text.contains(&format!("under '{}' is full: free", results.display())), "{text}");
    assert!(!results.exists());
}

/// Not a test: the process that others kill.
#[test]
#[ignore = "run by tests that kill it"]
fn owner_process() {
    let Some((url, scratch)) = std::env::var(OWNED).ok().zip(std::env::var_os(SCRATCH).map(PathBuf::from)) else {
        return;
    };
    let mut request = request(&scratch, &[]);
    let (url, replicas) = url.split_once(' ').unwrap();
    (request.url, request.replicas) = (url.to_owned(), replicas.parse().unwrap());
    // A test may kill the server before it is ready.
    let server = crate::open(&request);
    std::fs::write(scratch.join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(60));
    drop(server);
}

/// Starts a process that owns the servers of `url` with so many replicas.
fn owner(url: &str, replicas: u32, scratch: &Path) -> std::process::Child {
    let name = format!("{}::owner_process", module_path!().split_once("::").unwrap().1);
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", &name, "--ignored"]).env(OWNED, format!("{url} {replicas}")).env(SCRATCH, scratch);
    owner.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let scratch = scratch();
    let mut killed = owner("postgres-temp:", 1, scratch.path());
    wait_until("the owner has a server", || scratch.path().join("ready").exists());
    std::fs::remove_file(scratch.path().join("ready")).unwrap();
    // A primary and its standby, each with a folder of its own.
    let dirs = entries(scratch.path());
    let servers: Vec<(Owner, i32)> = dirs.iter().map(|dir| server_in(dir)).collect();
    assert!(servers.len() == 2 && servers.iter().all(|(owner, _)| owner.pid == killed.id().cast_signed()));
    let run = || servers.iter().filter(|(_, postmaster)| lives(*postmaster)).count();
    let request = request(scratch.path(), &[]);
    assert_eq!(clean(&request), Vec::<String>::new());
    assert_eq!(run(), 2);

    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().signal(), Some(9));
    wait_until("the servers die with their owner", || run() == 0);
    assert!(dirs.iter().all(|dir| dir.join("data").exists()));
    // Looks like one of loadline's, but contains a foreign file.
    let foreign = scratch.path().join("loadline-pg-mine");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    let removed = clean(&request);
    assert_eq!(removed.len(), 2, "{removed:?}");
    for dir in dirs {
        assert!(removed.iter().any(|line| line.starts_with(&format!("removed '{}'", dir.display()))), "{removed:?}");
    }
    assert!(foreign.join("letter").exists());
    assert_eq!(entries(scratch.path()), [foreign]);
}

#[test]
fn a_server_killed_before_it_is_ready_leaves_nothing() {
    let scratch = scratch();
    let mut owner = owner("postgres-temp:", 0, scratch.path());
    while segments_of(&started(scratch.path())) == 0 {
        assert!(owner.try_wait().unwrap().is_none(), "its server has no shared memory");
    }
    let started = started(scratch.path());
    let postmaster = *started.last().unwrap();
    let files = mapped(&postmaster.to_string());
    kill(Pid::from_raw(postmaster), Signal::SIGKILL).unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    clean(&request(scratch.path(), &[]));
    assert_eq!(segments_of(&started), 0);
    assert!(!files.iter().any(|file| file.exists()), "{files:?}");
    assert_eq!(folders(scratch.path()), Vec::<PathBuf>::new());
}

/// A script stands for `mariadb-install-db` whose child would go on for long.
#[test]
fn nothing_outlives_an_owner_that_dies_while_a_data_folder_is_made() {
    let (scratch, bin) = (scratch(), scratch());
    let (open, made) = (Permissions::from_mode(0o777), bin.path().join("made"));
    let child = format!("sh -c 'touch {}; sleep 300; :' mariadbd --bootstrap \"$@\"; exit 0", made.display());
    for (name, script) in [("mariadbd", "exec /usr/sbin/mariadbd \"$@\""), ("mariadb-install-db", child.as_str())] {
        std::fs::write(bin.path().join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(bin.path().join(name), open.clone()).unwrap();
    }
    std::fs::set_permissions(bin.path(), open).unwrap();
    let mut request = request(scratch.path(), &[]);
    request.url = format!("mariadb-temp:?bin={}", bin.path().display());
    let mut killed = owner(&request.url, 0, scratch.path());
    wait_until("the child runs", || made.exists());
    let [dir] = &entries(scratch.path())[..] else { panic!("{:?}", entries(scratch.path())) };
    let uid = User::choose(&SERVERS.mariadb).unwrap().uid;
    let marks = Marks { name: dir.file_name().unwrap().to_str().unwrap(), uid, started: &[] };
    assert!(!marks.running().is_empty());
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("all die with their owner", || marks.running().is_empty());
    assert_eq!(clean_leftovers(&SERVERS.mariadb, &request).unwrap().len(), 1);
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "nightly: hundreds of starts of servers"]
fn nothing_is_left_by_kills_at_any_moment() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number(SEED).unwrap_or(u64::from(now.subsec_nanos()));
    let mut random = seed;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let targets = [
        // Slowest start, ms: kills are spread over a little more than that.
        (&SERVERS.postgres, "postgres-temp:", 0, 3000),
        (&SERVERS.mariadb, "mariadb-temp:", 0, 5000),
        (&SERVERS.postgres, "postgres-temp:", 1, 5000),
        (&SERVERS.galera, "galera-temp:?nodes=2", 0, 12_000),
    ];
    for round in 0..number(KILLS).unwrap_or(200) {
        // Mostly PostgreSQL, which has shared memory.
        let (product, url, replicas, most) = targets[[0, 2, 0, 1, 0, 2, 0, 3][round as usize % 8]];
        let (delay, first) = (below(most), below(3));
        let what = format!("seed {seed}, round {round}, {url}, {replicas} replicas, {delay} ms, {first}");
        let scratch = scratch();
        let before: BTreeSet<PathBuf> = entries(Path::new("/dev/shm")).into_iter().collect();
        let mut owner = owner(url, replicas, scratch.path());
        std::thread::sleep(Duration::from_millis(delay));
        // 0: the owner only; 1: then what it started; 2: that first, while the owner sees it.
        let mut pids = started(scratch.path());
        let kill_servers = |pids: &[i32]| {
            for pid in pids {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
        };
        if first == 2 {
            kill_servers(&pids);
            std::thread::sleep(Duration::from_millis(below(300)));
            pids.extend(started(scratch.path()));
        }
        owner.kill().unwrap();
        owner.wait().unwrap();
        pids.extend(started(scratch.path()));
        if first == 1 {
            kill_servers(&pids);
        }
        let folders = || folders(scratch.path());
        let name = |dir: PathBuf| dir.file_name().unwrap().to_str().unwrap().to_owned();
        let (names, uid) = (folders().into_iter().map(name).collect::<Vec<_>>(), User::choose(product).unwrap().uid);
        let left = || names.iter().flat_map(|name| Marks { name, uid, started: &pids }.running()).collect::<Vec<_>>();
        // What brings data to a node of a cluster ends by cleaning only.
        if !url.starts_with("galera") {
            wait_until(&format!("all die with their owner, {what}"), || left().is_empty());
        }
        let mut request = request(scratch.path(), &[]);
        request.url = url.to_owned();
        let clean = || clean_leftovers(product, &request).unwrap_or_else(|e| panic!("{what}: {e}"));
        clean();
        for dir in folders() {
            // Without an owner file it might be in the making.
            assert!(entries(&dir).iter().all(|file| file.ends_with(OWNER)), "{what}");
            let long_ago = std::time::SystemTime::now() - Duration::from_secs(120);
            std::fs::File::open(&dir).unwrap().set_modified(long_ago).unwrap();
        }
        clean();
        assert_eq!(folders(), Vec::<PathBuf>::new(), "{what}");
        assert!(left().is_empty(), "{what}: {:?}", left());
        assert_eq!(segments_of(&pids), 0, "{what}");
        let orphans = || {
            let mapped = mapped("[0-9]*");
            let mut files = entries(Path::new("/dev/shm")).into_iter();
            files.any(|file| {
                file.to_str().unwrap().contains("PostgreSQL.") && !before.contains(&file) && !mapped.contains(&file)
            })
        };
        // Those of other servers on this machine come and go.
        wait_until(&format!("shared memory is removed, {what}"), || !orphans());
    }
}

#[test]
fn a_leftover_whose_server_still_runs_is_stopped_by_the_next_start() {
    let scratch = scratch();
    let server = open(scratch.path(), &[]);
    let dir = entries(scratch.path()).remove(0);
    let (_, postmaster) = server_in(&dir);
    // As if the owner had died while the server runs: its lock is free.
    std::fs::copy(dir.join(OWNER), scratch.path().join("copy")).unwrap();
    std::fs::rename(scratch.path().join("copy"), dir.join(OWNER)).unwrap();
    let next = open(scratch.path(), &[]);
    assert!(!lives(postmaster));
    assert!(!dir.exists());
    let notes = next.info().unwrap().notes.join("\n");
    assert!(notes.contains(&format!("removed '{}'", dir.display())) && notes.contains("still running"), "{notes}");
    drop(next);
    drop(server);
    assert_eq!(entries(scratch.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_long_path_and_a_closed_one() {
    let scratch = scratch();
    let long = scratch.path().join("a, b ".repeat(20));
    let server = open(&long, &[]);
    let dir = entries(&long).remove(0);
    let sockets = Path::new("/tmp").join(format!("{}-socket", dir.file_name().unwrap().to_str().unwrap()));
    assert!(sockets.join(".s.PGSQL.5432").exists(), "{sockets:?}");
    assert_eq!(sockets.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(server);
    assert!(!sockets.exists() && !long.exists());

    // A folder to which only root has access; without root there is no such case.
    let closed = scratch.path().join("closed");
    DirBuilder::new().mode(0o700).create(&closed).unwrap();
    let mut setup = Setup::new(&SERVERS.postgres, &request(scratch.path(), &[])).unwrap();
    let place = setup.place(&closed).unwrap();
    setup.url.dir = Some(closed.clone());
    let explicit = setup.place(scratch.path());
    if setup.user.switch {
        assert_eq!(place.parent, Path::new("/var/tmp"));
        assert!(place.note.contains("the same device as the results"), "{}", place.note);
        assert!(matches!(explicit, Err(TargetError::Usage(text)) if text.contains("chmod o+x")));
    } else {
        assert_eq!(place.parent, std::fs::canonicalize(&closed).unwrap());
        assert_eq!(explicit.unwrap().parent, place.parent);
    }
}

#[test]
fn too_little_memory_is_refused_with_numbers() {
    const GIB: u64 = 1 << 30;
    let mut setup = Setup::new(&SERVERS.postgres, &request(Path::new("/"), &[])).unwrap();
    let mut check = |servers: u32, memory: u64| {
        (setup.servers, setup.memory) = (servers, memory / u64::from(servers));
        setup.check_memory(GIB).map_or_else(|e| e.to_string(), |()| String::new())
    };
    assert_eq!(check(3, 4 * GIB), "");
    assert_eq!(check(1, GIB / 2), "", "a single server is left to PostgreSQL");
    let text = check(3, 3 * GIB);
    assert!(["3 private", "3.4 GiB", "1.1 GiB each", "3.0 GiB"].iter().all(|part| text.contains(part)), "{text}");
}
