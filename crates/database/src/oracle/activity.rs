//! Statistics views that need no licence of a pack: SQL statistics, the wait and time models, and counters from the start of the
//! instance (Database Reference; Database Licensing Information). Never run against a live server. A test checks that none
//! of AWR, the history of sessions or that of metrics is named.

use loadline_model::activity::{Kind, Topic, Unit, View};

use super::cluster::Oracle;
use super::counters::{OraObserver, ViewAccess, whose};
use super::session::{NO_VIEW, OraSession};
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::scope::Scope;
use crate::view::{Column, STATEMENT, ViewQuery, bytes, count, key, ms, query, state};

/// A sum of times in ms that belongs to no count.
const fn time(title: &'static str) -> Column {
    (title, Kind::Counter, Unit::Ms, None)
}

const STATEMENTS: &[Column] = &[
    key(STATEMENT),
    key("id"),
    count("executions"),
    ms("elapsed", 2),
    ms("CPU", 2),
    ms("I/O waits", 2),
    ms("concurrency waits", 2),
    ms("application waits", 2),
    count("rows"),
    count("block gets"),
    count("disk reads"),
    count("parses"),
];
const TIME_MODEL: &[Column] = &[key("statistic"), time("time")];
const EVENTS: &[Column] =
    &[key("event"), key("class"), count("waits"), ms("time", 2), count("waits of sessions"), ms("time of sessions", 4)];
const FILES: &[Column] = &[
    key("file"),
    count("small reads"),
    ms("small read time", 1),
    count("large reads"),
    ms("large read time", 3),
    bytes("read"),
    count("small writes"),
    ms("small write time", 6),
    count("large writes"),
    ms("large write time", 8),
    bytes("written"),
];
const SEGMENTS: &[Column] = &[
    key("object"),
    key("owner"),
    key("part"),
    key("type"),
    count("block gets"),
    count("block changes"),
    count("physical reads"),
    count("physical writes"),
    count("row lock waits"),
    count("buffer busy waits"),
    count("ITL waits"),
];
const DICTIONARY: &[Column] = &[key("cache"), count("gets"), count("misses"), count("changes")];
const LIBRARY: &[Column] = &[
    key("namespace"),
    count("gets"),
    count("hits"),
    count("pins"),
    count("pin hits"),
    count("reloads"),
    count("invalidations"),
];
const LATCHES: &[Column] = &[key("latch"), count("gets"), count("misses"), count("sleeps"), ms("wait time", 3)];
const ENQUEUES: &[Column] = &[key("enqueue"), key("reason"), count("requests"), count("waits"), ms("wait time", 3)];
const DESTINATIONS: &[Column] = &[
    key("destination"),
    state("status", Unit::Text),
    state("database", Unit::Text),
    state("recovery", Unit::Text),
    state("protection", Unit::Text),
    state("gap", Unit::Text),
];
const SESSIONS: &[Column] = &[key("status"), key("doing"), state("number", Unit::Count)];
const SETTINGS: &[Column] = &[key("name"), state("value", Unit::Text)];

/// Parts of the names of parameters that may hold a secret.
const SECRET: [&str; 4] = ["password", "secret", "token", "_key"];

/// The sums of a kind of I/O: MiB become bytes; service times are in ms.
const IO: &str = "SUM(f.SMALL_READ_REQS), SUM(f.SMALL_READ_SERVICETIME), SUM(f.LARGE_READ_REQS), SUM(f.LARGE_READ_SERVICETIME), \
     SUM(f.SMALL_READ_MEGABYTES + f.LARGE_READ_MEGABYTES) * 1048576, SUM(f.SMALL_WRITE_REQS), SUM(f.SMALL_WRITE_SERVICETIME), \
     SUM(f.LARGE_WRITE_REQS), SUM(f.LARGE_WRITE_SERVICETIME), SUM(f.SMALL_WRITE_MEGABYTES + f.LARGE_WRITE_MEGABYTES) * 1048576";

