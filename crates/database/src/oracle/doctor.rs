//! Tries every query and privilege on this server one by one, and says what is missing without it. Writes
//! nothing.

use loadline_model::{Finding, Severity};

use super::block;
use super::counters::{ViewAccess, check_access};
use super::descriptor::{Computed, KNOWLEDGE, PUBLIC, Rule, ValueRule, View};
use super::session::{Bind, NO_VIEW, OraError, OraSession, Row};
use super::sql::quoted;
use crate::error::TargetError;
use crate::role::JobLimit;

/// Redo of a fast log writer, bytes per second, to judge the size of the logs.
const FAST_REDO: f64 = 100.0 * 1024.0 * 1024.0;
/// Log switches at shorter intervals affect the figures, s.
const SHORTEST_SWITCH_S: f64 = 30.0;
/// Oldest supported version.
const OLDEST: u32 = 19;

/// What the server answered.
pub(super) type Answer = Result<Vec<Row>, OraError>;

/// The answers to everything.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    pub(super) version: String,
    pub(super) answers: Vec<(&'static str, Answer)>,
    /// The time of the in-database driver's loop, or why it does not run.
    pub(super) block: Option<Result<Row, OraError>>,
    pub(super) clock: Option<Answer>,
    pub(super) views: Vec<(&'static str, String, ViewAccess)>,
}

impl Answers {
    fn rows(&self, id: &str) -> Option<&Vec<Row>> {
        self.answers.iter().find(|(i, _)| *i == id).and_then(|(_, a)| a.as_ref().ok())
    }

    fn text(&self, id: &str, column: usize) -> Option<&str> {
        self.rows(id)?.first()?.get(column)?.as_deref()
    }

    /// The user's name as a statement takes it, quoted if needed.
    fn user(&self) -> Option<String> {
        let user = self.text("database", 4)?;
        let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_$#".contains(c);
        Some(if user.chars().all(plain) { user.to_owned() } else { quoted(user) })
    }

    /// Whether the user is known to lack the privilege.
    fn lacks(&self, privilege: &str) -> bool {
        let has = |r: &Row| r.first().and_then(Option::as_deref) == Some(privilege);
        self.rows("privileges").is_some_and(|rows| !rows.iter().any(has))
    }

    /// The tablespace of new tables, if the user has no quota there.
    fn tablespace_without_quota(&self) -> Option<&str> {
        let quota = self.text("quota", 1).is_some_and(|q| q != "0");
        self.text("quota", 0).filter(|_| !quota && self.lacks("UNLIMITED TABLESPACE"))
    }

    /// Value of a row whose first column is `name`.
    fn named(&self, id: &str, name: &str) -> Option<&str> {
        let row = self.rows(id)?.iter().find(|r| r.first().and_then(Option::as_deref) == Some(name))?;
        row.get(1)?.as_deref()
    }
}

/// Asks everything.
///
/// # Errors
/// If the session is lost.
pub(super) fn ask(session: &mut dyn OraSession) -> Result<Answers, TargetError> {
    let mut out = Answers { version: session.version(), ..Answers::default() };
    let alive = |e: &OraError| if e.lost { Err(TargetError::from(e.clone())) } else { Ok(()) };
    for q in &KNOWLEDGE.questions {
        let answer = session.query(&q.sql, &[]);
        answer.as_ref().err().map_or(Ok(()), alive)?;
        out.answers.push((&q.id, answer));
    }
    let block = session.call(&block::overhead(10), &[Bind::Out(40)]);
    block.as_ref().err().map_or(Ok(()), alive)?;
    out.block = Some(block);
    let clock = session.query(&block::clock(), &[]);
    clock.as_ref().err().map_or(Ok(()), alive)?;
    out.clock = Some(clock);
    let said = |view: &View| view.grant();
    out.views =
        check_access(session)?.into_iter().map(|(view, access)| (view.name.as_str(), said(view), access)).collect();
    Ok(out)
}

/// Judges the answers. A pure function, so that its tests need no server.
pub(super) fn judge(a: &Answers) -> Vec<Finding> {
    use Severity::{Ok, Refused, Warning};
    let mut out = Vec::new();
    let mut say = |id: &str, severity: Severity, value: &str, advice: &str| {
        out.push(Finding::new(id, severity, id.replace('-', " "), value, advice));
    };
    say("never-run", Warning, "yes", super::NEVER_RUN);
    let major = a.version.split('.').next().and_then(|v| v.parse::<u32>().ok()).unwrap_or(0);
    if major < OLDEST {
        say("version", Refused, &a.version, "loadline is made for Oracle 19c and later: use a newer server");
    } else {
        say("version", Ok, &a.version, "");
    }
    missing_privileges(a, &mut say);
    // One finding for each refused question: what is unknown, and the grant to ask for.
    for (id, answer) in &a.answers {
        let Some(q) = KNOWLEDGE.question(id) else { continue };
        match answer {
            Err(e) => say(id, Warning, &e.text, &format!("unknown: {}. {}", q.without, q.grant)),
            Result::Ok(rows) if rows.is_empty() && *id != "profile" => {
                say(id, Warning, "no rows", &format!("unknown: {}. {PUBLIC}", q.without));
            }
            Result::Ok(_) => {}
        }
    }
    for rule in &KNOWLEDGE.rules {
        match rule {
            Rule::Value(rule) => value(a, rule, &mut say),
            Rule::Computed { computed: Computed::Database } => database(a, &mut say),
            Rule::Computed { computed: Computed::Instances } => instances(a, &mut say),
            Rule::Computed { computed: Computed::RedoLogSize } => redo_log_size(a, &mut say),
            Rule::Computed { computed: Computed::LogWriterStatistics } => log_writer_statistics(a, &mut say),
            Rule::Computed { computed: Computed::User } => user(a, &mut say),
            Rule::Computed { computed: Computed::Driver } => driver(a, &mut say),
        }
    }
    for (name, grant, access) in &a.views {
        let id = format!("v${}", name.to_lowercase());
        match access {
            ViewAccess::All => say(&id, Ok, "readable, all instances", ""),
            ViewAccess::One => {
                let advice =
                    format!("of this instance only: on a cluster the other instances' work is missing. {grant}");
                say(&id, Ok, "readable, this instance", &advice);
            }
            ViewAccess::None(said) => {
                let view = KNOWLEDGE.views.iter().find(|view| view.name == *name);
                let lost = view.map(|v| {
                    let columns = v.columns().iter().map(|c| c.heading());
                    columns
                        .chain((!v.also_missing.is_empty()).then(|| v.also_missing.clone()))
                        .collect::<Vec<_>>()
                        .join(", ")
                });
                say(&id, Warning, said, &format!("missing without it: {}. {grant}", lost.unwrap_or_default()));
            }
        }
    }
    if let Some(user) = a.user() {
        for finding in &mut out {
            finding.advice =
                finding.advice.replace("TO …", &format!("TO {user}")).replace("USER …", &format!("USER {user}"));
        }
    }
    out
}

/// Id of the finding with all missing privileges.
pub(super) const TO_ASK_FOR: &str = "to-ask-the-administrator-for";

/// All missing privileges as statements for the administrator.
fn missing_privileges(a: &Answers, say: Say<'_>) {
    let mut grants = Vec::new();
    if a.lacks("CREATE TABLE") && a.lacks("CREATE ANY TABLE") {
        grants.push("CREATE TABLE");
    }
    if a.lacks("ALTER SYSTEM") {
        grants.push("ALTER SYSTEM");
    }
    let unseen = a.answers.iter().any(|(_, answer)| answer.as_ref().is_err_and(|e| e.is(&[NO_VIEW])));
    if unseen || a.views.iter().any(|(_, _, access)| *access != ViewAccess::All) {
        grants.push("SELECT_CATALOG_ROLE");
    }
    let mut statements = Vec::new();
    let user = a.user().unwrap_or_else(|| "…".to_owned());
    if !grants.is_empty() {
        statements.push(format!("GRANT {} TO {user}", grants.join(", ")));
    }
    if let Some(tablespace) = a.tablespace_without_quota() {
        statements.push(format!("ALTER USER {user} QUOTA 1G ON {tablespace}"));
    }
    if !statements.is_empty() {
        let advice = "all missing privileges at once; other findings say what each is for, and name smaller grants than the role";
        say(TO_ASK_FOR, Severity::Warning, &statements.join("; "), advice);
    }
}

type Say<'a> = &'a mut dyn FnMut(&str, Severity, &str, &str);

/// Applies a rule of one value.
fn value(a: &Answers, rule: &ValueRule, say: Say<'_>) {
    let found = match &rule.named {
        Some(name) => a.named(&rule.question, name),
        None => a.text(&rule.question, rule.column),
    };
    let unset = rule.unset.as_deref().filter(|_| a.rows(&rule.question).is_some());
    let Some(value) = found.or(unset) else { return };
    if let Some((case, severity)) = rule.case(value).and_then(|case| Some((case, case.severity?))) {
        say(&rule.id, severity, value, &case.advice);
    }
}

/// Which database this is.
fn database(a: &Answers, say: Say<'_>) {
    if let Some(name) = a.text("database", 0) {
        let container = a.text("database", 1).unwrap_or("–");
        let instance = a.text("database", 2).unwrap_or("–");
        say("database", Severity::Ok, &format!("{name}, container {container}, instance {instance}"), "");
    }
}

/// The instances of the database.
fn instances(a: &Answers, say: Say<'_>) {
    let rows = a.rows("gv$instance").map_or(&[][..], Vec::as_slice);
    if rows.len() > 1 {
        let advice = "the service chooses the instances of jobs; counters are of all instances. To spread jobs evenly, name an \
                      address of each instance, the first with --target and the others with --node";
        say("cluster", Severity::Ok, &format!("{} instances", rows.len()), advice);
    }
    for row in rows {
        let text: Vec<&str> = row.iter().filter_map(Option::as_deref).collect();
        say("instance", Severity::Ok, &text.join(", "), "");
    }
}

/// Whether the redo logs are so small that their switches affect the figures.
fn redo_log_size(a: &Answers, say: Say<'_>) {
    use Severity::{Ok, Warning};
    let number = |v: &Option<String>| v.as_deref().and_then(|v| v.parse::<f64>().ok());
    let logs: Vec<f64> = a.rows("v$log").into_iter().flatten().filter_map(|r| number(r.get(1)?)).collect();
    if let Some(smallest) = logs.iter().copied().reduce(f64::min) {
        let block = a.text("v$log", 2).unwrap_or("–");
        let size = loadline_model::format::bytes(smallest);
        let value = format!("{} groups, the smallest of {size}, blocks of {block} B", logs.len());
        if smallest / FAST_REDO < SHORTEST_SWITCH_S {
            let advice = format!(
                "a log writer at {}/s fills one in {:.1} s and then switches: create groups of 4 GB or more",
                loadline_model::format::bytes(FAST_REDO),
                smallest / FAST_REDO
            );
            say("redo-log-size", Warning, &value, &advice);
        } else {
            say("redo-log-size", Ok, &value, "");
        }
    }
}

/// Whether the container sees the log writer's statistics.
fn log_writer_statistics(a: &Answers, say: Say<'_>) {
    use Severity::{Ok, Warning};
    let zero = |name: &str| a.named("log-writer-statistics", name).is_none_or(|v| v == "0");
    if a.rows("log-writer-statistics").is_some() {
        let names = ["redo size", "redo writes", "redo blocks written", "redo synch writes", "user commits"];
        let blind: Vec<&str> = names.into_iter().filter(|n| zero(n)).collect();
        if blind.is_empty() {
            say("log-writer-statistics", Ok, "all there", "");
        } else {
            let advice = "this container does not see them, and their columns are missing: connect to the root of the container database";
            say("log-writer-statistics", Warning, &format!("0: {}", blind.join(", ")), advice);
        }
    }
}

/// What the user may do.
fn user(a: &Answers, say: Say<'_>) {
    use Severity::{Ok, Refused, Warning};
    if a.rows("privileges").is_some() {
        if a.lacks("CREATE TABLE") && a.lacks("CREATE ANY TABLE") {
            say("create-table", Refused, "no", "loadline creates tables: GRANT CREATE TABLE TO …");
        } else {
            say("create-table", Ok, "yes", "");
        }
        if a.lacks("ALTER SYSTEM") {
            let advice = "no checkpoint before each test, and calls that hang end only after 60 s: \
                          GRANT ALTER SYSTEM TO …, if the administrator agrees";
            say("alter-system", Warning, "no", advice);
        } else {
            say("alter-system", Ok, "yes: a checkpoint before each test, and calls that hang can be cancelled", "");
        }
        if let Some(tablespace) = a.tablespace_without_quota() {
            let advice = format!("loadline's tables need a quota: ALTER USER … QUOTA 1G ON {tablespace}");
            say("tablespace", Refused, &format!("{tablespace}, no quota"), &advice);
        } else if let Some(tablespace) = a.text("quota", 0) {
            let value = format!("{tablespace}, blocks of {} B", a.text("quota", 2).unwrap_or("–"));
            say("tablespace", Ok, &value, "");
        }
    }
    for row in a.rows("profile").into_iter().flatten() {
        let text = |i: usize| row.get(i).and_then(Option::as_deref).unwrap_or("–");
        let timed = ["IDLE_TIME", "CONNECT_TIME", "CPU_PER_CALL", "CPU_PER_SESSION", "LOGICAL_READS_PER_CALL"];
        if text(0) == "SESSIONS_PER_USER" {
            say(
                "sessions_per_user",
                Ok,
                text(1),
                "the profile's limit of sessions; loadline needs 3 of them beside the jobs",
            );
        } else if timed.contains(&text(0)) {
            let advice = "the profile ends sessions that take longer, possibly in the middle of a test";
            say("profile-limit", Warning, &format!("{} = {}", text(0), text(1)), advice);
        }
    }
}

/// Whether each part that the drivers need works, and so the two drivers.
fn driver(a: &Answers, say: Say<'_>) {
    use Severity::{Ok, Warning};
    const TELL: &str = "tell us, and run with --driver client";
    let number =
        |row: Option<&Row>| row.and_then(|r| r.first()).and_then(Option::as_deref).and_then(|v| v.parse::<i64>().ok());
    let mut broken = Vec::new();
    match a.text("utl_raw", 0) {
        Some("4F41") => say("utl_raw", Ok, "works", ""),
        other => {
            broken.push("UTL_RAW");
            if let Some(other) = other {
                say("utl_raw", Warning, other, &format!("not the expected result: {TELL}"));
            }
        }
    }
    match &a.block {
        Some(Result::Ok(row)) if number(Some(row)).is_some() => {
            let ns = number(Some(row)).unwrap_or_default();
            say("in-database-block", Ok, &format!("works; its loop takes {ns} ns"), "");
        }
        Some(answer) => {
            broken.push("the block");
            let said = answer.as_ref().map_or_else(|e| e.text.clone(), |row| format!("returned {row:?}"));
            say("in-database-block", Warning, &said, &format!("does not run: {TELL}"));
        }
        None => broken.push("the block"),
    }
    match &a.clock {
        Some(Result::Ok(rows)) if number(rows.first()).is_some() => say("clock", Ok, "works", ""),
        Some(answer) => {
            broken.push("the clock");
            let said = answer.as_ref().map_or_else(|e| e.text.clone(), |rows| format!("returned {rows:?}"));
            say("clock", Warning, &said, &format!("cannot be read: {TELL}"));
        }
        None => broken.push("the clock"),
    }
    say("client-driver", Ok, "connects and runs queries", "");
    if broken.is_empty() {
        say("database-driver", Ok, "all its parts work", "");
    } else {
        let advice = "run with --driver client; the findings of its parts say why";
        say("database-driver", Warning, &format!("does not work: {}", broken.join(", ")), advice);
    }
    let advice = "a first run shows whether they work: loadline run --jobs 1 --duration 2s --target …";
    say("not-tried", Ok, "creating tables, changing rows, commits (the doctor writes nothing)", advice);
}

/// The highest number of jobs, with three sessions reserved for loadline itself.
pub(super) fn job_limit(session: &mut dyn OraSession) -> Result<JobLimit, TargetError> {
    let mut limit: Option<(i64, String)> = None;
    let mut unknown = Vec::new();
    let mut tighten = |free: i64, because: String| {
        if limit.as_ref().is_none_or(|(l, _)| free < *l) {
            limit = Some((free, because));
        }
    };
    for id in ["gv$resource_limit", "profile"] {
        let Some(q) = KNOWLEDGE.question(id) else { continue };
        let rows = match session.query(&q.sql, &[]) {
            Ok(rows) => rows,
            Err(e) if e.lost => return Err(e.into()),
            Err(e) => {
                unknown.push(format!("{id} cannot be read: {}", e.text));
                continue;
            }
        };
        for row in rows {
            let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_default();
            let number = |i: usize| text(i).trim().parse::<i64>().ok();
            match (id, text(0).as_str()) {
                ("profile", "SESSIONS_PER_USER") => {
                    if let Some(most) = number(1) {
                        tighten(most - 3, format!("the profile's SESSIONS_PER_USER = {most} (3 for loadline itself)"));
                    }
                }
                ("gv$resource_limit", name) => {
                    // UNLIMITED does not parse.
                    if let (Some(used), Some(most)) = (number(1), number(2)) {
                        // This session is one of those in use.
                        tighten(most - used - 2, format!("{name} = {most} ({used} in use, 3 for loadline itself)"));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(match limit {
        Some((free, because)) => JobLimit { jobs: Some(u32::try_from(free.max(0)).unwrap_or(u32::MAX)), because },
        None => JobLimit { jobs: None, because: unknown.join("; ") },
    })
}
