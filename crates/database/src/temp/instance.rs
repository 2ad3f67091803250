//! One private server: its files and its process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::child::{Child, Stages};
use super::files::Files;
use super::place::Location;
use super::product::{Product, cannot_run};
use super::user::ServerUser;
use crate::error::TargetError;

/// A server that does not take sessions within this time is given up.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The server's files and, once it is started, its process. Dropping it ends and removes both.
pub(crate) struct Instance {
    child: Option<Child>,
    product: &'static Product,
    pub(crate) files: Files,
}

impl Instance {
    /// Makes the directories and marks them as this process's.
    ///
    /// # Errors
    /// [`TargetError::Local`] with the directory that cannot be used.
    pub(crate) fn create(
        product: &'static Product,
        place: &Location,
        user: &ServerUser,
    ) -> Result<Instance, TargetError> {
        Ok(Instance { child: None, product, files: Files::create(product, place, user)? })
    }

    /// Starts the server; its output goes to its log.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn spawn(&mut self, mut command: Command) -> Result<Pid, TargetError> {
        let program = PathBuf::from(command.get_program());
        let (stdout, stderr) = self.files.make_log()?;
        command.stdout(stdout).stderr(stderr);
        let child = Child::spawn(command).map_err(|e| cannot_run(&program, &e))?;
        self.files.owner.postmaster = Some(child.pid.as_raw());
        Ok(self.child.insert(child).pid)
    }

    /// Asks at the socket until the server takes sessions.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn wait_ready(&self, ask: impl Fn(&Path) -> Progress) -> Result<(), String> {
        let socket = self.files.socket();
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            // In this order: what it wrote before it ended is then in the log.
            if let Some(exit) = self.child.as_ref().and_then(Child::exit) {
                return Err(exit);
            }
            let state = match ask(&socket) {
                Progress::Ready => return Ok(()),
                Progress::Hopeless(why) => return Err(why),
                Progress::Waiting(state) => state,
            };
            if Instant::now() >= deadline {
                return Err(format!("no session within {} s: {state}", START_TIMEOUT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server by `stages`; it can be started again.
    pub(crate) fn stop(&mut self, stages: &Stages) {
        if let Some(mut child) = self.child.take() {
            child.stop(stages);
        }
    }

    /// The server's process, as long as it runs.
    pub(crate) fn running(&self) -> Option<Pid> {
        self.child.as_ref().filter(|child| child.exit().is_none()).map(|child| child.pid)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop(self.product.stages);
    }
}

/// How far a server that starts is.
pub(crate) enum Progress {
    /// It takes sessions.
    Ready,
    /// Not yet, and what it says.
    Waiting(String),
    /// It never will, and why.
    Hopeless(String),
}
