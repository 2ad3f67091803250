//! The queries of the statistics views, and what each needs of the server.

use loadline_model::activity::{Topic, Unit};

use super::Server;
use crate::view::{Column, STATEMENT, ViewQuery, bytes, count, key, ms, query, state};

const STATEMENTS: &[Column] = &[
    key(STATEMENT),
    key("database"),
    key("id"),
    count("calls"),
    ms("total time", 3),
    ms("lock time", 3),
    count("rows examined"),
    count("rows sent"),
    count("rows changed"),
    count("without an index"),
    count("temporary tables on disk"),
    count("errors"),
];
const WAITS: &[Column] = &[key("event"), count("waits"), ms("time", 1)];
const FILES: &[Column] = &[
    key("file"),
    count("calls"),
    ms("time", 1),
    count("reads"),
    bytes("read"),
    ms("read time", 3),
    count("writes"),
    bytes("written"),
    ms("write time", 6),
    count("other calls"),
    ms("other time", 9),
];
const TABLES: &[Column] = &[
    key("table"),
    count("accesses"),
    ms("time", 1),
    count("fetches"),
    ms("fetch time", 3),
    count("inserts"),
    ms("insert time", 5),
    count("updates"),
    ms("update time", 7),
    count("deletes"),
    ms("delete time", 9),
];
const INDEXES: &[Column] = &[
    key("index"),
    key("table"),
    count("accesses"),
    ms("time", 2),
    count("fetches"),
    count("inserts"),
    count("updates"),
    count("deletes"),
];
const TABLE_ROWS: &[Column] =
    &[key("table"), count("rows read"), count("rows changed"), count("rows changed, times indexes")];
const INDEX_ROWS: &[Column] = &[key("index"), key("table"), count("rows read")];
const TRANSACTIONS: &[Column] = &[
    key("state"),
    state("number", Unit::Count),
    state("tables locked", Unit::Count),
    state("rows locked", Unit::Count),
    state("rows changed", Unit::Count),
    state("oldest, s", Unit::Count),
];
const LOCK_WAITS: &[Column] = &[key("table"), key("index"), key("mode"), state("waited for", Unit::Count)];
const CACHED: &[Column] = &[key("index"), key("table"), state("in the buffer pool", Unit::Bytes)];
const CLUSTER: &[Column] = &[key("name"), state("value", Unit::Text)];
const CLUSTER_COUNTERS: &[Column] = &[key("name"), count("growth")];

