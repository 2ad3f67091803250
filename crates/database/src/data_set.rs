//! The data set on a target: finds what is loaded and loads the missing rows in parallel.
//!
//! A small table beside the data (the record) says what each table holds (version of the data, seed,
//! compressibility, rows, fingerprint) and whether it is complete, so rows are not counted before a test. Each
//! transaction loads whole batches. An interrupted load is resumed: the existing batches are counted once, and the
//! others are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use loadline_model::manifest::TableLoad;
use loadline_model::plan::Payload;
use loadline_workload::{ColumnDef, LogicalType, Params, Table, data};

use crate::descriptor::fill;
use crate::dialect::{Dialect, MARK, mark};
use crate::error::TargetError;
use crate::loading::{Batch, batches, table_stem};
use crate::work::Work;

/// Name of the record table, without the target's prefix.
pub(crate) const RECORD: &str = "data_set";
/// Approximate rows per loading transaction.
const ROWS_PER_TRANSACTION: u64 = 65_536;
/// Upper limit of loaders; below it there is one per CPU.
const MAX_LOADERS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataTable {
    pub table: String,
    pub version: u32,
    pub seed: u64,
    /// Payloads as text: the share that compresses away, and that of duplicates if there are any.
    pub payload: String,
    pub rows: u64,
    pub fingerprint: u64,
}

impl DataTable {
    pub fn wanted(table: &Table, params: &Params, seed: u64, payload: Payload) -> DataTable {
        DataTable {
            table: table.name.clone(),
            version: data::VERSION,
            seed,
            payload: payload.to_string(),
            rows: table.total_rows(params, 0),
            fingerprint: data::fingerprint(table, params, seed, payload),
        }
    }
}

impl std::fmt::Display for DataTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DataTable { table, version, seed, payload, rows, .. } = self;
        write!(f, "{table}: {rows} rows, seed {seed}, version {version}")?;
        if payload == "0" { Ok(()) } else { write!(f, ", compressibility {payload}") }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// Contents, now or when it is complete.
    pub holds: DataTable,
    /// Whether all rows, keys and statistics are in place.
    pub complete: bool,
    /// Whether it stays after the run (`--keep-data`).
    pub kept: bool,
}

#[derive(Debug, Default)]
pub struct LoadProgress {
    stop: AtomicBool,
    /// The table that is loaded, and since when.
    current: Mutex<Option<(Loading, Instant)>>,
    done: Mutex<Vec<TableLoad>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Loading {
    /// The table; a workload table with its workload: `blocks of STO-RANDOM`.
    pub table: String,
    pub rows: u64,
    pub of: u64,
    /// Bytes of values loaded so far.
    pub bytes: u64,
    /// Time since the load of this table began, s.
    pub seconds: f64,
}

impl LoadProgress {
    /// Stops the load after the current transactions.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn now(&self) -> Option<Loading> {
        let (current, began) = lock(&self.current).clone()?;
        Some(Loading { seconds: began.elapsed().as_secs_f64(), ..current })
    }

    /// Tables loaded so far: those of the data set, and workload tables that are loaded as a whole.
    pub fn done(&self) -> Vec<TableLoad> {
        lock(&self.done).clone()
    }

    pub(crate) fn begin(&self, table: &str, missing: u64) {
        let current = Loading { table: table.to_owned(), rows: 0, of: missing, bytes: 0, seconds: 0.0 };
        *lock(&self.current) = Some((current, Instant::now()));
    }

    fn add(&self, rows: u64, bytes: u64) {
        if let Some((current, _)) = &mut *lock(&self.current) {
            current.rows += rows;
            current.bytes += bytes;
        }
    }

