//! PostgreSQL's statistics views.

use loadline_model::activity::{Topic, Unit, View};

use super::cluster::{PgInstance, Postgres};
use super::connect::SessionRole;
use super::own::own;
use super::settings::PgSettings;
use super::statements::{reset_time, statements};
use super::versions::Version;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::scope::Scope;
use crate::view::{Column, STATEMENT, ViewQuery, bytes, count, key, ms, of_servers, query, state};

const IO: &[Column] = &[
    key("process"),
    key("object"),
    key("context"),
    count("reads"),
    bytes("read"),
    ms("read time", 3),
    count("writes"),
    bytes("written"),
    ms("write time", 6),
    count("extends"),
    count("syncs"),
    ms("sync time", 10),
    count("hits"),
    count("evictions"),
];
const TABLE_IO: &[Column] = &[
    key("table"),
    count("blocks read"),
    count("blocks hit"),
    count("index blocks read"),
    count("index blocks hit"),
    count("toast blocks read"),
    count("toast blocks hit"),
];
const TABLES: &[Column] = &[
    key("table"),
    count("sequential scans"),
    count("rows scanned"),
    count("index scans"),
    count("rows fetched"),
    count("inserts"),
    count("updates"),
    count("of them HOT"),
    count("deletes"),
    count("vacuums"),
    count("autovacuums"),
    count("autoanalyzes"),
    state("dead rows now", Unit::Count),
];
const INDEXES: &[Column] = &[key("index"), key("table"), count("scans"), count("entries read"), count("rows fetched")];
const SLRU: &[Column] = &[key("cache"), count("hits"), count("reads"), count("writes"), count("flushes")];
const LOCKS: &[Column] = &[key("type"), key("mode"), state("held", Unit::Count), state("waited for", Unit::Count)];
const REPLICAS: &[Column] = &[
    key("standby"),
    state("state", Unit::Text),
    state("synchronous", Unit::Text),
    state("not yet sent", Unit::Bytes),
    state("not yet flushed", Unit::Bytes),
    state("not yet replayed", Unit::Bytes),
    state("flush lag", Unit::Ms),
    state("replay lag", Unit::Ms),
];
const STANDBY: &[Column] = &[
    key("receiver"),
    state("not yet replayed", Unit::Bytes),
    state("last replayed transaction ended, s ago", Unit::Count),
];
const VACUUMS: &[Column] =
    &[key("table"), state("phase", Unit::Text), state("blocks", Unit::Count), state("scanned", Unit::Count)];
const SESSIONS: &[Column] =
    &[key("process"), key("state"), state("number", Unit::Count), state("oldest transaction, s", Unit::Count)];
const RUNNING: &[Column] = &[
    key(STATEMENT),
    key("pid"),
    state("state", Unit::Text),
    state("statement since, s", Unit::Count),
    state("transaction since, s", Unit::Count),
    state("waits for", Unit::Text),
    state("blocked by", Unit::Text),
];
const SETTINGS: &[Column] = &[key("name"), state("value", Unit::Text)];

/// When the statistics of tables and indexes, of `pg_stat_io`, and of `pg_stat_slru` were last reset.
const RESETS: [(&str, &str); 4] = [
    ("FROM pg_stat_user_", "SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()"),
    ("FROM pg_statio_user_", "SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()"),
    ("FROM pg_stat_io", "SELECT max(stats_reset) FROM pg_stat_io"),
    ("FROM pg_stat_slru", "SELECT max(stats_reset) FROM pg_stat_slru"),
];

