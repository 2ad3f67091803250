//! The target and its servers; `roles.rs` implements its roles.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_model::Driver;
use loadline_workload::Commit;

use super::apply;
use super::connect::Endpoint;
use super::doctor::MysqlSettings;
use super::instance::{self, MysqlInstance, MysqlNodes};
use super::knowledge::KNOWLEDGE;
use super::temp::TempServer;
use super::wire::Connection;
use crate::env::of_target;
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::request::OpenRequest;
use crate::work::Work;
use crate::workload_tables::LoadedTables;

/// `innodb_flush_log_at_trx_commit` for commits that do not wait: the server writes the log once a second,
/// which is nearest to such commits on other databases.
pub(super) const NOWAIT: u8 = 0;

/// A MariaDB or MySQL target.
pub(super) struct Mysql {
    pub(super) nodes: MysqlNodes,
    pub(super) facts: Facts,
    pub(super) url: String,
    /// Workload tables known to be loaded.
    pub(super) loaded: LoadedTables,
    /// The private server, if this is one. Dropped last, which stops it.
    pub(super) server: Option<Arc<Mutex<TempServer>>>,
}

impl Mysql {
    /// Opens the server at `url` and the nodes of `request`.
    pub(super) fn open(
        url: &str,
        request: &OpenRequest,
        server: Option<Arc<Mutex<TempServer>>>,
    ) -> Result<Mysql, TargetError> {
        let env = of_target(server.is_some());
        let nodes = std::iter::once(url).chain(request.nodes.iter().map(String::as_str));
        let endpoints = nodes.map(|node| Endpoint::new(node, request, env)).collect::<Result<Vec<_>, _>>()?;
        let nodes = instance::identify(endpoints, server.is_some())?;
        let facts = Facts {
            nodes: nodes.job_endpoints.len() as u32,
            block_bytes: Some(nodes.instances[0].page_bytes),
            rows_in_primary_key: true,
            commit_unseen: Some(
                "MariaDB and MySQL answer a transaction of one statement once, after its commit: the time of the commit alone \
                 is unknown",
            ),
            waits: match nodes.instances.iter().any(|i| i.pool) {
                true => &KNOWLEDGE.waits_with_pool,
                false => &KNOWLEDGE.waits,
            },
            synced_writes: nodes
                .instances
                .iter()
                .all(|i| i.doublewrite)
                .then_some("InnoDB syncs blocks after their doublewrite buffer, before it uses that again"),
            // Com_commit, which is compared where the jobs send COMMIT.
            counts_failed_commits: true,
            retries_inside: nodes.instances.iter().all(|i| i.member.is_some()),
            empty_query: "SELECT 1",
            ..Facts::of(Runs::Apart)
        };
        let url = if server.is_some() { request.url.clone() } else { crate::redact(url) };
        Ok(Mysql { nodes, facts, url, loaded: LoadedTables::default(), server })
    }

    /// The private server, if this is one.
    pub(super) fn private(&self) -> Option<MutexGuard<'_, TempServer>> {
        self.server.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn instances(&self) -> &[MysqlInstance] {
        &self.nodes.instances
    }

    /// The server that is asked what holds for all, and by which tables are made and rows are loaded.
    pub(super) fn first(&self) -> &MysqlInstance {
        &self.instances()[0]
    }

    /// Runs `f` in an administrative session of each server in turn.
    pub(super) fn each<T>(
        &self,
        mut f: impl FnMut(&MysqlInstance, &mut Connection) -> Result<T, TargetError>,
    ) -> Result<Vec<T>, TargetError> {
        self.instances().iter().map(|i| i.admin(|c| f(i, c))).collect()
    }

    /// Runs `f` in an administrative session of the first server. In a cluster, what `f` reads includes what other nodes had
    /// committed before, and all nodes have applied what it wrote.
    pub(super) fn at_first<T>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.caught_up(|| self.first().admin(f))
    }

    /// Calls `f` after the nodes of a cluster have applied each other's changes, and has them apply those of `f`.
    pub(super) fn caught_up<T>(&self, f: impl FnOnce() -> Result<T, TargetError>) -> Result<T, TargetError> {
        let catch_up = || if self.nodes.is_cluster() { apply::catch_up(self.instances()) } else { Ok(()) };
        catch_up()?;
        let done = f()?;
        catch_up()?;
        Ok(done)
    }

    /// Where `job` connects ([`Work::node`]).
    pub(super) fn endpoint_of(&self, work: &Work, job: u32) -> Result<&Arc<Endpoint>, TargetError> {
        let node = work.node(job, self.nodes.job_endpoints.len());
        self.nodes.job_endpoints.get(node).ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }

    /// See [`super::ledger::Ledger::jobs_run`].
    pub(super) fn jobs_run(&self, work: &Work, driver: Driver) {
        self.instances().iter().for_each(|i| i.ledger.jobs_run(work, driver));
    }

    /// What holds for the nodes of a cluster, for the report; `settings` are those of the first.
    pub(super) fn cluster_notes(&self, settings: &MysqlSettings) -> Vec<String> {
        if self.first().member.is_none() {
            return Vec::new();
        }
        let of = |name: &str| settings.get(name).unwrap_or("unknown").to_owned();
        let nodes: Vec<String> =
            self.instances().iter().filter_map(|i| Some(i.member.as_ref()?.name.clone())).collect();
        let size = self.instances().iter().filter_map(|i| Some(i.member.as_ref()?.size)).max().unwrap_or(0);
        let flush: Vec<String> = self.instances().iter().map(|i| i.given_flush.to_string()).collect();
        vec![
            format!(
                "{} of the {size} nodes of a Galera cluster ({}): one set of data, loaded at the first of them; job j begins its \
                 transactions at one of the nodes in turn. Settings are those of the first",
                self.facts.nodes,
                nodes.join(", ")
            ),
            format!(
                "a commit returns when its rows have been received by all nodes and it is committed at its own: \
                 innodb_flush_log_at_trx_commit is {} at the nodes, wsrep_sync_wait {}, wsrep_slave_threads {}",
                flush.join(", "),
                of("wsrep_sync_wait"),
                of("wsrep_slave_threads")
            ),
            "redo and changed rows are those of the mean node, because each node writes those of all; other counters are \
             added up"
                .to_owned(),
        ]
    }

    /// Puts the server's address before `text` if there are several servers.
    pub(super) fn labelled(&self, instance: &MysqlInstance, text: String) -> String {
        if self.instances().len() > 1 { format!("{}: {text}", instance.endpoint.config.place()) } else { text }
    }

    /// Sets a private server's `innodb_flush_log_at_trx_commit` to what the workload needs. Leaves a user's
    /// server as it is.
    pub(super) fn set_flush(&self, commit: Commit) -> Result<(), TargetError> {
        for instance in self.instances().iter().filter(|_| self.server.is_some()) {
            let wanted = match commit {
                Commit::Nowait if matches!(instance.given_flush, 1 | 3) => NOWAIT,
                _ => instance.given_flush,
            };
            if wanted != instance.flush.now() {
                let sql = format!("SET GLOBAL innodb_flush_log_at_trx_commit = {wanted}");
                instance.admin(|c| c.query(&sql).map(drop))?;
                instance.flush.0.store(wanted, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
