//! The roles of [`crate::role`] for PostgreSQL.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Capability, Column, Driver, Finding, Severity, column};

use super::client::PgClientSession;
use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, refusal};
use super::observer::PgObserver;
use super::pair::PairStandby;
use super::procedure::PgDatabaseSession;
use super::server::{PgInstance, Postgres, read_only};
use super::settings::PgSettings;
use super::standbys::Identity;
use super::wire::{Connection, Values};
use super::{doctor, pair, procedure, schema, server, sql};
use crate::cloud::absent_devices;
use crate::data_set::{LoadSession, Loader};
use crate::dialect::Dialect;
use crate::error::TargetError;
use crate::facts::Facts;
use crate::kind::TargetKind as _;
use crate::parallel::queries;
use crate::request::{OpenRequest, Way};
use crate::role::{
    BlockCache, ClientDriver, ClientSession, DatabaseDriver, DatabaseSession, Doctor, JobLimit, LogSpace, Observation,
    Observer, ParallelQueries, ParallelWorkers, Privilege, RunLock, Scope, WorkerLimit, median_of_three,
};
use crate::rules::SettingValues as _;
use crate::target::{Abilities, Nodes, RemainingNodes, Target, Ways};
use crate::tcp::Address;
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

impl Target for Postgres {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let settings = self.primary().session(SessionRole::Inspect, PgSettings::read)?;
        let local = self.nodes.instances.iter().all(|i| i.local);
        let data_dir = settings.text("data_directory").map(str::to_owned);
        let log_dir = data_dir.as_ref().map(|dir| {
            let dir = Path::new(dir).join("pg_wal");
            // The log is often a link to another device.
            let dir = if local { dir.canonicalize().unwrap_or(dir) } else { dir };
            dir.display().to_string()
        });
        let mut notes = self.private_server().map_or_else(Vec::new, |s| s.notes.clone());
        notes.extend(self.primary().recognised.note());
        let way = self.via().map(|via| (via.config.shown.clone(), via.unlike.join("; ")));
        let (via, unlike) = way.unwrap_or_default();
        let [nodes, instances] = [self.facts.nodes, self.nodes.instances.len() as u32].map(|n| n.to_string());
        let parts = [("urls", nodes.as_str()), ("instances", &instances), ("url", &via), ("settings", &unlike)];
        for (holds, note) in [
            (self.nodes.endpoints.len() > 1, "nodes"),
            (self.facts.read_only_nodes > 0, "standbys"),
            (self.primary().request.way != Way::Own, "unprepared"),
            (!unlike.is_empty(), "unlike"),
            (true, "autovacuum"),
            (true, "parallel"),
        ] {
            notes.extend(holds.then(|| KNOWLEDGE.notes.text(note, &parts)));
        }
        let (host, memory_bytes) =
            if local { (None, None) } else { self.primary().session(SessionRole::Inspect, server::machine)? };
        Ok(TargetInfo {
            host,
            memory_bytes,
            kind: self.kind.into(),
            product: "PostgreSQL".into(),
            version: self.first().version_text.clone(),
            url: self.url.clone(),
            nodes: self.facts.nodes,
            local,
            settings: settings.stated(),
            log_dir,
            data_dir,
            notes,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            database_driver: Some(self),
            tables: Some(self),
            parallel_queries: Some(self),
            settings: self.server.is_some().then_some(self as _),
            ways: Some(self),
            nodes: (self.nodes.instances.len() > 1).then_some(self as _),
            levels: self.pair.is_some().then_some(self as _),
            ..Abilities::default()
        }
    }
}

