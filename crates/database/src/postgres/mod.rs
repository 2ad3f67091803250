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
mod observer;
mod pair;
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

use knowledge::{KNOWLEDGE, NEWEST, release};
use server::Postgres;
use temp::TempServer;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::render::{self, Rendered};
use crate::request::{OpenRequest, process_env};
use crate::role::Level;
use crate::target::Target;
use crate::temp::PrivateKind;
use crate::work::Work;

/// An existing server.
pub(crate) struct Kind;

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        "postgres"
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        config::Config::parse(url, &process_env).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        Ok(Box::new(Postgres::open(self.scheme(), &request.url, request, None)?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render(work, self)
    }

    fn levels(&self) -> Vec<Level> {
        levels::known()
    }

    fn level_settings(&self) -> &'static [&'static str] {
        &pair::CHANGED
    }
}

/// A private server, created for the run.
pub(crate) const PRIVATE: PrivateKind = PrivateKind {
    product: |servers| &servers.postgres,
    open: |product, request| {
        let server = TempServer::open(product, request, TempServer::keep_log)?;
        let url = server.first.url();
        Ok(Box::new(Postgres::open(&product.scheme, &url, request, Some(Arc::new(Mutex::new(server))))?))
    },
    render,
    levels: levels::known,
};

fn render(work: &Work, kind: &dyn TargetKind) -> Vec<Rendered> {
    let dialect = &KNOWLEDGE.dialect;
    let mut out = render::tables(work, dialect);
    if let Some(workers) = work.parallel_workers() {
        let settings = sql::parallel_settings(workers);
        let sql: Vec<String> = settings.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
        out.push(Rendered::new("session", sql.join("\n")));
        out.push(Rendered::new("tables, before each test", sql::parallel_tables(work).join("\n")));
    }
    out.extend(render::statements(work, dialect, ""));
    if kind.capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        let procedure = procedure::create(work, release(&NEWEST.to_string()));
        out.push(Rendered::new("procedure", procedure).by(Driver::Database));
    }
    out.extend(render::queries(work, dialect, ""));
    out
}
