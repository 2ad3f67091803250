//! Recognises and ends the processes of a private PostgreSQL server.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::temp::processes::{self, Process, wait_gone};

/// Signals that end a server, each with the time to wait: fast shutdown, immediate shutdown, kill.
pub(super) const STAGES: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(10)),
    (Signal::SIGQUIT, Duration::from_secs(5)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// Time for the helpers of a killed initdb to end: they do so after their last input. If they were killed, they would
/// leave shared memory that cannot be identified as theirs.
const HELPERS_PATIENCE: Duration = Duration::from_secs(10);

/// Identifies the processes of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks<'a> {
    /// Unique name of the server's directory.
    pub(super) name: &'a str,
    /// User id of its processes.
    pub(super) uid: u32,
    /// Process group of its initdb, if that may still run.
    pub(super) initdb: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessRole {
    Postmaster,
    Backend,
    /// initdb or one of its helpers.
    Initdb,
}

/// Ends all processes of a server. Returns whether there were any.
pub(super) fn end_all(marks: Marks<'_>) -> io::Result<bool> {
    let found = running(marks);
    if found.iter().any(|p| p.role == ProcessRole::Initdb) {
        wait_gone(|| running(marks), HELPERS_PATIENCE);
    }
    // A backend that gets SIGINT only cancels its query.
    let gets = |signal, role: &ProcessRole| signal != Signal::SIGINT || *role == ProcessRole::Postmaster;
    let ran = processes::end_all(&STAGES, || running(marks), gets)?;
    Ok(ran || !found.is_empty())
}

/// The processes of a server.
pub(super) fn running(marks: Marks<'_>) -> Vec<Process<ProcessRole>> {
    processes::running(marks.uid, |process, cmdline| {
        let of_initdb = || marks.initdb.is_some() && group_of(&process.join("stat")) == marks.initdb;
        role_in(cmdline, marks.name).or_else(|| (is_of_initdb(cmdline) && of_initdb()).then_some(ProcessRole::Initdb))
    })
}

/// The role of a process in the server `name`: the postmaster (`…/postgres -D …/NAME/data …`), or a backend (its title
/// is `postgres: NAME: …` because of the setting cluster_name).
fn role_in(cmdline: &[u8], name: &str) -> Option<ProcessRole> {
    let text = String::from_utf8_lossy(cmdline);
    if text.starts_with(&format!("postgres: {name}: ")) {
        return Some(ProcessRole::Backend);
    }
    let mut args = text.split('\0');
    let is_server = args.next()?.ends_with("/postgres");
    let data = format!("/{name}/data");
    (is_server && args.next() == Some("-D") && args.next()?.ends_with(&data)).then_some(ProcessRole::Postmaster)
}

/// Whether the process may be an initdb or one of its helper servers, directly or through a shell. Its process group says
/// to which initdb it belongs.
fn is_of_initdb(cmdline: &[u8]) -> bool {
    let text = String::from_utf8_lossy(cmdline);
    let program = text.split('\0').next().unwrap_or_default();
    let is_helper =
        ["--boot", "--single", "--check"].iter().any(|mode| text.contains(mode)) && text.contains("postgres");
    is_helper || program.ends_with("/initdb")
}

/// The process group: field 5 of `/proc/PID/stat`.
fn group_of(stat: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(stat).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_processes_are_recognised() {
        let name = "loadline-pg-abc";
        for (cmdline, expected) in [
            (
                "/usr/lib/postgresql/16/bin/postgres\0-D\0/x/loadline-pg-abc/data\0-c\0a=b\0",
                Some(ProcessRole::Postmaster),
            ),
            ("postgres: loadline-pg-abc: checkpointer \0\0", Some(ProcessRole::Backend)),
            ("postgres: loadline-pg-abcd: checkpointer \0", None),
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/x/loadline-pg-abcd/data\0", None),
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/var/lib/postgresql\0", None),
            ("tail\0-f\0/x/loadline-pg-abc/data\0", None),
            ("", None),
        ] {
            assert_eq!(role_in(cmdline.as_bytes(), name), expected, "{cmdline}");
        }
    }

    #[test]
    fn initdb_and_its_helpers() {
        for (cmdline, expected) in [
            ("/usr/lib/postgresql/16/bin/initdb\0-D\0/x\0", true),
            ("/usr/lib/postgresql/16/bin/postgres\0--boot\0-F\0", true),
            ("sh\0-c\0\"/usr/bin/postgres\" --single -F template1\0", true),
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/var/lib/postgresql\0", false),
            ("vi\0initdb\0", false),
        ] {
            assert_eq!(is_of_initdb(cmdline.as_bytes()), expected, "{cmdline}");
        }
        assert_eq!(group_of(Path::new("/proc/self/stat")), Some(nix::unistd::getpgrp().as_raw()));
    }
}
