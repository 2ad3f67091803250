//! The target and its servers; `roles.rs` implements its roles.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::Endpoint;
use super::instance::{self, MysqlInstance, MysqlNodes};
use super::knowledge::{KNOWLEDGE, message};
use super::member::Member;
use super::settings::MysqlSettings;
use super::temp::TempServer;
use super::wire::Connection;
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::request::{OpenRequest, of_target};
use crate::rules::SettingValues as _;
use crate::target::{Nodes, RemainingNodes};
use crate::work::Work;
use crate::workload_tables::LoadedTables;

/// `innodb_flush_log_at_trx_commit` for commits that do not wait: the server writes the log once a second,
/// which is nearest to such commits on other databases.
pub(super) const NOWAIT: u8 = 0;

/// Longest that nodes may take to apply what another has committed.
const CATCHING_UP: Duration = Duration::from_secs(60);

pub(super) struct Mysql {
    pub(super) nodes: MysqlNodes,
    pub(super) facts: Facts,
    pub(super) url: String,
    /// The proxy through which jobs go now.
    pub(super) via: Mutex<Option<Arc<Endpoint>>>,
    /// Workload tables known to be loaded.
    pub(super) loaded: LoadedTables,
    /// The private server, if this is one. Dropped last, which stops it.
    pub(super) server: Option<Arc<Mutex<TempServer>>>,
}

impl Mysql {
    /// The private `server`, or the servers of `request`.
    pub(super) fn open(request: &OpenRequest, server: Option<Arc<Mutex<TempServer>>>) -> Result<Mysql, TargetError> {
        let env = of_target(server.is_some());
        let urls = match &server {
            Some(server) => server.lock().unwrap_or_else(PoisonError::into_inner).urls(),
            None => [&request.url].into_iter().chain(&request.nodes).cloned().collect(),
        };
        let endpoints = urls.iter().map(|url| Endpoint::new(url, request, env)).collect::<Result<Vec<_>, _>>()?;
        let nodes = instance::identify(endpoints, server.is_some())?;
        let facts = Facts {
            nodes: nodes.endpoints.len() as u32,
            block_bytes: Some(nodes.instances[0].settings.number("innodb_page_size").map_or(16_384, |b| b as u64)),
            rows_in_primary_key: true,
            commit_unseen: Some(
                "MariaDB and MySQL answer a transaction of one statement once, after its commit: the time of the commit alone \
                 is unknown",
            ),
            waits: match nodes.instances.iter().any(|i| i.settings.text("thread_handling") == Some("pool-of-threads")) {
                true => &KNOWLEDGE.waits_with_pool,
                false => &KNOWLEDGE.waits,
            },
            synced_writes: nodes
                .instances
                .iter()
                .all(|i| i.settings.doublewrites())
                .then_some("InnoDB syncs blocks after their doublewrite buffer, before it uses that again"),
            // Com_commit, which is compared where the jobs send COMMIT.
            counts_failed_commits: true,
            retries_inside: nodes.instances.iter().all(|i| i.member.is_some()),
            empty_query: "SELECT 1",
            ..Facts::for_runs(Runs::Apart)
        };
        let url = crate::redact(&request.url);
        Ok(Mysql { nodes, facts, url, via: Mutex::default(), loaded: LoadedTables::default(), server })
    }

    pub(super) fn private(&self) -> Option<MutexGuard<'_, TempServer>> {
        self.server.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are several servers, which are one cluster.
    pub(super) fn is_cluster(&self) -> bool {
        self.nodes.instances.len() > 1
    }

    /// The server that is asked what holds for all, and by which tables are made and rows are loaded.
    pub(super) fn first(&self) -> &MysqlInstance {
        &self.nodes.instances[0]
    }

    /// Runs `f` in an administrative session of each server in turn.
    pub(super) fn each<T>(
        &self,
        mut f: impl FnMut(&MysqlInstance, &mut Connection) -> Result<T, TargetError>,
    ) -> Result<Vec<T>, TargetError> {
        self.nodes.instances.iter().map(|i| i.admin(|c| f(i, c))).collect()
    }

    /// Nodes of the cluster, also those that are not of the target; 0 if there is none.
    pub(super) fn cluster_size(&self) -> u32 {
        self.nodes.instances.iter().filter_map(|i| Some(i.member.as_ref()?.size)).max().unwrap_or(0)
    }

    /// Opens the session of `job` at its node ([`Work::node`]), or through the proxy.
    pub(super) fn job_session(&self, work: &Work, job: u32) -> Result<Connection, TargetError> {
        let via = self.via.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let endpoint = via.as_ref().map_or_else(|| self.nodes.of_job(work, job).map(|of| of.0), Ok)?;
        let c = endpoint.connect()?;
        // A proxy may give it another one for each transaction.
        if !endpoint.is_proxy {
            endpoint.sessions.add(c.session, true, Some(job));
        }
        Ok(c)
    }

    /// Notes on the nodes of a cluster, for the report; `settings` are those of the first.
    pub(super) fn cluster_notes(&self, settings: &MysqlSettings) -> Vec<String> {
        let of = |name: &str| settings.text(name).unwrap_or("unknown");
        let names: Vec<&str> = self.nodes.instances.iter().filter_map(|i| Some(&*i.member.as_ref()?.name)).collect();
        let flush: Vec<String> = self.nodes.instances.iter().map(|i| i.settings.flush().to_string()).collect();
        let parts = [
            ("nodes", self.facts.nodes.to_string()),
            ("size", self.cluster_size().to_string()),
            ("names", names.join(", ")),
            ("flush", flush.join(", ")),
            ("wsrep_sync_wait", of("wsrep_sync_wait").to_owned()),
            ("wsrep_slave_threads", of("wsrep_slave_threads").to_owned()),
        ];
        let parts = parts.each_ref().map(|(name, part)| (*name, part.as_str()));
        ["cluster", "cluster-commit", "cluster-redo"].map(|note| KNOWLEDGE.notes.text(note, &parts)).into()
    }

