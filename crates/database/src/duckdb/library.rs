//! DuckDB's C library, opened while loadline runs: nothing of DuckDB is compiled or linked.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library as Raw;

use super::calls;
use crate::error::TargetError;

/// Name in the folders that the dynamic linker searches, and folders of installations by hand, which it need not search.
const NAME: &str = "libduckdb.so";
const FOLDERS: [&str; 3] = ["/usr/local/lib", "/opt/duckdb", "/opt/duckdb/lib"];
/// Environment variable with its path.
const VARIABLE: &str = "LOADLINE_DUCKDB";
const PACKAGES: &str = "it is in the archives libduckdb-linux-*.zip of DuckDB's releases on GitHub, in the npm packages \
    @duckdb/node-bindings-linux-x64 and -arm64, and in conda-forge's libduckdb; give its path with ?lib=PATH or in LOADLINE_DUCKDB";
/// Versions whose C functions, files and log loadline knows.
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (1, 4)..=(2, u32::MAX);

/// A pointer to one of DuckDB's objects.
pub(super) type Handle = *mut c_void;
/// `duckdb_state` of success.
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

/// The one library in this process. Its threads and its C++ runtime's symbols stay until the process ends, so it is never closed, and no
/// second one is opened.
static LOADED: Mutex<Option<&'static Library>> = Mutex::new(None);

impl Library {
    /// Opens the library at `given`, at [`VARIABLE`], or where the dynamic linker and installations by hand have it.
    ///
    /// # Errors
    /// [`TargetError::Unreachable`] if there is none that can be opened: why, and where packages of it are. [`TargetError::Refused`] if it
    /// is not one that loadline knows.
    pub(super) fn load(given: Option<&Path>) -> Result<&'static Library, TargetError> {
        let of_variable = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let named = given.map(Path::to_owned).or_else(of_variable);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = *loaded {
            return match named.filter(|other| !same_file(other, &library.path)) {
                None => Ok(library),
                Some(other) => Err(TargetError::Usage(format!(
                    "this process has opened the library {} already, and cannot open {} as well: compare two of them in two runs",
                    library.path.display(),
                    other.display()
                ))),
            };
        }
        let library: &'static Library = Box::leak(Box::new(Library::open(named)?));
        *loaded = Some(library);
        Ok(library)
    }

    fn open(named: Option<PathBuf>) -> Result<Library, TargetError> {
        let by_hand = FOLDERS.iter().map(|folder| Path::new(folder).join(NAME));
        let usual = std::iter::once(PathBuf::from(NAME)).chain(by_hand);
        let is_named = named.is_some();
        let paths: Vec<PathBuf> = named.map_or_else(|| usual.collect(), |path| vec![path]);
        let mut failed = Vec::new();
        for path in paths {
            // SAFETY: the user named this file, or installed it: its initialisers are those of a database.
            match unsafe { Raw::open(Some(&path), calls::FLAGS) } {
                Ok(raw) => return Library::known(&path, raw),
                // That a usual folder has none is no failure of its own.
                Err(_) if !is_named && !path.exists() => {}
                Err(e) => {
                    let said = || std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
                    failed.push(of_another_machine(&path).unwrap_or_else(said));
                }
            }
        }
        Err(TargetError::Unreachable(match failed.join("; ") {
            why if why.is_empty() => format!("DuckDB's library {NAME} was not found: {PACKAGES}"),
            why => format!("DuckDB's library cannot be opened: {why}; {PACKAGES}"),
        }))
    }

    /// The functions of a library that was opened at `path`, and counts its calls.
    fn known(path: &Path, raw: Raw) -> Result<Library, TargetError> {
        let shown = path.display();
        let call = Functions::find(&raw).map_err(|name| {
            TargetError::Refused(format!("{shown} has no function {name}: it is not {NAME} of 1.4 to 2.x"))
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
        Ok(Library { path, version, call })
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// A library of another architecture: the dynamic linker says that there is no such file.
fn of_another_machine(path: &Path) -> Option<String> {
    let mut head = [0; 20];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    // `e_machine` of elf(5).
    let name = |machine: u8| match machine {
        62 => "x86_64".to_owned(),
        183 => "aarch64".to_owned(),
        other => format!("machine {other} of elf.h"),
    };
    let (machine, own) = (name(head[18]), std::env::consts::ARCH);
    let is_other = head.starts_with(b"\x7fELF") && machine != own;
    is_other.then(|| format!("{} is for {machine}, and this program for {own}", path.display()))
}

/// Major and minor number of a version.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// `text` for a C function.
pub(super) fn c_text(text: &str) -> Result<CString, TargetError> {
    CString::new(text).map_err(|_| TargetError::Usage(format!("'{}' contains a zero byte", text.replace('\0', "\\0"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_machine_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lib.so");
        for (machine, named) in [(183_u8, "aarch64"), (62, "x86_64"), (8, "machine 8")] {
            let mut head = b"\x7fELF".to_vec();
            head.resize(64, machine);
            std::fs::write(&path, head).unwrap();
            let why = of_another_machine(&path);
            assert_eq!(why.is_none(), named == std::env::consts::ARCH, "{why:?}");
            assert!(why.is_none_or(|why| why.contains(named)), "{named}");
        }
    }

    #[test]
    fn versions_are_those_that_loadline_knows() {
        let known = |version: &str| number(version).is_some_and(|number| VERSIONS.contains(&number));
        assert!(known("1.4.0") && known("1.5.6") && known("2.0.0") && known("1.5.0-dev12"));
        assert!(!known("1.3.2") && !known("0.10.2") && !known("3.0.0") && !known("") && !known("main"));
    }
}
