//! An open database, its connections and prepared statements.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::sync::Arc;

use loadline_workload::{Arg, ColumnDef, Datum, LogicalType, Table};

use super::knowledge::KNOWLEDGE;
use super::library::{DONE, Functions, Handle, Library, RawResult, RawString, c_text};
use crate::data_set::LoadSession;
use crate::dialect::Dialect;
use crate::embedded_files::EmbeddedFiles;
use crate::error::{Cause, Refusal, TargetError};
use crate::loading::{Batch, rows};
use crate::work::Work;

/// Longest text that a `duckdb_string_t` holds inside.
const INLINED: usize = 12;
/// Types of columns, `DUCKDB_TYPE_…`.
const BIGINT: c_int = 5;
const VARCHAR: c_int = 17;
const BLOB: c_int = 18;
/// Kinds of errors, `DUCKDB_ERROR_…`.
const TRANSACTION: c_int = 10;
const IO: c_int = 28;
const INTERRUPT: c_int = 29;
const FATAL: c_int = 30;
const OUT_OF_MEMORY: c_int = 33;
const PERMISSION: c_int = 34;

/// An open database. Connections keep it open.
pub(super) struct Database {
    pub(super) library: &'static Library,
    handle: Handle,
    /// The database file, opened outside DuckDB, and the lock of the run. Closing any descriptor of the file releases DuckDB's lock
    /// (fcntl_locking(2)), so that this one is closed after the database.
    pub(super) held: Option<(Arc<File>, File)>,
    /// Its folder, if it is a temporary one, is removed at last.
    pub(super) files: Arc<EmbeddedFiles>,
}

// SAFETY: DuckDB's databases may be used by several threads at once.
#[allow(unsafe_code)]
unsafe impl Send for Database {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Database {}

impl Drop for Database {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody else has it.
        unsafe { (self.library.call.close)(&raw mut self.handle) }
    }
}

impl Database {
    /// Opens the database at `files`, or creates it, with these settings.
    ///
    /// # Errors
    /// [`TargetError::Refused`] in DuckDB's words: a file of a newer version, no database, locked by another process (with its number).
    #[allow(unsafe_code)]
    pub(super) fn open(
        library: &'static Library,
        files: &Arc<EmbeddedFiles>,
        settings: &[(String, String)],
    ) -> Result<Database, TargetError> {
        let call = &library.call;
        let (path, shown) = (c_text(&files.database().to_string_lossy())?, files.database().display());
        let mut database = Database { library, handle: std::ptr::null_mut(), held: None, files: Arc::clone(files) };
        let (mut config, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut refused = None;
        // SAFETY: all pointers are valid for the calls, what they create is freed once, and the error is a text of the library's.
        let (opened, said) = unsafe {
            (call.create_config)(&raw mut config);
            for (name, value) in settings {
                if (call.set_config)(config, c_text(name)?.as_ptr(), c_text(value)?.as_ptr()) != DONE {
                    refused = Some((name, value));
                }
            }
            let opened = refused.is_none()
                && (call.open_ext)(path.as_ptr(), &raw mut database.handle, config, &raw mut error) == DONE;
            (call.destroy_config)(&raw mut config);
            let said = text_at(error);
            if !error.is_null() {
                (call.free)(error.cast());
            }
            (opened, said)
        };
        match refused {
            Some((name, value)) => {
                let version = &library.version;
                Err(TargetError::Usage(format!("DuckDB {version} does not take the setting {name} = '{value}'")))
            }
            None if opened => Ok(database),
            None => {
                let said = said.replace('\n', " ");
                Err(TargetError::Refused(format!("DuckDB {} cannot open {shown}: {said}", library.version)))
            }
        }
    }
}

/// The text at a pointer of the library's; empty if there is none.
#[allow(unsafe_code)]
fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the library ends its texts with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A connection. DuckDB allows one call at a time on it, beside [`Connection::interrupt`].
pub(super) struct Connection {
    handle: Handle,
    pub(super) database: Arc<Database>,
}

// SAFETY: a connection may be used by any thread, by one at a time.
#[allow(unsafe_code)]
unsafe impl Send for Connection {}
// SAFETY: shared are only `interrupt`, which DuckDB allows at any time, and what a session's own thread calls.
#[allow(unsafe_code)]
unsafe impl Sync for Connection {}

impl Drop for Connection {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody else has it.
        unsafe { (self.call().disconnect)(&raw mut self.handle) }
    }
}

