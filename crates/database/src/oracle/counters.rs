//! The database's counters and statistics views, none of which needs the licence of a pack (Database Reference; Database Licensing
//! Information): `V$SYSSTAT`, `V$SYSTEM_EVENT`, `V$OSSTAT` and `V$THREAD`, SQL statistics, the wait and time models. They count from the start of
//! the instance. The `GV$` views cover all instances of a cluster. A test checks that none of AWR, the history of sessions or that of
//! metrics is named.

use loadline_model::activity::{self, Topic};
use loadline_model::snapshot::WaitSample;
use loadline_model::{Column, Snapshot, column};

use super::knowledge::{KNOWLEDGE, RELEASE, View};
use super::session::{MODULE, NO_VIEW, OraSession, Row, answered, number, text};
use crate::descriptor::{BlockBytes, Counter};
use crate::error::TargetError;
use crate::role::{Observer, Scope, SessionTasks};
use crate::view::ViewQuery;

/// The view of what sessions wait for now. It needs no Diagnostics Pack either: only its history does.
const SESSIONS: &str = "SESSION";

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

pub(super) fn check_access(session: &mut dyn OraSession) -> Result<Vec<(&'static View, ViewAccess)>, TargetError> {
    let mut probe = |view: &View, all| {
        answered(session.query(&format!("SELECT COUNT(*) FROM {} WHERE ROWNUM = 1", view.named(all)), &[]))
    };
    let access = |view: &'static View| -> Result<(&'static View, ViewAccess), TargetError> {
        if probe(view, true)?.is_ok() {
            return Ok((view, ViewAccess::All));
        }
        Ok((view, probe(view, false)?.map_or_else(|e| ViewAccess::None(e.text), |_| ViewAccess::One)))
    };
    KNOWLEDGE.views.iter().map(access).collect()
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
            if column != column::LOG_FILE_SYNC_MS || unreadable(SESSIONS) {
                out.push((column, why.clone()));
            }
        }
    }
    out
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

pub(super) struct OraObserver {
    session: Box<dyn OraSession>,
    queries: Vec<(&'static View, String)>,
    /// The query for what jobs wait for, if sessions can be read.
    waits: Option<String>,
}

impl OraObserver {
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
        // No counter is in units of blocks.
        let block = BlockBytes { data: 1.0, log: 1.0 };
        Counter::fill(&KNOWLEDGE.counters, RELEASE, block, &mut snapshot.counters);
        snapshot.proc_stat = proc_stat(&snapshot);
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

pub(super) fn read_view(session: &mut dyn OraSession, query: &ViewQuery) -> Result<activity::View, TargetError> {
    match answered(session.query(&query.sql, &[]))? {
        Ok(mut rows) => {
            if query.empty.topic == Topic::Settings {
                rows.iter_mut().for_each(|row| hide_secret(row));
            }
            Ok(query.with(rows))
        }
        Err(e) if e.is(NO_VIEW) => Ok(query.absent(format!("{}: GRANT SELECT_CATALOG_ROLE TO the user", e.text))),
        Err(e) => Ok(query.absent(e.text)),
    }
}

fn hide_secret(row: &mut [Option<String>]) {
    if let [Some(name), Some(value)] = row
        && KNOWLEDGE.secret.iter().any(|part| name.contains(part))
    {
        "(set, not shown)".clone_into(value);
    }
}