/// The queries of all views. `v` begins the names of views over all instances, or this one.
fn queries(v: &str, run: &str) -> Vec<ViewQuery> {
    let of = |topic, title, columns, order, sql: &str| {
        let sql = sql.replace("{v}", v).replace("{io}", IO).replace("{segments}", &segments());
        query(topic, title, columns, order, sql)
    };
    let events = |which: &str| {
        format!(
            "SELECT EVENT, WAIT_CLASS, SUM(TOTAL_WAITS), SUM(TIME_WAITED_MICRO) / 1000, SUM(TOTAL_WAITS_FG), \
             SUM(TIME_WAITED_MICRO_FG) / 1000 FROM {v}SYSTEM_EVENT WHERE WAIT_CLASS {which} 'Idle' GROUP BY EVENT, WAIT_CLASS"
        )
    };
    let doing = "CASE WHEN STATE = 'WAITING' THEN WAIT_CLASS ELSE 'CPU' END";
    let sessions = format!(
        "SELECT STATUS, {doing}, COUNT(*) FROM {v}SESSION WHERE TYPE = 'USER' AND {} GROUP BY STATUS, {doing} ORDER BY 3 DESC",
        whose(Scope::All, run)
    );
    vec![
        of(
            Topic::Waits,
            "Time model (V$SYS_TIME_MODEL); parts are contained in others",
            TIME_MODEL,
            Some(1),
            "SELECT STAT_NAME, SUM(VALUE) / 1000 FROM {v}SYS_TIME_MODEL GROUP BY STAT_NAME",
        ),
        of(Topic::Waits, "Events of all processes, without idle ones (V$SYSTEM_EVENT)", EVENTS, Some(3), &events("<>")),
        of(Topic::Waits, "Idle events (V$SYSTEM_EVENT)", EVENTS, Some(3), &events("=")),
        of(
            Topic::Statements,
            "Statements in the shared pool (V$SQLSTATS)",
            STATEMENTS,
            Some(3),
            "SELECT MIN(SQL_TEXT), SQL_ID, SUM(EXECUTIONS), SUM(ELAPSED_TIME) / 1000, SUM(CPU_TIME) / 1000, \
             SUM(USER_IO_WAIT_TIME) / 1000, SUM(CONCURRENCY_WAIT_TIME) / 1000, SUM(APPLICATION_WAIT_TIME) / 1000, \
             SUM(ROWS_PROCESSED), SUM(BUFFER_GETS), SUM(DISK_READS), SUM(PARSE_CALLS) FROM {v}SQLSTATS GROUP BY SQL_ID",
        ),
        of(
            Topic::Io,
            "By kind of file (V$IOSTAT_FILE); small: a block, large: several",
            FILES,
            Some(5),
            "SELECT f.FILETYPE_NAME, {io} FROM {v}IOSTAT_FILE f GROUP BY f.FILETYPE_NAME",
        ),
        of(
            Topic::Io,
            "By data file (V$IOSTAT_FILE)",
            FILES,
            Some(5),
            "SELECT d.NAME, {io} FROM {v}IOSTAT_FILE f JOIN V$DATAFILE d ON d.FILE# = f.FILE_NO WHERE f.FILETYPE_NAME = \
             'Data File' GROUP BY d.NAME",
        ),
        of(
            Topic::Objects,
            "Segments (V$SEGMENT_STATISTICS)",
            SEGMENTS,
            Some(4),
            "SELECT OBJECT_NAME, OWNER, SUBOBJECT_NAME, OBJECT_TYPE, {segments} FROM {v}SEGMENT_STATISTICS GROUP BY \
             OBJECT_NAME, OWNER, SUBOBJECT_NAME, OBJECT_TYPE",
        ),
        of(
            Topic::Cache,
            "Data dictionary (V$ROWCACHE)",
            DICTIONARY,
            Some(1),
            "SELECT PARAMETER, SUM(GETS), SUM(GETMISSES), SUM(MODIFICATIONS) FROM {v}ROWCACHE GROUP BY PARAMETER",
        ),
        of(
            Topic::Cache,
            "Shared SQL and PL/SQL (V$LIBRARYCACHE)",
            LIBRARY,
            Some(3),
            "SELECT NAMESPACE, SUM(GETS), SUM(GETHITS), SUM(PINS), SUM(PINHITS), SUM(RELOADS), SUM(INVALIDATIONS) FROM \
             {v}LIBRARYCACHE GROUP BY NAMESPACE",
        ),
        of(
            Topic::Locks,
            "Enqueues (V$ENQUEUE_STATISTICS)",
            ENQUEUES,
            Some(4),
            "SELECT EQ_NAME, REQ_REASON, SUM(TOTAL_REQ#), SUM(TOTAL_WAIT#), SUM(CUM_WAIT_TIME) FROM {v}ENQUEUE_STATISTICS \
             GROUP BY EQ_NAME, REQ_REASON",
        ),
        of(
            Topic::Locks,
            "Latches (V$LATCH)",
            LATCHES,
            Some(4),
            "SELECT NAME, SUM(GETS), SUM(MISSES), SUM(SLEEPS), SUM(WAIT_TIME) / 1000 FROM {v}LATCH GROUP BY NAME",
        ),
        of(
            Topic::Replication,
            "Standby destinations at the end (V$ARCHIVE_DEST_STATUS)",
            DESTINATIONS,
            None,
            "SELECT DEST_NAME, STATUS, DATABASE_MODE, RECOVERY_MODE, PROTECTION_MODE, GAP_STATUS FROM V$ARCHIVE_DEST_STATUS \
             WHERE STATUS <> 'INACTIVE' AND TYPE <> 'LOCAL' ORDER BY DEST_ID",
        ),
        of(
            Topic::Sessions,
            "Without loadline's own, by status and class of wait at the end (V$SESSION)",
            SESSIONS,
            None,
            &sessions,
        ),
        of(
            Topic::Settings,
            "V$SYSTEM_PARAMETER of this instance",
            SETTINGS,
            None,
            "SELECT NAME, DISPLAY_VALUE FROM V$SYSTEM_PARAMETER WHERE ISDEFAULT = 'FALSE' OR ISMODIFIED <> 'FALSE' ORDER BY \
             NAME",
        ),
    ]
}