impl Connection {
    #[allow(unsafe_code)]
    pub(super) fn open(database: &Arc<Database>) -> Result<Connection, TargetError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the database is open.
        if unsafe { (database.library.call.connect)(database.handle, &raw mut handle) } != DONE {
            return Err(TargetError::Unreachable("DuckDB opens no connection".into()));
        }
        Ok(Connection { handle, database: Arc::clone(database) })
    }

    fn call(&self) -> &'static Functions {
        &self.database.library.call
    }

    /// Ends the call that another thread makes on this connection.
    #[allow(unsafe_code)]
    pub(super) fn interrupt(&self) {
        // SAFETY: the connection is open; DuckDB allows this call beside others.
        unsafe { (self.call().interrupt)(self.handle) }
    }

    /// Runs statements, and returns the result of the last one.
    #[allow(unsafe_code)]
    pub(super) fn run_sql(&self, sql: &str) -> Result<Answer, TargetError> {
        let sql = c_text(sql)?;
        // SAFETY: the connection is open, and the text ends with a zero byte.
        Answer::made(self.call(), |result| unsafe { (self.call().query)(self.handle, sql.as_ptr(), result) })
    }

    #[allow(unsafe_code)]
    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, TargetError> {
        let text = c_text(sql)?;
        let mut prepared = Prepared { handle: std::ptr::null_mut(), call: self.call() };
        // SAFETY: the connection is open; what it makes is freed by `Prepared`, also if it failed.
        let done = unsafe { (self.call().prepare)(self.handle, text.as_ptr(), &raw mut prepared.handle) };
        if done == DONE {
            return Ok(prepared);
        }
        // SAFETY: a statement that failed has the error's text.
        let said = text_at(unsafe { (self.call().prepare_error)(prepared.handle) });
        Err(Refusal { cause: Cause::Other, code: String::new(), text: format!("DuckDB: {said}") }.into())
    }

    /// Rows of a query whose values become texts.
    pub(super) fn texts(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        let mut answer = self.run_sql(&format!("SELECT COLUMNS(*)::VARCHAR FROM ({sql})"))?;
        let mut rows = Vec::new();
        answer.chunks(|chunk| (0..chunk.rows).for_each(|row| rows.push(chunk.texts(row))));
        Ok(rows)
    }

    /// Adds the rows of `batches` by the appender, a chunk of DuckDB's vectors at a time.
    #[allow(unsafe_code)]
    pub(super) fn append(&self, work: &Work, table: &Table, batches: &[Batch]) -> Result<u64, TargetError> {
        let name = c_text(&KNOWLEDGE.dialect.plain_name(&crate::loading::table_stem(work, &table.name)))?;
        // As `Datum` has them: DuckDB casts texts to the types of the table.
        let kind = |column: &ColumnDef| match column.logical {
            LogicalType::Int => BIGINT,
            LogicalType::Bytes => BLOB,
            _ => VARCHAR,
        };
        let types: Vec<c_int> = table.columns.iter().map(kind).collect();
        // SAFETY: the connection is open, and the appender and the chunk are freed by their owner.
        let mut appender = unsafe { Appender::make(self.call(), self.handle, &name, &types)? };
        let mut added = 0;
        for batch in batches {
            rows(work, table, batch, |row| appender.row(row))?;
            added += batch.len();
        }
        appender.finish()?;
        Ok(added)
    }
}

/// An appender and the chunk that it is given next.
struct Appender {
    call: &'static Functions,
    handle: Handle,
    chunk: Handle,
    used: u64,
    most: u64,
}

impl Drop for Appender {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: both are open, and nobody else has them. Rows of an appender that failed go with its transaction.
        unsafe {
            (self.call.destroy_data_chunk)(&raw mut self.chunk);
            (self.call.appender_destroy)(&raw mut self.handle);
        }
    }
}

impl Appender {
    /// # Safety
    /// `connection` must be open as long as the appender lives.
    #[allow(unsafe_code)]
    unsafe fn make(
        call: &'static Functions,
        connection: Handle,
        table: &CStr,
        types: &[c_int],
    ) -> Result<Appender, TargetError> {
        // SAFETY: the caller guarantees the connection; the chunk copies the types.
        unsafe {
            let mut handle = std::ptr::null_mut();
            let made = (call.appender_create)(connection, std::ptr::null(), table.as_ptr(), &raw mut handle);
            let mut logical: Vec<Handle> = types.iter().map(|kind| (call.create_logical_type)(*kind)).collect();
            let chunk = (call.create_data_chunk)(logical.as_mut_ptr(), logical.len() as u64);
            logical.iter_mut().for_each(|kind| (call.destroy_logical_type)(kind));
            let appender = Appender { call, handle, chunk, used: 0, most: (call.vector_size)() };
            if made == DONE { Ok(appender) } else { Err(appender.error()) }
        }
    }

