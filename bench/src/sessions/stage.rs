//! Where contenders meet: a private server.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_database::Work;

use super::SessionsArgs;
use super::turns::{Turns, turns};
use crate::arena::{Arena, Outcome, commits, published, with_settings};

/// The server may count this many commits beside those of a contender: sessions that it opens itself.
const OTHERS: f64 = 10.0;
/// Statements of a session beside its transactions: logins that PostgreSQL counts, settings, counters that are published.
const OF_A_SESSION: f64 = 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Product {
    /// Against pgbench on a private PostgreSQL
    #[value(name = "pgbench")]
    Postgres,
    /// Against sysbench on a private MariaDB
    #[value(name = "sysbench")]
    Mariadb,
}

/// A server with the rows of SRV-QUERY1.
pub(super) struct Stage {
    /// Name of the server's processes.
    process: &'static str,
    pub(super) arena: Arena,
}

impl Stage {
    /// A private server that takes so many sessions.
    pub(super) fn start(product: Product, args: &SessionsArgs, sessions: u32) -> Outcome<Stage> {
        let (url, process) = match product {
            Product::Postgres => ("postgres-temp:", "postgres"),
            Product::Mariadb => ("mariadb-temp:", "mariadbd"),
        };
        let settings = BTreeMap::from([("max_connections".to_owned(), (sessions + 100).to_string())]);
        let target = with_settings(url, &args.results, &settings)?;
        let work = Arc::new(Work::from_catalogue("SRV-QUERY1", &[])?);
        target.create(&work)?;
        target.load(&work, 8)?;
        Ok(Stage { process, arena: Arena { target, work } })
    }

    pub(super) fn name(&self) -> Outcome<String> {
        let info = self.arena.target.info()?;
        Ok(format!("{} {}", info.product, info.version))
    }

    /// Times that each session of the server was given a CPU.
    pub(super) fn turns(&self) -> Turns {
        turns(self.process)
    }

    /// Commits that the server has counted so far.
    pub(super) fn counted(&self) -> Outcome<f64> {
        Ok(commits(&self.arena.target.observer()?.snapshot()?))
    }

    /// Holds the transactions that a contender says against what the server has counted since `before`.
    pub(super) fn confirm(&self, before: f64, said: f64, clients: u32) -> Outcome<()> {
        let most = said * 1.001 + OF_A_SESSION * f64::from(clients) + OTHERS;
        let counted = commits(&published(self.arena.target.observer()?.as_mut(), before + said)?) - before;
        if counted >= said * 0.999 && counted <= most {
            return Ok(());
        }
        Err(format!("{said} transactions are said and {} has counted {counted}", self.name()?).into())
    }
}
