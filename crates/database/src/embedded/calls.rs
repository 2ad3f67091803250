//! Counts and times the calls that the library of a database makes on its files, if the database itself does not.
//!
//! The library calls `write`, `pwrite`, `pread`, `fsync`, `open` and `close` through a table of addresses that the dynamic linker fills
//! (its global offset table). [`redirect`] puts functions of this file there, which call libc's. Other libraries and loadline itself
//! have tables of their own and are not counted.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use libloading::os::unix::Library as Raw;
use loadline_storage::now_ns;
use nix::libc;

use super::counters::LogCounters;

/// How the library is opened: all addresses at once, and its symbols for itself.
pub(super) const FLAGS: c_int = libc::RTLD_NOW | libc::RTLD_LOCAL;

pub(crate) struct Layout {
    /// Suffixes of the database's name in the names of its logs.
    pub(crate) log: &'static str,
    /// Size of its blocks, bytes.
    pub(crate) block_bytes: u64,
    /// Size of the header that a checkpoint writes at its end, bytes, and where.
    pub(crate) header_bytes: u64,
    pub(crate) headers_at: &'static [i64],
}

struct Watched {
    database: PathBuf,
    layout: &'static Layout,
    is_log: bool,
    counters: Arc<LogCounters>,
    /// Whether the library has opened it.
    seen: AtomicBool,
    /// Whether a header was written that is not synced yet.
    header: AtomicBool,
}

/// Files that are counted, by the paths with which the library opens them. They stay until the process ends, because a call may be
/// under way; there are two for each database that a run opens.
static WATCHED: Mutex<Vec<&'static Watched>> = Mutex::new(Vec::new());
/// Open files that are counted, by their descriptors.
static OPEN: [AtomicPtr<Watched>; 65_536] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 65_536];

/// Counts the calls on `database` and its logs from now on.
pub(crate) fn watch(database: &Path, layout: &'static Layout, counters: &Arc<LogCounters>) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.retain(|file| file.database != database);
    for is_log in [false, true] {
        let (database, counters) = (database.to_owned(), Arc::clone(counters));
        let [seen, header] = [const { AtomicBool::new(false) }; 2];
        watched.push(Box::leak(Box::new(Watched { database, layout, is_log, counters, seen, header })));
    }
}

pub(crate) fn sees(database: &Path) -> bool {
    let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.iter().any(|file| !file.is_log && file.database == database && file.seen.load(Ordering::Relaxed))
}

impl Watched {
    fn is_at(&self, path: &[u8]) -> bool {
        match path.strip_prefix(self.database.as_os_str().as_bytes()) {
            Some(rest) if self.is_log => rest.starts_with(self.layout.log.as_bytes()),
            Some(rest) => rest.is_empty(),
            None => false,
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

fn watched_at(descriptor: c_int) -> Option<&'static Watched> {
    let slot = OPEN.get(usize::try_from(descriptor).ok()?)?;
    // SAFETY: only addresses of `WATCHED` are put there, which live as long as the process.
    unsafe { slot.load(Ordering::Acquire).as_ref() }
}

fn set(descriptor: c_int, watched: Option<&'static Watched>) {
    if let Some(slot) = usize::try_from(descriptor).ok().and_then(|n| OPEN.get(n)) {
        slot.store(watched.map_or(std::ptr::null_mut(), |w| std::ptr::from_ref(w).cast_mut()), Ordering::Release);
    }
}

// SAFETY of all: the library calls them with the arguments of the function of libc that they replace, and they pass them on.

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: see above; the path ends with a zero byte.
    let (bytes, descriptor) = unsafe { (CStr::from_ptr(path).to_bytes(), libc::open(path, flags, mode)) };
    if descriptor >= 0 {
        let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = watched.iter().rev().find(|file| file.is_at(bytes)).copied();
        set(descriptor, found);
        if let Some(file) = found {
            file.seen.store(true, Ordering::Relaxed);
            // A checkpoint removes the log, and the next commit makes a new one.
            add(&file.counters.restarts, (file.is_log && flags & libc::O_CREAT != 0).into());
        }
    }
    descriptor
}

unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    set(descriptor, None);
    // SAFETY: see above.
    unsafe { libc::close(descriptor) }
}

unsafe extern "C" fn write(descriptor: c_int, data: *const c_void, bytes: usize) -> isize {
    // SAFETY: see above.
    written(descriptor, None, || unsafe { libc::write(descriptor, data, bytes) })
}

unsafe extern "C" fn pwrite(descriptor: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    // SAFETY: see above.
    written(descriptor, Some(offset), || unsafe { libc::pwrite(descriptor, data, bytes, offset) })
}

fn written(descriptor: c_int, offset: Option<i64>, call: impl FnOnce() -> isize) -> isize {
    let Some(file) = watched_at(descriptor) else { return call() };
    let done = file.counters.timed_write(file.is_log.then_some(&file.counters.write_ns), call);
    let Ok(bytes) = u64::try_from(done) else { return done };
    let LogCounters { data, .. } = &*file.counters;
    if file.is_log {
        add(&file.counters.writes, 1);
        add(&file.counters.bytes, bytes);
        return done;
    }
    let Layout { block_bytes, header_bytes, headers_at, .. } = file.layout;
    add(&data.writes, bytes / block_bytes);
    add(&data.write_bytes, bytes);
    if bytes == *header_bytes && offset.is_some_and(|at| headers_at.contains(&at)) {
        add(&data.checkpoints, 1);
        file.header.store(true, Ordering::Relaxed);
    }
    done
}

