//! One private server: its files and its process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::child::{Child, Stages};
use super::files::Files;
use super::place::Location;
use super::product::{Product, cannot_run};
use super::settings::Settings;
use super::user::ServerUser;
use crate::error::TargetError;

/// Time for a server to start and accept sessions.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The server's files and, after its start, its process. Dropping it stops the process and removes the files.
pub(crate) struct Instance {
    child: Option<Child>,
    product: &'static Product,
    pub(crate) files: Files,
}

impl Instance {
    /// Creates the directories and writes the owner file.
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

    /// Copies the data directory of a server that does not run.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn copy(&self, of: &Instance, user: &ServerUser) -> Result<(), TargetError> {
        let mut copy = user.command("cp", Signal::SIGKILL);
        copy.arg("-a").arg(of.files.data().join(".")).arg(self.files.data());
        let output = copy.output().map_err(|e| cannot_run(Path::new("cp"), &e))?;
        if !output.status.success() {
            let says = String::from_utf8_lossy(&output.stderr);
            return Err(self.files.failure("the data folder cannot be copied", says.trim()));
        }
        self.files.bring_to_disk()
    }

    /// Starts the server with its output in its log.
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

    /// Asks at the socket until the server accepts sessions.
    ///
    /// # Errors
    /// The reason why it does not.
    pub(crate) fn wait_ready(&self, ask: impl Fn(&Path) -> Progress) -> Result<(), String> {
        let socket = self.files.socket();
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            // First this check: after the exit, the log is complete.
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

    /// The error for a server that did not start: of usage if the user gave settings. `cause` finds it in the log.
    pub(crate) fn start_failure(
        &self,
        why: &str,
        settings: &Settings,
        log: &str,
        cause: fn(&str) -> String,
    ) -> TargetError {
        let Product { name, program, .. } = self.product;
        let message = cause(log);
        if settings.given.is_empty() || self.files.disk_is_full(log) {
            return self.files.failure(&format!("the private {name} did not start ({why})"), &message);
        }
        TargetError::Usage(format!(
            "the private {name} did not start with --setting {} ({why}); {program} says: '{message}'",
            settings.shown()
        ))
    }

    /// Stops the server with `stages`; it can be started again.
    pub(crate) fn stop(&mut self, stages: &Stages) {
        if let Some(mut child) = self.child.take() {
            child.stop(stages);
        }
    }

    /// The server's process, if it runs.
    pub(crate) fn running(&self) -> Option<Pid> {
        self.child.as_ref().filter(|child| child.exit().is_none()).map(|child| child.pid)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop(self.product.stages);
    }
}

/// State of a starting server.
pub(crate) enum Progress {
    /// It accepts sessions.
    Ready,
    /// Not yet; its last answer.
    Waiting(String),
    /// It cannot start; the reason.
    Hopeless(String),
}
