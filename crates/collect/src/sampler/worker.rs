//! The sampler's thread.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::Observer;
use loadline_model::Snapshot;

use super::schedule::{GUARD_NS, SECOND_NS, WaitSlots, next_step, until};
use super::{Collected, CpuSource, Point, SamplerConfig, System, WindowReading};
use crate::CollectError;
use crate::os::{CpuTimes, DiskCounters, TaskTimes, timed};

/// Most distinct problems kept, so that a source with ever new errors does not fill memory and report.
const MAX_PROBLEMS: usize = 20;
/// Samples of the sessions' states per second. One takes about 10 µs per session.
const STATE_HZ: f64 = 50.0;

/// When an announced reading is due, ns, and who waits for it.
pub(super) type Announced = (u64, Sender<WindowReading>);

/// Readings of the thread, shared so that they are available even if the thread hangs.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) read: Collected,
    /// Text and count, in order of appearance.
    problems: Vec<(String, u64)>,
    more_problems: u64,
    missed_seconds: u64,
}

impl Shared {
    fn problem(&mut self, text: String) {
        if let Some((_, times)) = self.problems.iter_mut().find(|(t, _)| *t == text) {
            *times += 1;
        } else if self.problems.len() < MAX_PROBLEMS {
            self.problems.push((text, 1));
        } else {
            self.more_problems += 1;
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let times = |(text, n): &(String, u64)| if *n == 1 { text.clone() } else { format!("{text} ({n} times)") };
        let mut all: Vec<String> = self.problems.iter().map(times).collect();
        if self.more_problems > 0 {
            all.push(format!("{} more problems of other kinds", self.more_problems));
        }
        if self.missed_seconds > 0 {
            all.push(format!(
                "{} of the once-a-second readings were missed because the previous one took too long",
                self.missed_seconds
            ));
        }
        all
    }
}

pub(super) struct Worker {
    config: SamplerConfig,
    source: Box<dyn Observer>,
    inbox: Receiver<Announced>,
    shared: Arc<Mutex<Shared>>,
    next_tick_ns: u64,
    /// When the operating system's counters are read next, between those of whole seconds; never if windows are long.
    next_between_ns: u64,
    waits: Option<WaitSlots>,
    states: Option<WaitSlots>,
    /// The earliest first.
    announced: Vec<Announced>,
}

impl Worker {
    pub(super) fn new(
        config: SamplerConfig,
        source: Box<dyn Observer>,
        inbox: Receiver<Announced>,
        shared: Arc<Mutex<Shared>>,
    ) -> Worker {
        let now = loadline_storage::now_ns();
        let (next_tick_ns, waits) = (next_step(config.origin_ns, now, SECOND_NS), WaitSlots::new(now, config.wait_hz));
        let states = config.sessions.as_ref().and_then(|_| WaitSlots::new(now, STATE_HZ));
        let mut worker = Worker {
            config,
            source,
            inbox,
            shared,
            waits,
            states,
            next_tick_ns,
            next_between_ns: u64::MAX,
            announced: Vec::new(),
        };
        worker.advance_between();
        worker
    }

    pub(super) fn run(mut self) -> Box<dyn Observer> {
        loop {
            match self.inbox.recv_timeout(until(self.due_ns())) {
                Ok(reading) => {
                    self.announced.push(reading);
                    self.announced.sort_by_key(|(at_ns, _)| *at_ns);
                }
                Err(RecvTimeoutError::Disconnected) => return self.source,
                Err(RecvTimeoutError::Timeout) => self.read_what_is_due(),
            }
        }
    }

    fn due_ns(&self) -> u64 {
        let announced = self.announced.first().map_or(u64::MAX, |(at_ns, _)| *at_ns);
        let slots = [&self.waits, &self.states].into_iter().flatten().map(WaitSlots::due_ns).min();
        announced.min(slots.unwrap_or(u64::MAX)).min(self.next_tick_ns).min(self.next_between_ns)
    }

    /// Announced readings first; others in the guard time before one are skipped.
    fn read_what_is_due(&mut self) {
        let now = loadline_storage::now_ns();
        let announced_at = self.announced.first().map(|(at_ns, _)| *at_ns);
        if announced_at.is_some_and(|at| at <= now) {
            let (_, reply) = self.announced.remove(0);
            self.read_announced(&reply);
            return;
        }
        let guarded = announced_at.is_some_and(|at| at <= now.saturating_add(GUARD_NS));
        if self.next_tick_ns <= now {
            if !guarded {
                let (system, snapshot) = self.read_counters();
                self.add_point(system, snapshot.ok());
            }
            // Read, or covered by the announced reading.
            self.advance_tick();
            self.advance_between();
            return;
        }
        if self.next_between_ns <= now {
            if !guarded && self.next_tick_ns > now.saturating_add(GUARD_NS) {
                let system = self.read_system();
                self.with_shared(|s| s.read.points.push(Point { system, snapshot: None }));
            }
            self.advance_between();
            return;
        }
        if let Some(due) = self.waits.as_ref().map(WaitSlots::due_ns)
            && due <= now
        {
            if !guarded {
                self.read_waits();
            }
            if let Some(slots) = self.waits.as_mut() {
                slots.advance(loadline_storage::now_ns());
            }
        }
        if let (Some(slots), Some(sessions)) = (self.states.as_mut(), &self.config.sessions)
            && slots.due_ns() <= now
        {
            // Needs no answer from the database, so it does not delay an announced reading.
            let states = sessions.states(self.shared.lock().unwrap_or_else(PoisonError::into_inner).read.states.len());
            slots.advance(loadline_storage::now_ns());
            self.with_shared(|s| s.read.states.push((now, states)));
        }
    }

