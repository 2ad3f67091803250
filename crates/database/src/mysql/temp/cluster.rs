//! A private Galera cluster: what its URL says, and what its nodes need besides what a single server needs.
//!
//! Clients reach each node through its Unix socket. The nodes reach each other through ports of the loopback address, which
//! neither has another way for. The name of the cluster is random and, like all of that, in a file that only the servers' user
//! can read: nobody joins by chance, and no other user finds the name in the list of processes.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;

use super::GALERA;
use super::binaries::Binaries;
use crate::error::TargetError;
use crate::temp::files::Files;
use crate::temp::place::free_bytes;
use crate::temp::user::ServerUser;

/// Nodes unless the URL says how many.
const NODES: u32 = 3;
const MAX_NODES: u32 = 8;
/// Size of a node's redo log.
pub(super) const LOG_SIZE: &str = "512M";
/// What a node needs at least: its data, redo log, and cache of what the others may ask for again.
const DISK_BYTES: u64 = 900 << 20;
/// What a node needs at least: a buffer pool of 128 MiB, its cache, and the server itself.
const MEMORY_BYTES: u64 = 400 << 20;
/// Where distributions install the library that replicates.
const PROVIDERS: [&str; 7] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib/galera-4/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib64/galera/libgalera_smm.so",
    "/usr/lib/libgalera_smm.so",
    "/usr/local/lib/libgalera_smm.so",
    "/usr/local/lib/galera/libgalera_smm.so",
];
/// The same relative to the directory of the binaries.
const BESIDE: [&str; 4] = [
    "../lib/galera-4/libgalera_smm.so",
    "../lib/galera/libgalera_smm.so",
    "../lib/libgalera_smm.so",
    "libgalera_smm.so",
];
/// What brings the data to a node that joins (`wsrep_sst_rsync`).
const PROGRAMS: [&str; 2] = ["rsync", "wsrep_sst_rsync"];

/// What the URL of a cluster says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClusterUrl {
    pub(super) nodes: u32,
    provider: Option<PathBuf>,
    /// The URL without that, as of a single server.
    pub(super) rest: String,
}

impl ClusterUrl {
    /// Parses `galera-temp:[/dir][?nodes=N&provider=FILE&bin=/dir]`.
    ///
    /// # Errors
    /// [`TargetError::Usage`] with the invalid part and what is allowed.
    pub(super) fn parse(url: &str) -> Result<ClusterUrl, TargetError> {
        let usage = |what: String| TargetError::Usage(format!("'{}': {what}", crate::redact(url)));
        let (head, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut nodes, mut provider, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let before = match name {
                "nodes" => {
                    let given = value.parse().ok().filter(|n| (1..=MAX_NODES).contains(n));
                    let given = given
                        .ok_or_else(|| usage(format!("nodes='{value}' must be a number from 1 to {MAX_NODES}")))?;
                    nodes.replace(given).is_some()
                }
                "provider" => {
                    let path = crate::url::path(value).filter(|path| path.is_absolute());
                    let path = path
                        .ok_or_else(|| usage(format!("provider='{value}' must be a file such as {}", PROVIDERS[0])))?;
                    provider.replace(path).is_some()
                }
                "bin" => {
                    rest.push(pair);
                    false
                }
                _ => return Err(usage(crate::url::unknown(name, &["nodes", "provider", "bin"]))),
            };
            if before {
                return Err(usage(format!("{name} is given twice")));
            }
        }
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        Ok(ClusterUrl { nodes: nodes.unwrap_or(NODES), provider, rest: format!("{head}{query}") })
    }
}

/// What the nodes of a cluster have in common.
pub(super) struct Cluster {
    name: String,
    provider: PathBuf,
    pub(super) nodes: u32,
    /// Where the first node listens for the others, once it runs.
    first: Option<u16>,
}

impl Cluster {
    /// Finds what a cluster needs. `memory_bytes` are those of the machine.
    ///
    /// # Errors
    /// [`TargetError::Usage`] or [`TargetError::Local`] with what is missing and how to get it.
    pub(super) fn new(url: &ClusterUrl, binaries: &Binaries, memory_bytes: u64) -> Result<Cluster, TargetError> {
        let needed = u64::from(url.nodes) * MEMORY_BYTES;
        if needed > memory_bytes {
            return Err(TargetError::Local(format!(
                "{} nodes need at least {} of memory, and this machine has {}: take fewer in the target's URL",
                url.nodes,
                bytes(needed as f64),
                bytes(memory_bytes as f64)
            )));
        }
        let folders: Vec<PathBuf> = super::binaries::folders().collect();
        let missing = PROGRAMS.iter().find(|name| !folders.iter().any(|dir| dir.join(name).is_file()));
        if let Some(name) = missing.filter(|_| url.nodes > 1) {
            return Err(TargetError::Local(format!(
                "'{name}' is missing, with which a node that joins gets its data: install it ('apt-get install rsync \
                 mariadb-server' on Debian and Ubuntu)"
            )));
        }
        let provider = provider(url, binaries)?;
        // At most 32 characters.
        let name = format!("loadline-{:.22}", random_uuid()?.replace('-', ""));
        Ok(Cluster { name, provider, nodes: url.nodes, first: None })
    }

