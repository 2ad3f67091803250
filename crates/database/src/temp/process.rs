//! A server's processes: the child that loadline starts, and whatever still runs of a server after either was killed.
//!
//! Those are recognised by `/proc/PID/cmdline` and its owner, which everybody may read: root in a container may have no access to
//! the other files of another user's processes.

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
        group(self.pid().as_raw()).is_some()
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
    /// Processes that loadline started for it in this boot: their process groups have the same ids.
    pub(crate) started: &'a [i32],
}

impl Marks<'_> {
    pub(crate) fn running(self) -> Vec<Pid> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
                let of_ours = || group(pid).is_some_and(|group| self.started.contains(&group));
                let is_its = belongs(&String::from_utf8_lossy(&cmdline), self.name, of_ours)
                    && entry.metadata().ok()?.uid() == self.uid;
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

/// Whether a process with this command line is of the server whose folder has this name. `of_ours`: whether it is in the process group
/// of one that loadline started, which is all that tells whose an initdb's helper is.
fn belongs(cmdline: &str, name: &str, of_ours: impl Fn() -> bool) -> bool {
    // The title of PostgreSQL's processes, because of the setting cluster_name.
    if cmdline.starts_with(&format!("postgres: {name}: ")) {
        return true;
    }
    let data = format!("/{name}/data");
    let has = |words: &[&str]| words.iter().any(|word| cmdline.contains(word));
    let args: Vec<&str> = cmdline.split('\0').collect();
    let program = args[0];
    let postmaster = program.ends_with("/postgres")
        && args.get(1) == Some(&"-D")
        && args.get(2).is_some_and(|folder| folder.ends_with(&data));
    let is_data = |arg: &&str| arg.starts_with("--datadir=") && arg.ends_with(&data);
    // Also `mariadb-install-db`, which feeds a `mariadbd --bootstrap`.
    let mysqld = has(&["mariadbd", "mysqld", "install-db", "install_db"]) && args.iter().any(is_data);
    // Brings the data of another node of a cluster there.
    let snapshot = has(&["wsrep_sst_", "rsync"]) && cmdline.contains(&format!("{data}/"));
    // Directly or through a shell.
    let helper = program.ends_with("/initdb") || has(&["--boot", "--single", "--check"]) && has(&["postgres"]);
    postmaster || mysqld || snapshot || helper && of_ours()
}

/// Group of a process; `None` if there is none or it is a zombie.
pub(crate) fn group(pid: i32) -> Option<i32> {
    group_in(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn group_in(stat: &str) -> Option<i32> {
    // The name (field 2) may contain spaces and parentheses: it ends at the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    fields.next().filter(|state| !matches!(*state, "Z" | "X" | "x"))?;
    fields.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn only_its_own_processes_are_found() {
        for (cmdline, of_ours, expected) in cases::<(String, bool, bool)>("own-processes") {
            assert_eq!(belongs(&cmdline.replace(' ', "\0"), "loadline-abc", || of_ours), expected, "{cmdline}");
        }
        assert!(belongs("postgres: loadline-abc: checkpointer \0", "loadline-abc", || false));
        assert!(!belongs("postgres: loadline-abcd: checkpointer \0", "loadline-abc", || true));
    }

    #[test]
    fn stat_of_a_process_with_spaces_in_its_name() {
        assert_eq!(group_in("7 (a b) c) S 4 5 6"), Some(5));
        assert_eq!(group_in("7 (a b) c) Z 4 5 6"), None);
        assert_eq!(group_in(""), None);
    }
}
