//! One private server: its folder and, after its start, its process.
//!
//! `PARENT/PREFIX-RANDOM/` has the owner file ([`super::owner`]), the server's log, `data/` and `socket/`. If loadline runs as root,
//! only `data/` and `socket/` belong to the server's user.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::Setup;
use super::owner::{LOG, Owner, end_all, lives, name, outside};
use super::place::free_bytes;
use super::programs::{User, cannot_run};
use super::settings::{Product, Settings, Stage};
use crate::descriptor::fill;
use crate::error::TargetError;
use crate::relay::Relay;

/// Characters that need no encoding in a URL's query (RFC 3986, unreserved).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Time for a server to start and accept sessions.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a socket's path on all systems, bytes.
const MAX_SOCKET_PATH: usize = 103;
/// Texts that the system, `initdb` and InnoDB write into a server's log when the disk is full; a log has no codes.
const FULL: [&str; 5] =
    ["No space left on device", "Disk quota exceeded", "Check free disk space", "rror 28", "disk is full"];
/// With less free space, a server may not be able to log that the disk is full; bytes.
const DISK_FULL_BYTES: u64 = 16 << 20;

/// A server. Dropping it stops it, ends what its processes started, and removes its folder.
pub(crate) struct Server {
    /// Name among several: `standby1`, `node2`.
    pub(crate) name: String,
    /// 0 is the first.
    pub(crate) number: u32,
    /// The link to the first server, if loadline may change it.
    pub(crate) relay: Option<Arc<Relay>>,
    /// Folder of the socket and port by which it reaches the first server or the relay to it.
    pub(crate) way: (PathBuf, u16),
    product: &'static Product,
    user: User,
    pub(crate) dir: PathBuf,
    owner: Owner,
    child: Option<Child>,
    /// Shows that the owner lives; released last.
    _lock: File,
}

