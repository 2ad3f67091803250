//! The database's counters, none of which needs the Diagnostics Pack: `V$SYSSTAT`, `V$SYSTEM_EVENT`,
//! `V$EVENT_HISTOGRAM_MICRO` and `V$OSSTAT` (Database Reference). They count from the start of the instance.
//! The `GV$` views cover all instances of a cluster.

use std::collections::BTreeMap;

use loadline_model::snapshot::WaitSample;
use loadline_model::{Column, Snapshot, column};

use super::descriptor::{KNOWLEDGE, View};
use super::session::{MODULE, OraSession, Row};
use crate::error::TargetError;
use crate::role::{Observer, SessionTasks};
use crate::scope::Scope;

/// The view of what sessions wait for now. It needs no Diagnostics Pack either: only its history does.
const SESSIONS: &str = "SESSION";

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
        self.select.replace("{view}", &self.named(all_instances))
    }

    /// Columns without a figure if it cannot be read.
    pub(super) fn columns(&self) -> &'static [&'static Column] {
        match self.name.as_str() {
            "SYSSTAT" => &column::REDO_AND_COMMITS,
            "SYSTEM_EVENT" => &[column::LOG_FILE_SYNC_MS],
            "OSSTAT" => &column::CPU_SHARES,
            _ => &[],
        }
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
    for view in &KNOWLEDGE.views {
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

/// Adds a view's rows to `snapshot`, under names like `v$sysstat.redo size`, and its neutral counters.
pub(super) fn read(view: &View, rows: &[Row], snapshot: &mut Snapshot) {
    let name = view.name.to_lowercase();
    let number = |row: &Row, i: usize| row.get(i).cloned().flatten().and_then(|v| v.parse::<f64>().ok());
    let mut seen: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        let Some(what) = row.first().and_then(Option::as_deref) else { continue };
        let Some(value) = number(row, 1) else { continue };
        let Some(micros) = number(row, 2) else {
            seen.insert(what, value);
            snapshot.counters.insert(format!("v${name}.{what}"), value);
            continue;
        };
        seen.insert(what, micros);
        snapshot.counters.insert(format!("v${name}.{what}.total_waits"), value);
        snapshot.counters.insert(format!("v${name}.{what}.time_waited_micro"), micros);
    }
    for counter in KNOWLEDGE.counters.iter().filter(|counter| counter.view == view.name) {
        if let Some(value) = counter.value(&seen) {
            snapshot.counters.insert(counter.name.clone(), value);
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

/// Why columns have no figure on Oracle, given what can be read and why the flash cache has none.
pub(super) fn absent(views: &[(&'static View, ViewAccess)], no_flash: Option<&str>) -> Vec<(&'static Column, String)> {
    let mut out = Vec::new();
    out.extend(no_flash.map(|why| (column::FLASH_CACHE_WRITE_PCT, why.to_owned())));
    let sampled = views.iter().any(|(v, access)| v.name == SESSIONS && !matches!(access, ViewAccess::None(_)));
    for (view, access) in views {
        let ViewAccess::None(said) = access else { continue };
        let why = format!("{} cannot be read ({said}): {}", view.named(false), view.grant());
        for column in view.columns() {
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
            if view.name == SESSIONS {
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
        SessionTasks { commands: &["oracle", "ora_"], ..SessionTasks::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::snapshot::counter;

    fn view(name: &str) -> &'static View {
        KNOWLEDGE.views.iter().find(|view| view.name == name).unwrap()
    }

    fn rows(rows: &[&[&str]]) -> Vec<Row> {
        rows.iter().map(|r| r.iter().map(|v| Some((*v).to_owned())).collect()).collect()
    }

    #[test]
    fn counters_get_their_neutral_names() {
        let mut s = Snapshot::default();
        read(
            view("SYSSTAT"),
            &rows(&[&["redo size", "123456"], &["user commits", "7"], &["redo writes", "0"]]),
            &mut s,
        );
        assert_eq!((s.counters[counter::REDO_BYTES], s.counters[counter::COMMITS]), (123_456.0, 7.0));
        assert_eq!(s.counters["v$sysstat.redo writes"], 0.0);
        assert!(!s.counters.contains_key(counter::REDO_WRITES), "0 means that the container does not see it");
        read(view("SYSTEM_EVENT"), &rows(&[&["log file sync", "7", "4200"]]), &mut s);
        assert_eq!(
            (s.counters[counter::LOG_WAIT_NS], s.counters["v$system_event.log file sync.total_waits"]),
            (4_200_000.0, 7.0)
        );
    }

    #[test]
    fn the_histograms_of_a_window_become_a_remark() {
        let at = |buckets: &[(&str, &str)]| {
            let all: Vec<Row> = buckets
                .iter()
                .map(|(us, n)| vec![Some(format!("log file sync < {us} us")), Some((*n).to_owned())])
                .collect();
            let mut s = Snapshot::default();
            read(view("EVENT_HISTOGRAM_MICRO"), &all, &mut s);
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
        read(view("OSSTAT"), &all, &mut s);
        // User, nice, system, idle without iowait, iowait, the rest of busy: together busy + idle.
        assert_eq!(s.proc_stat.as_deref(), Some("cpu  1560943 0 224397 11653457 569321 120373 0 0 0 0"));
        let sum: f64 = s.proc_stat.clone().unwrap().split_whitespace().skip(1).map(|v| v.parse::<f64>().unwrap()).sum();
        assert_eq!(sum, 1_905_713.0 + 12_222_778.0);
        read(view("OSSTAT"), &rows(&[&["NUM_CPUS", "2"]]), &mut s);
        assert_eq!(s.proc_stat, None, "no time, no figure");
    }

    #[test]
    fn what_cannot_be_read_is_absent_with_the_grant_to_ask_for() {
        let no = || ViewAccess::None("ORA-00942: table or view does not exist".into());
        let views = |sessions| {
            vec![
                (view("SYSSTAT"), no()),
                (view("SYSTEM_EVENT"), no()),
                (view("EVENT_HISTOGRAM_MICRO"), ViewAccess::All),
                (view("OSSTAT"), ViewAccess::One),
                (view(SESSIONS), sessions),
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