impl LoadsTables for Postgres {
    fn dialect(&self) -> &'static Dialect {
        &KNOWLEDGE.dialect
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        Ok(Box::new(self.primary().connect(SessionRole::Admin)?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        Ok(self.locked()?.0)
    }

    fn space_for_log(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        // Private standbys follow at once and are on the same disk, each with rows and log of its own.
        let standbys = self.private_server().map_or(0, |s| s.further.len() as u64);
        let written = data.saturating_add(indexes);
        let log = self.at_primary(|c| {
            let slots = c.number::<u64>(&KNOWLEDGE.queries.text("lasting-slots", &[]))?;
            Ok(PgSettings::read(c)?.log_bytes(slots != Some(0) && standbys == 0, written))
        })?;
        Ok(LogSpace { bytes: (1 + standbys) * log + standbys * written, ..LogSpace::default() })
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        let privilege = KNOWLEDGE.texts.checkpoint_privilege.at(self.first().version).unwrap_or_default();
        let said = self.at_primary(|c| {
            // With levels, `freshen` has made the checkpoint.
            let made = if self.pair.is_some() {
                c.row(KNOWLEDGE.texts.may_checkpoint.at(self.first().version).unwrap_or_default())?.is_true(0)
            } else {
                schema::checkpoint_if_allowed(c)?
            };
            Ok((!made).then(|| format!("no checkpoint before each test: the role is not {privilege}")))
        })?;
        self.wait_replayed()?;
        // At a standby a restartpoint: it writes what was replayed, which it would otherwise do in a test.
        for standby in self.standbys()? {
            standby.session(SessionRole::Admin, schema::checkpoint_if_allowed)?;
        }
        Ok(said)
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let (_lock, mut removed) = self.locked()?;
        let kept = kept()?;
        removed.extend(self.at_primary(|c| schema::clean(c, &kept))?);
        Ok(removed)
    }

    fn after_load(&self) -> Result<(), TargetError> {
        self.wait_replayed()
    }

    fn freshen(&self, loader: &mut Loader<'_>, work: &Work) -> Result<(), TargetError> {
        schema::freshen(loader, work, self.pair.is_some())
    }
}

impl Postgres {
    /// Takes the lock, and puts back the settings that a run changed which no longer holds it; with a line for each.
    fn locked(&self) -> Result<(RunLock, Vec<String>), TargetError> {
        let mut c = self.primary().connect(SessionRole::Lock)?;
        schema::lock(&mut c)?;
        let done = pair::put_back(&mut c)?;
        c.publish()?;
        if !done.is_empty() {
            // Until the server has read them, sessions would still see the settings of a level.
            self.reload()?;
        }
        Ok((RunLock::new(c), done))
    }
}

impl Doctor for Postgres {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let several = self.nodes.instances.len() > 1;
        let mut findings = Vec::new();
        for (i, instance) in self.nodes.instances.iter().enumerate() {
            let examine = if instance.standby { doctor::examine_standby } else { doctor::examine };
            let mut found = instance.endpoint.session(SessionRole::Inspect, |c| examine(c, instance))?;
            found.extend(instance.endpoint.session(SessionRole::Admin, doctor::lost_settings)?);
            if !instance.standby && found.iter().all(|f| f.severity < Severity::Impossible) {
                found.extend(doctor::durable_commit(&instance.endpoint)?);
            }
            if let (Some(pair), None) = (&self.pair, &self.server) {
                found.extend(instance.endpoint.session(SessionRole::Inspect, pair::findings)?);
                for PairStandby { endpoint, name } in &pair.standbys {
                    let examine = |c: &mut Connection| doctor::examine_given(c, server::is_local(endpoint, c.pid));
                    let of_standby = endpoint.session(SessionRole::Inspect, examine)?;
                    let named = |f: Finding| Finding { subject: format!("{} (standby {name})", f.subject), ..f };
                    found.extend(of_standby.into_iter().map(named));
                }
            }
            if several {
                for finding in &mut found {
                    finding.subject = format!("{} (instance {})", finding.subject, i + 1);
                }
            }
            findings.append(&mut found);
        }
        if let Some(why) = &self.gaps.proc_stat {
            findings.push(Finding::new("cpu", Severity::Warning, "CPU figures", "–", why.clone()));
        }
        Ok(findings)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        self.at_primary(doctor::privileges)
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let may = KNOWLEDGE.texts.may_checkpoint.at(self.first().version).unwrap_or_default();
        let language = "SELECT FROM pg_language WHERE lanname = 'plpgsql' AND has_language_privilege(oid, 'USAGE')";
        let language = sql::own(&format!("SELECT EXISTS ({language})"));
        let (mut missing, mut missing_drivers) = (Vec::new(), Vec::new());
        if !self.at_primary(|c| c.row(may))?.is_true(0) {
            let privilege = KNOWLEDGE.texts.checkpoint_privilege.at(self.first().version).unwrap_or_default();
            let why = format!("the role is not {privilege}");
            missing.extend(Driver::ALL.map(|d| (d, Capability::Checkpoint, why.clone())));
        }
        if !self.at_primary(|c| c.row(&language))?.is_true(0) {
            let why = "the role may not use plpgsql (GRANT USAGE ON LANGUAGE)";
            missing_drivers.push((Driver::Database, why.to_owned()));
        }
        Ok(Capabilities { missing, missing_drivers, ..Capabilities::default() })
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        // A run may use fewer nodes than there are, but only those before the standbys do all of its work alone.
        self.nodes.job_limit(self.facts.read_only_nodes == 0, |PgInstance { endpoint, .. }| {
            let limit = endpoint.session(SessionRole::Admin, |c| doctor::free_sessions(c, &endpoint.name))?;
            Ok((limit, endpoint.config.place()))
        })
    }
}

