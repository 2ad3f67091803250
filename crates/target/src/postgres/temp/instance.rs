//! One private server on disk: `PARENT/loadline-pg-RANDOM/` with the owner file and the lock, the
//! configuration, the server's log, `data/` and `socket/`. As root the directory itself stays
//! root's, so that what is in the marks can be trusted; only the last two are the server's.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::binaries::Binaries;
use super::place::{self, Place, cannot_use};
use super::probe::{Answer, ask};
use super::processes::Marks;
use super::settings::{Settings, says, shown};
use super::user::ServerUser;
use super::{PORT, SUPERUSER, processes, shared_memory};
use crate::error::TargetError;
use crate::temp::child::Child;
use crate::temp::leftovers::absent_is_fine;
use crate::temp::owner::{self, Owner};

/// A server that does not take sessions within this time is given up.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest path of a socket that every system takes, in bytes.
const LONGEST_SOCKET: usize = 103;
const LOG: &str = "server.log";
/// Holds the process group of initdb while that runs.
const INITDB: &str = "initdb.group";

/// The server's files and, once it is started, its process. Dropping it ends and removes both.
pub(super) struct Instance {
    dir: PathBuf,
    owner: Owner,
    made: Option<PathBuf>,
    postmaster: Option<Child>,
    /// Says that the owner lives; goes after all else.
    _lock: File,
}

impl Instance {
    /// Makes the directories and marks them as this process's.
    pub(super) fn create(place: &Place, user: &ServerUser) -> Result<Instance, TargetError> {
        let failed = |e: io::Error| cannot_use(&place.parent, &e);
        // Others must pass to their own parts, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(super::PREFIX)
            .rand_bytes(10)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(&place.parent)
            .map_err(failed)?;
        // Removed by `TempDir` if one of these fails, by `Instance` from then on.
        let lock = owner::try_lock(dir.path()).map_err(failed)?;
        let lock = lock.ok_or_else(|| failed(io::Error::other("its lock is held by another process")))?;
        let mut owner = Owner::this_process(dir.path(), user.uid, user.gid).map_err(failed)?;
        owner.sockets = outside_sockets(dir.path());
        owner.write(dir.path()).map_err(failed)?;
        let instance = Instance { dir: dir.keep(), owner, made: place.made.clone(), postmaster: None, _lock: lock };
        // Modes do not depend on the umask of the shell.
        std::fs::set_permissions(&instance.dir, Permissions::from_mode(mode)).map_err(failed)?;
        for part in [instance.data(), instance.sockets()] {
            let made = DirBuilder::new().mode(0o700).create(&part);
            made.and_then(|()| give(&part, user)).map_err(|e| cannot_use(&part, &e))?;
        }
        Ok(instance)
    }

    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The socket's directory.
    pub(super) fn sockets(&self) -> PathBuf {
        self.owner.sockets.clone().unwrap_or_else(|| self.dir.join("socket"))
    }

    /// The directory's own name, which no other has.
    fn name(&self) -> &str {
        self.dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
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
        let group = self.dir.join(INITDB);
        if let Err(e) = std::fs::write(&group, initdb.id().to_string()) {
            let _ = initdb.kill();
            let _ = initdb.wait();
            return Err(cannot_use(&group, &e));
        }
        let output = initdb.wait_with_output().map_err(failed)?;
        std::fs::remove_file(&group).map_err(|e| cannot_use(&group, &e))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(self.failure("initdb failed", &says(&stderr)));
        }
        // Its files were written without a sync (that takes one each): what is dirty now would be
        // written back during the first tests.
        File::open(self.data())
            .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
            .map_err(|e| self.failure("the new database could not be brought to disk", &e.to_string()))
    }

    /// Starts the server and waits until it takes sessions.
    pub(super) fn start(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
        given: &BTreeMap<String, String>,
    ) -> Result<(), TargetError> {
        let config = self.dir.join("postgresql.conf");
        let sockets = self.sockets();
        let text = settings.file(self.name(), &sockets.to_string_lossy());
        write_for(&config, &text, user)
            .map_err(|e| self.failure("its configuration cannot be written", &e.to_string()))?;
        let log = |e: io::Error| cannot_use(&self.dir.join(LOG), &e);
        let stdout =
            OpenOptions::new().append(true).create_new(true).mode(0o640).open(self.dir.join(LOG)).map_err(log)?;
        let stderr = stdout.try_clone().map_err(log)?;

        // SIGINT: a fast shutdown, should loadline be killed.
        let mut command = user.command(binaries.postgres(), Signal::SIGINT);
        command.arg("-D").arg(self.data()).arg("-c").arg(config_argument(&config)).stdout(stdout).stderr(stderr);
        let postmaster = Child::spawn(command)
            .map_err(|e| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.postgres().display())))?;
        self.owner.postmaster = Some(postmaster.pid.as_raw());
        let postmaster = self.postmaster.insert(postmaster);

        let socket = sockets.join(format!(".s.PGSQL.{PORT}"));
        let waited = wait_ready(postmaster, &socket);
        if let Err(why) = waited {
            let log = std::fs::read(self.dir.join(LOG)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            return Err(self.start_failure(&why, &log, given));
        }
        self.owner.shared_memory = shared_memory::mapped_files(postmaster.pid, user);
        self.owner.write(&self.dir).map_err(|e| self.failure("its owner file cannot be written", &e.to_string()))
    }

    fn start_failure(&self, why: &str, log: &str, given: &BTreeMap<String, String>) -> TargetError {
        let says = says(log);
        if given.is_empty() || self.disk_is_full(log) {
            return self.failure(&format!("the private PostgreSQL did not start ({why})"), &says);
        }
        TargetError::Usage(format!(
            "the private PostgreSQL did not start with --setting {} ({why}); postgres says: «{says}»",
            shown(given)
        ))
    }

    fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        let next = if self.disk_is_full(says) {
            format!("The filesystem under «{parent}» is full: free some GiB there, or name another directory with")
        } else {
            "Put that right, or name another directory with".to_owned()
        };
        TargetError::Local(format!("{what} in «{parent}»: «{says}». {next} postgres-temp:/dir"))
    }

    /// Whether PostgreSQL complains of that: in the system's words, in its own when a write was cut
    /// short («wrote only 4096 of 8192 bytes», with a hint), or not at all as it cannot even log it.
    fn disk_is_full(&self, text: &str) -> bool {
        const WORDS: [&str; 3] = ["No space left on device", "Disk quota exceeded", "Check free disk space"];
        WORDS.iter().any(|part| text.contains(part)) || place::free_bytes(&self.dir).is_some_and(|free| free < 16 << 20)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(postmaster) = &mut self.postmaster {
            if postmaster.exit().is_none() {
                // It has made new ones if one of its processes was killed.
                let user = ServerUser::of_ids(self.owner.uid, self.owner.gid);
                self.owner.shared_memory.extend(shared_memory::mapped_files(postmaster.pid, &user));
            }
            postmaster.stop(&processes::STAGES);
        }
        if let Err(e) = remove(&self.dir, &self.owner) {
            tracing::warn!(
                "the private server in {} could not be removed: {e}; try «loadline clean»",
                self.dir.display()
            );
        }
        if let Some(made) = &self.made {
            // Stays if it holds something by now, the results above all.
            let _ = std::fs::remove_dir(made);
        }
    }
}

