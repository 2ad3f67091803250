//! The nodes of a target: their sessions, the instance that each leads to, and how a call that hangs is cancelled.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use super::address::OraAddress;
use super::knowledge::KNOWLEDGE;
use super::session::{Connector, OraSession, session_settings};
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::role::Canceller;
use crate::secret::Secret;
use crate::work::Work;

/// Environment variable with the password, if the URL has none.
const PASSWORD_VARIABLE: &str = "ORACLE_PASSWORD";

/// How to connect to a node.
struct Node {
    address: OraAddress,
    password: Secret,
    connector: &'static Connector,
    /// The session that cancels calls of others; the first cancel opens it.
    cancelling: Mutex<Option<Box<dyn OraSession>>>,
}

impl Node {
    fn connect(&self, name: &str) -> Result<Box<dyn OraSession>, TargetError> {
        (self.connector)(&self.address, &self.password, name)
    }

    /// Cancels the call of the session `id`, which the driver cannot (SQL Language Reference, `ALTER SYSTEM`, from 18c on).
    /// Needs the privilege ALTER SYSTEM.
    fn cancel(&self, id: &str) -> Result<(), TargetError> {
        let mut cancelling = self.cancelling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut session = cancelling.take().map_or_else(|| self.connect("cancel"), Ok)?;
        session.execute(&format!("ALTER SYSTEM CANCEL SQL '{id}'"), &[])?;
        *cancelling = Some(session);
        Ok(())
    }

    /// A handle that cancels the call of the session `id`. It returns at once, because a server that hangs may not answer; then
    /// the driver's time limit ends the call.
    fn canceller(self: &Arc<Self>, id: Option<String>) -> Canceller {
        let node = Arc::clone(self);
        Canceller::new(move || {
            let warn = |e: &dyn Display| log::warn!("a call that hangs could not be cancelled: {e}");
            let Some(id) = id.clone() else { return };
            let node = Arc::clone(&node);
            let cancel = move || node.cancel(&id).unwrap_or_else(|e| warn(&e));
            let spawned = std::thread::Builder::new().name("loadline-cancel".to_owned()).spawn(cancel);
            spawned.map_or_else(|e| warn(&e), drop);
        })
    }
}

/// The nodes of a target, at least one.
pub(super) struct OraNodes {
    list: Vec<Arc<Node>>,
    /// The instance that each led to.
    instances: Vec<Option<u32>>,
    run: String,
}

impl OraNodes {
    /// The URL and the nodes of `request`; nothing is opened.
    pub(super) fn new(request: &OpenRequest, connector: &'static Connector) -> Result<OraNodes, TargetError> {
        let node = |url: &String| {
            let address = OraAddress::parse(url)?;
            let password = password(&address, request)?;
            Ok(Arc::new(Node { address, password, connector, cancelling: Mutex::default() }))
        };
        let list = std::iter::once(&request.url).chain(&request.nodes).map(node).collect::<Result<_, TargetError>>()?;
        Ok(OraNodes { list, instances: Vec::new(), run: request.run.clone() })
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Records the instance of a session of the next node.
    ///
    /// # Errors
    /// If another node leads to the same instance.
    pub(super) fn record_instance(&mut self, session: &mut dyn OraSession) -> Result<(), TargetError> {
        let instance = instance(session)?;
        let same = self.instances.iter().position(|known| known.is_some() && *known == instance);
        if let (Some(same), Some(number)) = (same, instance) {
            return Err(TargetError::Usage(format!(
                "{} and {} lead to the same instance, number {number}: name in each URL a service or an address \
                 that only one instance has (`srvctl status service` lists where services run)",
                self.shown(same),
                self.shown(self.instances.len())
            )));
        }
        self.instances.push(instance);
        Ok(())
    }

    /// The URL of a node without its password.
    pub(super) fn shown(&self, node: usize) -> String {
        self.list.get(node).map_or_else(String::new, |n| n.address.shown())
    }

    fn node(&self, number: usize) -> Result<&Arc<Node>, TargetError> {
        self.list.get(number).ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }

    /// Opens a session at a node, named after its role.
    pub(super) fn session(&self, node: usize, role: &str) -> Result<Box<dyn OraSession>, TargetError> {
        let name = if self.run.is_empty() { role.to_owned() } else { format!("{} {role}", self.run) };
        self.node(node)?.connect(&name)
    }

    /// The session of a job, with the handle that cancels its calls.
    pub(super) fn job_session(&self, work: &Work, job: u32) -> Result<(Box<dyn OraSession>, Canceller), TargetError> {
        let number = job as usize % self.list.len().max(1);
        let mut session = self.session(number, &format!("job {job}"))?;
        let instance = instance(session.as_mut())?;
        let before = self.instances.get(number).copied().flatten();
        // A service on several instances leads to any of them.
        if self.list.len() > 1 && instance.is_some() && instance != before {
            let [found, wanted] = [instance, before].map(|i| i.map_or("–".to_owned(), |i| i.to_string()));
            return Err(TargetError::Usage(format!(
                "{} led job {job} to instance {found}, but before to instance {wanted}: name a service or an address that only \
                 one instance has, or give one URL without --node",
                self.shown(number)
            )));
        }
        for sql in session_settings(work) {
            session.execute(&sql, &[])?;
        }
        let id = session.id().zip(instance).map(|(id, instance)| format!("{id}, @{instance}"));
        Ok((session, self.node(number)?.canceller(id)))
    }
}

/// Number of the instance that the session is on.
fn instance(session: &mut dyn OraSession) -> Result<Option<u32>, TargetError> {
    let number = session.value(KNOWLEDGE.query("instance"))?;
    Ok(number.and_then(|t| t.trim().parse().ok()))
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

/// Identifies the database, its container and the user.
pub(super) fn identity(session: &mut dyn OraSession) -> Result<String, TargetError> {
    Ok(session.value(KNOWLEDGE.query("identity"))?.unwrap_or_default())
}
