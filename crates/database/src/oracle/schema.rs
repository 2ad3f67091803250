//! Fills (with array binds), locks and removes tables in the user's schema. loadline's tables have its prefix and its
//! comment; a table with only one of them is left untouched.

use loadline_model::Driver;
use loadline_workload::{Generator, LogicalType, Step, Table};

use super::cluster::{CHECKPOINT, Oracle, is_forbidden};
use super::knowledge::KNOWLEDGE;
use super::session::{BUSY, MAX_RAW, NAME_USED, OraError, OraSession, Row};
use crate::data_set::{LoadSession, Loader, not_ours};
use crate::dialect::{Dialect, mark};
use crate::error::TargetError;
use crate::loading::{Batch, in_parts};
use crate::role::{LogSpace, RunLock};
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

/// The table whose exclusive lock allows one run per user. Unlike DBMS_LOCK it needs no grant, and the lock
/// ends with its session.
const LOCK_TABLE: &str = "LOADLINE_LOCK";
/// Rows per batch of an INSERT.
const BATCH: u64 = 1000;

/// How bind `i` becomes a value of `logical`: what is neither number nor bytes comes as the bytes of its text.
fn mark_of(logical: LogicalType, i: usize) -> String {
    let text = format!("UTL_RAW.CAST_TO_VARCHAR2(:{i})");
    match logical {
        LogicalType::Int | LogicalType::Bytes => format!(":{i}"),
        LogicalType::Text | LogicalType::Json => text,
        LogicalType::Timestamp => format!("TO_TIMESTAMP({text}, 'YYYY-MM-DD HH24:MI:SS')"),
        // Without the point, which not every territory reads.
        LogicalType::Numeric => format!("TO_NUMBER(REPLACE({text}, '.')) / 100"),
        LogicalType::Boolean => format!("TO_NUMBER({text})"),
    }
}

pub(super) fn insert(session: &mut dyn OraSession, work: &Work, table: &Table, batch: &Batch) -> Result<u64, OraError> {
    let dialect = &KNOWLEDGE.dialect;
    let columns: Vec<String> = table.columns.iter().map(|c| dialect.quoted(&c.name)).collect();
    let marks: Vec<String> = table.columns.iter().zip(1..).map(|(column, i)| mark_of(column.logical, i)).collect();
    let name = dialect.table_name(work, &table.name);
    let sql = format!("INSERT INTO {name} ({}) VALUES ({})", columns.join(", "), marks.join(", "));
    in_parts(work, table, batch, BATCH, |args| session.batch(&sql, table.columns.len(), args))
}

impl LoadSession for Box<dyn OraSession> {
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        Ok(self.query(sql, &[])?)
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.execute(sql, &[])?;
        if !["COMMIT", "ROLLBACK"].contains(&sql) {
            self.execute("COMMIT", &[])?;
        }
        Ok(())
    }

    /// With advice if the privilege is missing.
    fn create(&mut self, sql: &str) -> Result<(), TargetError> {
        match self.execute(sql, &[]) {
            Err(e) if e.lacks_privilege() => Err(TargetError::Refused(format!(
                "the user may not create tables: {}. Grant it: GRANT CREATE TABLE TO …; ALTER USER … QUOTA UNLIMITED ON …",
                e.text
            ))),
            made => Ok(made.map(drop)?),
        }
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        Ok(batches.iter().try_for_each(|batch| insert(self.as_mut(), work, table, batch).map(drop))?)
    }

    fn path(&self) -> &'static str {
        "array binds"
    }
}

/// Takes the lock for as long as the session lives.
fn lock(loader: &mut Loader<'_>) -> Result<(), TargetError> {
    let name = loader.dialect.qualified(LOCK_TABLE);
    match loader.tables()?.get(LOCK_TABLE) {
        Some(false) => return Err(not_ours(LOCK_TABLE)),
        Some(true) => {}
        None => match loader.session.create(&format!("CREATE TABLE {name} (\"ID\" NUMBER(1))")) {
            // Another run has just created it.
            Err(TargetError::Server(refusal)) if refusal.code == NAME_USED => {}
            Err(e) => return Err(e),
            Ok(()) => loader.session.create(&format!("COMMENT ON TABLE {name} IS '{}'", mark()))?,
        },
    }
    match loader.session.create(&format!("LOCK TABLE {name} IN EXCLUSIVE MODE NOWAIT")) {
        Err(TargetError::Server(refusal)) if refusal.code == BUSY => Err(TargetError::Refused(
            "another run uses loadline's tables of this user: wait until it has ended, or connect as another user"
                .into(),
        )),
        locked => locked,
    }
}

