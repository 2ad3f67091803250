//! Statistics views of MariaDB and MySQL: `[[statistics]]` of `mysql.toml`, and the rows that no single query has. Most are in
//! performance_schema, which is off by default on MariaDB.

use loadline_model::activity::{Topic, View};

use super::instance::MysqlInstance;
use super::knowledge::{KNOWLEDGE, ProcessList, Version, ViewNeeds, ViewRows};
use super::protocol::Row;
use super::server::Mysql;
use super::settings::{MysqlSettings, is_secret};
use super::wire::Connection;
use super::{observer, own_sessions, performance};
use crate::error::TargetError;
use crate::role::StatisticsViews;
use crate::statement::{DoubleQuotes, without_secrets};
use crate::view::{StatisticsView, ViewQuery, of_servers};

/// Number of the error "table does not exist".
const NO_TABLE: u16 = 1146;

/// Views of a server with these settings, without rows. `own`: ids of loadline's sessions.
fn views(version: &Version, settings: &MysqlSettings, own: &str) -> Vec<(ViewQuery, &'static ViewNeeds)> {
    // Only `userstat` counts what happens to each table.
    let only_userstat = version.is_mariadb() && settings.is_on("userstat") && !settings.is_on("performance_schema");
    let views = KNOWLEDGE.statistics.iter();
    let views = views.filter(|v| v.needs.only_userstat.is_none_or(|only| only == only_userstat));
    let ProcessList { no_client, no_user, .. } = &KNOWLEDGE.process_list;
    let (no_client, no_user) = (no_client.join("', '"), no_user.join("', '"));
    let query = |v: &'static StatisticsView<ViewNeeds>| {
        let galera = if settings.is_on("wsrep_on") { v.needs.galera.as_str() } else { "" };
        let parts = [("galera", galera), ("own", own), ("no_client", &no_client), ("no_user", &no_user)];
        Some((v.at(version.release, &KNOWLEDGE.fragments, &parts)?, &v.needs))
    };
    views.filter_map(query).collect()
}

/// Why performance_schema does not fill a view, if so.
fn missing(
    c: &mut Connection,
    settings: &MysqlSettings,
    topic: Topic,
    needs: &ViewNeeds,
) -> Result<Option<String>, TargetError> {
    if !needs.performance_schema.iter().any(|versions| versions.has(c.version.release)) {
        return Ok(None);
    }
    if !settings.is_on("performance_schema") {
        let or = if c.version.is_mariadb() && topic == Topic::Objects { ", or SET GLOBAL userstat = ON" } else { "" };
        return Ok(Some(format!("performance_schema is off: start the server with performance_schema = ON{or}")));
    }
    if needs.instruments.is_empty() {
        return Ok(None);
    }
    performance::missing(c, &[needs.instruments.as_str()], &needs.consumers)
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
    let (settings, own) = (MysqlSettings::read(c)?, instance.endpoint.sessions.listed());
    let sees_all = observer::metrics(c)?.is_some() && own_sessions::is_listed(c)?;
    let mut read = Vec::new();
    for (query, needs) in views(&c.version, &settings, &own) {
        if !sees_all && matches!(needs.rows, ViewRows::Sessions | ViewRows::Running) {
            read.push(query.absent("only sessions of this user can be seen: GRANT PROCESS ON *.* TO the user"));
            continue;
        }
        if let Some(why) = missing(c, &settings, query.empty.topic, needs)? {
            read.push(query.absent(why));
            continue;
        }
        let rows = c.query(&query.sql);
        read.push(match needs.rows {
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
    Ok(read)
}

impl StatisticsViews for Mysql {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        Ok(of_servers(self.each(read)?, "server"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn views_per_product() {
        let mut text = String::new();
        for (version, on) in [
            ("10.11.6-MariaDB", &["performance_schema"][..]),
            ("10.11.6-MariaDB", &["userstat", "wsrep_on"]),
            ("8.0.36", &["performance_schema"]),
        ] {
            let settings = MysqlSettings(on.iter().map(|name| ((*name).to_owned(), "ON".to_owned())).collect());
            let (version, userstat) = (Version::parse(version), settings.is_on("userstat"));
            for (query, needs) in views(&version, &settings, "{own}") {
                text.push_str(&format!("{} {userstat} {} {needs:?}\n", version.is_mariadb(), query.described()));
            }
        }
        insta::assert_snapshot!("views", text);
    }

    #[test]
    fn settings_hide_secrets_and_what_only_loadline_set() {
        for ([name, value, source], shown) in cases::<([String; 3], Vec<String>)>("mysql-settings-shown") {
            let row = setting([&name, &value, &source].map(|v| Some(v.clone())).to_vec());
            assert_eq!(row.map(|row| row[1].clone().unwrap()).as_ref(), shown.first(), "{name}");
        }
    }
}
