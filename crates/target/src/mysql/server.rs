//! The target: what is asked of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Capability, Driver, Finding};
use loadline_workload::Commit;

use super::client::Client;
use super::config::Address;
use super::connect::Door;
use super::doctor::{self, Facts, Settings};
use super::ledger::Ledger;
use super::observer::{Eye, NO_WAITS, UNCOUNTED_SYNCS, sync_counter};
use super::slice::Database;
use super::temp::TempServer;
use super::version::Version;
use super::wire::Connection;
use super::{procedure, render, schema};
use crate::error::TargetError;
use crate::registry::OpenRequest;
use crate::session::{ClientSession, DatabaseSession, JobLimit, Observer, RunLock, Target};
use crate::work::Work;

/// `innodb_flush_log_at_trx_commit` as it is now: it exists for the whole server only.
#[derive(Debug, Clone)]
pub(super) struct Flush(Arc<AtomicU8>);

impl Flush {
    pub(super) fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// With this value a commit leaves its log to the server's once-a-second write, which is nearest to
/// what other databases mean by a commit that does not wait.
const NOWAIT: u8 = 0;

/// A MariaDB or MySQL target.
pub(super) struct Mysql {
    door: Arc<Door>,
    version: Version,
    ledger: Ledger,
    flush: Flush,
    /// The setting as it was found.
    given_flush: u8,
    local: bool,
    url: String,
    /// The private server, if this is one. Dropped last: it stops with us.
    server: Option<TempServer>,
}

impl Mysql {
    /// Opens the server at `url`.
    pub(super) fn open(url: &str, request: &OpenRequest, server: Option<TempServer>) -> Result<Mysql, TargetError> {
        if let Some(node) = request.nodes.first() {
            return Err(TargetError::Usage(format!(
                "several nodes are not supported for MariaDB and MySQL: leave out --node {}",
                crate::redact(node)
            )));
        }
        let door = Arc::new(Door::new(url, request)?);
        let ledger = Ledger::default();
        let mut c = door.connect()?;
        let given_flush = c.number("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")?.unwrap_or(1.0) as u8;
        let pid_file = c.value("SELECT @@GLOBAL.pid_file")?;
        ledger.binlog(c.number("SELECT @@GLOBAL.log_bin")? == Some(1.0));
        ledger.book(&mut c)?;
        let local = is_local(&door, pid_file.as_deref());
        let url = if server.is_some() { request.url.clone() } else { crate::redact(url) };
        let flush = Flush(Arc::new(AtomicU8::new(given_flush)));
        Ok(Mysql { version: c.version.clone(), door, ledger, flush, given_flush, local, url, server })
    }

    /// Runs `f` in an administrative session.
    fn admin<T>(&self, f: impl FnOnce(&mut Connection) -> Result<T, TargetError>) -> Result<T, TargetError> {
        let mut c = self.door.connect()?;
        let done = f(&mut c);
        // What a failed step committed before is counted by the server as well.
        match (&done, self.ledger.book(&mut c)) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }

