//! CPU time and I/O of all processes of this machine: who used it besides loadline and the database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::tasks::Tasks;
use crate::{CollectError, read};

/// Ticks per second in `/proc` (`USER_HZ`, the same on every Linux).
pub const TICKS_PER_S: f64 = 100.0;
/// The process that waits for those whose parent has ended.
const INIT: u32 = 1;
/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    name: String,
    pub(super) parent: u32,
    /// With the id, its identity: ids are used again.
    started: u64,
    kernel: bool,
    /// CPU time of its threads in user mode and in the kernel, also of those that ended, ticks.
    pub(super) own: [u64; 2],
    /// CPU time of the children that it waited for, and of theirs.
    pub(super) children: [u64; 2],
    /// Bytes that it had read from and written to storage, bytes that its write calls passed, and their number, if this user may
    /// read them.
    pub(super) io: Option<[u64; 4]>,
}

impl Process {
    /// Reads the process or thread that has the folder `dir` in `/proc`. `None` if it has ended.
    pub(super) fn read(dir: &Path) -> Option<Process> {
        // Before `stat`: the I/O of a process that ends meanwhile is not taken for forbidden.
        let io = read(dir.join("io")).ok();
        // A name need not be UTF-8.
        let process = Process::parse(&String::from_utf8_lossy(&std::fs::read(dir.join("stat")).ok()?))?;
        let io = io.and_then(|text| values(&text, ["read_bytes:", "write_bytes:", "wchar:", "syscw:"]));
        Some(Process { io, ..process })
    }

    /// Parses `/proc/PID/stat` (proc_pid_stat(5)).
    fn parse(stat: &str) -> Option<Process> {
        // The name may hold any character, brackets too.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let at = |i: usize| fields.get(i)?.parse::<u64>().ok();
        // state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime … starttime
        Some(Process {
            name: name.chars().filter(|c| !c.is_control()).collect(),
            parent: u32::try_from(at(1)?).ok()?,
            started: at(19)?,
            kernel: at(6)? & KERNEL_THREAD != 0,
            own: [at(11)?, at(12)?],
            children: [at(13)?, at(14)?],
            io: None,
        })
    }

    fn is_named(&self, beginnings: &[&str]) -> bool {
        beginnings.iter().any(|beginning| self.name.starts_with(beginning))
    }

    fn own_ticks(&self) -> u64 {
        self.own[0].saturating_add(self.own[1])
    }

    fn child_ticks(&self) -> u64 {
        self.children[0].saturating_add(self.children[1])
    }

    fn io_bytes(&self) -> Option<u64> {
        self.io.map(|[read, written, ..]| read.saturating_add(written))
    }
}

/// The numbers after these beginnings of lines.
pub(super) fn values<const N: usize>(text: &str, keys: [&str; N]) -> Option<[u64; N]> {
    let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    let found: Option<Vec<u64>> = keys.into_iter().map(of).collect();
    found?.try_into().ok()
}

/// All processes that this user sees, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes(BTreeMap<u32, Process>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// It runs in loadline's own process, or there is none.
    Inside,
    /// These processes and their descendants.
    Roots(BTreeSet<u32>),
    /// All processes whose names begin so: the server's ids are of a container, or it runs elsewhere.
    Named(&'static [&'static str]),
}

