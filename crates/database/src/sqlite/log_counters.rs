//! Counts file operations on the log and the database, because SQLite has no such counters.
//!
//! SQLite accesses files through a *virtual file system*, a table of functions (sqlite.org/vfs.html). Ours calls the
//! default one, and counts reads, writes and syncs of the write-ahead log and the database. Operations that may wait
//! for a device are also timed.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use crate::embedded::counters::{LogCounters, timed};
use crate::error::TargetError;

/// SQLite's minimum page size, bytes; headers are smaller.
const MIN_PAGE_BYTES: c_int = 512;

/// Our virtual file system. SQLite sees only `base`.
#[repr(C)]
struct Vfs {
    base: ffi::sqlite3_vfs,
    real: *mut ffi::sqlite3_vfs,
    /// Of the database, and of its log.
    files: [OnceLock<FileMethods>; 2],
    counters: Arc<LogCounters>,
    name: CString,
}

/// The functions of a file. SQLite sees `ours`, which differ from `real` in read, write and sync.
#[repr(C)]
struct FileMethods {
    ours: ffi::sqlite3_io_methods,
    real: *const ffi::sqlite3_io_methods,
    /// Of the log, not of the database.
    is_log: bool,
    counters: Arc<LogCounters>,
}

// SAFETY: the pointer refers to a constant table of the SQLite library, which lives as long as the process.
#[allow(unsafe_code)]
unsafe impl Send for FileMethods {}
// SAFETY: as above; nothing is written through it.
#[allow(unsafe_code)]
unsafe impl Sync for FileMethods {}

/// Registers a virtual file system; returns its name and its counters. It stays registered until the process ends,
/// because connections may outlive the target.
#[allow(unsafe_code)]
pub(super) fn register() -> Result<(&'static CStr, Arc<LogCounters>), TargetError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let failed = |what: &str| TargetError::Local(format!("SQLite's log cannot be counted: {what}; please report it"));
    let name = CString::new(format!("loadline-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
        .map_err(|_| failed("its name is not valid"))?;
    let counters = Arc::new(LogCounters::default());
    // SAFETY: the call initialises the library; the default file system then exists until the process ends.
    let real = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    if real.is_null() {
        return Err(failed("there is no file system"));
    }
    // SAFETY: `real` is a valid, constant structure. A copy of it calls the same functions, which use only its
    // `mxPathname` and `pAppData`; these are copied.
    let base = unsafe { std::ptr::read(real) };
    let vfs = Box::leak(Box::new(Vfs {
        base,
        real,
        files: [const { OnceLock::new() }; 2],
        counters: Arc::clone(&counters),
        name,
    }));
    vfs.base.pNext = std::ptr::null_mut();
    vfs.base.zName = vfs.name.as_ptr();
    vfs.base.xOpen = Some(open);
    let vfs: *mut Vfs = vfs;
    // SAFETY: the structure is never moved or freed. `base` is its first field (`repr(C)`), so SQLite's pointer to it
    // is also a pointer to the structure.
    let (code, name) = unsafe { (ffi::sqlite3_vfs_register(vfs.cast(), 0), (*vfs).name.as_c_str()) };
    if code == ffi::SQLITE_OK { Ok((name, counters)) } else { Err(failed("it cannot be registered")) }
}

/// Opens a file; logs and databases get the counting functions.
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
            let table = (&(*vfs).files)[usize::from(is_log)].get_or_init(|| {
                let mut ours = std::ptr::read(methods);
                ours.xRead = Some(read);
                ours.xWrite = Some(write);
                ours.xSync = Some(sync);
                FileMethods { ours, real: methods, is_log, counters: Arc::clone(&(*vfs).counters) }
            });
            // All files have the same table; one with another table is left unchanged.
            if table.real == methods {
                (*file).pMethods = &raw const table.ours;
            }
        }
        code
    }
}

/// The functions of a file that [`open`] opened.
///
/// # Safety
/// `file` must have been opened by [`open`] as a log or a database, and must not be closed.
#[allow(unsafe_code)]
unsafe fn table<'a>(file: *mut ffi::sqlite3_file) -> &'a FileMethods {
    // SAFETY: the file's functions are `FileMethods::ours`, the first field of a structure that lives as long as the
    // process.
    unsafe { &*(*file).pMethods.cast::<FileMethods>() }
}

#[allow(unsafe_code)]
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, data: *const c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls this on a file that is open, with arguments valid for the real function.
    unsafe {
        let FileMethods { real, is_log, counters, .. } = table(file);
        let of_data = &counters.data;
        let (writes, bytes) =
            if *is_log { (&counters.writes, &counters.bytes) } else { (&of_data.writes, &of_data.write_bytes) };
        writes.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(u64::from(amount.unsigned_abs()), Ordering::Relaxed);
        if *is_log {
            counters.pages.fetch_add(u64::from(amount >= MIN_PAGE_BYTES), Ordering::Relaxed);
            if offset == 0 {
                // Its header: the log starts again.
                counters.checkpoint_at.store(0, Ordering::Relaxed);
                counters.restarts.fetch_add(1, Ordering::Relaxed);
            }
        }
        let log = is_log.then_some(&counters.write_ns);
        let call = || (**real).xWrite.map_or(ffi::SQLITE_IOERR_WRITE, |real| real(file, data, amount, offset));
        counters.timed_write(log, call)
    }
}

/// Reads from a file; only pages of a database are counted.
#[allow(unsafe_code)]
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, data: *mut c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let FileMethods { real, is_log, counters, .. } = table(file);
        let call = || (**real).xRead.map_or(ffi::SQLITE_IOERR_READ, |real| real(file, data, amount, offset));
        if *is_log || amount < MIN_PAGE_BYTES {
            return call();
        }
        let code = timed(&counters.data.read_ns, call);
        counters.data.reads.fetch_add(1, Ordering::Relaxed);
        code
    }
}

#[allow(unsafe_code)]
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let FileMethods { real, is_log, counters, .. } = table(file);
        let call = || (**real).xSync.map_or(ffi::SQLITE_IOERR_FSYNC, |real| real(file, flags));
        let code = counters.timed_write(is_log.then_some(&counters.sync_ns), call);
        counters.syncs.fetch_add((*is_log).into(), Ordering::Relaxed);
        code
    }
}
