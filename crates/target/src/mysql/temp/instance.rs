//! One private server on disk: `PARENT/loadline-mariadb-RANDOM/` with the owner file and the lock,
//! the server's log, `data/` and `socket/`. As root the directory itself stays root's, so that what
//! is in the marks can be trusted; only the last two are the server's.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::address::SCHEME;
use super::binaries::Binaries;
use super::install::{self, of_path};
use super::settings::Settings;
use super::{PREFIX, SUPERUSER};
use crate::error::TargetError;
use crate::temp::child::Child;
use crate::temp::leftovers::absent_is_fine;
use crate::temp::owner::{self, Owner};
use crate::temp::place::{Place, cannot_use};
use crate::temp::user::ServerUser;

/// A server that does not take sessions within this time is given up.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest path of a socket that every system takes, in bytes.
const LONGEST_SOCKET: usize = 103;
const LOG: &str = "server.log";
/// The socket's name in its directory.
const SOCKET: &str = "s";
/// SIGTERM shuts down in order.
const STAGES: [(Signal, Duration); 2] =
    [(Signal::SIGTERM, Duration::from_secs(15)), (Signal::SIGKILL, Duration::from_secs(5))];

/// The server's files and, once it is started, its process. Dropping it ends and removes both.
pub(super) struct Instance {
    dir: PathBuf,
    owner: Owner,
    made: Option<PathBuf>,
    child: Option<Child>,
    /// Says that the owner lives; goes after all else.
    _lock: File,
}

impl Instance {
    /// Makes the directories and marks them as this process's.
    pub(super) fn create(place: &Place, user: &ServerUser) -> Result<Instance, TargetError> {
        let failed = |e: io::Error| cannot_use(&place.parent, SCHEME, &e);
        // Others must pass to their own parts, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
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
        let instance = Instance { dir: dir.keep(), owner, made: place.made.clone(), child: None, _lock: lock };
        std::fs::set_permissions(&instance.dir, Permissions::from_mode(mode)).map_err(failed)?;
        for part in [instance.data(), instance.sockets()] {
            let made = DirBuilder::new().mode(0o700).create(&part);
            let owned = |()| if user.switch { chown(&part, Some(user.uid), Some(user.gid)) } else { Ok(()) };
            made.and_then(owned).map_err(|e| cannot_use(&part, SCHEME, &e))?;
        }
        Ok(instance)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn sockets(&self) -> PathBuf {
        self.owner.sockets.clone().unwrap_or_else(|| self.dir.join("socket"))
    }

    /// Path of the socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.sockets().join(SOCKET)
    }

    /// Makes the database, starts the server and waits until it takes sessions.
    pub(super) fn start(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
    ) -> Result<(), TargetError> {
        let mut install = install::command(binaries, user, &self.data());
        install.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its standard input is closed when it has ended, or with loadline.
        let output = install
            .spawn()
            .and_then(|mut child| {
                let _open = child.stdin.take();
                child.wait_with_output()
            })
            .map_err(|e| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.install.display())))?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            return Err(self.failure("mariadb-install-db failed", &says(&String::from_utf8_lossy(&text))));
        }
        // What is dirty now would be written back during the first tests.
        File::open(self.data())
            .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
            .map_err(|e| self.failure("the new database could not be brought to disk", &e.to_string()))?;
        let log = |e: io::Error| cannot_use(&self.dir.join(LOG), SCHEME, &e);
        let stdout =
            OpenOptions::new().append(true).create_new(true).mode(0o640).open(self.dir.join(LOG)).map_err(log)?;
        let stderr = stdout.try_clone().map_err(log)?;
        // Nothing of it is worth an orderly end, and one asked of it while it starts may be overheard.
        let mut command = user.command(&binaries.server, Signal::SIGKILL);
        command.arg("--no-defaults").arg(of_path("datadir", &self.data())).arg(of_path("socket", &self.socket()));
        command.arg(of_path("pid-file", &self.sockets().join("pid")));
        command.args(["--skip-networking", "--skip-name-resolve"]).args(settings.arguments());
        command.args(install::base(binaries));
        command.stdout(stdout).stderr(stderr).stdin(Stdio::null());
        let child = Child::spawn(command)
            .map_err(|e| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.server.display())))?;
        self.owner.postmaster = Some(child.pid.as_raw());
        let child = self.child.insert(child);
        let socket = self.owner.sockets.clone().unwrap_or_else(|| self.dir.join("socket")).join(SOCKET);
        if let Err(why) = wait_ready(child, &socket) {
            let log = std::fs::read(self.dir.join(LOG)).unwrap_or_default();
            let says = says(&String::from_utf8_lossy(&log));
            return Err(self.failure(&format!("the private MariaDB did not start ({why})"), &says));
        }
        self.owner.write(&self.dir).map_err(|e| self.failure("its owner file cannot be written", &e.to_string()))
    }

    fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        TargetError::Local(format!(
            "{what} in «{parent}»: «{says}». Put that right, or name another directory with {SCHEME}:/dir"
        ))
    }
}

