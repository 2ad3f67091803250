//! Shared parts of the end-to-end tests: running the real binary, and a private PostgreSQL.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod demands;
mod figures;
mod mariadb;
mod sound;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::process::Output;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Child, Command, Stdio};
pub(crate) use std::time::Duration;

pub(crate) use demands::{hold_runs, hold_runs_often};
pub(crate) use figures::*;
pub(crate) use mariadb::Maria;
pub(crate) use nix::sys::signal::Signal;
pub(crate) use serde_json::Value;
pub(crate) use sound::*;

/// Time after which a command counts as hung, also on a busy machine.
pub(crate) const HANGS: Duration = Duration::from_secs(120);

/// How to get the servers: said by every test that needs one, which then fails.
const INSTALL: &str = "is the server missing? apt-get install postgresql mariadb-server (./test does it as root)";

/// Folder of the files that tests read.
pub(crate) const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/data");

/// The documented workload of a user.
pub(crate) const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/queue.toml");

/// Passwords and tokens of the tests, which are never said or stored.
pub(crate) const PASSWORDS: [&str; 4] = ["s3cr3tpw", "tops3cret", "wr0ngpass", "s3cretT0ken"];

pub(crate) fn loadline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    // Nothing of the tester's environment reaches the runs.
    for name in ["PGPASSWORD", "PGUSER", "PGHOST", "PGPORT", "PGDATABASE", "PGSSLMODE", "PGPASSFILE", "MYSQL_PWD"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Fetches DuckDB's library to where `.cargo/config.toml` has it.
pub(crate) fn fetch_duckdb() {
    let fetched = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/duckdb")).output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
}

/// A folder for results that a server running as another user can reach, on a disk.
pub(crate) fn results() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("loadline-test-").tempdir_in("/var/tmp").unwrap()
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn from_output(output: Output) -> Ran {
        let err = String::from_utf8(output.stderr).unwrap();
        let pages = err.lines().find(|l| l.contains("the pages of the tests could not be made"));
        assert!(pages.is_none_or(|why| why.contains("No space left")), "{err}");
        Ran { code: output.status.code().unwrap_or(-1), out: String::from_utf8(output.stdout).unwrap(), err }
    }

    pub(crate) fn said(&self) -> String {
        format!("exit {}\n--- out\n{}\n--- err\n{}", self.code, self.out, self.err)
    }

    /// Demands this exit code, and each of `parts` on standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        let unsaid: Vec<_> = parts.iter().filter(|part| !self.err.contains(**part)).collect();
        assert!(self.code == code && unsaid.is_empty(), "not {code} or without {unsaid:?}: {}", self.said());
    }

    /// The run folder: the last line of standard output.
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(self.out.lines().last().unwrap_or_else(|| panic!("no output\n{}", self.said())))
    }
}

/// `args`, of a run without second tries unless it is about them: tests disturb each other, and count the tests of a run.
pub(crate) fn without_tries<S: AsRef<str>>(args: &[S]) -> Vec<&str> {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let measures = args.first().is_some_and(|command| ["run", "ab", "replica-cost"].contains(command));
    let told = args.iter().any(|arg| arg.starts_with("--patience") || arg.starts_with("--resume"));
    let patience: &[&str] = if measures && !told { &["--patience", "0"] } else { &[] };
    [&args, patience].concat()
}

