//! Counts what SQLite does to its log and its database: SQLite itself does not.
//!
//! SQLite reaches files through a *virtual file system*, a table of functions (sqlite.org/vfs.html).
//! Ours is the default one, but for files that it opens as write-ahead log or as database: of those, reads,
//! writes and syncs are counted, and timed where they may wait for a device, on their way to the same
//! functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use super::data_counters::DataCounters;
use crate::clock;
use crate::error::TargetError;

/// What was done to the logs of one target's databases. Only the one writer that SQLite has at a
/// time adds to it.
#[derive(Debug, Default)]
pub(super) struct LogCounters {
    /// Write calls.
    pub(super) writes: AtomicU64,
    /// Bytes written.
    pub(super) bytes: AtomicU64,
    /// Pages written (a frame is its header and a page, each a write of its own).
    pub(super) pages: AtomicU64,
    /// Syncs.
    pub(super) syncs: AtomicU64,
    /// Time spent in syncs, ns.
    pub(super) sync_ns: AtomicU64,
    /// Time spent in writes, ns.
    pub(super) write_ns: AtomicU64,
    /// What was done to the databases.
    pub(super) data: DataCounters,
}

/// Smallest page that SQLite has, bytes; the headers of log and frames are smaller.
const SMALLEST_PAGE: c_int = 512;

/// Our virtual file system: SQLite sees `base`, we find the rest behind it.
#[repr(C)]
struct Vfs {
    base: ffi::sqlite3_vfs,
    real: *mut ffi::sqlite3_vfs,
    log: OnceLock<Table>,
    database: OnceLock<Table>,
    counters: Arc<LogCounters>,
    name: CString,
}

/// The functions of a file: SQLite sees `ours`, which are `real` but for read, write and sync.
#[repr(C)]
struct Table {
    ours: ffi::sqlite3_io_methods,
    real: *const ffi::sqlite3_io_methods,
    counters: Arc<LogCounters>,
}

// SAFETY: the pointer leads to a constant table of the SQLite library, which lives as long as the process.
#[allow(unsafe_code)]
unsafe impl Send for Table {}
// SAFETY: as above; nothing is written through it.
#[allow(unsafe_code)]
unsafe impl Sync for Table {}

