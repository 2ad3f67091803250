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
mod workers;

use std::sync::{Arc, Mutex};

use loadline_model::Driver;

use knowledge::KNOWLEDGE;
use server::Postgres;
use temp::{TempServer, url_of};
use versions::{NEWEST, Version};

use crate::env::process_env;
use crate::kind::TargetKind;
use crate::render::{self, Rendered};
use crate::temp::settings::SERVERS;
use crate::temp::{check_url, clean_leftovers};
use crate::work::Work;

/// An existing server.
pub(crate) static KIND: TargetKind = TargetKind {
    levels: levels::known,
    level_settings: &changed_settings::CHANGED,
    ..TargetKind::new(
        "postgres",
        |url| config::Config::parse(url, &process_env).map(|_| 1),
        |request| Ok(Box::new(Postgres::open("postgres", &request.url, request, None)?)),
        render,
    )
};

/// A private server, created for the run.
pub(crate) static TEMP_KIND: TargetKind = TargetKind {
    clean_leftovers: |request| clean_leftovers(&SERVERS.postgres, request),
    is_temporary: |_| true,
    levels: levels::known,
    ..TargetKind::new(
        "postgres-temp",
        |url| check_url(&SERVERS.postgres, url),
        |request| {
            let server = TempServer::open(request)?;
            let url = url_of(&server.first);
            let server = Some(Arc::new(Mutex::new(server)));
            Ok(Box::new(Postgres::open("postgres-temp", &url, request, server)?))
        },
        render,
    )
};

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
    if KIND.capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        let procedure = procedure::create(work, Version { major: NEWEST });
        out.push(Rendered::new("procedure", procedure).by(Driver::Database));
    }
    out.extend(render::queries(work, dialect, ""));
    out
}