/// Starts it; [`Ran::from_output`] takes what it says.
pub(crate) fn start<S: AsRef<str>>(args: &[S]) -> Child {
    loadline().args(without_tries(args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn ended(child: Child) -> Ran {
    Ran::from_output(child.wait_with_output().unwrap())
}

pub(crate) fn run<S: AsRef<str>>(args: &[S]) -> Ran {
    Ran::from_output(loadline().args(without_tries(args)).output().unwrap())
}

/// Runs loadline in a process namespace of its own: it cannot see the server's processes, as on another machine. Needs root.
pub(crate) fn far<S: AsRef<str>>(args: &[S]) -> Ran {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_loadline")]).args(without_tries(args));
    Ran::from_output(command.output().unwrap())
}

#[track_caller]
pub(crate) fn ok<S: AsRef<str>>(args: &[S]) -> Ran {
    let ran = run(args);
    assert_eq!(ran.code, 0, "{:?}: {}", without_tries(args), ran.said());
    ran
}

/// The words of a command line of which none holds a blank.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The words of a command line, of which one with blanks is within single quotes.
pub(crate) fn quoted(line: &str) -> Vec<&str> {
    line.split('\'').enumerate().flat_map(|(n, part)| if n % 2 == 1 { vec![part] } else { words(part) }).collect()
}

/// A text, and what its `names` stand for.
pub(crate) fn filled(text: &str, names: &[(&str, &str)]) -> String {
    names.iter().fold(text.to_owned(), |text, (name, of)| text.replace(name, of))
}

pub(crate) fn command(line: &str) -> Ran {
    run(&words(line))
}

/// Output of a command line of [`words`], which must succeed.
#[track_caller]
pub(crate) fn printed(line: &str) -> String {
    ok(&words(line)).out
}

/// Output of `loadline report` of `folder`; `more` are further words.
#[track_caller]
pub(crate) fn report(folder: &Path, more: &str) -> String {
    printed(&format!("report {} --output - {more}", folder.display()))
}

pub(crate) type Row = BTreeMap<String, String>;

/// The rows of a CSV text none of whose cells is quoted.
pub(crate) fn rows_of(csv: &str) -> Vec<Row> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

pub(crate) fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// The command line of `loadline run` on `target`, with its results in `results`; `more` are further words.
fn line(target: &str, results: impl AsRef<Path>, more: &str) -> String {
    format!("run --target {target} --results {} {more}", results.as_ref().display())
}

/// `loadline run` on `target`; `more` are further words.
pub(crate) fn on(target: &str, results: impl AsRef<Path>, more: &str) -> Ran {
    command(&line(target, results, more))
}

/// Run on `target` that is just started.
pub(crate) fn start_on(target: &str, results: impl AsRef<Path>, more: &str) -> Child {
    start(&words(&line(target, results, more)))
}

pub(crate) fn lat1(target: &str, results: impl AsRef<Path>, more: &str) -> Ran {
    on(target, results, &format!("--workload LGWR-LAT1 {more}"))
}

/// Goes on with the run in `folder`; `more` are further words.
pub(crate) fn resumed(folder: &Path, more: &str) -> Ran {
    command(&format!("run --resume {} {more}", folder.display()))
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn json_of(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

pub(crate) fn manifest_of(folder: &Path) -> Value {
    json_of(&folder.join("manifest.json"))
}

pub(crate) fn tests_of(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("tests.jsonl")).unwrap_or_default();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Workloads of tests, each with the number `key`.
pub(crate) fn made<'a>(tests: &'a [Value], key: &str) -> Vec<(&'a str, u64)> {
    tests.iter().map(|t| (t["workload"].as_str().unwrap(), t[key].as_u64().unwrap())).collect()
}

/// Waits until `condition` holds. How long that may take is no claim: on a busy machine all takes longer.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANGS;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {HANGS:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The single run folder in `results`, once it has `tests` tests.
pub(crate) fn folder_with_tests(results: &Path, tests: usize) -> PathBuf {
    folder_with(results, "tests.jsonl", |text| text.matches('\n').count() >= tests)
}

/// The run folder in `results` whose `file` has a text of which `is` holds, once there is one.
pub(crate) fn folder_with(results: &Path, file: &str, is: impl Fn(&str) -> bool) -> PathBuf {
    let mut found = None;
    wait_for(&format!("{file} of a run"), || {
        let mut folders = std::fs::read_dir(results).into_iter().flatten().flatten().map(|entry| entry.path());
        found = folders.find(|folder| std::fs::read_to_string(folder.join(file)).is_ok_and(|text| is(&text)));
        found.is_some()
    });
    found.unwrap()
}

pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// Ends a process as a crash does.
pub(crate) fn kill(mut child: Child) {
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
}

/// Files left in `results` besides run folders.
pub(crate) fn leftovers(results: &Path) -> Vec<String> {
    let all = std::fs::read_dir(results).into_iter().flatten().flatten();
    let left = all.filter(|entry| !entry.path().join("manifest.json").exists());
    left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A private PostgreSQL of the test's own, as a user's server would be.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    bin: PathBuf,
    child: Option<Child>,
    pub(crate) port: u16,
    /// Library whose functions replace those of the system when it is launched.
    pub(crate) preload: Option<PathBuf>,
}

/// A program of a server, which root runs as `user`.
pub(crate) fn as_user(user: &str, program: impl AsRef<OsStr>) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]).arg(program);
    command
}

/// Gives a folder of a server to `user`, if root runs it as that.
fn give_to(user: &str, folder: &Path) {
    if nix::unistd::geteuid().is_root() {
        done(Command::new("chown").args(["-R", user]).arg(folder));
    }
}

/// Runs a program, which must succeed.
pub(crate) fn done(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}; {INSTALL}"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{command:?}: {said}; {INSTALL}");
}

/// Puts a copy of what `make` makes by `recipe` into the folder `to`. It is made once and kept in cargo's folder, by a name that changes
/// with the recipe: making the data folder of a server takes seconds.
fn made_once(name: &str, recipe: &str, to: &Path, make: impl FnOnce(&Path)) {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let recipe = BuildHasherDefault::<DefaultHasher>::default().hash_one(recipe);
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{recipe:016x}"));
    if !kept.exists() {
        // A server's user may have no access to cargo's folder.
        let new = tempfile::Builder::new().prefix("loadline-made-").tempdir_in("/var/tmp").unwrap();
        make(new.path());
        let whole = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        done(Command::new("cp").arg("-a").arg(new.path().join(".")).arg(whole.path()));
        // Tests in another process may have been faster.
        let moved = std::fs::rename(whole.path(), &kept);
        assert!(kept.exists(), "{moved:?}");
    }
    done(Command::new("cp").arg("-a").arg(kept.join(".")).arg(to));
}

