//! Writes a run folder.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_model::{Activity, Latencies, Manifest, Series, Snapshot, TestRecord, column};

use crate::error::{StoreError, io_error};
use crate::layout::SideFile;
use crate::stored::StoredRun;
use crate::{atomic, hlog, jsonl, layout, series_csv, snapshots, time};

const PERMISSIONS: &str = "Check its permissions, or choose another folder for the results with --results.";
/// Runs that start in the same second on the same kind of target get a number, up to this one.
const MAX_NUMBER: u32 = 10_000;
/// Attempts to take a lock, and the pause between them.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Default)]
pub struct TestOutput {
    pub record: TestRecord,
    /// One row a second.
    pub series: Series,
    /// Latencies in ns by kind: `transaction`, `commit`, `response`.
    pub histograms: Vec<(String, Latencies)>,
    /// The database's counters at window start (`open`) and end (`close`).
    pub snapshots: Vec<(String, Snapshot)>,
    /// Rows of the database's statistics views.
    pub activity: Option<Activity>,
    pub native: Option<NativeFile>,
}

/// A report made by the database itself, stored as `folder/<test>.extension`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeFile {
    pub folder: String,
    pub extension: String,
    pub text: String,
}

/// A run folder that only this process writes to. The lock ends with the process.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Folders above it that were made for it, the innermost first.
    made: Vec<PathBuf>,
    /// Held for its lock.
    _lock: File,
    /// Length of `tests.jsonl` up to the last complete line, bytes.
    whole_bytes: u64,
    stored: BTreeSet<u32>,
}

impl RunFolder {
    /// Creates folder `name` (or `name-2`, `name-3`, … if it exists) in `results`, which is created if missing. Locks it and
    /// checks that it is writable.
    pub fn create(results: &Path, name: &str) -> Result<RunFolder, StoreError> {
        if std::fs::metadata(results).is_ok_and(|m| !m.is_dir()) {
            return Err(StoreError::ResultsIsFile(results.to_owned()));
        }
        let made: Vec<PathBuf> = results.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        let path = create_numbered(results, name, "", |path| std::fs::create_dir(path))?;
        // Nothing was measured yet: leave no empty folder.
        Self::set_up(&path, &made).inspect_err(|_| remove(&path, &made))
    }

    /// Takes the lock, creates the directories, and checks that a file can be written.
    fn set_up(path: &Path, made: &[PathBuf]) -> Result<RunFolder, StoreError> {
        let lock = lock(path)?;
        make_directories(path)?;
        let probe = path.join(format!(".probe{}", layout::TEMPORARY));
        atomic::write_synced(&probe, &[b' '; 4096])?;
        std::fs::remove_file(&probe).map_err(|e| io_error("remove", &probe, e, PERMISSIONS))?;
        atomic::sync_directory(path)?;
        atomic::sync_directory(path.parent().unwrap_or(path))?;
        let (path, made, stored) = (path.to_owned(), made.to_owned(), BTreeSet::new());
        Ok(RunFolder { path, made, _lock: lock, whole_bytes: 0, stored })
    }

    /// Removes the run, in which nothing was measured, and the folders that were made for it, unless others use them. Best effort.
    pub fn remove(&self) {
        remove(&self.path, &self.made);
    }

    /// Opens the run at `path` (its folder or its `manifest.json`) to continue it, and returns also what it holds. Cuts off a torn last
    /// line of `tests.jsonl`, left by a process killed during an append.
    /// Fails if another process writes to it, a newer loadline wrote it, or it is damaged in another way, by file and line.
    pub fn resume(path: &Path) -> Result<(RunFolder, StoredRun), StoreError> {
        let path = layout::locate(path)?;
        let lock = lock(&path)?;
        let (run, whole_bytes) = StoredRun::read(path, "was cut off")?;
        let path = run.path.clone();
        remove_temporary(&path);
        make_directories(&path)?;
        let file = path.join(layout::TESTS);
        if std::fs::metadata(&file).is_ok_and(|found| found.len() != whole_bytes) {
            let cut = OpenOptions::new().write(true).open(&file).and_then(|f| {
                f.set_len(whole_bytes)?;
                f.sync_all()
            });
            cut.map_err(|e| io_error("repair", &file, e, PERMISSIONS))?;
        }
        let stored = run.records.iter().chain(&run.other_tries).map(|r| r.test).collect();
        Ok((RunFolder { path, made: Vec::new(), _lock: lock, whole_bytes, stored }, run))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> String {
        layout::id(&self.path)
    }

    /// Replaces `manifest.json` atomically. If that fails, e.g. because the disk is full, the old one remains.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), StoreError> {
        atomic::replace_json(&self.path.join(layout::MANIFEST), manifest)
    }

    /// Stores one finished test durably. After an error (a used number, a value that fits no file, a full disk) `tests.jsonl` is unchanged.
    pub fn append(&mut self, output: &TestOutput) -> Result<(), StoreError> {
        let test = output.record.test;
        let unwritable = |what: String| StoreError::Unwritable { test, what };
        if self.stored.contains(&test) {
            return Err(unwritable("the run already has a test with this number".to_owned()));
        }
        // Encode everything before writing anything.
        let line = jsonl::line(&output.record).map_err(unwritable)?;
        let files = self.side_files(output).map_err(unwritable)?;
        self.write_side_files(&files).and_then(|()| self.append_line(&line)).map_err(|cause| {
            for (path, _) in &files {
                // They belong to no test; the next one may need their space.
                let _ = std::fs::remove_file(path);
            }
            StoreError::NotStored { test, run: self.path.clone(), cause: Box::new(cause), safe: self.safe() }
        })?;
        self.whole_bytes += line.len() as u64;
        self.stored.insert(test);
        Ok(())
    }

