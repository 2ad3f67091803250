//! The database's own counters, all of them outside the Diagnostics Pack: `V$SYSSTAT`,
//! `V$SYSTEM_EVENT`, `V$EVENT_HISTOGRAM_MICRO` and `V$OSSTAT` (Database Reference), which count from
//! the start of the instance. The `GV$` views add up all instances of a cluster.

use std::collections::BTreeMap;

use loadline_model::Snapshot;
use loadline_model::snapshot::counter;

use super::session::{Row, Session};
use crate::clock;
use crate::error::TargetError;
use crate::session::Observer;

/// A view of counters, and what is missing without it.
pub(super) struct View {
    /// Name without `V$` and `GV$`.
    pub(super) name: &'static str,
    /// Columns without a figure where it cannot be read.
    pub(super) columns: &'static [&'static str],
    /// Name, value and, where there is one, a second value; `{view}` is the view.
    select: &'static str,
}

/// All of them.
pub(super) static VIEWS: [View; 4] = [
    View {
        name: "SYSSTAT",
        columns: &[
            "redo_blocks_per_s",
            "redo_writes_per_s",
            "redo_sync_writes_per_s",
            "redo_mib_per_s",
            "redo_kib_per_tx",
            "redo_bytes_per_tx",
            "commits_database",
            "commits_per_redo_sync",
            "log_file_sync_ms",
        ],
        select: "SELECT NAME, SUM(VALUE) FROM {view} WHERE NAME LIKE 'redo %' OR NAME LIKE 'physical %' \
             OR NAME LIKE 'cell %' OR NAME IN ('user commits', 'user rollbacks', 'execute count', 'user calls', \
             'db block changes', 'undo change vector size') \
             GROUP BY NAME",
    },
    View {
        name: "SYSTEM_EVENT",
        columns: &["log_file_sync_ms"],
        select: "SELECT EVENT, SUM(TOTAL_WAITS), SUM(TIME_WAITED_MICRO) FROM {view} WHERE EVENT LIKE 'log file %' \
             OR EVENT LIKE 'log buffer %' OR EVENT LIKE 'LGWR%' OR WAIT_CLASS = 'Commit' GROUP BY EVENT",
    },
    View {
        name: "EVENT_HISTOGRAM_MICRO",
        columns: &[],
        select: "SELECT EVENT || ' < ' || TO_CHAR(WAIT_TIME_MICRO) || ' us', SUM(WAIT_COUNT) FROM {view} \
             WHERE EVENT IN ('log file sync', 'log file parallel write') GROUP BY EVENT, WAIT_TIME_MICRO",
    },
    View {
        name: "OSSTAT",
        columns: &["cpu_busy_pct", "cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct", "cpu_iowait_pct"],
        select: "SELECT STAT_NAME, SUM(VALUE) FROM {view} WHERE STAT_NAME IN ('NUM_CPUS', 'BUSY_TIME', 'USER_TIME', \
             'SYS_TIME', 'IDLE_TIME', 'IOWAIT_TIME', 'NICE_TIME') GROUP BY STAT_NAME",
    },
];

impl View {
    /// Its name for a query, over all instances or this one.
    pub(super) fn named(&self, all_instances: bool) -> String {
        format!("{}V${}", if all_instances { "G" } else { "" }, self.name)
    }

    /// What to ask the administrator for.
    pub(super) fn grant(&self) -> String {
        format!("GRANT SELECT ON SYS.GV_${0} TO …; GRANT SELECT ON SYS.V_${0} TO … (or SELECT_CATALOG_ROLE)", self.name)
    }

    /// The query of its counters.
    pub(super) fn query(&self, all_instances: bool) -> String {
        self.select.replace("{view}", &self.named(all_instances))
    }

    /// The query that finds out whether it can be read.
    pub(super) fn probe(&self, all_instances: bool) -> String {
        format!("SELECT COUNT(*) FROM {} WHERE ROWNUM = 1", self.named(all_instances))
    }
}

/// How a view can be read, found once when the target is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// Over all instances.
    All,
    /// This instance only.
    One,
    /// Not at all, with what the server said.
    None(String),
}

