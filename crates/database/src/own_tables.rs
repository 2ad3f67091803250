//! Loading the workloads' own tables: whole ones once, in parallel as the data set is, and before each test what
//! the jobs own.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadline_workload::{Piece, Scope, Statement, Table};

use crate::data_set::{self, Loader, Ways};
use crate::error::TargetError;
use crate::loading::{batches, table_stem};
use crate::work::Work;

/// Whole tables that are known to hold all their rows, so that nobody counts them before each test: number of
/// the server, name, rows.
#[derive(Default)]
pub(crate) struct Whole(Mutex<BTreeSet<(usize, String, u64)>>);

impl Whole {
    /// The tables of `work` are made anew.
    pub(crate) fn forget(&self, work: &Work) {
        let stems: Vec<String> = work.workload.tables.iter().map(|t| table_stem(work, t.name)).collect();
        self.lock().retain(|(_, stem, _)| !stems.contains(stem));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(usize, String, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be there.
pub(crate) struct Own<'a> {
    pub(crate) work: &'a Work,
    /// The jobs whose rows belong on this server.
    pub(crate) jobs: &'a [u32],
    /// Number of the server.
    pub(crate) server: usize,
    pub(crate) whole: &'a Whole,
}

/// The workload's tables that are not of the data set.
pub(crate) fn own_tables(work: &Work) -> impl Iterator<Item = &'static Table> + use<> {
    work.workload.tables.iter().filter(|t| t.scope == Scope::Workload)
}

/// Loads what is missing of the workload's own tables and of the data set.
pub(crate) fn load_all(own: &Own<'_>, ways: Ways<'_, '_>) -> Result<(), TargetError> {
    load(own, ways)?;
    data_set::load(own.work, ways)
}

/// Loads the rows that are not there. A transaction holds whole batches, so a load that was cut off is gone
/// on with.
fn load(own: &Own<'_>, ways: Ways<'_, '_>) -> Result<(), TargetError> {
    let known = own.whole.lock().clone();
    let tables = own_tables(own.work).filter(|t| t.is_whole() || !batches(own.work, t, own.jobs).is_empty());
    let mut tables = tables.filter(|t| !known.contains(&key(own, t)) || may_lose_rows(own.work, t)).peekable();
    if tables.peek().is_none() {
        return Ok(());
    }
    ways.with_each(tables, |table, loader| load_table(own, table, loader, ways))
}

fn key(own: &Own<'_>, table: &Table) -> (usize, String, u64) {
    (own.server, table_stem(own.work, table.name), table.total_rows(&own.work.params, 0))
}

fn load_table<'a>(
    own: &Own<'_>,
    table: &Table,
    loader: &mut (dyn Loader + 'a),
    ways: Ways<'_, 'a>,
) -> Result<(), TargetError> {
    let work = own.work;
    let there = loader.counted(work, table)?;
    let mut missing = batches(work, table, own.jobs);
    missing.retain(|b| there.get(&b.number) != Some(&b.len()));
    for batch in missing.iter().filter(|b| there.contains_key(&b.number)) {
        loader.remove(work, table, &batch.keys)?;
    }
    if !table.is_whole() {
        if !missing.is_empty() {
            Ways { one_writer: true, ..ways }.add_all(work, table, &missing, loader)?;
            loader.finish(work, table, None)?;
        }
        return Ok(());
    }
    if !missing.is_empty() || !loader.is_finished(work, table)? {
        let name = format!("{} of {}", table.name, work.workload.code);
        ways.load(work, table, (&name, &missing), loader, None)?;
    }
    own.whole.lock().insert(key(own, table));
    Ok(())
}

/// Whether the workload's program may leave other rows in the table than those it found: what it does to it is
/// more than to read, to update, and to make an index or drop one.
fn may_lose_rows(work: &Work, table: &Table) -> bool {
    let names = |s: &&Statement| s.template.pieces.iter().any(|p| matches!(p, Piece::Table(t) if t == table.name));
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
    use std::collections::BTreeMap;

    use loadline_workload::CATALOGUE;

    use super::*;

    #[test]
    fn only_tables_whose_rows_may_go_are_looked_at_before_each_test() {
        let losing: Vec<String> = CATALOGUE
            .iter()
            .flat_map(|w| {
                let work = Work::new(w, w.params(&BTreeMap::new()).unwrap(), 1, 0.0);
                let tables: Vec<_> = own_tables(&work).filter(|t| t.is_whole() && may_lose_rows(&work, t)).collect();
                tables.into_iter().map(|t| format!("{}.{}", w.code, t.name)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(losing, Vec::<String>::new());
        let work = Work::new(
            loadline_workload::find("TP-HEAVY").unwrap(),
            loadline_workload::find("TP-HEAVY").unwrap().params(&BTreeMap::new()).unwrap(),
            1,
            0.0,
        );
        let grows = own_tables(&work).find(|t| t.name == "orders").unwrap();
        assert!(may_lose_rows(&work, grows), "rows are inserted there");
    }
}
