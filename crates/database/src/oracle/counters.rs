//! The database's counters, none of which needs the Diagnostics Pack: `V$SYSSTAT`, `V$SYSTEM_EVENT`,
//! `V$EVENT_HISTOGRAM_MICRO` and `V$OSSTAT` (Database Reference). They count from the start of the instance.
//! The `GV$` views cover all instances of a cluster.

use std::collections::BTreeMap;

use loadline_model::snapshot::{WaitSample, counter};
use loadline_model::{Column, Snapshot, column};

use super::data_counters;
use super::session::{MODULE, OraSession, Row};
use crate::error::TargetError;
use crate::role::{Observer, SessionTasks};
use crate::scope::Scope;

/// A view, and what is missing without it.
pub(super) struct View {
    /// Name without `V$` and `GV$`.
    pub(super) name: &'static str,
    /// Columns without a figure if it cannot be read.
    pub(super) columns: &'static [&'static Column],
    /// What else is missing then.
    pub(super) also_missing: &'static str,
    /// The query of name, value and perhaps a second value; `{view}` stands for the view.
    select: &'static str,
}

/// All views of counters.
pub(super) static VIEWS: [View; 4] = [
    View {
        name: "SYSSTAT",
        columns: &column::REDO_AND_COMMITS,
        also_missing: "",
        select: "SELECT NAME, SUM(VALUE) FROM {view} WHERE NAME LIKE 'redo %' OR NAME LIKE 'physical %' \
             OR NAME LIKE 'cell %' OR NAME LIKE 'Parallel operations %' OR NAME IN ('user commits', 'user rollbacks', 'execute count', 'user calls', \
             'db block changes', 'undo change vector size') OR NAME IN ({data}) \
             GROUP BY NAME",
    },
    View {
        name: "SYSTEM_EVENT",
        columns: &[column::LOG_FILE_SYNC_MS],
        also_missing: "",
        select: "SELECT EVENT, SUM(TOTAL_WAITS), SUM(TIME_WAITED_MICRO) FROM {view} WHERE EVENT LIKE 'log file %' \
             OR EVENT LIKE 'log buffer %' OR EVENT LIKE 'LGWR%' OR WAIT_CLASS = 'Commit' \
             OR {data} GROUP BY EVENT",
    },
    View {
        name: "EVENT_HISTOGRAM_MICRO",
        columns: &[],
        also_missing: "how log waits, log writes and single-block reads spread",
        select: "SELECT EVENT || ' < ' || TO_CHAR(WAIT_TIME_MICRO) || ' us', SUM(WAIT_COUNT) FROM {view} \
             WHERE EVENT IN ('log file sync', 'log file parallel write', 'db file sequential read', \
             'cell single block physical read') GROUP BY EVENT, WAIT_TIME_MICRO",
    },
    View {
        name: "OSSTAT",
        columns: &column::CPU_SHARES,
        also_missing: "",
        select: "SELECT STAT_NAME, SUM(VALUE) FROM {view} WHERE STAT_NAME IN ('NUM_CPUS', 'BUSY_TIME', 'USER_TIME', \
             'SYS_TIME', 'IDLE_TIME', 'IOWAIT_TIME', 'NICE_TIME') GROUP BY STAT_NAME",
    },
];

/// What sessions wait for now. It needs no Diagnostics Pack either: only its history does.
pub(super) static SESSIONS: View = View {
    name: "SESSION",
    columns: &[],
    also_missing: "what the jobs are waiting for",
    select: "SELECT W, COUNT(*) FROM (SELECT CASE WHEN STATE = 'WAITING' THEN WAIT_CLASS || ':' || EVENT ELSE 'CPU' END AS W \
         FROM {view} WHERE TYPE = 'USER' AND {whose}) GROUP BY W",
};

/// All views that are read.
pub(super) fn views() -> impl Iterator<Item = &'static View> {
    VIEWS.iter().chain([&SESSIONS])
}

/// Wait events of [`SESSIONS`] during which a session waits for the log writer.
pub(super) const LOG_SYNC_EVENTS: &[&str] = &["Commit:log file sync"];

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
        let data = if self.name == "SYSSTAT" { data_counters::STATISTICS } else { data_counters::EVENTS };
        self.select.replace("{view}", &self.named(all_instances)).replace("{data}", data)
    }

    /// The query that checks whether it can be read.
    pub(super) fn probe(&self, all_instances: bool) -> String {
        format!("SELECT COUNT(*) FROM {} WHERE ROWNUM = 1", self.named(all_instances))
    }
}

/// How a view can be read, found once when the target is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ViewAccess {
    /// Over all instances.
    All,
    /// This instance only.
    One,
    /// Not at all, with the server's error.
    None(String),
}

