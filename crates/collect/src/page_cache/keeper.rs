//! Threads that keep files out of the page cache, or have their changes written.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_storage::{cached_bytes, cached_in, drop_cached, drop_range, start_writing, thread_cpu_ns};

use super::{DataFiles, Inode, Missed, SMALLEST, inode};
use crate::CollectError;

/// Interval of the search for new files: databases add a file per GiB or per table.
pub(super) const SEARCH_EVERY: Duration = Duration::from_millis(500);
/// Number of threads: a pass over a file with many dirty pages takes long and must not delay the others.
const THREADS: usize = 4;

/// Parts of a file of which [`Keep::OutOnceUsed`] knows whether they were cached at the last pass: at least this long,
/// and at most [`PARTS`] of a file. Linux drops only folios that lie in the range completely; they are aligned, and of up
/// to 2 MiB.
const PART: u64 = 4 << 20;
/// See [`PART`].
const PARTS: u64 = 1024;
/// A pass of [`Keep::OutOnceUsed`] follows after this time at the latest.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// Treatment of the pages of a keeper's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Drops all in each pass: for random reads.
    Out,
    /// Drops what was cached at the last pass already, and makes a pass when as many bytes are new: for sequential
    /// reads, so that pages read ahead are dropped after they are used, not before. A pass that dropped them made a
    /// device with 8 MiB of read-ahead read 2.7 bytes for each that the database got (1,390 MiB/s and 512).
    OutOnceUsed {
        /// At least what is read ahead for all readers together.
        new_bytes: u64,
    },
    /// Only starts to write dirty pages; all stay cached: for work that reads nothing but what it changes.
    Written,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kept {
    /// Files kept out of the cache at the end.
    pub files: u32,
    pub missed: Missed,
    /// Passes of the thread with the fewest passes.
    pub passes: u64,
    pub slowest_pass_ns: u64,
    pub cpu_ns: u64,
    pub ran_ns: u64,
}

/// Threads that keep files out of the page cache until they are stopped or dropped.
#[derive(Debug)]
pub struct Keeper {
    begin: Instant,
    stop: Arc<AtomicBool>,
    /// Those that make passes, then the one that searches for files, with their figures.
    threads: Vec<JoinHandle<Kept>>,
}

/// Current files of one thread.
type Share = Mutex<Vec<Arc<File>>>;

/// The open files, each once, with the number of their thread.
struct OpenFiles {
    of: DataFiles,
    most: usize,
    files: BTreeMap<Inode, (Arc<File>, usize)>,
    shares: Arc<[Share; THREADS]>,
    missed: Missed,
}

impl Keeper {
    /// Starts the threads, with `pause` between two passes. Raises the process's limit of open files as far as allowed, and
    /// uses at most half of it, for the largest files. Fails if none of the existing files can be opened.
    ///
    /// With PostgreSQL 15, a table of 128 MiB and random reads by key, 14 % of the blocks that it read came from the device
    /// without a keeper, and all of them with pauses of 1 to 100 ms. A thread used 31 % of a CPU at 1 ms, 7 % at 10 ms, for 754
    /// files (small ones are left out since). A block read twice within a pause is still cached: a very fast device or a small data set needs a short one.
    pub fn start(files: DataFiles, keep: Keep, pause: Duration) -> Result<Keeper, CollectError> {
        Keeper::with_at_most(files, keep, pause, most_files())
    }

