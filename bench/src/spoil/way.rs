//! A way to spoil a figure, and the scene in which it is done: a throwaway server, the real `loadline`, and its window.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loadline_database::Target;
use loadline_model::check::Outcome as Checked;
use loadline_model::column::column;
use loadline_model::{Check, CheckId, TestRecord};
use loadline_store::StoredRun;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::arena::{Outcome, processes, said_by};
use crate::pgbench::{binary, place};
use crate::sysbench;

/// Target of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
pub(super) enum On {
    /// A server that stays while the way changes it.
    Postgres,
    MariaDb,
    /// A database file of the scene.
    Sqlite,
    Url(String),
}

impl From<String> for On {
    fn from(name: String) -> On {
        match name.as_str() {
            "postgres" => On::Postgres,
            "mariadb" => On::MariaDb,
            "sqlite" => On::Sqlite,
            _ => On::Url(name),
        }
    }
}

/// How a spoiled run must come out.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Must {
    /// Refused or disturbed by this check.
    Fail(CheckId),
    /// Proved, and noted by this check.
    Note(CheckId),
    /// Marked: its record, its report or a warning holds this text.
    Say(String),
    /// Not measured: exit code, and a part of the message.
    Refuse(i32, String),
    /// The figure of this column itself shows it, with this value at least, ns.
    Show(String, f64),
    /// Proved, because it changes nothing; why.
    Withstand(String),
    /// Proved and unmarked: not caught; why.
    Escape(String),
}

/// A way to spoil a figure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Way {
    pub(super) name: String,
    /// Description of the act, for the page.
    pub(super) does: String,
    pub(super) on: On,
    /// Arguments of the run that is spoiled; without what follows it is the control run.
    #[serde(default)]
    pub(super) run: String,
    pub(super) must: Must,
    /// The run is made twice, the first time with the data kept.
    #[serde(default)]
    pub(super) kept: bool,
    /// Statements before the run.
    #[serde(default)]
    before: Vec<String>,
    /// A setting of the server and its value, before the run.
    set: Option<[String; 2]>,
    beside: Option<BesideSpec>,
    /// A statement that another session runs all the time.
    beside_sql: Option<String>,
    /// The command behind which loadline runs.
    #[serde(default)]
    through: String,
    #[serde(default)]
    args: String,
    /// Time from a third of the window on until what follows, ms.
    #[serde(default)]
    after_ms: u64,
    /// A statement in the window, and how many times.
    in_window: Option<String>,
    #[serde(default = "once")]
    times: u32,
    /// A setting of the server and its value, from the window on.
    set_in_window: Option<[String; 2]>,
    /// A trigger with this body on the rows that are updated, from the window on.
    trigger: Option<String>,
    /// All processes of the server are stopped for [`STALL`].
    #[serde(default)]
    stall: bool,
}

fn once() -> u32 {
    1
}

/// Processes beside a run: a shell script, so many times.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct BesideSpec {
    #[serde(default)]
    n: usize,
    #[serde(default)]
    per_cpu: usize,
    /// A command such as `nice -n -5`.
    #[serde(default)]
    through: String,
    script: String,
}

/// A shell script that uses a CPU.
pub(crate) const LOOP: &str = "while :; do :; done";
/// How long something is stopped.
pub(super) const STALL: Duration = Duration::from_millis(700);

impl Way {
    /// Whether it is about others who use the machine.
    pub(super) fn disturbs(&self) -> bool {
        matches!(self.must, Must::Fail(id) if id.is_of_disturbance())
    }

    /// Whether all that is done stands in its table.
    #[cfg(test)]
    pub(super) fn is_data(&self) -> bool {
        let before = self.kept || !self.before.is_empty() || self.set.is_some() || self.beside.is_some();
        let command = self.beside_sql.is_some() || !self.through.is_empty() || !self.args.is_empty();
        before || command || self.acts_in_window()
    }

    /// An act in the window has no arguments of its own.
    #[cfg(test)]
    pub(super) fn does_all_of_its_table(&self) -> bool {
        !self.acts_in_window() || (self.args.is_empty() && self.through.is_empty())
    }