unsafe extern "C" fn pread(descriptor: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize {
    // SAFETY: see above.
    let call = || unsafe { libc::pread(descriptor, data, bytes, offset) };
    let Some(file) = watched_at(descriptor).filter(|file| !file.is_log) else { return call() };
    let begin = now_ns();
    let done = call();
    let blocks = u64::try_from(done).unwrap_or(0) / file.layout.block_bytes;
    if blocks > 0 {
        let counters = &file.counters.data;
        add(&counters.read_ns, now_ns().saturating_sub(begin));
        add(&counters.reads, 1);
        add(&counters.misses, blocks);
    }
    done
}

unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    // SAFETY: see above.
    unsafe { synced(descriptor, || libc::fsync(descriptor)) }
}

unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    // SAFETY: see above.
    unsafe { synced(descriptor, || libc::fdatasync(descriptor)) }
}

fn synced(descriptor: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let Some(file) = watched_at(descriptor) else { return call() };
    // A commit that starts a checkpoint may write no log: the header makes it durable.
    let makes_durable = file.is_log || file.header.swap(false, Ordering::Relaxed);
    let begin = now_ns();
    let done = if file.is_log { call() } else { file.counters.timed_write(None, call) };
    // One that fails makes nothing durable.
    if makes_durable && done == 0 {
        add(&file.counters.syncs, 1);
        add(&file.counters.sync_ns, now_ns().saturating_sub(begin));
    }
    done
}

fn replacements() -> [(&'static str, *const c_void); 10] {
    [
        ("open", open as *const c_void),
        ("open64", open as *const c_void),
        ("close", close as *const c_void),
        ("write", write as *const c_void),
        ("pwrite", pwrite as *const c_void),
        ("pwrite64", pwrite as *const c_void),
        ("pread", pread as *const c_void),
        ("pread64", pread as *const c_void),
        ("fsync", fsync as *const c_void),
        ("fdatasync", fdatasync as *const c_void),
    ]
}

/// Calls without which nothing would be counted; of those that follow each other one is enough.
const NEEDED: [&[&str]; 4] = [&["open", "open64"], &["write"], &["pwrite", "pwrite64"], &["fsync", "fdatasync"]];

/// `struct link_map` (link.h), its public part.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const [usize; 2],
}

/// `Elf64_Rela` (elf.h).
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    _addend: i64,
}

/// `Elf64_Sym` (elf.h).
#[repr(C)]
struct Symbol {
    name: u32,
    _rest: [u8; 20],
}

/// Types of relocations that hold the address of a function: GLOB_DAT and JUMP_SLOT.
const ADDRESSES: [u32; 2] = if cfg!(target_arch = "aarch64") { [1025, 1026] } else { [6, 7] };

/// Redirects the library's calls to the functions of this file, and returns the path from which it was loaded. It is never closed.
pub(crate) fn redirect(library: Raw) -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err("that is made for Linux with glibc on x86_64 and aarch64".to_owned());
    }
    let handle = library.into_raw();
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: RTLD_DI_LINKMAP (2, dlfcn.h) stores the address of the library's `struct link_map`.
    if unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) } != 0 || map.is_null() {
        return Err("dlinfo(3) does not know it".to_owned());
    }
    // SAFETY: the dynamic linker's structures stay valid as long as the library is open; a section `dynamic` ends with a zero tag, and
    // its tables have the sizes that it states (elf(5)).
    unsafe {
        let map = &*map;
        let path = PathBuf::from(OsStr::from_bytes(CStr::from_ptr(map.name).to_bytes()));
        let mut found = Vec::new();
        let (mut names, mut symbols) = (0, 0);
        let mut tables = [[0; 2]; 2];
        let mut entry = map.dynamic;
        while (*entry)[0] != 0 {
            let [tag, value] = *entry;
            match tag {
                5 => names = value,         // DT_STRTAB
                6 => symbols = value,       // DT_SYMTAB
                7 => tables[0][0] = value,  // DT_RELA
                8 => tables[0][1] = value,  // DT_RELASZ
                23 => tables[1][0] = value, // DT_JMPREL
                2 => tables[1][1] = value,  // DT_PLTRELSZ
                _ => {}
            }
            entry = entry.add(1);
        }
        for [table, bytes] in tables {
            let count = if table == 0 { 0 } else { bytes / size_of::<Relocation>() };
            for relocation in
                std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<Relocation>(table.max(8)), count)
            {
                if !ADDRESSES.contains(&(relocation.info as u32)) {
                    continue;
                }
                let symbol = std::ptr::with_exposed_provenance::<Symbol>(symbols).add((relocation.info >> 32) as usize);
                let name = CStr::from_ptr(std::ptr::with_exposed_provenance::<c_char>(names + (*symbol).name as usize));
                let ours = replacements().into_iter().find(|(known, _)| known.as_bytes() == name.to_bytes());
                if let Some((known, function)) = ours {
                    put(map.base + relocation.offset, function)?;
                    found.push(known);
                }
            }
        }
        match NEEDED.iter().find(|names| !names.iter().any(|name| found.contains(name))) {
            Some(names) => Err(format!("it does not call {}", names.join(" or "))),
            None => Ok(path),
        }
    }
}

/// Stores `function` at `address`, whose page the dynamic linker may have made read-only.
///
/// # Safety
/// `address` must be an entry of a loaded library's table of addresses.
unsafe fn put(address: usize, function: *const c_void) -> Result<(), String> {
    const PAGE: usize = 4096;
    let page = std::ptr::with_exposed_provenance_mut::<c_void>(address & !(PAGE - 1));
    // SAFETY: the page belongs to the library's writable data; it stays writable, as it is without RELRO.
    unsafe {
        if libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return Err(format!("mprotect(2): {}", std::io::Error::last_os_error()));
        }
        (*std::ptr::with_exposed_provenance::<AtomicPtr<c_void>>(address))
            .store(function.cast_mut(), Ordering::Release);
    }
    Ok(())
}