/// Checks how each view can be read.
///
/// # Errors
/// If the session is lost.
pub(super) fn check_access(session: &mut dyn OraSession) -> Result<Vec<(&'static View, ViewAccess)>, TargetError> {
    let mut out = Vec::new();
    for view in views() {
        let mut access = None;
        for all in [true, false] {
            match session.query(&view.probe(all), &[]) {
                Ok(_) => {
                    access = Some(if all { ViewAccess::All } else { ViewAccess::One });
                    break;
                }
                Err(e) if e.lost => return Err(e.into()),
                Err(e) => access = Some(ViewAccess::None(e.text)),
            }
        }
        out.push((view, access.unwrap_or(ViewAccess::None(String::new()))));
    }
    Ok(out)
}

/// Writes that Exadata's flash cache took since the start of the instance.
pub(super) const FLASH: &str = "SELECT SUM(VALUE) FROM {view} WHERE NAME = 'physical write requests optimized'";

/// Why there is no figure of the flash cache, if there is none.
///
/// # Errors
/// If the session is lost.
pub(super) fn no_flash(
    session: &mut dyn OraSession,
    views: &[(&'static View, ViewAccess)],
) -> Result<Option<String>, TargetError> {
    let Some((view, access)) = views.iter().find(|(v, _)| v.name == "SYSSTAT") else { return Ok(None) };
    let all = match access {
        ViewAccess::All => true,
        ViewAccess::One => false,
        // The view's own reason suffices.
        ViewAccess::None(_) => return Ok(None),
    };
    match session.value(&FLASH.replace("{view}", &view.named(all))) {
        Ok(Some(value)) if value.trim().parse::<f64>().is_ok_and(|v| v > 0.0) => Ok(None),
        Ok(_) => Ok(Some(
            "V$SYSSTAT shows 0 for 'physical write requests optimized': this is no Exadata, or its flash cache takes no writes"
                .to_owned(),
        )),
        Err(e) if e.lost => Err(e.into()),
        Err(e) => Ok(Some(e.text)),
    }
}

/// Statistics and their neutral counters. `redo blocks written` are blocks of the log (512 bytes, or 4 KiB if
/// the disks require it). `redo synch writes` counts commits that forced the log to disk and waited, so that
/// commits that did not wait show.
const NEUTRAL: &[(&str, &str)] = &[
    ("user commits", counter::COMMITS),
    ("redo size", counter::REDO_BYTES),
    ("redo writes", counter::REDO_WRITES),
    ("redo synch writes", counter::REDO_SYNCS),
    ("redo blocks written", counter::REDO_BLOCKS),
    // Requests of data files and logs alike, each counted once however many mirrors there are
    // (Exadata System Software User's Guide, "Monitoring Smart Flash Cache").
    ("physical write total IO requests", counter::WRITES),
    ("physical write requests optimized", counter::FLASH_WRITES),
];

/// Adds a view's rows to `snapshot`, under names like `v$sysstat.redo size`.
pub(super) fn read(view: &View, rows: &[Row], snapshot: &mut Snapshot) {
    let name = view.name.to_lowercase();
    let number = |row: &Row, i: usize| row.get(i).cloned().flatten().and_then(|v| v.parse::<f64>().ok());
    let mut seen: BTreeMap<&str, f64> = BTreeMap::new();
    let mut waited: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        let Some(what) = row.first().and_then(Option::as_deref) else { continue };
        let Some(value) = number(row, 1) else { continue };
        seen.insert(what, value);
        match number(row, 2) {
            Some(micros) => {
                waited.insert(what, micros);
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
        for (neutral, value) in parallel(&seen) {
            snapshot.counters.insert(neutral.to_owned(), value);
        }
        data_counters::from_statistics(&seen, &mut snapshot.counters);
    }
    data_counters::from_events(&waited, &mut snapshot.counters);
    if view.name == "OSSTAT" {
        snapshot.proc_stat = proc_stat(&seen);
    }
}

/// Queries that got all parallel servers that they asked for, and those that got fewer or none (Database
/// Reference, "Statistics Descriptions": `Parallel operations not downgraded`, `… downgraded to serial`,
/// `… downgraded 75 to 99 pct` and so on).
fn parallel(seen: &BTreeMap<&str, f64>) -> Vec<(&'static str, f64)> {
    let sum = |prefix: &str| {
        let found: Vec<f64> = seen.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, n)| *n).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>())
    };
    let whole = sum("Parallel operations not downgraded").map(|n| (counter::PARALLEL_WHOLE, n));
    let less = sum("Parallel operations downgraded ").map(|n| (counter::PARALLEL_LESS, n));
    whole.into_iter().chain(less).collect()
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

/// Why columns have no figure on Oracle, given what can be read and why the flash cache has none.
pub(super) fn absent(views: &[(&'static View, ViewAccess)], no_flash: Option<&str>) -> Vec<(&'static Column, String)> {
    let mut out = Vec::new();
    out.extend(no_flash.map(|why| (column::FLASH_CACHE_WRITE_PCT, why.to_owned())));
    let sampled = views.iter().any(|(v, access)| v.name == SESSIONS.name && !matches!(access, ViewAccess::None(_)));
    for (view, access) in views {
        let ViewAccess::None(said) = access else { continue };
        let why = format!("{} cannot be read ({said}): {}", view.named(false), view.grant());
        for column in view.columns {
            // If the sessions can be sampled, log waits are estimated from the samples.
            if !(sampled && *column == column::LOG_FILE_SYNC_MS) {
                out.push((column, why.clone()));
            }
        }
    }
    out
}

/// Remarks on the waits in a window, from their histograms.
pub(super) fn remarks(open: &Snapshot, close: &Snapshot) -> Vec<String> {
    const TIMED: [&str; 4] =
        ["log file sync", "log file parallel write", "db file sequential read", "cell single block physical read"];
    TIMED.iter().filter_map(|event| spread(open, close, event)).collect()
}

/// The times within which half and 99 % of the waits for `event` ended, from V$EVENT_HISTOGRAM_MICRO. Its
/// buckets are named by their upper bounds, each twice the one before.
fn spread(open: &Snapshot, close: &Snapshot, event: &str) -> Option<String> {
    let prefix = format!("v$event_histogram_micro.{event} < ");
    let mut buckets = Vec::new();
    for (name, end) in &close.counters {
        let Some(bound) = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(" us")) else { continue };
        // A bucket exists from its first wait on.
        let grown = end - open.counters.get(name).copied().unwrap_or(0.0);
        if grown < 0.0 {
            return None;
        }
        buckets.push((bound.parse::<u64>().ok()?, grown));
    }
    buckets.sort_unstable_by_key(|(bound, _)| *bound);
    let all: f64 = buckets.iter().map(|(_, n)| n).sum();
    let within = |share: f64| {
        let mut seen = 0.0;
        buckets.iter().find(|(_, n)| {
            seen += n;
            seen >= all * share
        })
    };
    let ((half, _), (most, _)) = (within(0.5)?, within(0.99)?);
    (all > 0.0).then(|| {
        format!("{event}, by V$EVENT_HISTOGRAM_MICRO: of {all:.0} waits half took less than {half} µs, 99 % less than {most} µs")
    })
}

/// The condition of the sessions of `scope` in V$SESSION, for the loadline of `run`.
pub(super) fn whose(scope: Scope, run: &str) -> String {
    let own = if run.is_empty() { String::new() } else { format!("{} ", run.replace('\'', "''")) };
    match scope {
        Scope::Jobs => {
            format!(
                "USERNAME = SYS_CONTEXT('USERENV', 'SESSION_USER') AND MODULE = '{MODULE}' AND ACTION LIKE '{own}job %'"
            )
        }
        Scope::All => format!("NOT (NVL(MODULE, '-') = '{MODULE}' AND NVL(ACTION, '-') LIKE '{own}%')"),
    }
}

/// Reads all views that can be read.
pub(super) struct OraObserver {
    session: Box<dyn OraSession>,
    queries: Vec<(&'static View, String)>,
    /// The query for what jobs wait for, if sessions can be read.
    waits: Option<String>,
}

impl OraObserver {
    /// Reads the `views` that can be read, and samples the sessions of `run` in `scope`.
    pub(super) fn new(
        session: Box<dyn OraSession>,
        views: &[(&'static View, ViewAccess)],
        run: &str,
        scope: Scope,
    ) -> OraObserver {
        let mut queries = Vec::new();
        let mut waits = None;
        for (view, access) in views {
            let query = match access {
                ViewAccess::All => view.query(true),
                ViewAccess::One => view.query(false),
                ViewAccess::None(_) => continue,
            };
            if view.name == SESSIONS.name {
                waits = Some(query.replace("{whose}", &whose(scope, run)));
            } else {
                queries.push((*view, query));
            }
        }
        OraObserver { session, queries, waits }
    }
}

impl Observer for OraObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot { at_ns: loadline_storage::now_ns(), ..Snapshot::default() };
        for (view, query) in &self.queries {
            let before = loadline_storage::now_ns();
            let rows = self.session.query(query, &[])?;
            if view.name == "SYSSTAT" {
                // The counters of the rates are of a moment within this query.
                snapshot.at_ns = before + loadline_storage::now_ns().saturating_sub(before) / 2;
            }
            read(view, &rows, &mut snapshot);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let Some(query) = &self.waits else { return Ok(None) };
        let mut sample = WaitSample::default();
        for row in self.session.query(query, &[])? {
            let mut row = row.into_iter();
            let Some(event) = row.next().flatten() else { continue };
            let sessions = row.next().flatten().and_then(|n| n.trim().parse().ok()).unwrap_or(0);
            sample.sessions.insert(event, sessions);
        }
        Ok(Some(sample))
    }

    fn session_tasks(&mut self) -> SessionTasks {
        // Which processes run the sessions is not asked: names of foreground and background processes.
        SessionTasks { ids: Vec::new(), commands: &["oracle", "ora_"] }
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
        assert!(!s.counters.contains_key(counter::REDO_WRITES), "0 means that the container does not see it");
        read(&VIEWS[1], &rows(&[&["log file sync", "7", "4200"]]), &mut s);
        assert_eq!(
            (s.counters[counter::LOG_WAIT_NS], s.counters["v$system_event.log file sync.total_waits"]),
            (4_200_000.0, 7.0)
        );
    }

    #[test]
    fn parallel_operations_are_counted_by_whether_they_got_all_servers() {
        let mut s = Snapshot::default();
        read(
            &VIEWS[0],
            &rows(&[
                &["Parallel operations not downgraded", "40"],
                &["Parallel operations downgraded to serial", "2"],
                &["Parallel operations downgraded 25 to 50 pct", "3"],
            ]),
            &mut s,
        );
        assert_eq!((s.counters[counter::PARALLEL_WHOLE], s.counters[counter::PARALLEL_LESS]), (40.0, 5.0));
        assert!(VIEWS[0].query(false).contains("'Parallel operations %'"), "they are asked for");
    }

    #[test]
    fn the_flash_cache_counts_only_if_it_takes_writes() {
        let mut s = Snapshot::default();
        let of = |flash: &'static str| {
            rows(&[&["physical write total IO requests", "900"], &["physical write requests optimized", flash]])
        };
        read(&VIEWS[0], &of("0"), &mut s);
        assert!(!s.counters.contains_key(counter::FLASH_WRITES) && s.counters[counter::WRITES] == 900.0);
        read(&VIEWS[0], &of("300"), &mut s);
        assert_eq!(s.counters[counter::FLASH_WRITES], 300.0);
    }

    #[test]
    fn the_histograms_of_a_window_become_a_remark() {
        let at = |buckets: &[(&str, &str)]| {
            let all: Vec<Row> = buckets
                .iter()
                .map(|(us, n)| vec![Some(format!("log file sync < {us} us")), Some((*n).to_owned())])
                .collect();
            let mut s = Snapshot::default();
            read(&VIEWS[2], &all, &mut s);
            s
        };
        let open = at(&[("256", "1000"), ("512", "5")]);
        let close = at(&[("256", "1060"), ("512", "44"), ("16384", "1")]);
        let said = remarks(&open, &close);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("of 100 waits half took less than 256 µs, 99 % less than 512 µs"), "{said:?}");
        assert!(remarks(&close, &close).is_empty(), "no wait, no remark");
        assert!(remarks(&close, &open).is_empty(), "counters that went back say nothing");
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
        let no = || ViewAccess::None("ORA-00942: table or view does not exist".into());
        let views = |sessions| {
            vec![
                (&VIEWS[0], no()),
                (&VIEWS[1], no()),
                (&VIEWS[2], ViewAccess::All),
                (&VIEWS[3], ViewAccess::One),
                (&SESSIONS, sessions),
            ]
        };
        let absent = |sessions| super::absent(&views(sessions), Some("no Exadata"));
        assert!(absent(no()).iter().any(|(c, _)| *c == column::LOG_FILE_SYNC_MS));
        let absent = absent(ViewAccess::All);
        assert!(!absent.iter().any(|(c, _)| *c == column::LOG_FILE_SYNC_MS), "it is estimated from samples");
        let why = |column: &Column| absent.iter().find(|(c, _)| *c == column).map(|(_, w)| w.clone());
        assert!(why(column::REDO_MIB_PER_S).unwrap().contains("GRANT SELECT ON SYS.GV_$SYSSTAT"));
        assert!(why(column::CPU_BUSY_PCT).is_none() && why(column::FLASH_CACHE_WRITE_PCT).is_some());
        for (id, _) in &absent {
            assert_eq!(absent.iter().filter(|(c, _)| c == id).count(), 1, "{id} once");
        }
    }
}
