//! The probe's files in a directory, and the measurement of single points.

use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::{AlignedBuf, DeviceError, IdenticalBlocks};
use crate::{Direction, Kind, PmemMap, Step, StorageFacts, SyncRing, io_uring_available, preallocate, set_direct};
use loadline_model::Random;
use loadline_model::probe::{Engine, Operation, ProbeRow};

use crate::clock::now_ns;
use crate::probe::ProbeError;
use crate::probe::data::Data;
use crate::probe::options::{ProbeOptions, SMALLEST_FILE};
use crate::probe::plan::{self, Point, Tally};
use crate::probe::queue::{Offsets, Slice, SliceError, Transfer};
use crate::probe::sync::{SyncWrites, WriteAt, store_slice};
use crate::probe::testfile::TestFile;

const MIB: u64 = 1 << 20;
/// Default size of the test file, bytes.
const DEFAULT_FILE: u64 = 1 << 30;
/// Largest growing file and largest mapping, bytes.
const LARGEST_SIDE: u64 = 256 * MIB;
/// Most bytes whose pages are hashed.
const HASHED_BYTES: u64 = 64 * MIB;
/// Share of a slice under load before its window opens.
const WARM_UP: f64 = 0.1;

/// The probe's files in a directory. They are freed with this value, or with the process. `S` is the flag that stops it.
#[derive(Debug)]
pub struct ProbeSession<S> {
    dir: PathBuf,
    pub(super) facts: StorageFacts,
    file: TestFile,
    growing: TestFile,
    pmem: Result<(TestFile, PmemMap), String>,
    engine: Engine,
    poll: bool,
    engine_reason: Option<String>,
    /// Of durable writes; `None`: system calls.
    ring: Option<SyncRing>,
    data: Data,
    /// By [`Places`].
    offsets: [Offsets; 3],
    next_sync: u64,
    pub file_bytes: u64,
    side_bytes: u64,
    /// Most space of all files of the probe, bytes.
    pub(super) needed_bytes: u64,
    stop: S,
}

impl<S: Deref<Target = AtomicBool>> ProbeSession<S> {
    /// Creates the files in `dir`, still empty: call [`ProbeSession::fill`] next. Once `stop` is set, everything ends with
    /// [`ProbeError::Interrupted`].
    pub fn open(dir: &Path, options: &ProbeOptions, stop: S) -> Result<ProbeSession<S>, ProbeError> {
        options.check()?;
        let facts = StorageFacts::read(dir)?;
        if !dir.is_dir() {
            return Err(ProbeError::NotADirectory(dir.to_owned()));
        }
        if facts.read_only {
            return Err(ProbeError::ReadOnly(dir.to_owned()));
        }
        let mapped = facts.kind == Kind::Tmpfs || facts.dax;
        let file_bytes = file_size(dir, &facts, options.size, mapped)?;
        let needed_bytes = needed(file_bytes, mapped);
        let (engine, engine_reason) = engine(options.engine);
        // tmpfs accepts O_DIRECT but uses memory anyway.
        let direct = facts.kind != Kind::Tmpfs;
        let make = || TestFile::create(dir, direct, facts.logical_block_bytes);
        let (file, growing) = (make()?, make()?);
        let side_bytes = side(file_bytes);
        let pmem = if mapped {
            let file = TestFile::create(dir, false, None)?;
            match PmemMap::map(&file.plain, dir, side_bytes as usize) {
                Ok(map) => Ok((file, map)),
                Err(e @ DeviceError::Unsupported { .. }) => Err(e.to_string()),
                Err(e) => return Err(e.into()),
            }
        } else {
            Err(format!("{} is neither mounted with -o dax nor a tmpfs (the stand-in)", facts.storage.filesystem))
        };
        let ring = match engine {
            Engine::IoUring => Some(SyncRing::new().map_err(|cause| DeviceError::io(Step::Ring, dir, cause))?),
            Engine::Threads => None,
        };
        Ok(ProbeSession {
            dir: dir.to_owned(),
            file,
            growing,
            pmem,
            engine,
            poll: false,
            engine_reason,
            ring,
            data: Data::new(options.seed, options.compressibility, options.dedup),
            offsets: [
                Offsets::Random(Random::new(options.seed ^ 0x7265_6164)),
                Offsets::Sequential(AtomicU64::new(0)),
                Offsets::Sequential(AtomicU64::new(0)),
            ],
            next_sync: 0,
            file_bytes,
            side_bytes,
            needed_bytes,
            stop,
            facts,
        })
    }

    /// The I/O engine, and the reason if it is not io_uring.
    pub fn engine(&self) -> (Engine, Option<&str>) {
        (self.engine, self.engine_reason.as_deref())
    }

    /// Polls for completions of transfers from now on, with a whole CPU and without the time to wake up. Threads (see
    /// [`ProbeSession::engine`]) do not.
    pub fn poll(&mut self) {
        self.poll = true;
    }

    /// Whether `O_DIRECT` is used for block sizes that allow it.
    pub fn direct(&self) -> bool {
        self.file.direct
    }

    pub fn alignment(&self) -> u64 {
        self.file.alignment
    }

