//! A server's processes: the child that loadline starts, and whatever still runs of a server after either was killed.
//!
//! Those are recognised by `/proc/PID/cmdline` and its owner, which everybody may read: root in a container may have no access to
//! the other files of another user's processes. Helpers of initdb have no mark, but die with loadline (`GUARD` of [`super`]).

use std::io;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::settings::Stage;

/// A child process, which may outlive the thread that wanted it, but not loadline.
pub(crate) struct Child {
    process: std::process::Child,
    /// The other end of the thread that spawned it.
    _parent: Sender<()>,
}

impl Child {
    /// Spawns the server in a thread of its own: the parent-death signal is sent when the *thread* that spawned the child ends.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
        let (answer, spawned) = channel();
        let (_parent, ended) = channel::<()>();
        std::thread::Builder::new().name("private server".into()).spawn(move || {
            let _ = answer.send(command.spawn());
            let _ = ended.recv();
        })?;
        let process = spawned.recv().map_err(io::Error::other)??;
        Ok(Child { process, _parent })
    }

    /// Whether it runs. It is not reaped, so that its process id stays valid.
    pub(crate) fn runs(&self) -> bool {
        lives(self.pid().as_raw())
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&mut self) -> Option<String> {
        match self.process.try_wait() {
            Ok(status) => status.map(|status| status.to_string()),
            Err(e) => Some(e.to_string()),
        }
    }

    /// Stops it with the signals of `stages`, one after the other. One that survives all of them hangs in the kernel.
    pub(crate) fn stop(mut self, stages: &[Stage]) {
        for stage in stages {
            let deadline = Instant::now() + stage.patience;
            if self.exit().is_none() {
                let _ = kill(self.pid(), stage.signal);
            }
            while self.exit().is_none() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }
}

/// The server in a folder.
#[derive(Clone, Copy)]
pub(crate) struct Marks<'a> {
    /// Unique name of the folder.
    pub(crate) name: &'a str,
    pub(crate) uid: u32,
}

impl Marks<'_> {
    pub(crate) fn running(self) -> Vec<Pid> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
                let is_its =
                    belongs(&String::from_utf8_lossy(&cmdline), self.name) && entry.metadata().ok()?.uid() == self.uid;
                is_its.then_some(Pid::from_raw(pid))
            })
            .collect()
    }

    /// Ends all its processes with the signals of `stages`.
    pub(crate) fn end_all(self, stages: &[Stage]) -> io::Result<()> {
        for stage in stages {
            for pid in self.running() {
                let _ = kill(pid, stage.signal);
            }
            let deadline = Instant::now() + stage.patience;
            while !self.running().is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        match self.running().len() {
            0 => Ok(()),
            left => Err(io::Error::other(format!("{left} of its processes do not end"))),
        }
    }
}

/// Programs of which one is in each command line of a server's: the servers, and what makes their data or brings data to a node.
const PROGRAMS: [&str; 8] =
    ["postgres", "initdb", "mariadbd", "mysqld", "mariadb-install-db", "mysql_install_db", "wsrep_sst_", "rsync"];

/// Whether a process with this command line is of the server whose folder has this name: it has the title of PostgreSQL's processes,
/// because of the setting cluster_name, or one of [`PROGRAMS`] got the data folder.
fn belongs(cmdline: &str, name: &str) -> bool {
    let data = format!("/{name}/data");
    let is_data = |arg: &str| arg.ends_with(&data) || arg.contains(&format!("{data}/"));
    let is_program =
        |arg: &str| PROGRAMS.iter().any(|p| arg.rsplit('/').next().is_some_and(|file| file.starts_with(p)));
    let args = || cmdline.split('\0');
    cmdline.starts_with(&format!("postgres: {name}: "))
        || args().any(is_data) && args().any(|arg| is_program(arg) && !is_data(arg))
}

/// Whether a process runs: it is neither gone nor a zombie.
pub(crate) fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| lives_in(&stat))
}

fn lives_in(stat: &str) -> bool {
    // The name (field 2) may contain spaces and parentheses: it ends at the last one.
    let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X" | "x"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn only_its_own_processes_are_found() {
        for (cmdline, expected) in cases::<(String, bool)>("own-processes") {
            assert_eq!(belongs(&cmdline.replace(' ', "\0"), "loadline-abc"), expected, "{cmdline}");
        }
        assert!(belongs("postgres: loadline-abc: checkpointer \0", "loadline-abc"));
        assert!(!belongs("postgres: loadline-abcd: checkpointer \0", "loadline-abc"));
    }

    #[test]
    fn stat_of_a_process_with_spaces_in_its_name() {
        assert!(lives_in("7 (a b) c) S 4 5 6") && !lives_in("7 (a b) c) Z 4 5 6") && !lives_in(""));
    }
}