    /// Brings a private server's setting of the commit to what the workload wants. On a user's
    /// server it is left as it is.
    fn set_flush(&self, commit: Commit) -> Result<(), TargetError> {
        if self.server.is_none() {
            return Ok(());
        }
        let wanted = match commit {
            Commit::Nowait if matches!(self.given_flush, 1 | 3) => NOWAIT,
            _ => self.given_flush,
        };
        if wanted != self.flush.now() {
            self.admin(|c| c.query(&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {wanted}")).map(drop))?;
            self.flush.0.store(wanted, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Target for Mysql {
    fn info(&self) -> Result<TargetInfo, TargetError> {
        let settings = self.admin(Settings::read)?;
        let mut notes = self.server.as_ref().map_or_else(Vec::new, |s| s.notes().to_vec());
        if self.server.is_some() {
            notes.push(format!(
                "workloads with a commit that does not wait run with innodb_flush_log_at_trx_commit = {NOWAIT}, all others \
                 with {}: the setting exists for the whole server only, and this server is private",
                self.given_flush
            ));
        }
        if !self.version.mariadb {
            notes.push("loadline was never run against MySQL before its release: check the figures".into());
        }
        Ok(TargetInfo {
            kind: if self.server.is_some() { "mariadb-temp" } else { "mysql" }.into(),
            product: self.version.product().into(),
            version: self.version.text.clone(),
            url: self.url.clone(),
            nodes: 1,
            local: self.local,
            log_dir: Some(doctor::log_dir(&settings).display().to_string()),
            data_dir: settings.get("datadir").map(str::to_owned),
            settings: settings.stated(),
            notes,
            ..TargetInfo::default()
        })
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let mut found = Capabilities::default();
        let waits = matches!(self.given_flush, 1 | 3);
        let value = self.given_flush;
        let missing = match (waits, self.server.is_some()) {
            (true, true) => None,
            (true, false) => Some((
                Capability::CommitNowait,
                format!(
                    "innodb_flush_log_at_trx_commit = {value} holds for the whole server, and loadline does not change a \
                     user's server: SET GLOBAL innodb_flush_log_at_trx_commit = {NOWAIT} for such a run, or use mariadb-temp:"
                ),
            )),
            (false, _) => Some((
                Capability::CommitWait,
                format!(
                    "innodb_flush_log_at_trx_commit = {value}: SET GLOBAL innodb_flush_log_at_trx_commit = 1 first"
                ),
            )),
        };
        if let Some((capability, why)) = missing {
            found.missing = Driver::ALL.map(|d| (d, capability, why.clone())).to_vec();
        }
        Ok(found)
    }

    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        self.admin(|c| {
            let settings = Settings::read(c)?;
            let facts = Facts::ask(c, &settings, self.local)?;
            Ok(doctor::examine(&settings, &facts))
        })
    }

    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut c = self.door.connect()?;
        schema::lock(&mut c)?;
        self.ledger.book(&mut c)?;
        Ok(RunLock::new(c))
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        self.admin(|c| {
            let settings = Settings::read(c)?;
            doctor::job_limit(c, &settings)
        })
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.set_flush(work.program.commit)?;
        self.ledger.jobs_send_commit(!work.program.is_single_statement());
        self.admin(|c| schema::create(c, work))
    }

    fn load(&self, work: &Work, jobs: u32) -> Result<(), TargetError> {
        self.admin(|c| schema::load(c, work, jobs))
    }

    fn install(&self, work: &Work) -> Result<(), TargetError> {
        // A procedure always sends COMMIT.
        self.ledger.jobs_send_commit(true);
        self.admin(|c| schema::install(c, work))
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        Ok(Some("no checkpoint before each test: the server has no command for one".into()))
    }

    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        Ok(Box::new(Client::open(&self.door, work)?))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Ok(Box::new(Database::open(&self.door, work, job)?))
    }

    fn in_database_overhead_ns(&self, _work: &Work) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 5_000;
        let name = procedure::overhead_name();
        let mut times = self.admin(|c| {
            c.query(&format!("DROP PROCEDURE IF EXISTS {name}"))?;
            c.query(&procedure::create_overhead())?;
            c.query(&procedure::create_moments())?;
            let mut times = Vec::new();
            for _ in 0..3 {
                let begin = crate::clock::now_ns();
                c.query(&format!("CALL {name}({ITERATIONS})"))?;
                times.push(crate::clock::now_ns().saturating_sub(begin) as f64 / f64::from(ITERATIONS));
            }
            c.query(&format!("DROP PROCEDURE {name}"))?;
            Ok(times)
        })?;
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
    }

    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        let connection = self.door.connect()?;
        Ok(Box::new(Eye { connection, ledger: self.ledger.clone(), flush: self.flush.clone() }))
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        let Some(sql) = render::evidence(work)? else { return Ok(None) };
        // The sum over an empty table is NULL.
        let text = self.admin(|c| c.value(&sql))?.unwrap_or_else(|| "0".into());
        text.parse().map(Some).map_err(|_| {
            TargetError::Statement(format!("the evidence query returned «{text}», which is no whole number"))
        })
    }

    fn absent_columns(&self) -> Vec<(&'static str, String)> {
        let mut absent = vec![
            ("flash_cache_write_pct", format!("{} has no flash cache", self.version.product())),
            ("redo_blocks_per_s", format!("{} does not count the blocks of its log", self.version.product())),
            ("log_file_sync_ms", NO_WAITS.to_owned()),
        ];
        if sync_counter(&self.version, self.flush.now()).is_none() {
            absent.push(("redo_sync_writes_per_s", UNCOUNTED_SYNCS.to_owned()));
            absent.push(("commits_per_redo_sync", UNCOUNTED_SYNCS.to_owned()));
        }
        if !self.local {
            let why = "the server runs on another machine, and MariaDB and MySQL do not show its /proc/stat";
            let cpu = ["cpu_busy_pct", "cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct", "cpu_iowait_pct"];
            absent.extend(cpu.map(|id| (id, why.to_owned())));
        }
        absent
    }

    fn commit_unseen(&self) -> Option<&'static str> {
        Some(
            "MariaDB and MySQL answer a transaction of one statement once, after its commit: the time of the commit alone \
              is not seen",
        )
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock()?;
        self.admin(schema::clean)
    }
}

/// Whether the server runs on this machine: it is reached without a network, and its process is
/// here (not so behind a tunnel or a container's port).
fn is_local(door: &Door, pid_file: Option<&str>) -> bool {
    let near = match &door.config.address {
        Address::Unix(_) => true,
        Address::Tcp(host, _) => {
            host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    };
    let is_server = |pid: &str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        matches!(name.trim(), "mariadbd" | "mysqld")
    };
    let of_file = pid_file.and_then(|path| std::fs::read_to_string(path).ok());
    near && match of_file {
        Some(pid) => is_server(pid.trim()),
        // Not ours to read: then any such process has to do.
        None => std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_str().is_some_and(is_server)),
    }
}
