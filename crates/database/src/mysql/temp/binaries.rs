//! The installed server binaries.

use std::path::{Path, PathBuf};

use crate::error::TargetError;
use crate::mysql::version::Version;
use crate::temp::user::ServerUser;

/// Where distributions install the programs, besides PATH.
const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/local/mysql/bin"];

/// Where distributions and archives put [`INSTALL`], relative to [`SERVER`].
const BESIDE: [&str; 4] = [".", "../bin", "../sbin", "../scripts"];
const SERVER: &str = "mariadbd";
const INSTALL: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];

/// The programs of an installed server.
#[derive(Debug)]
pub(super) struct Binaries {
    /// `mariadbd`.
    pub(super) server: PathBuf,
    /// `mariadb-install-db`.
    pub(super) install: PathBuf,
    /// `basedir`, if the user named the binaries; else the built-in one.
    pub(super) base: Option<PathBuf>,
    /// As the server reports it: `10.11.6-MariaDB`.
    pub(super) version: String,
}

/// The programs in `given`, else the installed ones.
pub(super) fn find(given: Option<&Path>, user: &ServerUser) -> Result<Binaries, TargetError> {
    let (server, install, base) = match given {
        Some(dir) => named(dir)?,
        None => installed()?,
    };
    let version = user.version(&server, "Ver ", "mariadb-temp")?;
    Version::parse(&version).check(&server.display().to_string()).map_err(|e| TargetError::Local(e.to_string()))?;
    Ok(Binaries { server, install, base, version })
}

type Places = (PathBuf, PathBuf, Option<PathBuf>);

/// The programs in the user's directory, or beside it.
fn named(dir: &Path) -> Result<Places, TargetError> {
    let server = dir.join(SERVER);
    let install = BESIDE.iter().flat_map(|place| INSTALL.map(|name| dir.join(place).join(name))).find(|p| p.is_file());
    // Without `..`, for messages.
    let install = install.and_then(|path| path.canonicalize().ok());
    match (server.is_file(), install, dir.parent()) {
        (true, Some(install), Some(base)) => Ok((server, install, Some(base.to_owned()))),
        _ => Err(TargetError::Usage(format!(
            "bin='{}' has no '{SERVER}', or no '{}' in it, ../bin, ../sbin or ../scripts: name the directory of the server, \
             such as /usr/sbin",
            dir.display(),
            INSTALL[0]
        ))),
    }
}

fn installed() -> Result<Places, TargetError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path)).collect();
    let in_folders = |names: &[&str]| -> Option<PathBuf> {
        names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file())
    };
    let (server, install) = in_folders(&[SERVER]).zip(in_folders(&INSTALL)).ok_or_else(|| {
        TargetError::Local(
            "no MariaDB server is installed here (looked for mariadbd and mariadb-install-db in the system's directories and \
             PATH): install one ('apt-get install mariadb-server' on Debian and Ubuntu, 'dnf install mariadb-server' on \
             Fedora and RHEL), or name its directory with mariadb-temp:?bin=/dir"
                .to_owned(),
        )
    })?;
    Ok((server, install, None))
}
