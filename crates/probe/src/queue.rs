//! Reads and writes with a number of them in flight: one io_uring, or a thread for each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use loadline_device::{AlignedBuf, Direction, Ring};
use loadline_model::{Latencies, Random};

use crate::clock::{cpu_ns, now_ns};
use crate::data::Data;
use crate::tally::Tally;

/// Why a slice ended early.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The user wants to stop.
    Interrupted,
    /// The storage refused.
    Io(io::Error),
    /// So many threads could not be started.
    Threads(u32, io::Error),
}

impl From<io::Error> for Cut {
    fn from(e: io::Error) -> Cut {
        Cut::Io(e)
    }
}

/// Lengths of a slice: time under load before the window opens, and the window, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) warm_ns: u64,
    pub(crate) window_ns: u64,
}

/// Where the next block lies.
#[derive(Debug)]
pub(crate) enum Offsets {
    /// Anywhere among so many blocks.
    Random(Random),
    /// One after the other, and again from the start; the number of the next one.
    Sequential(AtomicU64),
}

impl Offsets {
    #[inline]
    fn next(&mut self, blocks: u64) -> u64 {
        match self {
            Offsets::Random(random) => random.below(blocks),
            Offsets::Sequential(next) => {
                let block = *next.get_mut() % blocks;
                *next.get_mut() = block + 1;
                block
            }
        }
    }
}

/// What is transferred.
#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) file: &'a File,
    pub(crate) direction: Direction,
    /// Bytes each time.
    pub(crate) size: u64,
    pub(crate) depth: u32,
    /// Blocks of that size in the file.
    pub(crate) blocks: u64,
    pub(crate) stop: &'a AtomicBool,
}

