//! PostgreSQL 14 to 18, and servers with the same protocol and views.
//!
//! The timing loop uses loadline's own thin blocking session ([`wire`]), so its cost is known.

mod activity;
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
mod procedure;
mod protocol;
mod roles;
mod schema;
mod server;
mod settings;
mod sql;
mod standbys;
mod temp;
mod text;
mod wire;

use std::sync::{Arc, Mutex};

use loadline_model::Driver;

use knowledge::{KNOWLEDGE, NEWEST, Version};
use server::Postgres;
use temp::{TempServer, url_of};

use crate::env::process_env;
use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::render::{self, Rendered};
use crate::request::OpenRequest;
use crate::role::Level;
use crate::target::Target;
use crate::temp::settings::SERVERS;
use crate::temp::{check_url, clean_leftovers};
use crate::work::Work;

/// An existing server, or a private one that is created for the run.
pub(crate) enum Kind {
    Server,
    Private,
}

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        if self.is_temporary("") { "postgres-temp" } else { "postgres" }
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        match self {
            Kind::Server => config::Config::parse(url, &process_env).map(|_| 1),
            Kind::Private => check_url(&SERVERS.postgres, url),
        }
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        let (url, server) = match self {
            Kind::Server => (request.url.clone(), None),
            Kind::Private => {
                let server = TempServer::open(request)?;
                (url_of(&server.first), Some(Arc::new(Mutex::new(server))))
            }
        };
        Ok(Box::new(Postgres::open(self.scheme(), &url, request, server)?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        let dialect = &KNOWLEDGE.dialect;
        let mut out = render::tables(work, dialect);
        if let Some(workers) = work.parallel_workers() {
            let settings = sql::parallel_settings(workers);
            let sql: Vec<String> = settings.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
            out.push(Rendered::new("session", sql.join("\n")));
            out.push(Rendered::new("tables, before each test", sql::parallel_tables(work).join("\n")));
        }
        out.extend(render::statements(work, dialect, ""));
        if Kind::Server.facts().capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
            let procedure = procedure::create(work, Version { major: NEWEST });
            out.push(Rendered::new("procedure", procedure).by(Driver::Database));
        }
        out.extend(render::queries(work, dialect, ""));
        out
    }

    fn clean_leftovers(&self, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
        if self.is_temporary("") { clean_leftovers(&SERVERS.postgres, request) } else { Ok(Vec::new()) }
    }

    fn is_temporary(&self, _: &str) -> bool {
        matches!(self, Kind::Private)
    }

    fn levels(&self) -> Vec<Level> {
        levels::known()
    }

    fn level_settings(&self) -> &'static [&'static str] {
        if self.is_temporary("") { &[] } else { &pair::CHANGED }
    }
}
