//! A thread that reads counters once a second and at window start and end, those of the operating system also between, and wait events
//! several times a second.
//!
//! A database under full load may answer late or never. The sampler must not block the test or invent values: a failed or
//! missed reading is a gap in the series and a line in [`Collected::problems`].

mod schedule;
mod worker;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_database::Observer;
use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitProfile, WaitSample};
use loadline_storage::before_others;

use crate::CollectError;
use crate::os::{CpuShares, CpuTimes, DiskCounters, DiskRates, TaskStates, TaskTimes, Tasks};
use schedule::until;
use worker::{Announced, Shared, Worker};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuSource {
    /// `/proc/stat` of this machine: the database runs on it.
    Local,
    /// [`Snapshot::proc_stat`]: the database runs elsewhere and may provide it.
    Snapshot,
}

#[derive(Debug, Clone)]
pub struct SamplerConfig {
    /// The window start on [`loadline_storage::now_ns`]. Readings are taken at whole seconds before and after it.
    pub origin_ns: u64,
    /// Wait samples per second; 0 for none.
    pub wait_hz: f64,
    pub cpu: CpuSource,
    /// Block device under the log (name in `/proc/diskstats` of this machine), if any.
    pub disk: Option<String>,
    pub data_disk: Option<String>,
    /// Time between readings of the operating system's counters alone, ns, which are cheap; none between whole seconds without it.
    pub between_ns: Option<u64>,
    /// Whether the thread runs before others, if the kernel allows it: beside many jobs.
    pub before_others: bool,
    pub job_threads: Tasks,
    /// The tasks that run the jobs' database sessions, if they are on this machine and known.
    pub sessions: Option<Tasks>,
    pub reading_timeout: Duration,
    /// Time limit of [`Sampler::finish`] if the source hangs.
    pub finish_timeout: Duration,
}

impl SamplerConfig {
    /// 10 wait samples a second, CPU of this machine, no device; limits of 10 s for a reading of the window and 5 s for the end.
    pub fn new(origin_ns: u64) -> SamplerConfig {
        SamplerConfig {
            origin_ns,
            wait_hz: 10.0,
            cpu: CpuSource::Local,
            disk: None,
            data_disk: None,
            between_ns: None,
            before_others: false,
            job_threads: Tasks::default(),
            sessions: None,
            reading_timeout: Duration::from_secs(10),
            finish_timeout: Duration::from_secs(5),
        }
    }
}

/// Counters of the operating system at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct System {
    /// When, ns on [`loadline_storage::now_ns`]. The database's counters are read next and have their own time.
    pub at_ns: u64,
    /// CPU time of the database's machine.
    pub cpu: Option<CpuTimes>,
    /// The device under the log.
    pub disk: Option<DiskCounters>,
    pub data_disk: Option<DiskCounters>,
    /// CPU time of loadline itself, ns.
    pub process_ns: Option<u64>,
}

/// Counts of the operating system between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    pub seconds: f64,
    pub cpu: Option<CpuShares>,
    pub disk: Option<DiskRates>,
    pub data_disk: Option<DiskRates>,
    pub process_ns: Option<u64>,
}

