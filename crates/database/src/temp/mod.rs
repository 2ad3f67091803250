//! Private throwaway servers, whatever their product: where they are put, whom they run as, how they are
//! started and ended, and how what a dead loadline left behind is found.
//!
//! A server is made from the installed binaries next to the results, answers on a Unix socket only, dies
//! with loadline even when that is killed, and is removed to the last file. What a killed loadline leaves
//! behind is marked by an owner file and removed by the next start or by `loadline clean`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::error::TargetError;
use crate::request::OpenRequest;

use address::Address;
use instance::Instance;
use leftovers::Leftovers;
use place::{Location, Wanted};
use product::Product;
use settings::Settings;
use user::ServerUser;

pub(crate) mod address;
pub(crate) mod child;
pub(crate) mod files;
pub(crate) mod instance;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod owner;
pub(crate) mod place;
pub(crate) mod processes;
pub(crate) mod product;
pub(crate) mod settings;
pub(crate) mod user;

/// What stays as it is in a URL's query (RFC 3986, unreserved characters).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A server that is to be made.
pub(crate) struct Start<'a> {
    product: &'static Product,
    request: &'a OpenRequest,
    pub(crate) address: Address,
    /// Whom the server runs as.
    pub(crate) user: ServerUser,
}

impl<'a> Start<'a> {
    /// Checks the request.
    ///
    /// # Errors
    /// [`TargetError::Usage`] for the URL, a further node or the name of a setting; [`TargetError::Local`] if
    /// there is no user to run the server as.
    pub(crate) fn new(product: &'static Product, request: &'a OpenRequest) -> Result<Start<'a>, TargetError> {
        let address = parse(product, &request.url)?;
        if let Some(node) = request.nodes.first() {
            return Err(TargetError::Usage(format!(
                "a private throwaway server has one node: leave out --node {}",
                crate::redact(node)
            )));
        }
        product.check_names(&request.settings)?;
        Ok(Start { product, request, address, user: ServerUser::choose(product)? })
    }

    /// Makes the server's directories; `program` must be within its user's reach from there. Leftovers of dead
    /// owners in the same place are removed first.
    ///
    /// # Errors
    /// [`TargetError`]: no usable directory.
    pub(crate) fn create(&self, program: &Path) -> Result<(Instance, Site), TargetError> {
        let Start { product, request, user, .. } = self;
        let (dir, scratch) = (self.address.dir.as_deref(), request.scratch.as_path());
        let place = place::choose(Wanted { product, dir, scratch, user, program })?;
        let leftovers = leftovers::remove(product, &[request.scratch.clone(), place.parent.clone()]);
        Ok((Instance::create(product, &place, user)?, Site { place, leftovers }))
    }

    /// What a reader of the report should know: `server` (version and binaries), user, place and why it was
    /// chosen, settings, leftovers removed.
    pub(crate) fn notes(&self, server: &str, site: Site, settings: &Settings) -> Vec<String> {
        let Start { product, user, .. } = self;
        let mut notes = vec![format!(
            "private {} {server}, made for this run and removed after it; it ran as the user «{}»",
            product.name, user.name
        )];
        notes.push(site.place.note);
        notes.extend(settings.notes());
        notes.extend(site.leftovers.removed);
        notes.extend(site.leftovers.failed);
        notes
    }
}

/// Where a server was made, and what was removed there.
pub(crate) struct Site {
    place: Location,
    leftovers: Leftovers,
}

fn parse(product: &Product, url: &str) -> Result<Address, TargetError> {
    Address::parse(url, product.scheme, product.bin)
}

/// Checks a URL without touching anything.
///
/// # Errors
/// [`TargetError::Usage`] naming what is wrong and what is allowed.
pub(crate) fn check_url(product: &Product, url: &str) -> Result<(), TargetError> {
    parse(product, url).map(drop)
}

/// Removes the private servers of dead owners in the results folder, in the directory of the URL and in
/// `/var/tmp`; stops those that still run. One line each for what was removed, and for what looks like one
/// of loadline's servers and was left alone, with why. A server whose owner lives, or which loadline did not
/// make, is not touched.
///
/// # Errors
/// - [`TargetError::Usage`]: the URL of a private server that cannot be taken.
/// - [`TargetError::Local`]: something could not be removed; the text also says what was.
pub(crate) fn clean_leftovers(product: &Product, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
    let mut places = vec![request.scratch.clone()];
    if address::is_of(&request.url, product.scheme) {
        places.extend(parse(product, &request.url)?.dir);
    }
    places.push(place::FALLBACK.into());
    let found = leftovers::remove(product, &places);
    if found.failed.is_empty() {
        return Ok(found.removed);
    }
    let removed = if found.removed.is_empty() { String::new() } else { format!("; {}", found.removed.join("; ")) };
    Err(TargetError::Local(format!("{}{removed}", found.failed.join("; "))))
}

/// A path as the value of a URL's parameter.
pub(crate) fn encoded(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), QUERY).to_string()
}
