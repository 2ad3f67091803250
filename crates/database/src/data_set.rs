//! The data set on a target: finds what is loaded and loads the missing rows in parallel.
//!
//! A small table beside the data (the record) says what each table holds (version of the data, seed,
//! compressibility, rows, fingerprint) and whether it is complete, so rows are not counted before a test. Each
//! transaction loads whole batches. An interrupted load is resumed: the existing batches are counted once, and the
//! others are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use loadline_model::manifest::TableLoad;
use loadline_workload::{ColumnDef, LogicalType, Params, Scope, Table, data};

use crate::error::TargetError;
use crate::loading::{Batch, batches};
use crate::work::Work;

/// Name of the record table, without the target's prefix.
pub(crate) const RECORD: &str = "data_set";
/// Approximate rows per loading transaction.
const ROWS_PER_TRANSACTION: u64 = 65_536;
/// Upper limit of loaders; below it there is one per CPU.
const MAX_LOADERS: usize = 16;

/// What a table of the data set holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataTable {
    /// Name in the data set.
    pub table: String,
    /// Version of the data.
    pub version: u32,
    /// Seed of all random values.
    pub seed: u64,
    /// Share of the payload that compresses away, as text.
    pub compressibility: String,
    /// Number of rows.
    pub rows: u64,
    /// Fingerprint of the rows.
    pub fingerprint: u64,
}

impl DataTable {
    /// What `table` must hold.
    #[must_use]
    pub fn wanted(table: &Table, params: &Params, seed: u64, compressibility: f64) -> DataTable {
        DataTable {
            table: table.name.clone(),
            version: data::VERSION,
            seed,
            compressibility: compressibility.to_string(),
            rows: table.total_rows(params, 0),
            fingerprint: data::fingerprint(table, params, seed, compressibility),
        }
    }
}

impl std::fmt::Display for DataTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DataTable { table, version, seed, compressibility, rows, .. } = self;
        write!(f, "{table}: {rows} rows, seed {seed}, version {version}")?;
        if compressibility == "0" { Ok(()) } else { write!(f, ", compressibility {compressibility}") }
    }
}

/// A table of the data set that exists on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// What it holds, or will hold when it is complete.
    pub holds: DataTable,
    /// Whether all rows, keys and statistics are in place.
    pub complete: bool,
    /// Whether it stays after the run (`--keep-data`).
    pub kept: bool,
}

/// Progress of a load: written by the loaders, read by the display.
#[derive(Debug, Default)]
pub struct LoadProgress {
    stop: AtomicBool,
    rows: AtomicU64,
    bytes: AtomicU64,
    current: Mutex<Option<CurrentTable>>,
    done: Mutex<Vec<TableLoad>>,
}

#[derive(Debug, Clone)]
struct CurrentTable {
    table: String,
    missing: u64,
    began: Instant,
}

/// What is being loaded now.
#[derive(Debug, Clone, PartialEq)]
pub struct Loading {
    /// The table; a workload table with its workload: `blocks of STO-RANDOM`.
    pub table: String,
    /// Rows loaded so far.
    pub rows: u64,
    /// Rows to load.
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

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What is being loaded now.
    #[must_use]
    pub fn now(&self) -> Option<Loading> {
        let current = lock(&self.current).clone()?;
        Some(Loading {
            table: current.table,
            rows: self.rows.load(Ordering::Relaxed),
            of: current.missing,
            bytes: self.bytes.load(Ordering::Relaxed),
            seconds: current.began.elapsed().as_secs_f64(),
        })
    }

    /// Tables loaded so far: those of the data set, and workload tables that are loaded as a whole.
    #[must_use]
    pub fn done(&self) -> Vec<TableLoad> {
        lock(&self.done).clone()
    }

    pub(crate) fn begin(&self, table: &str, missing: u64) {
        self.rows.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        *lock(&self.current) = Some(CurrentTable { table: table.to_owned(), missing, began: Instant::now() });
    }

    fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, load: TableLoad) {
        *lock(&self.current) = None;
        lock(&self.done).push(load);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Opens another loader.
pub(crate) type Open<'o, 'a> = dyn Fn() -> Result<Box<dyn Loader + 'a>, TargetError> + Sync + 'o;

/// How tables are loaded.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'o, 'a> {
    pub(crate) open: &'o Open<'o, 'a>,
    /// Whether only one session can write at a time.
    pub(crate) one_writer: bool,
    pub(crate) progress: &'o LoadProgress,
}

impl<'a> Ways<'_, 'a> {
    /// Opens one loader, calls `each` with it for all of `tables`, and closes it.
    pub(crate) fn with_each<'t>(
        &self,
        mut tables: impl Iterator<Item = &'t Table>,
        each: impl Fn(&'t Table, &mut (dyn Loader + 'a)) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        let mut loader = (self.open)()?;
        let done = tables.try_for_each(|table| each(table, loader.as_mut()));
        let closed = loader.close();
        done.and(closed)
    }

    /// Loads the `missing` rows of `table`, creates its keys, indexes and statistics, and reports progress under `name`.
    pub(crate) fn load(
        &self,
        work: &Work,
        table: &Table,
        (name, missing): (&str, &[Batch]),
        loader: &mut (dyn Loader + 'a),
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
            path: loader.path().to_owned(),
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
        loader: &mut (dyn Loader + 'a),
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
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let opened = AtomicUsize::new(1);
        let row_bytes = table.value_bytes(&work.params);
        let work_off = |loader: &mut (dyn Loader + 'a)| -> Result<(), TargetError> {
            while let Some(portion) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                if progress.stopped() {
                    return Err(TargetError::Local("loading was interrupted".into()));
                }
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                loader.add(work, table, portion)?;
                let rows = portion.iter().map(Batch::len).sum::<u64>();
                progress.add(rows, rows * row_bytes);
            }
            Ok(())
        };
        let note_failure = |done: Result<(), TargetError>| {
            if done.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..loaders)
                .map(|i| {
                    let one = || {
                        let mut loader = match open() {
                            Ok(loader) => loader,
                            // No more sessions allowed: the other loaders do the work.
                            Err(TargetError::Refused(_) | TargetError::Unreachable(_)) => return Ok(()),
                            Err(e) => return Err(e),
                        };
                        opened.fetch_add(1, Ordering::Relaxed);
                        let done = work_off(loader.as_mut());
                        let closed = loader.close();
                        done.and(closed)
                    };
                    std::thread::Builder::new()
                        .name(format!("loader {i}"))
                        .spawn_scoped(scope, move || note_failure(one()))
                })
                .collect();
            let mut done = note_failure(work_off(loader));
            for other in others {
                // The thread could not be started: the other loaders do the work.
                let Ok(other) = other else { continue };
                let defect = || {
                    Err(TargetError::Local("a loader thread panicked, a defect of loadline: please report it".into()))
                };
                done = done.and(other.join().unwrap_or_else(|_| defect()));
            }
            done
        })?;
        Ok(opened.into_inner())
    }
}

/// A session that loads tables: the part that differs between databases.
pub(crate) trait Loader: Send {
    /// Full name of the record table.
    fn record(&self) -> String;

    /// Full name of `table`.
    fn table_name(&self, work: &Work, table: &Table) -> String;

    /// A name of a column as a statement takes it.
    fn quoted(&self, name: &str) -> String;

    /// Expression of bytes in hexadecimal.
    fn hex(&self, bytes: &str) -> String;

    /// Expression of a column's value as [`Loader::rows`] reads it: numbers, and bytes in hexadecimal.
    fn as_text(&self, column: &ColumnDef) -> String {
        let name = self.quoted(&column.name);
        if column.logical == LogicalType::Bytes { self.hex(&name) } else { name }
    }

    /// The column with the key of `table`.
    fn key(&self, table: &Table) -> String {
        self.quoted(table.columns.first().map_or("id", |c| &c.name))
    }

    /// Rows of a query as text; NULL becomes an empty text.
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError>;

    /// Executes a statement and makes it durable.
    fn run(&mut self, sql: &str) -> Result<(), TargetError>;

