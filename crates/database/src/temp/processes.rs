//! Finds and stops a server's processes in `/proc`, after the server was killed or its loadline died.
//!
//! Processes are recognised by `/proc/PID/cmdline` and its owner, which everybody may read: root in a container may
//! have no access to the other files of another user's processes.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::child::Stages;

/// A process of a server and its role.
pub(crate) struct Process<R> {
    pub(crate) pid: Pid,
    pub(crate) role: R,
}

/// The processes of the user `uid` for which `role` (given their `/proc` folder and command line) returns a role.
pub(crate) fn running<R>(uid: u32, role: impl Fn(&Path, &[u8]) -> Option<R>) -> Vec<Process<R>> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
            let role = role(&entry.path(), &cmdline)?;
            (entry.metadata().ok()?.uid() == uid).then_some(Process { pid: Pid::from_raw(pid), role })
        })
        .collect()
}

/// Ends all processes of a server with the signals of `stages`; `gets` says which role gets which signal. Returns
/// whether there were any.
///
/// # Errors
/// When processes do not end; the text says how many.
pub(crate) fn end_all<R>(
    stages: &Stages,
    running: impl Fn() -> Vec<Process<R>>,
    gets: impl Fn(Signal, &R) -> bool,
) -> io::Result<bool> {
    let found_any = !running().is_empty();
    for (signal, patience) in stages {
        let mut found = running();
        found.retain(|p| gets(*signal, &p.role));
        if found.is_empty() {
            continue;
        }
        for process in &found {
            let _ = kill(process.pid, *signal);
        }
        wait_gone(&running, *patience);
    }
    match running().len() {
        0 => Ok(found_any),
        left => Err(io::Error::other(format!("{left} of its processes do not end"))),
    }
}

/// Waits until none runs, at most for `patience`.
pub(crate) fn wait_gone<R>(running: impl Fn() -> Vec<Process<R>>, patience: Duration) {
    let deadline = Instant::now() + patience;
    while !running().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
}