impl System {
    pub fn rates_until(&self, later: &System) -> Rates {
        let seconds = later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let disk = |a: Option<DiskCounters>, b: Option<DiskCounters>| DiskRates::between(&a?, &b?, seconds);
        Rates {
            seconds,
            cpu: self.cpu.zip(later.cpu).and_then(|(a, b)| CpuShares::between(&a, &b)),
            disk: disk(self.disk, later.disk),
            data_disk: disk(self.data_disk, later.data_disk),
            process_ns: self.process_ns.zip(later.process_ns).map(|(a, b)| b.saturating_sub(a)),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub system: System,
    /// The database's counters, if they could be read. `proc_stat` is in `system`.
    pub snapshot: Option<Snapshot>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WindowReading {
    pub system: System,
    /// The database's counters, or why they could not be read.
    pub snapshot: Result<Snapshot, String>,
    pub job_threads: Option<TaskTimes>,
    /// CPU time of the jobs' database sessions.
    pub sessions: Option<TaskTimes>,
}

impl WindowReading {
    /// Counters of the database, or why they could not be read, and none of the operating system.
    pub fn of_database(at_ns: u64, snapshot: Result<Snapshot, String>) -> WindowReading {
        let system = System { at_ns, ..System::default() };
        WindowReading { system, snapshot, job_threads: None, sessions: None }
    }
}

#[derive(Debug, Default)]
pub struct Collected {
    /// Readings in order of time, those of window start and window end among them.
    pub points: Vec<Point>,
    /// Wait samples with their times (ns on [`loadline_storage::now_ns`]), in order.
    pub wait_samples: Vec<(u64, WaitSample)>,
    /// States of the sessions' tasks with their times, in order.
    pub states: Vec<(u64, TaskStates)>,
    /// When the source was asked for counters or waits, and how long until it had answered, ns.
    pub answers: Vec<(u64, u64)>,
    /// Failed readings, each with the number of times.
    pub problems: Vec<String>,
    /// The observer, for further use; `None` if it hangs or panicked.
    pub source: Option<Box<dyn Observer>>,
}

impl Collected {
    /// The sum of the wait samples from `open_ns` (included) to `close_ns` (excluded).
    pub fn waits_between(&self, open_ns: u64, close_ns: u64) -> WaitProfile {
        let mut profile = WaitProfile::default();
        self.wait_samples.iter().filter(|(at, _)| (open_ns..close_ns).contains(at)).for_each(|(_, s)| profile.add(s));
        profile
    }

    /// The sum of the samples of the sessions' states, likewise.
    pub fn states_between(&self, open_ns: u64, close_ns: u64) -> TaskStates {
        let inside = self.states.iter().filter(|(at, _)| (open_ns..close_ns).contains(at));
        inside.fold(TaskStates::default(), |sum, (_, s)| TaskStates {
            seen: sum.seen + s.seen,
            in_io: sum.in_io + s.in_io,
        })
    }
}

/// Readings closer than this give no rate of a second: window start and end are read beside those of each second, and others between. ns.
const APART_NS: u64 = 800_000_000;
/// Readings looked at for one that is far enough from the newest.
const BACK: usize = 16;

/// The newest readings of a running sampler, which it has anyway.
#[derive(Debug)]
pub struct Recent {
    shared: Arc<Mutex<Shared>>,
    /// Wait samples that were handed out already.
    waits: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Of the operating system: between the newest reading and the last one well before it.
    pub rates: Rates,
    /// Waits sampled since the call before.
    pub waits: WaitProfile,
}

impl Recent {
    /// Whether any reading has no counters of the source, of a sampler that reads none without them.
    pub fn has_failed(&self) -> bool {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.read.points.iter().any(|point| point.snapshot.is_none())
    }

    /// The newest second. Holds up the sampler's thread for some microseconds and asks nobody.
    pub fn second(&mut self) -> Second {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waits = WaitProfile::default();
        shared.read.wait_samples.iter().skip(self.waits).for_each(|(_, sample)| waits.add(sample));
        self.waits = shared.read.wait_samples.len();
        let mut read = shared.read.points.iter().rev().take(BACK).map(|p| p.system);
        let newest = read.next().unwrap_or_default();
        let before = read.find(|a| a.at_ns.saturating_add(APART_NS) <= newest.at_ns);
        Second { rates: before.map(|a| a.rates_until(&newest)).unwrap_or_default(), waits }
    }
}

#[derive(Debug)]
pub struct PendingReading {
    name: String,
    at_ns: u64,
    timeout: Duration,
    reply: Receiver<WindowReading>,
}

impl PendingReading {
    /// Waits for the reading, at most [`SamplerConfig::reading_timeout`] after it was due.
    /// Fails if the source hangs, or the sampler's thread has ended.
    pub fn wait(self) -> Result<WindowReading, CollectError> {
        self.reply.recv_timeout(until(self.at_ns).saturating_add(self.timeout)).map_err(|e| match e {
            RecvTimeoutError::Timeout => {
                CollectError::Stuck { reading: self.name, waited_s: self.timeout.as_secs_f64() }
            }
            RecvTimeoutError::Disconnected => CollectError::Ended { reading: self.name },
        })
    }
}

/// A running sampler. Dropping it ends its thread as soon as its source returns.
#[derive(Debug)]
pub struct Sampler {
    /// The thread ends when this is dropped.
    announce: Sender<Announced>,
    shared: Arc<Mutex<Shared>>,
    done: Receiver<Box<dyn Observer>>,
    config: SamplerConfig,
}

impl Sampler {
    /// Starts the thread, which alone calls `source`.
    pub fn start(config: SamplerConfig, source: Box<dyn Observer>) -> Result<Sampler, CollectError> {
        let (announce, inbox) = channel();
        let (done_sender, done) = channel();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (worker, first) = (Worker::new(config.clone(), source, inbox, Arc::clone(&shared)), config.before_others);
        std::thread::Builder::new()
            .name("loadline-sampler".to_owned())
            .spawn(move || {
                // Without a receiver nobody needs the source.
                let _ = done_sender.send(before_others(first, || worker.run()));
            })
            .map_err(CollectError::Spawn)?;
        Ok(Sampler { announce, shared, done, config })
    }

    /// Reads all counters now and returns them. They are also a point of the series.
    /// Fails if the source hangs, or the sampler's thread has ended.
    pub fn reading(&self, name: &str) -> Result<WindowReading, CollectError> {
        self.reading_at(name, loadline_storage::now_ns())?.wait()
    }

    /// Announces a reading of window start or end at `at_ns`. Nothing else is read shortly before it, so that it is on time.
    pub fn reading_at(&self, name: &str, at_ns: u64) -> Result<PendingReading, CollectError> {
        let (sender, reply) = channel();
        self.announce.send((at_ns, sender)).map_err(|_| CollectError::Ended { reading: name.to_owned() })?;
        Ok(PendingReading { name: name.to_owned(), at_ns, timeout: self.config.reading_timeout, reply })
    }

    /// Readings while it runs, for those who watch.
    pub fn recent(&self) -> Recent {
        Recent { shared: Arc::clone(&self.shared), waits: 0 }
    }

    /// Ends the thread and returns all readings. Abandons a source that hangs after [`SamplerConfig::finish_timeout`], with a
    /// problem in the result.
    #[must_use]
    pub fn finish(self) -> Collected {
        let Sampler { announce, shared, done, config } = self;
        drop(announce);
        let how = done.recv_timeout(config.finish_timeout);
        let mut collected = {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            Collected { problems: shared.problems(), ..std::mem::take(&mut shared.read) }
        };
        match how {
            Ok(source) => collected.source = Some(source),
            Err(RecvTimeoutError::Timeout) => collected.problems.push(format!(
                "the database did not answer the last query on its counters within {:.1} s: the sampler was abandoned",
                config.finish_timeout.as_secs_f64()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                collected.problems.push("the sampler crashed: an internal error, please report it".to_owned());
            }
        }
        collected
    }
}

#[cfg(test)]
mod tests;
