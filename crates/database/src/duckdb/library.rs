//! DuckDB's C library, opened while loadline runs: nothing of DuckDB is compiled or linked.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::Library as Raw;

use crate::embedded::calls;
use crate::embedded::library::{Loaded, Places};
use crate::error::TargetError;

static PLACES: Places = Places {
    product: "DuckDB",
    name: "libduckdb.so",
    variable: "LOADLINE_DUCKDB",
    folders: &["/usr/local/lib", "/opt/duckdb", "/opt/duckdb/lib"],
    packages: "it is in the archives libduckdb-linux-*.zip of DuckDB's releases on GitHub, in the npm packages \
        @duckdb/node-bindings-linux-x64 and -arm64, and in conda-forge's libduckdb; give its path with ?lib=PATH or in LOADLINE_DUCKDB",
};
/// Versions whose C functions, files and log loadline knows.
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (1, 4)..=(2, u32::MAX);

pub(super) type Handle = *mut c_void;
pub(super) const DONE: c_int = 0;

/// `duckdb_result`: freed by `duckdb_destroy_result`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawResult([usize; 6]);

impl RawResult {
    pub(super) const EMPTY: RawResult = RawResult([0; 6]);
}

/// `duckdb_string_t`: up to twelve bytes are inside, of more only the address.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawString {
    pub(super) length: u32,
    _prefix: [u8; 4],
    pub(super) pointer: *const u8,
}

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $out:ty)?;)*) => {
        /// The functions of the library that loadline calls, without the prefix `duckdb_`.
        pub(super) struct Functions { $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $out)?,)* }

        impl Functions {
            /// Finds all; else the name of the one that is missing.
            fn find(library: &Raw) -> Result<Functions, &'static str> {
                Ok(Functions { $($name: {
                    const NAME: &str = concat!("duckdb_", stringify!($name));
                    // SAFETY: the type is that of `duckdb.h`, which is the same in all versions of `VERSIONS`.
                    *unsafe { library.get(NAME.as_bytes()) }.map_err(|_| NAME)?
                },)* })
            }
        }
    };
}

functions! {
    library_version: fn() -> *const c_char;
    create_config: fn(*mut Handle) -> c_int;
    set_config: fn(Handle, *const c_char, *const c_char) -> c_int;
    destroy_config: fn(*mut Handle);
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> c_int;
    close: fn(*mut Handle);
    connect: fn(Handle, *mut Handle) -> c_int;
    disconnect: fn(*mut Handle);
    interrupt: fn(Handle);
    query: fn(Handle, *const c_char, *mut RawResult) -> c_int;
    destroy_result: fn(*mut RawResult);
    result_error: fn(*mut RawResult) -> *const c_char;
    result_error_type: fn(*mut RawResult) -> c_int;
    rows_changed: fn(*mut RawResult) -> u64;
    column_count: fn(*mut RawResult) -> u64;
    fetch_chunk: fn(RawResult) -> Handle;
    prepare: fn(Handle, *const c_char, *mut Handle) -> c_int;
    prepare_error: fn(Handle) -> *const c_char;
    destroy_prepare: fn(*mut Handle);
    bind_int64: fn(Handle, u64, i64) -> c_int;
    bind_blob: fn(Handle, u64, *const c_void, u64) -> c_int;
    execute_prepared: fn(Handle, *mut RawResult) -> c_int;
    destroy_data_chunk: fn(*mut Handle);
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    data_chunk_get_size: fn(Handle) -> u64;
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    appender_create: fn(Handle, *const c_char, *const c_char, *mut Handle) -> c_int;
    append_int64: fn(Handle, i64) -> c_int;
    append_varchar_length: fn(Handle, *const c_char, u64) -> c_int;
    append_blob: fn(Handle, *const c_void, u64) -> c_int;
    appender_end_row: fn(Handle) -> c_int;
    appender_flush: fn(Handle) -> c_int;
    appender_destroy: fn(*mut Handle);
    appender_error: fn(Handle) -> *const c_char;
    free: fn(*mut c_void);
}

pub(super) struct Library {
    pub(super) path: PathBuf,
    /// Version as it states it, without the `v`: `1.5.6`.
    pub(super) version: String,
    pub(super) call: Functions,
}

static LOADED: Loaded<Library> = Loaded::none();

impl Library {
    /// Opens the library at `given`, or where [`PLACES`] says.
    pub(super) fn load(given: Option<&Path>) -> Result<&'static Library, TargetError> {
        LOADED.load(&PLACES, given, Library::known)
    }

    /// The functions of a library that was opened at `path`, and counts its calls.
    fn known(path: &Path, raw: Raw) -> Result<(PathBuf, Library), TargetError> {
        let shown = path.display();
        let call = Functions::find(&raw).map_err(|name| {
            TargetError::Refused(format!("{shown} has no function {name}: it is not {} of 1.4 to 2.x", PLACES.name))
        })?;
        // SAFETY: the function has no arguments and returns a constant text.
        let version = unsafe { CStr::from_ptr((call.library_version)()) }.to_string_lossy().into_owned();
        let version = version.trim_start_matches('v').to_owned();
        if !number(&version).is_some_and(|number| VERSIONS.contains(&number)) {
            return Err(TargetError::Refused(format!("{shown} is DuckDB {version}: loadline knows 1.4 to 2.x")));
        }
        let path = calls::redirect(raw).map_err(|why| {
            TargetError::Refused(format!("the file operations of {shown} (DuckDB {version}) cannot be counted: {why}"))
        })?;
        Ok((path.clone(), Library { path, version, call }))
    }
}

/// Major and minor number of a version.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

pub(super) fn c_text(text: &str) -> Result<CString, TargetError> {
    CString::new(text).map_err(|_| TargetError::Usage(format!("'{}' contains a zero byte", text.replace('\0', "\\0"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_loadline_knows() {
        let known = |version: &str| number(version).is_some_and(|number| VERSIONS.contains(&number));
        assert!(known("1.4.0") && known("1.5.6") && known("2.0.0") && known("1.5.0-dev12"));
        assert!(!known("1.3.2") && !known("0.10.2") && !known("3.0.0") && !known("") && !known("main"));
    }
}
