//! The private throwaway PostgreSQL server behind `postgres-temp:`.
//! See [`crate::temp`].

mod binaries;
mod instance;
mod probe;
mod processes;
mod settings;
mod shared_memory;
#[cfg(test)]
mod tests;

use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::product::Product;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;
use crate::temp::{Start, encoded, memory};

use binaries::Binaries;
use instance::Instance;

/// Name of the database's superuser. The socket's directory is open to the server's own operating
/// system user and to root only, so it needs no password.
const SUPERUSER: &str = "postgres";

/// What distinguishes its private servers.
pub(super) static PRODUCT: Product = Product {
    name: "PostgreSQL",
    scheme: "postgres-temp",
    prefix: "loadline-pg-",
    user: "postgres",
    bin: "/usr/lib/postgresql/16/bin",
    log_setting: "max_wal_size",
    reserved: settings::RESERVED,
    secrets: &["password", "passphrase", "conninfo", "secret"],
    socket: ".s.PGSQL.5432",
    // The setting is a list of quoted names.
    unfit: |c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '\\'),
    besides: &[instance::INITDB, instance::CONFIG],
    stages: &processes::STAGES,
    end: instance::end,
};

/// Part of the socket's file name only, as nothing listens on the network.
const PORT: u16 = 5432;

/// A running private server. Dropping it stops the server and removes all of it.
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
    /// Makes a server and starts it. Leftovers of dead owners in the same place are removed first.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL, or a setting that PostgreSQL does not know or take.
    /// - [`TargetError::Local`]: no binaries, no usable directory, `initdb` or the server failed.
    ///
    /// Nothing is left behind in either case.
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

    /// Gives the server a block cache that is small against so much data, or (`None`) the usual one. It is
    /// restarted if it has another; one that the user set stays.
    ///
    /// A sixth of the data: it holds the index by which rows are read (a twelfth), so that a row costs little
    /// more than one read (with an eighth it was 1.3), and few of the rows.
    ///
    /// # Errors
    /// [`TargetError::Local`]: it does not start again.
    pub(super) fn set_cache(&mut self, data_bytes: Option<u64>) -> Result<(), TargetError> {
        let usual = settings::shared_buffers(memory::memory_bytes());
        let mib = data_bytes.map_or(usual, |bytes| (bytes / 6 / (1 << 20)).clamp(1, usual));
        if settings::set_shared_buffers(&mut self.settings, mib) {
            self.instance.restart(&self.binaries, &self.user, &self.settings)?;
        }
        Ok(())
    }

    /// URL of the running server. There is no password in it, as none is needed.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What a reader of the report should know.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}