/// Makes a virtual file system whose logs are counted: its name and its counters. It stays registered
/// until the process ends, because connections may outlive the target.
#[allow(unsafe_code)]
pub(super) fn register() -> Result<(&'static CStr, Arc<LogCounters>), TargetError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let failed = |what: &str| TargetError::Local(format!("SQLite's log cannot be counted: {what}; please report it"));
    let name = CString::new(format!("loadline-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
        .map_err(|_| failed("its name is not valid"))?;
    let counters = Arc::new(LogCounters::default());
    // SAFETY: the default file system is there from the library's initialisation, which the call
    // itself brings about, until the process ends.
    let real = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    if real.is_null() {
        return Err(failed("there is no file system"));
    }
    // SAFETY: `real` is a valid, constant structure; a copy of it calls the same functions, none of
    // which looks at the structure besides its `mxPathname` and `pAppData`, which are copied.
    let base = unsafe { std::ptr::read(real) };
    let vfs = Box::leak(Box::new(Vfs {
        base,
        real,
        log: OnceLock::new(),
        database: OnceLock::new(),
        counters: Arc::clone(&counters),
        name,
    }));
    vfs.base.pNext = std::ptr::null_mut();
    vfs.base.zName = vfs.name.as_ptr();
    vfs.base.xOpen = Some(open);
    let vfs: *mut Vfs = vfs;
    // SAFETY: the structure is never moved or freed. `base` is its first field (`repr(C)`), so that
    // SQLite's pointer to it is a pointer to the whole.
    let (code, name) = unsafe { (ffi::sqlite3_vfs_register(vfs.cast(), 0), (*vfs).name.as_c_str()) };
    if code == ffi::SQLITE_OK { Ok((name, counters)) } else { Err(failed("it cannot be registered")) }
}

/// Opens a file; a log and a database get the functions that count.
#[allow(unsafe_code)]
unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls this with the structure that was registered, which is the first field of
    // a `Vfs`, and with arguments that are valid for the real function.
    unsafe {
        let vfs: *mut Vfs = vfs.cast();
        let real = (*vfs).real;
        let Some(real_open) = (*real).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = real_open(real, name, file, flags, out_flags);
        let methods = (*file).pMethods;
        let (is_log, is_database) = (flags & ffi::SQLITE_OPEN_WAL != 0, flags & ffi::SQLITE_OPEN_MAIN_DB != 0);
        if code == ffi::SQLITE_OK && (is_log || is_database) && !methods.is_null() {
            let table = if is_log { &(*vfs).log } else { &(*vfs).database };
            let table = table.get_or_init(|| {
                let mut ours = std::ptr::read(methods);
                if is_database {
                    ours.xRead = Some(read);
                }
                ours.xWrite = Some(if is_log { write } else { write_database });
                ours.xSync = Some(if is_log { sync } else { sync_database });
                Table { ours, real: methods, counters: Arc::clone(&(*vfs).counters) }
            });
            // Always the same table; a file with another one is left as it is.
            if table.real == methods {
                (*file).pMethods = &raw const table.ours;
            }
        }
        code
    }
}

/// The table behind a file that [`open`] has given ours.
///
/// # Safety
/// `file` must have been opened by [`open`] as a log or a database and not been closed.
#[allow(unsafe_code)]
unsafe fn table<'a>(file: *mut ffi::sqlite3_file) -> &'a Table {
    // SAFETY: the file's functions are `Table::ours`, the first field of a table that lives as long as
    // the process.
    unsafe { &*(*file).pMethods.cast::<Table>() }
}

#[allow(unsafe_code)]
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this on a log that is open, with arguments valid for the real function.
    unsafe {
        let table = table(file);
        let counters = &table.counters;
        counters.writes.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(u64::from(amount.unsigned_abs()), Ordering::Relaxed);
        counters.pages.fetch_add(u64::from(amount >= SMALLEST_PAGE), Ordering::Relaxed);
        let begin = clock::now_ns();
        let code = (*table.real).xWrite.map_or(ffi::SQLITE_IOERR_WRITE, |real| real(file, data, amount, offset));
        counters.write_ns.fetch_add(clock::now_ns().saturating_sub(begin), Ordering::Relaxed);
        code
    }
}

/// Reads from a database: a page, or a header, which is no read of data.
#[allow(unsafe_code)]
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this on a file that is open, with arguments valid for the real function.
    unsafe {
        let table = table(file);
        let begin = clock::now_ns();
        let code = (*table.real).xRead.map_or(ffi::SQLITE_IOERR_READ, |real| real(file, data, amount, offset));
        if amount >= SMALLEST_PAGE {
            let counters = &table.counters.data;
            counters.read_ns.fetch_add(clock::now_ns().saturating_sub(begin), Ordering::Relaxed);
            counters.reads.fetch_add(1, Ordering::Relaxed);
            counters.read_bytes.fetch_add(u64::from(amount.unsigned_abs()), Ordering::Relaxed);
        }
        code
    }
}

#[allow(unsafe_code)]
unsafe extern "C" fn write_database(
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls this on a database that is open, with arguments valid for the real function.
    unsafe {
        let table = table(file);
        table.counters.data.writes.fetch_add(1, Ordering::Relaxed);
        table.counters.data.write_bytes.fetch_add(u64::from(amount.unsigned_abs()), Ordering::Relaxed);
        (*table.real).xWrite.map_or(ffi::SQLITE_IOERR_WRITE, |real| real(file, data, amount, offset))
    }
}

#[allow(unsafe_code)]
unsafe extern "C" fn sync_database(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for `write_database`.
    unsafe {
        let table = table(file);
        table.counters.data.checkpoints.fetch_add(1, Ordering::Relaxed);
        (*table.real).xSync.map_or(ffi::SQLITE_IOERR_FSYNC, |real| real(file, flags))
    }
}

#[allow(unsafe_code)]
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let table = table(file);
        let begin = clock::now_ns();
        let code = (*table.real).xSync.map_or(ffi::SQLITE_IOERR_FSYNC, |real| real(file, flags));
        table.counters.sync_ns.fetch_add(clock::now_ns().saturating_sub(begin), Ordering::Relaxed);
        table.counters.syncs.fetch_add(1, Ordering::Relaxed);
        code
    }
}