/// The sums of the statistics of segments, each a row of the view.
fn segments() -> String {
    const STATISTICS: [&str; 7] = [
        "logical reads", "db block changes", "physical reads", "physical writes", "row lock waits",
        "buffer busy waits", "ITL waits",
    ];
    STATISTICS.map(|name| format!("SUM(CASE WHEN STATISTIC_NAME = '{name}' THEN VALUE END)")).join(", ")
}

fn read(session: &mut dyn OraSession, query: &ViewQuery) -> Result<View, TargetError> {
    match session.query(&query.sql, &[]) {
        Ok(mut rows) => {
            if query.topic == Topic::Settings {
                rows.iter_mut().for_each(|row| hide_secret(row));
            }
            query.view(Ok(rows))
        }
        Err(e) if e.lost => Err(e.into()),
        Err(e) if e.is(&[NO_VIEW]) => Ok(query.absent(format!("{}: GRANT SELECT_CATALOG_ROLE TO the user", e.text))),
        Err(e) => Ok(query.absent(e.text)),
    }
}

fn hide_secret(row: &mut [Option<String>]) {
    if let [Some(name), Some(value)] = row
        && SECRET.iter().any(|part| name.contains(part))
    {
        "(set, not shown)".clone_into(value);
    }
}

impl StatisticsViews for Oracle {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let all_instances = self.views.iter().any(|(_, access)| *access == ViewAccess::All);
        let mut session = self.admin()?;
        let queries = queries(if all_instances { "GV$" } else { "V$" }, &self.run);
        queries.iter().map(|query| read(session.as_mut(), query)).collect()
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        let session = self.nodes.session(0, "observer")?;
        Ok(Box::new(OraObserver::new(session, &self.views, &self.run, Scope::All)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of expressions that a query selects.
    fn selected(sql: &str) -> usize {
        let list = &sql["SELECT ".len()..sql.find(" FROM ").unwrap()];
        let mut depth = 0;
        let mut between = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        1 + list.chars().filter(|c| between(*c)).count()
    }

    #[test]
    fn each_query_selects_the_columns_of_its_view() {
        assert_eq!(selected("SELECT A, NVL(B, 'x'), C FROM D"), 3);
        for query in queries("GV$", "run") {
            assert_eq!(selected(&query.sql), query.columns.len(), "{}", query.sql);
            assert!(query.order.is_none_or(|i| query.columns[i].1 == Kind::Counter), "{}", query.title);
            assert!(!query.sql.contains('{'), "{}", query.sql);
        }
    }
}
