//! Creates, fills (with array binds), locks and removes tables in the user's schema. loadline's tables have its prefix and its
//! comment; a table with only one of them is left untouched.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use loadline_model::Driver;
use loadline_workload::{LogicalType, RowCount, Table};

use super::cluster::Oracle;
use super::session::{BUSY, Bind, NAME_USED, OraError, OraSession, text};
use super::sql::{MARK, MAX_RAW, PREFIX, create_table, longest_payload, mark, quoted, table_name};
use crate::data_set::{self, LoadProgress, Loader, RECORD};
use crate::error::TargetError;
use crate::loading::{Batch, in_parts};
use crate::role::{Administration, Checkpoints, LogSpace, RunLock};
use crate::work::Work;
use crate::workload_tables::{LoadedTables, LoadsTables, workload_tables};

/// Writes all changed blocks of all instances to the data files.
const CHECKPOINT: &str = "ALTER SYSTEM CHECKPOINT GLOBAL";
/// The table whose exclusive lock allows one run per user. Unlike DBMS_LOCK it needs no grant, and the lock
/// ends with its session.
const LOCK_TABLE: &str = "LOADLINE_LOCK";
/// Rows per batch of an INSERT.
const BATCH: u64 = 1000;

/// Name and comment of tables with loadline's prefix.
const PREFIXED_TABLES: &str = "SELECT t.TABLE_NAME, c.COMMENTS FROM USER_TABLES t \
     LEFT JOIN USER_TAB_COMMENTS c ON c.TABLE_NAME = t.TABLE_NAME \
     WHERE t.TABLE_NAME LIKE 'LOADLINE\\_%' ESCAPE '\\' ORDER BY t.TABLE_NAME";

/// Drops a table and all that belongs to it.
fn drop_table(session: &mut dyn OraSession, table: &str) -> Result<(), OraError> {
    session.execute(&format!("DROP TABLE {} CASCADE CONSTRAINTS PURGE", quoted(table)), &[]).map(drop)
}

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

/// Tables with loadline's prefix, and whether loadline created them.
fn tables(session: &mut dyn OraSession) -> Result<BTreeMap<String, bool>, TargetError> {
    let rows = session.query(PREFIXED_TABLES, &[])?;
    let is_ours = |row| text(row, 1).is_some_and(|comment| comment.starts_with(MARK));
    let table = |row| Some((text(row, 0)?.to_owned(), is_ours(row)));
    Ok(rows.iter().filter_map(table).filter(|(name, _)| name.starts_with(PREFIX)).collect())
}

/// Names of the tables that loadline created.
fn our_tables(session: &mut dyn OraSession) -> Result<BTreeSet<String>, TargetError> {
    Ok(tables(session)?.into_iter().filter_map(|(name, ours)| ours.then_some(name)).collect())
}

fn not_ours(table: &str) -> TargetError {
    TargetError::Refused(format!(
        "there is a table '{table}' that loadline did not create (its comment does not say so), and it is left \
         untouched: rename it, or connect as another user"
    ))
}

/// Drops those of loadline's tables that are `wanted`.
fn drop_ours(session: &mut dyn OraSession, wanted: impl Fn(&str) -> bool) -> Result<(), TargetError> {
    for name in our_tables(session)?.iter().filter(|name| wanted(name)) {
        drop_table(session, name)?;
    }
    Ok(())
}

/// Executes a statement that creates something, with advice if the privilege is missing.
fn make(session: &mut dyn OraSession, sql: &str) -> Result<(), TargetError> {
    match session.execute(sql, &[]) {
        Ok(_) => Ok(()),
        Err(e) if e.lacks_privilege() => Err(TargetError::Refused(format!(
            "the user may not create tables: {}. Grant it: GRANT CREATE TABLE TO …; ALTER USER … QUOTA UNLIMITED ON …",
            e.text
        ))),
        Err(e) => Err(e.into()),
    }
}

/// Marks a table as loadline's.
fn make_mark(session: &mut dyn OraSession, table: &str) -> Result<(), TargetError> {
    make(session, &format!("COMMENT ON TABLE {} IS '{}'", quoted(table), mark()))
}

/// Drops `table`, if it is one of the `existing` ones that loadline created, and creates it.
fn create_anew(
    session: &mut dyn OraSession,
    existing: &BTreeMap<String, bool>,
    work: &Work,
    table: &Table,
) -> Result<(), TargetError> {
    let name = table_name(work, &table.name);
    match existing.get(&name) {
        Some(false) => return Err(not_ours(&name)),
        Some(true) => drop_table(session, &name)?,
        None => {}
    }
    create_table(work, table).iter().try_for_each(|sql| make(session, sql))
}

