//! The target: its nodes, and what is asked of the database behind them.

use std::collections::BTreeSet;
use std::sync::Arc;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Finding, Snapshot};

use super::address::OraAddress;
use super::cancel::{self, Control};
use super::counters::{self, OraObserver, Sight, View};
use super::doctor;
use super::jobs::{Client, Database};
use super::loading::{self, OraLoader};
use super::session::{Bind, Dial, MISSING_PRIVILEGE, NO_PRIVILEGE, OraSession};
use super::{awr, block, job_limit, parallel, room, schema, sql};
use crate::data_set::{self, FoundTable, LoadProgress, Loader, Ways};
use crate::error::TargetError;
use crate::number::Number;
use crate::own_tables::{self, Own, Whole};
use crate::parallel::Together;
use crate::request::OpenRequest;
use crate::room::{FreeRoom, LogRoom};
use crate::secret::Secret;
use crate::session::{Canceller, ClientSession, DatabaseSession, JobLimit, Observer, RunLock, Target};
use crate::work::Work;

/// The variable a password is taken from when the URL has none.
const PASSWORD_VARIABLE: &str = "ORACLE_PASSWORD";

/// A node: how to get in, and which instance that led to.
struct Node {
    control: Arc<Control>,
    instance: Option<u32>,
}

/// An Oracle target. All its nodes are instances of one database and share its tables.
pub(super) struct Oracle {
    nodes: Vec<Node>,
    run: String,
    version: String,
    sights: Vec<(&'static View, Sight)>,
    /// Why there is no figure of the flash cache.
    no_flash: Option<String>,
    /// Whether the user asked for AWR.
    awr: bool,
    /// The workload's own tables that need not be counted.
    whole: Whole,
}

impl Oracle {
    /// Opens the URL and the nodes of `request`.
    pub(super) fn open(request: &OpenRequest, dial: &'static Dial) -> Result<Box<dyn Target>, TargetError> {
        let mut nodes = Vec::new();
        for url in std::iter::once(&request.url).chain(&request.nodes) {
            let address = OraAddress::parse(url)?;
            let password = password(&address, request)?;
            nodes.push(Node { control: Control::new(address, password, dial), instance: None });
        }
        let (run, awr) = (request.run.clone(), request.native_report);
        let mut oracle = Oracle {
            nodes,
            run,
            version: String::new(),
            sights: Vec::new(),
            no_flash: None,
            awr,
            whole: Whole::default(),
        };
        let mut first: Option<String> = None;
        for i in 0..oracle.nodes.len() {
            let mut session = oracle.session(i, "look")?;
            let identity = identity(session.as_mut())?;
            match &first {
                None => {
                    oracle.version = session.version();
                    oracle.sights = counters::look(session.as_mut())?;
                    oracle.no_flash = counters::no_flash(session.as_mut(), &oracle.sights)?;
                    first = Some(identity);
                }
                Some(known) if *known != identity => {
                    return Err(TargetError::Usage(format!(
                        "the nodes are different databases, containers or users: {known} and {identity}. \
                         All nodes must be instances of one"
                    )));
                }
                Some(_) => {}
            }
            let instance = instance(session.as_mut())?;
            let same = oracle.nodes[..i].iter().position(|n| n.instance.is_some() && n.instance == instance);
            if let (Some(same), Some(number)) = (same, instance) {
                return Err(TargetError::Usage(format!(
                    "{} and {} lead to the same instance, number {number}: name in each URL a service or an address \
                     that only one instance has (`srvctl status service` lists where services run)",
                    oracle.shown(same),
                    oracle.shown(i)
                )));
            }
            oracle.nodes[i].instance = instance;
        }
        Ok(Box::new(oracle))
    }

    fn shown(&self, node: usize) -> String {
        self.nodes.get(node).map_or_else(String::new, |n| n.control.address.shown())
    }

    fn session(&self, node: usize, role: &str) -> Result<Box<dyn OraSession>, TargetError> {
        let node = self.nodes.get(node).ok_or_else(|| TargetError::Usage("the target has no node".into()))?;
        let name = if self.run.is_empty() { role.to_owned() } else { format!("{} {role}", self.run) };
        (node.control.dial)(&node.control.address, &node.control.password, &name)
    }

    fn loader(&self) -> Result<OraLoader, TargetError> {
        Ok(OraLoader(self.session(0, "loader")?))
    }

    fn admin(&self) -> Result<Box<dyn OraSession>, TargetError> {
        self.session(0, "admin")
    }

