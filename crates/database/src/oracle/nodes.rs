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

/// How to connect to a node, and the instance behind it.
pub(super) struct Node {
    pub(super) address: OraAddress,
    password: Secret,
    connector: &'static Connector,
    /// Number of the instance that it led to when the target was opened; `None` if unknown.
    instance: Option<u32>,
    /// Before the names of its sessions.
    run: String,
    /// The session that cancels calls of others; the first cancel opens it.
    cancelling: Mutex<Option<Box<dyn OraSession>>>,
}

impl Node {
    /// The node at `url`, a session there, and the database, its container and the user.
    fn open(
        url: &str,
        request: &OpenRequest,
        connector: &'static Connector,
    ) -> Result<(Node, Box<dyn OraSession>, String), TargetError> {
        let address = OraAddress::parse(url)?;
        let (password, run) = (password(&address, request)?, request.run.clone());
        let mut node = Node { address, password, connector, instance: None, run, cancelling: Mutex::default() };
        let mut session = node.session("look")?;
        node.instance = instance(session.as_mut())?;
        let identity = session.value(KNOWLEDGE.query("identity"))?.unwrap_or_default();
        Ok((node, session, identity))
    }

    /// Opens a session, named after its role.
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

/// Nodes, and a session at the first.
type Opened = (Vec<Arc<Node>>, Box<dyn OraSession>);

/// The nodes of `request`, which are instances of one database.
pub(super) fn open(request: &OpenRequest, connector: &'static Connector) -> Result<Opened, TargetError> {
    let (first, session, known) = Node::open(&request.url, request, connector)?;
    let mut nodes = vec![Arc::new(first)];
    for url in &request.nodes {
        let (node, _, identity) = Node::open(url, request, connector)?;
        if known != identity {
            return Err(TargetError::Usage(format!(
                "the nodes are different databases, containers or users: {known} and {identity}. \
                 All nodes must lead to the same database, container and user"
            )));
        }
        let same = nodes.iter().find(|known| known.instance == node.instance);
        if let (Some(same), Some(number)) = (same, node.instance) {
            return Err(TargetError::Usage(format!(
                "{} and {} lead to the same instance, number {number}: name in each URL a service or an address \
                 that only one instance has (`srvctl status service` lists where services run)",
                same.address.shown(),
                node.address.shown()
            )));
        }
        nodes.push(Arc::new(node));
    }
    Ok((nodes, session))
}

/// The session of a job at one of `nodes`, with the handle that cancels its calls.
pub(super) fn job_session(
    nodes: &[Arc<Node>],
    work: &Work,
    job: u32,
) -> Result<(Box<dyn OraSession>, Canceller), TargetError> {
    let node = &nodes[job as usize % nodes.len()];
    let mut session = node.session(&format!("job {job}"))?;
    let instance = instance(session.as_mut())?;
    // A service on several instances leads to any of them.
    if nodes.len() > 1 && instance.is_some() && instance != node.instance {
        let [found, wanted] = [instance, node.instance].map(|i| i.map_or("–".to_owned(), |i| i.to_string()));
        return Err(TargetError::Usage(format!(
            "{} led job {job} to instance {found}, but before to instance {wanted}: name a service or an address that only \
             one instance has, or give one URL without --node",
            node.address.shown()
        )));
    }
    for sql in session_settings(work) {
        session.execute(&sql, &[])?;
    }
    let id = session.id().zip(instance).map(|(id, instance)| format!("{id}, @{instance}"));
    Ok((session, node.canceller(id)))
}

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
