//! The private throwaway servers behind `mariadb-temp:` and `mysql-temp:`.
//! See [`crate::temp`].

mod binaries;
mod install;
mod instance;
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

use crate::temp::{Start, encoded, memory};

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
    reserved: settings::RESERVED,
    secrets: &["password", "secret", "key"],
    socket: "s",
    unfit: |_| false,
    further: None,
    besides: &[],
    stages: &instance::STAGES,
    end: instance::end,
};
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
    instance: Instance,
}

impl TempServer {
    /// Creates a server and starts it. First removes leftovers of dead owners in the same place.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL, or a setting that the server does not know or take.
    /// - [`TargetError::Local`]: no binaries, no usable directory, or the server failed.
    ///
    /// Nothing is left behind in either case.
    pub(super) fn start(product: &'static Product, request: &OpenRequest) -> Result<TempServer, TargetError> {
        let start = Start::new(product, request)?;
        let binaries = binaries::find(product, start.address.bin.as_deref(), &start.user)?;
        settings::check_values(&request.settings, &binaries, &start.user)?;
        let settings = settings::settings(product, &binaries.version, memory::memory_bytes(), &request.settings);
        let (instance, site) = start.create(&binaries.server)?;
        let server = format!("{} ({})", binaries.version.text, binaries.server.display());
        let notes = start.notes(&server, site, &settings);
        let mut server = TempServer { product, notes, binaries, user: start.user, settings, instance };
        instance::install(&server)?;
        instance::start(&mut server)?;
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
        let next = settings::settings(self.product, &self.binaries.version, memory::memory_bytes(), given);
        let former = std::mem::replace(&mut self.settings, next);
        self.instance.stop(&instance::RESTART);
        let started = instance::start(self);
        if started.is_err() {
            self.settings = former;
            self.instance.stop(&instance::RESTART);
            let _ = instance::start(self);
        }
        started
    }

    /// Wanted size of the buffer pool: small against `data_bytes`, or the default; `None` if the user chose the
    /// size.
    pub(super) fn pool_bytes(&self, data_bytes: Option<u64>) -> Option<u64> {
        let default = settings::own_pool(&self.settings, memory::memory_bytes())?;
        Some(data_bytes.map_or(default, |bytes| cache::small(bytes).min(default)))
    }

    /// URL of the running server, without a password.
    pub(super) fn url(&self) -> String {
        format!("mysql://{SUPERUSER}@/?socket={}", encoded(&self.instance.files.socket()))
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
