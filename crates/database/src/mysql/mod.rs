//! MariaDB 10.6 and newer, and MySQL 8.0 and newer, which speaks the same protocol.
//!
//! The session is loadline's own code ([`wire`]), so that the cost of the timing loop is known.

mod activity;
mod cache;
mod client;
mod config;
mod connect;
mod doctor;
mod instance;
mod knowledge;
mod levels;
mod loading;
mod member;
mod observer;
mod own_sessions;
mod performance;
mod procedure;
mod protocol;
mod roles;
mod schema;
mod server;
mod settings;
mod temp;
mod wire;

use std::sync::{Arc, Mutex};

use loadline_model::Driver;

use client::isolation;
use knowledge::KNOWLEDGE;
use server::Mysql;
use temp::TempServer;

use crate::error::TargetError;
use crate::kind::TargetKind;
use crate::render::{self, Rendered};
use crate::request::{OpenRequest, process_env};
use crate::target::Target;
use crate::temp::PrivateKind;
use crate::temp::settings::{Knowledge, Product};
use crate::work::Work;

/// An existing server.
pub(crate) struct Kind;

impl TargetKind for Kind {
    fn scheme(&self) -> &'static str {
        "mysql"
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        config::Config::parse(url, &process_env).map(|_| 1)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        Ok(Box::new(Mysql::open(request, None)?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render(work, &MARIADB)
    }
}

/// Private servers, created for the run; of Galera a cluster.
pub(crate) const MARIADB: PrivateKind = private(|servers| &servers.mariadb);
pub(crate) const MYSQL: PrivateKind = private(|servers| &servers.mysql);
pub(crate) const GALERA: PrivateKind = private(|servers| &servers.galera);

const fn private(product: fn(&Knowledge) -> &Product) -> PrivateKind {
    PrivateKind { product, open: open_private, render, levels: levels::levels }
}

fn open_private(product: &'static Product, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let server = TempServer::open(product, request, |_, _| Ok(()))?;
    levels::follow(&server)?;
    Ok(Box::new(Mysql::open(request, Some(Arc::new(Mutex::new(server))))?))
}

/// The SQL of a workload for people to read, on servers of this `kind`.
fn render(work: &Work, kind: &dyn TargetKind) -> Vec<Rendered> {
    let dialect = &KNOWLEDGE.dialect;
    let mut out = render::tables(work, dialect);
    out.extend(isolation(work).map(|isolation| Rendered::new("session", isolation).by(Driver::Client)));
    out.extend(render::statements(work, dialect, ""));
    if kind.capabilities().refusal_for_good(Driver::Database, &work.workload.needs).is_none() {
        out.extend(procedure::recursive(work).map(|(_, create)| Rendered::new("routine", create).by(Driver::Database)));
        out.push(Rendered::new("procedure", procedure::create(work, false)).by(Driver::Database));
    }
    out.extend(render::queries(work, dialect, ""));
    out
}