    pub fn pmem(&self) -> Result<(&'static str, &'static str), &str> {
        match &self.pmem {
            Ok((_, map)) => Ok((map.backing.label(), map.flush.name())),
            Err(reason) => Err(reason),
        }
    }

    /// A path under which other programs of this machine can open the test file while this value lives.
    pub fn peer_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.plain.as_raw_fd()))
    }

    /// Share of the 4 KiB pages at the beginning of the test file that repeat another one there, 0 to 1, by hashing them: what a device that
    /// deduplicates such pages sees.
    pub fn duplicates(&self) -> Result<f64, ProbeError> {
        let mut blocks = IdenticalBlocks::default();
        let read = blocks.add(&self.file.plain, self.file_bytes.min(HASHED_BYTES));
        read.map_err(|cause| DeviceError::io(Step::Read, &self.dir, cause))?;
        Ok(blocks.share().unwrap_or(0.0))
    }

    /// Writes the test file once, so that its blocks exist and reads find data. Stops after `seconds`, but not below
    /// [`SMALLEST_FILE`]. Returns its size. Calls `progress` with the bytes written and the goal.
    pub fn fill(&mut self, seconds: f64, mut progress: impl FnMut(u64, u64)) -> Result<u64, ProbeError> {
        let point = Point { operation: Operation::SequentialWrite, size: MIB, depth: 1 };
        let failed = |e: io::Error, dir: &Path| wrap(SliceError::Io(e), &point, dir);
        match preallocate(&self.file.plain, self.file_bytes) {
            // Filesystems that cannot preallocate allocate on write.
            Err(e) if e.raw_os_error() == Some(nix::libc::EOPNOTSUPP) => {}
            result => result.map_err(|cause| DeviceError::io(Step::Preallocate, &self.dir, cause))?,
        }
        let mut buffer = AlignedBuf::new(MIB as usize)?;
        self.data.fill(&mut buffer);
        let begin = now_ns();
        let mut at = 0;
        while at < self.file_bytes {
            if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(ProbeError::Interrupted);
            }
            if at >= SMALLEST_FILE && (now_ns() - begin) as f64 / 1e9 > seconds {
                break;
            }
            self.data.stamp(&mut buffer);
            self.file.plain.write_all_at(&buffer, at).map_err(|e| failed(e, &self.dir))?;
            at += MIB;
            progress(at, self.file_bytes);
        }
        self.file.plain.set_len(at).and_then(|()| self.file.plain.sync_all()).map_err(|e| failed(e, &self.dir))?;
        self.file_bytes = at;
        Ok(at)
    }

    /// Measures `point` once, for `seconds`, of which a tenth is warm-up. `None` if nothing completed in the window.
    pub fn measure(&mut self, point: &Point, seconds: f64) -> Result<Option<ProbeRow>, ProbeError> {
        let mut tally = Tally::new(self.is_direct(point));
        self.slice(point, seconds, &mut tally)?;
        Ok(tally.row(point))
    }

    /// Writes per second of blocks of `size` bytes at random places of the test file, `depth` in flight, for `seconds`
    /// including a warm-up; `None` if nothing completed. They are on the device when this returns.
    pub fn random_writes_per_s(&mut self, size: u64, depth: u32, seconds: f64) -> Result<Option<f64>, ProbeError> {
        let point = Point { operation: Operation::SequentialWrite, size, depth };
        let mut tally = Tally::new(self.is_direct(&point));
        let written = self.transfer(&point, Direction::Write, Places::Random, slice(seconds), &mut tally);
        let synced = written.and_then(|()| Ok(self.file.plain.sync_data()?));
        synced.map_err(|cut| wrap(cut, &point, &self.dir))?;
        Ok(tally.row(&point).map(|row| row.per_s))
    }

    pub(crate) fn is_direct(&self, point: &Point) -> bool {
        self.file.direct && point.size.is_multiple_of(self.file.alignment) && point.operation != Operation::PmemPersist
    }

    pub(crate) fn points(&self) -> Vec<Point> {
        plan::points(self.pmem.is_ok())
    }

    /// Adds a slice of `seconds`, warm-up included, to `tally`.
    pub(crate) fn slice(&mut self, point: &Point, seconds: f64, tally: &mut Tally) -> Result<(), ProbeError> {
        self.run(point, slice(seconds), tally).map_err(|cut| wrap(cut, point, &self.dir))
    }

    fn run(&mut self, point: &Point, slice: Slice, tally: &mut Tally) -> Result<(), SliceError> {
        use Operation as O;
        match point.operation {
            O::RandomRead => self.transfer(point, Direction::Read, Places::Random, slice, tally),
            O::SequentialRead => self.transfer(point, Direction::Read, Places::NextToRead, slice, tally),
            O::SequentialWrite => {
                self.transfer(point, Direction::Write, Places::NextToWrite, slice, tally)?;
                // Leave no dirty data to the next slice.
                Ok(self.file.plain.sync_data()?)
            }
            O::PmemPersist => match &mut self.pmem {
                Ok((_, map)) => {
                    let mut block = AlignedBuf::new(point.size as usize).map_err(io::Error::other)?;
                    self.data.fill(&mut block);
                    store_slice(map, &block, slice, &self.stop, tally)
                }
                Err(reason) => Err(SliceError::Io(io::Error::new(io::ErrorKind::Unsupported, reason.clone()))),
            },
            O::SyncWriteFdatasyncPrealloc
            | O::SyncWriteFdatasyncGrowing
            | O::SyncWriteDsyncPrealloc
            | O::SyncWriteDsyncGrowing => self.sync_writes(point, slice, tally),
        }
    }

    fn transfer(
        &mut self,
        point: &Point,
        direction: Direction,
        places: Places,
        slice: Slice,
        tally: &mut Tally,
    ) -> Result<(), SliceError> {
        let offsets = &mut self.offsets[places as usize];
        let transfer = Transfer {
            file: &self.file.plain,
            direction,
            size: point.size,
            depth: point.depth,
            blocks: (self.file_bytes / point.size.max(1)).max(1),
            poll: self.poll,
            stop: &self.stop,
        };
        match self.engine {
            Engine::IoUring => transfer.by_ring(offsets, &mut self.data, slice, tally),
            Engine::Threads => transfer.by_threads(offsets, &mut self.data, slice, tally),
        }
    }

    fn sync_writes(&mut self, point: &Point, slice: Slice, tally: &mut Tally) -> Result<(), SliceError> {
        use Operation as O;
        let fdatasync = matches!(point.operation, O::SyncWriteFdatasyncPrealloc | O::SyncWriteFdatasyncGrowing);
        let growing = matches!(point.operation, O::SyncWriteFdatasyncGrowing | O::SyncWriteDsyncGrowing);
        let direct = self.is_direct(point);
        let files = if growing { &self.growing } else { &self.file };
        let file = if fdatasync { &files.plain } else { &files.dsync };
        let place = if growing {
            WriteAt::Growing { limit: self.side_bytes }
        } else {
            // Align again after another block size.
            self.next_sync = self.next_sync.next_multiple_of(point.size.max(1));
            WriteAt::Preallocated { next: &mut self.next_sync, bytes: self.file_bytes }
        };
        let writes = SyncWrites { file, dir: &self.dir, size: point.size, fdatasync, stop: &self.stop };
        if files.direct && !direct {
            set_direct(file, false)?;
        }
        let result = writes.slice(self.ring.as_mut(), place, &mut self.data, slice, tally);
        if files.direct && !direct {
            set_direct(file, true)?;
        }
        result
    }
}

