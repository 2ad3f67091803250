//! Checks free disk space for the tables of a run, before anything is created or dropped.

use std::path::Path;

use loadline_database::{DataTable, FoundTable, FreeSpace, Target, TargetError, Work, other_data};
use loadline_model::Plan;
use loadline_model::format::bytes;
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_storage::StorageFacts;
use loadline_workload::{Scope, Table};

use super::StudyError;
use crate::plan::{work_of, workloads_of};

/// Bytes per row that databases add: row header, line pointer, share of the page header.
const ROW_OVERHEAD: u64 = 40;
/// Bytes of an index entry.
const INDEX_ENTRY: u64 = 24;

#[derive(Debug, Default)]
pub(super) struct SpaceCheck {
    /// Notes on the space that the run takes.
    pub(super) notes: Vec<String>,
    /// Whether to drop the existing data set before loading (`--reload`).
    pub(super) drop_data_set: bool,
}

/// Refuses an existing data set that differs from the plan's or was changed since, and tables that do not fit: a note with `--force`, or if
/// sizes are unknown. `begins`: whether this is a new run. A resumed run does not drop the data set again.
pub(super) fn check(
    target: &dyn Target,
    plan: &Plan,
    info: &TargetInfo,
    begins: bool,
) -> Result<SpaceCheck, StudyError> {
    let known = workloads_of(plan)?;
    let work = |w| work_of(&known, plan, w, &Default::default());
    let works = plan.workloads.iter().map(work).collect::<Result<Vec<_>, _>>()?;
    let shared = data_set(&works);
    let role = if shared.is_empty() { None } else { target.abilities().tables };
    let existing = role.map_or(Ok(Vec::new()), |role| role.data_set())?;
    let drop_data_set = plan.reload && begins && !existing.is_empty();
    if !drop_data_set {
        for (work, table) in &shared {
            let wanted = DataTable::wanted(table, &work.params, plan.seed, plan.payload);
            if let Some(other) = existing.iter().find(|t| t.holds.table == wanted.table && t.holds != wanted) {
                return Err(other_data(&other.holds, &wanted).into());
            }
            if let Some(role) = role
                && existing.iter().any(|t| t.holds == wanted && t.complete)
            {
                role.check_rows(work, table)?;
            }
        }
    }
    let data = missing(target, &shared, &existing, drop_data_set);
    let (own, codes) = workload_tables(target, &works, plan.repeat > 1);
    let what = match (data.all(), codes.join(", ")) {
        (_, codes) if codes.is_empty() => "the data set needs".to_owned(),
        (0, codes) => format!("the tables of {codes} need"),
        (_, codes) => format!("the data set and the tables of {codes} need"),
    };
    let need = [data, own].into_iter().sum();
    Ok(SpaceCheck { notes: check_space(target, info, &what, need, plan.force)?, drop_data_set })
}

/// Tables of the data set that the plan's workloads read, without duplicates.
fn data_set(works: &[Work]) -> Vec<(&Work, &Table)> {
    let mut tables: Vec<(&Work, &Table)> = Vec::new();
    for work in works {
        for table in work.workload.tables.iter().filter(|t| t.scope == Scope::DataSet) {
            if !tables.iter().any(|(_, t)| t.name == table.name) {
                tables.push((work, table));
            }
        }
    }
    tables
}

/// Stored bytes of a table; 0 if unknown, so that free space is never overestimated.
fn stored(target: &dyn Target, work: &Work, table: &str) -> u64 {
    crate::evidence::table_bytes(target, work, table).ok().flatten().unwrap_or(0)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    data: u64,
    indexes: u64,
}

impl Size {
    fn new(target: &dyn Target, work: &Work, table: &Table) -> Size {
        let rows = table.total_rows(&work.params, 0);
        let in_place_pct = if table.updated_in_place { target.facts().in_place_pct } else { None };
        let pct = in_place_pct.map_or(100, |pct| pct.clamp(1, 100));
        let key = u64::from(!target.facts().rows_in_primary_key && table.primary_key().is_some());
        let row = (table.value_bytes(&work.params) + ROW_OVERHEAD) * 100 / pct;
        Size {
            data: rows.saturating_mul(row),
            indexes: rows.saturating_mul(INDEX_ENTRY * (key + table.indexes.len() as u64)),
        }
    }

    /// The size still to load when `stored` bytes exist.
    fn minus_stored(self, stored: u64) -> Size {
        Size { data: self.data.saturating_sub(stored), ..self }
    }