impl ClientDriver for Postgres {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let named = self.via().is_none();
        Ok(Box::new(PgClientSession::open(self.job_session(work, job)?, work, named)?))
    }

    /// Has all sessions that a pooler keeps open for jobs report what they did: as many transactions as there are sessions, all open at a
    /// time, so that each has one of its own.
    fn publish_shared(&self) -> Result<(), TargetError> {
        let Some(via) = self.via().filter(|via| !via.logs_in) else { return Ok(()) };
        let of_jobs = KNOWLEDGE.queries.text("processes", &[]);
        let pooled = self.at_primary(|c| Ok(c.query_with(&of_jobs, &[&via.job_prefix()])?.len()))?;
        let flush = KNOWLEDGE.texts.flush.at(self.first().version);
        let begin = format!("BEGIN; {}", sql::own(flush.unwrap_or("SELECT 1")));
        let opened = || {
            let mut c = via.connect(SessionRole::Inspect)?;
            c.query(&begin).map(|_| c)
        };
        for c in &mut (0..pooled).map(|_| opened()).collect::<Result<Vec<_>, TargetError>>()? {
            c.query("COMMIT")?;
            c.book();
        }
        if flush.is_none() {
            // The collector of version 14 is told at the end of a transaction, and has a second.
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }
}

impl Observation for Postgres {
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(PgObserver::open(self, scope)?))
    }

    fn own_commits(&self) -> Vec<u64> {
        self.nodes.instances.iter().map(|instance| instance.endpoint.ledger.load(Ordering::Relaxed)).collect()
    }

    fn end_jobs(&self, jobs: std::ops::Range<u32>, _: &[Vec<u32>]) -> Result<Option<u32>, TargetError> {
        let mut ended = 0;
        for instance in &self.nodes.instances {
            let prefix = instance.endpoint.job_prefix();
            let names: Vec<String> = jobs.clone().map(|job| sql::literal(&format!("{prefix}{job}"))).collect();
            let query = KNOWLEDGE.queries.text("end-jobs", &[("names", &names.join(", "))]);
            ended += instance.endpoint.session(SessionRole::Admin, |c| c.number(&query))?.unwrap_or(0);
        }
        Ok(Some(ended))
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let mut absent = super::Kind.facts().uncounted("");
        for (columns, why) in [
            (&[column::REDO_BLOCKS_PER_S][..], KNOWLEDGE.texts.no_redo_blocks.at(self.first().version)),
            (&[column::REDO_SYNC_WRITES_PER_S, column::COMMITS_PER_REDO_SYNC], self.gaps.redo_syncs.as_deref()),
            (&[column::READ_TIME_US_MEAN, column::READ_WAIT_PCT], self.gaps.read_times.as_deref()),
            (&[column::REDO_WRITE_TIME_US, column::REDO_SYNC_TIME_US], self.gaps.log_times.as_deref()),
            (&column::CPU_SHARES, self.gaps.proc_stat.as_deref()),
        ] {
            absent.extend(columns.iter().filter_map(|column| Some((*column, why?.to_owned()))));
        }
        if !self.nodes.instances.iter().all(|i| i.local) {
            let without = "and PostgreSQL does not show its devices";
            absent.extend(absent_devices(self.first().settings.cloud(), without));
        }
        absent
    }
}

