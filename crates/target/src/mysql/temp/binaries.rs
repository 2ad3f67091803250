//! The installed server binaries.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::error::TargetError;
use crate::mysql::version::Version;
use crate::temp::user::ServerUser;

/// Where distributions put them, beside PATH.
const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/local/mysql/bin"];

/// The programs of an installed server.
#[derive(Debug)]
pub(super) struct Binaries {
    /// `mariadbd`.
    pub(super) server: PathBuf,
    /// `mariadb-install-db`.
    pub(super) install: PathBuf,
    /// As the server says it: `10.11.6-MariaDB`.
    pub(super) version: String,
}

/// The installed programs.
pub(super) fn find(user: &ServerUser) -> Result<Binaries, TargetError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path)).collect();
    let in_folders = |names: &[&str]| -> Option<PathBuf> {
        names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file())
    };
    let found = in_folders(&["mariadbd"]).zip(in_folders(&["mariadb-install-db", "mysql_install_db"]));
    let (server, install) = found.ok_or_else(|| {
        TargetError::Local(
            "no MariaDB server is installed here (looked for mariadbd and mariadb-install-db in the system's folders and \
             PATH): install one («apt-get install mariadb-server» on Debian and Ubuntu, «dnf install mariadb-server» on \
             Fedora and RHEL)"
                .to_owned(),
        )
    })?;
    let version = version_of(&server, user)?;
    Version::parse(&version).check(&server.display().to_string()).map_err(|e| TargetError::Local(e.to_string()))?;
    Ok(Binaries { server, install, version })
}

/// Asks as the server's user, so that binaries out of its reach show here.
fn version_of(server: &Path, user: &ServerUser) -> Result<String, TargetError> {
    let failed = |why: String| {
        TargetError::Local(format!("the user «{}» cannot run «{} --version»: {why}", user.name, server.display()))
    };
    let output = user.command(server, Signal::SIGKILL).arg("--version").output().map_err(|e| failed(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_once("Ver ").and_then(|(_, rest)| rest.split_whitespace().next());
    version.map(str::to_owned).ok_or_else(|| failed(format!("it answers «{}»", text.trim())))
}
