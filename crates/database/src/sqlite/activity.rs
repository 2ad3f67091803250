//! What SQLite shows of itself: its settings. It keeps no statistics.

use loadline_model::activity::{Topic, View};
use loadline_workload::Commit;

use super::Sqlite;
use super::connect::pragma;
use crate::error::TargetError;
use crate::role::{Observer, StatisticsViews};
use crate::view::{ViewQuery, column};

/// Pragmas with their defaults (<https://www.sqlite.org/pragma.html>). That of `cache_size` is in KiB.
const DEFAULTS: [(&str, &str); 10] = [
    ("auto_vacuum", "0"),
    ("cache_size", "-2000"),
    ("journal_mode", "delete"),
    ("locking_mode", "normal"),
    ("mmap_size", "0"),
    ("page_size", "4096"),
    ("synchronous", "2"),
    ("temp_store", "0"),
    ("threads", "0"),
    ("wal_autocheckpoint", "1000"),
];

/// Topics without a view, and why.
const ABSENT: [(Topic, &str); 8] = [
    (
        Topic::Waits,
        "SQLite times no waits; loadline times the writes and syncs of its files, which are among the counters",
    ),
    (Topic::Statements, "SQLite keeps no statistics of statements"),
    (Topic::Io, "SQLite counts no I/O; loadline counts that of its files, which is among the counters"),
    (Topic::Objects, "SQLite counts no accesses of tables and indexes"),
    (Topic::Cache, "each connection has a cache of its own, and its counts end with it"),
    (Topic::Locks, "SQLite has one lock for all writers; the time that jobs wait for it is among the counters"),
    (Topic::Replication, "SQLite does not replicate"),
    (Topic::Sessions, "SQLite has no server that knows its sessions"),
];

impl StatisticsViews for Sqlite {
    fn views(&self) -> Result<Vec<View>, TargetError> {
        let absent = |(topic, why): (Topic, &str)| ViewQuery::new(topic, topic.title(), Vec::new()).absent(why);
        let mut views: Vec<View> = ABSENT.map(absent).into();
        let db = self.connector.connect(Commit::Wait)?;
        let mut rows = Vec::new();
        for (name, default) in DEFAULTS {
            let value = pragma(&db, name)?;
            if value != default {
                rows.push(vec![Some(name.to_owned()), Some(value), Some(default.to_owned())]);
            }
        }
        let columns = ["key name", "text value", "text default"].into_iter().filter_map(column).collect();
        views.push(ViewQuery::new(Topic::Settings, "Pragmas of a session whose commits wait", columns).with(rows));
        Ok(views)
    }

    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError> {
        Err(TargetError::Unsupported(
            "SQLite runs inside the process that uses it, and nothing counts the work of other processes: name a server"
                .to_owned(),
        ))
    }
}