impl DatabaseDriver for Postgres {
    fn install(&self, work: &Work) -> Result<(), TargetError> {
        self.at_primary(|c| {
            schema::ensure(c)?;
            c.query(&procedure::create(work, c.version)).map(drop)
        })?;
        self.wait_replayed()
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Ok(Box::new(PgDatabaseSession::open(self.job_session(work, job)?, work, job)?))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 20_000;
        let block = procedure::overhead(ITERATIONS);
        self.at_primary(|c| {
            median_of_three(|| {
                c.query(&block)?;
                c.own_commits += u64::from(ITERATIONS);
                c.number(&format!("SELECT current_setting('{}')", procedure::OVERHEAD))
            })
        })
    }
}

impl BlockCache for Postgres {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        if let Some(mut server) = self.private_server() {
            server.set_cache(data_bytes)?;
        }
        self.at_primary(|c| {
            c.number("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers' AND unit = '8kB'")
        })
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        self.at_primary(|c| c.query("CHECKPOINT")).map(drop)
    }
}

impl Ways for Postgres {
    fn lead(&self, request: &OpenRequest) -> Result<Option<Address>, TargetError> {
        let lead = |to: Option<Endpoint>| *self.via.lock().unwrap_or_else(PoisonError::into_inner) = to.map(Arc::new);
        // Both ways differ in nothing else.
        lead((request.way != Way::Own).then(|| self.primary().plain()));
        let Way::Via(url) = &request.way else { return Ok(None) };
        let mut endpoint = self.primary().via(url, request)?;
        let address = endpoint.config.address.here();
        let (here, private) = (self.first(), self.server.is_some());
        let mut c = endpoint.connect(SessionRole::Inspect)?;
        let [via, at] = [endpoint.config.shown.clone(), here.endpoint.config.shown.clone()];
        let read = |c: &mut Connection| c.row("SELECT current_user, current_database(), pg_backend_pid()::text");
        let (there, direct) = (read(&mut c)?, self.at_primary(read)?);
        // What a role may see of the server's identity depends on the role.
        let is_same_role = there.text(0) == direct.text(0);
        let urls = [("via", via.as_str()), ("url", &at)];
        if is_same_role && Identity::read(&mut c, &here.endpoint, private)? != here.identity {
            return Err(refusal("via-another-server", &urls));
        }
        if !is_same_role || there.text(1) != direct.text(1) {
            let [there, direct] =
                [&there, &direct].map(|of| format!("the database '{}' as the role '{}'", of.text(1), of.text(0)));
            return Err(refusal("via-another-role", &[&urls[..], &[("there", &there), ("direct", &direct)]].concat()));
        }
        // A pooler makes up its sessions; what only passes them on shows the server's.
        if there.text(2) == c.pid.to_string() {
            endpoint.logs_in = true;
            c.own_commits += 1;
        }
        let mut bare = here.endpoint.plain().connect(SessionRole::Inspect)?;
        endpoint.unlike = unlike(&mut bare, &mut c)?;
        bare.book();
        c.book();
        lead(Some(endpoint));
        Ok(address)
    }
}