    #[allow(unsafe_code)]
    fn error(&self) -> TargetError {
        // SAFETY: the appender keeps the text of its error.
        let said = text_at(unsafe { (self.call.appender_error)(self.handle) });
        Refusal { cause: Cause::Other, code: String::new(), text: format!("DuckDB's appender: {said}") }.into()
    }

    #[allow(unsafe_code)]
    fn row(&mut self, row: &[Datum<'_>]) -> Result<(), TargetError> {
        let (call, at) = (self.call, self.used);
        for (column, datum) in row.iter().enumerate() {
            // SAFETY: the chunk has a column of this type for each value, and room for `most` rows.
            unsafe {
                let vector = (call.data_chunk_get_vector)(self.chunk, column as u64);
                let assign = |bytes: &[u8]| {
                    (call.vector_assign_string_element_len)(vector, at, bytes.as_ptr().cast(), bytes.len() as u64);
                };
                match datum {
                    Datum::Int(n) => (call.vector_get_data)(vector).cast::<i64>().add(at as usize).write(*n),
                    Datum::Bytes(bytes) => assign(bytes),
                    Datum::Typed(value) => assign(value.text().as_bytes()),
                }
            }
        }
        self.used += 1;
        if self.used == self.most { self.append() } else { Ok(()) }
    }

    #[allow(unsafe_code)]
    fn append(&mut self) -> Result<(), TargetError> {
        // SAFETY: the chunk has `used` rows.
        let done = unsafe {
            (self.call.data_chunk_set_size)(self.chunk, self.used);
            let done = (self.call.append_data_chunk)(self.handle, self.chunk);
            (self.call.data_chunk_reset)(self.chunk);
            done
        };
        self.used = 0;
        if done == DONE { Ok(()) } else { Err(self.error()) }
    }

    /// Appends the rest, and gives all rows to the table.
    #[allow(unsafe_code)]
    fn finish(&mut self) -> Result<(), TargetError> {
        if self.used > 0 {
            self.append()?;
        }
        // SAFETY: the appender is open.
        if unsafe { (self.call.appender_flush)(self.handle) } == DONE { Ok(()) } else { Err(self.error()) }
    }
}

/// A prepared statement. It lives no longer than its connection.
pub(super) struct Prepared {
    handle: Handle,
    call: &'static Functions,
}

// SAFETY: as for a connection.
#[allow(unsafe_code)]
unsafe impl Send for Prepared {}

impl Drop for Prepared {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody else has it.
        unsafe { (self.call.destroy_prepare)(&raw mut self.handle) }
    }
}

impl Prepared {
    #[allow(unsafe_code)]
    pub(super) fn execute(&mut self, args: &[Arg<'_>]) -> Result<Answer, TargetError> {
        for (number, arg) in (1..).zip(args) {
            // SAFETY: the statement is open, and DuckDB copies the bytes.
            let done = unsafe {
                match arg {
                    Arg::Int(n) => (self.call.bind_int64)(self.handle, number, *n),
                    Arg::Bytes(b) => {
                        (self.call.bind_blob)(self.handle, number, b.as_ptr().cast::<c_void>(), b.len() as u64)
                    }
                }
            };
            if done != DONE {
                return Err(TargetError::Statement(format!("DuckDB takes no value number {number} of the statement")));
            }
        }
        // SAFETY: the statement is open, and has its values.
        Answer::made(self.call, |result| unsafe { (self.call.execute_prepared)(self.handle, result) })
    }
}

/// A result, with all its rows.
pub(super) struct Answer {
    raw: RawResult,
    call: &'static Functions,
}

impl Drop for Answer {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was made once, and nobody else has it.
        unsafe { (self.call.destroy_result)(&raw mut self.raw) }
    }
}

