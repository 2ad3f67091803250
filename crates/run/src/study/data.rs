//! The data set of a run: what is in place, whether there is room for it, and loading it.

use std::time::Duration;

use loadline_model::Plan;
use loadline_model::format::bytes;
use loadline_model::manifest::TargetInfo;
use loadline_target::{DataTable, FoundTable, LoadProgress, Target, TargetError, Work, other_data};
use loadline_workload::{Params, Scope, Table};

use super::{Context, StudyError};
use crate::event::{Event, Listener};
use crate::plan::planned;

/// Between two looks at how far a load is.
const LOOK: Duration = Duration::from_millis(100);
/// What databases add to a row: its header, its place in the page, the page's own.
const ROW_OVERHEAD: u64 = 40;
/// What an entry of an index takes.
const ENTRY: u64 = 24;

/// Refuses data that are not those of the plan (or drops them, if it is to be loaded anew), and a data set that
/// does not fit. Nothing has been made by then. What is not known is said in a note.
///
/// `begins`: the run is a new one. One that is resumed has dropped what it had to before.
pub(super) fn make_way(
    target: &dyn Target,
    plan: &Plan,
    info: &TargetInfo,
    begins: bool,
) -> Result<Option<String>, StudyError> {
    let tables = tables(plan)?;
    if tables.is_empty() {
        return Ok(None);
    }
    let mut there = target.data_set()?;
    if plan.reload && begins && !there.is_empty() {
        target.drop_data_set()?;
        there.clear();
    }
    for (table, params) in &tables {
        let wanted = DataTable::wanted(table, params, plan.seed, plan.payload_compressibility);
        let other = there.iter().find(|t| t.holds.table == wanted.table && t.holds != wanted);
        if let Some(other) = other {
            return Err(other_data(&other.holds, &wanted).into());
        }
    }
    fits(target, info, &missing(&tables, &there))
}

/// Tables of the data set that the plan's workloads read, once each.
fn tables(plan: &Plan) -> Result<Vec<(&'static Table, Params)>, StudyError> {
    let mut tables: Vec<(&'static Table, Params)> = Vec::new();
    for workload in &plan.workloads {
        let (found, params) = planned(workload, &Default::default(), plan.size_bytes)?;
        for table in found.tables.iter().filter(|t| t.scope == Scope::DataSet) {
            if !tables.iter().any(|(t, _)| t.name == table.name) {
                tables.push((table, params.clone()));
            }
        }
    }
    Ok(tables)
}

/// What a data set needs, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Room {
    data: u64,
    indexes: u64,
    log: u64,
}

impl Room {
    fn all(self) -> u64 {
        self.data + self.indexes + self.log
    }
}

/// Room for the tables that are not complete. As much log as data is written while they are loaded.
fn missing(tables: &[(&'static Table, Params)], there: &[FoundTable]) -> Room {
    let complete = |table: &Table| there.iter().any(|t| t.complete && t.holds.table == table.name);
    tables.iter().filter(|(table, _)| !complete(table)).fold(Room::default(), |room, (table, params)| {
        let rows = table.total_rows(params, 0);
        let data = rows.saturating_mul(table.value_bytes(params) + ROW_OVERHEAD);
        let indexes = rows.saturating_mul(ENTRY * (1 + table.indexes.len() as u64));
        Room {
            data: room.data.saturating_add(data),
            indexes: room.indexes.saturating_add(indexes),
            log: room.log.saturating_add(data),
        }
    })
}

fn fits(target: &dyn Target, info: &TargetInfo, need: &Room) -> Result<Option<String>, StudyError> {
    if need.all() == 0 {
        return Ok(None);
    }
    let size = |n: u64| bytes(n as f64);
    let need_text = format!(
        "the data set needs about {} (data {}, indexes {}, log {})",
        size(need.all()),
        size(need.data),
        size(need.indexes),
        size(need.log)
    );
    let local = info.storage.get("data").and_then(|s| Some((s.free_bytes?, s.path.clone())));
    let free = match local {
        Some(found) => Some(found),
        None => target.free_bytes()?.map(|free| (free, "the database's tablespace".to_owned())),
    };
    match free {
        None => Ok(Some(format!("{need_text}; how much is free on the target is not known"))),
        Some((free, place)) if need.all() > free => Err(TargetError::Refused(format!(
            "{need_text}, and {} is free in {place}: free some, or give a smaller --size",
            size(free)
        ))
        .into()),
        Some(_) => Ok(None),
    }
}

impl Context {
    /// Loads what a workload needs for one job, and the data set with it, telling how far it is.
    pub(super) fn load(&mut self, work: &Work, listener: &mut dyn Listener) -> Result<(), StudyError> {
        let progress = LoadProgress::default();
        let target = &self.target;
        let loaded = std::thread::scope(|scope| {
            let load = scope.spawn(|| target.load_watched(work, 1, &progress));
            while !load.is_finished() {
                if self.stopped() {
                    progress.stop();
                }
                if let Some(now) = progress.now() {
                    listener.on(Event::Loading(now));
                }
                // Most loads have nothing to do: they are over at once.
                let began = std::time::Instant::now();
                while !load.is_finished() && began.elapsed() < LOOK {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            load.join().unwrap_or_else(|_| Err(TargetError::Local("loading ended by a defect of loadline".into())))
        });
        for table in progress.done() {
            listener.on(Event::Loaded(&table));
            self.manifest.data_set.push(table);
        }
        match loaded {
            Err(_) if self.stopped() => Err(StudyError::Interrupted),
            loaded => Ok(loaded?),
        }
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::manifest::Storage;
    use loadline_model::plan::PlanSpec;

    use super::*;
    use crate::make_plan;

    fn plan(size: &str) -> Plan {
        let workload = Some(vec!["SRV-QUERY1".to_owned()]);
        make_plan(&PlanSpec { workload, size: Some(size.into()), ..PlanSpec::default() }).unwrap()
    }

    fn found(complete: bool) -> FoundTable {
        let (table, params) = tables(&plan("1MiB")).unwrap().remove(0);
        FoundTable { holds: DataTable::wanted(table, &params, 42, 0.0), complete, kept: false }
    }

    #[test]
    fn only_what_is_missing_needs_room() {
        let tables = tables(&plan("1MiB")).unwrap();
        assert_eq!(tables.iter().map(|(t, _)| t.name).collect::<Vec<_>>(), ["lookup"]);
        let all = missing(&tables, &[]);
        assert!(all.data >= 100_000 * 124 && all.indexes > 0 && all.log == all.data, "{all:?}");
        assert_eq!(missing(&tables, &[found(false)]), all, "what is not complete needs room for all of it");
        assert_eq!(missing(&tables, &[found(true)]), Room::default());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        let target = loadline_target::open(&loadline_target::OpenRequest::new("null:", "/tmp".into())).unwrap();
        let need = missing(&tables(&plan("1MiB")).unwrap(), &[]);
        let with = |free_bytes| {
            let storage = Storage { path: "/data".into(), free_bytes, ..Storage::default() };
            let info = TargetInfo { storage: [("data".to_owned(), storage)].into(), ..TargetInfo::default() };
            fits(target.as_ref(), &info, &need)
        };
        let refused = with(Some(1 << 20)).unwrap_err().to_string();
        assert!(refused.contains("1.0 MiB is free in /data") && refused.contains("indexes"), "{refused}");
        assert!(with(Some(1 << 40)).unwrap().is_none());
        assert!(with(None).unwrap().unwrap().contains("not known"));
    }
}
