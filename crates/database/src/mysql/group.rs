//! Servers of MySQL in a replication group. loadline does not measure them: its counters would also count what the other members
//! commit.

use super::wire::Connection;
use crate::error::TargetError;

/// Refuses the server of `c` at `place` if it is in a replication group, or may be.
///
/// # Errors
/// [`TargetError::Refused`] with the group, and what to do.
pub(super) fn refuse(c: &mut Connection, place: &str) -> Result<(), TargetError> {
    // Needs no privilege, unlike the table.
    let settings = c.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name = 'group_replication_group_name'")?;
    let Some((_, group)) = settings.into_iter().next() else { return Ok(()) };
    let states = c.query("SELECT MEMBER_STATE FROM performance_schema.replication_group_members");
    let states = match states {
        Ok(rows) => Some(rows.into_iter().flatten().flatten().collect()),
        Err(TargetError::Server(_)) => None,
        Err(e) => return Err(e),
    };
    check(place, &group, states)
}

/// As [`refuse`], by the group's name and the states of its members; `None` if the user may not read them.
fn check(place: &str, group: &str, states: Option<Vec<String>>) -> Result<(), TargetError> {
    // Group replication that is configured and not started has one member, which is OFFLINE. A table without members says nothing:
    // performance_schema is off.
    let runs = states.is_none_or(|states| states.is_empty() || states.iter().any(|state| state != "OFFLINE"));
    if group.is_empty() || !runs {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{place} is a member of the MySQL replication group {group}, and loadline measures no replication groups: stop group \
         replication there (STOP GROUP_REPLICATION), or name a server that is in no group"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_member_that_runs_or_may_run_is_refused() {
        let of = |group: &str, states: Option<&[&str]>| {
            check("h:3306", group, states.map(|all| all.iter().map(|s| (*s).to_owned()).collect()))
        };
        let refused = of("5e1f-a", Some(&["ONLINE", "RECOVERING"])).map_err(|e| e.to_string());
        let text = refused.expect_err("a member");
        assert!(text.contains("h:3306") && text.contains("group 5e1f-a") && text.contains("STOP GROUP_REPLICATION"));
        for states in [Some(&["ONLINE"][..]), Some(&["ERROR"]), Some(&[]), None] {
            assert!(matches!(of("5e1f-a", states), Err(TargetError::Refused(_))), "{states:?}");
        }
        for (group, states) in [("", None), ("5e1f-a", Some(&["OFFLINE"][..]))] {
            assert_eq!(of(group, states), Ok(()), "{group} {states:?}");
        }
    }
}
