//! Reads and writes with several in flight: through one io_uring, or with one thread each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::{AlignedBuf, Direction, Ring};
use loadline_model::{Latencies, Random};

use crate::clock::{now_ns, process_cpu_ns};
use crate::probe::data::Data;
use crate::probe::plan::Tally;

#[derive(Debug)]
pub(crate) enum SliceError {
    Interrupted,
    Io(io::Error),
    /// This number of threads could not be started.
    Threads(u32, io::Error),
}

impl From<io::Error> for SliceError {
    fn from(e: io::Error) -> SliceError {
        SliceError::Io(e)
    }
}

/// Lengths of a slice: warm-up and window, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) warm_ns: u64,
    pub(crate) window_ns: u64,
}

#[derive(Debug)]
pub(crate) enum Offsets {
    Random(Random),
    /// Consecutive blocks, wrapping around; the number of the next one.
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

#[derive(Debug)]
pub(crate) struct Transfer<'a> {
    pub(crate) file: &'a File,
    pub(crate) direction: Direction,
    /// Bytes per operation.
    pub(crate) size: u64,
    pub(crate) depth: u32,
    /// Number of such blocks in the file.
    pub(crate) blocks: u64,
    /// Whether the ring is polled without sleeping, which saves the time to wake up.
    pub(crate) poll: bool,
    pub(crate) stop: &'a AtomicBool,
}

impl Transfer<'_> {
    /// A slice on one io_uring. The window starts with the first completion after the warm-up and ends with the first one
    /// after its length. So it consists of whole intervals between completions, and rate × mean latency = depth.
    pub(crate) fn by_ring(
        &self,
        offsets: &mut Offsets,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), SliceError> {
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
                return Err(SliceError::Interrupted);
            }
            if self.poll {
                ring.poll()?;
            } else {
                ring.submit_and_wait(1)?;
            }
            let mut any = false;
            while let Some(done) = ring.completed() {
                if !any {
                    // One clock reading for all operations completed by now.
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
                cpu = process_cpu_ns();
            }
        }
        tally.cpu_ns += process_cpu_ns().saturating_sub(cpu);
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
        // Submit each one, although batches would save a third of the CPU: the device then works while the next one is
        // prepared. Batches were 5 to 16 % slower at 32 in flight.
        ring.submit_and_wait(0)
    }

    /// A slice with one thread per operation in flight. Each thread has its own window between its completions, as above;
    /// the rate uses the mean length of these windows.
    pub(crate) fn by_threads(
        &self,
        offsets: &mut Offsets,
        data: &mut Data,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), SliceError> {
        // Locked until all threads have started, or one cannot: then none begins.
        let all_started = RwLock::new(true);
        let mut holding = all_started.write().unwrap_or_else(PoisonError::into_inner);
        let shared = match offsets {
            Offsets::Random(_) => None,
            Offsets::Sequential(next) => Some(&*next),
        };
        // Each thread has its own random stream and data.
        let mut seeds = Random::new(data.draw());
        let (outcomes, cpu) = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..self.depth {
                let (mut random, mut data) = (Random::new(seeds.next()), data.other(seeds.next()));
                let all_started = &all_started;
                let body = move || {
                    let mut buffer = AlignedBuf::new(self.size as usize).map_err(io::Error::other)?;
                    data.fill(&mut buffer);
                    if !*all_started.read().unwrap_or_else(PoisonError::into_inner) {
                        return Err(SliceError::Interrupted);
                    }
                    let next = || match shared {
                        Some(next) => next.fetch_add(1, Ordering::Relaxed) % self.blocks,
                        None => random.below(self.blocks),
                    };
                    self.one_thread(&mut buffer, next, &mut data, slice)
                };
                match std::thread::Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(e) => {
                        *holding = false;
                        drop(holding);
                        return (Err(SliceError::Threads(self.depth, e)), 0);
                    }
                }
            }
            let cpu = process_cpu_ns();
            drop(holding);
            let ended: Vec<Result<ThreadResult, SliceError>> = threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err(SliceError::Io(io::Error::other("a thread panicked")))))
                .collect();
            (ended.into_iter().collect::<Result<Vec<ThreadResult>, SliceError>>(), process_cpu_ns().saturating_sub(cpu))
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

    fn one_thread(
        &self,
        buffer: &mut AlignedBuf,
        mut next: impl FnMut() -> u64,
        data: &mut Data,
        slice: Slice,
    ) -> Result<ThreadResult, SliceError> {
        let mut own = ThreadResult { latencies: Latencies::new(), window_ns: 0, operations: 0 };
        let begin = now_ns();
        let (mut opened, mut before) = (0, begin);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(SliceError::Interrupted);
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

struct ThreadResult {
    latencies: Latencies,
    window_ns: u64,
    operations: u64,
}

/// A partial transfer is an error: the file is long enough.
fn whole(moved: io::Result<usize>, size: u64) -> io::Result<()> {
    match moved? {
        all if all as u64 == size => Ok(()),
        part => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("only {part} of {size} bytes were transferred")))
        }
    }
}
