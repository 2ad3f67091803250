//! The statements that the extension `pg_stat_statements` counts.

use loadline_model::activity::{Topic, View};

use super::own::{OWN, own};
use super::settings::PgSettings;
use super::wire::Connection;
use crate::error::TargetError;
use crate::view::{Column, STATEMENT, bytes, count, key, ms, query};

const STATEMENTS: &[Column] = &[
    key(STATEMENT),
    key("id"),
    count("calls"),
    ms("total time", 2),
    count("rows"),
    count("blocks hit"),
    count("blocks read"),
    count("blocks dirtied"),
    count("temporary blocks written"),
    bytes("redo"),
];

/// The time that `sql` returns; `None` if it was never or the server cannot say it.
pub(super) fn reset_time(c: &mut Connection, sql: &str) -> Result<Option<String>, TargetError> {
    match c.value(&own(sql)) {
        Err(TargetError::Server(_)) => Ok(None),
        time => time,
    }
}

/// Creates the extension on a private server that loads its library.
///
/// # Errors
/// If the session is lost.
pub(super) fn create_on_private(c: &mut Connection, settings: &PgSettings) -> Result<(), TargetError> {
    let libraries = settings.get("shared_preload_libraries").unwrap_or_default();
    if !libraries.split(',').any(|library| library.trim_matches([' ', '"']) == "pg_stat_statements") {
        return Ok(());
    }
    match c.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements") {
        // The page says that it is not there.
        Err(TargetError::Server(_)) => Ok(()),
        created => created.map(|_| ()),
    }
}

/// The statements of this database, if the extension is in it. `private`: the server is loadline's own.
pub(super) fn statements(c: &mut Connection, private: bool) -> Result<View, TargetError> {
    let title = "Statements of this database (pg_stat_statements)";
    let mut query = query(Topic::Statements, title, STATEMENTS, Some(3), "");
    // Without its library each query of the view is an error in the server's log. Only the library defines the setting.
    let found = c.value(&own(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = \
         'pg_stat_statements' AND current_setting('pg_stat_statements.max', true) IS NOT NULL",
    ))?;
    let Some(schema) = found else {
        return Ok(query.absent(if private {
            "the extension pg_stat_statements is not on this private server: loadline … --setting \
             shared_preload_libraries=pg_stat_statements"
        } else {
            "the extension pg_stat_statements is not in this database, or not in shared_preload_libraries: add it there, restart, and \
             run CREATE EXTENSION pg_stat_statements"
        }));
    };
    query.sql = format!(
        "{OWN} min(query), queryid, sum(calls), sum(total_exec_time), sum(rows), sum(shared_blks_hit), sum(shared_blks_read), \
         sum(shared_blks_dirtied), sum(temp_blks_written), sum(wal_bytes) FROM {schema}.pg_stat_statements WHERE dbid = \
         (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '{OWN}%' GROUP BY queryid"
    );
    let mut view = query.view(c.query(&query.sql))?;
    // From version 1.9 of the extension on.
    view.epoch = reset_time(c, &format!("SELECT stats_reset FROM {schema}.pg_stat_statements_info"))?;
    Ok(view)
}
