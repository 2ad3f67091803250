//! The private throwaway PostgreSQL server of `postgres-temp:`. See [`crate::temp`].

mod binaries;
mod instance;
mod probe;
mod processes;
mod settings;
mod shared_memory;
mod standby;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use super::connect::{Endpoint, SessionRole};
use super::{replay, sql};
use crate::env::of_target;
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::product::Product;
use crate::temp::{Start, encoded, memory};

use instance::{Instance, Setup};
pub(super) use standby::Standby;

/// Name of the database's superuser. It needs no password: only the server's operating system user and root have access
/// to the socket's directory.
const SUPERUSER: &str = "postgres";

/// The PostgreSQL part of a private server.
pub(crate) static PRODUCT: Product = Product {
    name: "PostgreSQL",
    scheme: "postgres-temp",
    prefix: "loadline-pg-",
    user: "postgres",
    program: "postgres",
    supported: "14 and newer",
    package: "postgresql",
    bin: "/usr/lib/postgresql/16/bin",
    log_setting: "max_wal_size",
    reserved: &[settings::RESERVED],
    secrets: &["password", "passphrase", "conninfo", "secret"],
    socket: ".s.PGSQL.5432",
    // unix_socket_directories is a list of quoted names.
    unfit: |c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '\\'),
    further: Some("standbys"),
    besides: &[instance::INITDB, instance::CONFIG, instance::NEW_CONFIG],
    stages: &processes::STAGES,
    end: instance::end,
};

/// Only part of the socket's file name: the server does not listen on the network.
pub(super) const PORT: u16 = 5432;