/// Order of the blocks of a transfer.
#[derive(Clone, Copy)]
enum Places {
    Random,
    NextToRead,
    NextToWrite,
}

/// A slice of `seconds`, warm-up included.
fn slice(seconds: f64) -> Slice {
    let ns = seconds * 1e9;
    Slice { warm_ns: (ns * WARM_UP) as u64, window_ns: (ns * (1.0 - WARM_UP)) as u64 }
}

fn wrap(cut: SliceError, point: &Point, dir: &Path) -> ProbeError {
    match cut {
        SliceError::Interrupted => ProbeError::Interrupted,
        SliceError::Threads(count, cause) => ProbeError::Threads { count, cause },
        SliceError::Io(cause) => {
            ProbeError::Operation { operation: point.operation, size: point.size, dir: dir.to_owned(), cause }
        }
    }
}

fn engine(wanted: Option<Engine>) -> (Engine, Option<String>) {
    match (wanted, io_uring_available()) {
        (Some(Engine::Threads), _) => (Engine::Threads, Some("threads were requested".to_owned())),
        (_, Ok(())) => (Engine::IoUring, None),
        (_, Err(reason)) => (Engine::Threads, Some(reason)),
    }
}

/// Size of the growing file and of the mapping for a test file of `bytes`.
fn side(bytes: u64) -> u64 {
    (bytes / 4).min(LARGEST_SIDE)
}

/// Space for all files, plus some for the filesystem's metadata.
fn needed(bytes: u64, mapped: bool) -> u64 {
    bytes + side(bytes) * if mapped { 2 } else { 1 } + 2 * MIB
}

/// Size of the test file, whole MiB.
fn file_size(dir: &Path, facts: &StorageFacts, wanted: Option<u64>, mapped: bool) -> Result<u64, ProbeError> {
    let mut free = facts.storage.free_bytes.unwrap_or(u64::MAX);
    if facts.kind == Kind::Tmpfs {
        free = free.min(available_memory().unwrap_or(u64::MAX));
    }
    let bytes = match wanted {
        Some(bytes) => bytes / MIB * MIB,
        // All files together take at most half of the free space.
        None => (free / 4 / MIB * MIB).clamp(SMALLEST_FILE, DEFAULT_FILE),
    };
    if needed(bytes, mapped) > free {
        return Err(ProbeError::NoSpace {
            dir: dir.to_owned(),
            free,
            needed: needed(bytes, mapped),
            least: SMALLEST_FILE,
        });
    }
    Ok(bytes)
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?.trim().strip_suffix("kB")?.trim();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}
