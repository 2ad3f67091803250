//! A thread that reads counters once a second, wait events several times a second, and both edges
//! of the window on command.
//!
//! A database under full load answers late or not at all, and the sampler must neither hang a test
//! nor invent what it could not read: a reading that failed or was missed is a gap in the series
//! and a line in [`Collected::problems`].

mod schedule;
mod worker;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitProfile, WaitSample};

use crate::clock;
use crate::error::CollectError;
use crate::os::{CpuTimes, DiskCounters, ProcessCpu};
use worker::{Command, Shared, Worker};

/// A database's counters and wait events, as the sampler sees them. Called from one thread only.
pub trait Source: Send {
    /// All counters, now. [`Snapshot::at_ns`] is on [`clock::now_ns`].
    ///
    /// # Errors
    /// A sentence without secrets: why they could not be read.
    fn snapshot(&mut self) -> Result<Snapshot, String>;

    /// What the job sessions wait for, now; `None` if the database does not tell, in which case it
    /// is not asked again.
    ///
    /// # Errors
    /// A sentence without secrets: why it could not be read.
    fn sample_waits(&mut self) -> Result<Option<WaitSample>, String>;
}

/// Where the CPU figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuSource {
    /// `/proc/stat` of this machine: the database runs on it.
    Local,
    /// [`Snapshot::proc_stat`]: the database runs elsewhere and may let us read it there.
    Snapshot,
    /// Nowhere.
    None,
}

/// What a sampler does.
#[derive(Debug, Clone)]
pub struct SamplerConfig {
    /// Readings are taken at this time on [`clock::now_ns`], and whole seconds before and after it:
    /// the (planned) opening of the window.
    pub origin_ns: u64,
    /// Wait samples per second; 0 for none.
    pub wait_hz: f64,
    /// Where the CPU figures come from.
    pub cpu: CpuSource,
    /// Block device under the log to watch (name in `/proc/diskstats` of this machine), if any.
    pub disk: Option<String>,
    /// The same under the data.
    pub data_disk: Option<String>,
    /// How long after it is due the reading of an edge may take.
    pub edge_timeout: Duration,
    /// How long [`Sampler::finish`] waits for a source that hangs.
    pub finish_timeout: Duration,
}

impl SamplerConfig {
    /// 10 wait samples a second, CPU of this machine, no device; an edge may take 10 s, the end 5 s.
    #[must_use]
    pub fn new(origin_ns: u64) -> SamplerConfig {
        SamplerConfig {
            origin_ns,
            wait_hz: 10.0,
            cpu: CpuSource::Local,
            disk: None,
            data_disk: None,
            edge_timeout: Duration::from_secs(10),
            finish_timeout: Duration::from_secs(5),
        }
    }
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// When the operating system's counters were read, ns on [`clock::now_ns`]; the database's
    /// follow directly and carry their own time.
    pub at_ns: u64,
    /// The database's counters, unless they could not be read. Its `proc_stat` is in `cpu`.
    pub snapshot: Option<Snapshot>,
    /// CPU time of the database's machine.
    pub cpu: Option<CpuTimes>,
    /// The device under the log.
    pub disk: Option<DiskCounters>,
    /// The device under the data.
    pub data_disk: Option<DiskCounters>,
}

/// The counters at one edge of the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Its name, e.g. `open`.
    pub name: String,
    /// When the operating system's counters were read, ns on [`clock::now_ns`].
    pub at_ns: u64,
    /// The database's counters, or why they could not be read.
    pub snapshot: Result<Snapshot, String>,
    /// CPU time of the database's machine.
    pub cpu: Option<CpuTimes>,
    /// The device under the log.
    pub disk: Option<DiskCounters>,
    /// The device under the data.
    pub data_disk: Option<DiskCounters>,
    /// CPU time of loadline itself.
    pub process: Option<ProcessCpu>,
}

/// Everything a sampler has read.
#[derive(Default)]
pub struct Collected {
    /// Readings in order of time, edges among them.
    pub points: Vec<Point>,
    /// Wait samples with their times (ns on [`clock::now_ns`]), in order.
    pub wait_samples: Vec<(u64, WaitSample)>,
    /// What could not be read, each once and with its number of times.
    pub problems: Vec<String>,
    /// The source, for further use; `None` if it hangs or panicked.
    pub source: Option<Box<dyn Source>>,
}

