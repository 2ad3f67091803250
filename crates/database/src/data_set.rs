//! The data set on a target: what is there, and loading what is missing, in parallel.
//!
//! A small table beside the data says what each table holds (version of the data, seed, compressibility,
//! rows, fingerprint) and whether it is complete, so that nothing is counted before a test. Rows are loaded
//! in transactions of whole batches; a load that was cut off is gone on with: the batches that are there are
//! counted once, and the others are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use loadline_model::manifest::TableLoad;
use loadline_workload::{Params, Scope, Table, data};

use crate::error::TargetError;
use crate::loading::{Batch, batches};
use crate::work::Work;

/// Name of the table that says what is there, before the target's own prefix.
pub(crate) const RECORD: &str = "data_set";
/// Rows that are loaded in one transaction, about.
const ROWS_PER_TRANSACTION: u64 = 65_536;
/// Most loaders, however many CPUs there are.
const MOST_LOADERS: usize = 16;

/// What a table of the data set holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataTable {
    /// Its name in the data set.
    pub table: String,
    /// Version of the data.
    pub version: u32,
    /// Seed.
    pub seed: u64,
    /// Share of the payload that compresses away, as text.
    pub compressibility: String,
    /// Rows.
    pub rows: u64,
    /// Fingerprint of the rows.
    pub fingerprint: u64,
}

impl DataTable {
    /// What `table` must hold.
    #[must_use]
    pub fn wanted(table: &Table, params: &Params, seed: u64, compressibility: f64) -> DataTable {
        DataTable {
            table: table.name.to_owned(),
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

/// A table of the data set as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTable {
    /// What it holds, or will when it is complete.
    pub holds: DataTable,
    /// Whether all of it is there.
    pub complete: bool,
    /// Whether it stays after the run (`--keep-data`).
    pub kept: bool,
}

/// How far a load is: written by the loaders, read by whoever shows it.
#[derive(Debug, Default)]
pub struct LoadProgress {
    stop: AtomicBool,
    rows: AtomicU64,
    bytes: AtomicU64,
    now: Mutex<Option<Now>>,
    done: Mutex<Vec<TableLoad>>,
}

#[derive(Debug, Clone)]
struct Now {
    table: String,
    missing: u64,
    began: Instant,
}

/// What is being loaded at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Loading {
    /// The table; one of a workload's own with the workload's code: `blocks of STO-RANDOM`.
    pub table: String,
    /// Rows loaded so far.
    pub rows: u64,
    /// Rows that were missing.
    pub of: u64,
    /// Bytes of values loaded so far.
    pub bytes: u64,
    /// Since when, s.
    pub seconds: f64,
}

impl LoadProgress {
    /// Ends the load after the transactions under way.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What is being loaded now.
    #[must_use]
    pub fn now(&self) -> Option<Loading> {
        let now = lock(&self.now).clone()?;
        Some(Loading {
            table: now.table,
            rows: self.rows.load(Ordering::Relaxed),
            of: now.missing,
            bytes: self.bytes.load(Ordering::Relaxed),
            seconds: now.began.elapsed().as_secs_f64(),
        })
    }

    /// Tables that have been loaded: those of the data set, and whole ones of the workload's own.
    #[must_use]
    pub fn done(&self) -> Vec<TableLoad> {
        lock(&self.done).clone()
    }

    pub(crate) fn begin(&self, table: &str, missing: u64) {
        self.rows.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        *lock(&self.now) = Some(Now { table: table.to_owned(), missing, began: Instant::now() });
    }

