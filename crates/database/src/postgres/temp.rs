//! The private throwaway PostgreSQL server of `postgres-temp:` and its standbys. See [`crate::temp`].
//!
//! A standby is a copy of the primary's new data folder. Nothing listens on the network: a standby follows the primary, or the relay to
//! it, by a socket in a folder that only their user may enter.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::chown;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::connect::{Endpoint, SessionRole};
use super::knowledge::message;
use super::{sql, standbys};
use crate::error::TargetError;
use crate::relay::Relay;
use crate::request::of_target;
use crate::temp::settings::{Settings, normal};
use crate::temp::{Server, Servers, Setup, Stages};

/// Only part of the socket's file name: the server does not listen on the network.
const PORT: u16 = 5432;
/// Port of the relay to the primary, in the standby's own folder of sockets.
const RELAY_PORT: u16 = PORT + 1;
/// Settings that a standby must have at least as the primary, with initdb's values: the log begins with these.
const AT_LEAST: [(&str, u64); 4] =
    [("max_connections", 100), ("max_worker_processes", 8), ("max_wal_senders", 10), ("max_locks_per_transaction", 64)];

pub(super) struct Installed;

impl Stages for Installed {
    fn find(_: &Setup) -> Result<Installed, TargetError> {
        Ok(Installed)
    }

    /// Asks PostgreSQL itself (`postgres -c name=value … -C shared_buffers`): when it reads its configuration anew, it goes on without
    /// a setting that it refuses.
    fn check(
        &self,
        setup: &Setup,
        given: &BTreeMap<String, String>,
        first: &Server,
    ) -> Result<Option<u64>, TargetError> {
        if setup.servers > 1 {
            given.iter().try_for_each(|(name, value)| check_followed(name, value, setup.servers - 1))?;
        }
        if given.is_empty() {
            return Ok(None);
        }
        let all = given.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]);
        let asks = all.chain(["-C", "shared_buffers"].map(str::to_owned)).map(OsString::from);
        let output = setup.ask(first.arguments(&setup.product.check).chain(asks))?;
        let settings = setup.settings(given, 0);
        if !output.status.success() {
            let says = String::from_utf8_lossy(&output.stderr);
            return Err(setup.refused(first, "no server can be started", &settings, &says));
        }
        // Of 8 KiB.
        let blocks = String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().ok();
        Ok(if settings.own_cache() { None } else { blocks.map(|blocks| blocks.saturating_mul(8192)) })
    }

    fn join(&self, setup: &Setup, standby: &mut Server, primary: &Server) -> Result<(), TargetError> {
        standby.copy(primary, Some("standby.signal"))?;
        standby.way = (primary.sockets(), PORT);
        if !setup.levels {
            return Ok(());
        }
        standby.way = (standby.sockets(), RELAY_PORT);
        let listens = standby.sockets().join(format!(".s.PGSQL.{RELAY_PORT}"));
        let started = Relay::start(&listens, &primary.socket()).and_then(|relay| {
            // Otherwise the standby may not write to it.
            let user = &setup.user;
            let owned = if user.switch { chown(&listens, Some(user.uid), Some(user.gid)) } else { Ok(()) };
            owned.map(|()| relay)
        });
        standby.link(started)
    }

    fn command(&mut self, setup: &Setup, settings: &Settings, server: &Server) -> Result<Command, TargetError> {
        configure(settings, server)?;
        // SIGINT: fast shutdown if loadline is killed.
        let mut command = setup.user.command(&setup.program.path, Signal::SIGINT);
        command.args(server.arguments(&setup.product.start));
        Ok(command)
    }

    /// PostgreSQL says so in its lock file: the process is in the first line, its state in the eighth (`pidfile.h`).
    fn ask(server: &Server, pid: Pid) -> Result<(), String> {
        let file = std::fs::read_to_string(server.data().join("postmaster.pid")).map_err(|e| e.to_string())?;
        let lines: Vec<&str> = file.lines().map(str::trim).collect();
        let state = if lines.len() > 7 && lines[0] == pid.to_string() { lines[7] } else { "starting" };
        if state == "ready" { Ok(()) } else { Err(format!("it is {state}")) }
    }
}

fn check_followed(name: &str, value: &str, standbys: u32) -> Result<(), TargetError> {
    let few = match normal(name).as_str() {
        "max_wal_senders" | "max_replication_slots" => value.parse().is_ok_and(|n: u32| n < standbys),
        "wal_level" => value.eq_ignore_ascii_case("minimal"),
        _ => false,
    };
    if !few {
        return Ok(());
    }
    let parts = [("name", name), ("value", value), ("standbys", &standbys.to_string())];
    Err(TargetError::Usage(message("not-followed", &parts)))
}

