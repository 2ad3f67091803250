//! PostgreSQL 14 to 18, and servers with the same protocol and views.
//!
//! The timing loop uses loadline's own thin blocking session ([`wire`]), so its cost is known.

mod activity;
mod cancel;
mod changed_settings;
mod client;
mod cluster;
mod config;
mod connect;
mod doctor;
mod flavours;
mod grants;
mod hindrance;
mod identity;
mod knowledge;
mod ledger;
mod loading;
mod log_space;
mod lost;
mod observer;
mod own;
mod pair;
mod parallel;
mod pgpass;
mod procedure;
mod protocol;
mod refusal;
mod render;
mod replay;
mod replication;
mod roles;
mod schema;
mod scram;
mod settings;
mod slice;
mod sql;
mod switch;
mod temp;
mod text;
mod tls;
mod versions;
mod wire;

use std::sync::{Arc, Mutex};

use cluster::Postgres;
use temp::TempServer;

use crate::env::process_env;
use crate::kind::TargetKind;
use crate::temp::settings::SERVERS;
use crate::temp::{check_url, clean_leftovers};

/// An existing server.
pub(crate) static KIND: TargetKind = TargetKind {
    scheme: "postgres",
    aliases: &["postgresql"],
    product: "PostgreSQL",
    source_key: "postgres",
    summary: "a PostgreSQL server, version 14 to 18",
    url_forms: &[
        (
            "postgres://user@host:5432/database",
            "over TCP; ?sslmode=verify-full requires encryption and a valid certificate",
        ),
        ("postgres://user@/database?host=/socket/folder&port=5433", "over the Unix socket in this folder"),
    ],
    capabilities: render::capabilities,
    check_url: |url| config::Config::parse(url, &process_env).map(|_| 1),
    open: |request| Ok(Box::new(Postgres::open("postgres", &request.url, request, None)?)),
    render: render::all,
    clean_leftovers: |_| Ok(Vec::new()),
    is_temporary: |_| false,
    no_limit: None,
    no_sessions: None,
    native_report: None,
    levels: replication::known,
    no_levels: None,
    level_settings: &changed_settings::CHANGED,
};

/// A private server, created for the run.
pub(crate) static TEMP_KIND: TargetKind = TargetKind {
    scheme: "postgres-temp",
    aliases: &[],
    summary: "a private throwaway PostgreSQL server, created for the run from the installed binaries",
    url_forms: &[
        ("postgres-temp:", "next to the results"),
        ("postgres-temp:/folder", "in a new folder under this one"),
        ("postgres-temp:?bin=/usr/lib/postgresql/15/bin", "with these binaries"),
        (
            "postgres-temp:?standbys=2",
            "with two streaming standbys (1 to 8), which are further nodes for jobs that only read",
        ),
    ],
    check_url: |url| check_url(&SERVERS.postgres, url),
    open: |request| {
        let server = TempServer::start(request)?;
        let url = server.url.clone();
        let server = Some(Arc::new(Mutex::new(server)));
        Ok(Box::new(Postgres::open("postgres-temp", &url, request, server)?))
    },
    clean_leftovers: |request| clean_leftovers(&SERVERS.postgres, request),
    is_temporary: |_| true,
    level_settings: &[],
    ..KIND
};
