//! The data directory and the process of a private MariaDB or MySQL.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::binaries::Binaries;
use super::binaries::of_path;
use super::install;
use super::settings::{arguments, message};
use super::{SUPERUSER, TempServer, cluster};
use crate::error::TargetError;
use crate::temp::instance::{Instance, Progress};
use crate::temp::owner::Owner;
use crate::temp::processes;
use crate::temp::product::cannot_run;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;

/// SIGTERM is an orderly shutdown.
pub(super) const STAGES: [(Signal, Duration); 2] =
    [(Signal::SIGTERM, Duration::from_secs(15)), (Signal::SIGKILL, Duration::from_secs(5))];

/// Nothing in it is worth an orderly shutdown.
pub(super) const AT_ONCE: [(Signal, Duration); 1] = [(Signal::SIGKILL, Duration::from_secs(5))];

/// For a restart: it writes all changed pages first.
pub(super) const RESTART: [(Signal, Duration); 2] =
    [(Signal::SIGTERM, Duration::from_secs(120)), (Signal::SIGKILL, Duration::from_secs(5))];

/// A node is started this often if a port that was free is taken meanwhile.
const PORT_TRIES: u32 = 3;

/// Creates the data directory.
pub(super) fn install(server: &TempServer) -> Result<(), TargetError> {
    let TempServer { binaries, user, settings, instance, .. } = server;
    let files = &instance.files;
    let arguments = arguments(settings);
    let mut install = install::command(binaries, user, (&files.data(), &files.sockets()), &arguments);
    install.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Its standard input stays open until it ends: closing it kills the script.
    let output = install
        .spawn()
        .and_then(|mut child| {
            let _open = child.stdin.take();
            child.wait_with_output()
        })
        .map_err(|e| cannot_run(binaries.installer(), &e))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        let what = binaries.installer().file_name().unwrap_or_default().to_string_lossy();
        let (what, text) = (format!("{what} failed"), String::from_utf8_lossy(&text));
        return Err(match binaries.install {
            Some(_) => files.failure(&what, &cause(&text)),
            // MySQL makes it with the user's settings.
            None => instance.start_failure(&what, settings, &text, cause),
        });
    }
    files.bring_to_disk()
}

/// Starts the server, or the nodes of a cluster one after the other, and waits until it accepts sessions.
pub(super) fn start(server: &mut TempServer) -> Result<(), TargetError> {
    let TempServer { binaries, user, settings, joined, instance, cluster, .. } = server;
    let Some(cluster) = cluster else { return start_one(binaries, settings, user, instance, None) };
    for (number, node) in std::iter::once(instance).chain(joined).enumerate() {
        let mut tries = 0;
        loop {
            tries += 1;
            let options = cluster.prepare(number, &node.files, user)?;
            match start_one(binaries, settings, user, node, Some(&options)) {
                Err(_) if tries < PORT_TRIES && cluster::says_port_taken(&node.files.log()) => node.stop(&AT_ONCE),
                done => break done?,
            }
        }
    }
    Ok(())
}

/// Starts one server with `options`, its option file, and waits until it accepts sessions.
pub(super) fn start_one(
    binaries: &Binaries,
    settings: &Settings,
    user: &ServerUser,
    instance: &mut Instance,
    options: Option<&Path>,
) -> Result<(), TargetError> {
    let (files, sockets) = (&instance.files, instance.files.sockets());
    // Nothing in it is worth an orderly shutdown, and a starting server may ignore a request for one.
    let mut command = user.command(&binaries.server, Signal::SIGKILL);
    command.arg(options.map_or_else(|| "--no-defaults".into(), |path| of_path("defaults-file", path)));
    command.arg(of_path("datadir", &files.data())).arg(of_path("socket", &files.socket()));
    command.arg(of_path("pid-file", &sockets.join("pid")));
    // Not shared with other servers: a starting server deletes all temporary tables in the directory, and a
    // server that loses its tables crashes (10.11.19, in ha_maria::drop_table).
    command.arg(of_path("tmpdir", &sockets));
    // The option file says how a member of a cluster is reached by the others.
    if options.is_none() {
        command.arg("--skip-networking");
    }
    command.arg("--skip-name-resolve").args(arguments(settings));
    if !binaries.version.mariadb {
        // A plugin that opens a socket in /tmp.
        command.arg("--loose-mysqlx=OFF");
    }
    command.args(binaries.paths()).stdin(Stdio::null());
    instance.spawn(command)?;
    if let Err(why) = instance.wait_ready(progress) {
        return Err(instance.start_failure(&why, settings, &instance.files.log(), cause));
    }
    instance.files.mark()
}

