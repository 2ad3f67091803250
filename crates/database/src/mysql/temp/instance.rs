//! One private MariaDB: its database and its process.

use std::io;
use std::os::unix::fs::MetadataExt;
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
use crate::temp::files::{Files, Layout, Progress, wait_ready};
use crate::temp::leftovers::Kind;
use crate::temp::owner::Owner;
use crate::temp::place::Location;
use crate::temp::user::ServerUser;

/// SIGTERM shuts down in order.
const STAGES: [(Signal, Duration); 2] =
    [(Signal::SIGTERM, Duration::from_secs(15)), (Signal::SIGKILL, Duration::from_secs(5))];

/// Its place on disk.
pub(super) static LAYOUT: Layout = Layout {
    kind: Kind { prefix: PREFIX, product: "MariaDB", remove },
    scheme: SCHEME,
    socket: "s",
    unfit: |_| false,
    besides: &[],
};

/// The server's files and, once it is started, its process. Dropping it ends and removes both.
pub(super) struct Instance {
    child: Option<Child>,
    files: Files,
}

impl Instance {
    /// Makes the directories and marks them as this process's.
    pub(super) fn create(place: &Location, user: &ServerUser) -> Result<Instance, TargetError> {
        Ok(Instance { child: None, files: Files::create(&LAYOUT, place, user)? })
    }

    fn data(&self) -> PathBuf {
        self.files.data()
    }

    fn sockets(&self) -> PathBuf {
        self.files.sockets()
    }

    /// Path of the socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.files.socket()
    }

    /// Makes the database, starts the server and waits until it takes sessions.
    pub(super) fn start(
        &mut self,
        binaries: &Binaries,
        user: &ServerUser,
        settings: &Settings,
    ) -> Result<(), TargetError> {
        let mut install = install::command(binaries, user, &self.data(), &self.sockets());
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
            return Err(self.files.failure("mariadb-install-db failed", &says(&String::from_utf8_lossy(&text))));
        }
        self.files.bring_to_disk()?;
        let (stdout, stderr) = self.files.make_log()?;
        // Nothing of it is worth an orderly end, and one asked of it while it starts may be overheard.
        let mut command = user.command(&binaries.server, Signal::SIGKILL);
        command.arg("--no-defaults").arg(of_path("datadir", &self.data())).arg(of_path("socket", &self.socket()));
        command.arg(of_path("pid-file", &self.sockets().join("pid")));
        // Not in a folder of others: a server that starts removes all temporary tables that lie there, and
        // one that loses them so crashes (10.11.19, in ha_maria::drop_table).
        command.arg(of_path("tmpdir", &self.sockets()));
        command.args(["--skip-networking", "--skip-name-resolve"]).args(settings.arguments());
        command.args(install::base(binaries));
        command.stdout(stdout).stderr(stderr).stdin(Stdio::null());
        let child = Child::spawn(command)
            .map_err(|e| TargetError::Local(format!("«{}» cannot be run: {e}", binaries.server.display())))?;
        self.files.owner.postmaster = Some(child.pid.as_raw());
        let child = self.child.insert(child);
        let socket = self.files.socket();
        if let Err(why) = wait_ready(child, || progress(&socket)) {
            let says = says(&self.files.log());
            return Err(self.files.failure(&format!("the private MariaDB did not start ({why})"), &says));
        }
        self.files.mark()
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
    }
}

/// Ends what runs of the server in `dir` and removes it; returns whether anything still ran.
fn remove(dir: &Path, owner: &Owner) -> io::Result<bool> {
    LAYOUT.remove(dir, owner, |name| end_all(name, owner.uid))
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

/// It makes the socket when it is ready, and greets whoever comes.
fn progress(socket: &Path) -> Progress {
    match UnixStream::connect(socket).and_then(|s| greeted(&s)) {
        Ok(()) => Progress::Ready,
        Err(e) => Progress::Waiting(format!("{SUPERUSER}: {e}")),
    }
}

fn greeted(mut socket: &UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    io::Read::read_exact(&mut socket, &mut [0; 5])
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
