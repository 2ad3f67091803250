//! RocksDB's write-ahead log, as Debian builds it: every write synced, group commit by RocksDB.
//!
//! Through its C API and not the crate `rocksdb`: that crate generates its bindings with libclang
//! and needs environment variables not to compile RocksDB itself.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::harness::{Contender, Job};
use crate::arena::Outcome;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> *mut c_void;
    fn rocksdb_options_destroy(options: *mut c_void);
    fn rocksdb_options_set_create_if_missing(options: *mut c_void, on: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: *mut c_void, bytes: usize);
    fn rocksdb_options_set_compression(options: *mut c_void, kind: c_int);
    fn rocksdb_open(options: *const c_void, name: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn rocksdb_close(db: *mut c_void);
    fn rocksdb_writeoptions_create() -> *mut c_void;
    fn rocksdb_writeoptions_destroy(options: *mut c_void);
    fn rocksdb_writeoptions_set_sync(options: *mut c_void, on: c_uchar);
    fn rocksdb_put(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_free(memory: *mut c_void);
}

/// An open database and how it writes.
struct Db {
    db: *mut c_void,
    write: *mut c_void,
}

// SAFETY: RocksDB's DB and its write options, once set, may be used from any thread at once.
unsafe impl Send for Db {}
// SAFETY: as above.
unsafe impl Sync for Db {}

/// Turns RocksDB's error, if there is one, into ours.
fn check(error: *mut c_char) -> Outcome<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB's errors are C strings from malloc, handed over to the caller.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; nothing refers to it any more.
    unsafe { rocksdb_free(error.cast()) };
    Err(text.into())
}

impl Db {
    fn open(dir: &Path) -> Outcome<Db> {
        let name = CString::new(dir.as_os_str().as_bytes())?;
        let mut error = null_mut();
        // SAFETY: the options are made here, used and destroyed; the name is a C string.
        let db = unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            // Nothing is flushed to tables within a run: it is the log that is compared.
            rocksdb_options_set_write_buffer_size(options, 2 << 30);
            rocksdb_options_set_compression(options, 0);
            let db = rocksdb_open(options, name.as_ptr(), &raw mut error);
            rocksdb_options_destroy(options);
            db
        };
        check(error)?;
        // SAFETY: made here, destroyed in `drop`.
        let write = unsafe {
            let write = rocksdb_writeoptions_create();
            rocksdb_writeoptions_set_sync(write, 1);
            write
        };
        Ok(Db { db, write })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let mut error = null_mut();
        // SAFETY: the database is open until `drop`; key and value live for the call.
        unsafe {
            rocksdb_put(
                self.db,
                self.write,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut error,
            );
        }
        check(error)
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: both are from `open` and used by nobody any more.
        unsafe {
            rocksdb_writeoptions_destroy(self.write);
            rocksdb_close(self.db);
        }
    }
}

/// An open database.
pub(super) struct RocksDb(Arc<Db>);

impl RocksDb {
    pub(super) fn open(dir: &Path) -> Outcome<RocksDb> {
        Ok(RocksDb(Arc::new(Db::open(dir)?)))
    }
}

impl Contender for RocksDb {
    fn jobs(&self, count: u32) -> Outcome<Vec<Job>> {
        let job = |job: u32| {
            let (db, key) = (Arc::clone(&self.0), u64::from(job).to_be_bytes());
            Box::new(move |record: &[u8]| db.put(&key, record)) as Job
        };
        Ok((0..count).map(job).collect())
    }
}