/// Writes a server's configuration file, under a name of its own first: the server may read it at any time.
fn configure(settings: &Settings, server: &Server) -> Result<(), TargetError> {
    let new = server.dir.join("postgresql.conf.new");
    server.write(&new, &config(server.settings(settings), server.number > 0))?;
    std::fs::rename(&new, server.dir.join("postgresql.conf"))
        .map_err(|e| server.failure("its configuration cannot be written", &e.to_string()))
}

/// The configuration file with `all` settings. It includes initdb's file first, so later settings override it.
fn config(mut all: Vec<(String, String)>, is_standby: bool) -> String {
    let at_least = if is_standby { &AT_LEAST[..] } else { &[] };
    for (least, number) in at_least {
        let lower =
            |(name, value): &(String, String)| normal(name) == *least && value.parse().is_ok_and(|n: u64| n < *number);
        if all.iter().any(lower) {
            all.push(((*least).to_owned(), number.to_string()));
        }
    }
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('\'', "''");
    let lines = all.iter().map(|(name, value)| format!("{} = '{}'\n", name.replace('-', "_"), quoted(value)));
    std::iter::once("include 'data/postgresql.conf'\n".to_owned()).chain(lines).collect()
}

pub(super) type TempServer = Servers<Installed>;

impl TempServer {
    /// Sets a block cache that is a sixth of `data_bytes`, or the default size (`None`), by a restart if that is another. A size set by
    /// the user stays. A sixth holds the index (a twelfth) and few rows: one costs little more than one read (with an eighth 1.3).
    pub(super) fn set_cache(&mut self, data_bytes: Option<u64>) -> Result<(), TargetError> {
        let Servers { setup, settings, .. } = self;
        let default = setup.product.cache_mib(setup.memory);
        let mib = data_bytes.map_or(default, |bytes| (bytes / 6 / (1 << 20)).clamp(1, default));
        if !settings.own_cache() || std::mem::replace(&mut settings.cache_mib, mib) == mib {
            return Ok(());
        }
        self.restart()
    }

    /// Replaces the settings given by the user and writes the configuration files; the server still has to read its own.
    pub(super) fn configure(&mut self, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
        self.give(given)?;
        self.further.iter().chain([&self.first]).try_for_each(|server| configure(&self.settings, server))
    }

    pub(super) fn restart(&mut self) -> Result<(), TargetError> {
        let stages = &self.setup.product.restart;
        self.first.stop(stages);
        self.start(0)?;
        // A standby does not start with lower limits (max_connections …) than those in the log before the primary's new ones, and
        // stands still at higher ones until it is restarted.
        let _ = standbys::wait(&self.endpoint_of(&self.first)?, &self.running_standbys()?);
        for number in 1..=self.further.len() {
            self.further[number - 1].stop(stages);
            self.start(number)?;
        }
        Ok(())
    }

    pub(super) fn running_standbys(&self) -> Result<Vec<Endpoint>, TargetError> {
        self.further.iter().filter(|s| s.runs()).map(|s| self.endpoint_of(s)).collect()
    }

    pub(super) fn endpoint_of(&self, server: &Server) -> Result<Endpoint, TargetError> {
        Endpoint::new(&server.url(), &self.setup.request, of_target(true))
    }

    /// From now on the primary keeps the log that this standby has not received.
    pub(super) fn keep_log(&self, standby: &Server) -> Result<(), TargetError> {
        let mut c = self.endpoint_of(&self.first)?.connect(SessionRole::Inspect)?;
        let slot = sql::literal(&standby.name);
        c.query(&format!("SELECT pg_create_physical_replication_slot({slot}, true)")).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn the_configuration_is_quoted_and_a_standby_has_enough() {
        let given = [("max_connections", "40"), ("a.b", r"it's \x"), ("last", "1")];
        let file = |is_standby| config(given.map(|(n, v)| (n.to_owned(), v.to_owned())).into(), is_standby);
        assert!(file(false).ends_with("last = '1'\n") && file(true).ends_with("last = '1'\nmax_connections = '100'\n"));
        assert!(file(false).contains(r"a.b = 'it''s \\x'"), "{}", file(false));
    }

    #[test]
    fn values_with_which_no_standby_can_follow() {
        for (name, value, fine) in cases::<(String, String, bool)>("settings-with-standbys") {
            assert_eq!(check_followed(&name, &value, 2).is_ok(), fine, "{name} = {value}");
        }
    }
}
