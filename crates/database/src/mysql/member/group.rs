//! Group replication of MySQL, with several primaries.
//!
//! A transaction commits at the member where it began once a majority has received it and it conflicts with none before it. The
//! others apply it later. <https://dev.mysql.com/doc/refman/8.0/en/group-replication.html>

use std::time::Duration;

use super::State;
use crate::error::TargetError;
use crate::mysql::wire::Connection;

/// Counters of a member, by their names in snapshots; columns of `performance_schema.replication_group_member_stats`.
pub(in crate::mysql) const LOCAL_COMMITS: &str = "group_replication.local_commits";
/// `Com_commit` without what the member applies of others: with transactions that only read, and COMMITs that failed.
pub(in crate::mysql) const SENT_COMMITS: &str = "group_replication.sent_commits";
/// What of `Com_commit` is no commit of a client.
pub(in crate::mysql) const NOT_SENT: &str = "group_replication.applied";
pub(in crate::mysql) const LOCAL_ROLLBACKS: &str = "group_replication.local_rollbacks";
pub(in crate::mysql) const QUEUE: &str = "group_replication.queue";
/// 0 at a member that is not online, or without a majority.
pub(in crate::mysql) const SIZE: &str = "group_replication.members_online";
pub(in crate::mysql) const VIEW: &str = "group_replication.view";
const STATS: [(&str, &str); 7] = [
    (LOCAL_COMMITS, "COUNT_TRANSACTIONS_LOCAL_PROPOSED - COUNT_TRANSACTIONS_LOCAL_ROLLBACK"),
    (NOT_SENT, "COUNT_TRANSACTIONS_REMOTE_APPLIED"),
    (LOCAL_ROLLBACKS, "COUNT_TRANSACTIONS_LOCAL_ROLLBACK"),
    ("group_replication.conflicts", "COUNT_CONFLICTS_DETECTED"),
    (QUEUE, "COUNT_TRANSACTIONS_IN_QUEUE + COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"),
    (
        SIZE,
        "(SELECT IF(SUM(MEMBER_ID = @@GLOBAL.server_uuid AND MEMBER_STATE = 'ONLINE') = 1 AND 2 * SUM(MEMBER_STATE = 'ONLINE') > \
         COUNT(*), SUM(MEMBER_STATE = 'ONLINE'), 0) FROM performance_schema.replication_group_members)",
    ),
    (VIEW, "SUBSTRING_INDEX(VIEW_ID, ':', -1)"),
];

/// The member's address, if the server of `c` is in a group, or may be.
pub(in crate::mysql) fn name(c: &mut Connection) -> Result<Option<String>, TargetError> {
    // Needs no privilege, unlike the tables.
    let settings = c.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('group_replication_group_name', 'port')")?;
    let of = |name: &str| settings.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
    if of("group_replication_group_name").is_empty() {
        return Ok(None);
    }
    let host = c.value("SELECT COALESCE(@@GLOBAL.report_host, @@GLOBAL.hostname)")?.unwrap_or_default();
    let name = format!("{host}:{}", of("port"));
    // Group replication is configured and has not been started.
    Ok(Some(name).filter(|_| state(c).map_or(true, |state| state.size > 0)))
}

/// Whether it is online as a primary, and in which group.
pub(in crate::mysql) fn state(c: &mut Connection) -> Result<State, TargetError> {
    let mut state = State {
        id: c.value("SELECT @@GLOBAL.server_uuid")?.unwrap_or_default(),
        cluster: c.value("SELECT @@GLOBAL.group_replication_group_name")?.unwrap_or_default(),
        ..State::default()
    };
    let members =
        c.query("SELECT MEMBER_ID, MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members")?;
    let (mut own, mut role) = ("OFFLINE".to_owned(), String::new());
    let all = members.len() as u32;
    for member in members {
        let mut texts =
            member.into_iter().map(|v| v.map_or(String::new(), |v| String::from_utf8_lossy(&v).into_owned()));
        let mut text = || texts.next().unwrap_or_default();
        let (id, now, as_what) = (text(), text(), text());
        state.size += u32::from(now == "ONLINE");
        if id == state.id {
            (own, role) = (now, as_what);
        }
    }
    let majority = 2 * state.size > all;
    state.ready = own == "ONLINE" && role == "PRIMARY" && majority;
    state.said = format!(
        "it is {own}{}{}, and must be ONLINE and PRIMARY: transactions begin at all members \
         (group_replication_single_primary_mode = OFF)",
        if role.is_empty() { String::new() } else { format!(" and {role}") },
        if majority { "" } else { ", without a majority of its group" }
    );
    Ok(state)
}

/// Counters of the member of `c`.
pub(in crate::mysql) fn counters(c: &mut Connection) -> Result<Vec<(&'static str, f64)>, TargetError> {
    let columns: Vec<&str> = STATS.iter().map(|(_, column)| *column).collect();
    let row = c.query(&format!(
        "SELECT {} FROM performance_schema.replication_group_member_stats WHERE MEMBER_ID = @@GLOBAL.server_uuid",
        columns.join(", ")
    ))?;
    let values = row.into_iter().next().unwrap_or_default();
    let number = |value: Option<Vec<u8>>| String::from_utf8(value?).ok()?.parse().ok();
    Ok(STATS.iter().zip(values).filter_map(|((name, _), value)| Some((*name, number(value)?))).collect())
}

/// What the member of `c` has committed, as a set of transactions.
pub(in crate::mysql) fn executed(c: &mut Connection) -> Result<String, TargetError> {
    Ok(c.value("SELECT @@GLOBAL.gtid_executed")?.unwrap_or_default().replace(['\n', '\''], ""))
}

/// Waits until the member of `c` has committed these transactions too. `false`: not in time.
pub(in crate::mysql) fn wait_for(c: &mut Connection, executed: &str, at_most: Duration) -> Result<bool, TargetError> {
    let sql = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {})", at_most.as_secs());
    Ok(c.number(&sql)? == Some(0.0))
}
