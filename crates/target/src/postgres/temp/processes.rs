//! The server's processes as the system shows them: for what is left when the server was killed, or
//! belongs to a loadline that is gone.
//!
//! Processes are known by what everybody may read (`/proc/PID/cmdline` and its owner), as root in a
//! container may not look into the processes of another user.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What is sent to a server to end it, and how long it has to follow: fast shutdown, immediate
/// shutdown, and the end.
pub(super) const STAGES: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(10)),
    (Signal::SIGQUIT, Duration::from_secs(5)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// A process of the server.
pub(super) struct Process {
    pub(super) pid: Pid,
    is_postmaster: bool,
}

/// Ends all processes of the server whose directory is called `name`. Returns whether there were
/// any, or the number of those that would not go.
pub(super) fn end_all(name: &str, uid: u32) -> Result<bool, usize> {
    let mut found_any = false;
    for (signal, patience) in STAGES {
        let found = running(name, uid);
        if found.is_empty() {
            return Ok(found_any);
        }
        found_any = true;
        // To a backend SIGINT means no more than «cancel the query».
        let targets: Vec<&Process> = found.iter().filter(|p| signal != Signal::SIGINT || p.is_postmaster).collect();
        if targets.is_empty() {
            continue;
        }
        for process in targets {
            let _ = kill(process.pid, signal);
        }
        let deadline = Instant::now() + patience;
        while !running(name, uid).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    match running(name, uid).len() {
        0 => Ok(found_any),
        left => Err(left),
    }
}

/// The processes of the server whose directory is called `name`.
pub(super) fn running(name: &str, uid: u32) -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
            let is_postmaster = recognise(&cmdline, name)?;
            (entry.metadata().ok()?.uid() == uid).then_some(Process { pid: Pid::from_raw(pid), is_postmaster })
        })
        .collect()
}

/// Whether it is the postmaster of the server (`…/postgres -D …/NAME/data …`), one of its children
/// (titled `postgres: NAME: …` by its setting cluster_name), or `None` of these.
fn recognise(cmdline: &[u8], name: &str) -> Option<bool> {
    let text = String::from_utf8_lossy(cmdline);
    if text.starts_with(&format!("postgres: {name}: ")) {
        return Some(false);
    }
    let mut args = text.split('\0');
    let is_server = args.next()?.ends_with("/postgres");
    let data = format!("/{name}/data");
    (is_server && args.next() == Some("-D") && args.next()?.ends_with(&data)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::recognise;

    #[test]
    fn only_the_servers_own_processes_are_recognised() {
        let name = "loadline-pg-abc";
        for (cmdline, expected) in [
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/x/loadline-pg-abc/data\0-c\0a=b\0", Some(true)),
            ("postgres: loadline-pg-abc: checkpointer \0\0", Some(false)),
            ("postgres: loadline-pg-abcd: checkpointer \0", None),
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/x/loadline-pg-abcd/data\0", None),
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/var/lib/postgresql\0", None),
            ("tail\0-f\0/x/loadline-pg-abc/data\0", None),
            ("", None),
        ] {
            assert_eq!(recognise(cmdline.as_bytes(), name), expected, "{cmdline}");
        }
    }
}
