//! Statistics views of MariaDB and MySQL. Most are in performance_schema, which is off by default on MariaDB.

mod queries;

use std::collections::BTreeMap;

use loadline_model::activity::{Topic, Unit, View};

use self::queries::Source;
use super::doctor::{MysqlSettings, is_secret};
use super::instance::MysqlInstance;
use super::knowledge::KNOWLEDGE;
use super::observer::{self, MysqlObserver};
use super::server::Mysql;
use super::wire::{Connection, Rows};
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::scope::Scope;
use crate::statement::{DoubleQuotes, without_secrets};
use crate::view::{Column, STATEMENT, key, of_servers, query, state};

const SESSIONS: &[Column] = &[key("command"), key("state"), state("number", Unit::Count)];
const RUNNING: &[Column] = &[
    key(STATEMENT),
    key("id"),
    state("command", Unit::Text),
    state("state", Unit::Text),
    state("statement since, s", Unit::Count),
    state("transaction since, s", Unit::Count),
    state("blocked by", Unit::Text),
];
const SETTINGS: &[Column] = &[key("name"), state("value", Unit::Text), state("set by", Unit::Text)];
const REPLICA: &[Column] = &[
    key("channel"),
    key("source"),
    state("receives", Unit::Text),
    state("applies", Unit::Text),
    state("behind, s", Unit::Count),
    state("relay log", Unit::Bytes),
    state("last error of receiving", Unit::Count),
    state("last error of applying", Unit::Count),
];
/// The names of these columns in the answer: MySQL's, MariaDB's and old MySQL's.
const REPLICA_NAMES: [&[&str]; 8] = [
    &["Channel_Name", "Connection_name"],
    &["Source_Host", "Master_Host"],
    &["Replica_IO_Running", "Slave_IO_Running"],
    &["Replica_SQL_Running", "Slave_SQL_Running"],
    &["Seconds_Behind_Source", "Seconds_Behind_Master"],
    &["Relay_Log_Space"],
    &["Last_IO_Errno"],
    &["Last_SQL_Errno"],
];

/// Number of the error "table does not exist".
const NO_TABLE: u16 = 1146;
const READ_GRANT: &str = "GRANT SELECT ON performance_schema.* TO the user";

/// What of the server decides which views it has.
struct Server {
    mariadb: bool,
    performance_schema: bool,
    userstat: bool,
    /// Whether it is a member of a Galera cluster.
    wsrep: bool,
}

impl Server {
    fn ask(c: &mut Connection) -> Result<Server, TargetError> {
        let settings = MysqlSettings::read(c)?;
        Ok(Server {
            mariadb: c.version.mariadb,
            performance_schema: settings.is_on("performance_schema"),
            userstat: settings.is_on("userstat"),
            wsrep: settings.is_on("wsrep_on"),
        })
    }

    /// Whether only `userstat` counts what happens to each table.
    fn counts_rows_only(&self) -> bool {
        self.mariadb && self.userstat && !self.performance_schema
    }

