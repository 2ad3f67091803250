//! The private throwaway PostgreSQL server of `postgres-temp:`. See [`crate::temp`].

mod binaries;
mod instance;
mod probe;
mod processes;
mod settings;
mod shared_memory;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::product::Product;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;
use crate::temp::{Start, encoded, memory};

use binaries::Binaries;
use instance::Instance;

/// Name of the database's superuser. It needs no password: only the server's operating system user and root have access
/// to the socket's directory.
const SUPERUSER: &str = "postgres";

/// The PostgreSQL part of a private server.
pub(super) static PRODUCT: Product = Product {
    name: "PostgreSQL",
    scheme: "postgres-temp",
    prefix: "loadline-pg-",
    user: "postgres",
    program: "postgres",
    supported: "14 and newer",
    package: "postgresql",
    bin: "/usr/lib/postgresql/16/bin",
    log_setting: "max_wal_size",
    reserved: settings::RESERVED,
    secrets: &["password", "passphrase", "conninfo", "secret"],
    socket: ".s.PGSQL.5432",
    // unix_socket_directories is a list of quoted names.
    unfit: |c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '\\'),
    besides: &[instance::INITDB, instance::CONFIG, instance::NEW_CONFIG],
    stages: &processes::STAGES,
    end: instance::end,
};

/// Only part of the socket's file name: the server does not listen on the network.
const PORT: u16 = 5432;

/// A running private server. Dropping it stops the server and removes its files.
pub(super) struct TempServer {
    url: String,
    notes: Vec<String>,
    binaries: Binaries,
    user: ServerUser,
    settings: Settings,
    /// Stops and removes the server when it is dropped.
    instance: Instance,
}

impl TempServer {
    /// Removes leftovers of dead owners in the same directory, then creates and starts a server.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL is invalid, or PostgreSQL rejects a setting.
    /// - [`TargetError::Local`]: no binaries, no usable directory, `initdb` or the server failed.
    ///
    /// No files are left in either case.
    pub(super) fn start(request: &OpenRequest) -> Result<TempServer, TargetError> {
        let start = Start::new(&PRODUCT, request)?;
        let binaries = binaries::find(start.address.bin.as_deref(), &start.user)?;
        let (instance, site) = start.create(&binaries.postgres())?;
        let mut instance = Instance::new(instance);
        instance.initdb(&binaries, &start.user)?;
        settings::check_values(&request.settings, &binaries, &start.user, &instance.data())?;
        let settings = settings::settings(memory::memory_bytes(), &request.settings);
        instance.start(&binaries, &start.user, &settings)?;

        let server = format!("{} from {}", binaries.version, binaries.dir.display());
        let notes = start.notes(&server, site, &settings);
        let host = encoded(&instance.sockets());
        let url = format!("postgres://{SUPERUSER}@/postgres?host={host}&port={PORT}");
        Ok(TempServer { url, notes, binaries, user: start.user, settings, instance })
    }

    /// Sets a block cache that is small compared with `data_bytes`, or the default size (`None`). Restarts the server if
    /// the size changes. A size set by the user stays.
    ///
    /// The small cache is a sixth of the data: it holds the index (a twelfth) and few of the rows, so a row costs little
    /// more than one read (with an eighth it was 1.3).
    ///
    /// # Errors
    /// [`TargetError::Local`]: the server does not start again.
    pub(super) fn set_cache(&mut self, data_bytes: Option<u64>) -> Result<(), TargetError> {
        let default = settings::shared_buffers(memory::memory_bytes());
        let mib = data_bytes.map_or(default, |bytes| (bytes / 6 / (1 << 20)).clamp(1, default));
        if settings::set_shared_buffers(&mut self.settings, mib) {
            self.instance.restart(&self.binaries, &self.user, &self.settings)?;
        }
        Ok(())
    }

    /// Replaces the settings given by the user and writes the configuration file; the server still has to read it.
    ///
    /// # Errors
    /// [`TargetError::Usage`] with PostgreSQL's words if it rejects one of them.
    pub(super) fn give(&mut self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        if self.settings.given != *given {
            PRODUCT.check_names(given)?;
            settings::check_values(given, &self.binaries, &self.user, &self.instance.data())?;
        }
        let mut next = settings::settings(memory::memory_bytes(), given);
        settings::keep_shared_buffers(&mut next, &mut self.settings);
        self.settings = next;
        self.instance.configure(&self.user, &self.settings)
    }

    /// Restarts the server with its settings.
    ///
    /// # Errors
    /// As [`TempServer::start`].
    pub(super) fn restart(&mut self) -> Result<(), TargetError> {
        self.instance.restart(&self.binaries, &self.user, &self.settings)
    }

    /// Settings given by the user.
    pub(super) fn given(&self) -> &BTreeMap<String, String> {
        &self.settings.given
    }

    /// URL of the running server, without a password because none is needed.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Notes for the report.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}
