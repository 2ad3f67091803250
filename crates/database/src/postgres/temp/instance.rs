//! One private PostgreSQL server: database cluster, configuration and process.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::binaries::Binaries;
use super::probe::progress;
use super::processes::Marks;
use super::settings::{file, server_message};
use super::{PRODUCT, SUPERUSER, processes, shared_memory};
use crate::error::TargetError;
use crate::temp::instance;
use crate::temp::owner::Owner;
use crate::temp::product::cannot_run;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;

/// File with the process group of initdb while it runs.
pub(super) const INITDB: &str = "initdb.group";
pub(super) const CONFIG: &str = "postgresql.conf";
/// Its successor while it is written.
pub(super) const NEW_CONFIG: &str = "postgresql.conf.new";
/// Signals that stop it for a restart: it writes all changed pages to the data files first.
const RESTART: [(Signal, Duration); 2] =
    [(Signal::SIGINT, Duration::from_secs(120)), (Signal::SIGQUIT, Duration::from_secs(10))];

/// Signals that stop a server at once: one that does not get ready, which may not listen to others yet and has written nothing,
/// and one whose data are not needed.
const AT_ONCE: [(Signal, Duration); 2] =
    [(Signal::SIGQUIT, Duration::from_secs(2)), (Signal::SIGKILL, Duration::from_secs(5))];

/// What servers are started with.
pub(super) struct Setup {
    pub(super) binaries: Binaries,
    pub(super) user: ServerUser,
    pub(super) settings: Settings,
}

/// The server's files and, after its start, its process. Dropping it stops the process and removes the files.
pub(super) struct Instance {
    of_any: instance::Instance,
    /// Settings behind all others in its configuration file.
    pub(super) last: Vec<(&'static str, String)>,
}

impl Instance {
    /// A server with empty directories.
    pub(super) fn new(instance: instance::Instance) -> Instance {
        Instance { of_any: instance, last: Vec::new() }
    }

    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.of_any.files.data()
    }

    /// The socket's directory.
    pub(super) fn sockets(&self) -> PathBuf {
        self.of_any.files.sockets()
    }

