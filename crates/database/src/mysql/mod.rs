//! MariaDB 10.6 and newer, and MySQL 8.0 and newer, which speaks the same protocol.
//!
//! The session is loadline's own code ([`wire`]), so that the cost of the timing loop is known.

mod activity;
mod cache;
mod client;
mod config;
mod connect;
mod doctor;
mod flavours;
mod grants;
mod instance;
mod knowledge;
mod ledger;
mod levels;
mod loading;
mod lost;
mod member;
mod observer;
mod option_file;
mod own_sessions;
mod performance;
mod procedure;
mod protocol;
mod render;
mod roles;
mod schema;
mod server;
mod settings;
mod slice;
mod temp;
mod version;
mod wire;

use std::sync::{Arc, Mutex};

use server::Mysql;
use temp::TempServer;

use crate::env::process_env;
use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::request::OpenRequest;
use crate::target::Target;
use crate::temp::settings::{Product, SERVERS};
use crate::temp::{check_url, clean_leftovers};

/// An existing server.
pub(crate) static KIND: TargetKind = TargetKind::new(
    "mysql",
    |url| config::Config::parse(url, &process_env).map(|_| 1),
    |request| Ok(Box::new(Mysql::open(&request.url, request, None)?)),
    |work| render::all(work, &MARIADB_TEMP_KIND),
);

/// A private MariaDB, created for the run.
pub(crate) static MARIADB_TEMP_KIND: TargetKind = TargetKind {
    clean_leftovers: |request| clean_leftovers(&SERVERS.mariadb, request),
    is_temporary: |_| true,
    levels: levels::levels,
    ..TargetKind::new(
        "mariadb-temp",
        |url| check_url(&SERVERS.mariadb, url),
        |request| open_temp(&SERVERS.mariadb, request),
        |work| render::all(work, &MARIADB_TEMP_KIND),
    )
};

/// A private MySQL, created for the run.
pub(crate) static MYSQL_TEMP_KIND: TargetKind = TargetKind {
    clean_leftovers: |request| clean_leftovers(&SERVERS.mysql, request),
    is_temporary: |_| true,
    ..TargetKind::new(
        "mysql-temp",
        |url| check_url(&SERVERS.mysql, url),
        |request| open_temp(&SERVERS.mysql, request),
        |work| render::all(work, &MYSQL_TEMP_KIND),
    )
};

/// A private Galera cluster of MariaDB servers, created for the run.
pub(crate) static GALERA_TEMP_KIND: TargetKind = TargetKind {
    clean_leftovers: |request| clean_leftovers(&SERVERS.galera, request),
    is_temporary: |_| true,
    ..TargetKind::new(
        "galera-temp",
        |url| check_url(&SERVERS.galera, url),
        |request| open_temp(&SERVERS.galera, request),
        |work| render::all(work, &GALERA_TEMP_KIND),
    )
};

fn open_temp(product: &'static Product, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let server = TempServer::open(product, request)?;
    levels::follow(&server)?;
    let (url, request) = server.address(request);
    Ok(Box::new(Mysql::open(&url, &request, Some(Arc::new(Mutex::new(server))))?))
}