    /// Why performance_schema does not fill a view, if so.
    fn missing(&self, c: &mut Connection, topic: Topic, source: &Source) -> Result<Option<String>, TargetError> {
        if matches!(source, Source::Elsewhere) {
            return Ok(None);
        }
        if !self.performance_schema {
            let or = if self.mariadb && topic == Topic::Objects { ", or SET GLOBAL userstat = ON" } else { "" };
            return Ok(Some(format!("performance_schema is off: start the server with performance_schema = ON{or}")));
        }
        let Source::Instruments(like, consumers) = source else { return Ok(None) };
        let off = c.number(&format!(
            "SELECT COUNT(*) = 0 FROM performance_schema.setup_instruments WHERE NAME LIKE '{like}' AND ENABLED = 'YES' \
             AND TIMED = 'YES'"
        ));
        let consumers = consumers.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let consumer = off.and_then(|off| {
            let consumer = c.value(&format!(
                "SELECT NAME FROM performance_schema.setup_consumers WHERE NAME IN ({consumers}) AND ENABLED = 'NO' LIMIT 1"
            ))?;
            Ok((off == Some(1.0), consumer))
        });
        match consumer {
            Ok((true, _)) => Ok(Some(format!(
                "performance_schema has no instrument '{like}' that is on and timed: UPDATE performance_schema.setup_instruments SET ENABLED = \
                 'YES', TIMED = 'YES' WHERE NAME LIKE '{like}'"
            ))),
            Ok((_, Some(consumer))) => Ok(Some(format!(
                "performance_schema's consumer '{consumer}' is off: UPDATE performance_schema.setup_consumers SET ENABLED = \
                 'YES' WHERE NAME = '{consumer}'"
            ))),
            Ok(_) => Ok(None),
            Err(TargetError::Server(why)) => Ok(Some(format!("{why}: {READ_GRANT}"))),
            Err(e) => Err(e),
        }
    }
}

