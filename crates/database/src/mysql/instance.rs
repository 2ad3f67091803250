//! The servers behind a target's nodes.

use std::sync::Arc;

use super::connect::Endpoint;
use super::ledger::Ledger;
use super::member::{Member, refuse_group};
use super::performance::CommitTimes;
use super::settings::MysqlSettings;
use super::version::Version;
use super::wire::Connection;
use crate::cloud::Cloud;
use crate::error::TargetError;
use crate::rules::SettingValues;
use crate::servers::Servers;

/// A server. Several nodes may lead to the same one.
#[derive(Clone)]
pub(super) struct MysqlInstance {
    pub(super) endpoint: Arc<Endpoint>,
    /// Number of nodes that lead to it.
    pub(super) nodes: u32,
    pub(super) version: Version,
    pub(super) ledger: Ledger,
    /// `innodb_flush_log_at_trx_commit` when the target was opened.
    pub(super) given_flush: u8,
    /// Whether it runs on this machine.
    pub(super) local: bool,
    /// Whether MariaDB's thread pool serves the sessions.
    pub(super) pool: bool,
    pub(super) times: CommitTimes,
    /// The managed service that runs it.
    pub(super) cloud: Option<&'static Cloud>,
    /// Whether each block is written to the doublewrite buffer first, and synced at its place before the buffer is used again.
    pub(super) doublewrite: bool,
    /// Whether InnoDB's log may be opened with O_SYNC, so that each write is also a sync (`innodb_flush_method = O_DSYNC`).
    pub(super) log_writes_sync: bool,
    /// Size of a page, bytes.
    pub(super) page_bytes: u64,
    /// Membership of a cluster, if any.
    pub(super) member: Option<Member>,
}

/// The servers behind the nodes. Several are one cluster, and hold the same data.
pub(super) type MysqlNodes = Servers<MysqlInstance, Arc<Endpoint>>;

/// Connects to all endpoints and finds out which lead to the same server: a user lock is visible to the
/// sessions of its server only. Names and addresses do not decide: a server may have several, and two
/// servers may have the same.
/// `private`: loadline started the servers.
pub(super) fn identify(endpoints: Vec<Endpoint>, private: bool) -> Result<MysqlNodes, TargetError> {
    let several = endpoints.len() > 1;
    let mut nodes = Servers { instances: Vec::new(), instance_of: Vec::new(), endpoints: Vec::new() };
    let mut held: Vec<(Connection, String)> = Vec::new();
    for (node, mut endpoint) in endpoints.into_iter().enumerate() {
        let mut c = endpoint.connect()?;
        refuse_group(&mut c, &endpoint.config.place())?;
        let member = Member::ask(&mut c, private, &endpoint.config.place())?;
        if let Some(member) = member.as_ref().filter(|_| several) {
            endpoint.config.name_node(node, &member.name);
        }
        let endpoint = Arc::new(endpoint);
        let mut known = None;
        for (i, (first, name)) in held.iter().enumerate() {
            let holder = c.number(&format!("SELECT IS_USED_LOCK('{name}')"))?;
            if holder == Some(f64::from(first.session)) {
                known = Some(i);
            }
        }
        let at = known.unwrap_or(held.len());
        match nodes.instances.get_mut(at) {
            Some(MysqlInstance { endpoint: first, member: Some(member), .. }) => {
                return Err(member.twice([&first.config.place(), &endpoint.config.place()]));
            }
            Some(instance) => {
                instance.nodes += 1;
                instance.ledger.book(&mut c)?;
            }
            None => {
                if let Some(other) = nodes.instances.first().filter(|i| i.version != c.version) {
                    return Err(TargetError::Refused(format!(
                        "the nodes have different versions: {} {} and {} {}. All nodes must have the same",
                        other.version.product(),
                        other.version.text,
                        c.version.product(),
                        c.version.text
                    )));
                }
                let name = format!("loadline {} {} {node}", std::process::id(), loadline_storage::now_ns());
                c.query(&format!("SELECT GET_LOCK('{name}', 0)"))?;
                let instance = MysqlInstance::inspect(Arc::clone(&endpoint), &mut c, member)?;
                check_cluster(&nodes.instances, &instance)?;
                nodes.instances.push(instance);
                held.push((c, name));
            }
        }
        if let Some(instance) = nodes.instances.get(at) {
            let of_jobs = endpoint.for_jobs(&instance.endpoint.sessions, instance.member.as_ref());
            nodes.endpoints.push(Arc::new(of_jobs));
        }
        nodes.instance_of.push(at);
    }
    for (instance, (c, _)) in nodes.instances.iter().zip(&mut held) {
        instance.ledger.book(c)?;
    }
    Ok(nodes)
}

