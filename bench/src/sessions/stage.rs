//! Where contenders meet: a private server, or the scripted one before it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loadline_database::{Target, Work};
use loadline_model::snapshot::counter;

use super::Args;
use super::turns::{Turns, turns};
use crate::arena::{self, Outcome, Running, with_settings};
use crate::pgbench;

/// The server may count this many commits beside those of a contender: sessions that it opens itself.
const OTHERS: f64 = 10.0;
/// Statements of a session beside its transactions: logins that PostgreSQL counts, settings, counters that are published.
const OF_A_SESSION: f64 = 8.0;

/// The scripted server reports once a second.
const REPORTED: Duration = Duration::from_millis(1200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    Postgres,
    Mariadb,
}

/// A server with the rows of SRV-QUERY1.
pub(super) struct Stage {
    product: Product,
    /// What leads there.
    pub(super) target: Arc<dyn Target>,
    pub(super) work: Arc<Work>,
    /// The scripted server and the real one behind it.
    scripted: Option<(Scripted, Arc<dyn Target>, tempfile::TempDir)>,
}

impl Stage {
    /// A private server that takes so many sessions.
    pub(super) fn real(product: Product, args: &Args, sessions: u32) -> Outcome<Stage> {
        let url = match product {
            Product::Postgres => "postgres-temp:",
            Product::Mariadb => "mariadb-temp:",
        };
        let settings = BTreeMap::from([("max_connections".to_owned(), (sessions + 100).to_string())]);
        let target = with_settings(url, &args.results, &settings)?;
        let work = Arc::new(Work::of("SRV-QUERY1", &[])?);
        target.create(&work)?;
        target.load(&work, 8)?;
        Ok(Stage { product, target, work, scripted: None })
    }

    /// The scripted server for so many sessions, before a private PostgreSQL.
    pub(super) fn scripted(args: &Args, sessions: u32) -> Outcome<Stage> {
        let Stage { product, target: real, work, .. } = Stage::real(Product::Postgres, args, 0)?;
        let folder = tempfile::Builder::new().prefix("loadline-peer-").tempdir_in("/var/tmp")?;
        let (at, port) = pgbench::socket(real.as_ref())?;
        let behind = at.join(format!(".s.PGSQL.{port}"));
        let scripted = Scripted::start(&folder.path().join(".s.PGSQL.1"), &behind, sessions)?;
        let url = format!("postgres://postgres@/postgres?host={}&port=1", folder.path().display());
        let target = arena::target(&url, &args.results)?;
        Ok(Stage { product, target, work, scripted: Some((scripted, real, folder)) })
    }

    /// What it is.
    pub(super) fn name(&self) -> Outcome<String> {
        let info = self.target.info()?;
        let scripted = if self.scripted.is_some() { "scripted server before " } else { "" };
        Ok(format!("{scripted}{} {}", info.product, info.version))
    }

    /// pgbench's connection arguments.
    pub(super) fn pgbench_place(&self) -> Outcome<Vec<String>> {
        let Some((_, _, folder)) = &self.scripted else { return pgbench::place(self.target.as_ref()) };
        let folder = folder.path().display().to_string();
        Ok(["-h", &folder, "-p", "1", "-U", "postgres", "postgres"].map(str::to_owned).to_vec())
    }

    /// Times that each session of the server was given a CPU; the scripted one has no task for each.
    pub(super) fn turns(&self) -> Option<Turns> {
        let server = match self.product {
            Product::Postgres => "postgres",
            Product::Mariadb => "mariadbd",
        };
        self.scripted.is_none().then(|| turns(server))
    }

    /// Number of the scripted server's process.
    pub(super) fn process(&self) -> String {
        self.scripted.as_ref().map_or_else(String::new, |(scripted, ..)| scripted.child.0.id().to_string())
    }

    /// What the server has counted so far: commits, the scripted one statements.
    pub(super) fn counted(&self) -> Outcome<f64> {
        match &self.scripted {
            Some((scripted, ..)) => {
                std::thread::sleep(REPORTED);
                Ok(scripted.statements.load(Ordering::Relaxed) as f64)
            }
            None => {
                let counters = self.target.observer()?.snapshot()?.counters;
                Ok(counters.get(counter::COMMITS).copied().unwrap_or(f64::NAN))
            }
        }
    }

    /// Holds the transactions that a contender says against what the server has counted since `before`.
    pub(super) fn confirm(&self, before: f64, said: f64, clients: u32) -> Outcome<()> {
        let most = said * 1.001 + OF_A_SESSION * f64::from(clients) + OTHERS;
        let mut counted = f64::NAN;
        // Servers count some transactions a moment after their session has ended.
        for _ in 0..30 {
            counted = self.counted()? - before;
            if counted >= said {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if counted >= said * 0.999 && counted <= most {
            return Ok(());
        }
        let who = match self.product {
            _ if self.scripted.is_some() => "the scripted server",
            Product::Postgres => "PostgreSQL",
            Product::Mariadb => "MariaDB",
        };
        Err(format!("{said} transactions are said and {who} has counted {counted}").into())
    }
}

/// The scripted server as a process of its own, so that its memory and CPU time are not loadline's. Ends with this.
struct Scripted {
    child: Running,
    /// Statements that it has executed, as it says once a second.
    statements: Arc<AtomicU64>,
}

impl Scripted {
    fn start(socket: &Path, behind: &Path, sessions: u32) -> Outcome<Scripted> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["peer", "--sessions", &sessions.to_string(), "--socket"])
            .arg(socket)
            .arg("--behind")
            .arg(behind)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output of the scripted server")?).lines();
        let statements = Arc::new(AtomicU64::new(0));
        let first = lines.next().transpose()?.unwrap_or_default();
        let scripted = Scripted { child: Running(child), statements: Arc::clone(&statements) };
        if !first.starts_with("listening") {
            return Err("the scripted server did not start".into());
        }
        std::thread::spawn(move || {
            // 64 sessions open, 66 opened, 144066 statements
            let count = |line: &str| line.strip_suffix(" statements")?.rsplit(' ').next()?.parse().ok();
            for line in lines.map_while(Result::ok) {
                statements.store(count(&line).unwrap_or(0), Ordering::Relaxed);
            }
        });
        Ok(scripted)
    }
}
