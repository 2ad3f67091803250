//! Levels of replication: `synchronous_commit` and `synchronous_standby_names`
//! (https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-SYNCHRONOUS-COMMIT).

use crate::role::Level;

/// Values of `synchronous_commit` that wait for a standby, and what holds after a commit.
const WAITING: [(&str, &str); 3] = [
    (
        "remote_write",
        "the standby has written it to its files, and survives a crash of the database but not of its machine",
    ),
    ("on", "the standby has it on disk"),
    ("remote_apply", "the standby has it on disk and shows it to queries"),
];

/// All levels, in the order of how far a commit waits.
pub(super) fn all() -> Vec<Level> {
    let level = |name: String, replicas, waits_for, durable, holds| Level { name, replicas, waits_for, durable, holds };
    let mut all = vec![
        level("off".to_owned(), 1, 0, false, "nothing: a crash loses the last commits"),
        level("local".to_owned(), 1, 0, true, "the database has it on disk, the standby perhaps not"),
    ];
    for (suffix, replicas, waits_for) in [("", 1, 1), (":any-1", 2, 1), (":first-2", 2, 2)] {
        all.extend(WAITING.map(|(name, holds)| level(format!("{name}{suffix}"), replicas, waits_for, true, holds)));
    }
    all
}
