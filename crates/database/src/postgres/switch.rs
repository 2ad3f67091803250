//! Changes settings of the private server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::SessionRole;
use super::server::Postgres;
use super::sql::literal;
use super::temp::{TempServer, url_of};
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::target::{Settings, Target};

/// Time for the server to read its configuration file.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

impl Settings for Postgres {
    fn switch(&self, request: &OpenRequest, restart: bool) -> Result<(Box<dyn Target>, bool), TargetError> {
        let Some(shared) = &self.server else {
            return Err(TargetError::Unsupported("loadline does not change a user's server".into()));
        };
        let before = lock(shared).settings.given.clone();
        lock(shared).configure(&request.settings)?;
        let restart = restart || !self.reload()?;
        let started = if restart { lock(shared).restart() } else { Ok(()) };
        if let Err(e) = started {
            let mut server = lock(shared);
            let _ = server.configure(&before).and_then(|()| server.restart());
            return Err(e);
        }
        let url = url_of(&lock(shared).first);
        Ok((Box::new(Postgres::open(self.kind, &url, request, Some(Arc::clone(shared)))?), restart))
    }

    fn setting(&self, name: &str) -> Result<Option<String>, TargetError> {
        // Not in an administrative session, which has settings of its own.
        self.session(self.primary(), SessionRole::Inspect, |c| {
            c.value(&format!("SELECT current_setting({}, true)", literal(name)))
        })
    }
}

fn lock(server: &Mutex<TempServer>) -> MutexGuard<'_, TempServer> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Postgres {
    /// The private server, if this is one.
    pub(super) fn private_server(&self) -> Option<MutexGuard<'_, TempServer>> {
        self.server.as_deref().map(lock)
    }

    /// Makes the server read its configuration file; `false` if a setting in it needs a restart.
    pub(super) fn reload(&self) -> Result<bool, TargetError> {
        let ask = |sql: &str| self.session(self.primary(), SessionRole::Inspect, |c| c.value(sql));
        let read = "SELECT pg_conf_load_time()::text";
        let before = ask(read)?;
        ask("SELECT pg_reload_conf()")?;
        let deadline = Instant::now() + RELOAD_TIMEOUT;
        // Of a new session each time: one takes over the postmaster's values when it begins.
        while ask(read)? == before {
            if Instant::now() >= deadline {
                let (s, place) = (RELOAD_TIMEOUT.as_secs(), &self.url);
                return Err(TargetError::Local(format!("{place} did not read its configuration file within {s} s")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(ask("SELECT bool_or(pending_restart)::text FROM pg_settings")?.as_deref() != Some("true"))
    }
}
