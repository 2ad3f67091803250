//! Limits of the operating system on this process's jobs: a thread for each, and an open file for each session on a server.
//! It is asked before anything is started: with thousands of jobs, the one that is refused is found late.

use std::path::Path;

use loadline_database::machine::allow_open_files;
use loadline_database::{Runs, Target};
use loadline_storage::control_groups;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::geteuid;

/// Open files besides those of jobs: run folder, observers, samplers.
pub const OWN_FILES: u64 = 200;
/// Threads besides those of jobs: loaders, samplers, log writers, and what others on the machine start meanwhile.
const OWN_THREADS: u64 = 100;
/// Memory mappings of a thread: its stack and that of its signal handler, each with a guard page.
const MAPPINGS: u64 = 4;

/// A limit of the operating system that jobs would exceed: so many `things` are `left`, by the limit `name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{jobs} jobs need {need} {things}, and {left} are left: run fewer jobs or raise the limit ({name})")]
pub struct Limit {
    pub jobs: u32,
    pub need: u64,
    pub left: u64,
    pub things: &'static str,
    pub name: String,
}

/// A limit of threads, or of their memory mappings: what each thread takes of it, its name, and how much is left.
type ThreadLimit = (u64, String, u64);

/// Raises the limit of open files, as far as the process may, and checks that each of `jobs` on `target` has a thread, and its
/// session a file.
pub fn allow_jobs(target: &dyn Target, jobs: u32) -> Result<(), Limit> {
    allow_threads(jobs)?;
    if target.facts().runs != Runs::Apart {
        return Ok(());
    }
    let need = u64::from(jobs) + OWN_FILES;
    match allow_open_files(need) {
        Some(left) if left < need => {
            Err(Limit { jobs, need, left, things: "open files", name: "ulimit -Hn".to_owned() })
        }
        // If the limit is unknown, a session will say what is wrong.
        _ => Ok(()),
    }
}

/// Raises the user's limit of threads, as far as the process may, and checks that each of `jobs` can have one.
/// Limits that cannot be read say nothing.
pub fn allow_threads(jobs: u32) -> Result<(), Limit> {
    let mut limits = limits_under(Path::new("/"));
    // The kernel does not hold root to it.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NPROC)
        && !geteuid().is_root()
    {
        let _ = setrlimit(Resource::RLIMIT_NPROC, most, most);
        limits.push((1, "ulimit -Hu".to_owned(), most));
    }
    exceeded(jobs, limits).map_or(Ok(()), Err)
}

fn exceeded(jobs: u32, limits: Vec<ThreadLimit>) -> Option<Limit> {
    limits.into_iter().find_map(|(each, name, left)| {
        let things = if each == MAPPINGS { "memory mappings" } else { "threads" };
        let need = (u64::from(jobs) + OWN_THREADS) * each;
        (need > left).then_some(Limit { jobs, need, left, things, name })
    })
}

fn limits_under(root: &Path) -> Vec<ThreadLimit> {
    let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    // 0.20 0.18 0.12 1/80 11206: threads that run, and all. See proc_loadavg(5).
    let load = text("proc/loadavg");
    let all = load.split(['/', ' ']).nth(4).and_then(|n| n.parse().ok()).unwrap_or(0);
    let mappings = text("proc/self/maps").lines().count() as u64;
    let of_kernel =
        [(1, "kernel", "threads-max", all), (1, "kernel", "pid_max", all), (MAPPINGS, "vm", "max_map_count", mappings)];
    let left = |(each, folder, name, used): (u64, &str, &str, u64)| {
        let most = number(&root.join("proc/sys").join(folder).join(name))?;
        Some((each, format!("sysctl {folder}.{name}"), most.saturating_sub(used)))
    };
    let mut limits: Vec<ThreadLimit> = of_kernel.into_iter().filter_map(left).collect();
    limits.extend(control_groups(root, "pids").into_iter().filter_map(|group| {
        let (used, most) = (number(&group.join("pids.current")).unwrap_or(0), group.join("pids.max"));
        Some((1, most.display().to_string(), number(&most)?.saturating_sub(used)))
    }));
    limits
}

/// The number in a file; `None` without one, as `max`.
fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use loadline_database::{OpenRequest, open};

    use super::*;

    #[test]
    fn each_limit_of_threads_is_found() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let first = |jobs| exceeded(jobs, limits_under(root.path()));
        assert_eq!(first(u32::MAX), None, "nothing is known");
        put("proc/loadavg", "48.76 36.94 22.28 8/350 3270\n");
        put("proc/self/maps", "a\nb\n");
        put("proc/self/cgroup", "0::/a/b\n3:cpu:/c\n2:pids:/d\n");
        for path in ["cgroup/a/b", "cgroup/a", "cgroup/pids/d", "cgroup/cpu/c"] {
            put(&format!("sys/fs/{path}/pids.max"), "max\n");
        }
        let (kernel, cgroup) = ("proc/sys/kernel", "sys/fs/cgroup");
        let group = |path: &str| root.path().join(cgroup).join(path).join("pids.max").display().to_string();
        let cases = [
            (format!("{cgroup}/pids/d/pids.max"), 5000, 5000, group("pids/d")),
            (format!("{cgroup}/a/pids.max"), 4000, 4000, group("a")),
            (format!("{cgroup}/a/b/pids.max"), 3000, 3000, group("a/b")),
            ("proc/sys/vm/max_map_count".to_owned(), 8002, 8000, "sysctl vm.max_map_count".to_owned()),
            (format!("{kernel}/pid_max"), 1850, 1500, "sysctl kernel.pid_max".to_owned()),
            (format!("{kernel}/threads-max"), 1350, 1000, "sysctl kernel.threads-max".to_owned()),
        ];
        for (path, most, left, name) in cases {
            put(&path, &most.to_string());
            let (each, things) = if path.contains("map") { (MAPPINGS, "memory mappings") } else { (1, "threads") };
            let fit = left / each - OWN_THREADS;
            assert_eq!(first(fit as u32), None, "{path}");
            let jobs = fit as u32 + 1;
            assert_eq!(first(jobs), Some(Limit { jobs, need: left + each, left, things, name }));
        }
        put(&format!("{cgroup}/a/b/pids.current"), "2950\n");
        assert_eq!(first(1).map(|limit| limit.left), Some(50));
    }

    #[test]
    fn this_machine_has_limits_that_can_be_read() {
        let found = limits_under(Path::new("/"));
        let has = |limit: &str| found.iter().any(|(_, name, _)| name == limit);
        assert!(
            ["kernel.threads-max", "kernel.pid_max", "vm.max_map_count"].iter().all(|of| has(&format!("sysctl {of}")))
        );
        assert_eq!(allow_threads(1), Ok(()));
        let target = open(&OpenRequest::new("null:", PathBuf::new())).unwrap();
        assert_eq!(allow_jobs(target.as_ref(), 1), Ok(()));
        assert!(allow_jobs(target.as_ref(), u32::MAX).is_err_and(|limit| limit.need > limit.left), "four billion");
    }
}