    fn acts_in_window(&self) -> bool {
        self.in_window.is_some() || self.set_in_window.is_some() || self.trigger.is_some() || self.stall
    }

    /// Does what stands in its table.
    pub(super) fn spoil(&self, s: &Scene<'_>) -> Outcome<Seen> {
        if self.kept {
            let first = s.run(&["--keep-data"])?;
            if !first.holds() {
                return Ok(first);
            }
        }
        self.before.iter().try_for_each(|sql| s.server()?.sql(sql).map(drop))?;
        self.set.iter().try_for_each(|setting| s.reload(setting))?;
        let _beside = self.beside.as_ref().map(|beside| beside.start(s)).transpose()?;
        let query = |sql: &String| Beside::start(1, &[], &s.server()?.script(sql));
        let _query = self.beside_sql.as_ref().map(query).transpose()?;
        if self.acts_in_window() {
            return s.in_window(|_| {
                sleep(Duration::from_millis(self.after_ms));
                self.in_window(s)
            });
        }
        let [through, args] = [&self.through, &self.args].map(|text| text.split_whitespace().collect::<Vec<_>>());
        s.run_through(&through, &args)
    }

    fn in_window(&self, s: &Scene<'_>) -> Outcome<()> {
        if let Some(sql) = &self.in_window {
            (0..self.times).try_for_each(|_| s.server()?.sql(sql).map(drop))?;
        }
        self.set_in_window.iter().try_for_each(|setting| s.reload(setting))?;
        if let Some(body) = &self.trigger {
            s.server()?.sql(&format!(
                "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {body} END'; \
                 CREATE TRIGGER spoil BEFORE UPDATE ON loadline.lgwr_lat1_redo FOR EACH ROW EXECUTE FUNCTION spoil()"
            ))?;
        }
        if self.stall { s.server()?.stall(STALL) } else { Ok(()) }
    }
}

impl BesideSpec {
    fn start(&self, s: &Scene<'_>) -> Outcome<Beside> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let through: Vec<&str> = self.through.split_whitespace().collect();
        let script = self.script.replace("{folder}", &s.results.display().to_string());
        Beside::start(self.n + self.per_cpu * cpus, &through, &script)
    }
}

/// Warm-up and window of each run, s.
pub(super) const WARMUP_S: f64 = 1.0;
pub(super) const WINDOW_S: f64 = 3.0;

/// A place for one run, spoiled or clean. What is in it ends with it.
pub(super) struct Scene<'a> {
    pub(super) loadline: &'a Path,
    pub(super) results: &'a Path,
    pub(super) way: &'a Way,
    pub(super) server: OnceCell<Server>,
}

/// Output and folder of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) code: i32,
    /// Everything that it printed.
    pub(super) said: String,
    pub(super) folder: PathBuf,
    pub(super) records: Vec<TestRecord>,
}

impl Seen {
    fn from_output(output: &Output) -> Outcome<Seen> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let out = text(&output.stdout);
        let folder = PathBuf::from(out.lines().last().unwrap_or_default());
        let records =
            if folder.join("manifest.json").exists() { StoredRun::open(&folder)?.records } else { Vec::new() };
        Ok(Seen { code: output.status.code().unwrap_or(-1), said: text(&output.stderr) + &out, folder, records })
    }

    /// No test is refused, and there are some. Others may have disturbed them.
    pub(super) fn holds(&self) -> bool {
        self.code == 0 && !self.records.is_empty() && self.records.iter().all(TestRecord::is_usable)
    }

    pub(super) fn check(&self, id: CheckId, outcome: Checked) -> Option<&Check> {
        self.records.iter().flat_map(|r| &r.checks).find(|c| c.id == id && c.outcome == outcome)
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = String> {
        let of_record = |r: &TestRecord| {
            let said = [r.disturbed_by.clone(), r.forced.refused.clone()];
            said.into_iter().flatten().chain(r.notes.iter().map(ToString::to_string)).collect::<Vec<_>>()
        };
        self.records.iter().flat_map(of_record)
    }

    pub(super) fn mark(&self, text: &str) -> Option<String> {
        self.marks().chain(self.said.lines().map(str::to_owned)).find(|line| line.contains(text))
    }

    /// The figure of a column, ns, if it is this large.
    pub(super) fn shown(&self, id: &str, least: f64) -> Option<String> {
        let column = column(id)?;
        let ns = self.records.last()?.figure(column).filter(|ns| *ns >= least)?;
        Some(format!("{} {:.0} ms", column.title, ns / 1e6))
    }
}

