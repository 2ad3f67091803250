//! Keeps a database's files out of the operating system's page cache while its storage is measured.
//!
//! A database without direct I/O reads through the page cache, and a machine with more memory than the
//! test has data serves all of it from there. Whoever can open a file for reading may have the kernel
//! drop what it holds of it (posix_fadvise(2)); no privilege is needed, and it goes for all processes that
//! have the file open. A keeper does so over and over: what is read is gone again a few milliseconds
//! later. Only pages that are on the device can go, so the kernel begins to write those that are not:
//! with a keeper a database's writes reach the device within milliseconds, too.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_device::{cached_bytes, drop_cached};
use nix::time::{ClockId, clock_gettime};

use crate::error::CollectError;

/// Smaller files are catalogs, which the database keeps in its own cache; a database has hundreds of
/// them.
const SMALLEST: u64 = 64 << 10;
/// How often the directory is looked through for new files: databases add a file per GiB or per table.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Directories below the data directory that are looked into; links lead to tablespaces elsewhere.
const DEEPEST: u32 = 6;

/// What is kept out of the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFiles {
    /// The data directory.
    pub directory: PathBuf,
    /// What is left alone in it: the log, whose writes are another matter.
    pub except: Option<PathBuf>,
}

/// What one pass over the files found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Files that were dropped.
    pub files: u32,
    /// Files that this user may not read: nothing can be done about what is held of them.
    pub unreadable: u32,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes that are still in the page cache; `None` where the kernel does not say.
    pub left: Option<u64>,
}

/// What a keeper did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kept {
    /// Files looked after at the end.
    pub files: u32,
    /// Files that this user may not read.
    pub unreadable: u32,
    /// Passes over all files, of the thread that made the fewest.
    pub passes: u64,
    /// The longest pass, ns.
    pub slowest_pass_ns: u64,
    /// CPU time of its threads, ns.
    pub cpu_ns: u64,
    /// How long it ran, ns.
    pub ran_ns: u64,
}

impl DataFiles {
    /// Brings what is written to the device and drops all files from the page cache.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn drop_all(&self) -> Result<Dropped, CollectError> {
        let directory = open(&self.directory)?;
        nix::unistd::syncfs(&directory).map_err(|cause| CollectError::Call { call: "syncfs", cause })?;
        let (files, unreadable) = self.open_files()?;
        let mut dropped =
            Dropped { files: files.len() as u32, unreadable, bytes: 0, left: (!files.is_empty()).then_some(0) };
        for file in &files {
            // What could not be dropped shows in what is left, and in the figures.
            let _ = drop_cached(file);
            dropped.bytes += file.metadata().map_or(0, |m| m.len());
            dropped.left = dropped.left.zip(cached_bytes(file)).map(|(sum, bytes)| sum + bytes);
        }
        Ok(dropped)
    }

    /// All files worth looking after, open, and how many could not be opened.
    fn open_files(&self) -> Result<(Vec<File>, u32), CollectError> {
        let mut seen = BTreeSet::new();
        let (mut files, mut unreadable) = (Vec::new(), 0);
        let except = self.except.as_deref().filter(|log| *log != self.directory).and_then(|p| p.canonicalize().ok());
        let mut open_directories = vec![(self.directory.clone(), 0)];
        while let Some((directory, depth)) = open_directories.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(cause) if depth == 0 => return Err(CollectError::Read { path: directory, cause }),
                Err(_) => {
                    unreadable += 1;
                    continue;
                }
            };
            for path in entries.flatten().map(|e| e.path()) {
                // Follows links. What has gone meanwhile needs no looking after.
                let Ok(found) = std::fs::metadata(&path) else { continue };
                if !seen.insert((found.dev(), found.ino())) {
                    continue;
                }
                if found.is_dir() {
                    let is_log = except.is_some() && path.canonicalize().ok() == except;
                    if !is_log && depth < DEEPEST {
                        open_directories.push((path, depth + 1));
                    }
                } else if found.is_file() && found.len() >= SMALLEST {
                    match File::open(&path) {
                        Ok(file) => files.push(file),
                        Err(_) => unreadable += 1,
                    }
                }
            }
        }
        Ok((files, unreadable))
    }
}

fn open(path: &Path) -> Result<File, CollectError> {
    File::open(path).map_err(|cause| CollectError::Read { path: path.to_owned(), cause })
}

/// Threads of a keeper: a pass over a file with much to write takes its time, and those over the others shall
/// not wait for it.
const THREADS: usize = 4;

/// Threads that keep files out of the page cache until they are stopped or dropped.
#[derive(Debug)]
pub struct Keeper {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Kept>>,
}