    pub(crate) fn end(&self, load: TableLoad) {
        *lock(&self.current) = None;
        lock(&self.done).push(load);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(crate) type Open<'o, 'a> = dyn Fn() -> Result<Loader<'a>, TargetError> + Sync + 'o;

#[derive(Clone, Copy)]
pub(crate) struct Ways<'o, 'a> {
    pub(crate) open: &'o Open<'o, 'a>,
    pub(crate) one_writer: bool,
    pub(crate) progress: &'o LoadProgress,
}

impl Ways<'_, '_> {
    /// Loads the `missing` rows of `table`, creates its keys, indexes and statistics, and reports progress under `name`.
    pub(crate) fn load(
        &self,
        work: &Work,
        table: &Table,
        (name, missing): (&str, &[Batch]),
        loader: &mut Loader<'_>,
        complete: Option<&str>,
    ) -> Result<(), TargetError> {
        let rows: u64 = missing.iter().map(Batch::len).sum();
        self.progress.begin(name, rows);
        let began = Instant::now();
        let loaders = self.add_all(work, table, missing, loader)?;
        let load_s = began.elapsed().as_secs_f64();
        loader.finish(work, table, complete)?;
        self.progress.end(TableLoad {
            table: name.to_owned(),
            arm: None,
            rows: table.total_rows(&work.params, 0),
            rows_loaded: rows,
            bytes_loaded: rows * table.value_bytes(&work.params),
            load_s,
            finish_s: began.elapsed().as_secs_f64() - load_s,
            loaders: loaders as u32,
            path: loader.session.path().to_owned(),
            fingerprint: format!("{:016x}", wanted(work, table).fingerprint),
            version: data::VERSION,
        });
        Ok(())
    }

    /// Loads all of `missing` and returns the number of loaders used.
    pub(crate) fn add_all(
        &self,
        work: &Work,
        table: &Table,
        missing: &[Batch],
        loader: &mut Loader<'_>,
    ) -> Result<usize, TargetError> {
        let Ways { open, one_writer, progress } = *self;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let max_loaders = if one_writer { 1 } else { cpus.min(MAX_LOADERS) };
        // Several portions per loader, so that all loaders end at about the same time.
        let rows: u64 = missing.iter().map(Batch::len).sum();
        let portion = ROWS_PER_TRANSACTION.min(rows / (4 * max_loaders as u64));
        let per_transaction = (portion / table.batch_rows(&work.params).max(1)).max(1) as usize;
        let portions: Vec<&[Batch]> = missing.chunks(per_transaction).collect();
        let loaders = max_loaders.min(portions.len()).max(1);
        let (next, opened) = (AtomicUsize::new(0), AtomicUsize::new(1));
        let row_bytes = table.value_bytes(&work.params);
        let work_off = |loader: &mut Loader<'_>| -> Result<(), TargetError> {
            while let Some(portion) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                if progress.stop.load(Ordering::Relaxed) {
                    return Err(TargetError::Local("loading was interrupted".into()));
                }
                loader.add(work, table, portion)?;
                let rows = portion.iter().map(Batch::len).sum::<u64>();
                progress.add(rows, rows * row_bytes);
            }
            Ok(())
        };
        // After a failure there is no next portion.
        let stop = |_: &TargetError| next.store(portions.len(), Ordering::Relaxed);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..loaders)
                .map(|i| {
                    let one = || {
                        let loader = match open() {
                            Ok(loader) => loader,
                            // No more sessions allowed: the other loaders do the work.
                            Err(TargetError::Refused(_) | TargetError::Unreachable(_)) => return Ok(()),
                            Err(e) => return Err(e),
                        };
                        opened.fetch_add(1, Ordering::Relaxed);
                        loader.closing(work_off)
                    };
                    std::thread::Builder::new()
                        .name(format!("loader {i}"))
                        .spawn_scoped(scope, move || one().inspect_err(stop))
                })
                .collect();
            let mut done = work_off(loader).inspect_err(stop);
            for other in others {
                // The thread could not be started: the other loaders do the work.
                let Ok(other) = other else { continue };
                let crashed = || TargetError::Local("a loader crashed: an internal error, please report it".into());
                done = done.and(other.join().unwrap_or_else(|_| Err(crashed())));
            }
            done
        })?;
        Ok(opened.into_inner())
    }
}

/// A session that loads tables: what differs between databases beside their [`Dialect`].
pub(crate) trait LoadSession: Send {
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, TargetError>;

    /// Executes a statement, and makes what it did durable unless a transaction is open.
    fn run(&mut self, sql: &str) -> Result<(), TargetError>;

    /// Executes a statement that creates, drops or locks a table.
    fn create(&mut self, sql: &str) -> Result<(), TargetError> {
        self.run(sql)
    }

