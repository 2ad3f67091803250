//! A run as one file, to hand it over: a gzipped tar archive of its folder, with a checksum for each file.
//!
//! ```text
//! <run-id>/SHA256SUMS        first: a line per file, as `sha256sum` writes them
//! <run-id>/manifest.json, tests.jsonl, series/…, …   everything but report/, which can be made again
//! ```
//!
//! A packed run comes from anybody. So what is unpacked is plain files with plain names that the checksums list, in a folder that
//! did not exist; it takes its name only when all is checked. Links, other paths and more bytes than a run can have are refused.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use crate::error::{RESTORE, StoreError, io_error};
use crate::layout::{LOCK, TEMPORARY};
use crate::stored::StoredRun;

/// End of the name of a packed run.
pub const PACKED: &str = "loadline";
const SUMS: &str = "SHA256SUMS";
/// Reports are made again.
const REPORT: &str = "report";
/// Most bytes and files of a run; a day of load of 100,000 tests is below.
const MOST_BYTES: u64 = 4 << 30;
const MOST_FILES: usize = 1_000_000;
/// Text is packed to a tenth or a fortieth of its size. What grows by more is no run.
const MOST_GROWTH: u64 = 200;
/// Small files may grow by more than that.
const FREE_BYTES: u64 = 16 << 20;
const PERMISSIONS: &str = "Check its permissions and the free space.";

/// Writes the run in folder `run` to `out` as one file. Returns the number of files in it.
///
/// # Errors
/// It is no run, holds a link, changes meanwhile, or cannot be read or written.
pub fn pack(run: &Path, out: impl Write) -> Result<usize, StoreError> {
    let stored = StoredRun::open(run)?;
    let (run, id) = (stored.path(), stored.id());
    let mut files = Vec::new();
    list(run, Path::new(""), &mut files)?;
    files.sort();
    let mut sums = BTreeMap::new();
    for file in &files {
        sums.insert(file.clone(), sum(&read(&run.join(file))?));
    }
    let text: String = sums.iter().map(|(file, sum)| format!("{sum}  {file}\n")).collect();
    let cannot = |e| io_error("write", Path::new("the packed run"), e, PERMISSIONS);
    let mut archive = Builder::new(GzEncoder::new(out, Compression::default()));
    append(&mut archive, &format!("{id}/{SUMS}"), text.as_bytes()).map_err(cannot)?;
    for file in &files {
        let path = run.join(file);
        let bytes = read(&path)?;
        if sums.get(file) != Some(&sum(&bytes)) {
            let cause = io::Error::new(io::ErrorKind::InvalidData, "it changed while it was packed");
            return Err(io_error("pack", &path, cause, "Pack the run when it has ended."));
        }
        append(&mut archive, &format!("{id}/{file}"), &bytes).map_err(cannot)?;
    }
    archive.into_inner().and_then(GzEncoder::finish).and_then(|mut out| out.flush()).map_err(cannot)?;
    Ok(files.len())
}

/// Adds a file; all have the same time and rights, so that a run is always packed to the same bytes.
fn append(archive: &mut Builder<impl Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_path(name)?;
    header.set_cksum();
    archive.append(&header, bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|e| io_error("read", path, e, "Check its permissions."))
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files in `folder` of `run` that belong to it.
fn list(run: &Path, folder: &Path, out: &mut Vec<String>) -> Result<(), StoreError> {
    let path = run.join(folder);
    let cannot = |e| io_error("list", &path, e, "Check its permissions.");
    for entry in fs::read_dir(&path).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let inside = folder.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        let top = folder.as_os_str().is_empty();
        if name == LOCK || name.contains(TEMPORARY) || (top && [REPORT, SUMS].contains(&name.as_str())) {
            continue;
        }
        let kind = entry.file_type().map_err(cannot)?;
        match inside.to_str().filter(|text| plain(text)) {
            Some(_) if kind.is_dir() && top => list(run, &inside, out)?,
            Some(text) if kind.is_file() => out.push(text.to_owned()),
            _ => {
                let cause =
                    io::Error::new(io::ErrorKind::InvalidInput, "a run holds plain files in plain folders only");
                return Err(io_error("pack", &run.join(&inside), cause, "Move it away."));
            }
        }
    }
    Ok(())
}

/// Whether `path` is the relative path of a file of a run: one or two plain names.
fn plain(path: &str) -> bool {
    let name = |c: Component<'_>| match c {
        Component::Normal(name) => name
            .to_str()
            .is_some_and(|n| !n.starts_with('.') && !n.contains(['\\', ':']) && !n.chars().any(char::is_control)),
        _ => false,
    };
    !path.ends_with('/')
        && !path.contains("//")
        && (1..=2).contains(&Path::new(path).components().count())
        && Path::new(path).components().all(name)
}

