//! The private throwaway servers of `mariadb-temp:`, also with a replica, `mysql-temp:` and, several of them, `galera-temp:`.
//! See [`crate::temp`] and docs/inside.md.
//!
//! Clients reach each server through its Unix socket; replicas, by a relay, and nodes of a cluster need ports of the loopback address. The
//! cluster's name is random and in a file that only the servers' user can read, so that nobody else joins.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::cache;
use super::connect::Endpoint;
use super::knowledge::message;
use crate::error::TargetError;
use crate::relay::Relay;
use crate::request::of_target;
use crate::temp::settings::{Settings, is_off, normal};
use crate::temp::{Server, Servers, Setup, Stages};

/// Common properties of the nodes of a cluster, if the servers are one.
pub(super) struct Installed(Option<Cluster>);

struct Cluster {
    name: String,
    provider: PathBuf,
    /// Where the first node listens for the others, once it runs.
    first: u16,
}

impl Stages for Installed {
    fn find(setup: &Setup) -> Result<Installed, TargetError> {
        let is_cluster = !setup.product.providers.is_empty();
        Ok(Installed(if is_cluster { Some(Cluster::find(setup)?) } else { None }))
    }

    /// A node of a cluster gets its data when it joins.
    fn join(&self, setup: &Setup, replica: &mut Server, first: &Server) -> Result<(), TargetError> {
        if self.0.is_some() {
            return Ok(());
        }
        replica.copy(first, None)?;
        let started = Relay::on_loopback(setup.user.uid, &first.socket()).map(|(relay, port)| {
            replica.way.1 = port;
            relay
        });
        replica.link(started)
    }

    fn command(&mut self, setup: &Setup, settings: &Settings, server: &Server) -> Result<Command, TargetError> {
        if let Some(cluster) = &mut self.0 {
            // The option file says how a member of a cluster is reached by the others.
            let failed = |e: io::Error| server.failure("a node cannot be prepared", &e.to_string());
            let options = cluster.options(&setup.product.option_file, server, free_ports().map_err(failed)?);
            server.write(&server.sockets().join("cluster.cnf"), &options)?;
        }
        // Nothing in it is worth an orderly shutdown, and a starting server may ignore a request for one.
        let mut command = setup.user.command(&setup.program.path, Signal::SIGKILL);
        command.args(server.arguments(&setup.product.start));
        command.args(server.settings(settings).iter().map(|(name, value)| argument(name, value)));
        command.args(setup.base());
        Ok(command)
    }

    /// A server that is ready creates the socket and sends a greeting to each connection.
    fn ask(server: &Server, _: Pid) -> Result<(), String> {
        let greeted = UnixStream::connect(server.socket()).and_then(|mut socket| {
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.read_exact(&mut [0; 5])
        });
        greeted.map_err(|e| e.to_string())
    }
}

fn argument(name: &str, value: &str) -> String {
    // MySQL would take the value for the name of the file.
    if normal(name) == "log_bin" && is_off(value) {
        return "--skip-log-bin".to_owned();
    }
    format!("--{}={value}", name.replace('_', "-"))
}

impl Cluster {
    /// Finds what a cluster needs.
    fn find(setup: &Setup) -> Result<Cluster, TargetError> {
        let dir = setup.program.path.parent().unwrap_or(Path::new("/"));
        let provider = match &setup.url.provider {
            Some(given) if given.is_file() => given.clone(),
            Some(given) => {
                let what = format!("provider='{}': there is no such file", given.display());
                return Err(TargetError::Usage(what));
            }
            None => {
                let places = setup.product.providers.iter().filter_map(|place| dir.join(place).canonicalize().ok());
                let missing = || message("no-galera", &[("scheme", &setup.product.scheme)]);
                places.into_iter().find(|path| path.is_file()).ok_or_else(|| TargetError::Local(missing()))?
            }
        };
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
        let random = random.map_err(|e| TargetError::Local(format!("the system gives no random number: {e}")))?;
        // At most 32 characters.
        Ok(Cluster { name: format!("loadline-{:.22}", random.replace('-', "")), provider, first: 0 })
    }

    /// The option file of a node with these ports. The first is a new cluster; the others join it.
    fn options(&mut self, form: &str, node: &Server, [group, state, snapshot]: [u16; 3]) -> String {
        let mut members = String::new();
        if node.number == 0 {
            self.first = group;
        } else {
            members = format!("127.0.0.1:{}", self.first);
        }
        let text = node.filled(form).to_string_lossy().into_owned();
        let text = text.replace("{members}", &members).replace("{cluster}", &self.name);
        let text = text.replace("{group}", &group.to_string()).replace("{state}", &state.to_string());
        text.replace("{snapshot}", &snapshot.to_string()).replace("{provider}", &self.provider.display().to_string())
    }
}