    /// Creates the schema of loadline's tables, if they have one of their own.
    fn ensure(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError>;

    /// How rows are loaded: `COPY BINARY`.
    fn path(&self) -> &'static str;

    fn close(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

pub(crate) struct Loader<'a> {
    pub(crate) dialect: &'static Dialect,
    pub(crate) session: Box<dyn LoadSession + 'a>,
}

impl Loader<'_> {
    /// Calls `f`, and ends the session whatever it returns.
    pub(crate) fn closing<T>(mut self, f: impl FnOnce(&mut Self) -> Result<T, TargetError>) -> Result<T, TargetError> {
        let done = f(&mut self);
        let closed = self.session.close();
        done.and_then(|done| closed.map(|()| done))
    }

    pub(crate) fn value(&mut self, sql: &str) -> Result<Option<String>, TargetError> {
        Ok(self.session.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    /// Rows of a query; NULL becomes an empty text.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError> {
        let rows = self.session.rows(sql)?.into_iter();
        Ok(rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    }

    /// Tables in loadline's schema or with its prefix, and whether they are loadline's.
    pub(crate) fn tables(&mut self) -> Result<BTreeMap<String, bool>, TargetError> {
        let prefix = self.dialect.plain_name("");
        let rows = self.session.rows(&self.dialect.load.tables)?;
        let table = |row: Vec<Option<String>>| {
            let mut values = row.into_iter();
            let (name, comment) = (values.next()??, values.next());
            let ours = comment.is_none_or(|comment| comment.is_some_and(|comment| comment.starts_with(MARK)));
            name.starts_with(&prefix).then_some((name, ours))
        };
        Ok(rows.into_iter().filter_map(table).collect())
    }

    /// Whether loadline's table of this name (without the target's prefix) exists.
    pub(crate) fn exists(&mut self, stem: &str) -> Result<bool, TargetError> {
        Ok(self.tables()?.get(&self.dialect.plain_name(stem)) == Some(&true))
    }

    /// Drops those of loadline's tables that are `wanted`, and returns their names.
    pub(crate) fn drop_tables(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, TargetError> {
        let ours = self.tables()?.into_iter().filter(|(_, ours)| *ours).map(|(name, _)| name);
        let names: Vec<String> = ours.filter(|name| wanted(name)).collect();
        names.iter().try_for_each(|name| self.drop_table(name))?;
        Ok(names)
    }

    pub(crate) fn drop_table(&mut self, name: &str) -> Result<(), TargetError> {
        self.session.create(&fill(&self.dialect.load.drop, &[("name", &self.dialect.qualified(name))]))
    }

    pub(crate) fn drop_data_set(&mut self) -> Result<(), TargetError> {
        let begin = self.dialect.plain_name("data_");
        self.drop_tables(|name| name.starts_with(&begin)).map(drop)
    }

    fn record(&self) -> String {
        self.dialect.full_name(RECORD)
    }

    fn make_record(&mut self) -> Result<(), TargetError> {
        self.session.ensure()?;
        let (name, mark) = (self.record(), mark());
        let texts = self.dialect.load.record.iter();
        texts.map(|text| fill(text, &[("name", &name), ("mark", &mark)])).try_for_each(|sql| self.session.create(&sql))
    }

    /// Drops `table` if it exists and is loadline's ([`TargetError::Refused`] if not), and creates it empty, without keys and indexes
    /// that are faster to create after loading.
    pub(crate) fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError> {
        let (dialect, mut statements) = (self.dialect, Vec::new());
        let plain = dialect.plain_name(&table_stem(work, &table.name));
        if !dialect.load.drop_existing.is_empty() {
            statements = dialect.for_table(&dialect.load.drop_existing, work, table);
        } else if let Some(ours) = self.tables()?.get(&plain) {
            if !ours {
                return Err(not_ours(&plain));
            }
            self.drop_table(&plain)?;
        }
        statements.extend(dialect.create(work, table));
        if dialect.load.one_message {
            return self.session.create(&statements.join("; "));
        }
        statements.iter().try_for_each(|sql| self.session.create(sql))
    }

    fn key(&self, table: &Table) -> String {
        self.dialect.quoted(table.columns.first().map_or("id", |c| &c.name))
    }

    /// Counts the existing rows of each batch, by batch number.
    pub(crate) fn counted(&mut self, work: &Work, table: &Table) -> Result<BTreeMap<u64, u64>, TargetError> {
        let (name, key) = (self.dialect.table_name(work, &table.name), self.key(table));
        let size = table.batch_rows(&work.params).to_string();
        let parts = [("name", name.as_str()), ("key", &key), ("size", &size)];
        let rows = self.rows(&fill(&self.dialect.load.batches, &parts))?;
        let number = |value: &String| value.parse().ok();
        Ok(rows.iter().filter_map(|row| Some((number(row.first()?)?, number(row.get(1)?)?))).collect())
    }

    /// Adds the rows of whole batches, in one transaction.
    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        if self.dialect.load.transactions {
            self.session.run("BEGIN")?;
        }
        let added = self.session.insert(work, table, batches).and_then(|()| self.session.run("COMMIT"));
        if added.as_ref().is_err_and(|e| !e.is_lost()) {
            // Some databases have rolled back by themselves, as SQLite on a full disk: the first error is the cause.
            let _ = self.session.run("ROLLBACK");
        }
        added
    }

    /// Deletes the rows with these keys, in its own transaction.
    pub(crate) fn remove(&mut self, work: &Work, table: &Table, keys: &Range<i64>) -> Result<(), TargetError> {
        let (name, key) = (self.dialect.table_name(work, &table.name), self.key(table));
        self.session.run(&format!("DELETE FROM {name} WHERE {key} BETWEEN {} AND {}", keys.start, keys.end - 1))
    }

    /// Whether the keys and indexes that [`Loader::finish`] creates exist.
    pub(crate) fn is_finished(&mut self, work: &Work, table: &Table) -> Result<bool, TargetError> {
        let Dialect { load, .. } = self.dialect;
        let Some(sql) = self.dialect.for_table(&load.keys, work, table).pop().filter(|sql| !sql.is_empty()) else {
            return Ok(true);
        };
        let key = table.primary_key().is_some() && load.counts_primary_key;
        let existing = self.value(&sql)?.and_then(|n| n.parse::<usize>().ok());
        Ok(existing.is_some_and(|n| n >= table.indexes.len() + usize::from(key)))
    }

    /// Creates missing keys and indexes, updates the statistics, then executes `complete`.
    pub(crate) fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError> {
        let Dialect { load, .. } = self.dialect;
        let mut later = self.dialect.later(work, table);
        if !later.is_empty() && self.is_finished(work, table)? {
            later.clear();
        }
        let texts = if table.is_whole() { &load.finish_whole } else { &load.finish };
        let mut statements = Vec::new();
        for text in texts {
            match text.as_str() {
                "{later}" => statements.append(&mut later),
                "{complete}" => statements.extend(complete.map(str::to_owned)),
                text => statements.extend(self.dialect.for_table(text, work, table)),
            }
        }
        if load.one_message && !statements.is_empty() {
            return self.session.run(&statements.join("; "));
        }
        statements.iter().try_for_each(|sql| self.session.run(sql))
    }

    /// Stored size of a table of the workload, bytes.
    pub(crate) fn size(&mut self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let (name, plain) = (self.dialect.table_name(work, table), self.dialect.plain_name(&table_stem(work, table)));
        let parts = [("name", name.as_str()), ("plain", &plain)];
        let mut size = None;
        for text in &self.dialect.load.size {
            size = self.value(&fill(text, &parts))?;
        }
        Ok(size.and_then(|bytes| bytes.trim().parse().ok()))
    }
}

pub(crate) fn not_ours(table: &str) -> TargetError {
    TargetError::Refused(format!(
        "there is a table '{table}' that loadline did not create (its comment does not say so), and it is left untouched: rename it, \
         or connect as another user"
    ))
}

/// Expression of a column's value as [`Loader::rows`] reads it: numbers, and bytes in hexadecimal.
pub(crate) fn as_text(dialect: &Dialect, column: &ColumnDef) -> String {
    let name = dialect.quoted(&column.name);
    if column.logical == LogicalType::Bytes { fill(&dialect.load.hex, &[("bytes", &name)]) } else { name }
}

pub(crate) fn found(loader: &mut Loader<'_>) -> Result<Vec<FoundTable>, TargetError> {
    if !loader.exists(RECORD)? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT name, version, seed, compressibility, data_rows, fingerprint, complete, kept FROM {} ORDER BY name",
        loader.record()
    );
    let rows = loader.rows(&sql)?;
    let read = |row: &Vec<String>| {
        let [name, version, seed, payload, rows, fingerprint, complete, kept] = row.as_slice() else {
            return None;
        };
        let holds = DataTable {
            table: name.clone(),
            version: version.parse().ok()?,
            seed: seed.parse().ok()?,
            payload: payload.clone(),
            rows: rows.parse().ok()?,
            fingerprint: u64::from_str_radix(fingerprint, 16).ok()?,
        };
        Some(FoundTable { holds, complete: complete == "1", kept: kept == "1" })
    };
    let unreadable = || {
        let names = rows.iter().filter_map(|r| r.first().cloned()).collect::<Vec<_>>().join(", ");
        TargetError::Refused(format!(
            "loadline's table '{RECORD}', which records the content of the data set ({names}), cannot be read: drop it, \
             or run `loadline clean`"
        ))
    };
    rows.iter().map(read).collect::<Option<Vec<_>>>().ok_or_else(unreadable)
}

/// Tables that stay after a run, and the record table: names without the target's prefix. With `keep`, all existing
/// tables of the data set stay from now on.
pub(crate) fn kept(loader: &mut Loader<'_>, keep: bool) -> Result<BTreeSet<String>, TargetError> {
    let record = loader.record();
    if keep && loader.exists(RECORD)? {
        loader.session.run(&format!("UPDATE {record} SET kept = 1"))?;
    }
    let found = found(loader)?;
    let mut kept: BTreeSet<String> =
        found.iter().filter(|t| t.kept).map(|t| format!("data_{}", t.holds.table)).collect();
    if !kept.is_empty() {
        kept.insert(RECORD.to_owned());
        loader.session.run(&format!("DELETE FROM {record} WHERE kept = 0"))?;
    }
    Ok(kept)
}

pub(crate) fn load(work: &Work, table: &Table, loader: &mut Loader<'_>, ways: Ways<'_, '_>) -> Result<(), TargetError> {
    let stem = format!("data_{}", table.name);
    let total = table.total_rows(&work.params, 0);
    let recorded = found(loader)?.into_iter().find(|t| t.holds.table == table.name);
    let exists = loader.exists(&stem)?;
    let same = |t: &FoundTable| {
        let h = &t.holds;
        h.version == data::VERSION && (h.seed, h.rows) == (work.seed, total) && h.payload == work.payload.to_string()
    };
    match &recorded {
        Some(t) if exists && t.complete && same(t) => return Ok(()),
        Some(t) if exists && !same(t) => return Err(other_data(&t.holds, &wanted(work, table))),
        _ => {}
    }
    let record = loader.record();
    let mut missing = batches(work, table, 0);
    if recorded.is_some() && exists {
        let counted = loader.counted(work, table)?;
        missing.retain(|b| counted.get(&b.number) != Some(&b.len()));
    } else {
        if !loader.exists(RECORD)? {
            loader.make_record()?;
        }
        loader.session.run(&format!("DELETE FROM {record} WHERE name = '{}'", table.name))?;
        loader.make(work, table)?;
        let DataTable { table: name, version, seed, payload, rows, fingerprint } = wanted(work, table);
        loader.session.run(&format!(
            "INSERT INTO {record} (name, version, seed, compressibility, data_rows, fingerprint, complete, kept) \
             VALUES ('{name}', {version}, '{seed}', '{payload}', {rows}, '{fingerprint:016x}', 0, 0)"
        ))?;
    }
    let complete = format!("UPDATE {record} SET complete = 1 WHERE name = '{}'", table.name);
    ways.load(work, table, (&table.name, &missing), loader, Some(&complete))
}

fn wanted(work: &Work, table: &Table) -> DataTable {
    DataTable::wanted(table, &work.params, work.seed, work.payload)
}

/// The error for existing data that differ from the wanted data; they are not touched.
pub fn other_data(existing: &DataTable, wanted: &DataTable) -> TargetError {
    TargetError::Refused(format!(
        "other data are in place: {existing}; wanted: {wanted}. Give the --seed and --size of the existing data, or \
         load again with --reload, or remove them with `loadline clean`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loading::batches;

    struct NullSession;

    impl LoadSession for NullSession {
        fn rows(&mut self, _: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
            Ok(Vec::new())
        }
        fn run(&mut self, _: &str) -> Result<(), TargetError> {
            Ok(())
        }
        fn insert(&mut self, _: &Work, _: &Table, _: &[Batch]) -> Result<(), TargetError> {
            // Gives the other loaders time to start.
            std::thread::sleep(std::time::Duration::from_millis(10));
            Ok(())
        }
        fn path(&self) -> &'static str {
            "nowhere"
        }
    }

    #[test]
    fn refused_loaders_are_not_counted() {
        let work = Work::from_catalogue("SRV-QUERY1", &[]).unwrap();
        let table = work.workload.tables.iter().find(|t| t.name == "lookup").unwrap();
        let missing = batches(&work, table, 0);
        let dialect: &'static Dialect = Box::leak(Box::<Dialect>::default());
        let null = || Loader { dialect, session: Box::new(NullSession) };
        let load = |open: &Open<'_, '_>| {
            let progress = LoadProgress::default();
            progress.begin("lookup", 100_000);
            let ways = Ways { open, one_writer: false, progress: &progress };
            let loaders = ways.add_all(&work, table, &missing, &mut null()).unwrap();
            let rows = progress.now().map(|now| now.rows);
            assert_eq!(rows, Some(100_000), "all rows, whatever the number of loaders");
            loaders
        };
        assert_eq!(load(&|| Err(TargetError::Refused("too many clients".into()))), 1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(load(&|| Ok(null())), cpus.min(MAX_LOADERS));
    }
}