/// Looks at every view.
///
/// # Errors
/// When the session is lost.
pub(super) fn look(session: &mut dyn Session) -> Result<Vec<(&'static View, Sight)>, TargetError> {
    let mut out = Vec::new();
    for view in &VIEWS {
        let mut sight = None;
        for all in [true, false] {
            match session.query(&view.probe(all), &[]) {
                Ok(_) => {
                    sight = Some(if all { Sight::All } else { Sight::One });
                    break;
                }
                Err(e) if e.lost => return Err(e.into()),
                Err(e) => sight = Some(Sight::None(e.text)),
            }
        }
        out.push((view, sight.unwrap_or(Sight::None(String::new()))));
    }
    Ok(out)
}

/// `redo writes` of the log writer → its neutral name. `redo blocks written` are those of the log
/// (512 bytes, or 4 KiB where the disks ask for it). `redo synch writes` counts commits that forced
/// the log to disk and waited: with it, commits that did not wait show at once.
const NEUTRAL: &[(&str, &str)] = &[
    ("user commits", counter::COMMITS),
    ("redo size", counter::REDO_BYTES),
    ("redo writes", counter::REDO_WRITES),
    ("redo synch writes", counter::REDO_SYNCS),
    ("redo blocks written", counter::REDO_BLOCKS),
];

/// Counters from a view's rows, under the names `v$sysstat.redo size`.
pub(super) fn read(view: &View, rows: &[Row], snapshot: &mut Snapshot) {
    let name = view.name.to_lowercase();
    let number = |row: &Row, i: usize| row.get(i).cloned().flatten().and_then(|v| v.parse::<f64>().ok());
    let mut seen: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        let Some(what) = row.first().and_then(Option::as_deref) else { continue };
        let Some(value) = number(row, 1) else { continue };
        seen.insert(what, value);
        match number(row, 2) {
            Some(micros) => {
                snapshot.counters.insert(format!("v${name}.{what}.total_waits"), value);
                snapshot.counters.insert(format!("v${name}.{what}.time_waited_micro"), micros);
                if what == "log file sync" {
                    snapshot.counters.insert(counter::LOG_WAIT_NS.to_owned(), micros * 1e3);
                }
            }
            None => drop(snapshot.counters.insert(format!("v${name}.{what}"), value)),
        }
    }
    if view.name == "SYSSTAT" {
        for (source, neutral) in NEUTRAL {
            // An open database has written its log: 0 means that the container does not see the log
            // writer's statistics, not that it did nothing.
            if let Some(value) = seen.get(source).filter(|v| **v > 0.0) {
                snapshot.counters.insert((*neutral).to_owned(), *value);
            }
        }
    }
    if view.name == "OSSTAT" {
        snapshot.proc_stat = proc_stat(&seen);
    }
}

/// The line `cpu` of `/proc/stat` with the times of `V$OSSTAT`, in hundredths of a second. There,
/// IDLE_TIME includes IOWAIT_TIME: BUSY_TIME + IDLE_TIME is the time of all CPUs.
fn proc_stat(seen: &BTreeMap<&str, f64>) -> Option<String> {
    let at = |name: &str| seen.get(name).copied();
    let (user, sys, idle) = (at("USER_TIME")?, at("SYS_TIME")?, at("IDLE_TIME")?);
    let (nice, iowait) = (at("NICE_TIME").unwrap_or(0.0), at("IOWAIT_TIME").unwrap_or(0.0));
    // What is busy and neither user, nice nor system: interrupts.
    let other = at("BUSY_TIME").map_or(0.0, |busy| (busy - user - nice - sys).max(0.0));
    let idle = (idle - iowait).max(0.0);
    Some(format!("cpu  {user:.0} {nice:.0} {sys:.0} {idle:.0} {iowait:.0} {other:.0} 0 0 0 0"))
}

