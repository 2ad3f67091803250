//! A private standby: a copy of the primary's new data folder, which follows the primary through a socket.
//!
//! Each standby is a server with a folder of its own, like the primary, so whoever removes one removes the other. Nothing
//! listens on the network: a standby finds the primary, or the relay to it, in a directory that only their user may enter.

use std::collections::BTreeMap;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use loadline_model::format::bytes;
use nix::sys::signal::Signal;

use super::binaries::Binaries;
use super::instance::{Instance, Setup};
use super::{PORT, SUPERUSER, url_at};
use crate::error::TargetError;
use crate::relay::Relay;
use crate::temp::product::cannot_run;
use crate::temp::settings::{Settings, normal};
use crate::temp::user::ServerUser;

/// Memory of a server beside its shared_buffers, bytes.
const BESIDE_BUFFERS: u64 = 128 << 20;
/// Port of the relay to the primary, in the standby's own directory of sockets.
const RELAY_PORT: u16 = PORT + 1;
/// What loadline sets at a standby.
const OF_STANDBYS: [&str; 3] = ["primary_conninfo", "primary_slot_name", "hot_standby"];
/// What the levels set.
const OF_LEVELS: [&str; 2] = ["synchronous_commit", "synchronous_standby_names"];
/// Settings that a standby must have at least as the primary, with initdb's values: the log begins with these.
const AT_LEAST: [(&str, u64); 4] =
    [("max_connections", 100), ("max_worker_processes", 8), ("max_wal_senders", 10), ("max_locks_per_transaction", 64)];

/// A standby. Dropping it stops the server and removes its files.
pub(in crate::postgres) struct Standby {
    /// Its application_name at the primary, and the name of its slot.
    pub(in crate::postgres) name: String,
    pub(in crate::postgres) url: String,
    /// The way to the primary, if loadline may change it.
    pub(in crate::postgres) relay: Option<Arc<Relay>>,
    instance: Instance,
}

impl Standby {
    /// Prepares standby number `number` (from 1) as a copy of `primary`, which has not been started yet.
    pub(super) fn prepare(
        number: u32,
        mut instance: Instance,
        primary: &Instance,
        user: &ServerUser,
        behind_relay: bool,
    ) -> Result<Standby, TargetError> {
        instance.copy(primary, user)?;
        let name = format!("standby{number}");
        let socket = |dir: &Path, port: u16| dir.join(format!(".s.PGSQL.{port}"));
        let (mut dir, mut port, mut relay) = (primary.sockets(), PORT, None);
        if behind_relay {
            let listens = socket(&instance.sockets(), RELAY_PORT);
            let started = Relay::start(&listens, &socket(&dir, PORT)).and_then(|relay| {
                // Otherwise the standby may not write to it.
                let owned = if user.switch { chown(&listens, Some(user.uid), Some(user.gid)) } else { Ok(()) };
                owned.map(|()| relay)
            });
            let failed = |e: std::io::Error| TargetError::Local(format!("no relay to {name} can be started: {e}"));
            relay = Some(Arc::new(started.map_err(failed)?));
            (dir, port) = (instance.sockets(), RELAY_PORT);
        }
        let conninfo = format!("host={} port={port} user={SUPERUSER} application_name={name}", dir.display());
        instance.last = vec![
            ("hot_standby", "on".to_owned()),
            ("primary_conninfo", conninfo),
            ("primary_slot_name", name.clone()),
            // The default is 5 s, for which the standby would be away after each restart of the primary.
            ("wal_retrieve_retry_interval", "100ms".to_owned()),
        ];
        let url = url_at(&instance.sockets());
        Ok(Standby { name, url, relay, instance })
    }

    /// Starts it and waits until it accepts sessions.
    pub(super) fn start(&mut self, setup: &Setup) -> Result<(), TargetError> {
        self.raise(&setup.settings);
        self.instance.start(setup).map_err(|e| e.with(&format!(" ({})", self.name)))
    }

    /// Restarts it with its settings.
    pub(super) fn restart(&mut self, setup: &Setup) -> Result<(), TargetError> {
        self.raise(&setup.settings);
        self.instance.restart(setup).map_err(|e| e.with(&format!(" ({})", self.name)))
    }

    /// Starts it again if it has ended, or `hangs`.
    pub(super) fn revive(&mut self, setup: &Setup, hangs: bool) -> Result<(), TargetError> {
        if self.runs() && !hangs {
            return Ok(());
        }
        self.instance.clear()?;
        self.start(setup)
    }

    /// Whether its main process runs.
    pub(super) fn runs(&self) -> bool {
        self.instance.runs()
    }