/// What of performance_schema fills a view: without it the view is empty and says nothing.
#[derive(Debug)]
pub(super) enum Source {
    /// Nothing of it.
    Elsewhere,
    /// That it is on.
    On,
    /// Instruments whose names are LIKE this, and consumers.
    Instruments(&'static str, &'static [&'static str]),
}

/// A query, and what fills its view.
pub(super) type Sourced = (ViewQuery, Source);

/// Sums of a kind of call: its number, its bytes if it has any, and its time in ms. performance_schema has picoseconds.
fn calls(what: &str, bytes: &str) -> String {
    let bytes = if bytes.is_empty() { String::new() } else { format!("SUM(SUM_NUMBER_OF_BYTES_{bytes}), ") };
    let count = if what == "WAIT" { "STAR" } else { what };
    format!("SUM(COUNT_{count}), {bytes}SUM(SUM_TIMER_{what}) / 1e9")
}

fn files(title: &'static str, name: &str, from: &str) -> Sourced {
    let [all, reads, writes, other] =
        [("WAIT", ""), ("READ", "READ"), ("WRITE", "WRITE"), ("MISC", "")].map(|(w, b)| calls(w, b));
    let sql = format!(
        "SELECT {name}, {all}, {reads}, {writes}, {other} FROM performance_schema.{from} WHERE COUNT_STAR > 0 GROUP BY 1"
    );
    (query(Topic::Io, title, FILES, Some(2), sql), Source::Instruments("wait/io/file/%", &["global_instrumentation"]))
}

fn waits(title: &'static str, which: &str) -> Sourced {
    let sql = format!(
        "SELECT e.EVENT_NAME, e.COUNT_STAR, IF(i.TIMED = 'YES', e.SUM_TIMER_WAIT / 1e9, NULL) FROM \
         performance_schema.events_waits_summary_global_by_event_name e JOIN performance_schema.setup_instruments i ON i.NAME \
         = e.EVENT_NAME WHERE e.COUNT_STAR > 0 AND e.EVENT_NAME {which} 'idle'"
    );
    let instruments = if which == "=" { "idle" } else { "wait/%" };
    (
        query(Topic::Waits, title, WAITS, Some(2), sql),
        Source::Instruments(instruments, &["global_instrumentation", "thread_instrumentation"]),
    )
}

fn statements() -> Sourced {
    let sql = "SELECT COALESCE(DIGEST_TEXT, '(all others: performance_schema_digests_size is reached)'), SCHEMA_NAME, LEFT(DIGEST, \
               16), COUNT_STAR, SUM_TIMER_WAIT / 1e9, SUM_LOCK_TIME / 1e9, SUM_ROWS_EXAMINED, SUM_ROWS_SENT, SUM_ROWS_AFFECTED, \
               SUM_NO_INDEX_USED, SUM_CREATED_TMP_DISK_TABLES, SUM_ERRORS FROM \
               performance_schema.events_statements_summary_by_digest WHERE COUNT_STAR > 0";
    let consumers = &["global_instrumentation", "thread_instrumentation", "statements_digest"];
    let title = "Statements (events_statements_summary_by_digest)";
    (query(Topic::Statements, title, STATEMENTS, Some(4), sql), Source::Instruments("statement/%", consumers))
}

fn objects() -> [Sourced; 2] {
    let needs = || Source::Instruments("wait/io/table/%", &["global_instrumentation"]);
    let [all, fetch, insert, update, delete] =
        ["WAIT", "FETCH", "INSERT", "UPDATE", "DELETE"].map(|what| calls(what, ""));
    let table = "CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME)";
    let tables = format!(
        "SELECT {table}, {all}, {fetch}, {insert}, {update}, {delete} FROM \
         performance_schema.table_io_waits_summary_by_table WHERE COUNT_STAR > 0 GROUP BY 1"
    );
    let indexes = format!(
        "SELECT COALESCE(INDEX_NAME, '(none)'), {table}, {all}, SUM(COUNT_FETCH), SUM(COUNT_INSERT), SUM(COUNT_UPDATE), \
         SUM(COUNT_DELETE) FROM performance_schema.table_io_waits_summary_by_index_usage WHERE COUNT_STAR > 0 GROUP BY 1, 2"
    );
    [
        (query(Topic::Objects, "Tables (table_io_waits_summary_by_table)", TABLES, Some(2), tables), needs()),
        (query(Topic::Objects, "Indexes (table_io_waits_summary_by_index_usage)", INDEXES, Some(3), indexes), needs()),
    ]
}

/// What MariaDB counts per table with `userstat`.
fn row_counts() -> [Sourced; 2] {
    let table = "CONCAT(TABLE_SCHEMA, '.', TABLE_NAME)";
    let tables = format!(
        "SELECT {table}, ROWS_READ, ROWS_CHANGED, ROWS_CHANGED_X_INDEXES FROM information_schema.TABLE_STATISTICS"
    );
    let indexes = format!("SELECT INDEX_NAME, {table}, ROWS_READ FROM information_schema.INDEX_STATISTICS");
    [
        (
            query(Topic::Objects, "Tables that the user may read (TABLE_STATISTICS)", TABLE_ROWS, Some(1), tables),
            Source::Elsewhere,
        ),
        (
            query(Topic::Objects, "Indexes that the user may read (INDEX_STATISTICS)", INDEX_ROWS, Some(2), indexes),
            Source::Elsewhere,
        ),
    ]
}

/// Locks that are waited for. A list of all locks held can hold up InnoDB's lock system while it is made.
fn lock_waits(mariadb: bool) -> Sourced {
    let (columns, from, needs) = if mariadb {
        (
            "lock_table, lock_index, lock_mode, COUNT(DISTINCT requested_lock_id)",
            "information_schema.INNODB_LOCK_WAITS JOIN information_schema.INNODB_LOCKS ON lock_id = requested_lock_id",
            Source::Elsewhere,
        )
    } else {
        (
            "CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME), INDEX_NAME, LOCK_MODE, COUNT(DISTINCT REQUESTING_ENGINE_LOCK_ID)",
            "performance_schema.data_lock_waits w JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = \
             w.REQUESTING_ENGINE_LOCK_ID AND l.ENGINE = w.ENGINE",
            Source::On,
        )
    };
    let title =
        if mariadb { "Waited for at the end (INNODB_LOCK_WAITS)" } else { "Waited for at the end (data_lock_waits)" };
    let sql = format!("SELECT {columns} FROM {from} GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 30");
    (query(Topic::Locks, title, LOCK_WAITS, None, sql), needs)
}

/// Its times are of the server's time zone, unlike loadline's sessions.
fn transactions() -> Sourced {
    let sql = "SELECT trx_state, COUNT(*), SUM(trx_tables_locked), SUM(trx_rows_locked), SUM(trx_rows_modified), \
               MAX(TIMESTAMPDIFF(SECOND, CONVERT_TZ(trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP())) FROM \
               information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID() GROUP BY 1 ORDER BY 2 DESC";
    let title = "Transactions of InnoDB at the end (INNODB_TRX)";
    (query(Topic::Locks, title, TRANSACTIONS, None, sql), Source::Elsewhere)
}

/// MySQL counts the pages of each index as they come and go.
fn cached() -> Sourced {
    let sql = "SELECT i.NAME, t.NAME, SUM(c.N_CACHED_PAGES) * @@GLOBAL.innodb_page_size FROM \
               information_schema.INNODB_CACHED_INDEXES c JOIN information_schema.INNODB_INDEXES i ON i.INDEX_ID = c.INDEX_ID \
               JOIN information_schema.INNODB_TABLES t ON t.TABLE_ID = i.TABLE_ID GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 25";
    let title = "Indexes in the buffer pool at the end (INNODB_CACHED_INDEXES)";
    (query(Topic::Cache, title, CACHED, None, sql), Source::Elsewhere)
}

/// Status variables of Galera and of semi-synchronous replication: those that describe the moment, and those that grow.
fn cluster(wsrep: bool) -> [Sourced; 2] {
    let view = |title, columns, order, galera: &str, semi_sync: &str| {
        let galera = if wsrep { format!("Variable_name REGEXP '^wsrep_({galera})$' OR ") } else { String::new() };
        let sql = format!("SHOW GLOBAL STATUS WHERE {galera}Variable_name REGEXP '^Rpl_semi_sync_({semi_sync})$'");
        (query(Topic::Replication, title, columns, order, sql), Source::Elsewhere)
    };
    [
        view(
            "Cluster and semi-synchronous replication at the end (SHOW GLOBAL STATUS)",
            CLUSTER,
            None,
            "cluster_status|cluster_size|local_state_comment|ready|connected|local_recv_queue|local_send_queue",
            "(master|source|slave|replica)_(status|clients)",
        ),
        view(
            "Work of cluster and semi-synchronous replication (SHOW GLOBAL STATUS)",
            CLUSTER_COUNTERS,
            Some(1),
            "(replicated|received)(_bytes)?|local_(commits|cert_failures|bf_aborts)|flow_control_(paused_ns|sent|recv)",
            "(master|source)_(yes_tx|no_tx|no_times|tx_waits|tx_wait_time|net_waits)",
        ),
    ]
}

/// All views that are one query.
pub(super) fn all(server: &Server) -> Vec<Sourced> {
    let mut all = vec![
        waits(
            "Of the instruments that are on; table I/O has the file I/O in it (events_waits_summary_global_by_event_name)",
            "<>",
        ),
        waits("Sessions that wait for their clients (idle)", "="),
        statements(),
        files(
            if server.mariadb {
                "By kind of file; asynchronous writes until they were issued; from 10.8 on without the redo log \
                 (file_summary_by_event_name)"
            } else {
                "By kind of file; asynchronous writes until they were issued (file_summary_by_event_name)"
            },
            "REPLACE(EVENT_NAME, 'wait/io/file/', '')",
            "file_summary_by_event_name",
        ),
        files(
            "By file (file_summary_by_instance)",
            "REPLACE(FILE_NAME, @@GLOBAL.datadir, '')",
            "file_summary_by_instance",
        ),
    ];
    all.extend(if server.counts_rows_only() { row_counts() } else { objects() });
    if !server.mariadb {
        all.push(cached());
    }
    all.extend([transactions(), lock_waits(server.mariadb)]);
    all.extend(cluster(server.wsrep));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_per_product() {
        let mut text = String::new();
        for (mariadb, performance_schema, userstat, wsrep) in
            [(true, true, false, false), (true, false, true, true), (false, true, false, false)]
        {
            for (query, source) in all(&Server { mariadb, performance_schema, userstat, wsrep }) {
                text.push_str(&format!("{mariadb} {userstat} {} {source:?}\n", query.described()));
            }
        }
        insta::assert_snapshot!("views", text);
    }
}