/// The queries of all views but the statements', which are in an extension.
fn queries(version: Version) -> Vec<ViewQuery> {
    let io_bytes = |what: &str| {
        if version.major >= 18 { format!("{what}_bytes") } else { format!("{what}s * op_bytes") }
    };
    let io = format!(
        "SELECT backend_type, object, context, reads, {}, read_time, writes, {}, write_time, extends, fsyncs, fsync_time, \
         hits, evictions FROM pg_stat_io",
        io_bytes("read"),
        io_bytes("write")
    );
    vec![
        query(Topic::Io, "By process, object and context (pg_stat_io)", IO, Some(4), io),
        query(
            Topic::Io,
            "By table, in blocks (pg_statio_user_tables)",
            TABLE_IO,
            Some(1),
            "SELECT schemaname || '.' || relname, heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit, toast_blks_read, \
             toast_blks_hit FROM pg_statio_user_tables",
        ),
        query(
            Topic::Objects,
            "Tables (pg_stat_user_tables)",
            TABLES,
            Some(6),
            "SELECT schemaname || '.' || relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, \
             n_tup_hot_upd, n_tup_del, vacuum_count, autovacuum_count, autoanalyze_count, n_dead_tup FROM pg_stat_user_tables",
        ),
        query(
            Topic::Objects,
            "Indexes (pg_stat_user_indexes)",
            INDEXES,
            Some(2),
            "SELECT indexrelname, schemaname || '.' || relname, idx_scan, idx_tup_read, idx_tup_fetch FROM \
             pg_stat_user_indexes",
        ),
        query(
            Topic::Objects,
            "Vacuums that run at the end (pg_stat_progress_vacuum)",
            VACUUMS,
            None,
            "SELECT relid::regclass, phase, heap_blks_total, heap_blks_scanned FROM pg_stat_progress_vacuum",
        ),
        query(
            Topic::Cache,
            "Small caches (pg_stat_slru)",
            SLRU,
            Some(2),
            "SELECT name, blks_hit, blks_read, blks_written, flushes FROM pg_stat_slru",
        ),
        query(
            Topic::Locks,
            "Held and waited for at the end, of this database (pg_locks)",
            LOCKS,
            None,
            "SELECT locktype, mode, count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted) FROM pg_locks WHERE \
             pid <> pg_backend_pid() AND (database IS NULL OR database = (SELECT oid FROM pg_database WHERE datname = \
             current_database())) GROUP BY 1, 2 ORDER BY 4 DESC, 3 DESC LIMIT 30",
        ),
        query(
            Topic::Replication,
            "Standbys at the end (pg_stat_replication)",
            REPLICAS,
            None,
            "SELECT application_name, state, sync_state, pg_current_wal_lsn() - sent_lsn, pg_current_wal_lsn() - flush_lsn, \
             pg_current_wal_lsn() - replay_lsn, extract(epoch FROM flush_lag) * 1000, extract(epoch FROM replay_lag) * 1000 \
             FROM pg_stat_replication WHERE NOT pg_is_in_recovery()",
        ),
        query(
            Topic::Replication,
            "As a standby at the end (pg_stat_wal_receiver)",
            STANDBY,
            None,
            "SELECT CASE WHEN pid IS NULL THEN 'does not run' ELSE coalesce(status, 'runs') END, pg_last_wal_receive_lsn() - \
             pg_last_wal_replay_lsn(), round(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 1) FROM \
             (SELECT) one LEFT JOIN pg_stat_wal_receiver ON true WHERE pg_is_in_recovery()",
        ),
        query(
            Topic::Sessions,
            "Without loadline's own, by kind of process and state at the end (pg_stat_activity)",
            SESSIONS,
            None,
            "SELECT backend_type, coalesce(state, ''), count(*), round(extract(epoch FROM max(now() - xact_start))) FROM \
             pg_stat_activity WHERE NOT starts_with(application_name, $1) GROUP BY 1, 2 ORDER BY 3 DESC, 1",
        ),
        query(
            Topic::Sessions,
            "Statements and open transactions at the end (pg_stat_activity)",
            RUNNING,
            None,
            "SELECT query, pid, state, CASE WHEN state = 'active' THEN round(extract(epoch FROM clock_timestamp() - \
             query_start)) END, round(extract(epoch FROM clock_timestamp() - xact_start)), wait_event_type || ':' || \
             wait_event, CASE WHEN wait_event_type = 'Lock' THEN array_to_string(pg_blocking_pids(pid), ', ') END FROM \
             pg_stat_activity WHERE NOT starts_with(application_name, $1) AND backend_type = 'client backend' AND state <> \
             'idle' ORDER BY coalesce(xact_start, query_start), pid LIMIT 20",
        ),
    ]
}

fn changed_settings(settings: &PgSettings) -> View {
    let query = query(Topic::Settings, "pg_settings, as a session of loadline sees them", SETTINGS, None, "");
    let rows = settings.changed().into_iter().map(|(name, value)| vec![Some(name), Some(value)]);
    query.view(Ok(rows.collect())).unwrap_or_else(|e| query.absent(e.to_string()))
}

/// Reads the views; the names of loadline's sessions begin with `own_prefix`. `private`: the server is
/// loadline's own.
fn read(c: &mut Connection, version: Version, own_prefix: &str, private: bool) -> Result<Vec<View>, TargetError> {
    let settings = PgSettings::read(c)?;
    let sees_all = c.value(&own("SELECT pg_has_role('pg_read_all_stats', 'USAGE')"))?.as_deref() == Some("t");
    let mut views = vec![statements(c, private)?];
    for query in queries(version) {
        let view = if version.major < 16 && query.sql.contains("FROM pg_stat_io") {
            query.absent("PostgreSQL has pg_stat_io from version 16 on")
        } else if query.columns == RUNNING && !sees_all {
            query.absent("only sessions of this role can be seen: GRANT pg_monitor TO the role")
        } else {
            let resets = RESETS.iter().find(|(from, _)| query.sql.contains(from));
            let epoch = resets.map(|(_, sql)| reset_time(c, sql)).transpose()?.flatten();
            let parameters = if query.sql.contains("$1") { &[own_prefix][..] } else { &[] };
            View { epoch, ..query.view(c.query_with(&own(&query.sql), parameters))? }
        };
        views.push(view);
    }
    views.push(changed_settings(&settings));
    Ok(views)
}

impl StatisticsViews for Postgres {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let private = self.server.is_some();
        let of = |instance: &PgInstance| {
            self.session(instance, SessionRole::Inspect, |c| read(c, self.version, &instance.endpoint.name, private))
        };
        Ok(of_servers(self.instances.iter().map(of).collect::<Result<_, _>>()?, "instance"))
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.observer_of(Scope::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_per_version() {
        let mut text = String::new();
        for major in [15, 16, 18] {
            for query in queries(Version { major }) {
                text.push_str(&format!("{major} {}\n", query.described()));
            }
        }
        insta::assert_snapshot!("views", text);
    }
}
