//! The private throwaway servers behind `mariadb-temp:`, also with a replica, `mysql-temp:` and, several of them, `galera-temp:`.
//! See [`crate::temp`].

mod binaries;
mod cluster;
mod install;
mod instance;
mod replica;
mod settings;

use std::collections::BTreeMap;

use super::cache;
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::instance::Instance;
use crate::temp::product::Product;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;
use binaries::Binaries;
use cluster::{Cluster, ClusterUrl};
pub(super) use replica::ReplicaServer;

use crate::temp::{Start, encoded, memory, temp_url};

/// What distinguishes MariaDB's private servers.
pub(super) static MARIADB: Product = Product {
    name: "MariaDB",
    scheme: "mariadb-temp",
    prefix: "loadline-mariadb-",
    program: "mariadbd",
    supported: "10.6 and newer",
    package: "mariadb-server",
    bin: "/opt/mariadb/bin",
    log_setting: "innodb_log_file_size",
    ..MYSQL
};

/// What distinguishes a MariaDB with replicas.
pub(super) static REPLICATED: Product = Product {
    reserved: &[settings::RESERVED, settings::REPLICATED_RESERVED],
    // As many as the request asks for: the URL of `mariadb-temp:` cannot say.
    further: Some("replicas"),
    ..MARIADB
};

/// What distinguishes the nodes of private Galera clusters.
pub(super) static GALERA: Product = Product {
    scheme: "galera-temp",
    prefix: "loadline-galera-",
    reserved: &[settings::RESERVED, settings::GALERA_RESERVED],
    log_setting: "innodb_log_file_size",
    // The others would wait for a node that takes its time.
    stages: &instance::AT_ONCE,
    ..MARIADB
};

/// What distinguishes MySQL's private servers.
pub(super) static MYSQL: Product = Product {
    name: "MySQL",
    scheme: "mysql-temp",
    prefix: "loadline-mysql-",
    user: "mysql",
    program: "mysqld",
    supported: "8.0 and newer",
    package: "mysql-server",
    bin: "/opt/mysql/bin",
    log_setting: "innodb_redo_log_capacity",
    reserved: &[settings::RESERVED],
    secrets: &["password", "secret", "key"],
    socket: "s",
    unfit: |_| false,
    further: None,
    besides: &[],
    stages: &instance::STAGES,
    end: instance::end,
};

/// What `url` says of the cluster that it asks for; `None`: it asks for none.
fn cluster_of(url: &str) -> Result<Option<ClusterUrl>, TargetError> {
    temp_url::is_of(url, GALERA.scheme).then(|| ClusterUrl::parse(url)).transpose()
}

/// `request` with the URL of a single server, without what only a cluster's can say.
fn single(request: &OpenRequest, of_cluster: Option<&ClusterUrl>) -> OpenRequest {
    let url = of_cluster.map_or_else(|| request.url.clone(), |of_cluster| of_cluster.rest.clone());
    OpenRequest { url, ..request.clone() }
}

/// As [`crate::temp::check_url`], also for clusters.
///
/// # Errors
/// As there.
pub(super) fn check_url(product: &Product, url: &str) -> Result<u32, TargetError> {
    let of_cluster = cluster_of(url)?;
    let nodes = crate::temp::check_url(product, of_cluster.as_ref().map_or(url, |url| &url.rest))?;
    Ok(of_cluster.map_or(nodes, |url| url.nodes))
}

/// As [`crate::temp::clean_leftovers`], also for clusters.
///
/// # Errors
/// As there.
pub(super) fn clean(product: &Product, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
    crate::temp::clean_leftovers(product, &single(request, cluster_of(&request.url)?.as_ref()))
}

/// The administrator. It needs no password: only the server's operating system user and root can open the
/// socket's directory.
const SUPERUSER: &str = "root";

/// A running private server. Dropping it stops the server and removes its files.
pub(super) struct TempServer {
    product: &'static Product,
    notes: Vec<String>,
    binaries: Binaries,
    user: ServerUser,
    settings: Settings,
    /// Further nodes of a cluster.
    joined: Vec<Instance>,
    /// They stop before the server that they follow.
    replicas: Vec<ReplicaServer>,
    instance: Instance,
    /// What the nodes have in common, if they are a cluster.
    cluster: Option<Cluster>,
}

/// Memory of the machine for each of the servers, bytes.
fn memory_each(cluster: Option<&Cluster>, replicas: usize) -> u64 {
    memory::memory_bytes() / cluster.map_or(1 + replicas as u64, |cluster| cluster.nodes.into())
}

