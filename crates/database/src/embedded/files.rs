//! The files of an embedded database: at a path of the user, or in a temporary folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use loadline_model::{Finding, Severity};
use percent_encoding::percent_decode_str;

use crate::error::TargetError;
use crate::folder::{self, OwnedFolder, io};
use crate::storage::{free_space, in_memory};

/// Suffix of the database's name in the name of the lock of a run.
const LOCK: &str = "-loadline-lock";

pub(crate) struct FileNames {
    /// URL's scheme, and the one parameter that it takes, a path: `lib`.
    pub(crate) scheme: &'static str,
    pub(crate) parameter: Option<&'static str>,
    /// Suffix of the database's name in the name of its log.
    pub(crate) log: &'static str,
    /// Suffixes of its other files and folders.
    pub(crate) others: &'static [&'static str],
}

impl FileNames {
    pub(crate) fn place(&self, url: &str) -> Result<Place, TargetError> {
        let scheme = self.scheme;
        let rest = url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(':'));
        let rest = rest.ok_or_else(|| TargetError::Usage(format!("'{url}' is no URL of {scheme}:")))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // sqlite:///dir/file.db is the same as sqlite:/dir/file.db.
        let path = path.strip_prefix("//").unwrap_or(path);
        let mut place = Place { database: (!path.is_empty()).then(|| PathBuf::from(path)), parameter: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let value = pair.split_once('=').filter(|(name, value)| Some(*name) == self.parameter && !value.is_empty());
            let Some((_, value)) = value else {
                let takes =
                    self.parameter.map_or("no parameters".to_owned(), |name| format!("one parameter, {name}=PATH"));
                return Err(TargetError::Usage(format!(
                    "'?{pair}' in '{url}': a {scheme}: URL takes {takes}; give settings with --setting name=value"
                )));
            };
            let value = percent_decode_str(value).decode_utf8_lossy();
            place.parameter = Some(PathBuf::from(value.into_owned()));
        }
        Ok(place)
    }

    pub(crate) fn temp_prefix(&self) -> String {
        format!("loadline-{}-", self.scheme)
    }
}

pub(crate) struct Place {
    /// `None` for a private database.
    pub(crate) database: Option<PathBuf>,
    pub(crate) parameter: Option<PathBuf>,
}

/// The database file and its temporary folder, if it has one.
pub(crate) struct EmbeddedFiles {
    names: &'static FileNames,
    pub(crate) database: PathBuf,
    temporary: Option<OwnedFolder>,
}

impl EmbeddedFiles {
    /// The error for a database that contains `what`.
    pub(crate) fn foreign(&self, what: &str) -> TargetError {
        let database = self.database.display();
        TargetError::Refused(format!(
            "{database} contains {what} that loadline did not create: give the name of a new file"
        ))
    }

    /// The files of `path`, or a temporary folder in `scratch`.
    pub(crate) fn make(
        names: &'static FileNames,
        path: &Option<PathBuf>,
        scratch: &Path,
    ) -> Result<EmbeddedFiles, TargetError> {
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
            return Ok(EmbeddedFiles { names, database: path.clone(), temporary: None });
        }
        let folder = OwnedFolder::temporary(scratch, &names.temp_prefix())?;
        Ok(EmbeddedFiles { names, database: folder.path().join("loadline.db"), temporary: Some(folder) })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.database.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// URL as the user gave it, without parameters.
    pub(crate) fn url(&self) -> String {
        let path = if self.temporary.is_some() { String::new() } else { self.database.display().to_string() };
        format!("{}:{path}", self.names.scheme)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.beside(self.names.log)
    }

    /// Opens the database file for reading. Closing the returned file releases all locks of this process on it.
    pub(crate) fn open(&self) -> Result<File, TargetError> {
        File::open(&self.database).map_err(io("opening", &self.database))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }

    /// Takes the lock of the run; the system releases it when the process ends.
    pub(crate) fn lock(&self) -> Result<File, TargetError> {
        folder::lock(&self.beside(LOCK), || {
            let database = self.database.display();
            format!("another loadline run is using {database}: wait for it or give another file")
        })
    }

    /// Removes the lock of a run that opens nothing; the caller holds it.
    pub(crate) fn remove_lock(&self) {
        // One that stays is taken by the next run.
        let _ = fs::remove_file(self.beside(LOCK));
    }

    pub(crate) fn remove(&self) -> Result<Vec<String>, TargetError> {
        let mut removed = Vec::new();
        for suffix in ["", self.names.log].iter().chain(self.names.others).chain([&LOCK]) {
            let path = self.beside(suffix);
            if path.is_dir() {
                fs::remove_dir_all(&path).map_err(io("removing", &path))?;
            } else if path.exists() {
                fs::remove_file(&path).map_err(io("removing", &path))?;
            } else {
                continue;
            }
            removed.push(format!("removed {}", path.display()));
        }
        Ok(removed)
    }

    pub(crate) fn filesystem(&self) -> Finding {
        if in_memory(self.directory()) != Some(true) {
            return free_space(self.directory());
        }
        let advice = format!(
            "a log in memory is never durable: choose a folder on a disk (--results, or {}:/dir/file.db)",
            self.names.scheme
        );
        Finding::new("log-on-tmpfs", Severity::Refused, "filesystem under the log", "in main memory (tmpfs)", advice)
    }
}
