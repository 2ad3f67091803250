//! The interface between loadline's SQL and the driver, and what jobs send beside a workload's statements.

use std::str::FromStr;

use loadline_workload::{Arg, Commit};

use super::address::OraAddress;
use super::knowledge::KNOWLEDGE;
use crate::error::{Cause, Refusal, TABLE_GONE, TargetError};
use crate::request::Secret;
use crate::work::Work;

/// A row: values as text, NULL as `None`.
pub(super) type Row = Vec<Option<String>>;

pub(super) fn text(row: &Row, i: usize) -> Option<&str> {
    row.get(i)?.as_deref()
}

pub(super) fn number<N: FromStr>(row: &Row, i: usize) -> Option<N> {
    text(row, i)?.trim().parse().ok()
}

/// `V$SESSION.MODULE` of loadline's sessions; their role is in ACTION.
pub(super) const MODULE: &str = "loadline";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OraError {
    /// Number of the ORA- error, if it is one.
    pub(super) code: Option<u32>,
    /// Text, without secrets.
    pub(super) text: String,
    pub(super) lost: bool,
}

/// Longest RAW that a column holds whatever MAX_STRING_SIZE is (Database Limits).
pub(super) const MAX_RAW: u32 = 2000;

/// The commit (SQL Language Reference, `COMMIT`, write_clause).
pub(super) fn commit(commit: Commit) -> &'static str {
    match commit {
        Commit::Wait => "COMMIT WRITE WAIT IMMEDIATE",
        Commit::Nowait => "COMMIT WRITE NOWAIT BATCH",
    }
}

/// The first statements of a job's session (SQL Language Reference, `ALTER SESSION`): no result cache, and the
/// degree of parallelism, whatever the defaults of instance and tables.
pub(super) fn session_settings(work: &Work) -> [String; 2] {
    let degree = match work.parallel_workers() {
        Some(n) if n > 1 => format!("ALTER SESSION FORCE PARALLEL QUERY PARALLEL {n}"),
        _ => "ALTER SESSION DISABLE PARALLEL QUERY".to_owned(),
    };
    ["ALTER SESSION SET RESULT_CACHE_MODE = MANUAL".to_owned(), degree]
}

/// The first statement of a session: numbers as text have a decimal point.
#[cfg_attr(not(feature = "oracle"), allow(dead_code))]
pub(super) const SETUP: &str = "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'";
/// ORA-01031, insufficient privileges, and ORA-41900, missing privilege (named), from 23ai on.
const NO_PRIVILEGE: [u32; 2] = [1031, 41900];
/// ORA-00942, table or view does not exist, or the user may not read it.
pub(super) const NO_VIEW: u32 = 942;
/// Code of the refusal when a resource is busy and NOWAIT is specified.
pub(super) const BUSY: &str = "ORA-00054";
/// Code of the refusal when a name is already used by an existing object.
pub(super) const NAME_USED: &str = "ORA-00955";

impl OraError {
    /// An error with a number, as the database sends it.
    #[cfg_attr(not(any(test, feature = "oracle")), allow(dead_code))]
    pub(super) fn numbered(code: u32, text: impl Into<String>) -> OraError {
        OraError { code: Some(code), text: text.into(), lost: KNOWLEDGE.lost.contains(&code) }
    }

    pub(super) fn is(&self, code: u32) -> bool {
        self.code == Some(code)
    }

    pub(super) fn lacks_privilege(&self) -> bool {
        self.code.is_some_and(|code| NO_PRIVILEGE.contains(&code))
    }
}

pub(super) fn answered<T>(outcome: Result<T, OraError>) -> Result<Result<T, OraError>, TargetError> {
    match outcome {
        Err(e) if e.lost => Err(e.into()),
        answer => Ok(answer),
    }
}

impl From<OraError> for TargetError {
    fn from(e: OraError) -> TargetError {
        let advice =
            e.code.and_then(|code| KNOWLEDGE.advice(code)).map_or(String::new(), |advice| format!(": {advice}"));
        let advice = if e.is(NO_VIEW) { TABLE_GONE } else { &advice };
        let text = format!("Oracle: {}{advice}", e.text);
        if e.lost {
            return TargetError::Lost(text);
        }
        let cause = e.code.map_or(Cause::Other, |code| KNOWLEDGE.causes.cause(&code.to_string()));
        Refusal { cause, code: e.code.map(|code| format!("ORA-{code:05}")).unwrap_or_default(), text }.into()
    }
}

/// A session. One thread uses it at a time.
pub(super) trait OraSession: Send {
    fn query(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<Vec<Row>, OraError>;
    /// Executes a statement once and returns the number of affected rows.
    fn execute(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<u64, OraError>;
    /// Executes a statement once for each row of so many arguments.
    fn batch(&mut self, sql: &str, columns: usize, args: &[Arg<'_>]) -> Result<u64, OraError>;
    /// Runs a PL/SQL block and returns the texts of its last placeholders, which have `outs` characters at most.
    fn call(&mut self, block: &str, args: &[Arg<'_>], outs: &[usize]) -> Result<Row, OraError>;
    fn rollback(&mut self) -> Result<(), OraError>;
    /// Version that the server reported at login: `19.24.0.0.0`.
    fn version(&self) -> String;
    /// SID and SERIAL# of this session in its instance: `12, 34567`; `None` if the driver has none.
    fn id(&self) -> Option<String>;

    /// First value of the first row.
    fn value(&mut self, sql: &str) -> Result<Option<String>, OraError> {
        Ok(self.query(sql, &[])?.into_iter().flatten().next().flatten())
    }
}

/// Opens a session: address, password, and its name in `V$SESSION`.
pub(super) type Connector =
    dyn Fn(&OraAddress, &Secret, &str) -> Result<Box<dyn OraSession>, TargetError> + Send + Sync;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_whether_the_session_is_lost() {
        let of = |code| TargetError::from(OraError::numbered(code, format!("ORA-{code:05}: …")));
        assert!(matches!(of(3113), TargetError::Lost(_)));
        assert!(matches!(of(1), TargetError::Server(_)));
        assert!(of(1536).to_string().contains("QUOTA"));
    }
}
