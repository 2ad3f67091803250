//! The installed server programs, recognised by what they say of themselves, and the user that runs them: never root.

use std::cmp::Reverse;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{self, Pid, Uid, getegid, geteuid, getpid, getppid};

use super::settings::{Product, SERVERS};
use crate::descriptor::{self, Release};
use crate::error::TargetError;
use crate::flavour;

/// Time for a program to say its version.
pub(super) const AT_MOST: Duration = Duration::from_secs(10);

/// A user, and whether loadline has to switch to it.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) name: String,
    /// loadline is root: the server's files must belong to the user, and its processes run as the user.
    pub(crate) switch: bool,
}

impl User {
    /// The present user; for root the product's preferred user if it exists, else `nobody`.
    pub(crate) fn choose(product: &Product) -> Result<User, TargetError> {
        let (product, preferred) = (&product.name, product.user.as_str());
        let me = geteuid();
        if !me.is_root() {
            let name = unistd::User::from_uid(me).ok().flatten().map_or_else(|| me.to_string(), |user| user.name);
            return Ok(User { uid: me.as_raw(), gid: getegid().as_raw(), name, switch: false });
        }
        [preferred, "nobody"]
            .into_iter()
            .filter_map(|name| unistd::User::from_name(name).ok().flatten())
            .find(|user| !user.uid.is_root())
            .map(|user| User { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name, switch: true })
            .ok_or_else(|| {
                TargetError::Local(format!(
                    "{product} does not run as root, and there is no user '{preferred}' or 'nobody' to run it as: make one \
                     (useradd -r {preferred}) or run loadline as another user"
                ))
            })
    }

    /// The user that a leftover server ran as.
    pub(crate) fn of_ids(uid: u32, gid: u32) -> User {
        User { uid, gid, name: uid.to_string(), switch: geteuid().is_root() && !Uid::from_raw(uid).is_root() }
    }

    /// A command that runs as this user without supplementary groups, in its own process group (Ctrl-C must reach
    /// loadline only), in English, without `PG…` variables. It gets the signal `at_death` when the thread that spawned
    /// it ends, so also when loadline dies.
    #[allow(unsafe_code)]
    pub(crate) fn command(&self, program: impl AsRef<Path>, at_death: Signal) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("TZ", "UTC");
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        if self.switch {
            // For root, `uid` also drops the supplementary groups.
            command.uid(self.uid).gid(self.gid);
        } else if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let loadline = getpid();
        // SAFETY: runs between fork and exec, where only async-signal-safe calls are allowed: prctl
        // and getppid are plain system calls, and no memory is allocated (an `io::Error` of an
        // errno holds none). It runs after the change of user, which would undo the prctl.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(at_death)?;
                // The parent may have died before the call above.
                if getppid() == loadline { Ok(()) } else { Err(Errno::ESRCH.into()) }
            });
        }
        command
    }
}

/// A server program, by what it says with `--version`.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) product: &'static Product,
    /// The product's own name, if it is one that is like it.
    name: &'static str,
    /// `17.10`, `10.11.6-MariaDB`.
    version: String,
    pub(crate) release: Release,
}

impl Program {
    /// Reads `postgres (PostgreSQL) 17.10 (Debian …)` and `mysqld  Ver 8.0.33 for Linux on x86_64 (…)`.
    fn parse(path: &Path, text: &str) -> Option<Program> {
        let after = |mark| text.split_once(mark)?.1.split_whitespace().next();
        let (product, of, version) = match (after("(PostgreSQL) "), after(" Ver ")) {
            (Some(version), _) => (&SERVERS.postgres, descriptor::Product::Postgres, version),
            (_, Some(version)) if version.contains("MariaDB") => {
                (&SERVERS.mariadb, descriptor::Product::Mariadb, version)
            }
            (_, Some(version)) => (&SERVERS.mysql, descriptor::Product::Mysql, version),
            (None, None) => return None,
        };
        // Not of its path, which comes first.
        let own = text.split_once(" Ver ").map_or(text, |(_, own)| own);
        let name = flavour::recognised(&[own]).map_or(&product.name, |flavour| &flavour.name);
        let release = Release::new(of, version);
        Some(Program { path: path.to_owned(), product, name, version: version.to_owned(), release })
    }

    /// Version for the report, with the name of a product that is like the original.
    pub(crate) fn shown(&self) -> String {
        if self.name == self.product.name { self.version.clone() } else { format!("{} {}", self.name, self.version) }
    }

