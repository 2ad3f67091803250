//! What the processes of a private PostgreSQL look like, and how they are ended.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::temp::processes::{self, Process, wait_gone};

/// What is sent to a server to end it, and how long it has to follow: fast shutdown, immediate
/// shutdown, and the end.
pub(super) const STAGES: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(10)),
    (Signal::SIGQUIT, Duration::from_secs(5)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

/// How long the helpers of a killed initdb have to end by themselves: they do when what it sent them
/// is done. Ended by force, they would leave shared memory that nobody can tell to be theirs.
const HELPERS_PATIENCE: Duration = Duration::from_secs(10);

/// By what the processes of one server are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks<'a> {
    /// Name of the server's directory, which no other has.
    pub(super) name: &'a str,
    /// The user that it runs as.
    pub(super) uid: u32,
    /// Process group of the initdb that was last seen to run.
    pub(super) initdb: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Postmaster,
    Backend,
    /// initdb or one of its helpers.
    Initdb,
}

/// Ends all processes of a server. Returns whether there were any.
pub(super) fn end_all(marks: Marks<'_>) -> io::Result<bool> {
    let found = running(marks);
    if found.iter().any(|p| p.role == Role::Initdb) {
        wait_gone(|| running(marks), HELPERS_PATIENCE);
    }
    // To a backend SIGINT means no more than "cancel the query".
    let gets = |signal, role: &Role| signal != Signal::SIGINT || *role == Role::Postmaster;
    let ran = processes::end_all(&STAGES, || running(marks), gets)?;
    Ok(ran || !found.is_empty())
}

/// The processes of a server.
pub(super) fn running(marks: Marks<'_>) -> Vec<Process<Role>> {
    processes::running(marks.uid, |process, cmdline| {
        let of_initdb = || marks.initdb.is_some() && group_of(&process.join("stat")) == marks.initdb;
        role_in(cmdline, marks.name).or_else(|| (is_of_initdb(cmdline) && of_initdb()).then_some(Role::Initdb))
    })
}

/// The role in the server called `name`: its postmaster (`…/postgres -D …/NAME/data …`), or one of
/// the children (titled `postgres: NAME: …` by the setting cluster_name).
fn role_in(cmdline: &[u8], name: &str) -> Option<Role> {
    let text = String::from_utf8_lossy(cmdline);
    if text.starts_with(&format!("postgres: {name}: ")) {
        return Some(Role::Backend);
    }
    let mut args = text.split('\0');
    let is_server = args.next()?.ends_with("/postgres");
    let data = format!("/{name}/data");
    (is_server && args.next() == Some("-D") && args.next()?.ends_with(&data)).then_some(Role::Postmaster)
}

/// Whether it can be initdb or a server that initdb feeds, through a shell or not. That does not say
/// which initdb: the process group does.
fn is_of_initdb(cmdline: &[u8]) -> bool {
    let text = String::from_utf8_lossy(cmdline);
    let program = text.split('\0').next().unwrap_or_default();
    let fed = ["--boot", "--single", "--check"].iter().any(|mode| text.contains(mode)) && text.contains("postgres");
    fed || program.ends_with("/initdb")
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
            ("/usr/lib/postgresql/16/bin/postgres\0-D\0/x/loadline-pg-abc/data\0-c\0a=b\0", Some(Role::Postmaster)),
            ("postgres: loadline-pg-abc: checkpointer \0\0", Some(Role::Backend)),
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