impl TempServer {
    /// Creates a server, or those of a cluster, and starts it. First removes leftovers of dead owners in the same place.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL, or a setting that the server does not know or take.
    /// - [`TargetError::Local`]: no binaries, no usable directory, or the server failed.
    ///
    /// Nothing is left behind in either case.
    pub(super) fn start(product: &'static Product, request: &OpenRequest) -> Result<TempServer, TargetError> {
        let of_cluster = cluster_of(&request.url)?;
        let request = single(request, of_cluster.as_ref());
        let start = Start::new(product, &request)?;
        let binaries = binaries::find(product, start.address.bin.as_deref(), &start.user)?;
        settings::check_values(&request.settings, &binaries, &start.user)?;
        let cluster = of_cluster.map(|url| Cluster::new(&url, &binaries, memory::memory_bytes()));
        let cluster = cluster.transpose()?;
        let memory = memory_each(cluster.as_ref(), start.further as usize);
        let settings = settings::settings(product, &binaries.version, memory, &request.settings);
        let (instance, site) = start.create(&binaries.server)?;
        if let Some(cluster) = &cluster {
            cluster.check_space(&instance.files.data())?;
        }
        let further = 1..cluster.as_ref().map_or(1, |cluster| cluster.nodes);
        let joined = further.map(|_| Ok(start.create(&binaries.server)?.0)).collect::<Result<Vec<_>, TargetError>>()?;
        let copies = (0..start.further).map(|_| start.another(&site)).collect::<Result<Vec<_>, TargetError>>()?;
        let version = format!("{} ({})", binaries.version.text, binaries.server.display());
        let mut notes = start.notes(&version, site, &settings);
        notes.extend(replica::note(start.further));
        let (user, replicas) = (start.user, Vec::new());
        let mut server = TempServer { product, notes, binaries, user, settings, joined, replicas, instance, cluster };
        instance::install(&server)?;
        for (number, copy) in (1..).zip(copies) {
            server.replicas.push(ReplicaServer::prepare(number, copy, &server.instance, &server.user)?);
        }
        instance::start(&mut server)?;
        for replica in &mut server.replicas {
            replica.start(&server.binaries, &server.user, &server.settings)?;
        }
        Ok(server)
    }

    /// Restarts the server with `given` in place of the settings given before. If it does not start with them, it is started
    /// with those before.
    ///
    /// # Errors
    /// As [`TempServer::start`].
    pub(super) fn restart(&mut self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        if self.settings.given != *given {
            self.product.check_names(given)?;
            settings::check_values(given, &self.binaries, &self.user)?;
        }
        let memory = memory_each(self.cluster.as_ref(), self.replicas.len());
        let next = settings::settings(self.product, &self.binaries.version, memory, given);
        let former = std::mem::replace(&mut self.settings, next);
        self.stop();
        let started = instance::start(self);
        if started.is_err() {
            self.settings = former;
            self.stop();
            let _ = instance::start(self);
        }
        started
    }

    /// Stops all servers, the first last: it knows all that was committed, and begins the cluster again.
    fn stop(&mut self) {
        let nodes = self.joined.iter_mut().rev().chain(std::iter::once(&mut self.instance));
        nodes.for_each(|instance| instance.stop(&instance::RESTART));
    }

    /// Wanted size of the buffer pool: small against `data_bytes`, or the default; `None` if the user chose the
    /// size.
    pub(super) fn pool_bytes(&self, data_bytes: Option<u64>) -> Option<u64> {
        let default = settings::own_pool(&self.settings, memory_each(self.cluster.as_ref(), self.replicas.len()))?;
        Some(data_bytes.map_or(default, |bytes| cache::small(bytes).min(default)))
    }

    /// The replicas.
    pub(super) fn replicas(&self) -> &[ReplicaServer] {
        &self.replicas
    }

    /// Starts replicas again that have ended, and those of the names `hang`.
    ///
    /// # Errors
    /// [`TargetError::Local`]: one does not start.
    pub(super) fn revive_replicas(&mut self, hang: &[String]) -> Result<(), TargetError> {
        let TempServer { binaries, user, settings, replicas, .. } = self;
        replicas.iter_mut().try_for_each(|r| r.revive((binaries, user, settings), hang.contains(&r.name)))
    }

    /// URL of the running server, without a password; in `request` those of the further nodes of a cluster.
    pub(super) fn address(&self, request: &OpenRequest) -> (String, OpenRequest) {
        let nodes = self.joined.iter().map(url_of).collect();
        (url_of(&self.instance), OpenRequest { nodes, ..request.clone() })
    }

    /// Scheme of its target's URL.
    pub(super) fn scheme(&self) -> &'static str {
        self.product.scheme
    }

    /// What a reader of the report should know.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// URL of a running server, without a password.
fn url_of(instance: &Instance) -> String {
    format!("mysql://{SUPERUSER}@/?socket={}", encoded(&instance.files.socket()))
}