impl Oracle {
    fn loader(&self, role: &str) -> Result<Loader<'static>, TargetError> {
        Ok(Loader { dialect: self.dialect(), session: Box::new(self.service.session(role)?) })
    }
}

impl LoadsTables for Oracle {
    fn dialect(&self) -> &'static Dialect {
        &KNOWLEDGE.dialect
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        Ok(self.loader("loader")?.session)
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        let mut loader = self.loader("lock")?;
        lock(&mut loader)?;
        Ok(RunLock::new(loader))
    }

    /// Redo logs have a fixed size. If they are archived, the free space for that is unknown.
    fn space_for_log(&self, _data: u64, _indexes: u64) -> Result<LogSpace, TargetError> {
        let unknown = match self.admin()?.value(KNOWLEDGE.query("archived")) {
            Ok(Some(mode)) if mode.trim() == "NOARCHIVELOG" => None,
            Err(e) if !is_forbidden(&e) => return Err(e.into()),
            _ => Some("the free space for archived redo is unknown: it takes about as much as data and indexes".into()),
        };
        Ok(LogSpace { unknown, ..LogSpace::default() })
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        match self.admin()?.execute(CHECKPOINT, &[]) {
            Ok(_) => Ok(None),
            Err(e) if e.lacks_privilege() => {
                Ok(Some("no checkpoint before each test: the user has no ALTER SYSTEM privilege".into()))
            }
            Err(e) => Err(e.into()),
        }
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let mut locked = self.loader("lock")?;
        // Without any table there is nothing to lock.
        if locked.tables()?.is_empty() {
            return Ok(Vec::new());
        }
        lock(&mut locked)?;
        let kept: Vec<String> = kept()?.iter().map(|stem| self.dialect().plain_name(stem)).collect();
        let stays = |name: &str| name == LOCK_TABLE || kept.iter().any(|kept| kept == name);
        let removed = self.loader("admin")?.drop_tables(|name| !stays(name))?;
        // DDL commits, which releases this session's own lock.
        locked.drop_table(LOCK_TABLE)?;
        Ok(removed.into_iter().map(|name| format!("table {name}")).collect())
    }

    fn expect_jobs(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        let longest = longest_payload(work);
        if longest <= MAX_RAW {
            return Ok(());
        }
        Err(TargetError::Unsupported(format!(
            "a payload of {longest} bytes does not fit: RAW columns hold {MAX_RAW} bytes"
        )))
    }
}

/// Longest payload that the program binds, bytes.
fn longest_payload(work: &Work) -> u32 {
    let bytes = |step: &Step| match step {
        Step::Bind { generator: Generator::Payload { bytes }, .. } => *bytes,
        _ => 0,
    };
    work.program.steps().into_iter().map(bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use loadline_workload::CATALOGUE;

    use super::*;
    use crate::loading::table_stem;

    #[test]
    fn every_payload_fits_a_column_and_every_name_fits() {
        for workload in CATALOGUE.iter() {
            let most: BTreeMap<_, _> = workload.params.iter().map(|p| (p.name.to_owned(), p.max)).collect();
            let work = Work::new(Arc::clone(workload), workload.params(&most).unwrap(), 1, Default::default());
            assert!(longest_payload(&work) <= MAX_RAW, "{}", workload.code);
            for table in &workload.tables {
                // 128 bytes from 12.2 on.
                let name = KNOWLEDGE.dialect.plain_name(&table_stem(&work, &table.name));
                assert!(name.len() + "_PK".len() <= 128);
            }
        }
    }
}