    /// Waits until all nodes of a cluster have applied what any of them has committed. A node that is lost, or has lost its cluster, is
    /// not waited for: what it had committed, the others have received.
    pub(super) fn catch_up(&self) -> Result<(), TargetError> {
        if !self.is_cluster() {
            return Ok(());
        }
        let mut nodes = Vec::new();
        for (number, instance) in self.nodes.instances.iter().enumerate() {
            match instance.endpoint.connect().and_then(|mut c| Ok((Member::ask(&mut c)?.applied, c))) {
                Ok((Some(applied), c)) => nodes.push((instance, c, applied)),
                Err(e) if number == 0 => return Err(e),
                Ok((None, _)) | Err(_) => {}
            }
        }
        let last = nodes.iter().map(|(_, _, applied)| *applied).fold(0.0, f64::max);
        let deadline = Instant::now() + CATCHING_UP;
        for (instance, c, _) in &mut nodes {
            while Member::ask(c)?.applied.is_some_and(|applied| applied < last) {
                if Instant::now() >= deadline {
                    let parts =
                        [("place", &*instance.endpoint.config.place()), ("s", &CATCHING_UP.as_secs().to_string())];
                    return Err(TargetError::Statement(message("not-applied", &parts)));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            instance.ledger.book(c)?;
        }
        Ok(())
    }

    /// Puts the server's address before `text` if there are several servers.
    pub(super) fn labelled(&self, instance: &MysqlInstance, text: String) -> String {
        if self.nodes.instances.len() > 1 { format!("{}: {text}", instance.endpoint.config.place()) } else { text }
    }
}

/// Longest that the other nodes of a cluster may take to exclude a lost one: Galera waits for it for 5 s (`evs.suspect_timeout`), up to
/// 15 s if they disagree (`evs.inactive_timeout`).
const EXCLUDING: Duration = Duration::from_secs(20);

/// Answer of a server that is asked whether it is of use: `None` if it gave none; the number of nodes in its cluster, unless it has lost
/// that, or it is changing.
type Answer = Option<Option<u32>>;

fn size(c: &mut Connection) -> Result<Option<u32>, TargetError> {
    let member = Member::ask(c)?;
    Ok(member.ready.then_some(member.size))
}

/// Whether no more is to be expected: some nodes are ready, and their cluster of `before` nodes is without the others; or none is,
/// and half of them do not answer.
fn is_settled(answers: &[Answer], before: u32) -> bool {
    let sizes: Vec<u32> = answers.iter().copied().flatten().flatten().collect();
    let (others, silent) = (answers.len() - sizes.len(), answers.iter().filter(|a| a.is_none()).count());
    (!sizes.is_empty() || 2 * silent >= before as usize)
        && sizes.iter().all(|size| others == 0 || size + others as u32 <= before)
}

fn ready(nodes: &MysqlNodes, answers: &[Answer]) -> MysqlNodes {
    let is_ready: Vec<bool> = answers.iter().map(|answer| answer.flatten().is_some()).collect();
    let mut left = nodes.left(&is_ready);
    for (instance, size) in left.instances.iter_mut().zip(answers.iter().copied().flatten().flatten()) {
        instance.member.iter_mut().for_each(|member| member.size = size);
    }
    left
}

impl Nodes for Mysql {
    fn without_lost(&self) -> Option<RemainingNodes> {
        let before = self.cluster_size();
        let deadline = Instant::now() + EXCLUDING;
        let answers = loop {
            let answers: Vec<Answer> = self.nodes.instances.iter().map(|i| i.admin(size).ok()).collect();
            if answers.iter().all(Option::is_none) || is_settled(&answers, before) || Instant::now() >= deadline {
                break answers;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let nodes = ready(&self.nodes, &answers);
        if nodes.instances.len() == self.nodes.instances.len() {
            return None;
        }
        let of = |is: fn(&Answer) -> bool| -> Vec<String> {
            let them = self.nodes.instances.iter().zip(&answers).filter(|(_, answer)| is(answer));
            them.map(|(instance, _)| instance.endpoint.config.place()).collect()
        };
        let lost = of(|answer| answer.flatten().is_none());
        if nodes.instances.is_empty() {
            let (gone, there) = (of(Option::is_none), of(|answer| *answer == Some(None)));
            return Some(match &there[..] {
                [] => RemainingNodes { target: Err("no node is left".to_owned()), lost },
                there => RemainingNodes {
                    target: Err(format!("{} cannot go on without a majority of the cluster", there.join(" and "))),
                    // All are, if each is by itself.
                    lost: if gone.is_empty() { lost } else { gone },
                },
            });
        }
        let target = Mysql {
            facts: Facts { nodes: nodes.endpoints.len() as u32, ..self.facts.clone() },
            nodes,
            url: self.url.clone(),
            via: Mutex::default(),
            loaded: LoadedTables::default(),
            server: self.server.clone(),
        };
        Some(RemainingNodes { target: Ok(Box::new(target)), lost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn a_loss_is_settled_once_the_cluster_is_smaller() {
        for (answers, before, settled) in cases::<(Vec<Vec<u32>>, u32, bool)>("mysql-lost-nodes") {
            let answer = |sizes: &Vec<u32>| sizes.first().map(|size| Some(*size).filter(|size| *size > 0));
            let all: Vec<Answer> = answers.iter().map(answer).collect();
            assert_eq!(is_settled(&all, before), settled, "{answers:?} of {before}");
        }
    }
}