/// The first errors in the server's log, which others follow from; else its last lines.
fn cause(log: &str) -> String {
    // MySQL misses a dump of the buffer pool in every new database.
    let is_cause = |text: &&str| *text != "Aborting" && !text.contains("/ib_buffer_pool' for reading");
    let errors: Vec<&str> = log.lines().filter(|l| l.contains("[ERROR] ")).map(message).filter(is_cause).collect();
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let parts =
        if errors.is_empty() { &lines[lines.len().saturating_sub(4)..] } else { &errors[..errors.len().min(4)] };
    parts.join(" – ")
}

/// Ends the server's processes; returns whether there were any. They are found by their command line, which
/// everybody may read and which names the directory.
pub(super) fn end(_dir: &Path, name: &str, owner: &Owner) -> io::Result<bool> {
    let running = || processes::running(owner.uid, |_, cmdline| is_of(cmdline, name).then_some(()));
    processes::end_all(&STAGES, running, |_, ()| true)
}

/// Whether the process is the server in the directory called `name`, creates its data directory (`mariadb-install-db` feeds a
/// `mariadbd --bootstrap`), or brings the data of another node there (`wsrep_sst_rsync` runs rsync).
fn is_of(cmdline: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(cmdline);
    let data = format!("/{name}/data");
    let of_server = ["mariadbd", "mysqld", "install-db", "install_db"].iter().any(|part| text.contains(part));
    let of_snapshot =
        ["wsrep_sst_", "rsync"].iter().any(|part| text.contains(part)) && text.contains(&format!("{data}/"));
    of_snapshot || of_server && text.split('\0').any(|arg| arg.starts_with("--datadir=") && arg.ends_with(&data))
}

/// A server that is ready creates the socket and sends a greeting to each connection.
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
    fn the_first_errors_are_the_cause() {
        let log = "2026-01-01T00:00:00.1Z 1 [ERROR] [MY-012183] [InnoDB] Cannot open '/x/data/ib_buffer_pool' for reading: No \
                   such file or directory\n\
                   2026-01-01T00:00:00.2Z 0 [ERROR] [MY-000067] [Server] unknown variable 'nonsense-xyz=1'.\n\
                   2026-01-01T00:00:00.3Z 0 [ERROR] [MY-010119] [Server] Aborting\n";
        assert_eq!(cause(log), "unknown variable 'nonsense-xyz=1'.");
        assert_eq!(cause("no such library\n"), "no such library");
    }

    #[test]
    fn only_its_own_processes_are_found() {
        let line = |text: &str| text.replace(' ', "\0").into_bytes();
        let name = "loadline-mariadb-abc";
        for server in ["/usr/sbin/mariadbd --no-defaults", "/lib/ld.so /opt/mysqld --initialize-insecure"] {
            assert!(is_of(&line(&format!("{server} --datadir=/var/tmp/loadline-mariadb-abc/data")), name));
        }
        for script in ["/bin/bash /usr/bin/wsrep_sst_rsync --role joiner --datadir", "rsync --daemon --config"] {
            assert!(is_of(&line(&format!("{script} /var/tmp/loadline-mariadb-abc/data/x")), name));
        }
        for other in [
            "/usr/sbin/mariadbd --datadir=/var/lib/mysql",
            "/usr/sbin/mariadbd --datadir=/var/tmp/loadline-mariadb-abcd/data",
            "less --datadir=/var/tmp/loadline-mariadb-abc/data",
            "mariadbd /var/tmp/loadline-mariadb-abc/data",
            "rsync --daemon --config /var/tmp/loadline-mariadb-abcd/data/x",
        ] {
            assert!(!is_of(&line(other), name), "{other}");
        }
    }
}
