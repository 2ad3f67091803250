//! The database's counters, none of which needs the Diagnostics Pack: `V$SYSSTAT`, `V$SYSTEM_EVENT`,
//! `V$EVENT_HISTOGRAM_MICRO` and `V$OSSTAT` (Database Reference). They count from the start of the instance.
//! The `GV$` views cover all instances of a cluster.

use loadline_model::snapshot::WaitSample;
use loadline_model::{Column, Snapshot, column};

use super::knowledge::{KNOWLEDGE, View};
use super::session::{MODULE, OraSession, Row, answered, number, text};
use crate::descriptor::{BlockBytes, Counter, Product, Release};
use crate::error::TargetError;
use crate::role::{Observer, SessionTasks};
use crate::scope::Scope;

/// The view of what sessions wait for now. It needs no Diagnostics Pack either: only its history does.
const SESSIONS: &str = "SESSION";

/// Wait events of [`SESSIONS`] during which a session waits for the log writer.
pub(super) const LOG_SYNC_EVENTS: &[&str] = &["Commit:log file sync"];

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
    let mut probe = |view: &View, all| {
        answered(session.query(&format!("SELECT COUNT(*) FROM {} WHERE ROWNUM = 1", view.named(all)), &[]))
    };
    let mut access = |view: &'static View| -> Result<(&'static View, ViewAccess), TargetError> {
        if probe(view, true)?.is_ok() {
            return Ok((view, ViewAccess::All));
        }
        Ok((view, probe(view, false)?.map_or_else(|e| ViewAccess::None(e.text), |_| ViewAccess::One)))
    };
    KNOWLEDGE.views.iter().map(|view| access(view)).collect()
}

/// Adds a view's rows to `snapshot`, under names like `v$sysstat.redo size`.
fn read(view: &View, rows: &[Row], snapshot: &mut Snapshot) {
    let view_name = view.name.to_lowercase();
    for row in rows {
        let (Some(name), Some(value)) = (text(row, 0), number(row, 1)) else { continue };
        let name = format!("v${view_name}.{name}");
        match number(row, 2) {
            None => drop(snapshot.counters.insert(name, value)),
            Some(micros) => {
                snapshot.counters.insert(format!("{name}.total_waits"), value);
                snapshot.counters.insert(format!("{name}.time_waited_micro"), micros);
            }
        }
    }
}

/// The release of a version such as `19.24.0.0.0`.
fn release(version: &str) -> Release {
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    Release { product: Product::Oracle, number: [(); 3].map(|()| numbers.next().unwrap_or(0)) }
}

/// Adds loadline's counters and the times of the CPUs.
fn derive(release: Release, snapshot: &mut Snapshot) {
    // No counter is in units of blocks.
    let block = BlockBytes { data: 1.0, log: 1.0 };
    Counter::fill(&KNOWLEDGE.counters, release, block, &mut snapshot.counters);
    snapshot.proc_stat = proc_stat(snapshot);
}

/// The line `cpu` of `/proc/stat` with the times of `V$OSSTAT`, in hundredths of a second. There,
/// IDLE_TIME includes IOWAIT_TIME: BUSY_TIME + IDLE_TIME is the time of all CPUs.
fn proc_stat(snapshot: &Snapshot) -> Option<String> {
    let at = |name: &str| snapshot.counters.get(&format!("v$osstat.{name}")).copied();
    let (user, sys, idle) = (at("USER_TIME")?, at("SYS_TIME")?, at("IDLE_TIME")?);
    let (nice, iowait) = (at("NICE_TIME").unwrap_or(0.0), at("IOWAIT_TIME").unwrap_or(0.0));
    // What is busy and neither user, nice nor system: interrupts.
    let other = at("BUSY_TIME").map_or(0.0, |busy| (busy - user - nice - sys).max(0.0));
    let idle = (idle - iowait).max(0.0);
    Some(format!("cpu  {user:.0} {nice:.0} {sys:.0} {idle:.0} {iowait:.0} {other:.0} 0 0 0 0"))
}