/// Free ports of the loopback address: nothing reserves them, so whoever uses them tries again if one is taken.
fn free_ports() -> io::Result<[u16; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All at once, so that they differ.
    let held = [listen()?, listen()?, listen()?];
    let [a, b, c] = held.each_ref().map(TcpListener::local_addr);
    Ok([a?.port(), b?.port(), c?.port()])
}

/// A private server, with a replica if levels need one, or the nodes of a cluster.
pub(super) type TempServer = Servers<Installed>;

impl TempServer {
    /// Restarts the server, or the nodes of a cluster, with `given` in place of the settings given before. If they do not start with
    /// them, they are started with those before.
    pub(super) fn restart(&mut self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        let former = self.give(given)?;
        let started = self.start_again();
        if started.is_err() {
            self.settings = former;
            let _ = self.start_again();
        }
        started
    }

    /// Stops the first last: it knows all that was committed, and begins the cluster again. Replicas run on.
    fn start_again(&mut self) -> Result<(), TargetError> {
        let nodes = if self.stages.0.is_some() { self.further.len() } else { 0 };
        let Servers { setup, further, first, .. } = self;
        let stopped = further[..nodes].iter_mut().rev().chain([first]);
        stopped.for_each(|server| server.stop(&setup.product.restart));
        (0..=nodes).try_for_each(|number| self.start(number))
    }

    /// Wanted size of the buffer pool: small against `data_bytes`, or the default; `None` if the user chose the size.
    pub(super) fn pool_bytes(&self, data_bytes: Option<u64>) -> Option<u64> {
        let settings = &self.settings;
        let default = settings.own_cache().then_some(settings.cache_mib << 20)?;
        Some(data_bytes.map_or(default, |bytes| cache::small(bytes).min(default)))
    }

    /// The replica, of which levels need one.
    pub(super) fn replica(&self) -> Option<&Server> {
        if self.setup.levels { self.further.first() } else { None }
    }

    pub(super) fn endpoint_of(&self, server: &Server) -> Result<Endpoint, TargetError> {
        Endpoint::new(&server.url(), &self.setup.request, of_target(true))
    }

    /// URLs of the server and of the further nodes of a cluster, without passwords.
    pub(super) fn urls(&self) -> Vec<String> {
        let nodes: &[Server] = if self.setup.levels { &[] } else { &self.further };
        std::iter::once(&self.first).chain(nodes).map(Server::url).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::descriptor::{self, Release};
    use crate::mysql::performance::{MARIADB_STAGES, MYSQL_STAGES};
    use crate::temp::settings::SERVERS;

    fn arguments(version: &str, given: &BTreeMap<String, String>) -> Vec<String> {
        let (product, of) = match version.contains("MariaDB") {
            true => (&SERVERS.mariadb, descriptor::Product::Mariadb),
            false => (&SERVERS.mysql, descriptor::Product::Mysql),
        };
        let settings = Settings::new(product, Release::new(of, version), false, given, product.cache_mib(8 << 30));
        settings.all().map(|(name, value)| argument(&name, &value)).collect()
    }

    #[test]
    fn what_a_server_is_started_with() {
        for (version, given, has, lacks) in cases::<(String, BTreeMap<_, _>, String, String)>("mysql-arguments") {
            let arguments = arguments(&version, &given);
            let found = |argument: &str| arguments.iter().any(|a| a == argument);
            assert!(found(&has) && !found(&lacks), "{version} {given:?}: {arguments:?}");
            assert!(found(&format!("--innodb-buffer-pool-chunk-size={}", cache::CHUNK)), "{version}");
        }
        for (version, stages) in [("10.11.6-MariaDB", MARIADB_STAGES), ("8.0.33", MYSQL_STAGES)] {
            let arguments = arguments(version, &BTreeMap::from([("log_bin".to_owned(), "bin".to_owned())]));
            let on = stages.iter().map(|stage| format!("--performance-schema-instrument={stage}=ON"));
            assert!(on.into_iter().all(|argument| arguments.contains(&argument)), "{version}: {arguments:?}");
        }
    }

    #[test]
    fn ports_differ() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c);
    }
}