    /// The session of a job, with the handle that ends what it runs.
    fn job_session(&self, work: &Work, job: u32) -> Result<(Box<dyn OraSession>, Canceller), TargetError> {
        let number = job as usize % self.nodes.len().max(1);
        let mut session = self.session(number, &format!("job {job}"))?;
        let node = self.nodes.get(number).ok_or_else(|| TargetError::Usage("the target has no node".into()))?;
        let instance = instance(session.as_mut())?;
        // A service that runs on several instances leads now here, now there.
        if self.nodes.len() > 1 && instance.is_some() && instance != node.instance {
            let [found, wanted] = [instance, node.instance].map(|i| i.map_or("–".to_owned(), |i| i.to_string()));
            return Err(TargetError::Usage(format!(
                "the session of job {job} came to instance {found} and not to {wanted}, as {} did before: name a service \
                 or an address that only one instance has, or give one URL without --node",
                self.shown(number)
            )));
        }
        for sql in parallel::settings(work) {
            session.execute(&sql, &[])?;
        }
        let job = session.id().zip(instance).map(|(id, instance)| cancel::Job { id, instance });
        Ok((session, node.control.canceller(job)))
    }
}

/// Number of the instance that the session is on.
fn instance(session: &mut dyn OraSession) -> Result<Option<u32>, TargetError> {
    let told = session.value("SELECT SYS_CONTEXT('USERENV', 'INSTANCE') FROM DUAL")?;
    Ok(told.and_then(|t| t.trim().parse().ok()))
}

fn password(address: &OraAddress, request: &OpenRequest) -> Result<Secret, TargetError> {
    let from_environment = || std::env::var(PASSWORD_VARIABLE).ok().filter(|p| !p.is_empty()).map(Secret::new);
    let given = address.password.clone().or_else(from_environment);
    given.or_else(|| (request.ask_password)(&address.shown())).ok_or_else(|| {
        TargetError::Refused(format!(
            "{} needs a password: set {PASSWORD_VARIABLE}, or start loadline in a terminal and it asks for one",
            address.shown()
        ))
    })
}

/// What tells the database, its container and the user from others.
fn identity(session: &mut dyn OraSession) -> Result<String, TargetError> {
    let sql = "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME') || '/' || SYS_CONTEXT('USERENV', 'CON_NAME') || ' as ' \
               || SYS_CONTEXT('USERENV', 'SESSION_USER') FROM DUAL";
    Ok(session.value(sql)?.unwrap_or_default())
}

impl Target for Oracle {
    fn info(&self) -> Result<TargetInfo, TargetError> {
        let mut session = self.admin()?;
        let mut settings = std::collections::BTreeMap::new();
        for q in doctor::QUESTIONS.iter().filter(|q| q.id == "parameters") {
            match session.query(q.sql, &[]) {
                Ok(rows) => {
                    for row in rows {
                        let mut row = row.into_iter();
                        if let (Some(name), Some(Some(value))) = (row.next().flatten(), row.next()) {
                            settings.insert(name, value);
                        }
                    }
                }
                Err(e) if e.lost => return Err(e.into()),
                // The doctor says so, with the grant to ask for.
                Err(_) => {}
            }
        }
        let mut notes = vec![
            super::NEVER_RUN.to_owned(),
            "counters are those of the whole database, other sessions' work included".to_owned(),
            "CPU figures are from V$OSSTAT, which the server brings up to date at its own pace: short windows are coarse"
                .to_owned(),
        ];
        notes.push(
            "the jobs' sessions keep no results of queries (RESULT_CACHE_MODE = MANUAL) and run none in parallel, but for \
             the workload that asks for a degree of parallelism"
                .to_owned(),
        );
        if self.nodes.len() > 1 {
            notes.push(format!(
                "{} nodes; counters are added up over all instances of the database, those without jobs included",
                self.nodes.len()
            ));
        }
        Ok(TargetInfo {
            kind: "oracle".into(),
            product: super::KIND.product.into(),
            version: self.version.clone(),
            url: self.shown(0),
            nodes: self.nodes(),
            // Whether the server is on this machine cannot be told; its counters tell of its CPU.
            local: false,
            settings,
            notes,
            ..TargetInfo::default()
        })
    }

    fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let mut findings = Vec::new();
        for i in 0..self.nodes.len() {
            let mut session = self.session(i, "doctor")?;
            let mut found = doctor::judge(&doctor::ask(session.as_mut())?);
            if self.nodes.len() > 1 {
                for finding in &mut found {
                    finding.subject = format!("{} (node {})", finding.subject, i + 1);
                }
            }
            findings.append(&mut found);
        }
        if self.awr {
            findings.push(awr::examine(self.admin()?.as_mut())?);
        }
        Ok(findings)
    }

    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut session = self.session(0, "lock")?;
        schema::lock(session.as_mut())?;
        Ok(RunLock::new(session))
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        job_limit::job_limit(self.admin()?.as_mut())
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.whole.forget(work);
        schema::create(self.admin()?.as_mut(), work)
    }

    fn drop_own(&self, work: &Work) -> Result<(), TargetError> {
        self.whole.forget(work);
        schema::drop_own(self.admin()?.as_mut(), work)
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        let jobs: Vec<u32> = (0..jobs).collect();
        let open = || Ok(Box::new(self.loader()?) as Box<dyn Loader>);
        let own = Own { work, jobs: &jobs, server: 0, whole: &self.whole };
        own_tables::load_all(&own, Ways { open: &open, one_writer: false, progress })
    }

    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        data_set::found(&mut self.loader()?)
    }

    fn drop_data_set(&self) -> Result<(), TargetError> {
        let mut session = self.admin()?;
        let prefix = loading::name_of("data_");
        let ours =
            schema::tables(session.as_mut())?.into_iter().filter(|(name, ours)| *ours && name.starts_with(&prefix));
        for (name, _) in ours {
            session.execute(&schema::drop_statement(&name), &[])?;
        }
        Ok(())
    }

    fn free_room(&self) -> Result<Option<FreeRoom>, TargetError> {
        room::free(self.admin()?.as_mut())
    }

    fn log_room(&self, _data: u64, _indexes: u64) -> Result<LogRoom, TargetError> {
        room::log(self.admin()?.as_mut())
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        match self.admin()?.execute("ALTER SYSTEM CHECKPOINT GLOBAL", &[]) {
            Ok(_) => Ok(None),
            Err(e) if e.is(&[NO_PRIVILEGE, MISSING_PRIVILEGE]) => {
                Ok(Some("no checkpoint before each test: the user has no ALTER SYSTEM privilege".into()))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The cache of a user's server stays as it is; its size is a matter of a grant.
    fn set_cache(&self, _data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let size = self.admin()?.value("SELECT BYTES FROM V$SGAINFO WHERE NAME = 'Buffer Cache Size'");
        Ok(size.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()))
    }

    fn block_bytes(&self) -> Option<u64> {
        let sql = "SELECT BLOCK_SIZE FROM USER_TABLESPACES WHERE TABLESPACE_NAME = \
                   (SELECT DEFAULT_TABLESPACE FROM USER_USERS)";
        self.admin().ok()?.value(sql).ok()??.trim().parse().ok()
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        self.admin()?.execute("ALTER SYSTEM CHECKPOINT GLOBAL", &[])?;
        Ok(())
    }

    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let (session, canceller) = self.job_session(work, job)?;
        Ok(Box::new(Client::new(session, canceller, work)))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        let (session, canceller) = self.job_session(work, job)?;
        Ok(Box::new(Database::new(session, canceller, work, job)?))
    }

    fn in_database_overhead_ns(&self, _work: &Work) -> Result<Option<f64>, TargetError> {
        let mut session = self.admin()?;
        let block = block::overhead(20_000);
        let mut times = Vec::new();
        for _ in 0..3 {
            let row = session.call(&block, &[Bind::Out(40)])?;
            times.extend(row.first().cloned().flatten().and_then(|t| t.parse::<f64>().ok()));
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
    }

    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(OraObserver::new(self.session(0, "observer")?, &self.sights, &self.run)))
    }

    fn reset(&self, work: &Work) -> Result<(), TargetError> {
        schema::reset(self.admin()?.as_mut(), work)
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let sql =
            format!("SELECT SUM(BYTES) FROM USER_SEGMENTS WHERE SEGMENT_NAME = '{}'", sql::table_name(work, table));
        Ok(self.admin()?.value(&sql)?.and_then(|v| v.parse().ok()))
    }

    fn most_together(&self) -> Result<Option<(u32, String)>, TargetError> {
        parallel::most(self.admin()?.as_mut())
    }

    fn together(&self, work: &Work) -> Result<Option<Together>, TargetError> {
        parallel::attempt(self.job_session(work, 0)?.0.as_mut(), work)
    }

    fn number(&self, work: &Work, query: &str) -> Result<Option<Number>, TargetError> {
        Number::read(self.admin()?.value(&sql::query(work, query)?)?).map(Some)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        counters::absent(&self.sights, self.no_flash.as_deref())
    }

    fn log_sync_events(&self) -> &'static [&'static str] {
        counters::LOG_SYNC_EVENTS
    }

    fn remarks(&self, open: &Snapshot, close: &Snapshot) -> Vec<String> {
        counters::remarks(open, close)
    }

    fn native_mark(&self) -> Result<Option<i64>, TargetError> {
        if self.awr { Ok(Some(awr::snapshot(self.admin()?.as_mut())?)) } else { Ok(None) }
    }

    fn native_report(&self, from: i64) -> Result<String, TargetError> {
        awr::report(self.admin()?.as_mut(), from)
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let mut lock = self.session(0, "lock")?;
        // Without any table there is nothing to lock.
        if lock.query(schema::OWN_TABLES, &[])?.is_empty() {
            return Ok(Vec::new());
        }
        schema::lock(lock.as_mut())?;
        schema::clean(self.admin()?.as_mut(), lock.as_mut(), &BTreeSet::new())
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let mut lock = self.session(0, "lock")?;
        if lock.query(schema::OWN_TABLES, &[])?.is_empty() {
            return Ok(Vec::new());
        }
        schema::lock(lock.as_mut())?;
        let mut loader = self.loader()?;
        if keep_data {
            data_set::keep(&mut loader)?;
        }
        let kept = data_set::kept(&mut loader)?.iter().map(|stem| loading::name_of(stem)).collect();
        schema::clean(self.admin()?.as_mut(), lock.as_mut(), &kept)
    }
}
