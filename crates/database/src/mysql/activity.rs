//! Statistics views of MariaDB and MySQL: `[[statistics]]` of `mysql.toml`, and the rows that no single query has. Most are in
//! performance_schema, which is off by default on MariaDB.

use loadline_model::activity::{Topic, View};

use super::instance::MysqlInstance;
use super::knowledge::{KNOWLEDGE, ViewNeeds, ViewRows};
use super::observer;
use super::performance;
use super::protocol::Row;
use super::server::Mysql;
use super::settings::{MysqlSettings, is_secret};
use super::version::Version;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::StatisticsViews;
use crate::statement::{DoubleQuotes, without_secrets};
use crate::view::{StatisticsView, ViewQuery, of_servers};

/// Number of the error "table does not exist".
const NO_TABLE: u16 = 1146;

/// Facts of the server that decide which views it has.
struct Server {
    version: Version,
    performance_schema: bool,
    userstat: bool,
    /// Whether it is a member of a Galera cluster.
    wsrep: bool,
}

impl Server {
    fn ask(c: &mut Connection) -> Result<Server, TargetError> {
        let settings = MysqlSettings::read(c)?;
        Ok(Server {
            version: c.version.clone(),
            performance_schema: settings.is_on("performance_schema"),
            userstat: settings.is_on("userstat"),
            wsrep: settings.is_on("wsrep_on"),
        })
    }

    /// Views, without rows. `others`: the condition of sessions that are not loadline's.
    fn views(&self, others: &str) -> Vec<(ViewQuery, &'static ViewNeeds)> {
        // Only `userstat` counts what happens to each table.
        let only_userstat = self.version.mariadb && self.userstat && !self.performance_schema;
        let views = KNOWLEDGE.statistics.iter();
        let views = views.filter(|v| v.needs.only_userstat.is_none_or(|only| only == only_userstat));
        let query = |v: &'static StatisticsView<ViewNeeds>| {
            let galera = if self.wsrep { v.needs.galera.as_str() } else { "" };
            let parts = [("galera", galera), ("others", others)];
            Some((v.at(&self.version, &KNOWLEDGE.fragments, &parts)?, &v.needs))
        };
        views.filter_map(query).collect()
    }

    /// Why performance_schema does not fill a view, if so.
    fn missing(&self, c: &mut Connection, topic: Topic, needs: &ViewNeeds) -> Result<Option<String>, TargetError> {
        if !needs.performance_schema.iter().any(|versions| versions.has((&self.version).into())) {
            return Ok(None);
        }
        if !self.performance_schema {
            let or = if self.version.mariadb && topic == Topic::Objects { ", or SET GLOBAL userstat = ON" } else { "" };
            return Ok(Some(format!("performance_schema is off: start the server with performance_schema = ON{or}")));
        }
        if needs.instruments.is_empty() {
            return Ok(None);
        }
        performance::missing(c, &[needs.instruments.as_str()], &needs.consumers)
    }
}

/// A row of settings without a secret; `None` if only loadline set it.
fn setting(mut row: Row) -> Option<Row> {
    let [Some(name), Some(value), Some(source)] = &mut row[..] else { return Some(row) };
    if source == "DYNAMIC" && KNOWLEDGE.set_by_loadline.get(name) == Some(value) {
        return None;
    }
    if is_secret(name) && !value.is_empty() {
        "(set, not shown)".clone_into(value);
    }
    Some(row)
}

/// A row of running statements without what is in its statement.
fn running(mut row: Row) -> Row {
    if let Some(Some(statement)) = row.first_mut() {
        *statement = without_secrets(statement, DoubleQuotes::Literal);
    }
    row
}

fn read(instance: &MysqlInstance, c: &mut Connection) -> Result<Vec<View>, TargetError> {
    let (server, sessions) = (Server::ask(c)?, &instance.endpoint.sessions);
    let mut views = Vec::new();
    // Whether not all sessions can be seen.
    let mut unseen = false;
    for (query, needs) in server.views(&sessions.are_others()) {
        if needs.rows == ViewRows::Sessions {
            let sees_all = observer::metrics(c)?.is_some();
            let listed = sessions.others(c, sees_all)?;
            unseen = listed.is_none();
            if let Some(listed) = listed {
                views.push(query.with(listed));
                continue;
            }
        }
        if unseen && matches!(needs.rows, ViewRows::Sessions | ViewRows::Running) {
            views.push(query.absent("only sessions of this user can be seen: GRANT PROCESS ON *.* TO the user"));
            continue;
        }
        if let Some(why) = server.missing(c, query.empty.topic, needs)? {
            views.push(query.absent(why));
            continue;
        }
        let rows = c.query(&query.sql);
        views.push(match needs.rows {
            ViewRows::Settings => query.view(rows.map(|rows| rows.into_iter().filter_map(setting).collect()))?,
            ViewRows::Running => query.view(rows.map(|rows| rows.into_iter().map(running).collect()))?,
            ViewRows::Replica => {
                let at = |names: &Vec<String>| c.names.iter().position(|name| names.contains(name));
                let columns: Vec<_> = KNOWLEDGE.replica_names.iter().map(at).collect();
                let row = |row: Row| columns.iter().map(|at| row.get((*at)?).cloned().flatten()).collect();
                query.view(rows.map(|rows| rows.into_iter().map(row).collect()))?
            }
            ViewRows::Sessions | ViewRows::Query => match rows {
                Err(TargetError::Server(_)) if c.last_code == NO_TABLE => query.absent("this server has no such view"),
                rows => query.view(rows)?,
            },
        });
    }
    Ok(views)
}

impl StatisticsViews for Mysql {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        Ok(of_servers(self.each(read)?, "server"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_per_product() {
        let mut text = String::new();
        for (version, performance_schema, userstat, wsrep) in [
            ("10.11.6-MariaDB", true, false, false),
            ("10.11.6-MariaDB", false, true, true),
            ("8.0.36", true, false, false),
        ] {
            let version = Version::parse(version);
            let mariadb = version.mariadb;
            for (query, needs) in (Server { version, performance_schema, userstat, wsrep }).views("{others}") {
                text.push_str(&format!("{mariadb} {userstat} {} {needs:?}\n", query.described()));
            }
        }
        insta::assert_snapshot!("views", text);
    }

    #[test]
    fn settings_hide_secrets_and_what_only_loadline_set() {
        let of = |row: [&str; 3]| setting(row.map(|v| Some(v.to_owned())).to_vec()).map(|row| row[1].clone().unwrap());
        assert_eq!(of(["max_connections", "300", "COMMAND-LINE"]).unwrap(), "300");
        assert_eq!(of(["report_password", "geheim", "CONFIG"]).unwrap(), "(set, not shown)");
        assert_eq!(of(["init_connect", "SET @key = 'geheim'", "CONFIG"]).unwrap(), "(set, not shown)");
        assert_eq!(of(["wsrep_sst_auth", "sst:geheim", "CONFIG"]).unwrap(), "(set, not shown)");
        assert_eq!(of(["foreign_key_checks", "OFF", "CONFIG"]).unwrap(), "OFF");
        assert_eq!(of(["wait_timeout", "28800", "DYNAMIC"]), None);
        assert_eq!(of(["wait_timeout", "60", "DYNAMIC"]).unwrap(), "60", "somebody set it for all");
    }
}