    /// Creates the database cluster with data checksums.
    pub(super) fn initdb(&self, binaries: &Binaries, user: &ServerUser) -> Result<(), TargetError> {
        let mut command = user.command(binaries.initdb(), Signal::SIGKILL);
        command.arg("-D").arg(self.data()).args(["--data-checksums", "--no-sync", "--no-instructions", "--auth=trust"]);
        command.args(["--encoding=UTF8", "--locale=C", "--username", SUPERUSER]);
        let failed = |e: io::Error| cannot_run(&binaries.initdb(), &e);
        let mut initdb = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        // The helpers of initdb do not die with loadline, and only their process group identifies them. The file need
        // not be synced, because it is valid in this boot only.
        let group = self.of_any.files.dir.join(INITDB);
        if let Err(e) = std::fs::write(&group, initdb.id().to_string()) {
            let _ = initdb.kill();
            let _ = initdb.wait();
            return Err(PRODUCT.cannot_use(&group, &e));
        }
        let output = initdb.wait_with_output().map_err(failed)?;
        std::fs::remove_file(&group).map_err(|e| PRODUCT.cannot_use(&group, &e))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(self.of_any.files.failure("initdb failed", &server_message(&stderr)));
        }
        // initdb --no-sync: one sync for all files instead of one per file.
        self.of_any.files.bring_to_disk()
    }

    /// Copies the data directory of a server that does not run, for a standby of it.
    pub(super) fn copy(&self, of: &Instance, user: &ServerUser) -> Result<(), TargetError> {
        self.of_any.copy(&of.of_any, user)?;
        // It is its user's: the server opens it for writing.
        let mut mark = user.command("touch", Signal::SIGKILL);
        mark.arg(self.data().join("standby.signal"));
        let made = mark.status().map_err(|e| cannot_run(Path::new("touch"), &e))?;
        if made.success() {
            Ok(())
        } else {
            Err(self.of_any.files.failure("'touch standby.signal' failed", &made.to_string()))
        }
    }

    /// Stops a server whose data are not needed.
    pub(super) fn stop_at_once(&mut self) {
        self.note_shared_memory();
        self.of_any.stop(&AT_ONCE);
    }

    /// The server created new files if one of its processes was killed.
    fn note_shared_memory(&mut self) {
        if let Some(postmaster) = self.of_any.running() {
            let owner = &mut self.of_any.files.owner;
            let user = ServerUser::of_ids(owner.uid, owner.gid);
            owner.shared_memory.extend(shared_memory::mapped_files(postmaster, &user));
        }
    }

    /// Whether the server's main process runs.
    pub(super) fn runs(&self) -> bool {
        self.of_any.running().is_some()
    }

    /// Ends what a killed server left, so that it can be started again.
    pub(super) fn clear(&mut self) -> Result<(), TargetError> {
        self.of_any.stop(&AT_ONCE);
        let files = &self.of_any.files;
        let ended = end(&files.dir, files.name(), &files.owner);
        ended.map(drop).map_err(|e| files.failure("its processes cannot be ended", &e.to_string()))
    }

    /// Shuts the server down and starts it with its settings.
    pub(super) fn restart(&mut self, setup: &Setup) -> Result<(), TargetError> {
        self.of_any.stop(&RESTART);
        self.start(setup)
    }

    /// Writes the configuration file anew, under a name of its own first: the server may read it at any time.
    pub(super) fn configure(&self, setup: &Setup) -> Result<(), TargetError> {
        let files = &self.of_any.files;
        let (config, new) = (files.dir.join(CONFIG), files.dir.join(NEW_CONFIG));
        let text = file(&setup.settings, files.name(), &files.sockets().to_string_lossy(), &self.last);
        write_for(&new, &text, &setup.user)
            .and_then(|()| std::fs::rename(&new, &config))
            .map_err(|e| files.failure("its configuration cannot be written", &e.to_string()))
    }

    /// Starts the server and waits until it accepts sessions.
    pub(super) fn start(&mut self, setup: &Setup) -> Result<(), TargetError> {
        self.configure(setup)?;
        let config = self.of_any.files.dir.join(CONFIG);
        // SIGINT: fast shutdown if loadline is killed.
        let mut command = setup.user.command(setup.binaries.postgres(), Signal::SIGINT);
        command.arg("-D").arg(self.data()).arg("-c").arg(config_argument(&config));
        let postmaster = self.of_any.spawn(command)?;
        if let Err(why) = self.of_any.wait_ready(progress) {
            self.of_any.stop(&AT_ONCE);
            return Err(self.of_any.start_failure(&why, &setup.settings, &self.of_any.files.log(), server_message));
        }
        self.of_any.files.owner.shared_memory = shared_memory::mapped_files(postmaster, &setup.user);
        self.of_any.files.mark()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.note_shared_memory();
    }
}

/// Ends the processes of the server in `dir`; returns whether anything still ran.
pub(super) fn end(dir: &Path, name: &str, owner: &Owner) -> io::Result<bool> {
    let initdb = std::fs::read_to_string(dir.join(INITDB)).ok().and_then(|group| group.trim().parse().ok());
    let initdb = initdb.filter(|_| owner.is_of_this_boot());
    let ran = processes::end_all(Marks { name, uid: owner.uid, initdb })?;
    shared_memory::remove(owner);
    Ok(ran)
}

/// Writes a file that only the server's user can read.
fn write_for(path: &Path, text: &str, user: &ServerUser) -> io::Result<()> {
    // One of that name is what a full disk left of the last attempt.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(path)?;
    if user.switch {
        chown(path, None, Some(user.gid))?;
    }
    file.write_all(text.as_bytes())
}

fn config_argument(config: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from("config_file=");
    argument.push(config);
    argument
}
