//! The tables of a target: [`Administration`] and [`Tables`] of all databases by what they say of themselves
//! ([`LoadsTables`]). Loads the workload tables, that is, all tables outside the data set: whole ones once and in parallel, rows owned by
//! jobs before each test.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadline_model::Driver;
use loadline_workload::{Piece, RowCount, Scope, Statement, Table};

use crate::changed_rows;
use crate::data_set::{self, FoundTable, LoadProgress, LoadSession, Loader, Ways};
use crate::dialect::{Dialect, Load};
use crate::error::TargetError;
use crate::loading::{batches, table_stem};
use crate::role::{Administration, BlockCache, LogSpace, RunLock, StatisticsViews, Tables, Wear};
use crate::work::Work;

/// Tables known to hold all their rows, so they are not counted again before each test: name, rows.
#[derive(Default)]
pub(crate) struct LoadedTables(Mutex<BTreeSet<(String, u64)>>);

impl LoadedTables {
    /// Forgets the tables of `work`, because they are created again.
    pub(crate) fn forget(&self, work: &Work) {
        let stems: Vec<String> = work.workload.tables.iter().map(|t| table_stem(work, &t.name)).collect();
        self.lock().retain(|(stem, _)| !stems.contains(stem));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tables that stay when a target is cleaned, by their names without its prefix.
pub(crate) type Kept = BTreeSet<String>;

/// A target with tables: what differs between databases beside their [`Dialect`].
pub(crate) trait LoadsTables: BlockCache + StatisticsViews + Sync {
    /// Whether only one session can write at a time.
    const ONE_WRITER: bool = false;

    fn dialect(&self) -> &'static Dialect;

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError>;

    fn loaded(&self) -> &LoadedTables;

    fn lock_tables(&self) -> Result<RunLock, TargetError>;

    fn space_for_log(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError>;

    fn settled(&self) -> Result<Option<String>, TargetError>;

    /// Removes what loadline made, but for the tables that `kept` returns once nobody else can use them, and lists it.
    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError>;

    /// Prepares the server for jobs of `work` by `driver`; [`TargetError::Unsupported`] if it cannot do this work.
    fn expect_jobs(&self, work: &Work, driver: Driver) -> Result<(), TargetError> {
        let _ = (work, driver);
        Ok(())
    }

    fn bytes_read_of(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        self.with_loader(|loader| loader.size(work, table))
    }

    fn after_load(&self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Does what else is needed before a test, once the tables that the workload fills are empty.
    fn freshen(&self, loader: &mut Loader<'_>, work: &Work) -> Result<(), TargetError> {
        let _ = (loader, work);
        Ok(())
    }

    /// Calls `f`, and does before and after it what copies of the data need.
    fn in_step<T>(&self, f: impl FnOnce() -> Result<T, TargetError>) -> Result<T, TargetError> {
        f()
    }

    fn open_loader(&self) -> Result<Loader<'_>, TargetError> {
        Ok(Loader { dialect: self.dialect(), session: self.load_session()? })
    }

    /// Calls `f` with a loader, and closes that.
    fn with_loader<T>(&self, f: impl FnOnce(&mut Loader<'_>) -> Result<T, TargetError>) -> Result<T, TargetError> {
        self.in_step(|| self.open_loader()?.closing(f))
    }
}

impl<T: LoadsTables> Administration for T {
    fn lock(&self) -> Result<RunLock, TargetError> {
        self.lock_tables()
    }

    /// Tables of the data set are created when they are loaded.
    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded().forget(work);
        self.expect_jobs(work, Driver::Client)?;
        self.with_loader(|loader| {
            if workload_tables(work).next().is_some() {
                loader.session.ensure()?;
            }
            workload_tables(work).try_for_each(|table| loader.make(work, table))
        })
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        let open = || self.open_loader();
        let ways = Ways { open: &open, one_writer: Self::ONE_WRITER, progress };
        let lacking = lacking(work, jobs, self.loaded());
        if !lacking.is_empty() {
            self.with_loader(|loader| {
                lacking.iter().try_for_each(|table| match table.scope {
                    Scope::DataSet => data_set::load(work, table, loader, ways),
                    Scope::Workload => load(work, jobs, table, loader, ways, self.loaded()),
                })
            })?;
        }
        self.after_load()
    }

    fn log_space(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        self.space_for_log(data, indexes)
    }

    fn reset(&self, work: &Work, driver: Driver) -> Result<(), TargetError> {
        self.expect_jobs(work, driver)?;
        let empty = &self.dialect().load.empty;
        self.with_loader(|loader| {
            for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
                self.dialect().for_table(empty, work, table).iter().try_for_each(|sql| loader.session.run(sql))?;
            }
            self.freshen(loader, work)
        })
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        self.settled()
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        let evidence = work.workload.evidence.as_ref();
        evidence.map(|e| Ok(self.number(work, &e.query)?.unwrap_or(0))).transpose()
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded().forget(work);
        let plain = |table: &Table| self.dialect().plain_name(&table_stem(work, &table.name));
        let names: BTreeSet<String> = workload_tables(work).map(plain).collect();
        self.with_loader(|loader| loader.drop_tables(|name| names.contains(name)).map(drop))
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        self.remove(&|| Ok(Kept::new()))
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        self.remove(&|| self.with_loader(|loader| data_set::kept(loader, keep_data)))
    }
}

impl<T: LoadsTables> Tables for T {
    fn number(&self, work: &Work, query: &str) -> Result<Option<i64>, TargetError> {
        let sql = self.dialect().query(work, query)?;
        let wrong =
            |text: &str| TargetError::Statement(format!("the query returned '{text}', which is not a whole number"));
        let found = self.with_loader(|loader| loader.value(&sql))?;
        found.map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        self.with_loader(|loader| loader.size(work, table))
    }

    fn bytes_read(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        self.bytes_read_of(work, table)
    }

    fn wear(&self) -> Wear {
        let Load { wear, no_wear, .. } = &self.dialect().load;
        let ask = |(id, queries): (&String, &Vec<String>)| {
            let mut errors = Vec::new();
            let number = queries.iter().find_map(|sql| {
                let answer = self.with_loader(|loader| loader.value(sql)).map_err(|e| errors.push(e.to_string()));
                answer.ok()??.trim().parse().ok()
            });
            let unsaid = no_wear.get(id).map_or("the database said nothing of it", String::as_str);
            let why = || if errors.is_empty() { unsaid.to_owned() } else { errors.join("; ") };
            (id.clone(), number.ok_or_else(why))
        };
        let absent = no_wear.iter().map(|(id, why)| (id.clone(), Err(why.clone())));
        absent.chain(wear.iter().map(ask)).collect()
    }

    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        self.with_loader(data_set::found)
    }

    fn check_rows(&self, work: &Work, table: &Table) -> Result<(), TargetError> {
        self.with_loader(|loader| changed_rows::check(loader, work, table))
    }

    fn drop_data_set(&self) -> Result<(), TargetError> {
        self.with_loader(|loader| loader.drop_data_set())
    }
}

pub(crate) fn workload_tables(work: &Work) -> impl Iterator<Item = &Table> {
    work.workload.tables.iter().filter(|t| t.scope == Scope::Workload)
}

fn key(work: &Work, table: &Table) -> (String, u64) {
    (table_stem(work, &table.name), table.total_rows(&work.params, 0))
}

/// The tables that may lack rows of `jobs` jobs: those of the workload, then those of the data set.
fn lacking<'w>(work: &'w Work, jobs: u32, loaded: &LoadedTables) -> Vec<&'w Table> {
    let known = loaded.lock();
    let tables = workload_tables(work).filter(|t| t.is_whole() || !batches(work, t, jobs).is_empty());
    let tables = tables.filter(|t| !known.contains(&key(work, t)) || may_lose_rows(work, t));
    tables.chain(work.workload.tables.iter().filter(|t| t.scope == Scope::DataSet)).collect()
}

