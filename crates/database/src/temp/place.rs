//! Where a private server is created: what the target's URL says, else next to the results, because the device there is what is
//! measured.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;

use super::Setup;
use super::programs::{AT_MOST, version};
use super::settings::Product;
use crate::error::TargetError;
use crate::folder::Parents;
use crate::url::{path, unknown};

/// Used if the server's user has no access to the results folder.
pub(crate) const FALLBACK: &str = "/var/tmp";
/// Most servers that a URL can ask for, besides the first if it counts only those.
const MOST: u32 = 8;

/// A parsed `SCHEME:[/dir][?bin=/dir&standbys=N]`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TempUrl {
    /// Folder under which the servers are created.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) bin: Option<PathBuf>,
    /// Library that replicates.
    pub(crate) provider: Option<PathBuf>,
    /// All servers, if it says how many.
    pub(crate) servers: Option<u32>,
}

impl TempUrl {
    pub(crate) fn parse(url: &str, product: &Product) -> Result<TempUrl, TargetError> {
        let Product { scheme, bin, providers, parameter, .. } = product;
        let usage = |what: String| TargetError::Usage(format!("'{}': {what}", crate::redact(url)));
        let rest = if has_scheme(url, scheme) { url.split_once(':').map(|(_, rest)| rest) } else { None };
        let rest = rest.ok_or_else(|| usage(format!("the URL of a private server is {scheme}: or {scheme}:/dir")))?;
        let (dir, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut address = TempUrl::default();
        if dir.starts_with("//") {
            return Err(usage(format!("a private server has no host: write {scheme}: or {scheme}:/dir")));
        }
        if !dir.is_empty() {
            address.dir = Some(path(dir).filter(|path| path.is_absolute()).ok_or_else(|| {
                usage(format!("the directory '{dir}' must begin with /, as in {scheme}:/data/scratch"))
            })?);
        }
        let example = providers.last();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let wrong = |must: String| usage(format!("{name}='{value}' must be {must}"));
            let twice = match (name, example) {
                ("bin", _) => {
                    let dir = path(value).and_then(|dir| std::path::absolute(dir).ok());
                    address.bin.replace(dir.ok_or_else(|| wrong(format!("a directory such as bin={bin}")))?).is_some()
                }
                ("provider", Some(example)) => {
                    let file = path(value).filter(|path| path.is_absolute());
                    address.provider.replace(file.ok_or_else(|| wrong(format!("a file such as {example}")))?).is_some()
                }
                _ if parameter.as_deref() == Some(name) => {
                    let number = value.parse().ok().filter(|n| (1..=MOST).contains(n));
                    let number = number.ok_or_else(|| wrong(format!("a number from 1 to {MOST}")))?;
                    address.servers.replace(number + u32::from(!product.counts_all)).is_some()
                }
                _ => {
                    let known = ["bin"].into_iter().chain(parameter.as_deref()).chain(example.map(|_| "provider"));
                    return Err(usage(format!(
                        "{}: bin is the directory of the server's binaries; give settings with --setting",
                        unknown(name, &known.collect::<Vec<_>>())
                    )));
                }
            };
            if twice {
                return Err(usage(format!("{name} is given twice")));
            }
        }
        Ok(address)
    }
}

pub(crate) fn has_scheme(url: &str, scheme: &str) -> bool {
    url.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(scheme))
}

/// The folder under which the servers are created.
pub(crate) struct Location {
    /// Without symbolic links.
    pub(crate) parent: PathBuf,
    /// The folder and why it was chosen, for the report.
    pub(crate) note: String,
    /// The results folder if it was created here: removed with the server if it is still empty.
    pub(crate) made: Parents,
}

impl Setup {
    /// Chooses the URL's folder, else the results folder (`scratch`), else [`FALLBACK`].
    pub(crate) fn place(&self, scratch: &Path) -> Result<Location, TargetError> {
        let Setup { product: Product { scheme, log_setting, disk_mib, .. }, servers, .. } = self;
        let least = (disk_mib << 20) * u64::from(*servers);
        let place = self.choose_folder(scratch)?;
        let Some(free) = free_bytes(&place.parent).filter(|free| *free < least) else { return Ok(place) };
        Err(TargetError::Local(format!(
            "the filesystem under '{}' is full: {} are free, and {servers} private {} at least {} and space for the log \
             ({log_setting}). Free some GiB there, or name another directory with {scheme}:/dir",
            place.parent.display(),
            bytes(free as f64),
            if *servers == 1 { "server needs" } else { "servers need" },
            bytes(least as f64)
        )))
    }

    fn choose_folder(&self, scratch: &Path) -> Result<Location, TargetError> {
        let Setup { product, user, .. } = self;
        let given = self.url.dir.as_deref();
        let made = if given.is_none() { Parents::make(scratch) } else { Ok(Parents::default()) };
        let made = made.map_err(|e| product.cannot_use(scratch, &e))?;
        let parent = directory(given.unwrap_or(scratch), product)?;
        if self.can_reach(&parent)? {
            let why = if given.is_some() { "given in the target's URL" } else { "next to the results" };
            let note = format!("its files were in {}, {why}", parent.display());
            return Ok(Location { parent, note, made });
        }
        if let Some(dir) = given {
            return Err(TargetError::Usage(format!(
                "the server runs as the user '{}', who has no access to '{}': run chmod o+x on the directory and its \
                 parents, or name another directory",
                user.name,
                dir.display()
            )));
        }
        drop(made);
        let fallback = directory(Path::new(FALLBACK), product)?;
        let device = |path: &Path| std::fs::metadata(path).map(|m| m.dev()).ok();
        // The results folder may be removed again; its parent is on the same device.
        let results = parent.ancestors().find_map(device);
        let device = match (results, device(&fallback)) {
            (Some(a), Some(b)) if a == b => "the same device as the results",
            _ => "ANOTHER device than the results: the figures are those of that device",
        };
        let note = format!(
            "its files were in {FALLBACK} and not next to the results, because its user '{}' has no access to {}; \
             {FALLBACK} is on {device}",
            user.name,
            parent.display()
        );
        Ok(Location { parent: fallback, note, made: Parents::default() })
    }

    /// Tries access with a process of that user, because mode bits are not enough (access lists, network mounts).
    fn can_reach(&self, dir: &Path) -> Result<bool, TargetError> {
        let mut command = self.user.command(&self.program.path, Signal::SIGKILL);
        command.current_dir(dir);
        match version(command, AT_MOST) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
            Err(e) => Err(self.product.cannot_use(dir, &e)),
        }
    }
}

fn directory(path: &Path, product: &Product) -> Result<PathBuf, TargetError> {
    let real = std::fs::canonicalize(path).map_err(|e| product.cannot_use(path, &e))?;
    if real.is_dir() { Ok(real) } else { Err(product.cannot_use(path, &ErrorKind::NotADirectory.into())) }
}

/// Free space for an ordinary user, bytes; `None` if unknown.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    statvfs(path).ok().map(|fs| fs.blocks_available() * fs.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::temp::settings::SERVERS;

    fn parse(url: &str) -> Result<TempUrl, TargetError> {
        TempUrl::parse(url, if has_scheme(url, "galera-temp") { &SERVERS.galera } else { &SERVERS.postgres })
    }

    #[test]
    fn urls() {
        for (text, [dir, bin, provider], servers) in cases::<(String, [String; 3], Vec<u32>)>("private-server-urls") {
            let path = |text: String| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
            let expected =
                TempUrl { dir: path(dir), bin: path(bin), provider: path(provider), servers: servers.first().copied() };
            assert_eq!(parse(&text).unwrap(), expected, "{text}");
        }
    }
}