impl Keeper {
    /// Starts it, a pause of `pause` between two passes.
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
        let (open, unreadable) = files.open_files()?;
        // A database whose tables come later has no files yet.
        if open.is_empty() && unreadable > 0 {
            let cause = std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                format!(
                    "there is no file of {} KiB or more that this user may read ({unreadable} it may not)",
                    SMALLEST >> 10
                ),
            );
            return Err(CollectError::Read { path: files.directory, cause });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut keeper = Keeper { stop, threads: Vec::new() };
        for part in 0..THREADS {
            let (files, stopped) = (files.clone(), Arc::clone(&stopped));
            let thread = std::thread::Builder::new()
                .name("loadline-keeper".to_owned())
                .spawn(move || keep(&files, part, pause, &stopped))
                .map_err(CollectError::Spawn)?;
            keeper.threads.push(thread);
        }
        Ok(keeper)
    }

    /// Stops it and says what it did.
    #[must_use]
    pub fn stop(mut self) -> Kept {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Kept::default();
        for kept in self.threads.drain(..).filter_map(|t| t.join().ok()) {
            all.files += kept.files;
            all.cpu_ns += kept.cpu_ns;
            all.unreadable = all.unreadable.max(kept.unreadable);
            all.ran_ns = all.ran_ns.max(kept.ran_ns);
            all.slowest_pass_ns = all.slowest_pass_ns.max(kept.slowest_pass_ns);
            all.passes = if all.passes == 0 { kept.passes } else { all.passes.min(kept.passes) };
        }
        all
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Keeps every fourth file out, the largest first, beginning with number `part`.
fn keep(files: &DataFiles, part: usize, pause: Duration, stop: &AtomicBool) -> Kept {
    let (begin, cpu_before) = (Instant::now(), thread_cpu_ns());
    let mut kept = Kept::default();
    let mut open: Vec<File> = Vec::new();
    let mut look = begin;
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= look {
            if let Ok((mut found, unreadable)) = files.open_files() {
                found.sort_by_cached_key(|f| std::cmp::Reverse(f.metadata().map_or(0, |m| m.len())));
                open = found.into_iter().skip(part).step_by(THREADS).collect();
                kept.unreadable = unreadable;
            }
            look = Instant::now() + LOOK_EVERY;
        }
        let pass = Instant::now();
        for file in &open {
            let _ = drop_cached(file);
        }
        kept.slowest_pass_ns = kept.slowest_pass_ns.max(pass.elapsed().as_nanos() as u64);
        kept.passes += 1;
        std::thread::sleep(pause);
    }
    kept.files = open.len() as u32;
    kept.cpu_ns = thread_cpu_ns().saturating_sub(cpu_before);
    kept.ran_ns = begin.elapsed().as_nanos() as u64;
    kept
}

/// CPU time of this thread, ns; 0 if the kernel does not say.
fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |t| Duration::from(t).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// A data directory on a disk (/tmp may be in memory), with a table, a catalog and a log.
    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for sub in ["base", "log"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
            std::fs::write(dir.path().join(sub).join("file"), vec![7; 1 << 20]).unwrap();
        }
        std::fs::write(dir.path().join("base/catalog"), [7; 8192]).unwrap();
        dir
    }

    fn cached(path: &Path) -> Option<u64> {
        cached_bytes(&File::open(path).unwrap())
    }

    #[test]
    fn data_files_are_dropped_and_the_log_is_not() {
        let dir = place();
        let files = DataFiles { directory: dir.path().to_owned(), except: Some(dir.path().join("log")) };
        let dropped = files.drop_all().unwrap();
        assert_eq!((dropped.files, dropped.unreadable, dropped.bytes), (1, 0, 1 << 20));
        let (Some(table), Some(log)) = (cached(&dir.path().join("base/file")), cached(&dir.path().join("log/file")))
        else {
            return;
        };
        assert!(table < 1 << 18 && dropped.left.unwrap() < 1 << 18, "{table} bytes are left");
        assert!(log >= 1 << 20, "{log} bytes are left");
    }

    #[test]
    fn a_keeper_drops_what_is_read_and_finds_new_files() {
        let dir = place();
        // A link to a tablespace elsewhere, and one that leads back.
        let elsewhere = place();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("tablespace")).unwrap();
        std::os::unix::fs::symlink(dir.path(), elsewhere.path().join("back")).unwrap();
        let files = DataFiles { directory: dir.path().to_owned(), except: None };
        files.drop_all().unwrap();
        let keeper = Keeper::start(files, Duration::from_millis(1)).unwrap();
        let table = elsewhere.path().join("base/file");
        let mut rest = Vec::new();
        File::open(&table).unwrap().read_to_end(&mut rest).unwrap();
        if cached(&table).is_some() {
            let end = Instant::now() + Duration::from_secs(5);
            while cached(&table).is_some_and(|left| left > 1 << 18) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(cached(&table).unwrap() <= 1 << 18);
        }
        std::fs::write(dir.path().join("base/new"), vec![7; 1 << 20]).unwrap();
        std::thread::sleep(LOOK_EVERY + Duration::from_millis(200));
        let kept = keeper.stop();
        assert_eq!((kept.files, kept.unreadable), (5, 0));
        assert!(kept.passes > 1 && kept.cpu_ns > 0 && kept.cpu_ns < kept.ran_ns, "{kept:?}");
    }

    #[test]
    fn nothing_to_keep_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let files = |path: &Path| DataFiles { directory: path.to_owned(), except: None };
        let kept = Keeper::start(files(dir.path()), Duration::from_millis(1)).unwrap().stop();
        assert_eq!(kept.files, 0, "files may come later");
        let error = files(&dir.path().join("none")).drop_all().unwrap_err().to_string();
        assert!(error.contains("none"), "{error}");
    }
}