    /// Whether loadline's table of this name (without the target's prefix) exists.
    fn exists(&mut self, stem: &str) -> Result<bool, TargetError>;

    /// Creates the record table.
    fn make_record(&mut self) -> Result<(), TargetError>;

    /// Drops `table` if it exists and creates it empty, without keys and indexes that are faster to create after
    /// loading.
    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError>;

    /// The query of the numbers of batches (`key` divided by `size`) and of their rows in the table `name`.
    fn count_batches(&self, name: &str, key: &str, size: u64) -> String;

    /// Counts the existing rows of each batch, by batch number.
    fn counted(&mut self, work: &Work, table: &Table) -> Result<BTreeMap<u64, u64>, TargetError> {
        let (name, key) = (self.table_name(work, table), self.key(table));
        let rows = self.rows(&self.count_batches(&name, &key, table.batch_rows(&work.params)))?;
        let number = |value: &String| value.parse().ok();
        Ok(rows.iter().filter_map(|row| Some((number(row.first()?)?, number(row.get(1)?)?))).collect())
    }

    /// Adds the rows of whole batches, in one transaction.
    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError>;

    /// Deletes the rows with these keys, in its own transaction.
    fn remove(&mut self, work: &Work, table: &Table, keys: &Range<i64>) -> Result<(), TargetError> {
        let (name, key) = (self.table_name(work, table), self.key(table));
        self.run(&format!("DELETE FROM {name} WHERE {key} BETWEEN {} AND {}", keys.start, keys.end - 1))
    }

    /// Drops all tables of the data set.
    fn drop_data_set(&mut self) -> Result<(), TargetError>;

    /// Whether the keys and indexes that [`Loader::finish`] creates exist.
    fn is_finished(&mut self, _work: &Work, _table: &Table) -> Result<bool, TargetError> {
        Ok(true)
    }

    /// Creates missing keys and indexes, updates the statistics, then executes `complete`: in one transaction if the
    /// database can. `complete` never runs if an earlier step failed.
    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError>;

    /// How rows are loaded: `COPY BINARY`.
    fn path(&self) -> &'static str;

