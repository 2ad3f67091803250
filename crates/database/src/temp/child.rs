//! The running server process.

use std::io;
use std::process::Command;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// Signals that stop a server, each with the time to wait for its end.
pub(crate) type Stages = [(Signal, Duration)];

/// A child process, spawned by a thread that only waits for it. The thread must live as long as the child, because
/// the parent-death signal is sent when the *thread* that spawned the child ends.
pub(crate) struct Child {
    pub(crate) pid: Pid,
    state: Arc<State>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// How it ended. From then on another process may have its process id.
    exit: Mutex<Option<String>>,
    exited: Condvar,
}

impl Child {
    /// Spawns the server.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
        let state = Arc::new(State::default());
        let (spawned, answer) = sync_channel(1);
        let watched = Arc::clone(&state);
        let watcher = std::thread::Builder::new().name("private server".into()).spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(e) => {
                    let _ = spawned.send(Err(e));
                    return;
                }
            };
            let pid = Pid::from_raw(child.id().cast_signed());
            let _ = spawned.send(Ok(pid));
            // Waits without reaping the child: its process id stays valid until no thread can signal it any more.
            while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
            let mut exit = watched.exit.lock().unwrap_or_else(PoisonError::into_inner);
            *exit = Some(child.wait().map_or_else(|e| e.to_string(), |status| status.to_string()));
            watched.exited.notify_all();
        })?;
        let pid = answer.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")))?;
        Ok(Child { pid, state, watcher: Some(watcher) })
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&self) -> Option<String> {
        self.state.exit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops it with the signals of `stages`, one after the other.
    pub(crate) fn stop(&mut self, stages: &Stages) {
        let exited = stages.iter().any(|(signal, patience)| {
            self.signal(*signal);
            self.wait_exit(*patience)
        });
        // A process that survives SIGKILL hangs in the kernel: do not wait for its thread.
        if exited && let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }

    fn signal(&self, signal: Signal) {
        let exit = self.state.exit.lock().unwrap_or_else(PoisonError::into_inner);
        if exit.is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    fn wait_exit(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut exit = self.state.exit.lock().unwrap_or_else(PoisonError::into_inner);
        while exit.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            exit = self.state.exited.wait_timeout(exit, left).map_or_else(|e| e.into_inner().0, |(exit, _)| exit);
        }
        true
    }
}
