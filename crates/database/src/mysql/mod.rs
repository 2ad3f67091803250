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
pub(crate) static KIND: TargetKind = TargetKind {
    scheme: "mysql",
    aliases: &["mariadb"],
    product: "MariaDB/MySQL",
    source_key: "mysql",
    summary: "a MariaDB server, 10.6 or newer, with the drivers of mariadb-temp:, or MySQL, 8.0 or newer, with those of mysql-temp:",
    url_forms: &[
        (
            "mysql://user@host:3306/database",
            "over TCP; ?ssl-mode=verify-identity requires encryption and a valid certificate",
        ),
        ("mysql://user@/database?socket=/path/of/the.sock", "over a Unix socket"),
    ],
    // Those of both; the server's own are known once it is open.
    capabilities: render::of_mysql,
    check_url: |url| config::Config::parse(url, &process_env).map(|_| 1),
    open: |request| Ok(Box::new(Mysql::open(&request.url, request, None)?)),
    render: |work| render::all(work, &render::of_mariadb()),
    clean_leftovers: |_| Ok(Vec::new()),
    is_temporary: |_| false,
    no_limit: None,
    no_sessions: None,
    native_report: None,
    levels: Vec::new,
    no_levels: None,
    level_settings: &[],
};

/// A private MariaDB, created for the run.
pub(crate) static MARIADB_TEMP_KIND: TargetKind = TargetKind {
    scheme: "mariadb-temp",
    aliases: &[],
    product: "MariaDB",
    summary: "a private throwaway MariaDB server, created for the run from the installed binaries",
    capabilities: render::of_mariadb,
    url_forms: &[
        ("mariadb-temp:", "next to the results"),
        ("mariadb-temp:/folder", "in a folder of its own under this one"),
        ("mariadb-temp:?bin=/opt/mariadb/bin", "from the binaries in this folder"),
    ],
    check_url: |url| check_url(&SERVERS.mariadb, url),
    open: |request| open_temp(&SERVERS.mariadb, request),
    clean_leftovers: |request| clean_leftovers(&SERVERS.mariadb, request),
    is_temporary: |_| true,
    levels: levels::levels,
    ..KIND
};

/// A private MySQL, created for the run.
pub(crate) static MYSQL_TEMP_KIND: TargetKind = TargetKind {
    scheme: "mysql-temp",
    product: "MySQL",
    summary: "a private throwaway MySQL server, created for the run from the installed binaries",
    url_forms: &[
        ("mysql-temp:", "next to the results"),
        ("mysql-temp:/folder", "in a folder of its own under this one"),
        ("mysql-temp:?bin=/opt/mysql/bin", "from the binaries in this folder"),
    ],
    capabilities: render::of_mysql,
    render: |work| render::all(work, &render::of_mysql()),
    check_url: |url| check_url(&SERVERS.mysql, url),
    open: |request| open_temp(&SERVERS.mysql, request),
    levels: Vec::new,
    no_levels: Some(
        "semi-synchronous replication of MySQL is not supported: --target mariadb-temp: has levels with the same waits (after-sync, \
         after-commit)",
    ),
    clean_leftovers: |request| clean_leftovers(&SERVERS.mysql, request),
    ..MARIADB_TEMP_KIND
};

/// A private Galera cluster of MariaDB servers, created for the run.
pub(crate) static GALERA_TEMP_KIND: TargetKind = TargetKind {
    scheme: "galera-temp",
    summary: "a private throwaway Galera cluster of MariaDB servers, created for the run from the installed binaries",
    url_forms: &[
        ("galera-temp:?nodes=3", "of so many nodes, 1 to 8, next to the results"),
        ("galera-temp:/folder", "each node in a folder of its own under this one"),
        ("galera-temp:?bin=/opt/mariadb/bin", "from the binaries in this folder"),
        ("galera-temp:?provider=/opt/lib/libgalera_smm.so", "with this library of Galera"),
    ],
    check_url: |url| check_url(&SERVERS.galera, url),
    open: |request| open_temp(&SERVERS.galera, request),
    levels: Vec::new,
    no_levels: Some(
        "the nodes of a Galera cluster learn each other's addresses and connect past any relay, so its traffic cannot be proved to \
         take the distance. What a cluster adds to a commit without one is a comparison: loadline ab --target-a \
         'galera-temp:?nodes=1' --target-b 'galera-temp:?nodes=3' --nodes 1 --workload LGWR-LAT1",
    ),
    clean_leftovers: |request| clean_leftovers(&SERVERS.galera, request),
    ..MARIADB_TEMP_KIND
};

fn open_temp(product: &'static Product, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let server = TempServer::open(product, request)?;
    levels::follow(&server)?;
    let (url, request) = server.address(request);
    Ok(Box::new(Mysql::open(&url, &request, Some(Arc::new(Mutex::new(server))))?))
}
