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
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::Level;
use crate::target::Target;
use crate::temp::settings::{Product, SERVERS};
use crate::temp::{check_url, clean_leftovers};
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
        Ok(Box::new(Mysql::open(&request.url, request, None)?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render::all(work, &TempKind::MariaDb)
    }
}

/// Private servers, created for the run; of Galera a cluster.
pub(crate) enum TempKind {
    MariaDb,
    MySql,
    Galera,
}

impl TempKind {
    fn product(&self) -> &'static Product {
        match self {
            TempKind::MariaDb => &SERVERS.mariadb,
            TempKind::MySql => &SERVERS.mysql,
            TempKind::Galera => &SERVERS.galera,
        }
    }
}

impl TargetKind for TempKind {
    fn scheme(&self) -> &'static str {
        match self {
            TempKind::MariaDb => "mariadb-temp",
            TempKind::MySql => "mysql-temp",
            TempKind::Galera => "galera-temp",
        }
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        check_url(self.product(), url)
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        let server = TempServer::open(self.product(), request)?;
        levels::follow(&server)?;
        let (url, request) = server.address(request);
        Ok(Box::new(Mysql::open(&url, &request, Some(Arc::new(Mutex::new(server))))?))
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        render::all(work, self)
    }

    fn clean_leftovers(&self, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
        clean_leftovers(self.product(), request)
    }

    fn is_temporary(&self, _: &str) -> bool {
        true
    }

    fn levels(&self) -> Vec<Level> {
        if matches!(self, TempKind::MariaDb) { levels::levels() } else { Vec::new() }
    }
}
