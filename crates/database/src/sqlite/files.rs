//! The files of an SQLite database: at a path of the user, or in a temporary folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use loadline_model::{Finding, Severity};
use tempfile::TempDir;

use crate::error::TargetError;
use crate::folder::{self, io};

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
    temporary: Option<(TempDir, File)>,
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
        let (folder, owner) = folder::temporary(scratch, TEMP_PREFIX)?;
        Ok(SqliteFiles { database: folder.path().join("loadline.db"), temporary: Some((folder, owner)) })
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

/// The doctor's finding on the filesystem under `directory`.
pub(super) fn filesystem(directory: &Path) -> Finding {
    match nix::sys::statfs::statfs(directory) {
        Ok(s) if s.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC => Finding::new(
            "log-on-tmpfs",
            Severity::Refused,
            "filesystem under the log",
            "tmpfs",
            "a log in memory is never durable: choose a folder on a disk (--results, or sqlite:/dir/file.db)",
        ),
        Ok(s) => {
            let free = u64::try_from(s.block_size()).map_or(0, |block| s.blocks_available().saturating_mul(block));
            Finding::new("free-space", Severity::Ok, "free space", loadline_model::format::bytes(free as f64), "")
        }
        Err(e) => {
            Finding::new("free-space", Severity::Warning, "free space", format!("unknown: {e}"), "check it by hand")
        }
    }
}
