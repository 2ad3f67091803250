//! The private throwaway PostgreSQL server behind `postgres-temp:`.
//!
//! It is made from the installed binaries next to the results, answers on a Unix socket only, dies
//! with loadline even when that is killed, and is removed to the last file. What a killed loadline
//! leaves behind is marked by an owner file and removed by the next start or by `loadline clean`.

mod address;
mod binaries;
mod instance;
mod place;
mod probe;
mod processes;
mod settings;
mod shared_memory;
#[cfg(test)]
mod tests;
mod user;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::error::TargetError;
use crate::request::OpenRequest;
use crate::temp::{leftovers, memory};

use address::Address;
use binaries::Binaries;
use instance::Instance;
use settings::Settings;
use user::ServerUser;

/// Name of the database's superuser. The socket's directory is open to the server's own operating
/// system user and to root only, so it needs no password.
const SUPERUSER: &str = "postgres";

/// By what its directories are known.
const PREFIX: &str = "loadline-pg-";
/// How leftovers are told from those of others, and removed.
const LEFTOVERS: &leftovers::Kind = &instance::LAYOUT.kind;

/// Part of the socket's file name only, as nothing listens on the network.
const PORT: u16 = 5432;
/// The socket's file name.
const SOCKET: &str = ".s.PGSQL.5432";

/// What stays as it is in a URL's query (RFC 3986, unreserved characters).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A running private server. Dropping it stops the server and removes all of it.
pub(super) struct TempServer {
    url: String,
    notes: Vec<String>,
    /// What it takes to start it again.
    start: Start,
    /// Stops and removes the server when it is dropped.
    instance: Instance,
}

/// What a server is started with.
struct Start {
    binaries: Binaries,
    user: ServerUser,
    settings: Settings,
    given: BTreeMap<String, String>,
}

impl TempServer {
    /// Makes a server and starts it. Leftovers of dead owners in the same place are removed first.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL, or a setting that PostgreSQL does not know or take.
    /// - [`TargetError::Local`]: no binaries, no usable directory, `initdb` or the server failed.
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
        let user = user::choose()?;
        let binaries = binaries::find(address.bin.as_deref(), &user)?;
        let place = place::choose(&address, &request.scratch, &user, &binaries)?;
        let leftovers = leftovers::remove(*LEFTOVERS, &[request.scratch.clone(), place.parent.clone()]);

        let mut instance = Instance::create(&place, &user)?;
        instance.initdb(&binaries, &user)?;
        settings::check_values(&request.settings, &binaries, &user, &instance.data())?;
        let settings = Settings::new(memory::memory_bytes(), &request.settings);
        instance.start(&binaries, &user, &settings, &request.settings)?;

        let mut notes = vec![format!(
            "private PostgreSQL {} from {}, made for this run and removed after it; it ran as the user «{}»",
            binaries.version,
            binaries.dir.display(),
            user.name
        )];
        notes.push(place.note);
        notes.extend(settings.notes());
        notes.extend(leftovers.removed);
        notes.extend(leftovers.failed);
        let sockets = instance.sockets();
        let host = percent_encode(sockets.as_os_str().as_bytes(), QUERY);
        let url = format!("postgres://{SUPERUSER}@/postgres?host={host}&port={PORT}");
        let start = Start { binaries, user, settings, given: request.settings.clone() };
        Ok(TempServer { url, notes, start, instance })
    }

    /// Gives the server a block cache that is small against so much data, or (`None`) the usual one. It is
    /// restarted if it has another; one that the user set stays.
    ///
    /// A sixth of the data: it holds the index by which rows are read (a twelfth), so that a row costs little
    /// more than one read (with an eighth it was 1.3), and few of the rows.
    ///
    /// # Errors
    /// [`TargetError::Local`]: it does not start again.
    pub(super) fn set_cache(&mut self, data_bytes: Option<u64>) -> Result<(), TargetError> {
        let usual = settings::shared_buffers(memory::memory_bytes());
        let mib = data_bytes.map_or(usual, |bytes| (bytes / 6 / (1 << 20)).clamp(1, usual));
        let Start { binaries, user, settings, given } = &mut self.start;
        if settings.set_shared_buffers(mib) {
            self.instance.restart(binaries, user, settings, given)?;
        }
        Ok(())
    }

    /// URL of the running server. There is no password in it, as none is needed.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What a reader of the report should know: binaries, version, user, place and why it was
    /// chosen, settings, leftovers removed.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Checks a URL without touching anything: `postgres-temp:`, `postgres-temp:/dir`, each with
/// `?bin=/dir` or without.
///
/// # Errors
/// [`TargetError::Usage`] naming what is wrong and what is allowed.
pub(super) fn check_url(url: &str) -> Result<(), TargetError> {
    Address::parse(url).map(|_| ())
}

/// Removes the private servers of dead owners in the results folder, in the directory of a
/// `postgres-temp:/dir` URL and in `/var/tmp`; stops those that still run. One line each for what
/// was removed, and for what looks like one of loadline's servers and was left alone, with why.
/// A server whose owner lives, or which loadline did not make, is not touched.
///
/// # Errors
/// - [`TargetError::Usage`]: a `postgres-temp:` URL that cannot be taken.
/// - [`TargetError::Local`]: something could not be removed; the text also says what was.
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
