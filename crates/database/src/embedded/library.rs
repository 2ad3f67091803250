//! Finds and opens the shared library of a database while loadline runs: nothing of it is compiled or linked.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library as Raw;

use super::calls;
use crate::error::TargetError;

pub(crate) struct Places {
    pub(crate) product: &'static str,
    /// Name in the folders that the dynamic linker searches.
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    /// Folders of installations by hand, which the dynamic linker need not search.
    pub(crate) folders: &'static [&'static str],
    pub(crate) packages: &'static str,
}

/// The one library of a database in this process. Its threads and its C++ runtime's symbols stay until the process ends, so it is never
/// closed, and no second one is opened.
pub(crate) struct Loaded<T: 'static>(Mutex<Option<&'static (PathBuf, T)>>);

impl<T: 'static> Loaded<T> {
    pub(crate) const fn none() -> Loaded<T> {
        Loaded(Mutex::new(None))
    }

    /// Opens the library at `given`, at the variable of `places`, or in their folders. `make` looks at it, and returns where it lies.
    pub(crate) fn load(
        &self,
        places: &Places,
        given: Option<&Path>,
        make: impl FnOnce(&Path, Raw) -> Result<(PathBuf, T), TargetError>,
    ) -> Result<&'static T, TargetError> {
        let of_variable = || std::env::var_os(places.variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let named = given.map(Path::to_owned).or_else(of_variable);
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, library)) = *loaded {
            return match named.filter(|other| !same_file(other, path)) {
                None => Ok(library),
                Some(other) => Err(TargetError::Usage(format!(
                    "this process has opened the library {} already, and cannot open {} as well: compare two of them in two runs",
                    path.display(),
                    other.display()
                ))),
            };
        }
        let (path, raw) = places.open(named)?;
        let both: &'static (PathBuf, T) = Box::leak(Box::new(make(&path, raw)?));
        *loaded = Some(both);
        Ok(&both.1)
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

impl Places {
    /// Opens the library at `named`, or where the dynamic linker and installations by hand have it;
    /// [`TargetError::Unreachable`] if there is none that can be opened: why, and where packages of it are.
    fn open(&self, named: Option<PathBuf>) -> Result<(PathBuf, Raw), TargetError> {
        let by_hand = self.folders.iter().map(|folder| Path::new(folder).join(self.name));
        let usual = std::iter::once(PathBuf::from(self.name)).chain(by_hand);
        let is_named = named.is_some();
        let paths: Vec<PathBuf> = named.map_or_else(|| usual.collect(), |path| vec![path]);
        let mut failed = Vec::new();
        for path in paths {
            // SAFETY: the user named this file, or installed it: its initialisers are those of a database.
            match unsafe { Raw::open(Some(&path), calls::FLAGS) } {
                Ok(raw) => return Ok((path, raw)),
                // That a usual folder has none is no failure of its own.
                Err(_) if !is_named && !path.exists() => {}
                Err(e) => {
                    let said = || std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
                    failed.push(of_another_machine(&path).unwrap_or_else(said));
                }
            }
        }
        let Places { product, name, packages, .. } = self;
        Err(TargetError::Unreachable(match failed.join("; ") {
            why if why.is_empty() => format!("{product}'s library {name} was not found: {packages}"),
            why => format!("{product}'s library cannot be opened: {why}; {packages}"),
        }))
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
}