    fn add(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, load: TableLoad) {
        *lock(&self.now) = None;
        lock(&self.done).push(load);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Opens another session that loads.
pub(crate) type Open<'o, 'a> = dyn Fn() -> Result<Box<dyn Loader + 'a>, TargetError> + Sync + 'o;

/// How tables are loaded.
#[derive(Clone, Copy)]
pub(crate) struct Ways<'o, 'a> {
    pub(crate) open: &'o Open<'o, 'a>,
    /// Whether the database has room for one session that writes.
    pub(crate) one_writer: bool,
    pub(crate) progress: &'o LoadProgress,
}

impl<'a> Ways<'_, 'a> {
    /// Has one session do `each` with all of `tables`, and ends it in order.
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

    /// Loads the rows `missing` of `table`, makes what is made of them then, and tells of it under `name`.
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

    /// Loads all of `missing` and returns how many loaders did it.
    pub(crate) fn add_all(
        &self,
        work: &Work,
        table: &Table,
        missing: &[Batch],
        loader: &mut (dyn Loader + 'a),
    ) -> Result<usize, TargetError> {
        let Ways { open, one_writer, progress } = *self;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let most = if one_writer { 1 } else { cpus.min(MOST_LOADERS) };
        // Some portions for each loader, so that they end at about the same time.
        let rows: u64 = missing.iter().map(Batch::len).sum();
        let portion = ROWS_PER_TRANSACTION.min(rows / (4 * most as u64));
        let per_transaction = (portion / table.batch_rows(&work.params).max(1)).max(1) as usize;
        let portions: Vec<&[Batch]> = missing.chunks(per_transaction).collect();
        let loaders = most.min(portions.len()).max(1);
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let opened = AtomicUsize::new(1);
        let row_bytes = table.value_bytes(&work.params);
        let take = |loader: &mut (dyn Loader + 'a)| -> Result<(), TargetError> {
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
        let watched = |done: Result<(), TargetError>| {
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
                            // No room for another session: the others load its share.
                            Err(TargetError::Refused(_) | TargetError::Unreachable(_)) => return Ok(()),
                            Err(e) => return Err(e),
                        };
                        opened.fetch_add(1, Ordering::Relaxed);
                        let done = take(loader.as_mut());
                        let closed = loader.close();
                        done.and(closed)
                    };
                    std::thread::Builder::new().name(format!("loader {i}")).spawn_scoped(scope, move || watched(one()))
                })
                .collect();
            let mut done = watched(take(loader));
            for other in others {
                // A thread that could not be had leaves its share to the others.
                let Ok(other) = other else { continue };
                let defect =
                    || Err(TargetError::Local("a loader ended by a defect of loadline: please report it".into()));
                done = done.and(other.join().unwrap_or_else(|_| defect()));
            }
            done
        })?;
        Ok(opened.into_inner())
    }
}

/// A session that loads: what is different in each database.
pub(crate) trait Loader: Send {
    /// Full name of the table that says what is there.
    fn record(&self) -> String;

    /// Rows of a query as text; NULL is empty.
    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, TargetError>;

    /// Executes a statement and makes it durable.
    fn run(&mut self, sql: &str) -> Result<(), TargetError>;

    /// Whether there is a table of this name (before the target's prefix), one of loadline's.
    fn exists(&mut self, stem: &str) -> Result<bool, TargetError>;

    /// Makes the table that says what is there.
    fn make_record(&mut self) -> Result<(), TargetError>;

    /// Drops `table` if it is there and makes it empty, without what is better made after loading.
    fn make(&mut self, work: &Work, table: &Table) -> Result<(), TargetError>;

    /// Rows by number of batch.
    fn counted(&mut self, work: &Work, table: &Table) -> Result<BTreeMap<u64, u64>, TargetError>;