    pub(super) fn with_at_most(
        files: DataFiles,
        keep: Keep,
        pause: Duration,
        most: usize,
    ) -> Result<Keeper, CollectError> {
        let shares: Arc<[Share; THREADS]> = Arc::default();
        let mut open = OpenFiles {
            of: files,
            most,
            files: BTreeMap::new(),
            shares: Arc::clone(&shares),
            missed: Missed::default(),
        };
        open.search()?;
        open.check_any()?;
        let mut keeper = Keeper { begin: Instant::now(), stop: Arc::default(), threads: Vec::new() };
        for number in 0..THREADS {
            let shares = Arc::clone(&shares);
            keeper.spawn("loadline-keeper", move |stop| {
                shares.get(number).map_or_else(Kept::default, |share| passes(share, keep, pause, stop))
            })?;
        }
        keeper.spawn("loadline-looker", move |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(SEARCH_EVERY);
                // On failure the files found before stay.
                let _ = open.search();
            }
            let files = (open.files.len() + open.of.held().len()) as u32;
            // Not the thread with the fewest.
            Kept { files, missed: open.missed, passes: u64::MAX, ..Kept::default() }
        })?;
        Ok(keeper)
    }

    /// Starts a thread, and counts its CPU time.
    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce(&AtomicBool) -> Kept + Send + 'static,
    ) -> Result<(), CollectError> {
        let stop = Arc::clone(&self.stop);
        let counted = move || {
            let cpu_before = thread_cpu_ns();
            let kept = run(&stop);
            Kept { cpu_ns: thread_cpu_ns().saturating_sub(cpu_before), ..kept }
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(counted);
        self.threads.push(spawned.map_err(CollectError::Spawn)?);
        Ok(())
    }

    #[must_use]
    pub fn stop(mut self) -> Kept {
        self.end()
    }

    fn end(&mut self) -> Kept {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Kept { passes: u64::MAX, ..Kept::default() };
        for thread in self.threads.drain(..).rev() {
            thread.thread().unpark();
            let Ok(kept) = thread.join() else { continue };
            all.files += kept.files;
            all.missed.unreadable += kept.missed.unreadable;
            all.missed.beyond_limit += kept.missed.beyond_limit;
            all.passes = all.passes.min(kept.passes);
            all.slowest_pass_ns = all.slowest_pass_ns.max(kept.slowest_pass_ns);
            all.cpu_ns += kept.cpu_ns;
        }
        all.ran_ns = self.begin.elapsed().as_nanos() as u64;
        all
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

impl OpenFiles {
    /// Opens new files, closes deleted ones, and distributes them to the threads.
    fn search(&mut self) -> Result<(), CollectError> {
        let (mut found, mut missed) = self.of.find()?;
        found.sort_by_key(|f| Reverse(f.bytes));
        let beyond = found.split_off(found.len().min(self.most));
        missed.beyond_limit += beyond.len() as u32;
        let mut open = BTreeMap::new();
        let mut bytes = [0; THREADS];
        // Those that a thread has already, and then the others, each for the thread with the fewest bytes.
        found.sort_by_key(|file| !self.files.contains_key(&file.inode));
        for file in found {
            let next = (0..THREADS).min_by_key(|t| bytes[*t]).unwrap_or(0);
            let new = || File::open(&file.path).map(|handle| (Arc::new(handle), next));
            match self.files.remove(&file.inode).map_or_else(new, Ok) {
                Ok((handle, thread)) => {
                    bytes[thread] += file.bytes;
                    open.insert(file.inode, (handle, thread));
                }
                Err(cause) => missed.count(&cause),
            }
        }
        (self.files, self.missed) = (open, missed);
        for (number, share) in self.shares.iter().enumerate() {
            let of_thread = self.files.values().filter(|(_, thread)| *thread == number).map(|(file, _)| file);
            let held = if number == 0 { self.of.held() } else { &[] };
            *share.lock().unwrap_or_else(PoisonError::into_inner) =
                held.iter().chain(of_thread).map(Arc::clone).collect();
        }
        Ok(())
    }

    /// An error if files exist but none could be opened. No files is no error: tables may be created later.
    fn check_any(&self) -> Result<(), CollectError> {
        let (Missed { unreadable, beyond_limit }, smallest) = (self.missed, SMALLEST >> 10);
        if !self.files.is_empty() || !self.of.held().is_empty() || unreadable + beyond_limit == 0 {
            return Ok(());
        }
        if beyond_limit > 0 {
            return Err(CollectError::OpenFiles { path: self.of.error_path(), files: beyond_limit });
        }
        let cause = std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            format!("there is no file of {smallest} KiB or more that this user may read ({unreadable} it may not)"),
        );
        Err(CollectError::Read { path: self.of.error_path(), cause })
    }
}

fn passes(share: &Share, keep: Keep, pause: Duration, stop: &AtomicBool) -> Kept {
    let (mut done, mut used) = (Kept::default(), UsedParts::default());
    while !stop.load(Ordering::Relaxed) {
        let files = share.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pass = Instant::now();
        match keep {
            Keep::Out => files.iter().for_each(|file| drop(drop_cached(file))),
            Keep::Written => files.iter().for_each(|file| drop(start_writing(file, &(0..0)))),
            Keep::OutOnceUsed { new_bytes } => used.pass(&files, new_bytes),
        }
        done.slowest_pass_ns = done.slowest_pass_ns.max(pass.elapsed().as_nanos() as u64);
        done.passes += 1;
        drop(files);
        std::thread::sleep(pause);
    }
    done
}

/// Cached pages at the last pass of [`Keep::OutOnceUsed`].
#[derive(Default)]
pub(super) struct UsedParts {
    /// Whether each part of a file was cached.
    cached: HashMap<Inode, Vec<bool>>,
    /// Bytes of all files that stayed cached.
    left: u64,
    last: Option<Instant>,
}

impl UsedParts {
    /// Drops the parts of `files` that were cached at the last pass, if `new_bytes` were read since or much time has
    /// passed.
    pub(super) fn pass(&mut self, files: &[Arc<File>], new_bytes: u64) {
        let Some(now) = files.iter().map(|file| cached_bytes(file)).sum::<Option<u64>>() else {
            // The kernel does not say what is cached.
            return files.iter().for_each(|file| drop(drop_cached(file)));
        };
        let waited = self.last.is_none_or(|last| last.elapsed() >= MAX_WAIT);
        if now < self.left.saturating_add(new_bytes) && !waited {
            return;
        }
        for file in files {
            let Ok(metadata) = file.metadata() else { continue };
            let part = (metadata.len() / PARTS).next_power_of_two().max(PART);
            let parts = metadata.len().div_ceil(part);
            let before = self.cached.entry(inode(&metadata)).or_default();
            before.resize(parts as usize, false);
            for (i, was_cached) in before.iter_mut().enumerate() {
                let range = i as u64 * part..(i as u64 + 1) * part;
                let is_cached = cached_in(file, &range).is_some_and(|bytes| bytes > 0);
                if is_cached && *was_cached {
                    let _ = drop_range(file, &range);
                }
                *was_cached = is_cached && !*was_cached;
            }
        }
        self.left = files.iter().filter_map(|file| cached_bytes(file)).sum();
        self.last = Some(Instant::now());
    }
}

/// Most open files of a keeper: half of the process's limit, which is raised as far as allowed (usually from 1,024 to
/// 524,288). The rest is for sessions and logs.
fn most_files() -> usize {
    let most = loadline_database::machine::allow_open_files(u64::MAX);
    most.map_or(256, |most| usize::try_from(most / 2).unwrap_or(usize::MAX))
}