impl Server {
    /// The server of `tasks` of this machine: their highest ancestors whose names begin with one of `names`. Without tasks,
    /// all processes of these names.
    pub fn new(tasks: Option<&Tasks>, names: &'static [&'static str]) -> Server {
        let all = Processes::read().unwrap_or_default();
        // A thread belongs to a process.
        let process = |id: u32| values(&read(format!("/proc/{id}/status")).ok()?, ["Tgid:"]).map(|[id]| id as u32);
        // Not by the command line: a script's may hold the name of the server that it starts.
        let is_server = |id: &u32| all.0.get(id).is_some_and(|process| process.is_named(names));
        let root = |id: u32| all.ancestors(id).enumerate().take_while(|(up, id)| *up == 0 || is_server(id)).last();
        let tasks = tasks.into_iter().flat_map(Tasks::ids);
        let roots: BTreeSet<u32> = tasks.filter_map(process).filter_map(root).map(|(_, id)| id).collect();
        if roots.is_empty() { Server::Named(names) } else { Server::Roots(roots) }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Used {
    /// CPU time of loadline with its children, a private server included, s.
    pub loadline_s: f64,
    /// CPU time of the database, if it is apart from loadline, s.
    pub server_s: f64,
    /// CPU time of threads of the kernel, s.
    pub kernel_s: f64,
    /// CPU time of all other processes, s.
    pub others_s: f64,
    /// The most active of them with its CPU time, s.
    pub busiest: Vec<(String, f64)>,
    /// Bytes of I/O of all processes whose I/O can be read.
    pub io_bytes: u64,
    pub others_io_bytes: u64,
    /// CPU time of the processes whose I/O cannot be read, s: those of other users, without root; in some containers that of
    /// process 1 even for root.
    pub io_unread_s: f64,
    /// The most active of them with its CPU time, s.
    pub io_unread: Option<(String, f64)>,
    /// Whether this user may read the I/O of others.
    pub as_root: bool,
    /// Whether a process of the database was seen, or none is needed.
    pub server_seen: bool,
    /// Whether the kernel's threads were seen: then no process is hidden by a container or by mount options of `/proc`.
    pub all_seen: bool,
}

impl Used {
    /// Scales what others used down to `most_s`, the time for which the CPUs were busy with neither loadline nor the database.
    ///
    /// Reading all processes is not one moment: a child that its parent waits for meanwhile is in no list, and its whole life
    /// appears as growth of the parent.
    pub fn limit_others(&mut self, most_s: f64) {
        // By less than a tick, loadline and the database may have more than all that was busy.
        let most_s = most_s.max(0.0);
        if self.others_s > most_s {
            let share = most_s / self.others_s;
            self.others_s *= share;
            self.busiest.iter_mut().for_each(|(_, s)| *s *= share);
        }
    }

    /// The busiest of the others in `seconds`: `rustc 0.93 CPUs, go 0.02 CPUs`.
    pub fn names(&self, seconds: f64) -> String {
        let cpus = self.busiest.iter().map(|(name, s)| (name, s / seconds)).filter(|(_, cpus)| *cpus >= 0.005);
        cpus.map(|(name, cpus)| format!("{name} {cpus:.2} CPUs")).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Default)]
struct Ended {
    /// CPU time of all of them, ticks.
    ticks: u64,
    /// By the nearest ancestor that still exists, to which the system adds what the whole life of a process took.
    by_heir: BTreeMap<u32, EndedBelow>,
}

#[derive(Default)]
struct EndedBelow {
    ticks: u64,
    io: u64,
}

/// Most names in [`Used::busiest`].
const NAMED: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Loadline,
    Server,
    Kernel,
    Other,
}