impl Server {
    /// Creates its folder, with the owner file first.
    pub(super) fn create(setup: &Setup, parent: &Path, number: u32) -> Result<Server, TargetError> {
        let Setup { product, user, .. } = setup;
        let failed = |e: io::Error| product.cannot_use(parent, &e);
        // The server's user must pass through, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(&product.prefix)
            .rand_bytes(10)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(parent)
            .map_err(failed)?;
        // If this fails, `TempDir` removes the folder; later `Server` does.
        let (owner, lock) = Owner::take(dir.path(), user, &setup.program.path).map_err(failed)?;
        let server = Server {
            name: format!("{}{}", product.server, number + u32::from(product.counts_all)),
            number,
            relay: None,
            way: (PathBuf::new(), 0),
            product,
            user: user.clone(),
            dir: dir.keep(),
            owner,
            child: None,
            _lock: lock,
        };
        // Sets the mode again, because creation applied the umask.
        std::fs::set_permissions(&server.dir, Permissions::from_mode(mode)).map_err(failed)?;
        for part in [server.data(), server.sockets()] {
            let made = DirBuilder::new().mode(0o700).create(&part);
            let owned = |()| if user.switch { chown(&part, Some(user.uid), Some(user.gid)) } else { Ok(()) };
            made.and_then(owned).map_err(|e| product.cannot_use(&part, &e))?;
        }
        Ok(server)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The socket's folder: that in `/tmp`, if the path of the one inside is too long or has characters that the server's setting
    /// cannot contain.
    pub(crate) fn sockets(&self) -> PathBuf {
        let Product { unfit, socket, .. } = self.product;
        let inside = self.dir.join("socket");
        let is_unfit = |c: char| unfit.contains(c) || c.is_control() || c.is_whitespace();
        let fits =
            |path: &str| path.len() < MAX_SOCKET_PATH - socket.len() && (unfit.is_empty() || !path.contains(is_unfit));
        if inside.to_str().is_some_and(fits) { inside } else { outside(&self.dir) }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.sockets().join(&self.product.socket)
    }

    pub(crate) fn url(&self) -> String {
        let encoded = |path: PathBuf| percent_encode(path.as_os_str().as_bytes(), QUERY).to_string();
        fill(&self.product.url, &[("sockets", &encoded(self.sockets())), ("socket", &encoded(self.socket()))])
    }

    /// `text` of `servers.toml` with what its words in braces stand for, whatever bytes the paths have.
    pub(crate) fn filled(&self, text: &str) -> OsString {
        let mut filled = OsString::new();
        for (n, part) in text.split(['{', '}']).enumerate() {
            match part {
                _ if n % 2 == 0 => filled.push(part),
                "dir" => filled.push(&self.dir),
                "data" => filled.push(self.data()),
                "sockets" => filled.push(self.sockets()),
                "socket" => filled.push(self.socket()),
                "folder" => filled.push(name(&self.dir)),
                "server" => filled.push(&self.name),
                "id" => filled.push((self.number + 1).to_string()),
                "way" => filled.push(&self.way.0),
                "port" => filled.push(self.way.1.to_string()),
                // Those of one product.
                other => filled.push(format!("{{{other}}}")),
            }
        }
        filled
    }

    /// Name and value of all its settings: its own are last.
    pub(crate) fn settings(&self, settings: &Settings) -> Vec<(String, String)> {
        let own = self.product.own_settings(self.number);
        let own = own.map(|(name, value)| (name.to_owned(), self.filled(value).to_string_lossy().into_owned()));
        settings.all().chain(own).collect()
    }

    /// `arguments` of `servers.toml`.
    pub(crate) fn arguments(&self, arguments: &[String]) -> impl Iterator<Item = OsString> {
        arguments.iter().map(|argument| self.filled(argument))
    }

    /// Runs `command` of `program`, a step of making the data folder, to its end, and syncs. `given`: it gets the user's settings.
    pub(crate) fn run(
        &self,
        program: &Path,
        mut command: Command,
        given: Option<&Settings>,
    ) -> Result<(), TargetError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = command.spawn().and_then(|mut child| {
            // Stays open until it ends: it is killed when this is closed.
            let _open = child.stdin.take();
            child.wait_with_output()
        });
        let output = ended.map_err(|e| cannot_run(program, &e))?;
        if output.status.success() {
            // Otherwise its dirty pages would be written during the first tests.
            return File::open(self.data())
                .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
                .map_err(|e| self.failure("the new database could not be synced to disk", &e.to_string()));
        }
        let what = format!("{} failed", program.file_name().unwrap_or_default().to_string_lossy());
        let said = [output.stdout, output.stderr].concat();
        Err(self.refused(&what, given, &String::from_utf8_lossy(&said)))
    }

    /// Copies the data folder of `first`, which has not been started yet, with an additional empty file of the name `mark`.
    pub(crate) fn copy(&self, first: &Server, mark: Option<&str>) -> Result<(), TargetError> {
        let mut copy = self.user.command("cp", Signal::SIGKILL);
        copy.arg("-a").arg(first.data().join(".")).arg(self.data());
        self.run(Path::new("cp"), copy, None)?;
        let Some(mark) = mark else { return Ok(()) };
        // It is its user's: the server opens it for writing.
        let mut touch = self.user.command("touch", Signal::SIGKILL);
        touch.arg(self.data().join(mark));
        self.run(Path::new("touch"), touch, None)
    }

    /// Takes over the relay by which it reaches the first server.
    pub(crate) fn link(&mut self, started: io::Result<Relay>) -> Result<(), TargetError> {
        let failed = |e| TargetError::Local(format!("no relay to {} can be started: {e}", self.name));
        self.relay = Some(Arc::new(started.map_err(failed)?));
        Ok(())
    }

    pub(super) fn spawn(&mut self, mut command: Command) -> Result<(), TargetError> {
        let program = PathBuf::from(command.get_program());
        let path = self.dir.join(LOG);
        let opened = OpenOptions::new().append(true).create(true).mode(0o640).open(&path);
        let logs = opened.and_then(|log| Ok((log.try_clone()?, log)));
        let (stdout, stderr) = logs.map_err(|e| self.product.cannot_use(&path, &e))?;
        command.stdout(stdout).stderr(stderr);
        self.child = Some(Child::spawn(command).map_err(|e| cannot_run(&program, &e))?);
        Ok(())
    }