/// Loads the missing rows of a workload table. A transaction holds whole batches, so an interrupted load is resumed.
fn load(
    work: &Work,
    jobs: u32,
    table: &Table,
    loader: &mut Loader<'_>,
    ways: Ways<'_, '_>,
    loaded: &LoadedTables,
) -> Result<(), TargetError> {
    let existing = loader.counted(work, table)?;
    let mut missing = batches(work, table, jobs);
    missing.retain(|b| existing.get(&b.number) != Some(&b.len()));
    for batch in missing.iter().filter(|b| existing.contains_key(&b.number)) {
        loader.remove(work, table, &batch.keys)?;
    }
    if table.is_whole() {
        if !missing.is_empty() || !loader.is_finished(work, table)? {
            let name = format!("{} of {}", table.name, work.workload.code);
            ways.load(work, table, (&name, &missing), loader, None)?;
        }
        loaded.lock().insert(key(work, table));
    } else if !missing.is_empty() {
        Ways { one_writer: true, ..ways }.add_all(work, table, &missing, loader)?;
        loader.finish(work, table, None)?;
    }
    Ok(())
}

/// Whether the workload's program may add or delete rows of the table: it does more than read, update, and create or
/// drop indexes.
fn may_lose_rows(work: &Work, table: &Table) -> bool {
    let names = |s: &&Statement| s.template.pieces.iter().any(|p| matches!(p, Piece::Table(t) if *t == table.name));
    let keeps = |s: &Statement| {
        let text = s.template.pieces.iter().find_map(|p| match p {
            Piece::Sql(sql) => Some(sql.trim_start().to_uppercase()),
            _ => None,
        });
        let harmless = ["SELECT ", "UPDATE ", "CREATE INDEX ", "DROP INDEX "];
        text.is_some_and(|text| harmless.iter().any(|word| text.starts_with(word)))
    };
    let by_statement = work.program.statements.iter().filter(names).any(|s| !keeps(s));
    let number = work.workload.tables.iter().position(|t| t.name == table.name);
    by_statement || work.program.bulk_tables().into_iter().any(|table| Some(table) == number)
}

#[cfg(test)]
mod tests {

    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn only_tables_that_may_lose_rows_are_counted_before_each_test() {
        for workload in CATALOGUE.iter() {
            let work = Work::from_catalogue(&workload.code, &[]).unwrap();
            let losing = workload_tables(&work).find(|t| t.is_whole() && may_lose_rows(&work, t));
            assert_eq!(losing.map(|t| &t.name), None, "{}", workload.code);
        }
        let work = Work::from_catalogue("TP-HEAVY", &[]).unwrap();
        let grows = workload_tables(&work).find(|t| t.name == "orders").unwrap();
        assert!(may_lose_rows(&work, grows), "rows are inserted there");
    }
}