/// What went wrong, in the server's own words: the last errors of its log, else its last lines.
fn says(log: &str) -> String {
    let errors: Vec<&str> = log.lines().filter_map(|l| l.split_once("[ERROR] ").map(|(_, text)| text.trim())).collect();
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let parts = if errors.is_empty() { lines } else { errors };
    parts[parts.len().saturating_sub(4)..].join(" – ")
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.stop(&STAGES);
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
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with(PREFIX));
    let name = name.ok_or_else(|| io::Error::other("its name is not one that loadline gives"))?;
    let ran = end_all(name, owner.uid)?;
    let sockets = owner.sockets.as_deref().filter(|path| Some(*path) == outside(name).as_deref());
    let theirs = |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == owner.uid);
    if let Some(sockets) = sockets.filter(theirs) {
        std::fs::remove_dir_all(sockets)?;
    }
    for part in ["data", "socket"] {
        absent_is_fine(std::fs::remove_dir_all(dir.join(part)))?;
    }
    for file in [LOG, owner::DRAFT, owner::FILE, owner::LOCK] {
        absent_is_fine(std::fs::remove_file(dir.join(file)))?;
    }
    // Fails if there is anything that loadline did not put there, which is then not its to remove.
    std::fs::remove_dir(dir)?;
    Ok(ran)
}

/// Ends the server's processes; returns whether there were any. They are known by what everybody may
/// read: their command line names the directory, which no other has.
fn end_all(name: &str, uid: u32) -> io::Result<bool> {
    let found = !running(name, uid).is_empty();
    for (signal, patience) in STAGES {
        let processes = running(name, uid);
        for pid in &processes {
            let _ = kill(*pid, signal);
        }
        let deadline = Instant::now() + patience;
        while !running(name, uid).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    match running(name, uid).len() {
        0 => Ok(found),
        left => Err(io::Error::other(format!("{left} of its processes do not end"))),
    }
}

fn running(name: &str, uid: u32) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
            (is_of(&cmdline, name) && entry.metadata().ok()?.uid() == uid).then_some(Pid::from_raw(pid))
        })
        .collect()
}

/// Whether the process is the server in the directory called `name`, or what makes its database
/// (`mariadb-install-db` feeds a `mariadbd --bootstrap`).
fn is_of(cmdline: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(cmdline);
    let data = format!("/{name}/data");
    let of_server = text.contains("mariadbd") || text.contains("install-db") || text.contains("install_db");
    of_server && text.split('\0').any(|arg| arg.starts_with("--datadir=") && arg.ends_with(&data))
}

fn wait_ready(child: &Child, socket: &Path) -> Result<(), String> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        // In this order: what it wrote before it ended is then in the log.
        if let Some(exit) = child.exit() {
            return Err(exit);
        }
        // It makes the socket when it is ready, and greets whoever comes.
        let state = match UnixStream::connect(socket).and_then(|s| greeted(&s)) {
            Ok(()) => return Ok(()),
            Err(e) => e.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(format!("no session for {SUPERUSER} within {} s: {state}", START_TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn greeted(mut socket: &UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    io::Read::read_exact(&mut socket, &mut [0; 5])
}

/// A socket directory outside, if the one inside has a path that is too long for a socket.
fn outside_sockets(dir: &Path) -> Option<PathBuf> {
    let inside = dir.join("socket").join(SOCKET);
    let plain = inside.to_str().is_some_and(|path| path.len() <= LONGEST_SOCKET);
    if plain { None } else { outside(dir.file_name()?.to_str()?) }
}

fn outside(name: &str) -> Option<PathBuf> {
    name.starts_with(PREFIX).then(|| Path::new("/tmp").join(format!("{name}-socket")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_processes_are_known() {
        let line = |text: &str| text.replace(' ', "\0").into_bytes();
        let name = "loadline-mariadb-abc";
        assert!(is_of(&line("/usr/sbin/mariadbd --no-defaults --datadir=/var/tmp/loadline-mariadb-abc/data"), name));
        for other in [
            "/usr/sbin/mariadbd --datadir=/var/lib/mysql",
            "/usr/sbin/mariadbd --datadir=/var/tmp/loadline-mariadb-abcd/data",
            "less --datadir=/var/tmp/loadline-mariadb-abc/data",
            "mariadbd /var/tmp/loadline-mariadb-abc/data",
        ] {
            assert!(!is_of(&line(other), name), "{other}");
        }
    }
}