/// Output of a server's client for a statement, or its error.
fn answer(client: &mut Command) -> Result<String, String> {
    let out = client.output().expect(INSTALL);
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

/// A port that is free now: the listener that found it is closed again.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// How the data folder of a server is made: words that the file with the password, tops3cret, follows.
const INITDB: &str = "--no-sync -U boss -A scram-sha-256 --auth-local=trust --pwfile";

impl Server {
    pub(crate) fn bin() -> PathBuf {
        let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path().join("bin"))
            .filter(|b| b.join("initdb").exists())
            .collect();
        found.sort();
        found.pop().expect(INSTALL)
    }

    /// Starts one that accepts passwords on 127.0.0.1 and everybody on its socket.
    pub(crate) fn start(settings: &[&str]) -> Server {
        let bin = Self::bin();
        let dir = tempfile::Builder::new().prefix("loadline-server-").tempdir_in("/var/tmp").unwrap();
        let version = bin.parent().unwrap().file_name().unwrap().display();
        made_once(&format!("postgres-{version}"), INITDB, dir.path(), |made| {
            let secret = made.join("pw");
            std::fs::write(&secret, "tops3cret\n").unwrap();
            give_to("postgres", made);
            let mut initdb = as_user("postgres", bin.join("initdb"));
            done(initdb.args(words(INITDB)).arg(&secret).arg("-D").arg(made.join("data")));
        });
        give_to("postgres", dir.path());
        let mut server = Server { dir, bin, child: None, port: free_port(), preload: None };
        server.launch(settings);
        server
    }

    pub(crate) fn standby(&self) -> Server {
        let dir = tempfile::Builder::new().prefix("loadline-server-").tempdir_in("/var/tmp").unwrap();
        let data = dir.path().join("data");
        give_to("postgres", dir.path());
        let mut copy = as_user("postgres", self.bin.join("pg_basebackup"));
        copy.args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-U", "boss", "-D"]).arg(&data);
        done(copy.args(["-p", &self.port.to_string(), "-h"]).arg(self.dir.path()));
        let mut server = Server { dir, bin: self.bin.clone(), child: None, port: free_port(), preload: None };
        server.launch(&[]);
        server
    }

    /// Starts the postmaster (again).
    pub(crate) fn launch(&mut self, settings: &[&str]) {
        let log = std::fs::File::create(self.dir.path().join("server.log")).unwrap();
        let mut command = as_user("postgres", self.bin.join("postgres"));
        command.arg("-D").arg(self.dir.path().join("data")).arg("-p").arg(self.port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "jit=on"].iter().chain(settings) {
            command.arg("-c").arg(setting);
        }
        command.arg("-c").arg(format!("unix_socket_directories={}", self.dir.path().display()));
        command.envs(self.preload.iter().map(|library| ("LD_PRELOAD", library)));
        self.child = Some(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        wait_for("the server to answer", || self.sql("SELECT 1").is_ok());
    }

    pub(crate) fn folder_path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.path().join("server.log")).unwrap()).into_owned()
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://boss@/postgres?host={}&port={}", self.dir.path().display(), self.port)
    }

    /// URL over TCP with `password`, if any.
    pub(crate) fn tcp(&self, user: &str, password: Option<&str>) -> String {
        let password = password.map_or(String::new(), |p| format!(":{p}"));
        format!("postgres://{user}{password}@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs a statement with psql; unaligned output.
    pub(crate) fn sql(&self, sql: &str) -> Result<String, String> {
        let plain = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-c", sql];
        answer(self.client("psql").args(plain))
    }

    /// A client of PostgreSQL's own, with the words that lead it to this server.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut client = Command::new(self.bin.join(program));
        client.arg("-h").arg(self.dir.path()).args(["-p", &self.port.to_string(), "-U", "boss"]);
        client
    }

    pub(crate) fn has_schema(&self) -> bool {
        self.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'").unwrap() != "0"
    }

    /// Sends a signal (`-STOP`) to the postmaster and its children.
    pub(crate) fn signal_all(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let children = Command::new("pkill").args([signal, "-P", &pid]).status().unwrap();
        let parent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(children.success() && parent.success(), "{signal}");
    }

    /// SIGKILLs the postmaster and waits until its children have gone as well.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let needle = self.dir.path().display().to_string();
            wait_for("the server's processes to end", || {
                let out = Command::new("pgrep").args(["-f", &needle]).output().unwrap();
                out.stdout.is_empty()
            });
            let _ = std::fs::remove_file(self.dir.path().join("data/postmaster.pid"));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal(&child, Signal::SIGQUIT);
            let _ = child.wait();
        }
    }
}