/// Inserts the rows of `batch` with array binds.
pub(super) fn insert(session: &mut dyn OraSession, work: &Work, table: &Table, batch: &Batch) -> Result<u64, OraError> {
    let columns: Vec<String> = table.columns.iter().map(|c| quoted(&c.name.to_uppercase())).collect();
    let marks: Vec<String> = table.columns.iter().zip(1..).map(|(column, i)| mark_of(column.logical, i)).collect();
    let name = quoted(&table_name(work, &table.name));
    let sql = format!("INSERT INTO {name} ({}) VALUES ({})", columns.join(", "), marks.join(", "));
    in_parts(work, table, batch, BATCH, |args| {
        let binds: Vec<Bind<'_>> = args.iter().map(|arg| Bind::from(*arg)).collect();
        let rows: Vec<Vec<Bind<'_>>> = binds.chunks(table.columns.len().max(1)).map(<[_]>::to_vec).collect();
        session.batch(&sql, &rows)
    })
}

/// Takes the lock for as long as the session lives.
fn lock(session: &mut dyn OraSession) -> Result<(), TargetError> {
    let name = quoted(LOCK_TABLE);
    match tables(session)?.get(LOCK_TABLE) {
        Some(false) => return Err(not_ours(LOCK_TABLE)),
        Some(true) => {}
        None => match make(session, &format!("CREATE TABLE {name} (\"ID\" NUMBER(1))")) {
            // Another run has just created it.
            Err(TargetError::Server(refusal)) if refusal.code == NAME_USED => {}
            Err(e) => return Err(e),
            Ok(()) => make_mark(session, LOCK_TABLE)?,
        },
    }
    match session.execute(&format!("LOCK TABLE {name} IN EXCLUSIVE MODE NOWAIT"), &[]) {
        Ok(_) => Ok(()),
        Err(e) if e.is(BUSY) => Err(TargetError::Refused(
            "another run uses loadline's tables of this user: wait until it has ended, or connect as another user"
                .into(),
        )),
        Err(e) => Err(e.into()),
    }
}

impl Oracle {
    /// Drops what loadline created, except for tables in `kept`, and lists it.
    fn clean_except(
        &self,
        kept: impl Fn() -> Result<BTreeSet<String>, TargetError>,
    ) -> Result<Vec<String>, TargetError> {
        let mut locked = self.nodes.session(0, "lock")?;
        // Without any table there is nothing to lock.
        if tables(locked.as_mut())?.is_empty() {
            return Ok(Vec::new());
        }
        lock(locked.as_mut())?;
        let (kept, mut admin) = (kept()?, self.admin()?);
        let mut removed = Vec::new();
        for name in our_tables(admin.as_mut())?.difference(&kept).filter(|name| *name != LOCK_TABLE) {
            drop_table(admin.as_mut(), name)?;
            removed.push(format!("table {name}"));
        }
        // DDL commits, which releases this session's own lock.
        drop_table(locked.as_mut(), LOCK_TABLE)?;
        Ok(removed)
    }
}

impl Administration for Oracle {
    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut session = self.nodes.session(0, "lock")?;
        lock(session.as_mut())?;
        Ok(RunLock::new(session))
    }

    /// Drops and creates the workload tables. Tables of the data set are created when they are loaded.
    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        let longest = longest_payload(&work.program.body);
        if longest > MAX_RAW {
            return Err(TargetError::Unsupported(format!(
                "a payload of {longest} bytes does not fit: RAW columns hold {MAX_RAW} bytes"
            )));
        }
        let mut session = self.admin()?;
        let existing = tables(session.as_mut())?;
        workload_tables(work).try_for_each(|table| create_anew(session.as_mut(), &existing, work, table))
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        self.load_missing(work, jobs, progress)
    }

    fn log_space(&self, _data: u64, _indexes: u64) -> Result<LogSpace, TargetError> {
        self.archived_log_space()
    }

    /// Empties the tables that the workload fills itself.
    fn reset(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        let mut session = self.admin()?;
        for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
            session.execute(&format!("TRUNCATE TABLE {}", quoted(&table_name(work, &table.name))), &[])?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        match self.admin()?.execute(CHECKPOINT, &[]) {
            Ok(_) => Ok(None),
            Err(e) if e.lacks_privilege() => {
                Ok(Some("no checkpoint before each test: the user has no ALTER SYSTEM privilege".into()))
            }
            Err(e) => Err(e.into()),
        }
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        let own: BTreeSet<String> = workload_tables(work).map(|table| table_name(work, &table.name)).collect();
        drop_ours(self.admin()?.as_mut(), |name| own.contains(name))
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        self.clean_except(|| Ok(BTreeSet::new()))
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        self.clean_except(|| {
            let kept = self.with_loader(|loader| data_set::kept(loader, keep_data))?;
            Ok(kept.iter().map(|stem| name_of(stem)).collect())
        })
    }
}