/// A running private server. Dropping it stops the server and removes its files.
pub(super) struct TempServer {
    url: String,
    notes: Vec<String>,
    setup: Setup,
    endpoint: Endpoint,
    /// They stop before the primary, which waits for them.
    standbys: Vec<Standby>,
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
        let levels = request.replicas > 0;
        if start.further > 0 {
            standby::check_names(&request.settings, levels, start.further as usize)?;
        }
        let (instance, site) = start.create(&binaries.postgres())?;
        let mut instance = Instance::new(instance);
        instance.initdb(&binaries, &start.user)?;
        settings::check_values(&request.settings, &binaries, &start.user, &instance.data())?;
        let (servers, memory) = (1 + start.further, memory::memory_bytes());
        let given = standby::given_buffers(&request.settings, &binaries, &start.user, &instance.data())?;
        let chosen = settings::shared_buffers(memory / u64::from(servers)) << 20;
        standby::check_memory(servers, given.unwrap_or(chosen), memory)?;
        let settings = settings::settings(memory / u64::from(servers), &request.settings);
        let mut standbys = Vec::new();
        for number in 1..=start.further {
            let files = Instance::new(start.another(&site)?);
            standbys.push(Standby::prepare(number, files, &instance, &start.user, levels)?);
        }
        let server = format!("{} from {}", binaries.version, binaries.dir.display());
        let mut notes = start.notes(&server, site, &settings);
        let setup = Setup { binaries, user: start.user, settings };
        instance.start(&setup)?;
        let url = url_at(&instance.sockets());
        let endpoint = Endpoint::new(&url, request, of_target(true))?;
        if !standbys.is_empty() {
            let mut c = endpoint.connect(SessionRole::Inspect)?;
            for standby in &mut standbys {
                // From now on the primary keeps the log that this standby has not received.
                let slot = sql::literal(&standby.name);
                c.query(&format!("SELECT pg_create_physical_replication_slot({slot}, true)"))?;
                standby.start(&setup)?;
            }
        }
        if !standbys.is_empty() {
            let through = if levels { ", each through a link of loadline's" } else { "" };
            notes.push(format!(
                "{} private standbys with the same settings stream from it{through}; their files are beside its own, on the \
                 same device",
                standbys.len()
            ));
        }
        Ok(TempServer { url, notes, setup, endpoint, standbys, instance })
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
        let default = settings::shared_buffers(self.memory());
        let mib = data_bytes.map_or(default, |bytes| (bytes / 6 / (1 << 20)).clamp(1, default));
        if settings::set_shared_buffers(&mut self.setup.settings, mib) { self.restart() } else { Ok(()) }
    }

    /// Replaces the settings given by the user and writes the configuration file; the server still has to read it.
    ///
    /// # Errors
    /// [`TargetError::Usage`] with PostgreSQL's words if it rejects one of them.
    pub(super) fn give(&mut self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        if self.setup.settings.given != *given {
            PRODUCT.check_names(given)?;
            if !self.standbys.is_empty() {
                standby::check_names(given, self.has_levels(), self.standbys.len())?;
            }
            settings::check_values(given, &self.setup.binaries, &self.setup.user, &self.instance.data())?;
        }
        let mut next = settings::settings(self.memory(), given);
        settings::keep_shared_buffers(&mut next, &mut self.setup.settings);
        self.setup.settings = next;
        for standby in &mut self.standbys {
            standby.configure(&self.setup)?;
        }
        self.instance.configure(&self.setup)
    }

    /// Restarts the server and its standbys with their settings.
    ///
    /// # Errors
    /// As [`TempServer::start`].
    pub(super) fn restart(&mut self) -> Result<(), TargetError> {
        self.instance.restart(&self.setup)?;
        if self.standbys.is_empty() {
            return Ok(());
        }
        // A standby does not start with lower limits (max_connections …) than those in the log before the primary's new ones.
        // One that cannot replay higher limits stands still until it is restarted.
        let _ = replay::wait(&self.endpoint, &self.running_standbys()?);
        for standby in &mut self.standbys {
            standby.restart(&self.setup)?;
        }
        Ok(())
    }

    /// Brings the settings of a level about, and starts standbys again that have ended. The server still has to read its
    /// configuration file if the result is `true`.
    ///
    /// # Errors
    /// [`TargetError::Local`]: a standby does not start again.
    pub(super) fn set_level(&mut self, level: [(&'static str, String); 2]) -> Result<bool, TargetError> {
        for standby in &mut self.standbys {
            standby.revive(&self.setup, false)?;
        }
        if self.instance.last == level {
            return Ok(false);
        }
        self.instance.last = level.into();
        self.instance.configure(&self.setup)?;
        Ok(true)
    }

    /// Ends the standbys of these names, which hang, and starts them again.
    ///
    /// # Errors
    /// [`TargetError::Local`]: one does not start.
    pub(super) fn start_again(&mut self, names: &[String]) -> Result<(), TargetError> {
        let mut hang = self.standbys.iter_mut().filter(|standby| names.contains(&standby.name));
        hang.try_for_each(|standby| standby.revive(&self.setup, true))
    }

    /// The standbys.
    pub(super) fn standbys(&self) -> &[Standby] {
        &self.standbys
    }

    /// How to reach the standbys that run.
    ///
    /// # Errors
    /// None: their URLs are loadline's own.
    pub(super) fn running_standbys(&self) -> Result<Vec<Endpoint>, TargetError> {
        self.standbys.iter().filter(|s| s.runs()).map(|s| self.endpoint.at(&s.url)).collect()
    }

    /// Whether the way to the standbys can be changed, and how far commits wait for them.
    pub(super) fn has_levels(&self) -> bool {
        self.standbys.iter().any(|standby| standby.relay.is_some())
    }

    /// Memory for this server, bytes.
    fn memory(&self) -> u64 {
        memory::memory_bytes() / (1 + self.standbys.len() as u64)
    }

    /// Settings given by the user.
    pub(super) fn given(&self) -> &BTreeMap<String, String> {
        &self.setup.settings.given
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

/// URL of the server whose socket is in this directory.
fn url_at(sockets: &Path) -> String {
    format!("postgres://{SUPERUSER}@/postgres?host={}&port={PORT}", encoded(sockets))
}
