//! The installed server binaries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::TargetError;
use crate::mysql::version::Version;
use crate::temp::product::Product;
use crate::temp::programs::Program;
use crate::temp::user::ServerUser;

/// Where distributions install the programs, besides PATH.
const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/usr/local/mysql/bin"];

/// Where distributions and archives put [`INSTALL`], relative to the server.
const BESIDE: [&str; 4] = [".", "../bin", "../sbin", "../scripts"];
const INSTALL: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];

/// Where distributions and archives put a server's files, relative to its `basedir`: the option that names the folder, the
/// folders, and what is in the right one.
const FILES: [(&str, &[&str], &str); 3] = [
    ("lc-messages-dir", &["share", "share/mysql", "share/mariadb", "share/mysql-8.0"], "english/errmsg.sys"),
    ("character-sets-dir", &["share/charsets", "share/mysql/charsets", "share/mariadb/charsets"], "Index.xml"),
    ("plugin-dir", &["lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin", "lib/mariadb/plugin"], ""),
];

/// The programs of an installed server.
#[derive(Debug)]
pub(super) struct Binaries {
    /// `mariadbd` or `mysqld`.
    pub(super) server: PathBuf,
    /// `mariadb-install-db`. MySQL's server creates its data directory itself.
    pub(super) install: Option<PathBuf>,
    /// `basedir`, if the user named the binaries; else the built-in one.
    base: Option<PathBuf>,
    pub(super) version: Version,
}

/// The programs in `given`, else the installed ones.
pub(super) fn find(product: &Product, given: Option<&Path>, user: &ServerUser) -> Result<Binaries, TargetError> {
    let program = match given {
        Some(dir) => Program::in_directory(product, dir, user)?,
        None => installed(product, user)?,
    };
    let mut version = Version::parse(&program.said.version);
    version.check(&program.path.display().to_string())?;
    if program.said.name != product.name {
        // For the report.
        version.text = format!("{} {}", program.said.name, version.text);
    }
    let install = if version.mariadb { Some(installer(&program.path, given)?) } else { None };
    let base = given.and_then(Path::parent).map(Path::to_owned);
    Ok(Binaries { server: program.path, install, base, version })
}

/// The program that creates MariaDB's data directory: beside a server that the user named, else in the system's folders.
fn installer(server: &Path, given: Option<&Path>) -> Result<PathBuf, TargetError> {
    let beside = || given.into_iter().flat_map(|dir| BESIDE.map(|place| dir.join(place)));
    let found =
        beside().chain(folders().filter(|_| given.is_none())).flat_map(|dir| INSTALL.map(|name| dir.join(name)));
    // Without `..`, for messages.
    let found = found.into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    let looked = given.map_or("the system's directories and PATH", |_| "its directory, ../bin, ../sbin, ../scripts");
    found.ok_or_else(|| {
        TargetError::Usage(format!(
            "'{}' needs '{}', which is missing (looked in {looked}): install it, or name the directory of a whole server \
             with ?bin=/dir, such as /usr/sbin",
            server.display(),
            INSTALL[0]
        ))
    })
}

/// The system's folders and those of PATH.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    FOLDERS.iter().map(PathBuf::from).chain(of_path)
}

/// The first server of `product` in the system's folders. `mysqld` is often a link to MariaDB's server.
fn installed(product: &Product, user: &ServerUser) -> Result<Program, TargetError> {
    let Product { name, scheme, program, package, .. } = product;
    let mut other = None;
    for path in folders().map(|dir| dir.join(program)).filter(|path| path.is_file()) {
        let found = Program::ask(&path, user)?;
        if found.said.product == *name {
            return Ok(found);
        }
        other.get_or_insert(format!("; '{}' is {} {}", path.display(), found.said.name, found.said.version));
    }
    let other = other.unwrap_or_default();
    Err(TargetError::Local(format!(
        "no {name} server is installed here (looked for {program} in the system's directories and PATH{other}): install one \
         ('apt-get install {package}' on Debian and Ubuntu, 'dnf install {package}' on Fedora and RHEL), or name its \
         directory with {scheme}:?bin=/dir"
    )))
}

impl Binaries {
    /// The program that creates the data directory.
    pub(super) fn installer(&self) -> &Path {
        self.install.as_deref().unwrap_or(&self.server)
    }

    /// The options that lead a server to its own files, if the user named the binaries: its built-in paths are those of
    /// the place that it was made for.
    pub(super) fn paths(&self) -> Vec<OsString> {
        let Some(base) = &self.base else { return Vec::new() };
        let folder = |(name, places, holds): (&str, &[&str], &str)| {
            let place = places.iter().map(|place| base.join(place)).find(|place| place.join(holds).exists())?;
            Some(of_path(name, &place))
        };
        std::iter::once(of_path("basedir", base)).chain(FILES.into_iter().filter_map(folder)).collect()
    }
}

/// `--name=path`, whatever bytes the path has.
pub(super) fn of_path(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(path);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_was_unpacked_anywhere_leads_to_its_own_files() {
        let tree = tempfile::tempdir().unwrap();
        for folder in ["share/mysql/english", "share/mysql/charsets", "lib/mysql/plugin"] {
            std::fs::create_dir_all(tree.path().join(folder)).unwrap();
        }
        std::fs::write(tree.path().join("share/mysql/english/errmsg.sys"), "").unwrap();
        let of = |base| Binaries { server: PathBuf::new(), install: None, base, version: Version::parse("8.0.33") };
        let paths = of(Some(tree.path().to_owned())).paths();
        let base = tree.path().display();
        let expected = ["basedir=", "lc-messages-dir=/share/mysql", "plugin-dir=/lib/mysql/plugin"].map(|option| {
            let (name, folder) = option.split_once('=').unwrap();
            OsString::from(format!("--{name}={base}{folder}"))
        });
        assert_eq!(paths, expected, "character sets without their index are not those of the server");
        assert!(of(None).paths().is_empty());
    }
}