impl Checkpoints for Oracle {
    fn checkpoint(&self) -> Result<(), TargetError> {
        self.admin()?.execute(CHECKPOINT, &[])?;
        Ok(())
    }
}

impl LoadsTables for Oracle {
    fn open_loader(&self) -> Result<Box<dyn Loader + '_>, TargetError> {
        Ok(Box::new(OraLoader(self.nodes.session(0, "loader")?)))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }
}

/// A session that loads.
pub(super) struct OraLoader(pub(super) Box<dyn OraSession>);

/// Name of loadline's table with this stem.
fn name_of(stem: &str) -> String {
    format!("{}{}", PREFIX, stem.to_uppercase())
}

impl Loader for OraLoader {
    fn record(&self) -> String {
        quoted(&name_of(RECORD))
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        quoted(&table_name(work, &table.name))
    }

    fn quoted(&self, name: &str) -> String {
        quoted(&name.to_uppercase())
    }

    fn hex(&self, bytes: &str) -> String {
        format!("RAWTOHEX({bytes})")
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let rows = self.0.query(sql, &[])?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.0.execute(sql, &[])?;
        self.0.execute("COMMIT", &[])?;
        Ok(())
    }

    fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        Ok(our_tables(self.0.as_mut())?.contains(&name_of(stem)))
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        let columns = "\"NAME\" VARCHAR2(64) NOT NULL, \"VERSION\" NUMBER(10) NOT NULL, \"SEED\" VARCHAR2(40) NOT NULL, \
                       \"COMPRESSIBILITY\" VARCHAR2(40) NOT NULL, \"DATA_ROWS\" NUMBER(19) NOT NULL, \"FINGERPRINT\" \
                       VARCHAR2(16) NOT NULL, \"COMPLETE\" NUMBER(1) NOT NULL, \"KEPT\" NUMBER(1) NOT NULL";
        let create = format!("CREATE TABLE {} ({columns})", self.record());
        make(self.0.as_mut(), &create)?;
        make_mark(self.0.as_mut(), &name_of(RECORD))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        let existing = tables(self.0.as_mut())?;
        create_anew(self.0.as_mut(), &existing, work, table)
    }

    fn count_batches(&self, name: &str, key: &str, size: u64) -> String {
        format!("SELECT TRUNC({key} / {size}), COUNT(*) FROM {name} GROUP BY TRUNC({key} / {size})")
    }

    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        let added = batches.iter().try_for_each(|batch| insert(self.0.as_mut(), work, table, batch).map(drop));
        if let Err(e) = added.and_then(|()| self.0.execute("COMMIT", &[]).map(drop)) {
            if !e.lost {
                self.0.rollback()?;
            }
            return Err(e.into());
        }
        Ok(())
    }

    fn remove(&mut self, work: &Work, table: &Table, keys: &Range<i64>) -> Result<(), TargetError> {
        let (name, key) = (quoted(&table_name(work, &table.name)), self.key(table));
        let delete = format!("DELETE FROM {name} WHERE {key} BETWEEN :1 AND :2");
        self.0.execute(&delete, &[Bind::Int(keys.start), Bind::Int(keys.end - 1)])?;
        self.0.execute("COMMIT", &[])?;
        Ok(())
    }

    fn drop_data_set(&mut self) -> Result<(), TargetError> {
        drop_ours(self.0.as_mut(), |name| name.starts_with(&name_of("data_")))
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        if table.is_whole() {
            let name = table_name(work, &table.name);
            self.0.call(&format!("BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, '{name}'); END;"), &[])?;
        }
        complete.map_or(Ok(()), |sql| self.run(sql))
    }

    fn path(&self) -> &'static str {
        "array binds"
    }
}