    pub(super) fn wait_ready(&mut self, ask: fn(&Server, Pid) -> Result<(), String>) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let Some(child) = &mut self.child else { return Ok(()) };
            // First this check: after the exit, the log is complete.
            if let Some(exit) = child.exit() {
                return Err(exit);
            }
            let pid = child.pid();
            let Err(state) = ask(self, pid) else { return Ok(()) };
            if Instant::now() >= deadline {
                return Err(format!("no session within {} s: {state}", START_TIMEOUT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The error for a failed step, `what`, that wrote `log`: of usage if it had settings of the user.
    pub(super) fn refused(&self, what: &str, given: Option<&Settings>, log: &str) -> TargetError {
        let (message, program) = (self.product.cause(log), &self.product.program);
        let Some(given) = given.filter(|given| !given.given.is_empty() && !self.disk_is_full(log)) else {
            return self.failure(what, &message);
        };
        let message = given.without_secrets(message);
        TargetError::Usage(format!("{what} with --setting {}; {program} says: '{message}'", given.shown()))
    }

    /// Stops it with the signals of `stages`, one after the other; it can be started again. One that survives all of them hangs in
    /// the kernel.
    pub(crate) fn stop(&mut self, stages: &[Stage]) {
        let Some(mut child) = self.child.take() else { return };
        let running = || if child.exit().is_none() { vec![child.pid()] } else { Vec::new() };
        end_all(stages, Duration::from_millis(5), running);
    }

    /// Whether it runs. It is not reaped, so that its process id stays valid.
    pub(crate) fn runs(&self) -> bool {
        self.child.as_ref().is_some_and(|child| lives(child.pid().as_raw()))
    }

    /// Writes a file that the server's user can read, and no other but root.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), TargetError> {
        // One of that name is what a full disk left of the last attempt.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(path);
        let owned = if self.user.switch { Some(self.user.gid) } else { None };
        file.and_then(|file| chown(path, None, owned).map(|()| file))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| self.failure("its configuration cannot be written", &e.to_string()))
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join(LOG)).unwrap_or_default()).into_owned()
    }

    /// Ends what still runs of the server, so that it can be started again.
    pub(super) fn end(&self) -> Result<(), TargetError> {
        let ended = self.owner.end(self.product, &self.dir);
        ended.map(drop).map_err(|e| self.failure("its processes cannot be ended", &e.to_string()))
    }

    /// The error for a failed step (`what`), with the server's message and advice.
    pub(crate) fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        let scheme = &self.product.scheme;
        let next = if self.disk_is_full(says) {
            format!("The filesystem under '{parent}' is full: free some GiB there, or name another directory with")
        } else {
            "Correct that, or name another directory with".to_owned()
        };
        TargetError::Local(format!("{what} in '{parent}': '{says}'. {next} {scheme}:/dir"))
    }

    /// Whether the disk is full: by the system's message, by the server's own (`wrote only 4096 of 8192 bytes`, with a hint), or by the
    /// free space, as the server may not be able to log it.
    pub(super) fn disk_is_full(&self, text: &str) -> bool {
        FULL.iter().any(|word| text.contains(word)) || free_bytes(&self.dir).is_some_and(|free| free < DISK_FULL_BYTES)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(&self.product.end);
        if let Err(e) = self.owner.remove(self.product, &self.dir) {
            log::warn!("the private server in {} could not be removed: {e}; try `loadline clean`", self.dir.display());
        }
    }
}

/// The server's process, which may outlive the thread that wanted it, but not loadline.
struct Child {
    process: std::process::Child,
    /// The other end of the thread that spawned it.
    _parent: Sender<()>,
}

impl Child {
    /// Spawns the server in a thread of its own: the parent-death signal is sent when the *thread* that spawned the child ends.
    fn spawn(mut command: Command) -> io::Result<Child> {
        let (answer, spawned) = channel();
        let (_parent, ended) = channel::<()>();
        std::thread::Builder::new().name("private server".into()).spawn(move || {
            let _ = answer.send(command.spawn());
            let _ = ended.recv();
        })?;
        let process = spawned.recv().map_err(io::Error::other)??;
        Ok(Child { process, _parent })
    }

    /// How it ended, if it has.
    fn exit(&mut self) -> Option<String> {
        self.process.try_wait().map_or_else(|e| Some(e.to_string()), |status| Some(status?.to_string()))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }
}