    fn safe(&self) -> String {
        match self.stored.last() {
            Some(last) => format!("Everything up to test {last} is safe"),
            None => "No test was stored before it".to_owned(),
        }
    }

    fn side_files(&self, output: &TestOutput) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
        let record = &output.record;
        let series = series_csv::write(&output.series)?.into_bytes();
        let length =
            record.figure(column::ELAPSED_S).and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default();
        let title = format!("loadline: run {}, test {}, {}, values in ns", record.run, record.test, record.workload)
            .replace(['\n', '\r'], " ");
        let started = time::parse_rfc3339(&record.started_at);
        let histograms = hlog::write(&title, started, length, &output.histograms)?;
        let snapshots = snapshots::write(&output.snapshots)?;
        let path = |kind: SideFile<'_>| layout::side_file(&self.path, kind, record.test);
        let mut files = vec![
            (path(layout::SERIES), series),
            (path(layout::HISTOGRAMS), histograms),
            (path(layout::SNAPSHOTS), snapshots),
        ];
        if let Some(activity) = &output.activity {
            let text =
                serde_json::to_vec_pretty(activity).map_err(|e| format!("its activity cannot be encoded: {e}"))?;
            files.push((path(layout::ACTIVITY), text));
        }
        if let Some(native) = &output.native {
            files.push((path((&native.folder, &native.extension)), native.text.clone().into_bytes()));
        }
        Ok(files)
    }

    fn write_side_files(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<(), StoreError> {
        for (path, contents) in files {
            let directory = path.parent().unwrap_or(&self.path);
            if !directory.exists() {
                std::fs::create_dir(directory).map_err(|e| io_error("create", directory, e, PERMISSIONS))?;
                atomic::sync_directory(&self.path)?;
            }
            atomic::write_synced(path, contents)?;
            atomic::sync_directory(directory)?;
        }
        Ok(())
    }

    /// Appends `line`. On failure the file keeps its length.
    fn append_line(&self, line: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(layout::TESTS);
        let cannot = |e| io_error("append to", &path, e, "Check the health of its filesystem.");
        let whole_bytes = self.whole_bytes;
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let mut file = opened.map_err(|e| io_error("open", &path, e, PERMISSIONS))?;
        if whole_bytes == 0 {
            atomic::sync_directory(&self.path)?;
        }
        match file.metadata().map_err(cannot)?.len() {
            // Remove the rest of a failed append that could not be removed then.
            longer if longer > whole_bytes => file.set_len(whole_bytes).map_err(cannot)?,
            shorter if shorter < whole_bytes => {
                let e = io::Error::other("tests that were stored in it are gone: somebody changed or replaced it");
                return Err(io_error("append to", &path, e, "Put the file back, then go on with --resume."));
            }
            _ => {}
        }
        let written = file.write_all(line).and_then(|()| file.sync_all());
        written.map_err(|e| {
            let _ = file.set_len(whole_bytes).and_then(|()| file.sync_all());
            cannot(e)
        })
    }
}

/// Creates the first of `name`, `name-2`, … with `extension` that does not exist, in `results`, which is created if missing.
pub(crate) fn create_numbered(
    results: &Path,
    name: &str,
    extension: &str,
    create: impl Fn(&Path) -> io::Result<()>,
) -> Result<PathBuf, StoreError> {
    std::fs::create_dir_all(results).map_err(|e| io_error("create", results, e, PERMISSIONS))?;
    let mut n = 1;
    loop {
        let number = if n == 1 { String::new() } else { format!("-{n}") };
        let path = results.join(format!("{name}{number}{extension}"));
        match create(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && n < MAX_NUMBER => n += 1,
            Err(e) => return Err(io_error("create", &path, e, PERMISSIONS)),
        }
    }
}

fn remove(run: &Path, made: &[PathBuf]) {
    let _ = std::fs::remove_dir_all(run);
    for dir in made {
        let _ = std::fs::remove_dir(dir);
    }
}

fn make_directories(run: &Path) -> Result<(), StoreError> {
    layout::SIDE_FILES.iter().try_for_each(|(directory, _)| {
        let directory = run.join(directory);
        std::fs::create_dir_all(&directory).map_err(|e| io_error("create", &directory, e, PERMISSIONS))
    })
}

/// Takes the run's lock, which ends when the returned file is closed, at the latest with the process.
fn lock(run: &Path) -> Result<File, StoreError> {
    let path = run.join(layout::LOCK);
    let cannot = |e| io_error("lock", &path, e, PERMISSIONS);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(cannot)?;
    let mut tries = 1;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            // Between fork and exec, a child holds a copy of its parent's lock, even if the parent is dead. Only a lasting
            // lock belongs to a live writer.
            Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(StoreError::Locked { path: run.to_owned(), holder: holder.trim().parse().ok() });
            }
            Err(TryLockError::Error(e)) => return Err(cannot(e)),
        }
    }
    // Only informs others of the holder.
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(cannot)?;
    Ok(file)
}

/// Removes incomplete files of a killed process. Best effort: they do no harm.
fn remove_temporary(run: &Path) {
    for entry in std::fs::read_dir(run).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.contains(layout::TEMPORARY) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
