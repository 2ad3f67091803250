//! The private throwaway MariaDB server behind `mariadb-temp:`.
//!
//! It is made from the installed binaries next to the results, answers on a Unix socket only, dies
//! with loadline even when that is killed, and is removed to the last file. What a killed loadline
//! leaves behind is marked by an owner file and removed by the next start or by `loadline clean`.

mod address;
mod binaries;
mod install;
mod instance;
mod settings;

use std::os::unix::ffi::OsStrExt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::cache;
use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::place::{self, Wanted};
use crate::temp::user::ServerUser;
use crate::temp::{leftovers, memory};

use address::{Address, SCHEME};
use instance::Instance;
use settings::Settings;

/// By what its directories are known.
const PREFIX: &str = "loadline-mariadb-";
/// How leftovers are told from those of others, and removed.
const LEFTOVERS: &leftovers::Kind = &instance::LAYOUT.kind;
/// The administrator. The socket's directory is open to the server's own operating system user and
/// to root only, so it needs no password.
const SUPERUSER: &str = "root";
/// What stays as it is in a URL's query (RFC 3986, unreserved characters).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A running private server. Dropping it stops the server and removes all of it.
pub(super) struct TempServer {
    notes: Vec<String>,
    instance: Instance,
    /// Size of its buffer pool, bytes; `None` if the user chose it.
    usual_cache: Option<u64>,
}

impl TempServer {
    /// Makes a server and starts it. Leftovers of dead owners in the same place are removed first.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL, or a setting that MariaDB does not know or take.
    /// - [`TargetError::Local`]: no binaries, no usable directory, or the server failed.
    ///
    /// Nothing is left behind in either case.
    pub(super) fn start(request: &OpenRequest) -> Result<TempServer, TargetError> {
        let address = Address::parse(&request.url)?;
        if let Some(node) = request.nodes.first() {
            return Err(TargetError::Usage(format!(
                "a private throwaway server has one node: leave out --node {}",
                crate::redact(node)
            )));
        }
        settings::check_names(&request.settings)?;
        let user = ServerUser::choose("MariaDB", "mysql")?;
        let binaries = binaries::find(address.bin.as_deref(), &user)?;
        settings::check_values(&request.settings, &binaries, &user)?;
        let place = place::choose(Wanted {
            scheme: SCHEME,
            log_setting: "innodb_log_file_size",
            dir: address.dir.as_deref(),
            scratch: &request.scratch,
            user: &user,
            program: &binaries.server,
        })?;
        let leftovers = leftovers::remove(*LEFTOVERS, &[request.scratch.clone(), place.parent.clone()]);
        let settings = Settings::new(memory::memory_bytes(), &request.settings);
        let mut instance = Instance::create(&place, &user)?;
        instance.start(&binaries, &user, &settings)?;
        let mut notes = vec![format!(
            "private MariaDB {} ({}), made for this run and removed after it; it ran as the user «{}»",
            binaries.version,
            binaries.server.display(),
            user.name
        )];
        notes.push(place.note);
        notes.extend(settings.notes());
        notes.extend(leftovers.removed);
        notes.extend(leftovers.failed);
        Ok(TempServer { notes, instance, usual_cache: settings.own_pool(memory::memory_bytes()) })
    }

    /// Size that the buffer pool is to have: small against so much data, or (`None`) the usual one; `None` where
    /// the user's stands.
    pub(super) fn cache(&self, data_bytes: Option<u64>) -> Option<u64> {
        let usual = self.usual_cache?;
        Some(data_bytes.map_or(usual, |bytes| cache::small(bytes).min(usual)))
    }

    /// URL of the running server. There is no password in it, as none is needed.
    pub(super) fn url(&self) -> String {
        let socket = self.instance.socket();
        format!("mysql://{SUPERUSER}@/?socket={}", percent_encode(socket.as_os_str().as_bytes(), QUERY))
    }

    /// What a reader of the report should know.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Checks a URL without touching anything.
///
/// # Errors
/// [`TargetError::Usage`] naming what is wrong and what is allowed.
pub(super) fn check_url(url: &str) -> Result<(), TargetError> {
    Address::parse(url).map(drop)
}

/// Removes the private servers of dead owners in the results folder, in the directory of the URL and
/// in `/var/tmp`; stops those that still run. A server whose owner lives is not touched.
///
/// # Errors
/// [`TargetError::Local`]: something could not be removed; the text also says what was.
pub(super) fn clean_leftovers(request: &OpenRequest) -> Result<Vec<String>, TargetError> {
    let mut places = vec![request.scratch.clone()];
    if address::is_temp(&request.url) {
        places.extend(Address::parse(&request.url)?.dir);
    }
    places.push(place::FALLBACK.into());
    let found = leftovers::remove(*LEFTOVERS, &places);
    if found.failed.is_empty() {
        return Ok(found.removed);
    }
    let removed = if found.removed.is_empty() { String::new() } else { format!("; {}", found.removed.join("; ")) };
    Err(TargetError::Local(format!("{}{removed}", found.failed.join("; "))))
}