/// Why columns have no figure on Oracle, given what can be read.
pub(super) fn absent(sights: &[(&'static View, Sight)]) -> Vec<(&'static str, String)> {
    let mut out = vec![(
        "flash_cache_write_pct",
        "Oracle documents no statistic of V$SYSSTAT that counts redo writes by flash log; CellCLI does (FL_FLASH_FIRST, FL_DISK_FIRST)"
            .to_owned(),
    )];
    for (view, sight) in sights {
        if let Sight::None(said) = sight {
            let why = format!("{} cannot be read ({said}): {}", view.named(false), view.grant());
            for column in view.columns {
                if !out.iter().any(|(c, _)| c == column) {
                    out.push((column, why.clone()));
                }
            }
        }
    }
    out
}

/// Reads all views that can be read.
pub(super) struct OraObserver {
    session: Box<dyn Session>,
    queries: Vec<(&'static View, String)>,
}

impl OraObserver {
    pub(super) fn new(session: Box<dyn Session>, sights: &[(&'static View, Sight)]) -> OraObserver {
        let queries = sights
            .iter()
            .filter_map(|(view, sight)| match sight {
                Sight::All => Some((*view, view.query(true))),
                Sight::One => Some((*view, view.query(false))),
                Sight::None(_) => None,
            })
            .collect();
        OraObserver { session, queries }
    }
}

impl Observer for OraObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot { at_ns: clock::now_ns(), ..Snapshot::default() };
        for (view, query) in &self.queries {
            let before = clock::now_ns();
            let rows = self.session.query(query, &[])?;
            if view.name == "SYSSTAT" {
                // The counters that rates are made of are of some moment in between.
                snapshot.at_ns = before + clock::now_ns().saturating_sub(before) / 2;
            }
            read(view, &rows, &mut snapshot);
        }
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Row> {
        rows.iter().map(|r| r.iter().map(|v| Some((*v).to_owned())).collect()).collect()
    }

    #[test]
    fn counters_get_their_neutral_names() {
        let mut s = Snapshot::default();
        read(&VIEWS[0], &rows(&[&["redo size", "123456"], &["user commits", "7"], &["redo writes", "0"]]), &mut s);
        assert_eq!((s.counters[counter::REDO_BYTES], s.counters[counter::COMMITS]), (123_456.0, 7.0));
        assert_eq!(s.counters["v$sysstat.redo writes"], 0.0);
        assert!(!s.counters.contains_key(counter::REDO_WRITES), "0 is not what the log writer did");
        read(&VIEWS[1], &rows(&[&["log file sync", "7", "4200"]]), &mut s);
        assert_eq!(
            (s.counters[counter::LOG_WAIT_NS], s.counters["v$system_event.log file sync.total_waits"]),
            (4_200_000.0, 7.0)
        );
    }

    #[test]
    fn cpu_times_are_those_of_the_machine() {
        let mut s = Snapshot::default();
        let stat = [
            ("NUM_CPUS", "80"),
            ("BUSY_TIME", "1905713"),
            ("IDLE_TIME", "12222778"),
            ("USER_TIME", "1560943"),
            ("SYS_TIME", "224397"),
            ("IOWAIT_TIME", "569321"),
        ];
        let all: Vec<Row> = stat.iter().map(|(n, v)| vec![Some((*n).to_owned()), Some((*v).to_owned())]).collect();
        read(&VIEWS[3], &all, &mut s);
        // User, nice, system, idle without iowait, iowait, the rest of busy: together busy + idle.
        assert_eq!(s.proc_stat.as_deref(), Some("cpu  1560943 0 224397 11653457 569321 120373 0 0 0 0"));
        let sum: f64 = s.proc_stat.clone().unwrap().split_whitespace().skip(1).map(|v| v.parse::<f64>().unwrap()).sum();
        assert_eq!(sum, 1_905_713.0 + 12_222_778.0);
        read(&VIEWS[3], &rows(&[&["NUM_CPUS", "2"]]), &mut s);
        assert_eq!(s.proc_stat, None, "no time, no figure");
    }

    #[test]
    fn what_cannot_be_read_is_absent_with_the_grant_to_ask_for() {
        let no = || Sight::None("ORA-00942: table or view does not exist".into());
        let absent = absent(&[(&VIEWS[0], no()), (&VIEWS[1], no()), (&VIEWS[2], Sight::All), (&VIEWS[3], Sight::One)]);
        let why = |id: &str| absent.iter().find(|(c, _)| *c == id).map(|(_, w)| w.clone());
        assert!(why("redo_mib_per_s").unwrap().contains("GRANT SELECT ON SYS.GV_$SYSSTAT"));
        assert!(why("cpu_busy_pct").is_none() && why("flash_cache_write_pct").is_some());
        for (id, _) in &absent {
            assert!(loadline_model::column::column(id).is_some(), "{id} is a column");
            assert_eq!(absent.iter().filter(|(c, _)| c == id).count(), 1, "{id} once");
        }
    }
}
