//! The threads that keep files out of the page cache.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_device::drop_cached;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::{ClockId, clock_gettime};

use super::{DataFiles, Inode, Missed, SMALLEST};
use crate::error::CollectError;

/// How often new files are looked for: databases add a file per GiB or per table.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Threads of a keeper: a pass over a file with much to write takes its time, and those over the others shall
/// not wait for it.
const THREADS: usize = 4;

/// What a keeper did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kept {
    /// Files looked after at the end.
    pub files: u32,
    /// What could not be looked after.
    pub missed: Missed,
    /// Passes over all files, of the thread that made the fewest.
    pub passes: u64,
    /// The longest pass, ns.
    pub slowest_pass_ns: u64,
    /// CPU time of its threads, ns.
    pub cpu_ns: u64,
    /// How long it ran, ns.
    pub ran_ns: u64,
}

/// Threads that keep files out of the page cache until they are stopped or dropped.
#[derive(Debug)]
pub struct Keeper {
    begin: Instant,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Passes>>,
    looker: Option<JoinHandle<Looked>>,
}

/// What one thread did.
#[derive(Debug, Default)]
struct Passes {
    passes: u64,
    slowest_ns: u64,
    cpu_ns: u64,
}

/// What the thread did that looks for files.
#[derive(Debug)]
struct Looked {
    files: u32,
    missed: Missed,
    cpu_ns: u64,
}

/// Files of one thread, as they are now.
type Share = Mutex<Vec<Arc<File>>>;

/// The files that are open, each once, and which thread has which.
struct Open {
    of: DataFiles,
    /// Most files that may be open.
    most: usize,
    files: BTreeMap<Inode, (Arc<File>, usize)>,
    shares: Arc<[Share; THREADS]>,
    missed: Missed,
}

impl Keeper {
    /// Starts it, a pause of `pause` between two passes. The limit of open files of this process is raised
    /// as far as it may be, and half of it is taken at most: the largest files then.
    ///
    /// Measured with PostgreSQL 15, a table of 128 MiB, random reads by key and shared_buffers of 1 MiB:
    /// without a keeper 14 % of the blocks that the database read came from the device; with pauses of 1 to
    /// 100 ms all of them did (100 to 106 %, other processes read as well), with 1 job and with 8. The
    /// thread took 31 % of a CPU at 1 ms, 7 % at 10 ms and 1.4 % at 100 ms, for 754 files: the small ones
    /// have been left out since. What is read twice within a pause is cached all the same, so a device of
    /// very many reads per second, or few data, need a short one.
    ///
    /// # Errors
    /// The directory cannot be read, there are files and none can be opened, or the system gives no thread.
    pub fn start(files: DataFiles, pause: Duration) -> Result<Keeper, CollectError> {
        Keeper::with_at_most(files, pause, most_files())
    }