impl Scene<'_> {
    pub(super) fn server(&self) -> Outcome<&Server> {
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        let server = Server::start(&self.way.on, self.results)?;
        Ok(self.server.get_or_init(|| server))
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.results.join(name).display().to_string()
    }

    fn url(&self) -> Outcome<String> {
        Ok(match &self.way.on {
            On::Url(url) => url.clone(),
            On::Sqlite => format!("sqlite:{}", self.file("s.db")),
            On::Postgres | On::MariaDb => self.server()?.url.clone(),
        })
    }

    pub(super) fn loadline(&self, through: &[&str], args: &[&str]) -> Command {
        let mut words = through.iter().copied().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        words.push(self.loadline.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(args).stdin(Stdio::null());
        command
    }

    fn command(&self, through: &[&str], more: &[&str]) -> Outcome<Command> {
        let (url, results) = (self.url()?, self.results.display().to_string());
        let (warmup, window) = (format!("{WARMUP_S}s"), format!("{WINDOW_S}s"));
        let usual = ["--target", &url, "--results", &results, "--warmup", &warmup, "--duration", &window];
        let mut args = vec!["run", "--no-probe"];
        // A later value replaces an earlier one.
        let mut words = usual.into_iter().chain(self.way.run.split_whitespace()).chain(more.iter().copied()).peekable();
        while let Some(word) = words.next() {
            match words.next_if(|next| word.starts_with("--") && !next.starts_with("--")) {
                Some(value) => match args.iter().position(|arg| *arg == word) {
                    Some(at) => args[at + 1] = value,
                    None => args.extend([word, value]),
                },
                None => args.push(word),
            }
        }
        Ok(self.loadline(through, &args))
    }

    pub(super) fn run(&self, more: &[&str]) -> Outcome<Seen> {
        self.run_through(&[], more)
    }

    pub(super) fn run_through(&self, through: &[&str], more: &[&str]) -> Outcome<Seen> {
        Seen::from_output(&self.command(through, more)?.output()?)
    }

    pub(super) fn resume(&self, folder: &str) -> Outcome<Seen> {
        let args = ["run", "--target", &self.url()?, "--resume", folder];
        Seen::from_output(&self.loadline(&[], &args).output()?)
    }

    /// `loadline report` with what it prints, and the tests of `first` as they are now, if it could read its runs.
    pub(super) fn report(&self, first: Seen, args: &[&str]) -> Outcome<Seen> {
        let seen = Seen::from_output(&self.loadline(&[], &[&["report"], args].concat()).output()?)?;
        Ok(if seen.code == 0 { Seen { records: StoredRun::open(&first.folder)?.records, ..seen } } else { seen })
    }

    /// The run, and `spoil` a third of the window after its start. Gets the process of loadline.
    pub(super) fn in_window(&self, spoil: impl FnOnce(Pid) -> Outcome<()>) -> Outcome<Seen> {
        let mut child = self.command(&[], &[])?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let spoiled = jobs_run(&mut child).and_then(|running| {
            if running {
                sleep(Duration::from_secs_f64(WARMUP_S + WINDOW_S / 3.0));
                spoil(Pid::from_raw(child.id() as i32))?;
            }
            Ok(())
        });
        let output = child.wait_with_output()?;
        let seen = Seen::from_output(&output)?;
        spoiled.map_err(|e| format!("{e}\n{}", seen.said))?;
        Ok(seen)
    }

    /// Changes a setting of the running server.
    pub(super) fn reload(&self, [name, value]: &[String; 2]) -> Outcome<()> {
        self.server()?.sql(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        self.server()?.sql("SELECT pg_reload_conf(), pg_sleep(0.1)").map(drop)
    }
}

/// Waits until the threads of the jobs run; `false` if loadline ended before.
fn jobs_run(child: &mut Child) -> Outcome<bool> {
    let tasks = format!("/proc/{}/task", child.id());
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        let names = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        if names.any(|name| name.starts_with("job ")) {
            return Ok(true);
        }
        sleep(Duration::from_millis(5));
    }
    Err("no job began within two minutes".into())
}

