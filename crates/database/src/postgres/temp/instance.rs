//! One private PostgreSQL: its cluster, its configuration and its process.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::address::SCHEME;
use super::binaries::Binaries;
use super::place::{Location, cannot_use};
use super::probe::{Answer, ask};
use super::processes::Marks;
use super::settings::{Settings, says, shown};
use super::user::ServerUser;
use super::{SOCKET, SUPERUSER, processes, shared_memory};
use crate::error::TargetError;
use crate::temp::child::Child;
use crate::temp::files::{Files, Layout, Progress, wait_ready};
use crate::temp::leftovers::Kind;
use crate::temp::owner::Owner;

/// Holds the process group of initdb while that runs.
const INITDB: &str = "initdb.group";
const CONFIG: &str = "postgresql.conf";
/// How it is stopped to be started again: all that is changed goes to the data files first.
const RESTART: [(Signal, Duration); 2] =
    [(Signal::SIGINT, Duration::from_secs(120)), (Signal::SIGQUIT, Duration::from_secs(10))];

/// Its place on disk.
pub(super) static LAYOUT: Layout = Layout {
    kind: Kind { prefix: super::PREFIX, product: "PostgreSQL", remove },
    scheme: SCHEME,
    socket: SOCKET,
    // The setting is a list of quoted names.
    unfit: |c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '\\'),
    besides: &[INITDB, CONFIG],
};

/// The server's files and, once it is started, its process. Dropping it ends and removes both.
pub(super) struct Instance {
    postmaster: Option<Child>,
    files: Files,
}

impl Instance {
    /// Makes the directories and marks them as this process's.
    pub(super) fn create(place: &Location, user: &ServerUser) -> Result<Instance, TargetError> {
        Ok(Instance { postmaster: None, files: Files::create(&LAYOUT, place, user)? })
    }

    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.files.data()
    }

    /// The socket's directory.
    pub(super) fn sockets(&self) -> PathBuf {
        self.files.sockets()
    }

    /// Makes the database cluster, with data checksums.
    pub(super) fn initdb(&self, binaries: &Binaries, user: &ServerUser) -> Result<(), TargetError> {
        let mut command = user.command(binaries.initdb(), Signal::SIGKILL);
        command.arg("-D").arg(self.data()).args(["--data-checksums", "--no-sync", "--no-instructions", "--auth=trust"]);
        command.args(["--encoding=UTF8", "--locale=C", "--username", SUPERUSER]);
        let failed = |e: io::Error| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.initdb().display()));
        let mut initdb = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        // Its helpers do not die with loadline, and nothing but their process group shows whose they
        // are. No need to bring this to disk, as it is of use in this boot only.
        let group = self.files.dir.join(INITDB);
        if let Err(e) = std::fs::write(&group, initdb.id().to_string()) {
            let _ = initdb.kill();
            let _ = initdb.wait();
            return Err(cannot_use(&group, &e));
        }
        let output = initdb.wait_with_output().map_err(failed)?;
        std::fs::remove_file(&group).map_err(|e| cannot_use(&group, &e))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(self.files.failure("initdb failed", &says(&stderr)));
        }
        // Its files were written without a sync, which takes one each.
        self.files.bring_to_disk()
    }

    /// Stops the server in order and starts it anew with `settings`.
    pub(super) fn restart(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
        given: &BTreeMap<String, String>,
    ) -> Result<(), TargetError> {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.stop(&RESTART);
        }
        let old = self.files.dir.join(CONFIG);
        std::fs::remove_file(&old).map_err(|e| cannot_use(&old, &e))?;
        self.start(binaries, user, settings, given)
    }

    /// Starts the server and waits until it takes sessions.
    pub(super) fn start(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
        given: &BTreeMap<String, String>,
    ) -> Result<(), TargetError> {
        let config = self.files.dir.join(CONFIG);
        let sockets = self.sockets();
        let text = settings.file(self.files.name(), &sockets.to_string_lossy());
        write_for(&config, &text, user)
            .map_err(|e| self.files.failure("its configuration cannot be written", &e.to_string()))?;
        let (stdout, stderr) = self.files.make_log()?;

        // SIGINT: a fast shutdown, should loadline be killed.
        let mut command = user.command(binaries.postgres(), Signal::SIGINT);
        command.arg("-D").arg(self.data()).arg("-c").arg(config_argument(&config)).stdout(stdout).stderr(stderr);
        let postmaster = Child::spawn(command)
            .map_err(|e| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.postgres().display())))?;
        self.files.owner.postmaster = Some(postmaster.pid.as_raw());
        let postmaster = self.postmaster.insert(postmaster);
        let socket = self.files.socket();
        if let Err(why) = wait_ready(postmaster, || progress(&socket)) {
            return Err(self.start_failure(&why, &self.files.log(), given));
        }
        self.files.owner.shared_memory = shared_memory::mapped_files(postmaster.pid, user);
        self.files.mark()
    }

    fn start_failure(&self, why: &str, log: &str, given: &BTreeMap<String, String>) -> TargetError {
        let says = says(log);
        if given.is_empty() || self.files.disk_is_full(log) {
            return self.files.failure(&format!("the private PostgreSQL did not start ({why})"), &says);
        }
        TargetError::Usage(format!(
            "the private PostgreSQL did not start with --setting {} ({why}); postgres says: «{says}»",
            shown(given)
        ))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let Some(postmaster) = &mut self.postmaster else { return };
        let owner = &mut self.files.owner;
        if postmaster.exit().is_none() {
            // It has made new ones if one of its processes was killed.
            let user = ServerUser::of_ids(owner.uid, owner.gid);
            owner.shared_memory.extend(shared_memory::mapped_files(postmaster.pid, &user));
        }
        postmaster.stop(&processes::STAGES);
    }
}

/// Ends what runs of the server in `dir` and removes it; returns whether anything still ran.
fn remove(dir: &Path, owner: &Owner) -> io::Result<bool> {
    let initdb = std::fs::read_to_string(dir.join(INITDB)).ok().and_then(|group| group.trim().parse().ok());
    let initdb = initdb.filter(|_| owner.is_of_this_boot());
    LAYOUT.remove(dir, owner, |name| {
        let ran = processes::end_all(Marks { name, uid: owner.uid, initdb })
            .map_err(|left| io::Error::other(format!("{left} of its processes do not end")))?;
        shared_memory::remove(owner);
        Ok(ran)
    })
}

fn progress(socket: &Path) -> Progress {
    match ask(socket, SUPERUSER) {
        Ok(Answer::Ready) => Progress::Ready,
        Ok(Answer::Refused(why)) => Progress::Hopeless(why),
        Ok(Answer::Starting) => Progress::Waiting("it is still starting".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Progress::Hopeless(format!("its socket «{}» cannot be used: {e}", socket.display()))
        }
        Err(e) => Progress::Waiting(e.to_string()),
    }
}

/// Writes a file that the server's user can read and nobody else.
fn write_for(path: &Path, text: &str, user: &ServerUser) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(path)?;
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
