//! PostgreSQL 14 to 18, and servers with the same protocol and views.
//!
//! The timing loop uses loadline's own thin blocking session ([`wire`]), so its cost is known.

mod activity;
mod changed_settings;
mod client;
mod config;
mod connect;
mod doctor;
mod knowledge;
mod levels;
mod loading;
mod observer;
mod pair;
mod parallel;
mod pgpass;
mod procedure;
mod protocol;
mod roles;
mod schema;
mod server;
mod settings;
mod sql;
mod standbys;
mod switch;
mod temp;
mod text;
mod versions;
mod wire;

use std::sync::{Arc, Mutex};

use loadline_model::capability::{Capabilities, Capability, Driver};

use knowledge::KNOWLEDGE;
use server::Postgres;
use temp::TempServer;
use versions::{NEWEST, Version};

use crate::env::process_env;
use crate::kind::TargetKind;
use crate::render::{self, NO_COUNTS, NO_LANGUAGE, Rendered, lacking};
use crate::temp::settings::SERVERS;
use crate::temp::{check_url, clean_leftovers};
use crate::work::Work;

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
    capabilities,
    check_url: |url| config::Config::parse(url, &process_env).map(|_| 1),
    open: |request| Ok(Box::new(Postgres::open("postgres", &request.url, request, None)?)),
    render,
    clean_leftovers: |_| Ok(Vec::new()),
    is_temporary: |_| false,
    no_limit: None,
    no_sessions: None,
    native_report: None,
    levels: levels::known,
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

/// Limits of the drivers.
fn capabilities() -> Capabilities {
    let no_copy = "a procedure cannot receive rows: COPY needs a client";
    let no_scripts = "pgbench scripts are run by a client, as pgbench does";
    lacking([
        (Driver::Database, Capability::BulkLoad, no_copy),
        (Driver::Client, Capability::Procedures, NO_LANGUAGE),
        (Driver::Database, Capability::Scripts, no_scripts),
        (Driver::Database, Capability::CountChanges, NO_COUNTS),
    ])
}

fn render(work: &Work) -> Vec<Rendered> {
    let dialect = &KNOWLEDGE.dialect;
    let mut out = render::tables(work, dialect);
    if let Some(workers) = work.parallel_workers() {
        let settings = parallel::settings(workers);
        let sql: Vec<String> = settings.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
        out.push(Rendered::new("session", sql.join("\n")));
        out.push(Rendered::new("tables, before each test", parallel::table_settings(work).join("\n")));
    }
    out.extend(render::statements(work, dialect, ""));
    if capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        let procedure = procedure::create(work, Version { major: NEWEST });
        out.push(Rendered::new("procedure", procedure).by(Driver::Database));
    }
    out.extend(render::queries(work, dialect, ""));
    out
}