    fn advance_between(&mut self) {
        let now = loadline_storage::now_ns();
        self.next_between_ns =
            self.config.between_ns.map_or(u64::MAX, |step| next_step(self.config.origin_ns, now, step));
    }

    /// Advances to the next future second; those that passed meanwhile are counted as missed.
    fn advance_tick(&mut self) {
        let next = next_step(self.config.origin_ns, loadline_storage::now_ns(), SECOND_NS);
        let missed = (next.saturating_sub(self.next_tick_ns) / SECOND_NS).saturating_sub(1);
        self.next_tick_ns = next;
        if missed > 0 {
            self.with_shared(|s| s.missed_seconds += missed);
        }
    }

    fn read_announced(&mut self, reply: &Sender<WindowReading>) {
        // Without them their columns say why; a job that lost its session is reported otherwise.
        let job_threads = TaskTimes::read(&self.config.job_threads);
        let sessions = self.config.sessions.as_ref().and_then(TaskTimes::read);
        let (system, snapshot) = self.read_counters();
        self.add_point(system, snapshot.as_ref().ok().cloned());
        // A window start or end on a whole second is that second's point.
        if self.next_tick_ns.abs_diff(system.at_ns) <= GUARD_NS {
            self.next_tick_ns = next_step(self.config.origin_ns, self.next_tick_ns, SECOND_NS);
        }
        self.advance_between();
        // The requester may have given up.
        let _ = reply.send(WindowReading { system, snapshot, job_threads, sessions });
    }

    fn add_point(&mut self, system: System, snapshot: Option<Snapshot>) {
        // `system` has the parsed text; the series does not need it.
        let snapshot = snapshot.map(|s| Snapshot { proc_stat: None, ..s });
        self.with_shared(|s| s.read.points.push(Point { system, snapshot }));
    }

    fn read_system(&mut self) -> System {
        // Usually the same device: then use the same reading.
        let same = self.config.data_disk == self.config.disk;
        // Rates are computed from these, so they need the time at which they were read.
        let (at_ns, (process_ns, disk, data_disk)) = timed(loadline_storage::now_ns, || {
            let disk = self.config.disk.as_deref().map(DiskCounters::local);
            let data_disk = if same { None } else { self.config.data_disk.as_deref().map(DiskCounters::local) };
            (loadline_storage::process_cpu_ns(), disk, data_disk)
        });
        let cpu = (self.config.cpu == CpuSource::Local).then(CpuTimes::local);
        let disk = disk.and_then(|d| self.kept(d));
        let data_disk = data_disk.and_then(|d| self.kept(d));
        let data_disk = if same { disk } else { data_disk };
        let cpu = cpu.and_then(|c| self.kept(c));
        System { at_ns, cpu, disk, data_disk, process_ns: Some(process_ns) }
    }

    fn read_counters(&mut self) -> (System, Result<Snapshot, String>) {
        let mut system = self.read_system();
        let asked_ns = loadline_storage::now_ns();
        let snapshot = self.source.snapshot().map_err(|e| e.to_string());
        self.answered(asked_ns);
        if let Err(e) = &snapshot {
            let text = format!("the database's counters could not be read: {e}");
            self.with_shared(|s| s.problem(text));
        }
        if let (CpuSource::Snapshot, Ok(Snapshot { proc_stat: Some(text), .. })) = (self.config.cpu, &snapshot) {
            system.cpu = self.kept(CpuTimes::parse(text));
        }
        (system, snapshot)
    }

    fn read_waits(&mut self) {
        let before = loadline_storage::now_ns();
        let sample = self.source.sample_waits();
        self.answered(before);
        match sample {
            Ok(Some(mut sample)) => {
                // The database took the sample at some time in between.
                sample.took_ns = loadline_storage::now_ns() - before;
                let at_ns = before + sample.took_ns / 2;
                self.with_shared(|s| s.read.wait_samples.push((at_ns, sample)));
            }
            Ok(None) => self.waits = None,
            Err(e) => {
                let text = format!("the database's wait events could not be read: {e}");
                self.with_shared(|s| s.problem(text));
            }
        }
    }

    fn answered(&mut self, asked_ns: u64) {
        self.with_shared(|s| s.read.answers.push((asked_ns, loadline_storage::now_ns().saturating_sub(asked_ns))));
    }

    /// The value; an error is added to the problems.
    fn kept<T>(&mut self, outcome: Result<T, CollectError>) -> Option<T> {
        outcome.map_err(|e| self.with_shared(|s| s.problem(e.to_string()))).ok()
    }

    fn with_shared(&mut self, change: impl FnOnce(&mut Shared)) {
        change(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
