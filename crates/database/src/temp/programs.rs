//! Recognises server programs by what they say of themselves.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::product::Product;
use super::user::ServerUser;
use crate::error::TargetError;
use crate::flavour;

/// File names of server programs.
const SERVERS: [&str; 3] = ["postgres", "mariadbd", "mysqld"];

/// Time for a program to say its version.
const AT_MOST: Duration = Duration::from_secs(10);

/// A server program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) said: Said,
}

/// What a server program says with `--version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// As in [`Product::name`].
    pub(crate) product: &'static str,
    /// The product's own name, if it is one that is like it.
    pub(crate) name: &'static str,
    /// The scheme of its private servers.
    scheme: &'static str,
    /// `17.10`, `10.11.6-MariaDB`.
    pub(crate) version: String,
}

impl Said {
    /// Reads `postgres (PostgreSQL) 17.10 (Debian …)` and `mysqld  Ver 8.0.33 for Linux on x86_64 (…)`.
    fn parse(text: &str) -> Option<Said> {
        let after = |mark| text.split_once(mark)?.1.split_whitespace().next();
        let (product, scheme, version) = match (after("(PostgreSQL) "), after(" Ver ")) {
            (Some(version), _) => ("PostgreSQL", "postgres-temp", version),
            (_, Some(version)) if version.contains("MariaDB") => ("MariaDB", "mariadb-temp", version),
            (_, Some(version)) => ("MySQL", "mysql-temp", version),
            (None, None) => return None,
        };
        // Not of its path, which comes first.
        let own = text.split_once(" Ver ").map_or(text, |(_, own)| own);
        let name = flavour::of(&[own]).map_or(product, |flavour| flavour.name);
        Some(Said { product, name, scheme, version: version.to_owned() })
    }
}

impl Program {
    /// Asks the program for its version, as the server's user: that shows whether the user can run it.
    ///
    /// # Errors
    /// [`TargetError::Refused`].
    pub(crate) fn ask(path: &Path, user: &ServerUser) -> Result<Program, TargetError> {
        let failed = |why: String| {
            TargetError::Refused(format!(
                "the user '{}' cannot run '{} --version': {why}. Name other binaries with ?bin=/dir",
                user.name,
                path.display()
            ))
        };
        let output = version(user.command(path, Signal::SIGKILL)).map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let said = Said::parse(&text).filter(|_| output.status.success());
        said.map(|said| Program { path: path.to_owned(), said }).ok_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            failed(format!("its output is '{}'", [text.trim(), stderr.trim()].concat()))
        })
    }

    /// The server of `product` in `dir`, which the user named with `?bin=`.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: there is none; the text says what there is.
    /// - [`TargetError::Refused`]: it cannot be run.
    pub(crate) fn in_directory(product: &Product, dir: &Path, user: &ServerUser) -> Result<Program, TargetError> {
        let Product { scheme, name, program, supported, .. } = product;
        let has = |name: &str| Some(dir.join(name)).filter(|path| path.is_file());
        let mut other = None;
        if let Some(path) = has(program) {
            let found = Program::ask(&path, user)?;
            if found.said.product == *name {
                return Ok(found);
            }
            other = Some(found);
        }
        let mut others = SERVERS.iter().filter_map(|name| has(name)).filter_map(|path| Program::ask(&path, user).ok());
        let (shown, wants) = (dir.display(), format!("{scheme}: starts {name} {supported}"));
        let beside = ["bin", "sbin"].map(|sub| dir.join(sub)).into_iter().find(|sub| sub.join(program).is_file());
        Err(TargetError::Usage(match (other.or_else(|| others.next()), beside) {
            (Some(Program { path, said }), _) => format!(
                "bin='{shown}' holds {} {} ('{}'), and {wants}: use {}:?bin={shown}, or name another directory",
                said.name,
                said.version,
                path.display(),
                said.scheme
            ),
            (None, Some(beside)) => {
                format!("bin='{shown}' has no '{program}': did you mean bin={}?", beside.display())
            }
            (None, None) => {
                format!("bin='{shown}' has no '{program}': {wants}, from a directory such as {}", product.bin)
            }
        }))
    }
}

/// What `program --version` says within [`AT_MOST`].
///
/// # Errors
/// It cannot be run, or does not end.
pub(super) fn version(mut program: Command) -> io::Result<Output> {
    let mut child = program.arg("--version").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() >= AT_MOST {
            // With what it started, in a process group of its own.
            let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
            child.wait()?;
            return Err(io::Error::other(format!("it has not ended in {} s", AT_MOST.as_secs())));
        }
        sleep(Duration::from_millis(2));
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_versions() {
        for (text, product, version, scheme) in [
            ("postgres (PostgreSQL) 18.6\n", "PostgreSQL", "18.6", "postgres-temp"),
            ("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)", "PostgreSQL", "15.13", "postgres-temp"),
            (
                "/x/mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)",
                "MySQL",
                "8.0.33",
                "mysql-temp",
            ),
            (
                "mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu",
                "MariaDB",
                "10.11.6-MariaDB-0+deb12u1",
                "mariadb-temp",
            ),
            ("mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL))", "MySQL", "8.0.36-28", "mysql-temp"),
        ] {
            let said = Said::parse(text).unwrap();
            assert_eq!((said.product, said.version.as_str(), said.scheme), (product, version, scheme), "{text}");
            assert_eq!(said.name == product, !text.contains("Percona"), "{text}");
        }
        assert_eq!(Said::parse("bash: postgres: command not found"), None);
    }
}