impl Answer {
    #[allow(unsafe_code)]
    fn made(call: &'static Functions, make: impl FnOnce(*mut RawResult) -> c_int) -> Result<Answer, TargetError> {
        let mut answer = Answer { raw: RawResult::EMPTY, call };
        if make(&raw mut answer.raw) == DONE {
            return Ok(answer);
        }
        // SAFETY: a result that failed has the kind and the text of its error.
        let (kind, said) = unsafe {
            ((call.result_error_type)(&raw mut answer.raw), text_at((call.result_error)(&raw mut answer.raw)))
        };
        Err(refusal(kind, said))
    }

    /// Rows that a statement changed.
    #[allow(unsafe_code)]
    pub(super) fn changed(&mut self) -> u64 {
        // SAFETY: the result is one of a statement that succeeded.
        unsafe { (self.call.rows_changed)(&raw mut self.raw) }
    }

    /// Calls `each` with all rows, up to 2,048 at a time.
    #[allow(unsafe_code)]
    fn chunks(&mut self, mut each: impl FnMut(&Chunk)) {
        // SAFETY: the result is open; a chunk is freed before the next one is fetched.
        unsafe {
            let columns = (self.call.column_count)(&raw mut self.raw);
            loop {
                let mut handle = (self.call.fetch_chunk)(self.raw);
                if handle.is_null() {
                    break;
                }
                let rows = (self.call.data_chunk_get_size)(handle);
                each(&Chunk { handle, call: self.call, rows, columns });
                (self.call.destroy_data_chunk)(&raw mut handle);
                if rows == 0 {
                    break;
                }
            }
        }
    }

    /// Fetches all columns of all rows and counts the rows.
    pub(super) fn fetch(&mut self) -> u64 {
        let mut rows = 0;
        self.chunks(|chunk| {
            for column in 0..chunk.columns {
                let _ = std::hint::black_box(chunk.data(column));
            }
            rows += chunk.rows;
        });
        rows
    }
}

/// Rows of a result.
struct Chunk {
    handle: Handle,
    call: &'static Functions,
    rows: u64,
    columns: u64,
}

impl Chunk {
    /// Address of a column's values, and of the bits that say which are not NULL (none: all).
    #[allow(unsafe_code)]
    fn data(&self, column: u64) -> (*mut c_void, *mut u64) {
        // SAFETY: the chunk is open and has this column.
        unsafe {
            let vector = (self.call.data_chunk_get_vector)(self.handle, column);
            ((self.call.vector_get_data)(vector), (self.call.vector_get_validity)(vector))
        }
    }

    /// A row whose columns are all texts.
    #[allow(unsafe_code)]
    fn texts(&self, row: u64) -> Vec<Option<String>> {
        let text = |column| {
            let (data, valid) = self.data(column);
            // SAFETY: the column has a `duckdb_string_t` for each row, and a bit if there are any; texts lie inside of them or at the
            // address behind their first four bytes.
            unsafe {
                if !valid.is_null() && (*valid.add(row as usize / 64) >> (row % 64)) & 1 == 0 {
                    return None;
                }
                let string = data.cast::<RawString>().add(row as usize);
                let length = (*string).length as usize;
                let begin = if length <= INLINED { string.cast::<u8>().add(4) } else { (*string).pointer };
                Some(String::from_utf8_lossy(std::slice::from_raw_parts(begin, length)).into_owned())
            }
        };
        (0..self.columns).map(text).collect()
    }
}

/// What DuckDB refused, by the kind of its error.
fn refusal(kind: c_int, said: String) -> TargetError {
    let text = format!("DuckDB: {said}");
    match kind {
        INTERRUPT => return TargetError::Lost("the session was cancelled".into()),
        // Two transactions changed a row, or one a table that the other altered. Other errors of this kind are of transactions that are
        // used wrongly.
        TRANSACTION if KNOWLEDGE.conflicts.iter().any(|part| said.contains(part)) => {
            return TargetError::Conflict(text);
        }
        // It can be used no longer until it is opened again.
        FATAL => return TargetError::Lost(text),
        _ => {}
    }
    let cause = match kind {
        IO if KNOWLEDGE.full_disk.iter().any(|part| said.contains(part)) => Cause::FullDisk,
        OUT_OF_MEMORY => Cause::Limit,
        PERMISSION => Cause::Privilege,
        _ => Cause::Other,
    };
    Refusal { cause, code: kind.to_string(), text }.into()
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
        "appender, chunks of 2,048 rows"
    }
}

/// The words of DuckDB.
pub(super) fn dialect() -> &'static Dialect {
    &KNOWLEDGE.dialect
}
