//! Creates, fills (with array binds), locks and removes tables in the user's schema. loadline's tables have its prefix and its
//! comment; a table with only one of them is left untouched.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use loadline_workload::{ColumnDef, LogicalType, RowCount, Table};

use super::session::{BUSY, Bind, MISSING_PRIVILEGE, NAME_USED, NO_PRIVILEGE, OraError, OraSession};
use super::sql::{MARK, MAX_RAW, PREFIX, create_table, longest_payload, mark, quoted, table_name};
use crate::data_set::{Loader, RECORD};
use crate::error::TargetError;
use crate::loading::{Batch, in_parts};
use crate::work::Work;
use crate::workload_tables::workload_tables;

/// The table whose exclusive lock allows one run per user. Unlike DBMS_LOCK it needs no grant, and the lock
/// ends with its session.
pub(super) const LOCK_TABLE: &str = "LOADLINE_LOCK";
/// Rows per batch of an INSERT.
const BATCH: usize = 1000;

/// Name and comment of tables with loadline's prefix.
pub(super) const PREFIXED_TABLES: &str = "SELECT t.TABLE_NAME, c.COMMENTS FROM USER_TABLES t \
     LEFT JOIN USER_TAB_COMMENTS c ON c.TABLE_NAME = t.TABLE_NAME \
     WHERE t.TABLE_NAME LIKE 'LOADLINE\\_%' ESCAPE '\\' ORDER BY t.TABLE_NAME";

/// The statement that takes the lock for as long as the session lives.
pub(super) fn lock_statement() -> String {
    format!("LOCK TABLE {} IN EXCLUSIVE MODE NOWAIT", quoted(LOCK_TABLE))
}

/// The statements that create the lock table.
pub(super) fn create_lock() -> [String; 2] {
    let name = quoted(LOCK_TABLE);
    [format!("CREATE TABLE {name} (\"ID\" NUMBER(1))"), format!("COMMENT ON TABLE {name} IS '{}'", mark())]
}

/// The statement that drops a table and all that belongs to it.
pub(super) fn drop_statement(table: &str) -> String {
    format!("DROP TABLE {} CASCADE CONSTRAINTS PURGE", quoted(table))
}

/// Statements that delete and insert rows. Placeholders: first and last key; the row's values.
pub(super) struct Loading {
    pub(super) delete: String,
    pub(super) insert: String,
}

impl Loading {
    pub(super) fn of(work: &Work, table: &Table) -> Loading {
        let name = quoted(&table_name(work, table.name));
        let key = quoted(&table.columns.first().map_or("ID", |c| c.name).to_uppercase());
        let columns: Vec<String> = table.columns.iter().map(|c| quoted(&c.name.to_uppercase())).collect();
        let marks: Vec<String> = table.columns.iter().zip(1..).map(|(column, i)| mark_of(column.logical, i)).collect();
        Loading {
            delete: format!("DELETE FROM {name} WHERE {key} BETWEEN :1 AND :2"),
            insert: format!("INSERT INTO {name} ({}) VALUES ({})", columns.join(", "), marks.join(", ")),
        }
    }
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
pub(super) fn tables(session: &mut dyn OraSession) -> Result<Vec<(String, bool)>, TargetError> {
    let rows = session.query(PREFIXED_TABLES, &[])?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut row = row.into_iter();
            let name = row.next().flatten()?;
            let comment = row.next().flatten().unwrap_or_default();
            name.starts_with(PREFIX).then(|| (name, comment.starts_with(MARK)))
        })
        .collect())
}

fn not_ours(table: &str) -> TargetError {
    TargetError::Refused(format!(
        "there is a table '{table}' that loadline did not create (its comment does not say so), and it is left \
         untouched: rename it, or connect as another user"
    ))
}