impl Processes {
    /// Reads all processes. Takes about 20 µs each.
    pub fn read() -> Result<Processes, CollectError> {
        let failed = |cause| CollectError::Read { path: "/proc".into(), cause };
        let mut all = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").map_err(failed)?.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            all.extend(Process::read(&entry.path()).map(|process| (id, process)));
        }
        Ok(Processes(all))
    }

    fn ancestors(&self, id: u32) -> impl Iterator<Item = u32> {
        let parent = |id: &u32| self.0.get(id).map(|p| p.parent);
        std::iter::successors(Some(id), parent).take(self.0.len())
    }

    pub(super) fn of_server(&self, server: &Server) -> Vec<(u32, &Process)> {
        let is_server = |id: u32| self.whose(id, &[], server) == Whose::Server;
        self.0.iter().map(|(id, process)| (*id, process)).filter(|(id, _)| is_server(*id)).collect()
    }

    fn whose(&self, id: u32, own: &[u32], server: &Server) -> Whose {
        let Some(process) = self.0.get(&id) else { return Whose::Other };
        if process.kernel {
            return Whose::Kernel;
        }
        if matches!(server, Server::Named(names) if process.is_named(names)) {
            return Whose::Server;
        }
        for ancestor in self.ancestors(id) {
            if matches!(server, Server::Roots(ids) if ids.contains(&ancestor)) {
                return Whose::Server;
            }
            if own.contains(&ancestor) {
                return Whose::Loadline;
            }
        }
        Whose::Other
    }

    /// Use until `later`, where `own` are the ids of loadline and of its agents on this machine.
    pub fn used_until(&self, later: &Processes, own: &[u32], server: &Server) -> Used {
        let ended = self.ended(later);
        let waited_for = self.waited_for(later, &ended);
        let as_root = nix::unistd::geteuid().is_root();
        let mut out = Used { server_seen: *server == Server::Inside, as_root, ..Used::default() };
        let mut names: BTreeMap<&str, f64> = BTreeMap::new();
        for (id, now) in &later.0 {
            let whose = later.whose(*id, own, server);
            out.all_seen |= whose == Whose::Kernel;
            out.server_seen |= whose == Whose::Server;
            let before = self.0.get(id).filter(|p| p.started == now.started);
            let grown = now.own_ticks().saturating_sub(before.map_or(0, Process::own_ticks));
            let seconds = grown as f64 / TICKS_PER_S + waited_for.get(id).copied().unwrap_or(0.0);
            match whose {
                Whose::Kernel => {
                    out.kernel_s += seconds;
                    continue;
                }
                Whose::Loadline => out.loadline_s += seconds,
                Whose::Server => out.server_s += seconds,
                Whose::Other => {
                    out.others_s += seconds;
                    *names.entry(&now.name).or_default() += seconds;
                }
            }
            match now.io_bytes() {
                None => {
                    out.io_unread_s += seconds;
                    if out.io_unread.as_ref().is_none_or(|(_, most)| seconds > *most) {
                        out.io_unread = Some((now.name.clone(), seconds));
                    }
                }
                Some(bytes) => {
                    let known =
                        before.and_then(Process::io_bytes).unwrap_or(0) + ended.by_heir.get(id).map_or(0, |e| e.io);
                    let bytes = bytes.saturating_sub(known);
                    out.io_bytes = out.io_bytes.saturating_add(bytes);
                    out.others_io_bytes += if whose == Whose::Other { bytes } else { 0 };
                }
            }
        }
        let mut busiest: Vec<(String, f64)> = names.into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
        busiest.truncate(NAMED);
        out.busiest = busiest.into_iter().filter(|(_, s)| *s > 0.0).collect();
        out
    }

    /// Use by this reading of processes that ended before `later`.
    fn ended(&self, later: &Processes) -> Ended {
        let lives = |id: &u32, p: &Process| later.0.get(id).is_some_and(|now| now.started == p.started);
        let mut out = Ended::default();
        for (id, process) in self.0.iter().filter(|(id, p)| !lives(id, p)) {
            let ticks = process.own_ticks() + process.child_ticks();
            out.ticks += ticks;
            let heir = self.ancestors(*id).skip(1).find(|id| self.0.get(id).is_some_and(|p| lives(id, p)));
            if let Some(heir) = heir {
                let known = out.by_heir.entry(heir).or_default();
                known.ticks += ticks;
                known.io += process.io_bytes().unwrap_or(0);
            }
            // If its parent ended first, init waited for it.
            if heir != Some(process.parent) && heir != Some(INIT) {
                out.by_heir.entry(INIT).or_default().io += process.io_bytes().unwrap_or(0);
            }
        }
        out
    }

    /// CPU time since this reading of children that ended before `later`, by the process that waited for them, s.
    ///
    /// A process that is waited for adds the CPU time of its whole life to its parent. So what it had used before is
    /// subtracted there, or at the next ancestor that still exists, and all together are no more than was added in all.
    fn waited_for(&self, later: &Processes, ended: &Ended) -> BTreeMap<u32, f64> {
        let (mut out, mut added, mut left) = (BTreeMap::new(), 0, 0);
        for (id, now) in &later.0 {
            let before = self.0.get(id).filter(|p| p.started == now.started).map_or(0, Process::child_ticks);
            let grown = now.child_ticks().saturating_sub(before);
            let rest = grown.saturating_sub(ended.by_heir.get(id).map_or(0, |e| e.ticks));
            (added, left) = (added + grown, left + rest);
            if rest > 0 {
                out.insert(*id, rest as f64 / TICKS_PER_S);
            }
        }
        let at_most = added.saturating_sub(ended.ticks);
        if left > at_most {
            out.values_mut().for_each(|s| *s *= at_most as f64 / left as f64);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(processes: &[(u32, u32, &str, u64, u64)]) -> Processes {
        let of = |(id, parent, name, own, children): &(u32, u32, &str, u64, u64)| {
            let kernel = *name == "kthreadd";
            let process = Process {
                name: (*name).to_owned(),
                parent: *parent,
                started: 7,
                kernel,
                own: [*own, 0],
                children: [0, *children],
                io: Some([own * 10, 0, 0, 0]),
            };
            (*id, process)
        };
        Processes(processes.iter().map(of).collect())
    }

    #[test]
    fn fields_are_those_of_the_manual() {
        let stat = "42 (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 150 25 300 40 20 0 1 0 9876 1 2";
        let p = Process::parse(stat).unwrap();
        assert_eq!((p.name.as_str(), p.parent, p.started, p.kernel), ("a) b", 7, 9876, false));
        assert_eq!((p.own, p.children), ([150, 25], [300, 40]));
        assert!(Process::parse("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 1 0").unwrap().kernel);
        for wrong in ["", "42 (a", "42 (a) S 7", "42 )a( S 7 42"] {
            assert_eq!(Process::parse(wrong), None, "{wrong}");
        }
        let io = "rchar: 1\nread_bytes: 20\nwrite_bytes: 300\ncancelled_write_bytes: 9\n";
        assert_eq!(values(io, ["write_bytes:", "read_bytes:"]), Some([300, 20]));
        assert_eq!(values(io, ["wchar:"]), None);
    }

    #[test]
    fn what_loadline_and_the_database_use_is_not_the_others() {
        let base = [(1, 0, "init", 10, 0), (2, 0, "kthreadd", 5, 0), (10, 1, "sh", 0, 0), (11, 10, "loadline", 50, 0)];
        let rest = [(20, 1, "postgres", 9, 0), (21, 20, "postgres", 30, 0), (30, 1, "busy", 100, 0)];
        let a = table(&[&base[..], &rest[..]].concat());
        let mut later = a.clone();
        for (id, ticks) in [(2, 80), (11, 100), (21, 40), (30, 250)] {
            let p = later.0.get_mut(&id).unwrap();
            p.own[1] += ticks;
            p.io = p.io.map(|[n, ..]| [n, 1000, 0, 0]);
        }
        let used = a.used_until(&later, &[11], &Server::Roots([20].into()));
        assert_eq!((used.loadline_s, used.server_s, used.others_s), (1.0, 0.4, 2.5));
        assert_eq!(used.busiest, [("busy".to_owned(), 2.5)]);
        assert_eq!((used.io_bytes, used.others_io_bytes), (3000, 1000), "the kernel's threads are no process");
        assert_eq!(used.io_unread_s, 0.0);
        assert!(used.server_seen && used.all_seen);
        // By name, when the ids are those of a container.
        let named = a.used_until(&later, &[11], &Server::Named(&["postgres"]));
        assert_eq!((named.server_s, named.others_s), (0.4, 2.5));
        let elsewhere = a.used_until(&later, &[11], &Server::Named(&["mariadbd"]));
        assert_eq!((elsewhere.server_seen, elsewhere.others_s), (false, 2.9));
        // A private server is a child of loadline, and its own side all the same.
        later.0.get_mut(&20).unwrap().parent = 11;
        assert_eq!(a.used_until(&later, &[11], &Server::Roots([20].into())).server_s, 0.4);
        assert_eq!(a.used_until(&later, &[11], &Server::Inside).loadline_s, 1.4);
        // Another user's process: its I/O is unknown.
        later.0.get_mut(&30).unwrap().io = None;
        let used = a.used_until(&later, &[11], &Server::Inside);
        assert_eq!((used.io_unread_s, used.io_unread), (2.5, Some(("busy".to_owned(), 2.5))));
    }

    #[test]
    fn processes_that_end_in_between_count_once() {
        // make (10) runs compilers in shells: one of them had used 300 ticks before and ends; others begin and end unseen.
        let base = [(1, 0, "init", 0, 0), (10, 1, "make", 1, 50), (20, 1, "loadline", 0, 0)];
        let a = table(&[&base[..], &[(12, 10, "sh", 0, 0), (11, 12, "cc", 300, 0)]].concat());
        let b = table(&[(1, 0, "init", 0, 0), (10, 1, "make", 2, 50 + 330 + 80), (20, 1, "loadline", 0, 0)]);
        let others = |later: &Processes| (a.used_until(later, &[20], &Server::Inside).others_s * 1e9).round() / 1e9;
        let others_io = |later: &Processes, id: u32, io: [u64; 4]| {
            let mut later = later.clone();
            later.0.get_mut(&id).unwrap().io = Some(io);
            a.used_until(&later, &[20], &Server::Inside).others_io_bytes
        };
        assert_eq!(others(&b), 1.11);
        assert_eq!(others_io(&b, 10, [10, 3000 + 700, 0, 0]), 700, "of the window, not of its life");
        // Nobody waited for it: only what is known of the others is left.
        let lost = table(&[(1, 0, "init", 0, 0), (10, 1, "make", 2, 50), (20, 1, "loadline", 0, 0)]);
        assert_eq!(others(&lost), 0.01);
        // Its parent ended first, so init waited for it: its whole life is not counted for the window.
        let orphan = table(&[(1, 0, "init", 0, 310), (10, 1, "make", 1, 50), (20, 1, "loadline", 0, 0)]);
        assert_eq!((others(&orphan), others_io(&orphan, 1, [3000, 40, 0, 0])), (0.1, 40));
        // The same id is another process now.
        let mut again = a.clone();
        again.0.get_mut(&11).unwrap().started = 8;
        assert_eq!(others(&again), 3.0, "all of a new one");
    }

    #[test]
    fn others_use_no_more_than_the_cpus_give() {
        let mut used = Used { others_s: 20.0, busiest: vec![("cargo".to_owned(), 18.0)], ..Used::default() };
        used.limit_others(30.0);
        assert_eq!(used.names(1.0), "cargo 18.00 CPUs");
        used.limit_others(2.0);
        assert_eq!((used.others_s, used.names(1.0).as_str()), (2.0, "cargo 1.80 CPUs"));
        used.limit_others(-0.01);
        assert_eq!((used.others_s, used.names(1.0).as_str()), (0.0, ""));
        used.limit_others(-0.01);
        assert_eq!(used.others_s, 0.0, "a share of nothing is no number, and would count as all of the CPUs");
    }

    /// Readings until `enough`, at most 20 s.
    fn used_until(server: &Server, enough: impl Fn(&Used) -> bool) -> Used {
        let before = Processes::read().unwrap();
        let begin = std::time::Instant::now();
        loop {
            let used = before.used_until(&Processes::read().unwrap(), &[std::process::id()], server);
            if enough(&used) || begin.elapsed().as_secs() >= 20 {
                return used;
            }
        }
    }

    #[test]
    fn a_server_is_known_by_the_tasks_of_its_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let server = dir.path().join("fake-db").display().to_string();
        std::os::unix::fs::symlink("/bin/sh", &server).unwrap();
        let session = format!("{server} -c 'while :; do :; done' & echo $!; wait");
        let mut command = std::process::Command::new(&server);
        let mut parent = command.args(["-c", &session]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(parent.stdout.take().unwrap()), &mut line).unwrap();
        let id: u32 = line.trim().parse().unwrap();
        let (tasks, names) = (Tasks::own(vec![id]), &["fake-db"]);
        let known = Server::new(Some(&tasks), names);
        let used = used_until(&known, |used| used.server_s >= 0.05);
        let by_name = used_until(&Server::new(None, names), |used| used.server_s >= 0.05);
        let killed = nix::sys::signal::kill(nix::unistd::Pid::from_raw(id as i32), nix::sys::signal::SIGKILL);
        parent.wait().unwrap();
        killed.unwrap();
        assert_eq!(known, Server::Roots([parent.id()].into()), "of {id}");
        for used in [used, by_name] {
            assert!(used.server_s >= 0.05 && used.server_seen, "{used:?}");
            assert!(!used.busiest.iter().any(|(name, _)| name == "fake-db"), "{used:?}");
        }
        // Tests run in threads: each stands for its process.
        let own = nix::unistd::gettid().as_raw().unsigned_abs();
        assert_eq!(Server::new(Some(&Tasks::own(vec![own])), &["none"]), Server::Roots([std::process::id()].into()));
    }
}