/// Unpacks `file` into a new folder in `results`, named by the run. Returns the folder.
///
/// # Errors
/// The file is no packed run or damaged (the error names what), or a folder of that name exists.
pub fn unpack(file: &Path, results: &Path) -> Result<PathBuf, StoreError> {
    let source = File::open(file).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(file.to_owned()),
        _ => io_error("open", file, e, "Check its permissions."),
    })?;
    let packed = source.metadata().map_or(0, |meta| meta.len());
    let most = MOST_BYTES.min(FREE_BYTES + packed.saturating_mul(MOST_GROWTH));
    fs::create_dir_all(results).map_err(|e| io_error("create", results, e, PERMISSIONS))?;
    let folder = results.join(format!(".unpacked{TEMPORARY}{}", std::process::id()));
    fs::create_dir(&folder).map_err(|e| io_error("create", &folder, e, PERMISSIONS))?;
    let outcome = unpack_into(file, source, &folder, most).and_then(|id| {
        StoredRun::open(&folder)?;
        let run = results.join(&id);
        // A rename replaces nothing but an empty folder.
        if fs::symlink_metadata(&run).is_ok() {
            return Err(StoreError::Exists(run));
        }
        fs::rename(&folder, &run).map_err(|e| io_error("create", &run, e, PERMISSIONS))?;
        Ok(run)
    });
    if outcome.is_err() {
        // Best effort: the first error is the one to report.
        let _ = fs::remove_dir_all(&folder);
    }
    outcome
}

/// Unpacks into `folder`, which is empty, and returns the name of the run.
fn unpack_into(file: &Path, source: File, folder: &Path, most: u64) -> Result<String, StoreError> {
    let bad = |what: String| StoreError::Damaged { path: file.to_owned(), line: None, what, advice: RESTORE };
    let early = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => bad("it ends early".to_owned()),
        _ => bad(format!("it is no packed run, or damaged inside ({e})")),
    };
    // One byte more shows that there is more.
    let mut archive = Archive::new(GzDecoder::new(io::BufReader::new(source)).take(most + 1));
    let mut sums: Option<BTreeMap<String, String>> = None;
    let mut id = String::new();
    let mut left = most;
    // Raw: no extensions, with which a name or a size could be anything.
    for (n, entry) in archive.entries().map_err(early)?.raw(true).enumerate() {
        let mut entry = entry.map_err(early)?;
        let path = entry.path().ok().and_then(|p| p.to_str().map(str::to_owned)).unwrap_or_default();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(bad(format!("'{}' in it is a link or no plain file", path.escape_debug())));
        }
        let size = entry.header().size().map_err(early)?;
        if size > left || n > MOST_FILES {
            return Err(bad(format!("it holds more than a run: more than {most} bytes, or {MOST_FILES} files")));
        }
        left -= size;
        let (of, name) = path.split_once('/').unwrap_or_default();
        if n == 0 {
            id = of.to_owned();
        }
        if of != id || !plain(of) || !plain(name) {
            return Err(bad(format!("'{}' in it is not the path of a file of a run", path.escape_debug())));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(early)?;
        if bytes.len() as u64 != size {
            return Err(bad("it ends early".to_owned()));
        }
        let Some(known) = &mut sums else {
            if name != SUMS {
                return Err(bad(format!("it is no packed run: it does not begin with {SUMS}")));
            }
            let text = String::from_utf8(bytes).map_err(|_| bad(format!("{SUMS} in it is no text")))?;
            let line = |l: &str| l.split_once("  ").map(|(sum, file)| (file.to_owned(), sum.to_owned()));
            sums = Some(
                text.lines().map(line).collect::<Option<_>>().ok_or_else(|| bad(format!("{SUMS} in it is damaged")))?,
            );
            continue;
        };
        match known.remove(name) {
            None => return Err(bad(format!("'{name}' in it has no checksum, or is in it twice"))),
            Some(wanted) if wanted != sum(&bytes) => {
                return Err(bad(format!("'{name}' in it does not match its checksum")));
            }
            Some(_) => write(&folder.join(name), &bytes)?,
        }
    }
    // gzip's own checksum and length come last.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(early)?;
    match sums {
        None => Err(bad("it is no packed run: it is empty".to_owned())),
        Some(rest) => match rest.into_keys().next() {
            Some(missing) => Err(bad(format!("'{missing}' is missing in it"))),
            None => Ok(id),
        },
    }
}

/// Writes a new file, in a new folder if need be.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let cannot = |e| io_error("write", path, e, PERMISSIONS);
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(cannot)?;
    File::create_new(path).and_then(|mut file| file.write_all(bytes)).map_err(cannot)
}

#[cfg(test)]
mod tests;
