//! The files of an SQLite database: at a path of the user, or in a temporary folder.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use loadline_model::{Finding, Severity};
use rusqlite::Connection;

use crate::error::TargetError;
use crate::folder::{self, OwnedFolder, io};
use crate::storage::{free_space, in_memory};

/// Prefix of the temporary folders.
pub(super) const TEMP_PREFIX: &str = "loadline-sqlite-";

/// The path in a URL; `None` for a private database.
pub(super) fn path_of(url: &str) -> Result<Option<PathBuf>, TargetError> {
    let rest =
        url.strip_prefix("sqlite:").ok_or_else(|| TargetError::Usage(format!("'{url}' is not an SQLite URL")))?;
    let (path, query) = rest.split_once('?').map_or((rest, None), |(p, q)| (p, Some(q)));
    if let Some(query) = query {
        return Err(TargetError::Usage(format!(
            "'?{query}' in '{url}': an SQLite URL takes no parameters; give settings with --setting name=value"
        )));
    }
    // sqlite:///dir/file.db is the same as sqlite:/dir/file.db.
    let path = path.strip_prefix("//").unwrap_or(path);
    Ok((!path.is_empty()).then(|| PathBuf::from(path)))
}

/// The database file and its temporary folder, if it has one.
pub(super) struct SqliteFiles {
    database: PathBuf,
    temporary: Option<OwnedFolder>,
}

impl SqliteFiles {
    /// The files of `path`, or a temporary folder in `scratch`.
    pub(super) fn make(path: &Option<PathBuf>, scratch: &Path) -> Result<SqliteFiles, TargetError> {
        if let Some(path) = path {
            if path.is_dir() {
                return Err(TargetError::Usage(format!("{} is a folder: name a file in it", path.display())));
            }
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if !parent.is_dir() {
                return Err(TargetError::Usage(format!(
                    "the folder {} does not exist: create it first",
                    parent.display()
                )));
            }
            return Ok(SqliteFiles { database: path.clone(), temporary: None });
        }
        let folder = OwnedFolder::temporary(scratch, TEMP_PREFIX)?;
        Ok(SqliteFiles { database: folder.path().join("loadline.db"), temporary: Some(folder) })
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    pub(super) fn directory(&self) -> &Path {
        self.database.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// URL as the user gave it.
    pub(super) fn url(&self) -> String {
        if self.temporary.is_some() { "sqlite:".into() } else { format!("sqlite:{}", self.database.display()) }
    }

    /// The write-ahead log.
    pub(super) fn log(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// Opens the database file for reading. Closing the returned file releases all locks of this process on it.
    pub(super) fn open(&self) -> Result<File, TargetError> {
        File::open(&self.database).map_err(io("opening", &self.database))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }

    /// Takes the lock of the run; the system releases it when the process ends.
    pub(super) fn lock(&self) -> Result<File, TargetError> {
        folder::lock(&self.beside("-loadline-lock"), || {
            let database = self.database.display();
            format!("another loadline run is using {database}: wait for it or give another file")
        })
    }

    /// Removes the database's files.
    pub(super) fn remove(&self) -> Result<Vec<String>, TargetError> {
        let mut removed = Vec::new();
        for suffix in ["", "-wal", "-shm", "-loadline-lock"] {
            let path = self.beside(suffix);
            if path.exists() {
                fs::remove_file(&path).map_err(io("removing", &path))?;
                removed.push(format!("removed {}", path.display()));
            }
        }
        Ok(removed)
    }
}

/// The error of a session that may not write, because another process writes to the database or keeps a transaction open.
pub(super) fn held_by_others(db: &Connection) -> TargetError {
    let path = db.path().unwrap_or_default();
    let who = holder(&[path.to_owned(), format!("{path}-shm")]).map_or(String::new(), |who| format!(" ({who})"));
    TargetError::Refused(format!(
        "another process{who} holds the lock of SQLite's writer in {path}: end its transaction, or that process"
    ))
}

/// The process that has locked a part of one of these files for writing, as the kernel lists it (proc_locks(5)).
fn holder(files: &[String]) -> Option<String> {
    let inodes: Vec<String> = files.iter().filter_map(|f| Some(fs::metadata(f).ok()?.ino().to_string())).collect();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let [_, _, _, kind, pid, file, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let held = kind == "WRITE" && inodes.iter().any(|inode| file.rsplit(':').next() == Some(inode));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().filter(|_| held)?;
        (pid != std::process::id().to_string()).then(|| format!("{}, process {pid}", name.trim()))
    })
}

/// The doctor's finding on the filesystem under `directory`.
pub(super) fn filesystem(directory: &Path) -> Finding {
    if in_memory(directory) != Some(true) {
        return free_space(directory);
    }
    let advice = "a log in memory is never durable: choose a folder on a disk (--results, or sqlite:/dir/file.db)";
    Finding::new("log-on-tmpfs", Severity::Refused, "filesystem under the log", "in main memory (tmpfs)", advice)
}
