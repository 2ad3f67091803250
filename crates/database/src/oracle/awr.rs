//! AWR: snapshots around a test and the report between them. All of it needs Oracle's Diagnostics Pack
//! licence, so nothing here is sent unless the user asks for it (`--oracle-awr`). A test checks that no other
//! file of this module names any of it.

use loadline_model::{Finding, Severity};

use super::session::{Bind, OraError, OraSession};
use crate::error::TargetError;
use crate::kind::NativeReport;

/// The option and its notice.
pub(super) static REPORT: NativeReport = NativeReport {
    name: "AWR report",
    flag: "--oracle-awr",
    folder: "awr",
    extension: "html",
    notice: "--oracle-awr takes AWR snapshots around each test: using AWR needs a licence of Oracle's Diagnostics Pack",
};

/// The block that takes a snapshot of all instances and returns its number (PL/SQL Packages and Types
/// Reference, `DBMS_WORKLOAD_REPOSITORY`).
pub(super) const SNAPSHOT: &str = "BEGIN
  :snapshot := TO_CHAR(DBMS_WORKLOAD_REPOSITORY.CREATE_SNAPSHOT());
END;";

/// The database id of two snapshots, and how many instances have both. A container and its databases number
/// their snapshots independently; ours are the newest.
pub(super) const FILED: &str = "SELECT DBID, MIN(INSTANCE_NUMBER), COUNT(DISTINCT INSTANCE_NUMBER) FROM DBA_HIST_SNAPSHOT \
     WHERE SNAP_ID IN (:1, :2) GROUP BY DBID HAVING COUNT(DISTINCT SNAP_ID) = 2 ORDER BY MAX(END_INTERVAL_TIME) DESC";

/// The report of one instance: database id, instance, first and last snapshot.
pub(super) const OF_INSTANCE: &str =
    "SELECT OUTPUT FROM TABLE(DBMS_WORKLOAD_REPOSITORY.AWR_REPORT_HTML(:1, :2, :3, :4))";
/// The report of all instances: database id, first and last snapshot.
pub(super) const OF_ALL: &str =
    "SELECT OUTPUT FROM TABLE(DBMS_WORKLOAD_REPOSITORY.AWR_GLOBAL_REPORT_HTML(:1, CAST(NULL AS VARCHAR2(10)), :2, :3))";

const LICENSED: &str = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'control_management_pack_access'";
const EXECUTABLE: &str =
    "SELECT COUNT(*) FROM ALL_PROCEDURES WHERE OWNER = 'SYS' AND OBJECT_NAME = 'DBMS_WORKLOAD_REPOSITORY'";
const READABLE: &str = "SELECT COUNT(*) FROM DBA_HIST_SNAPSHOT WHERE ROWNUM = 1";

/// What to ask the administrator for.
const GRANT: &str = "GRANT EXECUTE ON SYS.DBMS_WORKLOAD_REPOSITORY TO …; GRANT SELECT_CATALOG_ROLE TO …";

/// Why AWR does not work, with advice.
fn failed(doing: &str, e: OraError) -> TargetError {
    if e.lost {
        e.into()
    } else {
        TargetError::Refused(format!("{doing}: {}. {GRANT}, or leave out {}", e.text, REPORT.flag))
    }
}

/// Takes a snapshot and returns its number.
///
/// # Errors
/// [`TargetError::Refused`] with the grant to ask for.
pub(super) fn snapshot(session: &mut dyn OraSession) -> Result<i64, TargetError> {
    let row = session.call(SNAPSHOT, &[Bind::Out(40)]).map_err(|e| failed("no AWR snapshot could be taken", e))?;
    let number = row.into_iter().next().flatten().unwrap_or_default();
    number.trim().parse().map_err(|_| {
        TargetError::Statement(format!("taking an AWR snapshot returned '{number}', which is not a number"))
    })
}

/// The report from snapshot `from` to one that is taken now.
///
/// # Errors
/// [`TargetError::Refused`] with the grant to ask for, and [`TargetError::Statement`] if there is no report.
pub(super) fn report(session: &mut dyn OraSession, from: i64) -> Result<String, TargetError> {
    let to = snapshot(session)?;
    let none = |why: &str| {
        TargetError::Statement(format!("there is no AWR report from snapshot {from} to snapshot {to}: {why}"))
    };
    let filed = session
        .query(FILED, &[Bind::Int(from), Bind::Int(to)])
        .map_err(|e| failed("the AWR snapshots cannot be read", e))?;
    let number = |i: usize| filed.first().and_then(|row| row.get(i)?.as_deref()?.trim().parse::<i64>().ok());
    let (Some(database), Some(instance), Some(instances)) = (number(0), number(1), number(2)) else {
        return Err(none("they are not in DBA_HIST_SNAPSHOT"));
    };
    let rows = if instances == 1 {
        session.query(OF_INSTANCE, &[Bind::Int(database), Bind::Int(instance), Bind::Int(from), Bind::Int(to)])
    } else {
        session.query(OF_ALL, &[Bind::Int(database), Bind::Int(from), Bind::Int(to)])
    };
    let rows = rows.map_err(|e| failed("the AWR report cannot be made", e))?;
    let mut text = String::new();
    for line in rows.iter().map(|row| row.first().and_then(Option::as_deref).unwrap_or_default()) {
        text.push_str(line);
        text.push('\n');
    }
    if text.trim().is_empty() { Err(none("it is empty")) } else { Ok(text) }
}

/// Checks before a run whether AWR can be used. Touches nothing of the pack if the server disables it.
///
/// # Errors
/// If the session is lost.
pub(super) fn examine(session: &mut dyn OraSession) -> Result<Finding, TargetError> {
    let finding = |severity, value: &str, advice: String| Ok(Finding::new("awr", severity, "AWR", value, advice));
    let refused =
        |value: &str, why: &str| finding(Severity::Refused, value, format!("{why}, or leave out {}", REPORT.flag));
    match session.value(LICENSED) {
        Ok(Some(value)) if value.eq_ignore_ascii_case("NONE") => {
            return refused(
                "control_management_pack_access = NONE",
                "the server disables the Diagnostics Pack. If you have its licence: ALTER SYSTEM SET \
                 control_management_pack_access = 'DIAGNOSTIC'",
            );
        }
        Err(e) if e.lost => return Err(e.into()),
        // If the parameter cannot be read, the queries below decide.
        _ => {}
    }
    for (sql, needs_one) in [(EXECUTABLE, true), (READABLE, false)] {
        match session.value(sql) {
            Ok(count) if needs_one && count.as_deref().is_none_or(|c| c.trim() == "0") => {
                return refused("DBMS_WORKLOAD_REPOSITORY may not be executed", GRANT);
            }
            Err(e) if e.lost => return Err(e.into()),
            Err(e) => return refused(&e.text, GRANT),
            Ok(_) => {}
        }
    }
    finding(Severity::Ok, "can be used", "it needs a licence of Oracle's Diagnostics Pack".to_owned())
}
