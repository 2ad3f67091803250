//! The nodes of a target: their sessions, and the instance that each leads to.

use std::sync::Arc;

use super::address::OraAddress;
use super::cancel::{self, Control};
use super::parallel;
use super::session::{Connector, OraSession};
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::role::Canceller;
use crate::secret::Secret;
use crate::work::Work;

/// Environment variable with the password, if the URL has none.
const PASSWORD_VARIABLE: &str = "ORACLE_PASSWORD";

/// How to connect to a node, and the instance that it led to.
struct Node {
    control: Arc<Control>,
    instance: Option<u32>,
}

/// The nodes of a target, at least one.
pub(super) struct OraNodes {
    list: Vec<Node>,
    run: String,
}

impl OraNodes {
    /// The URL and the nodes of `request`; nothing is opened.
    pub(super) fn new(request: &OpenRequest, connector: &'static Connector) -> Result<OraNodes, TargetError> {
        let mut list = Vec::new();
        for url in std::iter::once(&request.url).chain(&request.nodes) {
            let address = OraAddress::parse(url)?;
            let password = password(&address, request)?;
            list.push(Node { control: Control::new(address, password, connector), instance: None });
        }
        Ok(OraNodes { list, run: request.run.clone() })
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Records the instance of a session of `node`.
    ///
    /// # Errors
    /// If another node leads to the same instance.
    pub(super) fn record_instance(&mut self, node: usize, session: &mut dyn OraSession) -> Result<(), TargetError> {
        let instance = instance(session)?;
        let same = self.list[..node].iter().position(|n| n.instance.is_some() && n.instance == instance);
        if let (Some(same), Some(number)) = (same, instance) {
            return Err(TargetError::Usage(format!(
                "{} and {} lead to the same instance, number {number}: name in each URL a service or an address \
                 that only one instance has (`srvctl status service` lists where services run)",
                self.shown(same),
                self.shown(node)
            )));
        }
        self.list[node].instance = instance;
        Ok(())
    }

    /// The URL of a node without its password.
    pub(super) fn shown(&self, node: usize) -> String {
        self.list.get(node).map_or_else(String::new, |n| n.control.address.shown())
    }

    /// Opens a session at a node, named after its role.
    pub(super) fn session(&self, node: usize, role: &str) -> Result<Box<dyn OraSession>, TargetError> {
        let node = self.list.get(node).ok_or_else(|| TargetError::Usage("the target has no node".into()))?;
        let name = if self.run.is_empty() { role.to_owned() } else { format!("{} {role}", self.run) };
        (node.control.connector)(&node.control.address, &node.control.password, &name)
    }

    /// The session of a job, with the handle that cancels its calls.
    pub(super) fn job_session(&self, work: &Work, job: u32) -> Result<(Box<dyn OraSession>, Canceller), TargetError> {
        let number = job as usize % self.list.len().max(1);
        let mut session = self.session(number, &format!("job {job}"))?;
        let node = self.list.get(number).ok_or_else(|| TargetError::Usage("the target has no node".into()))?;
        let instance = instance(session.as_mut())?;
        // A service on several instances leads to any of them.
        if self.list.len() > 1 && instance.is_some() && instance != node.instance {
            let [found, wanted] = [instance, node.instance].map(|i| i.map_or("–".to_owned(), |i| i.to_string()));
            return Err(TargetError::Usage(format!(
                "{} led job {job} to instance {found}, but before to instance {wanted}: name a service or an address that only \
                 one instance has, or give one URL without --node",
                self.shown(number)
            )));
        }
        for sql in parallel::settings(work) {
            session.execute(&sql, &[])?;
        }
        let job = session.id().zip(instance).map(|(id, instance)| cancel::Job { id, instance });
        Ok((session, node.control.canceller(job)))
    }
}

/// Number of the instance that the session is on.
fn instance(session: &mut dyn OraSession) -> Result<Option<u32>, TargetError> {
    let number = session.value("SELECT SYS_CONTEXT('USERENV', 'INSTANCE') FROM DUAL")?;
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
    let sql = "SELECT SYS_CONTEXT('USERENV', 'DB_UNIQUE_NAME') || '/' || SYS_CONTEXT('USERENV', 'CON_NAME') || ' as ' \
               || SYS_CONTEXT('USERENV', 'SESSION_USER') FROM DUAL";
    Ok(session.value(sql)?.unwrap_or_default())
}