fn texts(rows: Rows) -> Vec<Vec<Option<String>>> {
    let text = |value: Option<Vec<u8>>| value.map(|v| String::from_utf8_lossy(&v).into_owned());
    rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

/// The settings that differ from their defaults, without secrets.
fn settings(c: &mut Connection, server: &Server) -> Result<View, TargetError> {
    let (title, sql) = if server.mariadb {
        (
            "SYSTEM_VARIABLES, global values",
            "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES WHERE \
             GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') AND NOT GLOBAL_VALUE <=> DEFAULT_VALUE ORDER BY 1",
        )
    } else {
        (
            "Global values of settings that were set (variables_info); DYNAMIC: by SET, perhaps only in a session",
            "SELECT i.VARIABLE_NAME, g.VARIABLE_VALUE, i.VARIABLE_SOURCE FROM performance_schema.variables_info i JOIN \
             performance_schema.global_variables g ON g.VARIABLE_NAME = i.VARIABLE_NAME WHERE i.VARIABLE_SOURCE <> 'COMPILED' \
             ORDER BY 1",
        )
    };
    let query = query(Topic::Settings, title, SETTINGS, None, sql);
    let source = if server.mariadb { Source::Elsewhere } else { Source::On };
    if let Some(why) = server.missing(c, query.topic, &source)? {
        return Ok(query.absent(why));
    }
    let rows = c.query(&query.sql).map(|rows| texts(rows).into_iter().filter_map(setting).collect());
    query.view(rows)
}

/// A row of settings without a secret; `None` if only loadline set it.
fn setting(mut row: Vec<Option<String>>) -> Option<Vec<Option<String>>> {
    let [Some(name), Some(value), Some(source)] = &mut row[..] else { return Some(row) };
    if source == "DYNAMIC" && KNOWLEDGE.set_by_loadline.get(name) == Some(value) {
        return None;
    }
    if is_secret(name) && !value.is_empty() {
        "(set, not shown)".clone_into(value);
    }
    Some(row)
}

fn replica(c: &mut Connection) -> Result<View, TargetError> {
    let sql = if c.version.mariadb {
        "SHOW ALL REPLICAS STATUS"
    } else if c.version.is_mysql_from((8, 0, 22)) {
        "SHOW REPLICA STATUS"
    } else {
        "SHOW SLAVE STATUS"
    };
    let title = "As a replica at the end (SHOW REPLICA STATUS)";
    let query = query(Topic::Replication, title, REPLICA, None, sql);
    let rows = c.query(&query.sql).map(|rows| {
        let at = |names: &[&str]| c.names.iter().position(|name| names.contains(&name.as_str()));
        let columns = REPLICA_NAMES.map(at);
        let row = |row: Vec<Option<String>>| columns.map(|at| row.get(at?).cloned().flatten()).to_vec();
        texts(rows).into_iter().map(row).collect()
    });
    query.view(rows)
}

fn sessions(instance: &MysqlInstance, c: &mut Connection) -> Result<View, TargetError> {
    let title = "Without loadline's own, by command and state at the end (process list)";
    let query = query(Topic::Sessions, title, SESSIONS, None, "");
    let sees_all = observer::metrics(c)?.is_some();
    let Some(listed) = instance.endpoint.sessions.others(c, sees_all)? else {
        return Ok(query.absent("only sessions of this user can be seen: GRANT PROCESS ON *.* TO the user"));
    };
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    listed.into_iter().for_each(|doing| *counts.entry(doing).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let row = |((command, state), n): ((String, String), u32)| vec![Some(command), Some(state), Some(n.to_string())];
    query.view(Ok(counts.into_iter().map(row).collect()))
}

/// Statements and open transactions, the oldest first. `unseen`: why not all sessions can be seen.
fn running(
    instance: &MysqlInstance,
    c: &mut Connection,
    server: &Server,
    unseen: Option<String>,
) -> Result<View, TargetError> {
    let (waits, source) = if server.mariadb {
        (
            "information_schema.INNODB_LOCK_WAITS w ON b.trx_id = w.blocking_trx_id WHERE w.requesting_trx_id",
            Source::Elsewhere,
        )
    } else {
        (
            "performance_schema.data_lock_waits w ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID WHERE \
             w.REQUESTING_ENGINE_TRANSACTION_ID",
            Source::On,
        )
    };
    let sql = format!(
        "SELECT INFO, ID, COMMAND, STATE, IF(COMMAND = 'Sleep', NULL, TIME), TIMESTAMPDIFF(SECOND, \
             CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP()) AS age, (SELECT GROUP_CONCAT(DISTINCT \
             b.trx_mysql_thread_id SEPARATOR ', ') FROM information_schema.INNODB_TRX b JOIN {waits} = t.trx_id) FROM \
             information_schema.PROCESSLIST LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = ID WHERE {} \
             AND (COMMAND <> 'Sleep' OR t.trx_id IS NOT NULL) ORDER BY COALESCE(age, TIME) DESC, ID LIMIT 20",
        instance.endpoint.sessions.are_others()
    );
    let title = "Statements and open transactions at the end (process list, INNODB_TRX)";
    let query = query(Topic::Sessions, title, RUNNING, None, sql);
    if let Some(why) = unseen.map_or_else(|| server.missing(c, query.topic, &source), |why| Ok(Some(why)))? {
        return Ok(query.absent(why));
    }
    let hide = |mut row: Vec<Option<String>>| {
        if let Some(Some(statement)) = row.first_mut() {
            *statement = without_secrets(statement, DoubleQuotes::Literal);
        }
        row
    };
    query.view(c.query(&query.sql).map(|rows| texts(rows).into_iter().map(hide).collect()))
}

fn read(instance: &MysqlInstance, c: &mut Connection) -> Result<Vec<View>, TargetError> {
    let server = Server::ask(c)?;
    let mut views = Vec::new();
    for (query, source) in queries::all(&server) {
        views.push(match server.missing(c, query.topic, &source)? {
            Some(why) => query.absent(why),
            None => match c.query(&query.sql) {
                Err(TargetError::Server(_)) if c.last_code == NO_TABLE => query.absent("this server has no such view"),
                rows => query.view(rows.map(texts))?,
            },
        });
    }
    views.push(replica(c)?);
    let sessions = sessions(instance, c)?;
    let running = running(instance, c, &server, sessions.absent.clone())?;
    views.extend([sessions, running]);
    views.push(settings(c, &server)?);
    Ok(views)
}

impl StatisticsViews for Mysql {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        Ok(of_servers(self.each(read)?, "server"))
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.observer_of(Scope::All)
    }
}

impl Mysql {
    /// An observer of all servers.
    pub(super) fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        let open = |i: &MysqlInstance| i.observer_session(scope);
        let sessions = self.instances().iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(MysqlObserver { sessions, cluster: self.nodes.is_cluster() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
