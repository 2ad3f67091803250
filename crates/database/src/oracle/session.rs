//! The interface between loadline's SQL and the driver.

use std::str::FromStr;

use loadline_workload::Arg;

use super::address::OraAddress;
use super::knowledge::KNOWLEDGE;
use crate::error::{Cause, Refusal, TABLE_GONE, TargetError};
use crate::secret::Secret;

/// A value bound to a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(any(test, feature = "oracle")), allow(dead_code))]
pub(super) enum Bind<'a> {
    Int(i64),
    Raw(&'a [u8]),
    /// A VARCHAR2 that a PL/SQL block fills, with its maximum length, characters.
    Out(usize),
}

impl<'a> From<Arg<'a>> for Bind<'a> {
    fn from(arg: Arg<'a>) -> Bind<'a> {
        match arg {
            Arg::Int(i) => Bind::Int(i),
            Arg::Bytes(bytes) => Bind::Raw(bytes),
        }
    }
}

/// A row: values as text, NULL as `None`.
pub(super) type Row = Vec<Option<String>>;

/// Text in column `i`.
pub(super) fn text(row: &Row, i: usize) -> Option<&str> {
    row.get(i)?.as_deref()
}

/// Number in column `i`.
pub(super) fn number<N: FromStr>(row: &Row, i: usize) -> Option<N> {
    text(row, i)?.trim().parse().ok()
}

/// `V$SESSION.MODULE` of loadline's sessions; their role is in ACTION.
pub(super) const MODULE: &str = "loadline";

/// An error of Oracle or the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OraError {
    /// Number of the ORA- error, if it is one.
    pub(super) code: Option<u32>,
    /// Its text, without secrets.
    pub(super) text: String,
    /// The session is gone.
    pub(super) lost: bool,
}

/// The first statement of a session: numbers as text have a decimal point.
#[cfg_attr(not(feature = "oracle"), allow(dead_code))]
pub(super) const SETUP: &str = "ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'";
/// ORA-01031, insufficient privileges, and ORA-41900, missing privilege (named), from 23ai on.
const NO_PRIVILEGE: [u32; 2] = [1031, 41900];
/// ORA-00942, table or view does not exist, or the user may not read it.
pub(super) const NO_VIEW: u32 = 942;
/// ORA-00054, resource busy and acquire with NOWAIT specified.
pub(super) const BUSY: u32 = 54;
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

/// What the server answered, a refusal included.
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
    /// Rows of a query.
    fn query(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<Vec<Row>, OraError>;
    /// Executes a statement once and returns the number of affected rows.
    fn execute(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError>;
    /// Executes a statement once for each row of binds.
    fn batch(&mut self, sql: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError>;
    /// Runs a PL/SQL block and returns its [`Bind::Out`] values in order.
    fn call(&mut self, block: &str, binds: &[Bind<'_>]) -> Result<Row, OraError>;
    /// Rolls back.
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