    /// Adds the rows of whole batches, in one transaction.
    fn add(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError>;

    /// Removes the rows with these keys, in a transaction of its own.
    fn remove(&mut self, work: &Work, table: &Table, keys: &Range<i64>) -> Result<(), TargetError>;

    /// Whether what [`Loader::finish`] makes of the table is there, beside its statistics.
    fn is_finished(&mut self, _work: &Work, _table: &Table) -> Result<bool, TargetError> {
        Ok(true)
    }

    /// Makes keys and indexes where they are not there yet, brings the statistics up to date and then executes
    /// `complete`: all of it or nothing where the database can, and `complete` never without the rest.
    fn finish(&mut self, work: &Work, table: &Table, complete: Option<&str>) -> Result<(), TargetError>;

    /// By which path rows come in: `COPY BINARY`.
    fn path(&self) -> &'static str;

    /// Ends the session in order.
    fn close(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
}

/// What there is, read with `loader`.
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
    let odd =
        || TargetError::Refused(format!("{} cannot be read: drop it, or run `loadline clean`", loader_name(&rows)));
    rows.iter().map(read).collect::<Option<Vec<_>>>().ok_or_else(odd)
}

fn loader_name(rows: &[Vec<String>]) -> String {
    let names = rows.iter().filter_map(|r| r.first().cloned()).collect::<Vec<_>>().join(", ");
    format!("the table «{RECORD}» of loadline's, which says what the data set holds ({names}),")
}

/// Tables that stay after a run, with the record of them: names before the target's prefix. From now on all that
/// are there stay if `keep`.
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

/// Loads what is missing of the tables of the data set that `work` reads.
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
    let there = found(loader)?.into_iter().find(|t| t.holds.table == table.name);
    let exists = loader.exists(&stem)?;
    let same = |t: &FoundTable| {
        let h = &t.holds;
        h.version == data::VERSION
            && (h.seed, h.rows) == (work.seed, total)
            && h.compressibility == work.compressibility.to_string()
    };
    match there.as_ref().filter(|_| exists) {
        Some(t) if t.complete && same(t) => return Ok(()),
        Some(t) if !same(t) => return Err(other_data(&t.holds, &wanted(work, table))),
        _ => {}
    }
    let record = loader.record();
    let mut missing = batches(work, table, &[]);
    if there.is_some() && exists {
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
    ways.load(work, table, (table.name, &missing), loader, Some(&complete))
}

fn wanted(work: &Work, table: &Table) -> DataTable {
    DataTable::wanted(table, &work.params, work.seed, work.compressibility)
}

/// Why data are not touched that are not those asked for.
#[must_use]
pub fn other_data(there: &DataTable, wanted: &DataTable) -> TargetError {
    TargetError::Refused(format!(
        "other data are in place: {there}; asked for: {wanted}. Give their --seed and --size, or load anew with \
         --reload, or remove them with `loadline clean`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loading::batches;

    /// A database that keeps nothing.
    struct Nowhere;

    impl Loader for Nowhere {
        fn record(&self) -> String {
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
        fn counted(&mut self, _: &Work, _: &Table) -> Result<BTreeMap<u64, u64>, TargetError> {
            Ok(BTreeMap::new())
        }
        fn add(&mut self, _: &Work, _: &Table, _: &[Batch]) -> Result<(), TargetError> {
            // The others have time to come.
            std::thread::sleep(std::time::Duration::from_millis(10));
            Ok(())
        }
        fn remove(&mut self, _: &Work, _: &Table, _: &Range<i64>) -> Result<(), TargetError> {
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
    fn loaders_that_found_no_room_are_not_counted() {
        let workload = loadline_workload::find("SRV-QUERY1").unwrap();
        let work = Work::new(workload, workload.params(&BTreeMap::new()).unwrap(), 1, 0.0);
        let table = workload.tables.iter().find(|t| t.name == "lookup").unwrap();
        let missing = batches(&work, table, &[]);
        let load = |open: &Open<'_, '_>| {
            let progress = LoadProgress::default();
            let ways = Ways { open, one_writer: false, progress: &progress };
            let loaders = ways.add_all(&work, table, &missing, &mut Nowhere).unwrap();
            assert_eq!(progress.rows.load(Ordering::Relaxed), 100_000, "all rows, whoever came");
            loaders
        };
        assert_eq!(load(&|| Err(TargetError::Refused("too many clients".into()))), 1);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(load(&|| Ok(Box::new(Nowhere))), cpus.min(MOST_LOADERS));
    }
}
