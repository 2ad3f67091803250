//! An open database, its connections and prepared statements.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::ptr::null_mut;
use std::sync::Arc;

use loadline_workload::{Arg, Datum, Table};

use super::KNOWLEDGE;
use super::library::{DONE, Functions, Handle, Library, RawResult, RawString, c_text};
use crate::data_set::LoadSession;
use crate::embedded::files::EmbeddedFiles;
use crate::error::{Cause, Refusal, TargetError};
use crate::loading::{Batch, rows, table_stem};
use crate::work::Work;

/// Longest text that a `duckdb_string_t` holds inside.
const INLINED: usize = 12;
pub(super) const TRANSACTION: c_int = 10;
const INTERRUPT: c_int = 29;
const FATAL: c_int = 30;
const OUT_OF_MEMORY: c_int = 33;
const PERMISSION: c_int = 34;

/// An object of the library's (null: none), which is freed when it is dropped.
struct Owned {
    handle: Handle,
    free: unsafe extern "C" fn(*mut Handle),
}

// SAFETY: any thread may use DuckDB's objects. Shared are only a database, and of a connection `interrupt`, which may be called beside
// others, and what a session's own thread calls.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and DuckDB frees nothing if it is null.
        unsafe { (self.free)(&raw mut self.handle) }
    }
}

/// An open database. Connections keep it open. The order of its fields is that in which they are dropped.
pub(super) struct Database {
    pub(super) library: &'static Library,
    object: Owned,
    /// The database file, closed after the database (`embedded::Base::file`), and the lock of the run.
    pub(super) held: Option<(Arc<File>, File)>,
    /// Folder, if it is a temporary one, is removed at last.
    _files: Arc<EmbeddedFiles>,
}

impl Database {
    /// Opens the database at `files`, or creates it, with these settings.
    ///
    /// # Errors
    /// [`TargetError::Refused`] in DuckDB's words: a file of a newer version, no database, locked by another process (with its number).
    pub(super) fn open<'a>(
        library: &'static Library,
        files: &Arc<EmbeddedFiles>,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Database, TargetError> {
        let (call, version) = (&library.call, &library.version);
        let (path, shown) = (c_text(&files.database.to_string_lossy())?, files.database.display());
        let mut object = Owned { handle: null_mut(), free: call.close };
        let (mut config, mut error) = (Owned { handle: null_mut(), free: call.destroy_config }, null_mut());
        // SAFETY: all pointers are valid for the calls, and the error is a text of the library's, freed once.
        unsafe {
            (call.create_config)(&raw mut config.handle);
            for (name, value) in settings {
                if (call.set_config)(config.handle, c_text(name)?.as_ptr(), c_text(value)?.as_ptr()) != DONE {
                    let why = format!("DuckDB {version} does not take the setting {name} = '{value}'");
                    return Err(TargetError::Usage(why));
                }
            }
            if (call.open_ext)(path.as_ptr(), &raw mut object.handle, config.handle, &raw mut error) == DONE {
                return Ok(Database { library, object, held: None, _files: Arc::clone(files) });
            }
            let said = text_at(error).replace('\n', " ");
            if !error.is_null() {
                (call.free)(error.cast());
            }
            Err(TargetError::Refused(format!("DuckDB {version} cannot open {shown}: {said}")))
        }
    }
}

/// The text at a pointer of the library's; empty if there is none.
fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the library ends its texts with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A connection. DuckDB allows one call at a time on it, beside [`Connection::interrupt`].
pub(super) struct Connection {
    object: Owned,
    pub(super) database: Arc<Database>,
}

impl Connection {
    pub(super) fn open(database: &Arc<Database>) -> Result<Connection, TargetError> {
        let call = &database.library.call;
        let mut object = Owned { handle: null_mut(), free: call.disconnect };
        // SAFETY: the database is open.
        if unsafe { (call.connect)(database.object.handle, &raw mut object.handle) } != DONE {
            return Err(TargetError::Unreachable("DuckDB opens no connection".into()));
        }
        Ok(Connection { object, database: Arc::clone(database) })
    }

    /// Ends the call that another thread makes on this connection.
    pub(super) fn interrupt(&self) {
        // SAFETY: the connection is open; DuckDB allows this call beside others.
        unsafe { (self.database.library.call.interrupt)(self.object.handle) }
    }