    /// Writes its configuration file anew.
    pub(super) fn configure(&mut self, setup: &Setup) -> Result<(), TargetError> {
        self.raise(&setup.settings);
        self.instance.configure(setup)
    }

    /// Raises limits that are lower than those with which the log begins.
    fn raise(&mut self, settings: &Settings) {
        self.instance.last.retain(|(name, _)| AT_LEAST.iter().all(|(least, _)| name != least));
        for (name, least) in AT_LEAST {
            let lower = |(set, value): (&str, &str)| normal(set) == name && value.parse().is_ok_and(|n: u64| n < least);
            if settings.all().any(lower) {
                self.instance.last.push((name, least.to_string()));
            }
        }
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.instance.stop_at_once();
    }
}

/// Refuses settings that loadline sets itself on a primary with standbys, and values with which none can follow it; `levels`: also
/// those of the levels.
pub(super) fn check_names(given: &BTreeMap<String, String>, levels: bool, standbys: usize) -> Result<(), TargetError> {
    for (name, value) in given {
        let few = match normal(name).as_str() {
            "max_wal_senders" | "max_replication_slots" => value.parse().is_ok_and(|n: usize| n < standbys),
            "wal_level" => value.eq_ignore_ascii_case("minimal"),
            _ => false,
        };
        if few {
            return Err(TargetError::Usage(format!(
                "--setting {name}={value}: no standby can follow such a server, and this one has {standbys}: leave it out"
            )));
        }
    }
    let own = |name: &&String| {
        let name = normal(name);
        OF_STANDBYS.contains(&name.as_str()) || levels && OF_LEVELS.contains(&name.as_str())
    };
    match given.keys().find(own) {
        None => Ok(()),
        Some(name) => Err(TargetError::Usage(format!(
            "--setting {name}: loadline itself sets '{name}' of a private server with standbys: leave it out"
        ))),
    }
}

/// The user's value of shared_buffers in bytes, as PostgreSQL reads it.
pub(super) fn given_buffers(
    given: &BTreeMap<String, String>,
    binaries: &Binaries,
    user: &ServerUser,
    data: &Path,
) -> Result<Option<u64>, TargetError> {
    let Some((name, value)) = given.iter().find(|(name, _)| normal(name) == "shared_buffers") else { return Ok(None) };
    let mut command: Command = user.command(binaries.postgres(), Signal::SIGKILL);
    command.arg("-D").arg(data).arg("-c").arg(format!("{name}={value}")).args(["-C", "shared_buffers"]);
    let output = command.output().map_err(|e| cannot_run(&binaries.postgres(), &e))?;
    // In blocks of 8 KiB.
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().ok().map(|blocks| blocks.saturating_mul(8192)))
}

/// Refuses `servers` servers with `buffers` bytes of shared_buffers each on a machine with too little memory.
pub(super) fn check_memory(servers: u32, buffers: u64, memory: u64) -> Result<(), TargetError> {
    let each = buffers.saturating_add(BESIDE_BUFFERS);
    let all = each.saturating_mul(u64::from(servers));
    if servers == 1 || all <= memory {
        return Ok(());
    }
    let of = |bytes_: u64| bytes(bytes_ as f64);
    Err(TargetError::Local(format!(
        "a primary and {} standbys need {} of memory, {} each ({} of shared_buffers), and there are {}: start fewer standbys, \
         or set less with --setting shared_buffers=",
        servers - 1,
        of(all),
        of(each),
        of(buffers),
        of(memory)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_refused_with_numbers() {
        const GIB: u64 = 1 << 30;
        assert!(check_memory(3, GIB, 4 * GIB).is_ok());
        assert!(check_memory(1, GIB, GIB / 2).is_ok(), "a single server is left to PostgreSQL");
        let text = check_memory(3, GIB, 3 * GIB).unwrap_err().to_string();
        for part in ["a primary and 2 standbys need 3.4 GiB", "1.1 GiB each", "there are 3.0 GiB"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn settings_of_loadline_are_refused() {
        let given = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        for (name, levels, refused) in [
            ("Primary_ConnInfo", false, true),
            ("synchronous_commit", false, false),
            ("synchronous_commit", true, true),
            ("work_mem", true, false),
        ] {
            assert_eq!(check_names(&given(name), levels, 1).is_err(), refused, "{name}");
        }
        for (name, value, refused) in [
            ("max_wal_senders", "0", true),
            ("Max_WAL_Senders", "1", true),
            ("max_wal_senders", "2", false),
            ("max_replication_slots", "1", true),
            ("wal_level", "minimal", true),
            ("wal_level", "logical", false),
        ] {
            let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(check_names(&given, true, 2).is_err(), refused, "{name} = {value}");
        }
    }
}
