//! The limit of open files: each session is one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The most files that a process may have open at all: `fs.nr_open`, if it can be read.
fn most() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}

/// Raises this process's limit of open files as far as it may; returns the limit.
///
/// # Errors
/// What stands in the way and what to do, if it stays below `wanted`.
pub fn raise_open_files(wanted: u64) -> Result<u64, String> {
    let failed = |e: nix::Error| format!("the limit of open files cannot be read: {e}");
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    let raised = most().is_some_and(|most| setrlimit(Resource::RLIMIT_NOFILE, most, most).is_ok());
    if !raised {
        // Without the privilege to raise the hard limit, the soft one can be raised to it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if limit >= wanted {
        return Ok(limit);
    }
    Err(format!(
        "{wanted} open files are needed and {limit} are allowed: raise 'ulimit -n' (and, as root, sysctl fs.nr_open), or take fewer sessions"
    ))
}