/// Processes beside a run. They end with it, with the bench (timeout(1) passes a TERM on, and could not a KILL), or after an hour.
pub(crate) struct Beside(Vec<Child>);

impl Beside {
    /// `n` times this shell script, through a command such as `nice -n -5`.
    pub(crate) fn start(n: usize, through: &[&str], script: &str) -> Outcome<Beside> {
        let start = |_| {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "TERM", "--"]).args(through).args(["timeout", "3600", "sh", "-c", script]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        Ok(Beside((0..n).map(start).collect::<Result<_, _>>()?))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // timeout(1) passes it on to its process group.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

/// A throwaway server that outlives a run, as a user's would.
pub(super) struct Server {
    target: Box<dyn Target>,
    pub(super) url: String,
    /// The server's own client, with the options that reach it.
    client: Vec<String>,
    pub(super) version: String,
}

impl Server {
    fn start(on: &On, results: &Path) -> Outcome<Server> {
        let open = |url| loadline_database::open(&loadline_database::OpenRequest::new(url, results.to_owned()));
        let (target, url, client) = if *on == On::MariaDb {
            let target = open("mariadb-temp:")?;
            let socket = sysbench::socket(target.as_ref())?.display().to_string();
            let client = ["mariadb", "--no-defaults", "-NB", "-uroot", "-S", &socket].map(str::to_owned).to_vec();
            (target, format!("mysql://root@/?socket={socket}"), client)
        } else {
            let target = open("postgres-temp:")?;
            let place = place(target.as_ref())?;
            let url = format!("postgres://postgres@/postgres?host={}&port={}", place[1], place[3]);
            let options = ["-XAtq", "-v", "ON_ERROR_STOP=1"].map(str::to_owned);
            (target, url, [vec![binary("psql")?], options.to_vec(), place].concat())
        };
        let info = target.info()?;
        Ok(Server { target, url, client, version: format!("{} {}", info.product, info.version) })
    }

    /// Arguments that lead a PostgreSQL's client to it: `-h`, folder, `-p`, port, ….
    pub(super) fn place(&self) -> &[String] {
        let begin = self.client.iter().position(|word| word == "-h").unwrap_or_default();
        &self.client[begin..]
    }

    /// The client's option before a statement.
    fn flag(&self) -> &'static str {
        if self.client[0] == "mariadb" { "-e" } else { "-c" }
    }

    /// Runs statements in another session and returns what they print.
    pub(super) fn sql(&self, sql: &str) -> Outcome<String> {
        let mut client = Command::new(&self.client[0]);
        let said = said_by(client.args(&self.client[1..]).args([self.flag(), sql]), "install the server's client");
        said.map_err(|e| format!("{sql}: {e}").into())
    }

    /// A shell script that runs a statement in another session.
    pub(super) fn script(&self, sql: &str) -> String {
        format!("exec {} {} \"{sql}\"", self.client.join(" "), self.flag())
    }

    /// Stops all its processes for this time.
    pub(super) fn stall(&self, time: Duration) -> Outcome<()> {
        let data = self.target.info()?.data_dir.ok_or("no data directory")?;
        let processes = processes(Path::new(&data));
        let begin = Instant::now();
        let all = |signal| processes.iter().try_for_each(|id| kill(*id, signal));
        let stopped = all(Signal::SIGSTOP);
        sleep(time.saturating_sub(begin.elapsed()));
        // Some may have ended meanwhile, and all must go on.
        for id in &processes {
            let _ = kill(*id, Signal::SIGCONT);
        }
        Ok(stopped?)
    }
}