impl Transfer<'_> {
    /// A slice on one io_uring. The window opens with the first completion after the warm-up and
    /// closes with the first one after its length, so that it holds whole times between
    /// completions: rate times mean latency is the depth.
    pub(crate) fn by_ring(
        &self,
        offsets: &mut Offsets,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), Cut> {
        let depth = self.depth as usize;
        let mut ring = Ring::new(self.file, depth, self.size as usize)?;
        for slot in 0..depth {
            if let Some(buffer) = ring.buffer(slot) {
                data.fill(buffer);
            }
        }
        let mut started = vec![0_u64; depth];
        let begin = now_ns();
        for (slot, at) in started.iter_mut().enumerate() {
            self.queue(&mut ring, slot, offsets, data)?;
            *at = begin;
        }
        let (opens, mut opened, mut counted, mut cpu) = (begin + slice.warm_ns, 0, 0_u64, 0);
        let mut now = begin;
        let mut closed = false;
        while !closed {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Cut::Interrupted);
            }
            ring.submit_and_wait(1)?;
            let mut any = false;
            while let Some(done) = ring.completed() {
                if !any {
                    // One reading of the clock for all that have ended by now.
                    now = now_ns();
                    any = true;
                    closed = opened > 0 && now >= opened + slice.window_ns;
                }
                whole(done.result, self.size)?;
                if let (true, Some(at)) = (opened > 0, started.get(done.slot)) {
                    tally.latencies.record(now.saturating_sub(*at));
                    counted += 1;
                }
                if !closed {
                    self.queue(&mut ring, done.slot, offsets, data)?;
                    if let Some(at) = started.get_mut(done.slot) {
                        *at = now;
                    }
                }
            }
            if any && opened == 0 && now >= opens {
                opened = now.max(1);
                cpu = cpu_ns();
            }
        }
        tally.cpu_ns += cpu_ns().saturating_sub(cpu);
        tally.cpu_ops += counted;
        tally.window_ns += now - opened;
        Ok(())
    }

    #[inline]
    fn queue(&self, ring: &mut Ring, slot: usize, offsets: &mut Offsets, data: &mut Data) -> io::Result<()> {
        if self.direction == Direction::Write
            && let Some(buffer) = ring.buffer(slot)
        {
            data.stamp(buffer);
        }
        ring.queue(self.direction, slot, offsets.next(self.blocks) * self.size)?;
        // One by one, though batches would save a third of the CPU: the device has something to do
        // while the next one is made. Batches gave 5 to 16 % less at 32 in flight.
        ring.submit()
    }

    /// A slice with a thread per operation in flight. Each thread has a window of its own between
    /// completions of its own, as above; the rate is over their mean length.
    pub(crate) fn by_threads(
        &self,
        offsets: &mut Offsets,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), Cut> {
        let gate = Gate::default();
        let shared = match offsets {
            Offsets::Random(_) => None,
            Offsets::Sequential(next) => Some(&*next),
        };
        // Every thread has a random stream and data of its own.
        let mut seeds = Random::new(data.draw());
        let (outcomes, cpu) = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..self.depth {
                let (mut random, mut data) = (Random::new(seeds.next()), data.other(seeds.next()));
                let gate = &gate;
                let body = move || {
                    let mut buffer = AlignedBuf::new(self.size as usize).map_err(io::Error::other)?;
                    data.fill(&mut buffer);
                    if !gate.wait() {
                        return Err(Cut::Interrupted);
                    }
                    let next = || match shared {
                        Some(next) => next.fetch_add(1, Ordering::Relaxed) % self.blocks,
                        None => random.below(self.blocks),
                    };
                    self.one(&mut buffer, next, &mut data, slice)
                };
                match std::thread::Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => {
                        gate.open(false);
                        return (Err(Cut::Threads(self.depth, e)), 0);
                    }
                }
            }
            let cpu = cpu_ns();
            gate.open(true);
            let ended: Vec<Result<Own, Cut>> = threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err(Cut::Io(io::Error::other("a thread ended by itself")))))
                .collect();
            (ended.into_iter().collect::<Result<Vec<Own>, Cut>>(), cpu_ns().saturating_sub(cpu))
        });
        let outcomes = outcomes?;
        tally.cpu_ns += cpu;
        for own in &outcomes {
            tally.latencies.merge(&own.latencies);
            tally.cpu_ops += own.operations;
        }
        tally.window_ns += outcomes.iter().map(|o| o.window_ns).sum::<u64>() / outcomes.len().max(1) as u64;
        Ok(())
    }

    /// What one thread does.
    fn one(
        &self,
        buffer: &mut AlignedBuf,
        mut next: impl FnMut() -> u64,
        data: &mut Data,
        slice: Slice,
    ) -> Result<Own, Cut> {
        let mut own = Own { latencies: Latencies::new(), window_ns: 0, operations: 0 };
        let begin = now_ns();
        let (mut opened, mut before) = (0, begin);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Cut::Interrupted);
            }
            let offset = next() * self.size;
            let moved = match self.direction {
                Direction::Read => self.file.read_at(buffer, offset),
                Direction::Write => {
                    data.stamp(buffer);
                    self.file.write_at(buffer, offset)
                }
            };
            match moved {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                moved => whole(moved, self.size)?,
            }
            let now = now_ns();
            own.operations += 1;
            if opened > 0 {
                own.latencies.record(now - before);
            } else if now >= begin + slice.warm_ns {
                opened = now.max(1);
            }
            before = now;
            if opened > 0 && now >= opened + slice.window_ns && now > opened {
                own.window_ns = now - opened;
                return Ok(own);
            }
        }
    }
}

/// Holds threads back until all are there, or one is missing.
#[derive(Debug, Default)]
struct Gate {
    go: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    fn open(&self, go: bool) {
        *self.go.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    /// Whether to go.
    fn wait(&self) -> bool {
        let mut go = self.go.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(go) = *go {
                return go;
            }
            go = self.changed.wait(go).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Own {
    latencies: Latencies,
    window_ns: u64,
    operations: u64,
}

/// A transfer of part of a block is a failure: the file is longer than that.
fn whole(moved: io::Result<usize>, size: u64) -> io::Result<()> {
    match moved? {
        all if all as u64 == size => Ok(()),
        part => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{part} bytes of {size} were transferred"))),
    }
}