    /// Ends the session.
    fn close(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Tables of the data set on the target.
pub(crate) fn found(loader: &mut dyn Loader) -> Result<Vec<FoundTable>, TargetError> {
    if !loader.exists(RECORD)? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT name, version, seed, compressibility, data_rows, fingerprint, complete, kept FROM {} ORDER BY name",
        loader.record()
    );
    let rows = loader.rows(&sql)?;
    let read = |row: &Vec<String>| {
        let [name, version, seed, compressibility, rows, fingerprint, complete, kept] = row.as_slice() else {
            return None;
        };
        let holds = DataTable {
            table: name.clone(),
            version: version.parse().ok()?,
            seed: seed.parse().ok()?,
            compressibility: compressibility.clone(),
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
pub(crate) fn kept(loader: &mut dyn Loader, keep: bool) -> Result<BTreeSet<String>, TargetError> {
    if keep && loader.exists(RECORD)? {
        loader.run(&format!("UPDATE {} SET kept = 1", loader.record()))?;
    }
    let found = found(loader)?;
    let mut kept: BTreeSet<String> =
        found.iter().filter(|t| t.kept).map(|t| format!("data_{}", t.holds.table)).collect();
    if !kept.is_empty() {
        kept.insert(RECORD.to_owned());
        let record = loader.record();
        loader.run(&format!("DELETE FROM {record} WHERE kept = 0"))?;
    }
    Ok(kept)
}

/// Loads the missing rows of the data set's tables that `work` reads.
pub(crate) fn load(work: &Work, ways: Ways<'_, '_>) -> Result<(), TargetError> {
    let mut tables = work.workload.tables.iter().filter(|t| t.scope == Scope::DataSet).peekable();
    if tables.peek().is_none() {
        return Ok(());
    }
    ways.with_each(tables, |table, loader| load_table(work, table, loader, ways))
}

fn load_table<'a>(
    work: &Work,
    table: &Table,
    loader: &mut (dyn Loader + 'a),
    ways: Ways<'_, 'a>,
) -> Result<(), TargetError> {
    let stem = format!("data_{}", table.name);
    let total = table.total_rows(&work.params, 0);
    let recorded = found(loader)?.into_iter().find(|t| t.holds.table == table.name);
    let exists = loader.exists(&stem)?;
    let same = |t: &FoundTable| {
        let h = &t.holds;
        h.version == data::VERSION
            && (h.seed, h.rows) == (work.seed, total)
            && h.compressibility == work.compressibility.to_string()
    };
    match recorded.as_ref().filter(|_| exists) {
        Some(t) if t.complete && same(t) => return Ok(()),
        Some(t) if !same(t) => return Err(other_data(&t.holds, &wanted(work, table))),
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
        loader.run(&format!("DELETE FROM {record} WHERE name = '{}'", table.name))?;
        loader.make(work, table)?;
        let DataTable { table: name, version, seed, compressibility, rows, fingerprint } = wanted(work, table);
        loader.run(&format!(
            "INSERT INTO {record} (name, version, seed, compressibility, data_rows, fingerprint, complete, kept) \
             VALUES ('{name}', {version}, '{seed}', '{compressibility}', {rows}, '{fingerprint:016x}', 0, 0)"
        ))?;
    }
    let complete = format!("UPDATE {record} SET complete = 1 WHERE name = '{}'", table.name);
    ways.load(work, table, (&table.name, &missing), loader, Some(&complete))
}

fn wanted(work: &Work, table: &Table) -> DataTable {
    DataTable::wanted(table, &work.params, work.seed, work.compressibility)
}

/// The error for existing data that differ from the wanted data; they are not touched.
#[must_use]
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

    /// A loader that stores nothing.
    struct NullLoader;

    impl Loader for NullLoader {
        fn record(&self) -> String {
            String::new()
        }
        fn table_name(&self, _: &Work, _: &Table) -> String {
            String::new()
        }
        fn quoted(&self, _: &str) -> String {
            String::new()
        }
        fn hex(&self, _: &str) -> String {
            String::new()
        }
        fn rows(&mut self, _: &str) -> Result<Vec<Vec<String>>, TargetError> {
            Ok(Vec::new())
        }
        fn run(&mut self, _: &str) -> Result<(), TargetError> {
            Ok(())
        }
        fn exists(&mut self, _: &str) -> Result<bool, TargetError> {
            Ok(true)
        }
        fn make_record(&mut self) -> Result<(), TargetError> {
            Ok(())
        }
        fn make(&mut self, _: &Work, _: &Table) -> Result<(), TargetError> {
            Ok(())
        }
        fn count_batches(&self, _: &str, _: &str, _: u64) -> String {
            String::new()
        }
        fn add(&mut self, _: &Work, _: &Table, _: &[Batch]) -> Result<(), TargetError> {
            // Gives the other loaders time to start.
            std::thread::sleep(std::time::Duration::from_millis(10));
            Ok(())
        }
        fn drop_data_set(&mut self) -> Result<(), TargetError> {
            Ok(())
        }
        fn finish(&mut self, _: &Work, _: &Table, _: Option<&str>) -> Result<(), TargetError> {
            Ok(())
        }
        fn path(&self) -> &'static str {
            "nowhere"
        }
    }

    #[test]
    fn refused_loaders_are_not_counted() {
        let work = Work::of("SRV-QUERY1", &[]).unwrap();
        let table = work.workload.tables.iter().find(|t| t.name == "lookup").unwrap();
        let missing = batches(&work, table, 0);
        let load = |open: &Open<'_, '_>| {
            let progress = LoadProgress::default();
            let ways = Ways { open, one_writer: false, progress: &progress };
            let loaders = ways.add_all(&work, table, &missing, &mut NullLoader).unwrap();
            assert_eq!(progress.rows.load(Ordering::Relaxed), 100_000, "all rows, whatever the number of loaders");
            loaders
        };
        assert_eq!(load(&|| Err(TargetError::Refused("too many clients".into()))), 1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(load(&|| Ok(Box::new(NullLoader))), cpus.min(MAX_LOADERS));
    }
}