/// Ends what runs of the server in `dir` and removes it; returns whether anything still ran. The
/// marks go last, so that a removal which is cut off is taken up again.
pub(super) fn remove(dir: &Path, owner: &Owner) -> io::Result<bool> {
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with(super::PREFIX));
    let name = name.ok_or_else(|| io::Error::other("its name is not one that loadline gives"))?;
    let initdb = std::fs::read_to_string(dir.join(INITDB)).ok().and_then(|group| group.trim().parse().ok());
    let initdb = initdb.filter(|_| owner.is_of_this_boot());
    let ran = processes::end_all(Marks { name, uid: owner.uid, initdb })
        .map_err(|left| io::Error::other(format!("{left} of its processes do not end")))?;
    shared_memory::remove(owner);
    let sockets = owner.sockets.as_deref().filter(|path| Some(*path) == outside(name).as_deref());
    let theirs = |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == owner.uid);
    if let Some(sockets) = sockets.filter(theirs) {
        std::fs::remove_dir_all(sockets)?;
    }
    for part in ["data", "socket"] {
        absent_is_fine(std::fs::remove_dir_all(dir.join(part)))?;
    }
    for file in [LOG, INITDB, "postgresql.conf", owner::DRAFT, owner::FILE, owner::LOCK] {
        absent_is_fine(std::fs::remove_file(dir.join(file)))?;
    }
    // Fails if there is anything that loadline did not put there, which is then not its to remove.
    std::fs::remove_dir(dir)?;
    Ok(ran)
}

fn wait_ready(postmaster: &Child, socket: &Path) -> Result<(), String> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        // In this order: what it wrote before it ended is then in the log.
        if let Some(exit) = postmaster.exit() {
            return Err(exit);
        }
        let state = match ask(socket, SUPERUSER) {
            Ok(Answer::Ready) => return Ok(()),
            Ok(Answer::Refused(why)) => return Err(why),
            Ok(Answer::Starting) => "it is still starting".to_owned(),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Err(format!("its socket «{}» cannot be used: {e}", socket.display()));
            }
            Err(e) => e.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(format!("no session within {} s: {state}", START_TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A socket directory outside, if the one inside has a path that is too long for a socket or that
/// the setting (a list of quoted names) cannot hold.
fn outside_sockets(dir: &Path) -> Option<PathBuf> {
    let inside = dir.join("socket");
    let plain = inside.to_str().is_some_and(|path| {
        path.len() + "/.s.PGSQL.".len() + PORT.to_string().len() <= LONGEST_SOCKET
            && !path.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, ',' | '"' | '\'' | '\\'))
    });
    if plain { None } else { outside(dir.file_name()?.to_str()?) }
}

fn outside(name: &str) -> Option<PathBuf> {
    (name.starts_with(super::PREFIX)).then(|| Path::new("/tmp").join(format!("{name}-socket")))
}

fn give(path: &Path, user: &ServerUser) -> io::Result<()> {
    if user.switch { chown(path, Some(user.uid), Some(user.gid)) } else { Ok(()) }
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
