//! The installed server binaries.

use std::path::{Path, PathBuf};

use super::PRODUCT;
use crate::error::TargetError;
use crate::postgres::versions::OLDEST;
use crate::temp::programs::Program;
use crate::temp::user::ServerUser;

/// A directory with `postgres` and `initdb`.
#[derive(Debug)]
pub(super) struct Binaries {
    pub(super) dir: PathBuf,
    /// Version as the server prints it: `17.10`.
    pub(super) version: String,
}

impl Binaries {
    pub(super) fn postgres(&self) -> PathBuf {
        self.dir.join("postgres")
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.dir.join("initdb")
    }
}

/// The binaries in `given`, else the newest in the directories of Debian's and Red Hat's packages, else those in PATH.
pub(super) fn find(given: Option<&Path>, user: &ServerUser) -> Result<Binaries, TargetError> {
    let (dir, program) = match given {
        Some(dir) => {
            let program = Program::in_directory(&PRODUCT, dir, user)?;
            if !is_complete(dir) {
                return Err(TargetError::Usage(format!(
                    "bin='{}' has no 'initdb': give the directory that has it beside 'postgres', such as {}",
                    dir.display(),
                    PRODUCT.bin
                )));
            }
            (dir.to_owned(), program)
        }
        None => {
            let dir = newest(packaged()).or_else(in_path).ok_or_else(|| {
                TargetError::Local(
                    "no PostgreSQL server found (searched /usr/lib/postgresql/*/bin, /usr/pgsql-*/bin and PATH): install \
                     one (`apt-get install postgresql` on Debian and Ubuntu, `dnf install postgresql-server` on Fedora \
                     and RHEL) or give its directory with postgres-temp:?bin=/dir"
                        .to_owned(),
                )
            })?;
            let program = Program::ask(&dir.join("postgres"), user)?;
            (dir, program)
        }
    };
    let version = program.said.version;
    let major = leading_number(&version);
    if major < OLDEST {
        return Err(TargetError::Refused(format!(
            "the PostgreSQL in '{}' is version {version}, but loadline needs {OLDEST} or newer: install a newer one, or \
             give its directory with postgres-temp:?bin=/dir",
            dir.display()
        )));
    }
    Ok(Binaries { dir, version })
}

fn is_complete(dir: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|program| dir.join(program).is_file())
}

/// The directories of installed packages with their major version.
fn packaged() -> Vec<(u32, PathBuf)> {
    let entries = |dir: &str| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|e| Some((e.file_name().into_string().ok()?, e.path().join("bin")))).collect::<Vec<_>>()
    };
    let debian = entries("/usr/lib/postgresql").into_iter().map(|(name, bin)| (leading_number(&name), bin));
    let red_hat = entries("/usr").into_iter().filter_map(|(name, bin)| {
        let number = leading_number(name.strip_prefix("pgsql-")?);
        Some((number, bin))
    });
    debian.chain(red_hat).collect()
}

fn newest(mut found: Vec<(u32, PathBuf)>) -> Option<PathBuf> {
    found.retain(|(number, dir)| *number > 0 && is_complete(dir));
    found.into_iter().max_by_key(|(number, _)| *number).map(|(_, dir)| dir)
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|dir| dir.is_absolute() && is_complete(dir))
}

fn leading_number(text: &str) -> u32 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_complete_directory_wins() {
        let base = tempfile::tempdir().unwrap();
        let mut found = Vec::new();
        for (number, complete) in [(9, true), (14, true), (17, false)] {
            let dir = base.path().join(number.to_string());
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("postgres"), "").unwrap();
            if complete {
                std::fs::write(dir.join("initdb"), "").unwrap();
            }
            found.push((number, dir));
        }
        assert_eq!(newest(found), Some(base.path().join("14")));
        assert_eq!(newest(Vec::new()), None);
    }

    #[test]
    fn versions() {
        assert_eq!(leading_number("17.10"), 17);
        assert_eq!(leading_number("18beta1"), 18);
        assert_eq!(leading_number("common"), 0);
    }
}