impl Nodes for Postgres {
    fn without_lost(&self) -> Option<RemainingNodes> {
        let answers = |i: &PgInstance| i.endpoint.session(SessionRole::Inspect, |_| Ok(())).is_ok();
        let is_left: Vec<bool> = self.nodes.instances.iter().map(answers).collect();
        if is_left.iter().all(|left| *left) {
            return None;
        }
        let name = |(number, instance): (usize, &PgInstance)| {
            let node = self.nodes.instance_of.iter().position(|of| *of == number).unwrap_or(number) + 1;
            let what = if instance.standby { ", a standby" } else { "" };
            format!("node {node} ('{}'{what})", instance.endpoint.config.shown)
        };
        let numbered = self.nodes.instances.iter().enumerate();
        let lost: Vec<String> = numbered.filter(|(number, _)| !is_left[*number]).map(name).collect();
        let left = self.nodes.left(&is_left);
        // A standby does not take the primary's place by itself, and what is measured at it is counted at both.
        let headless = left.instances.iter().any(|i| i.standby) && !is_left.first().is_some_and(|left| *left);
        if left.instances.is_empty() || headless {
            let why = if headless { "no standby takes the place of its primary" } else { "no node is left" };
            return Some(RemainingNodes { target: Err(why.to_owned()), lost });
        }
        let (nodes, read_only_nodes) = (left.endpoints.len() as u32, read_only(&left));
        let facts = Facts { nodes, read_only_nodes, ..self.facts.clone() };
        let target = Postgres { facts, nodes: left, ..self.clone() };
        Some(RemainingNodes { target: Ok(Box::new(target)), lost })
    }
}

/// Settings of `there` that are not as `here`, as the server states them.
fn unlike(here: &mut Connection, there: &mut Connection) -> Result<Vec<String>, TargetError> {
    let settings = KNOWLEDGE.queries.text("session-settings", &[]);
    let both = here.query(&settings)?.into_iter().zip(there.query(&settings)?);
    let differ = both.filter(|(here, there)| here.text(1) != there.text(1));
    Ok(differ.map(|(here, there)| format!("{} = '{}', not '{}'", here.text(0), there.text(1), here.text(1))).collect())
}

/// The maximum number of parallel workers and the limiting settings. All workers but the session itself are background
/// workers of the server.
fn worker_limit(settings: &PgSettings) -> Option<WorkerLimit> {
    let names = ["max_parallel_workers", "max_worker_processes"];
    let values = names.map(|name| settings.number(name));
    let [Some(a), Some(b)] = values else { return None };
    let because = format!("max_parallel_workers = {a}, max_worker_processes = {b}, plus the session itself");
    Some(WorkerLimit { workers: a.min(b) as u32 + 1, because })
}

impl ParallelQueries for Postgres {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        self.at_primary(|c| Ok(worker_limit(&PgSettings::read(c)?)))
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let Some(sql) = queries(work, &KNOWLEDGE.dialect)?.into_iter().next() else { return Ok(None) };
        let explain = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}");
        let rows = self.primary().session(SessionRole::Job(work, 0), |c| c.query(&explain))?;
        let plan: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        Ok(Some(parse_plan(&plan)))
    }
}

/// Parses the lines `Workers Planned: 3` and `Workers Launched: 2`; without them the query was not parallel.
fn parse_plan(plan: &[String]) -> ParallelWorkers {
    let number = |name: &str| {
        let of = |line: &String| line.trim().strip_prefix(name)?.trim().parse::<u32>().ok();
        plan.iter().find_map(of).unwrap_or(0) + 1
    };
    ParallelWorkers { planned: number("Workers Planned:"), launched: number("Workers Launched:"), how: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_parsed_from_the_plan() {
        for (plan, planned, launched) in [
            ("Limit\n  ->  Gather (actual rows=9)\n   Workers Planned: 3\n   Workers Launched: 2", 4, 3),
            ("Limit\n ->  Sort", 1, 1),
        ] {
            let lines: Vec<String> = plan.lines().map(str::to_owned).collect();
            assert_eq!(parse_plan(&lines), ParallelWorkers { planned, launched, how: String::new() });
        }
    }

    #[test]
    fn the_session_itself_is_a_worker_and_no_background_process() {
        let given = PgSettings::from_pairs(&[("max_parallel_workers", "8"), ("max_worker_processes", "4")]);
        assert_eq!(worker_limit(&given).map(|m| m.workers), Some(5));
    }
}