impl Collected {
    /// The wait samples from `open_ns` up to but not including `close_ns`, added up.
    #[must_use]
    pub fn waits_between(&self, open_ns: u64, close_ns: u64) -> WaitProfile {
        let mut profile = WaitProfile::default();
        self.wait_samples.iter().filter(|(at, _)| (open_ns..close_ns).contains(at)).for_each(|(_, s)| profile.add(s));
        profile
    }
}

impl std::fmt::Debug for Collected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collected")
            .field("points", &self.points)
            .field("wait_samples", &self.wait_samples)
            .field("problems", &self.problems)
            .field("source", &self.source.as_ref().map(|_| "…"))
            .finish()
    }
}

/// An edge that was asked for and is not there yet.
#[derive(Debug)]
pub struct PendingEdge {
    name: String,
    at_ns: u64,
    timeout: Duration,
    reply: Receiver<Edge>,
}

impl PendingEdge {
    /// Waits for the edge, at most [`SamplerConfig::edge_timeout`] after it was due.
    ///
    /// # Errors
    /// The source hangs, or the sampler's thread has ended.
    pub fn wait(self) -> Result<Edge, CollectError> {
        self.reply.recv_timeout(clock::until(self.at_ns).saturating_add(self.timeout)).map_err(|e| match e {
            RecvTimeoutError::Timeout => CollectError::Stuck { edge: self.name, waited_s: self.timeout.as_secs_f64() },
            RecvTimeoutError::Disconnected => CollectError::Ended { edge: self.name },
        })
    }
}

/// A running sampler. Dropping it ends its thread as soon as its source returns.
#[derive(Debug)]
pub struct Sampler {
    commands: Sender<Command>,
    shared: Arc<Mutex<Shared>>,
    done: Receiver<Box<dyn Source>>,
    config: SamplerConfig,
}

impl Sampler {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(config: SamplerConfig, source: Box<dyn Source>) -> Result<Sampler, CollectError> {
        let (commands, inbox) = channel();
        let (done_sender, done) = channel();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let worker = Worker::new(config.clone(), source, inbox, Arc::clone(&shared));
        std::thread::Builder::new()
            .name("loadline-sampler".to_owned())
            .spawn(move || {
                // Without a receiver no one wants the source back any more.
                let _ = done_sender.send(worker.run());
            })
            .map_err(CollectError::Spawn)?;
        Ok(Sampler { commands, shared, done, config })
    }

    /// Reads all counters now and returns them. They are a point of the series as well.
    ///
    /// # Errors
    /// The source hangs, or the sampler's thread has ended.
    pub fn edge(&self, name: &str) -> Result<Edge, CollectError> {
        self.edge_at(name, clock::now_ns())?.wait()
    }

    /// Announces an edge at `at_ns`. Nothing else is read shortly before it, so that it is taken on
    /// time.
    ///
    /// # Errors
    /// The sampler's thread has ended.
    pub fn edge_at(&self, name: &str, at_ns: u64) -> Result<PendingEdge, CollectError> {
        let (sender, reply) = channel();
        let command = Command::Edge { name: name.to_owned(), at_ns, reply: sender };
        self.commands.send(command).map_err(|_| CollectError::Ended { edge: name.to_owned() })?;
        Ok(PendingEdge { name: name.to_owned(), at_ns, timeout: self.config.edge_timeout, reply })
    }

    /// Moves the once-a-second readings to whole seconds around `origin_ns`, for when the window
    /// opens at another time than was planned. Without effect if the thread has ended.
    pub fn align(&self, origin_ns: u64) {
        let _ = self.commands.send(Command::Align(origin_ns));
    }

    /// Ends the thread and returns what was read. A source that hangs is given up after
    /// [`SamplerConfig::finish_timeout`]; what was read before is returned with the problem.
    #[must_use]
    pub fn finish(self) -> Collected {
        let Sampler { commands, shared, done, config } = self;
        let _ = commands.send(Command::Stop);
        let mut collected = Collected::default();
        let how = done.recv_timeout(config.finish_timeout);
        {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            collected.points = std::mem::take(&mut shared.points);
            collected.wait_samples = std::mem::take(&mut shared.wait_samples);
            collected.problems = shared.problems();
        }
        match how {
            Ok(source) => collected.source = Some(source),
            Err(RecvTimeoutError::Timeout) => collected.problems.push(format!(
                "the database did not answer the last query on its counters within {:.1} s: the sampler was given up",
                config.finish_timeout.as_secs_f64()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                collected.problems.push("the sampler ended early by a defect of loadline: please report it".to_owned());
            }
        }
        collected
    }
}

#[cfg(test)]
mod tests;