/// Why columns have no figure on Oracle, given what can be read.
pub(super) fn absent(views: &[(&'static View, ViewAccess)]) -> Vec<(&'static Column, String)> {
    let unreadable =
        |view: &str| views.iter().any(|(v, access)| v.name == view && matches!(access, ViewAccess::None(_)));
    let mut out = Vec::new();
    if !unreadable("SYSSTAT") {
        let why = "V$SYSSTAT shows 0 for 'physical write requests optimized': this is no Exadata, or its flash cache takes no writes";
        out.push((column::FLASH_CACHE_WRITE_PCT, why.to_owned()));
    }
    for (view, access) in views {
        let ViewAccess::None(said) = access else { continue };
        let why = format!("{} cannot be read ({said}): {}", view.named(false), view.grant());
        for column in view.columns() {
            // If the sessions can be sampled, log waits are estimated from the samples.
            if *column != column::LOG_FILE_SYNC_MS || unreadable(SESSIONS) {
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
    release: Release,
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
        OraObserver { release: release(&session.version()), session, queries, waits }
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
        derive(self.release, &mut snapshot);
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let Some(query) = &self.waits else { return Ok(None) };
        let rows = self.session.query(query, &[])?;
        let event = |row: &Row| Some((text(row, 0)?.to_owned(), number(row, 1).unwrap_or(0)));
        Ok(Some(WaitSample { sessions: rows.iter().filter_map(event).collect(), ..WaitSample::default() }))
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

    /// A snapshot of views with these rows of name, value and perhaps a second value.
    fn snapshot(views: &[(&str, &[&[&str]])]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (view, rows) in views {
            let rows: Vec<Row> = rows.iter().map(|r| r.iter().map(|v| Some((*v).to_owned())).collect()).collect();
            read(KNOWLEDGE.view(view), &rows, &mut snapshot);
        }
        derive(release("19.24.0.0.0"), &mut snapshot);
        snapshot
    }

    #[test]
    fn counters_get_their_neutral_names() {
        let s = snapshot(&[
            (
                "SYSSTAT",
                &[
                    &["redo size", "123456"],
                    &["redo writes", "0"],
                    &["table scan rows gotten", "5"],
                    &["table fetch by rowid", "7"],
                    &["physical write requests optimized", "0"],
                    &["Parallel operations not downgraded", "0"],
                    &["Parallel operations downgraded to serial", "2"],
                    &["Parallel operations downgraded 25 to 50 pct", "3"],
                ],
            ),
            (
                "SYSTEM_EVENT",
                &[
                    &["log file sync", "7", "4200"],
                    &["db file sequential read", "9", "70"],
                    &["cell single block physical read", "9", "5"],
                    &["db file sync", "1", "900"],
                ],
            ),
        ]);
        for (name, want) in [
            (counter::REDO_BYTES, Some(123_456.0)),
            // 0 means that the container does not see it.
            (counter::REDO_WRITES, None),
            (counter::FLASH_WRITES, None),
            (counter::COMMITS, None),
            ("v$sysstat.redo writes", Some(0.0)),
            (counter::ROWS_READ, Some(12.0)),
            ("loadline.parallel_whole", Some(0.0)),
            ("loadline.parallel_less", Some(5.0)),
            (counter::LOG_WAIT_NS, Some(4_200_000.0)),
            ("v$system_event.log file sync.total_waits", Some(7.0)),
            // No such wait so far.
            ("loadline.buffer_wait_ns", Some(0.0)),
            ("loadline.redo_write_ns", None),
            (counter::READ_NS, Some(75_000.0)),
        ] {
            assert_eq!(s.counters.get(name).copied(), want, "{name}");
        }
    }

    #[test]
    fn the_histograms_of_a_window_become_a_remark() {
        let open = snapshot(&[(
            "EVENT_HISTOGRAM_MICRO",
            &[&["log file sync < 256 us", "1000"], &["log file sync < 512 us", "5"]],
        )]);
        let close = snapshot(&[(
            "EVENT_HISTOGRAM_MICRO",
            &[
                &["log file sync < 256 us", "1060"],
                &["log file sync < 512 us", "44"],
                &["log file sync < 16384 us", "1"],
            ],
        )]);
        let said = remarks(&open, &close);
        assert!(said[0].contains("of 100 waits half took less than 256 µs, 99 % less than 512 µs"), "{said:?}");
        assert_eq!(said.len(), 1);
        assert!(remarks(&close, &close).is_empty(), "no wait, no remark");
        assert!(remarks(&close, &open).is_empty(), "counters that went back say nothing");
    }

    #[test]
    fn cpu_times_are_those_of_the_machine() {
        let s = snapshot(&[(
            "OSSTAT",
            &[
                &["NUM_CPUS", "80"],
                &["BUSY_TIME", "1905713"],
                &["IDLE_TIME", "12222778"],
                &["USER_TIME", "1560943"],
                &["SYS_TIME", "224397"],
                &["IOWAIT_TIME", "569321"],
            ],
        )]);
        // User, nice, system, idle without iowait, iowait, the rest of busy: together busy + idle.
        assert_eq!(s.proc_stat.as_deref(), Some("cpu  1560943 0 224397 11653457 569321 120373 0 0 0 0"));
        assert_eq!(1_560_943 + 224_397 + 11_653_457 + 569_321 + 120_373, 1_905_713 + 12_222_778);
        assert_eq!(snapshot(&[("OSSTAT", &[&["NUM_CPUS", "2"]])]).proc_stat, None, "no time, no figure");
    }

    #[test]
    fn what_cannot_be_read_is_absent_with_the_grant_to_ask_for() {
        let absent = |sessions: ViewAccess| {
            let access = |view: &View| match view.name.as_str() {
                "SYSSTAT" | "SYSTEM_EVENT" => ViewAccess::None("ORA-00942".into()),
                SESSIONS => sessions.clone(),
                _ => ViewAccess::One,
            };
            absent(&KNOWLEDGE.views.iter().map(|view| (view, access(view))).collect::<Vec<_>>())
        };
        let ids = |all: &[(&Column, String)]| all.iter().map(|(column, _)| column.id).collect::<Vec<_>>();
        let redo: Vec<&str> = column::REDO_AND_COMMITS.iter().map(|column| column.id).collect();
        let sampled = absent(ViewAccess::All);
        // Log waits are estimated from samples.
        assert_eq!(ids(&sampled), redo);
        assert_eq!(ids(&absent(ViewAccess::None(String::new()))), [redo, vec![column::LOG_FILE_SYNC_MS.id]].concat());
        assert!(sampled[0].1.contains("ORA-00942") && sampled[0].1.contains("GRANT SELECT ON SYS.GV_$SYSSTAT"));
    }
}
