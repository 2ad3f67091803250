//! Whether the tables that a run loads fit: told before anything is made.

use std::path::Path;

use loadline_database::{DataTable, FoundTable, Target, TargetError, Work, other_data};
use loadline_model::Plan;
use loadline_model::format::bytes;
use loadline_model::machine::Storage;
use loadline_model::manifest::TargetInfo;
use loadline_model::plan::PlannedWorkload;
use loadline_workload::{CATALOGUE, Scope, Table};

use super::StudyError;
use crate::plan::planned;

/// What databases add to a row: its header, its place in the page, the page's own.
const ROW_OVERHEAD: u64 = 40;
/// What an entry of an index takes.
const ENTRY: u64 = 24;

/// What was found before a run begins.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What a reader should know.
    pub(super) notes: Vec<String>,
    /// The data set that is there goes before the first table is loaded (`--reload`).
    pub(super) drop_data_set: bool,
}

/// Refuses data that are not those of the plan, and tables that do not fit. Nothing has been made or dropped by
/// then. What is not known is said in a note; with `--force`, so is what does not fit.
///
/// `begins`: the run is a new one. One that is resumed has dropped what it had to before.
pub(super) fn look(target: &dyn Target, plan: &Plan, info: &TargetInfo, begins: bool) -> Result<Room, StudyError> {
    let works = plan.workloads.iter().map(|w| work(plan, w)).collect::<Result<Vec<_>, _>>()?;
    let shared = data_set(&works);
    let there = if shared.is_empty() {
        Vec::new()
    } else {
        target.abilities().data_set.map_or(Ok(Vec::new()), |d| d.data_set())?
    };
    let drop_data_set = plan.reload && begins && !there.is_empty();
    let mut need = Need { what: "the data set needs".to_owned(), ..Need::default() };
    if drop_data_set {
        need.data = shared.iter().map(|(work, table)| Size::of(target, work, table)).sum();
        // They go before anything is loaded.
        need.given_back =
            there.iter().filter_map(|t| Some(stored(target, &any_work(plan, &t.holds.table)?, &t.holds.table))).sum();
    } else {
        for (work, table) in &shared {
            let wanted = DataTable::wanted(table, &work.params, plan.seed, plan.payload_compressibility);
            if let Some(other) = there.iter().find(|t| t.holds.table == wanted.table && t.holds != wanted) {
                return Err(other_data(&other.holds, &wanted).into());
            }
        }
        need.data = missing(target, &shared, &there);
    }
    let own = own_tables(target, &works, plan.repeat > 1);
    if own.size.all() > 0 {
        let one = if need.data.all() == 0 { "" } else { "the data set and " };
        need.what = format!("{one}the tables of {} need", own.whose.join(", "));
        need.data = [need.data, own.size].into_iter().sum();
    }
    Ok(Room { notes: fits(target, info, &need, plan.force)?, drop_data_set })
}

fn work(plan: &Plan, workload: &PlannedWorkload) -> Result<Work, StudyError> {
    let (found, params) = planned(workload, &Default::default(), plan.size_bytes)?;
    Ok(Work::new(found, params, plan.seed, plan.payload_compressibility))
}

/// Tables of the data set that the plan's workloads read, once each.
fn data_set(works: &[Work]) -> Vec<(&Work, &'static Table)> {
    let mut tables: Vec<(&Work, &'static Table)> = Vec::new();
    for work in works {
        for table in work.workload.tables.iter().filter(|t| t.scope == Scope::DataSet) {
            if !tables.iter().any(|(_, t)| t.name == table.name) {
                tables.push((work, table));
            }
        }
    }
    tables
}

/// A workload that reads a table of the data set, with which the target can be asked about it.
fn any_work(plan: &Plan, table: &str) -> Option<Work> {
    let reads = |t: &Table| t.scope == Scope::DataSet && t.name == table;
    let found = CATALOGUE.iter().find(|w| w.tables.iter().any(reads))?;
    let params = found.params(&Default::default()).ok()?.with_size(plan.size_bytes);
    Some(Work::new(found, params, plan.seed, plan.payload_compressibility))
}

/// Bytes of a table as it is stored; 0 where that is not known, so that no room is counted on that is not there.
fn stored(target: &dyn Target, work: &Work, table: &str) -> u64 {
    crate::queries::table_bytes(target, work, table).ok().flatten().unwrap_or(0)
}

/// What tables take, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    data: u64,
    indexes: u64,
}

impl Size {
    fn of(target: &dyn Target, work: &Work, table: &Table) -> Size {
        let rows = table.total_rows(&work.params, 0);
        let pct = if table.updated_in_place { target.facts().in_place_pct.clamp(1, 100) } else { 100 };
        let key = u64::from(!target.facts().rows_in_primary_key && table.primary_key().is_some());
        let row = (table.value_bytes(&work.params) + ROW_OVERHEAD) * 100 / pct;
        Size {
            data: rows.saturating_mul(row),
            indexes: rows.saturating_mul(ENTRY * (key + table.indexes.len() as u64)),
        }
    }