    /// Runs statements, and returns the result of the last one.
    pub(super) fn run_sql(&self, sql: &str) -> Result<Answer, TargetError> {
        let (sql, call) = (c_text(sql)?, &self.database.library.call);
        // SAFETY: the connection is open, and the text ends with a zero byte.
        Answer::made(call, |result| unsafe { (call.query)(self.object.handle, sql.as_ptr(), result) })
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, TargetError> {
        let (text, call) = (c_text(sql)?, &self.database.library.call);
        let mut object = Owned { handle: null_mut(), free: call.destroy_prepare };
        // SAFETY: the connection is open; a statement that failed has the error's text.
        unsafe {
            if (call.prepare)(self.object.handle, text.as_ptr(), &raw mut object.handle) == DONE {
                return Ok(Prepared { object, call });
            }
            Err(refusal(None, "DuckDB", &text_at((call.prepare_error)(object.handle))))
        }
    }

    pub(super) fn texts(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        Ok(self.run_sql(&format!("SELECT COLUMNS(*)::VARCHAR FROM ({sql})"))?.texts())
    }

    /// Adds the rows of `batches` by the appender: DuckDB casts texts to the types of the table.
    pub(super) fn append(&self, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
        let (name, call) =
            (c_text(&KNOWLEDGE.dialect.plain_name(&table_stem(work, &table.name)))?, &self.database.library.call);
        let mut object = Owned { handle: null_mut(), free: call.appender_destroy };
        // SAFETY: the connection is open, as long as this function runs.
        let made = unsafe {
            (call.appender_create)(self.object.handle, std::ptr::null(), name.as_ptr(), &raw mut object.handle)
        };
        let appender = object.handle;
        let checked = |done: c_int| match done {
            DONE => Ok(()),
            // SAFETY: the appender keeps the text of its error. Its rows go with its transaction.
            _ => Err(refusal(None, "DuckDB's appender", &text_at(unsafe { (call.appender_error)(appender) }))),
        };
        checked(made)?;
        let mut added = 0;
        for batch in batches {
            rows(work, table, batch, |row| {
                for datum in row {
                    // SAFETY: the appender is open, and copies the bytes.
                    checked(unsafe {
                        match datum {
                            Datum::Int(n) => (call.append_int64)(appender, *n),
                            Datum::Bytes(b) => (call.append_blob)(appender, b.as_ptr().cast(), b.len() as u64),
                            Datum::Typed(value) => {
                                let text = value.text();
                                (call.append_varchar_length)(appender, text.as_ptr().cast(), text.len() as u64)
                            }
                        }
                    })?;
                }
                // SAFETY: as above.
                checked(unsafe { (call.appender_end_row)(appender) })
            })?;
            added += batch.len();
        }
        // SAFETY: as above.
        checked(unsafe { (call.appender_flush)(appender) })?;
        Ok(added)
    }
}

/// A prepared statement. It lives no longer than its connection.
pub(super) struct Prepared {
    object: Owned,
    call: &'static Functions,
}

impl Prepared {
    pub(super) fn execute(&mut self, args: &[Arg<'_>]) -> Result<Answer, TargetError> {
        let (call, statement) = (self.call, self.object.handle);
        for (number, arg) in (1..).zip(args) {
            // SAFETY: the statement is open, and DuckDB copies the bytes.
            let done = unsafe {
                match arg {
                    Arg::Int(n) => (call.bind_int64)(statement, number, *n),
                    Arg::Bytes(b) => (call.bind_blob)(statement, number, b.as_ptr().cast(), b.len() as u64),
                }
            };
            if done != DONE {
                return Err(TargetError::Statement(format!("DuckDB takes no value number {number} of the statement")));
            }
        }
        // SAFETY: the statement is open, and has its values.
        Answer::made(call, |result| unsafe { (call.execute_prepared)(statement, result) })
    }
}

/// Values of a column, and the bits that say which are not NULL (none: all).
type Vector = (*mut c_void, *mut u64);

/// A result, with all its rows.
pub(super) struct Answer {
    raw: RawResult,
    call: &'static Functions,
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: it was made once, and nobody else has it.
        unsafe { (self.call.destroy_result)(&raw mut self.raw) }
    }
}

impl Answer {
    fn made(call: &'static Functions, make: impl FnOnce(*mut RawResult) -> c_int) -> Result<Answer, TargetError> {
        let mut answer = Answer { raw: RawResult::EMPTY, call };
        if make(&raw mut answer.raw) == DONE {
            return Ok(answer);
        }
        // SAFETY: a result that failed has the kind and the text of its error.
        let (kind, said) = unsafe {
            ((call.result_error_type)(&raw mut answer.raw), text_at((call.result_error)(&raw mut answer.raw)))
        };
        Err(refusal(Some(kind), "DuckDB", &said))
    }

