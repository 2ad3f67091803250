//! Tests with real servers: start, stop, kill of either side, leftovers.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::owner::{self, OWNER, lives};
use super::*;
use crate::target::Target;

/// URL, replicas and scratch folder of the process that is killed.
const OWNED: &str = "LOADLINE_TEST_OWNED";
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

/// A script that stands for a program.
fn program(bin: &Path, name: &str, script: &str) {
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(name), Permissions::from_mode(0o755)).unwrap();
}

fn clean(request: &OpenRequest) -> Vec<String> {
    crate::kind_of(&request.url).unwrap().clean_leftovers(request).unwrap()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn folders(scratch: &Path) -> Vec<PathBuf> {
    entries(scratch).into_iter().filter(|path| path.is_dir()).collect()
}

/// Process of the server or the helper of initdb that has the data folder in `dir`.
fn postmaster(dir: &Path) -> Option<i32> {
    // That of a helper is negative.
    std::fs::read_to_string(dir.join("data/postmaster.pid")).ok()?.lines().next()?.parse().ok().map(i32::abs)
}

fn postmasters(scratch: &Path) -> Vec<i32> {
    folders(scratch).iter().filter_map(|dir| postmaster(dir)).collect()
}

/// Processes of the servers in these folders.
fn running(product: &Product, dirs: &[PathBuf]) -> Vec<Pid> {
    let uid = User::choose(product).unwrap().uid;
    dirs.iter().flat_map(|dir| owner::running(dir.file_name().unwrap().to_str().unwrap(), uid)).collect()
}

fn kill_all(pids: &[Pid]) {
    for pid in pids {
        let _ = kill(*pid, Signal::SIGKILL);
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "not within two minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// System V segments of these creators.
fn segments_of(creators: &[i32]) -> usize {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = |line: &str| line.split_whitespace().nth(4).and_then(|pid| pid.parse().ok());
    table.lines().filter(|line| creator(line).is_some_and(|pid| creators.contains(&pid))).count()
}

/// Files of shared memory that no process of the server's user maps, but those of `before`.
fn orphans(before: &[PathBuf]) -> bool {
    let user = User::choose(&SERVERS.postgres).unwrap();
    let maps = user.command("sh", Signal::SIGKILL).args(["-c", "cat /proc/[0-9]*/maps 2>/dev/null"]).output().unwrap();
    let maps = String::from_utf8_lossy(&maps.stdout);
    let is_orphan = |file: &PathBuf| {
        let file = file.to_str().unwrap();
        file.contains("PostgreSQL.") && !maps.contains(file)
    };
    entries(Path::new("/dev/shm")).iter().any(|file| is_orphan(file) && !before.contains(file))
}

#[test]
fn a_private_server_counts_statements_if_the_library_is_loaded() {
    let statements = |settings: &[(&str, &str)]| {
        let scratch = scratch();
        let target = open(scratch.path(), settings);
        target.abilities().tables.unwrap().views().unwrap().remove(0)
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
    let postmaster = postmaster(dir).unwrap();
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

/// Scripts stand for programs.
#[test]
fn a_full_disk_and_an_old_version_are_named_and_nothing_is_left() {
    let user = User::choose(&SERVERS.postgres).unwrap();
    let postgres = Program::find(&SERVERS.postgres, None, &user).unwrap().path;
    let postgres = format!("exec {} \"$@\"", postgres.display());
    let full = "echo 'initdb: error: could not write file \"x\": No space left on device' >&2\nexit 1";
    let old = "echo 'mariadbd  Ver 10.5.29-MariaDB for Linux on x86_64'";
    for (scheme, programs, words) in [
        (
            "postgres-temp",
            &[("postgres", postgres.as_str()), ("initdb", full)][..],
            ["initdb failed", "No space left on device", "under '{results}' is full: free"],
        ),
        (
            "mariadb-temp",
            &[("mariadbd", old)],
            ["'{bin}/mariadbd' is version 10.5.29-MariaDB, but", "10.6 and newer", "mariadb-temp:?bin=/dir"],
        ),
    ] {
        let (bin, results) = (scratch(), scratch());
        let results = results.path().join("results");
        programs.iter().for_each(|(name, script)| program(bin.path(), name, script));
        let mut request = request(&results, &[]);
        let shown = [("bin", bin.path().to_str().unwrap()), ("results", results.to_str().unwrap())];
        request.url = fill(&format!("{scheme}:?bin={{bin}}"), &shown);
        let text = crate::open(&request).map(drop).unwrap_err().to_string();
        assert!(words.iter().all(|part| text.contains(&fill(part, &shown))), "{text}");
        assert!(!results.exists());
    }
}

#[test]
fn a_program_that_does_not_say_its_version_is_ended_and_refused() {
    let bin = scratch();
    std::fs::set_permissions(bin.path(), Permissions::from_mode(0o777)).unwrap();
    let pid = bin.path().join("pid");
    program(bin.path(), "mysqld", &format!("sleep 60 & echo $! >{}; wait", pid.display()));
    let user = User::choose(&SERVERS.mysql).unwrap();
    let said = Program::ask(&bin.path().join("mysqld"), &user, Duration::from_secs(1));
    let text = said.map(drop).unwrap_err().to_string();
    assert!(text.ends_with("it has not ended in 1 s. Name other binaries with ?bin=/dir"), "{text}");
    let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    wait_until("what it started ends", || !lives(pid));
}

#[test]
fn nodes_of_a_cluster_need_programs() {
    let dir = scratch();
    program(dir.path(), "rsync", "");
    let check = |product: &Product, servers| product.check_needs(servers, &[dir.path().to_owned()]);
    let text = check(&SERVERS.galera, 3).unwrap_err().to_string();
    assert!(text.starts_with("'wsrep_sst_rsync' is missing") && text.contains("rsync mariadb-server"), "{text}");
    assert!(check(&SERVERS.galera, 1).is_ok() && check(&SERVERS.mariadb, 2).is_ok());
    program(dir.path(), "wsrep_sst_rsync", "");
    assert!(check(&SERVERS.galera, 3).is_ok());
}

/// Scripts stand for the programs of a tree that was unpacked anywhere, and write down their arguments.
#[test]
fn a_named_tree_leads_to_its_own_files() {
    let (tree, scratch) = (scratch(), scratch());
    let (bin, said) = (tree.path().join("usr/sbin"), tree.path().join("said"));
    std::fs::create_dir_all(&bin).unwrap();
    let base = format!("--basedir={}", tree.path().join("usr").display());
    let cases = [
        ("mariadb-temp:?", "mariadbd", "mariadb-install-db", "x  Ver 10.11.6-MariaDB for Linux", true),
        ("mysql-temp:?", "mysqld", "mysqld", "x  Ver 8.0.33 for Linux", true),
        ("galera-temp:?nodes=1&provider=/bin/sh&", "mariadbd", "mariadb-install-db", "x  Ver 10.11.6-MariaDB", true),
        ("postgres-temp:?", "postgres", "initdb", "postgres (PostgreSQL) 17.1", false),
    ];
    for (url, server, maker, version, has) in cases {
        std::fs::write(&said, "").unwrap();
        std::fs::set_permissions(&said, Permissions::from_mode(0o666)).unwrap();
        let script =
            format!("[ \"$1\" = --version ] && echo '{version}' && exit\necho \"$0\" \"$@\" >>{}", said.display());
        for name in [server, maker] {
            program(&bin, name, &script);
        }
        let mut request = request(scratch.path(), &[]);
        request.url = format!("{url}bin={}", bin.display());
        let text = crate::open(&request).map(drop).unwrap_err().to_string();
        let said = std::fs::read_to_string(&said).unwrap();
        let lines: Vec<&str> = said.lines().filter(|line| !line.contains(" -C ")).collect();
        let of = |name: &str| lines.iter().any(|line| line.starts_with(bin.join(name).to_str().unwrap()));
        assert!(lines.len() >= 2 && of(server) && of(maker), "{url}: {text}: {said}");
        assert!(lines.iter().all(|line| line.split(' ').any(|argument| argument == base) == has), "{url}: {said}");
    }
}

/// Not a test: the process that others kill.
#[test]
#[ignore = "run by tests that kill it"]
fn owner_process() {
    let Ok(owned) = std::env::var(OWNED) else { return };
    let [url, replicas, scratch] = owned.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{owned}") };
    let (scratch, mut request) = (Path::new(scratch), request(Path::new(scratch), &[]));
    (request.url, request.replicas) = (url.to_owned(), replicas.parse().unwrap());
    // A test may kill the server before it is ready.
    let server = crate::open(&request);
    std::fs::write(scratch.join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(60));
    drop(server);
}

/// Starts a process that owns the servers of `case`: a URL and the number of replicas.
fn owner(case: &str, scratch: &Path) -> std::process::Child {
    let name = format!("{}::owner_process", module_path!().split_once("::").unwrap().1);
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", &name, "--ignored"]).env(OWNED, format!("{case} {}", scratch.display()));
    owner.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Who is killed, in this order.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Killed {
    Owner,
    OwnerThenServers,
    /// The owner sees it for so many ms.
    ServersThenOwner(u64),
}

/// Kills what has been started of `case` at `moment`, cleans, and returns what cleaning says. Nothing is left.
fn kill_and_clean(case: &str, killed: Killed, moment: impl FnOnce(&Path), what: &str) -> Vec<String> {
    let scratch = scratch();
    let before = entries(Path::new("/dev/shm"));
    let products = [&SERVERS.postgres, &SERVERS.mariadb, &SERVERS.galera];
    let product = products.into_iter().find(|product| case.starts_with(&product.scheme)).unwrap();
    let mut owner = owner(case, scratch.path());
    moment(scratch.path());
    let folders = || folders(scratch.path());
    let (mut dirs, mut pids) = (folders(), postmasters(scratch.path()));
    if let Killed::ServersThenOwner(ms) = killed {
        kill_all(&running(product, &dirs));
        std::thread::sleep(Duration::from_millis(ms));
        (dirs, pids) = (folders(), [pids, postmasters(scratch.path())].concat());
    }
    let mut request = request(scratch.path(), &[]);
    case.split(' ').next().unwrap().clone_into(&mut request.url);
    let clean = || clean(&request);
    if killed == Killed::Owner {
        assert_eq!(clean(), Vec::<String>::new(), "a living owner's servers are not touched, {what}");
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    dirs.extend(folders());
    pids.extend(postmasters(scratch.path()));
    if killed == Killed::OwnerThenServers {
        kill_all(&running(product, &dirs));
    }
    // What brings data to a node of a cluster ends by cleaning only.
    if !case.starts_with("galera") {
        wait_until(&format!("all die with their owner, {what}"), || running(product, &dirs).is_empty());
    }
    let mut done = clean();
    for dir in folders() {
        // Without an owner file it might be in the making.
        assert!(entries(&dir).iter().all(|file| file.ends_with(OWNER)), "{what}");
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(120);
        std::fs::File::open(&dir).unwrap().set_modified(long_ago).unwrap();
    }
    done.extend(clean());
    assert_eq!(folders(), Vec::<PathBuf>::new(), "{what}");
    assert_eq!(running(product, &dirs), [], "{what}");
    assert_eq!(segments_of(&pids), 0, "{what}");
    // Those of other servers on this machine come and go.
    wait_until(&format!("shared memory is removed, {what}"), || !orphans(&before));
    done
}

/// Waits until one of the servers has shared memory.
fn has_memory(scratch: &Path) {
    wait_until("a server has shared memory", || segments_of(&postmasters(scratch)) > 0);
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let ready = |scratch: &Path| wait_until("the owner has servers", || scratch.join("ready").exists());
    let removed = kill_and_clean("postgres-temp: 1", Killed::Owner, ready, "a primary and its standby");
    assert!(removed.len() == 2 && removed.iter().all(|line| line.starts_with("removed '")), "{removed:?}");
    kill_and_clean("postgres-temp: 0", Killed::OwnerThenServers, has_memory, "before it is ready");
    kill_and_clean("postgres-temp: 0", Killed::ServersThenOwner(0), has_memory, "before it is ready, its server first");
}

#[test]
fn a_server_that_was_killed_leaves_nothing_and_a_foreign_file_stays() {
    let (scratch, before) = (scratch(), entries(Path::new("/dev/shm")));
    let server = open(scratch.path(), &[]);
    let dirs = entries(scratch.path());
    let postmaster = postmaster(&dirs[0]).unwrap();
    // Its processes create more shared memory when they begin to work.
    std::thread::sleep(Duration::from_millis(700));
    let processes = running(&SERVERS.postgres, &dirs);
    assert!(processes.len() > 3, "{}", processes.len());
    kill_all(&processes);
    wait_until("the server ends", || running(&SERVERS.postgres, &dirs).is_empty());
    assert!(orphans(&before) && segments_of(&[postmaster]) == 1);
    // Looks like one of loadline's, but contains a foreign file.
    let foreign = scratch.path().join("loadline-pg-mine");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    drop(server);
    assert_eq!(clean(&request(scratch.path(), &[])), Vec::<String>::new());
    assert!(foreign.join("letter").exists());
    assert_eq!(entries(scratch.path()), [foreign]);
    wait_until("its memory is removed", || !orphans(&before) && segments_of(&[postmaster]) == 0);
}

/// A script stands for `mariadb-install-db` whose child would go on for long.
#[test]
fn nothing_outlives_an_owner_that_dies_while_a_data_folder_is_made() {
    let (scratch, bin) = (scratch(), scratch());
    let made = bin.path().join("made");
    let child = format!("sh -c 'touch {}; sleep 300; :' mariadbd --bootstrap \"$@\"; exit 0", made.display());
    for (name, script) in [("mariadbd", "exec /usr/sbin/mariadbd \"$@\""), ("mariadb-install-db", child.as_str())] {
        program(bin.path(), name, script);
    }
    std::fs::set_permissions(bin.path(), Permissions::from_mode(0o777)).unwrap();
    let mut request = request(scratch.path(), &[]);
    request.url = format!("mariadb-temp:?bin={}", bin.path().display());
    let mut killed = owner(&format!("{} 0", request.url), scratch.path());
    wait_until("the child runs", || made.exists());
    let dirs = entries(scratch.path());
    let runs = || !running(&SERVERS.mariadb, &dirs).is_empty();
    assert!(runs());
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("all die with their owner", || !runs());
    assert_eq!(clean(&request).len(), 1);
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
    // Slowest start, ms: kills are spread over a little more than that.
    let cases = [
        ("postgres-temp: 0", 3000),
        ("mariadb-temp: 0", 5000),
        ("postgres-temp: 1", 5000),
        ("galera-temp:?nodes=2 0", 12_000),
    ];
    for round in 0..number(KILLS).unwrap_or(200) {
        // Mostly PostgreSQL, which has shared memory.
        let (case, most) = cases[[0, 2, 0, 1, 0, 2, 0, 3][round as usize % 8]];
        let (delay, seen) = (below(most), below(300));
        let killed = [Killed::Owner, Killed::OwnerThenServers, Killed::ServersThenOwner(seen)][below(3) as usize];
        let what = format!("seed {seed}, round {round}, {case} replicas, {delay} ms, {killed:?}");
        kill_and_clean(case, killed, |_| std::thread::sleep(Duration::from_millis(delay)), &what);
    }
}

#[test]
fn a_leftover_whose_server_still_runs_is_stopped_by_the_next_start() {
    let scratch = scratch();
    let server = open(scratch.path(), &[]);
    let dir = entries(scratch.path()).remove(0);
    let postmaster = postmaster(&dir).unwrap();
    // As if the owner, of an older build, had died while the server runs: its lock is free.
    let mut old: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join(OWNER)).unwrap()).unwrap();
    assert!(old.as_object_mut().unwrap().remove("program").is_some());
    std::fs::write(scratch.path().join("copy"), old.to_string()).unwrap();
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