/// Executes a statement that creates something, with advice if the privilege is missing.
pub(super) fn make(session: &mut dyn OraSession, sql: &str) -> Result<(), TargetError> {
    match session.execute(sql, &[]) {
        Ok(_) => Ok(()),
        Err(e) if e.is(&[NO_PRIVILEGE, MISSING_PRIVILEGE]) => Err(TargetError::Refused(format!(
            "the user may not create tables: {}. Grant it: GRANT CREATE TABLE TO …; ALTER USER … QUOTA UNLIMITED ON …",
            e.text
        ))),
        Err(e) => Err(e.into()),
    }
}

/// Drops the workload tables.
pub(super) fn drop_tables(session: &mut dyn OraSession, work: &Work) -> Result<(), TargetError> {
    let existing = tables(session)?;
    for name in workload_tables(work).map(|t| table_name(work, t.name)) {
        if existing.iter().any(|(n, ours)| *ours && *n == name) {
            session.execute(&drop_statement(&name), &[])?;
        }
    }
    Ok(())
}

/// Drops and creates the workload tables. Tables of the data set are created when they are loaded.
pub(super) fn create(session: &mut dyn OraSession, work: &Work) -> Result<(), TargetError> {
    let longest = longest_payload(&work.program.body);
    if longest > MAX_RAW {
        return Err(TargetError::Unsupported(format!(
            "a payload of {longest} bytes does not fit: RAW columns hold {MAX_RAW} bytes"
        )));
    }
    let existing = tables(session)?;
    workload_tables(work).try_for_each(|table| create_anew(session, &existing, work, table))
}

/// Drops `table`, if it is one of the `existing` ones that loadline created, and creates it.
pub(super) fn create_anew(
    session: &mut dyn OraSession,
    existing: &[(String, bool)],
    work: &Work,
    table: &Table,
) -> Result<(), TargetError> {
    let name = table_name(work, table.name);
    match existing.iter().find(|(n, _)| *n == name) {
        Some((_, false)) => return Err(not_ours(&name)),
        Some((_, true)) => drop(session.execute(&drop_statement(&name), &[])?),
        None => {}
    }
    create_table(work, table).iter().try_for_each(|sql| make(session, sql))
}

/// Empties the tables that the workload fills itself.
pub(super) fn reset(session: &mut dyn OraSession, work: &Work) -> Result<(), TargetError> {
    for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
        session.execute(&format!("TRUNCATE TABLE {}", quoted(&table_name(work, table.name))), &[])?;
    }
    Ok(())
}

/// Inserts the rows of `batch` with array binds.
pub(super) fn insert(session: &mut dyn OraSession, work: &Work, table: &Table, batch: &Batch) -> Result<u64, OraError> {
    let sql = Loading::of(work, table).insert;
    in_parts(work, table, batch, BATCH as u64, |args| {
        let binds: Vec<Bind<'_>> = args.iter().map(|arg| Bind::from(*arg)).collect();
        let rows: Vec<Vec<Bind<'_>>> = binds.chunks(table.columns.len().max(1)).map(<[_]>::to_vec).collect();
        session.batch(&sql, &rows)
    })
}

/// Takes the lock for as long as the session lives.
///
/// # Errors
/// [`TargetError::Refused`] if another run has it.
pub(super) fn lock(session: &mut dyn OraSession) -> Result<(), TargetError> {
    match tables(session)?.iter().find(|(name, _)| name == LOCK_TABLE) {
        Some((_, false)) => return Err(not_ours(LOCK_TABLE)),
        Some((_, true)) => {}
        None => {
            let [create, comment] = create_lock();
            match session.execute(&create, &[]) {
                // Another run has just created it.
                Err(e) if e.is(&[NAME_USED]) => {}
                Err(e) if e.is(&[NO_PRIVILEGE, MISSING_PRIVILEGE]) => make(session, &create)?,
                Err(e) => return Err(e.into()),
                Ok(_) => make(session, &comment)?,
            }
        }
    }
    match session.execute(&lock_statement(), &[]) {
        Ok(_) => Ok(()),
        Err(e) if e.is(&[BUSY]) => Err(TargetError::Refused(
            "another run uses loadline's tables of this user: wait until it has ended, or connect as another user"
                .into(),
        )),
        Err(e) => Err(e.into()),
    }
}