    /// What is left to be stored where so many bytes are.
    fn beside(self, stored: u64) -> Size {
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

/// The tables of the data set that are not complete; what of them is there already is gone on with.
fn missing(target: &dyn Target, tables: &[(&Work, &'static Table)], there: &[FoundTable]) -> Size {
    let found = |table: &Table| there.iter().find(|t| t.holds.table == table.name);
    let left = |(work, table): &(&Work, &'static Table)| match found(table) {
        Some(t) if t.complete => Size::default(),
        Some(_) => Size::of(target, work, table).beside(stored(target, work, table.name)),
        None => Size::of(target, work, table),
    };
    tables.iter().map(left).sum()
}

/// What the workloads' own tables take at the same time, and whose they are.
#[derive(Debug, Default)]
struct Own {
    size: Size,
    whose: Vec<&'static str>,
}

/// A workload's own tables go after its last test: only the largest counts, unless all are needed for each of
/// several repetitions. Those that a run left which was killed are made anew.
fn own_tables(target: &dyn Target, works: &[Work], all: bool) -> Own {
    let of = |work: &Work| {
        let own = work.workload.tables.iter().filter(|t| t.scope == Scope::Workload && t.is_whole());
        own.map(|t| Size::of(target, work, t).beside(stored(target, work, t.name))).sum::<Size>()
    };
    let sizes = works.iter().map(|w| Own { size: of(w), whose: vec![w.workload.code] }).filter(|o| o.size.all() > 0);
    let together =
        |a: Own, b: Own| Own { size: [a.size, b.size].into_iter().sum(), whose: [a.whose, b.whose].concat() };
    let most = if all { sizes.reduce(together) } else { sizes.max_by_key(|o| o.size.all()) };
    most.unwrap_or_default()
}

/// What a run needs.
#[derive(Debug, Default)]
struct Need {
    /// What needs it, with the verb.
    what: String,
    data: Size,
    /// Bytes that are dropped first.
    given_back: u64,
}

/// A place that has to take something.
struct Place {
    name: String,
    /// What tells its filesystem from others.
    filesystem: String,
    free: u64,
    may_grow: Option<String>,
}

impl Place {
    fn of(storage: &Storage) -> Option<Place> {
        let filesystem = format!("{} {}", storage.source, storage.mount_point);
        Some(Place { name: storage.path.clone(), filesystem, free: storage.free_bytes?, may_grow: None })
    }
}

fn fits(target: &dyn Target, info: &TargetInfo, need: &Need, force: bool) -> Result<Vec<String>, StudyError> {
    if need.data.all() == 0 {
        return Ok(Vec::new());
    }
    let size = |n: u64| bytes(n as f64);
    let log = target.log_space(need.data.data, need.data.indexes)?;
    let data_place = info.storage.get("data").and_then(Place::of);
    let (data_place, log_place) = match data_place {
        Some(data) => {
            let dir = log.dir.as_deref().filter(|_| info.local).map(Path::new);
            let elsewhere = dir.and_then(|d| loadline_collect::inventory::storage(d).ok());
            let storage = elsewhere.as_ref().or_else(|| info.storage.get("log").filter(|_| log.dir.is_none()));
            let place = storage.and_then(Place::of);
            (Some(data), place)
        }
        None => {
            let told = target.abilities().disk_space.map_or(Ok(None), |space| space.free_space())?;
            let place = |f: loadline_database::FreeSpace| Place {
                name: f.place,
                filesystem: String::new(),
                free: f.bytes,
                may_grow: f.may_grow,
            };
            (told.map(place), None)
        }
    };
    let text = format!(
        "{} about {} (data {}, indexes {}, log {})",
        need.what,
        size(need.data.all().saturating_add(log.bytes)),
        size(need.data.data),
        size(need.data.indexes),
        size(log.bytes)
    );
    let mut notes: Vec<String> = log.unknown.iter().cloned().collect();
    let Some(data) = data_place else {
        notes.push(format!("{text}; how much is free on the target is not known"));
        return Ok(notes);
    };
    // A log of which nothing is known to lie elsewhere lies with the data.
    let apart = log_place.filter(|l| l.filesystem != data.filesystem);
    let with_data = if apart.is_some() { 0 } else { log.bytes };
    let mut places = vec![(need.data.all().saturating_add(with_data).saturating_sub(need.given_back), data)];
    places.extend(apart.map(|l| (log.bytes, l)));
    let several = places.len() > 1;
    for (needed, place) in places.into_iter().filter(|(needed, place)| *needed > place.free) {
        let back = match need.given_back {
            0 => String::new(),
            bytes => format!(" besides the {} that are dropped first", size(bytes)),
        };
        let part = if several { format!(" ({} of it goes there)", size(needed)) } else { String::new() };
        let short = format!("{text}, and {} is free in {}{part}{back}", size(place.free), place.name);
        match place.may_grow {
            Some(why) => notes.push(format!("{short}; {why}")),
            None if force => notes.push(format!("{short}; tried all the same (--force)")),
            None => {
                let text = format!("{short}: free some, or give a smaller --size, or try all the same with --force");
                return Err(TargetError::Refused(text).into());
            }
        }
    }
    Ok(notes)
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
