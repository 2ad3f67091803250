//! Oracle Database, from 19c on: written against its documentation, never run against a live server.
//!
//! All that loadline sends is text from this module, which compiles and is tested without the driver
//! (`session.rs` is the interface). The driver, Oracle's own in pure Rust, is the cargo feature `oracle`,
//! because its second cryptography library takes longer to compile than all other dependencies.

mod activity;
mod address;
mod awr;
mod block;
mod cluster;
mod counters;
mod disk_space;
mod doctor;
#[cfg(feature = "oracle")]
mod driver;
mod jobs;
mod knowledge;
mod nodes;
mod parallel;
mod render;
mod schema;
mod session;
mod sql;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::request::OpenRequest;
use crate::target::Target;

/// Shown with figures and checks of this target.
const NEVER_RUN: &str = "this target was written against Oracle's documentation and has never been run against a live server: \
     tell us what `loadline doctor` says on yours";

/// The kind.
pub(crate) static KIND: TargetKind = TargetKind {
    scheme: "oracle",
    aliases: &[],
    product: "Oracle Database",
    source_key: "oracle",
    summary: "an Oracle database, 19c or later (never run against a live server; needs the cargo feature 'oracle')",
    url_forms: &[
        (
            "oracle://user@host:1521/service",
            "a service, over TCP; the password is asked for or taken from ORACLE_PASSWORD",
        ),
        (
            "oracle://user@host:2484/service?protocol=tcps&wallet=/dir",
            "encrypted, with the certificates of /dir/ewallet.pem",
        ),
    ],
    capabilities: render::capabilities,
    check_url: |url| address::OraAddress::parse(url).map(|_| 1),
    open,
    render: render::all,
    clean_leftovers: |_| Ok(Vec::new()),
    is_temporary: |_| false,
    no_limit: None,
    no_sessions: None,
    native_report: Some(&awr::REPORT),
    levels: Vec::new,
    no_levels: None,
    level_settings: &[],
};

/// The driver, if it is built in.
#[cfg(feature = "oracle")]
const DRIVER: Option<&session::Connector> = Some(&driver::connect);
#[cfg(not(feature = "oracle"))]
const DRIVER: Option<&session::Connector> = None;

fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let address = address::OraAddress::parse(&request.url)?;
    cluster::Oracle::open(request, DRIVER.ok_or_else(|| no_driver(&address))?)
}

/// How to build the driver in.
fn no_driver(address: &address::OraAddress) -> TargetError {
    TargetError::Unsupported(format!(
        "{}: this loadline was built without the Oracle driver. Build it in, in loadline's source folder: \
         cargo install --path crates/cli --features oracle",
        address.shown()
    ))
}

#[cfg(test)]
mod tests;