/// Checks that `new` is of one cluster with the `known` servers.
fn check_cluster(known: &[MysqlInstance], new: &MysqlInstance) -> Result<(), TargetError> {
    let Some(first) = known.first() else { return Ok(()) };
    let of = |i: &MysqlInstance| i.member.as_ref().map(|m| m.cluster.clone());
    match (of(first), of(new)) {
        (Some(a), Some(b)) if a == b => return Ok(()),
        (None, None) => {
            return Err(TargetError::Refused(format!(
                "'{}' is a server of its own, and so is '{}': nodes are servers of one cluster. Measure each by itself, and set their \
                 runs side by side (loadline report RUN RUN)",
                new.endpoint.config.place(),
                first.endpoint.config.place()
            )));
        }
        _ => {}
    }
    let say = |i: &MysqlInstance| {
        let place = i.endpoint.config.place();
        of(i).map_or_else(|| format!("{place} is in no cluster"), |name| format!("{place} is in the cluster {name}"))
    };
    Err(TargetError::Refused(format!("{}, and {}: all nodes must be servers of one cluster", say(first), say(new))))
}

impl MysqlInstance {
    fn inspect(
        endpoint: Arc<Endpoint>,
        c: &mut Connection,
        member: Option<Member>,
    ) -> Result<MysqlInstance, TargetError> {
        let settings = MysqlSettings::read(c)?;
        let given_flush = settings.number("innodb_flush_log_at_trx_commit").unwrap_or(1.0) as u8;
        let log_bin = settings.is_on("log_bin");
        Ok(MysqlInstance {
            local: is_local(&endpoint, settings.get("pid_file")),
            endpoint,
            nodes: 1,
            version: c.version.clone(),
            ledger: Ledger::new(given_flush, log_bin, member.is_some()),
            given_flush,
            pool: settings.get("thread_handling") == Some("pool-of-threads"),
            times: CommitTimes::ask(c, log_bin)?,
            cloud: settings.cloud(),
            doublewrite: doublewrites(&settings),
            log_writes_sync: settings.get("innodb_flush_method").is_some_and(|m| m.eq_ignore_ascii_case("O_DSYNC")),
            page_bytes: settings.number("innodb_page_size").map_or(16_384, |b| b as u64),
            member,
        })
    }

    /// Runs `f` in an administrative session.
    pub(super) fn admin<T>(&self, f: impl FnOnce(&mut Connection) -> Result<T, TargetError>) -> Result<T, TargetError> {
        let mut c = self.endpoint.connect()?;
        let done = f(&mut c);
        // The server also counts what a failed step committed.
        match (&done, self.ledger.book(&mut c)) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }
}

/// Whether these settings make InnoDB sync blocks after their doublewrite buffer.
fn doublewrites(settings: &MysqlSettings) -> bool {
    let of = |name| settings.get(name).unwrap_or_default();
    // MySQL's DETECT_ONLY writes no blocks there, only their numbers.
    ["on", "detect_and_recover"].iter().any(|on| of("innodb_doublewrite").eq_ignore_ascii_case(on))
        && !["nosync", "littlesync"].contains(&of("innodb_flush_method"))
}

/// Whether the server runs on this machine: it is reached by a socket or loopback address, and its process
/// is here (not behind a tunnel or a container's port).
fn is_local(endpoint: &Endpoint, pid_file: Option<&str>) -> bool {
    let is_server = |pid: &str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        matches!(name.trim(), "mariadbd" | "mysqld")
    };
    let of_file = pid_file.and_then(|path| std::fs::read_to_string(path).ok());
    endpoint.config.address.is_near()
        && match of_file {
            Some(pid) => is_server(pid.trim()),
            // The file cannot be read: any server process counts.
            None => std::fs::read_dir("/proc")
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| entry.file_name().to_str().is_some_and(is_server)),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_doublewritten_if_they_can_be_recovered() {
        for (value, expected) in [("ON", true), ("DETECT_AND_RECOVER", true), ("DETECT_ONLY", false), ("OFF", false)] {
            let settings = MysqlSettings([("innodb_doublewrite".to_owned(), value.to_owned())].into());
            assert_eq!(doublewrites(&settings), expected, "{value}");
        }
    }
}