    /// The same with `most` files at most.
    pub(super) fn with_at_most(files: DataFiles, pause: Duration, most: usize) -> Result<Keeper, CollectError> {
        let shares: Arc<[Share; THREADS]> = Arc::default();
        let mut open =
            Open { of: files, most, files: BTreeMap::new(), shares: Arc::clone(&shares), missed: Missed::default() };
        open.look()?;
        open.is_any()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut keeper = Keeper { begin: Instant::now(), stop: Arc::clone(&stop), threads: Vec::new(), looker: None };
        for number in 0..THREADS {
            let (shares, stop) = (Arc::clone(&shares), Arc::clone(&stop));
            let run = move || shares.get(number).map_or_else(Passes::default, |share| keep(share, pause, &stop));
            keeper.threads.push(named("loadline-keeper").spawn(run).map_err(CollectError::Spawn)?);
        }
        let look = move || {
            let cpu_before = thread_cpu_ns();
            while !stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK_EVERY);
                // What was found before is kept.
                let _ = open.look();
            }
            let cpu_ns = thread_cpu_ns().saturating_sub(cpu_before);
            Looked { files: (open.files.len() + open.of.held().len()) as u32, missed: open.missed, cpu_ns }
        };
        keeper.looker = Some(named("loadline-looker").spawn(look).map_err(CollectError::Spawn)?);
        Ok(keeper)
    }

    /// Stops it and says what it did.
    #[must_use]
    pub fn stop(mut self) -> Kept {
        self.end()
    }

    fn end(&mut self) -> Kept {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Kept { passes: u64::MAX, ..Kept::default() };
        if let Some(looker) = self.looker.take() {
            looker.thread().unpark();
            if let Ok(looked) = looker.join() {
                (all.files, all.missed, all.cpu_ns) = (looked.files, looked.missed, looked.cpu_ns);
            }
        }
        for kept in self.threads.drain(..).filter_map(|t| t.join().ok()) {
            all.cpu_ns += kept.cpu_ns;
            all.slowest_pass_ns = all.slowest_pass_ns.max(kept.slowest_ns);
            all.passes = all.passes.min(kept.passes);
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

impl Open {
    /// Opens what is new, closes what is gone, and gives each thread its share.
    fn look(&mut self) -> Result<(), CollectError> {
        let (mut found, mut missed) = self.of.find()?;
        found.sort_by_key(|f| Reverse(f.bytes));
        let beyond = found.split_off(found.len().min(self.most));
        missed.beyond_limit += beyond.len() as u32;
        let mut open = BTreeMap::new();
        let mut bytes = [0; THREADS];
        let (old, new): (Vec<_>, Vec<_>) = found.into_iter().partition(|f| self.files.contains_key(&f.inode));
        for file in old {
            if let Some((handle, thread)) = self.files.remove(&file.inode) {
                bytes[thread] += file.bytes;
                open.insert(file.inode, (handle, thread));
            }
        }
        for file in new {
            match File::open(&file.path) {
                Ok(handle) => {
                    let thread = (0..THREADS).min_by_key(|t| bytes[*t]).unwrap_or(0);
                    bytes[thread] += file.bytes;
                    open.insert(file.inode, (Arc::new(handle), thread));
                }
                Err(cause) => missed.count(&cause),
            }
        }
        (self.files, self.missed) = (open, missed);
        for (number, share) in self.shares.iter().enumerate() {
            let of_thread = self.files.values().filter(|(_, thread)| *thread == number).map(|(file, _)| file);
            let held = self.of.held().iter().filter(|_| number == 0);
            *share.lock().unwrap_or_else(PoisonError::into_inner) = held.chain(of_thread).map(Arc::clone).collect();
        }
        Ok(())
    }

    /// An error if there are files and none can be looked after. A database whose tables come later has none
    /// yet.
    fn is_any(&self) -> Result<(), CollectError> {
        let (Missed { unreadable, beyond_limit }, smallest) = (self.missed, SMALLEST >> 10);
        if !self.files.is_empty() || !self.of.held().is_empty() || unreadable + beyond_limit == 0 {
            return Ok(());
        }
        if beyond_limit > 0 {
            return Err(CollectError::OpenFiles { path: self.of.place(), files: beyond_limit });
        }
        let cause = std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            format!("there is no file of {smallest} KiB or more that this user may read ({unreadable} it may not)"),
        );
        Err(CollectError::Read { path: self.of.place(), cause })
    }
}

/// Drops the files of a share, over and over.
fn keep(share: &Share, pause: Duration, stop: &AtomicBool) -> Passes {
    let cpu_before = thread_cpu_ns();
    let mut done = Passes::default();
    while !stop.load(Ordering::Relaxed) {
        let files = share.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pass = Instant::now();
        for file in &files {
            let _ = drop_cached(file);
        }
        done.slowest_ns = done.slowest_ns.max(pass.elapsed().as_nanos() as u64);
        done.passes += 1;
        drop(files);
        std::thread::sleep(pause);
    }
    done.cpu_ns = thread_cpu_ns().saturating_sub(cpu_before);
    done
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// How many files a keeper may have open: half of what this process may, which is raised as far as it may be
/// (on an ordinary machine from 1,024 to 524,288). The rest is for sessions and logs.
fn most_files() -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 256 };
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    usize::try_from(if raised { hard } else { soft } / 2).unwrap_or(usize::MAX)
}

/// CPU time of this thread, ns; 0 if the kernel does not say.
fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |t| Duration::from(t).as_nanos() as u64)
}