    /// Checks the free disk space.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(super) fn check_space(&self, dir: &Path) -> Result<(), TargetError> {
        let needed = u64::from(self.nodes) * DISK_BYTES;
        match free_bytes(dir) {
            Some(free) if free < needed => Err(TargetError::Local(format!(
                "the filesystem under '{}' has {} of free space, and {} nodes need at least {}: free some, or name another \
                 directory or fewer nodes in the target's URL",
                dir.display(),
                bytes(free as f64),
                self.nodes,
                bytes(needed as f64)
            ))),
            _ => Ok(()),
        }
    }

    /// Writes the option file of node `number` (from 0) and returns its path. The first is a new cluster; the others join it.
    ///
    /// # Errors
    /// If there are no free ports, or the file cannot be written.
    pub(super) fn prepare(&mut self, number: usize, files: &Files, user: &ServerUser) -> Result<PathBuf, TargetError> {
        let failed = |e: std::io::Error| files.failure("a node of the cluster cannot be prepared", &e.to_string());
        let [group, state, snapshot] = free_ports().map_err(failed)?;
        let first = match (number, self.first) {
            (0, _) => None,
            (_, first) => first,
        };
        if number == 0 {
            self.first = Some(group);
        }
        let options = self.options(number, first, [group, state, snapshot], &files.data());
        let path = files.sockets().join("cluster.cnf");
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if user.switch {
            chown(&path, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        file.write_all(options.as_bytes()).map_err(failed)?;
        Ok(path)
    }

    fn options(&self, number: usize, first: Option<u16>, ports: [u16; 3], data: &Path) -> String {
        let [group, state, snapshot] = ports;
        let address = first.map_or_else(|| "gcomm://".to_owned(), |port| format!("gcomm://127.0.0.1:{port}"));
        format!(
            "[mysqld]\nskip_networking=ON\nwsrep_on=ON\nwsrep_provider={}\nwsrep_cluster_name={}\nwsrep_cluster_address={address}\n\
             wsrep_node_name=node{}\nwsrep_node_address=127.0.0.1:{group}\nwsrep_sst_method=rsync\n\
             wsrep_sst_receive_address=127.0.0.1:{snapshot}\n\
             wsrep_provider_options=\"gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{state};\
             pc.announce_timeout=PT0.5S;pc.recovery=no;gcache.dir={};gcache.size=128M\"\n",
            self.provider.display(),
            self.name,
            number + 1,
            data.display()
        )
    }
}

/// Whether the server's log says that a port was taken meanwhile.
pub(super) fn says_port_taken(log: &str) -> bool {
    log.contains("Address already in use") || log.contains("address already in use")
}

/// Free ports of the loopback address: nothing reserves them, so whoever uses them tries again if one is taken.
fn free_ports() -> std::io::Result<[u16; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All at once, so that they differ.
    let held = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// A new random UUID, as the kernel makes it.
fn random_uuid() -> Result<String, TargetError> {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid");
    uuid.map(|uuid| uuid.trim().to_owned())
        .map_err(|e| TargetError::Local(format!("the system gives no random number: {e}")))
}

/// The library that replicates: the one of the URL, else beside binaries that the user named, else the installed one.
fn provider(url: &ClusterUrl, binaries: &Binaries) -> Result<PathBuf, TargetError> {
    if let Some(given) = &url.provider {
        let missing = || TargetError::Usage(format!("provider='{}': there is no such file", given.display()));
        return if given.is_file() { Ok(given.clone()) } else { Err(missing()) };
    }
    let dir = binaries.server.parent().unwrap_or(Path::new("/"));
    let places = BESIDE.iter().map(|place| dir.join(place)).chain(PROVIDERS.iter().map(PathBuf::from));
    let found = places.filter_map(|path| path.canonicalize().ok()).find(|path| path.is_file());
    found.ok_or_else(|| {
        TargetError::Local(format!(
            "Galera's library libgalera_smm.so is missing: install it ('apt-get install galera-4' on Debian and Ubuntu, 'dnf \
             install galera' on Fedora and RHEL), or name the file with {}:?provider=/path/libgalera_smm.so",
            GALERA.scheme
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let of = |nodes, provider: Option<&str>, rest: &str| ClusterUrl {
            nodes,
            provider: provider.map(Into::into),
            rest: rest.into(),
        };
        for (url, expected) in [
            ("galera-temp:", of(3, None, "galera-temp:")),
            ("galera-temp:/a%20b?nodes=5", of(5, None, "galera-temp:/a%20b")),
            ("galera-temp:?bin=/x/bin&nodes=1&provider=/a%20b.so", of(1, Some("/a b.so"), "galera-temp:?bin=/x/bin")),
        ] {
            assert_eq!(ClusterUrl::parse(url).unwrap(), expected, "{url}");
        }
        for (url, part) in [
            ("galera-temp:?nodes=0", "nodes='0' must be a number from 1 to 8"),
            ("galera-temp:?nodes=x", "nodes='x'"),
            ("galera-temp:?nodes=99", "from 1 to 8"),
            ("galera-temp:?nodes=2&nodes=3", "twice"),
            ("galera-temp:?provider=x.so", "provider='x.so' must be a file"),
            ("galera-temp:?node=2", "did you mean 'nodes'?"),
        ] {
            let e = ClusterUrl::parse(url).unwrap_err().to_string();
            assert!(e.contains(part), "{url}: {e}");
        }
    }

    #[test]
    fn ports_differ() {
        let [a, b, c] = free_ports().unwrap();
        assert!(a != b && b != c && a != c);
    }
}