    fn all(self) -> u64 {
        self.data.saturating_add(self.indexes)
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), |a, b| Size {
            data: a.data.saturating_add(b.data),
            indexes: a.indexes.saturating_add(b.indexes),
        })
    }
}

/// Size of the data set still to load. Resumes tables that are partly loaded. `anew`: all are dropped first, which frees their space.
fn missing(target: &dyn Target, tables: &[(&Work, &Table)], existing: &[FoundTable], anew: bool) -> Size {
    let found = |table: &Table| existing.iter().find(|t| t.holds.table == table.name);
    let left = |(work, table): &(&Work, &Table)| match found(table) {
        Some(t) if t.complete && !anew => Size::default(),
        Some(_) => Size::new(target, work, table).minus_stored(stored(target, work, &table.name)),
        None => Size::new(target, work, table),
    };
    tables.iter().map(left).sum()
}

/// Size of the workload tables that exist at the same time, and the codes of their workloads. They are dropped after the workload's last
/// test: only the largest counts, or, with several repetitions (`all`), their sum.
fn workload_tables<'a>(target: &dyn Target, works: &'a [Work], all: bool) -> (Size, Vec<&'a str>) {
    let sizes = works.iter().map(|work| {
        let own = work.workload.tables.iter().filter(|t| t.scope == Scope::Workload && t.is_whole());
        let size = own.map(|t| Size::new(target, work, t).minus_stored(stored(target, work, &t.name))).sum::<Size>();
        (size, vec![work.workload.code.as_str()])
    });
    let sizes = sizes.filter(|(size, _)| size.all() > 0);
    let most = if all {
        sizes.reduce(|(a, codes), (b, more)| ([a, b].into_iter().sum(), [codes, more].concat()))
    } else {
        sizes.max_by_key(|(size, _)| size.all())
    };
    most.unwrap_or_default()
}

fn free_in(storage: &Storage) -> Option<FreeSpace> {
    Some(FreeSpace { place: storage.path.clone(), bytes: storage.free_bytes?, may_grow: None })
}

/// Notes on what tables of the size `need` take, which are `what`, with the verb: `the data set needs`.
fn check_space(
    target: &dyn Target,
    info: &TargetInfo,
    what: &str,
    need: Size,
    force: bool,
) -> Result<Vec<String>, StudyError> {
    if need.all() == 0 {
        return Ok(Vec::new());
    }
    let size = |n: u64| bytes(n as f64);
    let log = target.log_space(need.data, need.indexes)?;
    let of_data = info.storage.get("data").and_then(|storage| Some((storage, free_in(storage)?)));
    let (data_place, apart) = match of_data {
        Some((data, free)) => {
            let dir = if info.local { log.dir.as_deref().map(Path::new) } else { None };
            let elsewhere = dir.and_then(|d| StorageFacts::read(d).ok()).map(|facts| facts.storage);
            let of_log = if log.dir.is_none() { info.storage.get("log") } else { None };
            let storage = elsewhere.as_ref().or(of_log);
            // Without a known log filesystem, the log is on that of the data.
            let is_other = |log: &&Storage| (&log.source, &log.mount_point) != (&data.source, &data.mount_point);
            (Some(free), storage.filter(is_other).and_then(free_in))
        }
        None => (target.free_space()?, None),
    };
    let text = format!(
        "{what} about {} (data {}, indexes {}, log {})",
        size(need.all().saturating_add(log.bytes)),
        size(need.data),
        size(need.indexes),
        size(log.bytes)
    );
    let mut notes: Vec<String> = log.unknown.iter().cloned().collect();
    let Some(data) = data_place else {
        notes.push(format!("{text}; free space on the target is unknown: see to it that it has as much"));
        return Ok(notes);
    };
    let with_data = if apart.is_some() { 0 } else { log.bytes };
    let mut places = vec![(need.all().saturating_add(with_data), data)];
    places.extend(apart.map(|l| (log.bytes, l)));
    let several = places.len() > 1;
    for (needed, place) in places.into_iter().filter(|(needed, place)| *needed > place.bytes) {
        let part = if several { format!(" ({} of it goes there)", size(needed)) } else { String::new() };
        let short = format!("{text}, and {} is free in {}{part}", size(place.bytes), place.place);
        match place.may_grow {
            Some(why) => notes.push(format!("{short}; {why}")),
            None if force => notes.push(format!("{short}; measured anyway (--force)")),
            None => {
                let text = format!("{short}: free some space, give a smaller --size, or measure anyway with --force");
                return Err(TargetError::Refused(text).into());
            }
        }
    }
    Ok(notes)
}

#[cfg(test)]
#[path = "disk_space_tests.rs"]
mod tests;
