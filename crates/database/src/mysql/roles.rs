//! The target itself, its administration and small roles; the others are implemented beside what they need.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use loadline_model::Driver;
use loadline_model::manifest::TargetInfo;
use loadline_workload::Commit;

use super::instance::MysqlInstance;
use super::knowledge::{KNOWLEDGE, refusal};
use super::loading::MysqlLoader;
use super::server::{Mysql, NOWAIT};
use super::settings::MysqlSettings;
use super::{cache, schema};
use crate::data_set::LoadSession;
use crate::dialect::Dialect;
use crate::error::TargetError;
use crate::facts::Facts;
use crate::request::{OpenRequest, Way};
use crate::role::{BlockCache, LogSpace, RunLock};
use crate::rules::SettingValues as _;
use crate::target::{Abilities, Settings, Target, Ways};
use crate::tcp::Address;
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

impl Target for Mysql {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let first = self.first();
        let settings = first.admin(MysqlSettings::read)?;
        let mut notes = self.private().map_or_else(Vec::new, |s| s.notes.clone());
        if self.server.is_some() {
            let (nowait, given) = (NOWAIT.to_string(), first.settings.flush().to_string());
            notes.push(KNOWLEDGE.notes.text("private-flush", &[("nowait", &nowait), ("given", &given)]));
        }
        notes.extend(first.endpoint.recognised.note());
        if self.is_cluster() {
            notes.extend(self.cluster_notes(&settings));
        } else if self.facts.nodes > 1 {
            notes.push(format!("{} nodes lead to one server, whose counters are counted once", self.facts.nodes));
        }
        Ok(TargetInfo {
            kind: self.private().map_or("mysql", |s| s.setup.product.scheme.as_str()).into(),
            product: first.version.product().into(),
            version: first.version.text.clone(),
            url: self.url.clone(),
            nodes: self.facts.nodes,
            local: self.nodes.instances.iter().all(|i| i.local),
            host: settings.text("hostname").map(str::to_owned),
            log_dir: Some(settings.log_dir().display().to_string()),
            data_dir: settings.text("datadir").map(str::to_owned),
            settings: settings.recorded(),
            notes,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            database_driver: Some(self),
            tables: Some(self),
            settings: self.server.is_some().then_some(self as _),
            ways: Some(self),
            nodes: (self.nodes.instances.len() > 1).then_some(self as _),
            levels: self.private().is_some_and(|s| s.replica().is_some()).then_some(self as _),
            ..Abilities::default()
        }
    }
}

impl Ways for Mysql {
    fn lead(&self, request: &OpenRequest) -> Result<Option<Address>, TargetError> {
        *self.via.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let Way::Via(url) = &request.way else { return Ok(None) };
        let via = self.first().endpoint.via(url, request)?;
        let address = via.config.address.here();
        let name = format!("loadline {} {} via", std::process::id(), loadline_storage::now_ns());
        let mut there = via.connect()?;
        let is_same = self.first().admin(|c| {
            c.query(&format!("SELECT GET_LOCK('{name}', 0)"))?;
            Ok(there.number(&format!("SELECT IS_USED_LOCK('{name}')"))? == Some(f64::from(c.session)))
        })?;
        // The server counts what jobs do there.
        self.first().ledger.book(&mut there)?;
        if !is_same {
            let [via, here] = [via.config.place(), self.first().endpoint.config.place()];
            return Err(refusal("via-another-server", &[("via", &via), ("here", &here)]));
        }
        *self.via.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(via));
        Ok(address)
    }
}

impl LoadsTables for Mysql {
    fn dialect(&self) -> &'static Dialect {
        &KNOWLEDGE.dialect
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        let MysqlInstance { endpoint, ledger, .. } = self.first();
        Ok(Box::new(MysqlLoader { connection: endpoint.connect()?, ledger: ledger.clone() }))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        let mut held = Vec::new();
        for instance in &self.nodes.instances {
            let mut c = instance.endpoint.connect()?;
            schema::lock(&mut c)?;
            instance.ledger.book(&mut c)?;
            held.push(c);
        }
        Ok(RunLock::new(held))
    }

    /// The redo log has its full size from the start; only a binary log grows.
    fn space_for_log(&self, data: u64, _indexes: u64) -> Result<LogSpace, TargetError> {
        let each = self.each(|_, c| Ok(MysqlSettings::read(c)?.binary_log(data)))?;
        Ok(each.into_iter().max_by_key(|r| r.bytes).unwrap_or_default())
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        match self.checkpoint() {
            Ok(()) => Ok(None),
            Err(TargetError::Unsupported(why)) => Ok(Some(format!("no checkpoint before each test: {why}"))),
            Err(e) => Err(e),
        }
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock_tables()?;
        let kept = kept()?;
        self.in_step(|| self.first().admin(|c| schema::clean(c, &kept)))
    }

    /// Prepares the servers for jobs of `work` by `driver`: their commits are counted, and wait for the log or not. That is a setting of
    /// the server, which is set on a private one, and left as it is on a user's.
    fn expect_jobs(&self, work: &Work, driver: Driver) -> Result<(), TargetError> {
        for instance in &self.nodes.instances {
            instance.ledger.jobs_run(work, driver);
            let given = instance.settings.flush();
            let waits = matches!(given, 1 | 3);
            let wanted = if work.program.commit == Commit::Nowait && waits { NOWAIT } else { given };
            if self.server.is_some() && wanted != instance.ledger.flush.load(Relaxed) {
                instance.admin(|c| c.run(&format!("SET GLOBAL innodb_flush_log_at_trx_commit = {wanted}")))?;
                instance.ledger.flush.store(wanted, Relaxed);
            }
        }
        Ok(())
    }

    /// In a cluster `f` reads what other nodes had committed before, and all nodes have applied what it wrote.
    fn in_step<T>(&self, f: impl FnOnce() -> Result<T, TargetError>) -> Result<T, TargetError> {
        self.catch_up()?;
        let done = f()?;
        self.catch_up()?;
        Ok(done)
    }
}

impl BlockCache for Mysql {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let wanted = self.private().and_then(|s| s.pool_bytes(data_bytes));
        let sizes = self.each(|_, c| cache::resize(c, wanted))?;
        Ok(sizes.into_iter().sum())
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        self.each(|_, c| cache::flush(c)).map(drop)
    }
}

impl Settings for Mysql {
    /// Always restarts it: what SET GLOBAL changes and what it leaves alone differs from setting to setting and version.
    fn switch(&self, request: &OpenRequest, _: bool) -> Result<(Box<dyn Target>, bool), TargetError> {
        let (Some(shared), Some(mut server)) = (&self.server, self.private()) else {
            return Err(TargetError::Unsupported("loadline does not change a user's server".into()));
        };
        server.restart(&request.settings)?;
        drop(server);
        Ok((Box::new(Mysql::open(request, Some(Arc::clone(shared)))?), true))
    }

    fn setting(&self, name: &str) -> Result<Option<String>, TargetError> {
        // Options are written with - as well; names are compared without case.
        let name = name.replace('-', "_").replace('\\', "\\\\").replace('\'', "''");
        self.first().admin(|c| Ok(c.shown("GLOBAL VARIABLES", [name])?.into_values().next()))
    }
}