    pub(super) fn changed(&mut self) -> u64 {
        // SAFETY: the result is one of a statement that succeeded.
        unsafe { (self.call.rows_changed)(&raw mut self.raw) }
    }

    /// Calls `each` with the columns of up to 2,048 rows at a time, until it had all.
    fn chunks(&mut self, mut each: impl FnMut(&[Vector], usize)) {
        let call = self.call;
        // SAFETY: the result is open, and a chunk until the next one is fetched.
        unsafe {
            let columns = (call.column_count)(&raw mut self.raw);
            loop {
                let chunk = Owned { handle: (call.fetch_chunk)(self.raw), free: call.destroy_data_chunk };
                if chunk.handle.is_null() {
                    return;
                }
                let vector = |column| {
                    let vector = (call.data_chunk_get_vector)(chunk.handle, column);
                    ((call.vector_get_data)(vector), (call.vector_get_validity)(vector))
                };
                let rows = (call.data_chunk_get_size)(chunk.handle) as usize;
                each(&(0..columns).map(vector).collect::<Vec<Vector>>(), rows);
            }
        }
    }

    /// Fetches all columns of all rows and counts the rows.
    pub(super) fn fetch(&mut self) -> u64 {
        let mut all = 0;
        self.chunks(|columns, rows| {
            std::hint::black_box(columns);
            all += rows as u64;
        });
        all
    }

    pub(super) fn texts(&mut self) -> Vec<Vec<Option<String>>> {
        let mut all = Vec::new();
        self.chunks(|columns, rows| {
            // SAFETY: the query has made texts of all columns.
            all.extend(
                (0..rows).map(|row| columns.iter().map(|column| unsafe { text_of(*column, row) }).collect::<Vec<_>>()),
            );
        });
        all
    }
}

/// A value of a column of texts; `None` for NULL.
///
/// # Safety
/// The column must be one of texts, and have this row.
unsafe fn text_of((data, valid): Vector, row: usize) -> Option<String> {
    // SAFETY: it has a `duckdb_string_t` for each row, and a bit if there are any; texts lie inside of them or at the address behind their
    // first four bytes.
    unsafe {
        if !valid.is_null() && (*valid.add(row / 64) >> (row % 64)) & 1 == 0 {
            return None;
        }
        let string = data.cast::<RawString>().add(row);
        let length = (*string).length as usize;
        let begin = if length <= INLINED { string.cast::<u8>().add(4) } else { (*string).pointer };
        Some(String::from_utf8_lossy(std::slice::from_raw_parts(begin, length)).into_owned())
    }
}

/// Refusal by `who`, by the kind of its error, if that is known.
fn refusal(kind: Option<c_int>, who: &str, said: &str) -> TargetError {
    // What follows is advice.
    let text = format!("{who}: {}", said.lines().next().unwrap_or_default());
    let says = |what: &str| KNOWLEDGE.errors.get(what).into_iter().flatten().any(|part| said.contains(part));
    match kind {
        Some(INTERRUPT) => return TargetError::Lost("the session was cancelled".into()),
        // Two transactions changed a row, or one a table that the other altered. Other errors of this kind are of transactions that are
        // used wrongly.
        Some(TRANSACTION) if says("conflicts") => return TargetError::Conflict(text),
        // It can be used no longer until it is opened again.
        Some(FATAL) => return TargetError::Lost(text),
        _ => {}
    }
    let cause = match kind {
        _ if says("full-disk") => Cause::FullDisk,
        _ if says("limits") => Cause::Limit,
        Some(OUT_OF_MEMORY) => Cause::Limit,
        Some(PERMISSION) => Cause::Privilege,
        _ => Cause::Other,
    };
    let code = kind.map_or(String::new(), |kind| kind.to_string());
    Refusal { cause, code, text }.into()
}

impl LoadSession for Connection {
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        self.texts(sql)
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.run_sql(sql).map(drop)
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        self.append(work, table, batches).map(drop)
    }

    fn path(&self) -> &'static str {
        "appender"
    }
}
