//! How to connect: the sessions of a target, and how a call that hangs is cancelled.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use super::address::OraAddress;
use super::knowledge::KNOWLEDGE;
use super::session::{Connector, OraSession, session_settings};
use crate::error::TargetError;
use crate::request::{OpenRequest, Secret};
use crate::role::Canceller;
use crate::work::Work;

/// Environment variable with the password, if the URL has none.
const PASSWORD_VARIABLE: &str = "ORACLE_PASSWORD";

pub(super) struct Service {
    pub(super) address: OraAddress,
    password: Secret,
    connector: &'static Connector,
    /// Before the names of its sessions.
    pub(super) run: String,
    /// The session that cancels calls of others; the first cancel opens it.
    cancelling: Mutex<Option<Box<dyn OraSession>>>,
}

impl Service {
    pub(super) fn new(request: &OpenRequest, connector: &'static Connector) -> Result<Service, TargetError> {
        if !request.nodes.is_empty() {
            return Err(TargetError::Usage(
                "an Oracle target is one service, which may run on several instances: leave out --node".into(),
            ));
        }
        let address = OraAddress::parse(&request.url)?;
        let (password, run) = (password(&address, request)?, request.run.clone());
        Ok(Service { address, password, connector, run, cancelling: Mutex::default() })
    }

    pub(super) fn session(&self, role: &str) -> Result<Box<dyn OraSession>, TargetError> {
        (self.connector)(&self.address, &self.password, format!("{} {role}", self.run).trim_start())
    }

    /// Cancels the call of the session `id`, which the driver cannot (SQL Language Reference, `ALTER SYSTEM`, from 18c on).
    /// Needs the privilege ALTER SYSTEM.
    fn cancel(&self, id: &str) -> Result<(), TargetError> {
        let mut cancelling = self.cancelling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = cancelling.take().map_or_else(|| self.session("cancel"), Ok)?;
        session.execute(&format!("ALTER SYSTEM CANCEL SQL '{id}'"), &[])?;
        *cancelling = Some(session);
        Ok(())
    }

    /// A handle that cancels the call of the session `id`. It returns at once, because a server that hangs may not answer; then
    /// the driver's time limit ends the call.
    fn canceller(self: &Arc<Self>, id: Option<String>) -> Canceller {
        let service = Arc::clone(self);
        Canceller::new(move || {
            let warn = |e: &dyn Display| log::warn!("a call that hangs could not be cancelled: {e}");
            let Some(id) = id.clone() else { return };
            let service = Arc::clone(&service);
            let cancel = move || service.cancel(&id).unwrap_or_else(|e| warn(&e));
            let spawned = std::thread::Builder::new().name("loadline-cancel".to_owned()).spawn(cancel);
            spawned.map_or_else(|e| warn(&e), drop);
        })
    }

    /// The session of a job, with the handle that cancels its calls.
    pub(super) fn job_session(
        self: &Arc<Self>,
        work: &Work,
        job: u32,
    ) -> Result<(Box<dyn OraSession>, Canceller), TargetError> {
        let mut session = self.session(&format!("job {job}"))?;
        // A service on several instances leads to any of them.
        let instance = session.value(KNOWLEDGE.query("instance"))?;
        for sql in session_settings(work) {
            session.execute(&sql, &[])?;
        }
        let id = session.id().zip(instance).map(|(id, instance)| format!("{id}, @{}", instance.trim()));
        Ok((session, self.canceller(id)))
    }
}

fn password(address: &OraAddress, request: &OpenRequest) -> Result<Secret, TargetError> {
    let from_environment = || std::env::var(PASSWORD_VARIABLE).ok().filter(|p| !p.is_empty()).map(Secret::new);
    let given = address.password.clone().or_else(from_environment);
    given.or_else(|| (request.ask_password)(&address.shown())).ok_or_else(|| {
        TargetError::Refused(format!(
            "{} needs a password: set {PASSWORD_VARIABLE}, or start loadline in a terminal and it asks for one",
            address.shown()
        ))
    })
}
