//! AWR: snapshots around a test and the report between them. All of it needs Oracle's Diagnostics Pack
//! licence, so nothing here is sent unless the user asks for it (`--oracle-awr`). A test checks that no other
//! file of this module names any of it; the queries begin with `awr-` in `oracle.toml`.

use loadline_model::{Finding, Severity};
use loadline_workload::Arg;

use super::cluster::Oracle;
use super::knowledge::KNOWLEDGE;
use super::session::{OraError, OraSession, answered, number, text};
use crate::error::TargetError;
use crate::role::NativeReports;

const GRANT: &str = "GRANT EXECUTE ON SYS.DBMS_WORKLOAD_REPOSITORY TO …; GRANT SELECT_CATALOG_ROLE TO …";

fn failed(doing: &str, e: OraError) -> TargetError {
    if e.lost {
        return e.into();
    }
    TargetError::Refused(format!("{doing}: {}. {GRANT}, or leave out --oracle-awr", e.text))
}

fn snapshot(session: &mut dyn OraSession) -> Result<i64, TargetError> {
    let row = session
        .call(KNOWLEDGE.query("awr-snapshot"), &[], &[40])
        .map_err(|e| failed("no AWR snapshot could be taken", e))?;
    let what = || format!("taking an AWR snapshot returned {row:?}, which is not a number");
    number(&row, 0).ok_or_else(|| TargetError::Statement(what()))
}

impl NativeReports for Oracle {
    fn native_mark(&self) -> Result<i64, TargetError> {
        snapshot(self.admin()?.as_mut())
    }

    fn native_report(&self, from: i64) -> Result<String, TargetError> {
        let mut session = self.admin()?;
        let to = snapshot(session.as_mut())?;
        let none = |why: &str| {
            TargetError::Statement(format!("there is no AWR report from snapshot {from} to snapshot {to}: {why}"))
        };
        let filed = session.query(KNOWLEDGE.query("awr-filed"), &[Arg::Int(from), Arg::Int(to)]);
        let filed = filed.map_err(|e| failed("the AWR snapshots cannot be read", e))?;
        let numbers = |row| Some((number(row, 0)?, number(row, 1)?, number::<i64>(row, 2)?));
        let found = filed.first().and_then(numbers);
        let (database, instance, instances) = found.ok_or_else(|| none("they are not in DBA_HIST_SNAPSHOT"))?;
        let (query, numbers) = match instances {
            1 => ("awr-of-instance", vec![database, instance, from, to]),
            _ => ("awr-of-all", vec![database, from, to]),
        };
        let args: Vec<Arg<'_>> = numbers.into_iter().map(Arg::Int).collect();
        let rows = session.query(KNOWLEDGE.query(query), &args);
        let rows = rows.map_err(|e| failed("the AWR report cannot be made", e))?;
        let report: String = rows.iter().flat_map(|row| [text(row, 0).unwrap_or_default(), "\n"]).collect();
        if report.trim().is_empty() { Err(none("it is empty")) } else { Ok(report) }
    }
}

impl Oracle {
    /// Checks before a run whether AWR can be used, if the user asked for it. Touches nothing of the pack if the server
    /// disables it.
    pub(super) fn examine_awr(&self) -> Result<Option<Finding>, TargetError> {
        if !self.awr {
            return Ok(None);
        }
        let finding = |severity, value: &str, advice| Ok(Some(Finding::new("awr", severity, "AWR", value, advice)));
        let refused = |value, why: &str| finding(Severity::Refused, value, format!("{why}, or leave out --oracle-awr"));
        let mut session = self.admin()?;
        // If the parameter cannot be read, the queries below decide.
        let licensed = answered(session.value(KNOWLEDGE.query("awr-licensed")))?.ok().flatten();
        if licensed.is_some_and(|value| value.eq_ignore_ascii_case("NONE")) {
            return refused(
                "control_management_pack_access = NONE",
                "the server disables the Diagnostics Pack. If you have its licence: ALTER SYSTEM SET \
                 control_management_pack_access = 'DIAGNOSTIC'",
            );
        }
        let executable = answered(session.value(KNOWLEDGE.query("awr-executable")))?;
        if executable.as_ref().is_ok_and(|count| count.as_deref().is_none_or(|c| c.trim() == "0")) {
            return refused("DBMS_WORKLOAD_REPOSITORY may not be executed", GRANT);
        }
        if let Err(e) = executable.and(answered(session.value(KNOWLEDGE.query("awr-readable")))?) {
            return refused(&e.text, GRANT);
        }
        finding(Severity::Ok, "can be used", "it needs a licence of Oracle's Diagnostics Pack".to_owned())
    }
}