/// Drops what loadline created, except for tables in `kept`, and lists it. `lock` holds the lock; its table goes
/// last.
pub(super) fn clean(
    admin: &mut dyn OraSession,
    lock: &mut dyn OraSession,
    kept: &BTreeSet<String>,
) -> Result<Vec<String>, TargetError> {
    let mut removed = Vec::new();
    let ours = tables(admin)?.into_iter().filter(|(name, ours)| *ours && name != LOCK_TABLE && !kept.contains(name));
    for (name, _) in ours {
        admin.execute(&drop_statement(&name), &[])?;
        removed.push(format!("table {name}"));
    }
    // DDL commits, which releases this session's own lock.
    lock.execute(&drop_statement(LOCK_TABLE), &[])?;
    Ok(removed)
}

/// A session that loads.
pub(super) struct OraLoader(pub(super) Box<dyn OraSession>);

/// Name of loadline's table with this stem.
pub(super) fn name_of(stem: &str) -> String {
    format!("{}{}", PREFIX, stem.to_uppercase())
}

impl Loader for OraLoader {
    fn record(&self) -> String {
        quoted(&name_of(RECORD))
    }

    fn table_name(&self, work: &Work, table: &Table) -> String {
        quoted(&table_name(work, table.name))
    }

    fn as_text(&self, column: &ColumnDef) -> String {
        let name = quoted(&column.name.to_uppercase());
        if column.logical == LogicalType::Bytes { format!("RAWTOHEX({name})") } else { name }
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
        let name = name_of(stem);
        Ok(tables(self.0.as_mut())?.into_iter().any(|(table, ours)| ours && table == name))
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        let record = self.record();
        make(
            self.0.as_mut(),
            &format!(
                "CREATE TABLE {record} (\"NAME\" VARCHAR2(64) NOT NULL, \"VERSION\" NUMBER(10) NOT NULL, \"SEED\" \
                 VARCHAR2(40) NOT NULL, \"COMPRESSIBILITY\" VARCHAR2(40) NOT NULL, \"DATA_ROWS\" NUMBER(19) NOT NULL, \
                 \"FINGERPRINT\" VARCHAR2(16) NOT NULL, \"COMPLETE\" NUMBER(1) NOT NULL, \"KEPT\" NUMBER(1) NOT NULL)"
            ),
        )?;
        make(self.0.as_mut(), &format!("COMMENT ON TABLE {record} IS '{}'", mark()))
    }

    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        let existing = tables(self.0.as_mut())?;
        create_anew(self.0.as_mut(), &existing, work, table)
    }

    fn counted(&mut self, work: &Work, table: &Table) -> Result<BTreeMap<u64, u64>, TargetError> {
        let (size, name) = (table.batch_rows(&work.params), quoted(&table_name(work, table.name)));
        let key = quoted(&table.columns.first().map_or("ID", |c| c.name).to_uppercase());
        let batch = format!("TRUNC({key} / {size})");
        let rows = self.rows(&format!("SELECT {batch}, COUNT(*) FROM {name} GROUP BY {batch}"))?;
        let number = |v: Option<&String>| v.and_then(|v| v.parse().ok());
        Ok(rows.iter().filter_map(|row| Some((number(row.first())?, number(row.get(1))?))).collect())
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
        let delete = Loading::of(work, table).delete;
        self.0.execute(&delete, &[Bind::Int(keys.start), Bind::Int(keys.end - 1)])?;
        self.0.execute("COMMIT", &[])?;
        Ok(())
    }

    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        if table.is_whole() {
            let name = table_name(work, table.name);
            self.0.call(&format!("BEGIN DBMS_STATS.GATHER_TABLE_STATS(USER, '{name}'); END;"), &[])?;
        }
        complete.map_or(Ok(()), |sql| self.run(sql))
    }

    fn path(&self) -> &'static str {
        "array binds"
    }
}