    /// The server of `product` in `bin`, which the user named, else the first in the folders of packages and PATH. `mysqld` is often a
    /// link to MariaDB's.
    pub(crate) fn find(product: &Product, bin: Option<&Path>, user: &User) -> Result<Program, TargetError> {
        let Product { scheme, name, program, also, packages: [debian, fedora], oldest, supported, .. } = product;
        let mut other = String::new();
        let is_complete = |dir: &PathBuf| std::iter::once(program).chain(also).all(|file| dir.join(file).is_file());
        let dirs = bin.map_or_else(|| folders(product), |bin| vec![bin.to_owned()]);
        for dir in dirs.into_iter().filter(is_complete) {
            let found = Program::ask(&dir.join(program), user, AT_MOST)?;
            if found.product.name == *name && found.release.is_from(oldest) {
                return Ok(found);
            }
            if found.product.name == *name {
                return Err(TargetError::Refused(format!(
                    "'{}' is version {}, but loadline needs {supported}: install a newer one, or give its directory with \
                     {scheme}:?bin=/dir",
                    found.path.display(),
                    found.version
                )));
            }
            if other.is_empty() {
                other = format!("; '{}' is {} {}", found.path.display(), found.name, found.version);
            }
        }
        if let Some(bin) = bin {
            let files = std::iter::once(program).chain(also).map(String::as_str).collect::<Vec<_>>();
            return Err(TargetError::Usage(format!(
                "bin='{}' has no {name} server ({}{other}): {scheme}: starts {name} {supported}, from a directory such as {}",
                bin.display(),
                files.join(" and "),
                product.bin
            )));
        }
        Err(TargetError::Local(format!(
            "no {name} server is installed here (looked for {program} in {} and PATH{other}): install one ('apt-get install \
             {debian}' on Debian and Ubuntu, 'dnf install {fedora}' on Fedora and RHEL), or name its directory with \
             {scheme}:?bin=/dir",
            product.folders.join(", ")
        )))
    }

    /// The program that makes a data folder: the first of `maker` in one of the folders `beside` this server, or itself.
    pub(super) fn maker(&self, product: &Product) -> Result<PathBuf, TargetError> {
        let Some(name) = product.maker.first() else { return Ok(self.path.clone()) };
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let dirs: Vec<PathBuf> = product.beside.iter().map(|place| dir.join(place)).collect();
        let programs = dirs.iter().flat_map(|dir| product.maker.iter().map(move |name| dir.join(name)));
        // Without `..`, for messages.
        programs.filter(|path| path.is_file()).find_map(|path| path.canonicalize().ok()).ok_or_else(|| {
            TargetError::Usage(format!(
                "'{}' needs '{name}', which is missing (looked in {}): install it, or name the directory of a whole server with \
                 ?bin=/dir, such as {}",
                self.path.display(),
                dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", "),
                product.bin
            ))
        })
    }

    /// Asks the program for its version, as the server's user: that shows whether the user can run it.
    pub(super) fn ask(path: &Path, user: &User, at_most: Duration) -> Result<Program, TargetError> {
        let failed = |why: String| {
            TargetError::Refused(format!(
                "the user '{}' cannot run '{} --version': {why}. Name other binaries with ?bin=/dir",
                user.name,
                path.display()
            ))
        };
        let output = version(user.command(path, Signal::SIGKILL), at_most).map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let program = if output.status.success() { Program::parse(path, &text) } else { None };
        program.ok_or_else(|| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            failed(format!("its output is '{}'", [text.trim(), stderr.trim()].concat()))
        })
    }
}

/// The folders of packages, of those with a version the newest first, and those of PATH.
pub(super) fn folders(product: &Product) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = product.folders.iter().flat_map(|pattern| expand(pattern)).collect();
    found.sort_by_key(|(version, _)| Reverse(*version));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_path = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    found.into_iter().map(|(_, dir)| dir).chain(of_path).collect()
}

/// The folders that `pattern` stands for, with the versions in place of its `*`.
fn expand(pattern: &str) -> Vec<(u32, PathBuf)> {
    let Some((head, tail)) = pattern.split_once('*') else { return vec![(0, pattern.into())] };
    let (dir, prefix) = head.rsplit_once('/').unwrap_or(("", head));
    let entries = std::fs::read_dir(format!("{dir}/")).into_iter().flatten().flatten();
    let folder = |name: String| {
        let version = name.strip_prefix(prefix)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        Some((version, PathBuf::from(format!("{dir}/{name}{tail}"))))
    };
    entries.filter_map(|entry| folder(entry.file_name().into_string().ok()?)).collect()
}

/// Output of `program --version`, unless it takes longer than `at_most`.
pub(super) fn version(mut program: Command, at_most: Duration) -> io::Result<Output> {
    let mut child = program.arg("--version").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() >= at_most {
            // With what it started, in a process group of its own.
            let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
            child.wait()?;
            return Err(io::Error::other(format!("it has not ended in {} s", at_most.as_secs())));
        }
        sleep(Duration::from_millis(2));
    }
    child.wait_with_output()
}

pub(crate) fn cannot_run(program: &Path, e: &io::Error) -> TargetError {
    TargetError::Local(format!("'{}' cannot be run: {e}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn products_and_versions() {
        for (text, product, shown) in cases::<(String, String, String)>("program-versions") {
            let said = Program::parse(Path::new("/x"), &text).unwrap();
            assert_eq!((said.product.name.clone(), said.shown()), (product, shown), "{text}");
        }
        assert!(Program::parse(Path::new("/x"), "bash: postgres: command not found").is_none());
    }

    #[test]
    fn folders_with_a_version() {
        let base = tempfile::tempdir().unwrap();
        for name in ["pg-9.6", "pg-17", "pg-common", "other-3"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        let base = base.path().to_str().unwrap();
        let mut found = expand(&format!("{base}/pg-*/bin"));
        found.sort();
        assert_eq!(found, [(9, format!("{base}/pg-9.6/bin").into()), (17, format!("{base}/pg-17/bin").into())]);
        assert_eq!(expand("/usr/sbin"), [(0, "/usr/sbin".into())]);
    }
}
