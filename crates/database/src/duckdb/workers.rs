//! DuckDB's own threads: how many there are, and which of them work.
//!
//! `threads = n` lets n − 1 threads of the library's help with every query of the process, beside the thread that calls. With loadline's
//! default of 1 a job's thread does all of its work itself.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use loadline_model::snapshot::WaitSample;

use super::connection::Connection;
use crate::error::TargetError;
use crate::machine::task_times_ns;

const LIMIT: Duration = Duration::from_secs(5);

/// The threads that work for a database: those of jobs, while these have a session, and DuckDB's own.
pub(super) struct Threads {
    jobs: Mutex<Vec<u32>>,
    /// Name of the thread that lets DuckDB start its own, which inherit it: at most 15 bytes.
    name: String,
}

impl Threads {
    pub(super) fn new() -> Threads {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("duckdb {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Threads { jobs: Mutex::default(), name }
    }

    pub(super) fn add_job(&self, thread: u32) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    pub(super) fn remove_job(&self, thread: Option<u32>) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| Some(*known) != thread);
    }

    pub(super) fn workers(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let id = |task: std::fs::DirEntry| {
            let name = read_to_string(task.path().join("comm")).ok()?;
            (name.trim() == self.name).then(|| task.file_name().to_str()?.parse().ok())?
        };
        tasks.filter_map(id).filter(|thread| *thread != thread_id()).collect()
    }

    /// Lets each query have `threads` threads, the caller's included, and waits until these are there, and no others.
    pub(super) fn set(&self, connection: &Connection, threads: u32) -> Result<(), TargetError> {
        // DuckDB starts threads in the call that follows.
        let set = || -> Result<(), TargetError> {
            connection.run_sql(&format!("SET GLOBAL threads = {threads}"))?;
            connection.run_sql("SELECT 1")?;
            let deadline = Instant::now() + LIMIT;
            loop {
                let found = self.workers().len();
                if found + 1 == threads as usize {
                    return Ok(());
                }
                if Instant::now() > deadline {
                    return Err(TargetError::Local(format!(
                        "DuckDB was told to use {threads} threads, the caller's included, and has {found} of its own"
                    )));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let failed = |why: String| Err(TargetError::Local(format!("DuckDB's threads cannot be set: {why}")));
        let crashed = "a thread crashed: an internal error, please report it";
        std::thread::scope(|scope| match Builder::new().name(self.name.clone()).spawn_scoped(scope, set) {
            Ok(thread) => thread.join().unwrap_or_else(|_| failed(crashed.to_owned())),
            Err(e) => failed(e.to_string()),
        })
    }

    /// Runs `query`, and returns how many of DuckDB's threads worked meanwhile.
    pub(super) fn working(&self, query: impl FnOnce() -> Result<(), TargetError>) -> Result<u32, TargetError> {
        let used = || -> Vec<(u32, u64)> {
            self.workers().into_iter().filter_map(|thread| Some((thread, task_times_ns(thread)?[0]))).collect()
        };
        // One that woke up, found nothing and slept again did not work.
        const LEAST_NS: u64 = 100_000;
        let before = used();
        query()?;
        let grown = |(thread, ns): &(u32, u64)| {
            before.iter().any(|(known, was)| known == thread && ns.saturating_sub(*was) >= LEAST_NS)
        };
        Ok(used().iter().filter(|now| grown(now)).count() as u32)
    }

    /// States of the threads of jobs and of DuckDB's own; `None` if jobs work alone.
    pub(super) fn sample(&self) -> Option<WaitSample> {
        let workers = self.workers();
        if workers.is_empty() {
            return None;
        }
        let mut sample = WaitSample::default();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for thread in jobs.into_iter().chain(workers) {
            let Ok(stat) = read_to_string(format!("/proc/self/task/{thread}/stat")) else { continue };
            // The state follows the name, which is in parentheses (proc_pid_stat(5)).
            let runs = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
            *sample.sessions.entry(if runs { "CPU" } else { "Idle" }.to_owned()).or_default() += 1;
        }
        Some(sample)
    }
}

pub(super) fn thread_id() -> u32 {
    nix::unistd::gettid().as_raw().unsigned_abs()
}
