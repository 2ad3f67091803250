//! Private throwaway servers of all products: directory, user, start, stop, and removal of leftovers.
//!
//! A server is created from the installed binaries, next to the results. It listens on a Unix socket only, is stopped
//! when loadline ends or is killed, and is removed completely. The leftovers of a killed loadline have an owner file;
//! the next start or `loadline clean` removes them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::error::TargetError;
use crate::request::OpenRequest;

use instance::Instance;
use leftovers::Leftovers;
use place::{Location, ServerToPlace};
use product::Product;
use settings::Settings;
use temp_url::TempUrl;
use user::ServerUser;

pub(crate) mod child;
pub(crate) mod files;
pub(crate) mod instance;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod owner;
pub(crate) mod place;
pub(crate) mod processes;
pub(crate) mod product;
pub(crate) mod programs;
pub(crate) mod settings;
pub(crate) mod temp_url;
pub(crate) mod user;

/// Characters that need no encoding in a URL's query (RFC 3986, unreserved).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A server to be created.
pub(crate) struct Start<'a> {
    product: &'static Product,
    request: &'a OpenRequest,
    pub(crate) address: TempUrl,
    /// The user of the server process.
    pub(crate) user: ServerUser,
    /// Servers besides the first: those of the URL, or the replicas that the request needs.
    pub(crate) further: u32,
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
        let replicas = if product.further.is_some() { request.replicas } else { 0 };
        if let Some(name) = product.further.filter(|_| ![0, replicas].contains(&address.further) && replicas > 0) {
            return Err(TargetError::Usage(format!(
                "{name}={} does not apply here: the levels need {replicas}, which loadline makes; leave it out",
                address.further
            )));
        }
        let further = address.further.max(replicas);
        Ok(Start { product, request, address, user: ServerUser::choose(product)?, further })
    }

    /// Removes leftovers of dead owners, then creates the server's directories. Its user must be able to run `program`
    /// from there.
    ///
    /// # Errors
    /// When no directory can be used.
    pub(crate) fn create(&self, program: &Path) -> Result<(Instance, Site), TargetError> {
        let Start { product, request, user, .. } = self;
        let (dir, scratch) = (self.address.dir.as_deref(), request.scratch.as_path());
        let servers = 1 + self.further;
        let place = place::choose(ServerToPlace { product, dir, scratch, user, program, servers })?;
        let leftovers = leftovers::remove(product, &[request.scratch.clone(), place.parent.clone()]);
        Ok((Instance::create(product, &place, user)?, Site { place, leftovers }))
    }

    /// Creates the directories of another server beside the first.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn another(&self, site: &Site) -> Result<Instance, TargetError> {
        Instance::create(self.product, &site.place, &self.user)
    }

    /// Notes for the report: `server` (version and binaries), user, directory and why it was chosen, settings, removed
    /// leftovers.
    pub(crate) fn notes(&self, server: &str, site: Site, settings: &Settings) -> Vec<String> {
        let Start { product, user, .. } = self;
        let mut notes = vec![format!(
            "private {} {server}, created for this run and removed after it; it ran as the user '{}'",
            product.name, user.name
        )];
        notes.push(site.place.note);
        notes.extend(settings.notes());
        notes.extend(site.leftovers.removed);
        notes.extend(site.leftovers.failed);
        notes
    }
}

/// Where a server was created, and the leftovers removed there.
pub(crate) struct Site {
    place: Location,
    leftovers: Leftovers,
}

fn parse(product: &Product, url: &str) -> Result<TempUrl, TargetError> {
    TempUrl::parse(url, product)
}

/// Validates a URL, and counts its servers.
///
/// # Errors
/// [`TargetError::Usage`] with the invalid part and what is allowed.
pub(crate) fn check_url(product: &Product, url: &str) -> Result<u32, TargetError> {
    parse(product, url).map(|url| 1 + url.further)
}

/// Stops and removes the private servers of dead owners in the results folder, in the directory of the URL and in
/// `/var/tmp`. Returns one line per directory that was removed, or left alone with the reason. Servers whose owner
/// lives, or that loadline did not create, are not touched.
///
/// # Errors
/// - [`TargetError::Usage`]: the URL is invalid.
/// - [`TargetError::Local`]: something could not be removed; the text also lists what was removed.
pub(crate) fn clean_leftovers(product: &Product, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
    let mut places = vec![request.scratch.clone()];
    if temp_url::is_of(&request.url, product.scheme) {
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

/// Encodes a path as the value of a URL parameter.
pub(crate) fn encoded(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), QUERY).to_string()
}
