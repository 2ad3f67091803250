//! A private replica: a copy of the server's new data folder, which follows it through a relay.
//!
//! MariaDB's replicas connect to a host and a port only. So the relay listens at the loopback address, for processes of the
//! servers' user alone, and goes on to the server's socket: the server itself does not listen on the network.

use std::sync::Arc;

use super::binaries::Binaries;
use super::settings::OF_REPLICAS;
use super::{SUPERUSER, instance, url_of};
use crate::error::TargetError;
use crate::relay::Relay;
use crate::temp::instance::Instance;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;

/// A replica. Dropping it stops the server and removes its files.
pub(in crate::mysql) struct ReplicaServer {
    pub(in crate::mysql) name: String,
    number: u32,
    /// The way to the server that it follows.
    pub(in crate::mysql) relay: Arc<Relay>,
    /// Port of the relay.
    port: u16,
    instance: Instance,
}

impl ReplicaServer {
    /// Prepares replica number `number` (from 1) as a copy of `first`, which has not been started yet.
    pub(super) fn prepare(
        number: u32,
        copy: Instance,
        first: &Instance,
        user: &ServerUser,
    ) -> Result<ReplicaServer, TargetError> {
        copy.copy(first, user)?;
        let name = format!("replica{number}");
        let failed = |e: std::io::Error| TargetError::Local(format!("no relay to {name} can be started: {e}"));
        let (relay, port) = Relay::on_loopback(user.uid, &first.files.socket()).map_err(failed)?;
        Ok(ReplicaServer { name, number, relay: Arc::new(relay), port, instance: copy })
    }

    /// Starts it; from then on it follows the server.
    pub(super) fn start(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
    ) -> Result<(), TargetError> {
        let mut own = settings.clone();
        own.defaults.retain(|(name, _)| *name != "server_id");
        own.defaults.push(("server_id", (self.number + 1).to_string()));
        own.defaults.extend(OF_REPLICAS.map(|(name, value)| (name, value.to_owned())));
        instance::start_one(binaries, &own, user, &mut self.instance, None)
            .map_err(|e| e.with(&format!(" ({})", self.name)))
    }

    /// Starts it again if it has ended, or `hangs`: it knows whom it follows.
    pub(super) fn revive(
        &mut self,
        (binaries, user, settings): (&Binaries, &ServerUser, &Settings),
        hangs: bool,
    ) -> Result<(), TargetError> {
        if self.instance.running().is_some() && !hangs {
            return Ok(());
        }
        self.instance.stop(&instance::AT_ONCE);
        self.start(binaries, user, settings)
    }

    /// Its URL, without a password.
    pub(in crate::mysql) fn url(&self) -> String {
        url_of(&self.instance)
    }

    /// The statements that have it follow the server, once.
    pub(in crate::mysql) fn follow(&self) -> [String; 2] {
        let way = format!("MASTER_HOST = '127.0.0.1', MASTER_PORT = {}", self.port);
        [
            format!(
                "CHANGE MASTER TO {way}, MASTER_USER = '{SUPERUSER}', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos"
            ),
            "START SLAVE".to_owned(),
        ]
    }
}

impl Drop for ReplicaServer {
    fn drop(&mut self) {
        self.instance.stop(&instance::AT_ONCE);
    }
}

/// What a reader of the report should know.
pub(super) fn note(replicas: u32) -> Option<String> {
    (replicas > 0).then(|| {
        format!(
            "{replicas} private replica with the same settings receives the binary log through a link of loadline's; its files are \
             beside the server's, on the same device. It acknowledges what it has written to its relay log, which it does not \
             sync (sync_relay_log)"
        )
    })
}
