//! Tries every query and privilege on this server one by one, and says what is missing without it. Writes
//! nothing. What the answers mean is in `oracle.toml`; here are the facts that take arithmetic.

use std::collections::BTreeMap;

use loadline_model::format::bytes;
use loadline_model::{Finding, Severity};

use super::block;
use super::cluster::{Oracle, is_forbidden};
use super::counters::{ViewAccess, check_access};
use super::knowledge::{KNOWLEDGE, PUBLIC, View};
use super::session::{NO_VIEW, OraError, OraSession, Row, answered, number, text};
use crate::error::TargetError;
use crate::role::{Doctor, FreeSpace, GrantSql, JobLimit, Privilege, Use};
use crate::rules::{self, Known};

/// Redo of a fast log writer, bytes per second, to judge the size of the logs.
const FAST_REDO: f64 = 100.0 * 1024.0 * 1024.0;
/// Id of the finding with all missing privileges.
const TO_ASK_FOR: &str = "to-ask-the-administrator-for";

struct Answers {
    version: String,
    answers: BTreeMap<&'static str, Result<Vec<Row>, OraError>>,
    views: Vec<(&'static View, ViewAccess)>,
}

impl Answers {
    fn read(session: &mut dyn OraSession) -> Result<Answers, TargetError> {
        let mut answers = BTreeMap::new();
        for question in &KNOWLEDGE.questions {
            answers.insert(question.id.as_str(), answered(session.query(&question.sql, &[]))?);
        }
        let block = session.call(&block::overhead(10), &[], &[40]);
        answers.insert("block", answered(block.map(|row| vec![row]))?);
        answers.insert("clock", answered(session.query(&block::clock(), &[]))?);
        Ok(Answers { version: session.version(), answers, views: check_access(session)? })
    }

    fn rows(&self, id: &str) -> Option<&Vec<Row>> {
        self.answers.get(id)?.as_ref().ok()
    }

    /// Statement of each answer by itself.
    fn plain_facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut add = |name: &str, value: Option<&str>| facts.extend(value.map(|v| (name.to_owned(), v.to_owned())));
        for question in &KNOWLEDGE.questions {
            let Some(rows) = self.rows(&question.id) else { continue };
            if !question.facts.is_empty() {
                let row = rows.first().map_or(&[][..], Vec::as_slice);
                question.facts.iter().zip(row).for_each(|(name, value)| add(name, value.as_deref()));
                continue;
            }
            add(&question.id, Some("yes"));
            for row in rows {
                // A list of names has no values.
                add(text(row, 0).unwrap_or_default(), if row.len() == 1 { Some("yes") } else { text(row, 1) });
            }
        }
        facts
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = self.plain_facts();
        let has = |name: &str| facts.contains_key(name);
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let instances = self.rows("gv$instance").filter(|rows| !rows.is_empty());
        let listed = |row: &Row| row.iter().filter_map(Option::as_deref).collect::<Vec<_>>().join(", ");
        let logs: Vec<f64> = self.rows("v$log").into_iter().flatten().filter_map(|row| number(row, 1)).collect();
        let smallest = logs.iter().copied().reduce(f64::min);
        let names = ["redo size", "redo writes", "redo blocks written", "redo synch writes", "user commits"];
        let unseen = names.into_iter().filter(|name| facts.get(*name).is_none_or(|value| value == "0"));
        let unseen: Vec<&str> = unseen.collect();
        let said = if unseen.is_empty() { "all there".to_owned() } else { format!("0: {}", unseen.join(", ")) };
        let privileges = has("privileges");
        let quota = facts.get("quota").is_some_and(|quota| quota != "0") || has("UNLIMITED TABLESPACE");
        let known = [
            ("version", Some(self.version.clone())),
            ("major", self.version.split('.').next().map(str::to_owned)),
            ("instances", instances.map(|rows| rows.len().to_string())),
            ("instances_listed", instances.map(|rows| rows.iter().map(listed).collect::<Vec<_>>().join("; "))),
            ("redo_groups", smallest.map(|_| logs.len().to_string())),
            ("redo_smallest", smallest.map(bytes)),
            ("redo_smallest_bytes", smallest.map(|smallest| smallest.to_string())),
            ("redo_switch_s", smallest.map(|smallest| format!("{:.1}", smallest / FAST_REDO))),
            ("fast_redo", smallest.map(|_| bytes(FAST_REDO))),
            ("log-writer-statistics", self.rows("log-writer-statistics").map(|_| said)),
            ("create-table", privileges.then(|| yes(has("CREATE TABLE") || has("CREATE ANY TABLE")))),
            ("alter-system", privileges.then(|| yes(has("ALTER SYSTEM")))),
            ("tablespace_without_quota", (privileges && has("tablespace") && !quota).then(|| yes(true))),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut more: Vec<(&str, String)> = known.collect();
        let mut broken = if facts.get("utl_raw").is_some_and(|hex| hex == "4F41") { vec![] } else { vec!["UTL_RAW"] };
        for (name, error, part) in [("block", "block_error", "the block"), ("clock", "clock_error", "the clock")] {
            let said = match &self.answers[name] {
                Err(e) => e.text.clone(),
                Ok(rows) => match rows.first().and_then(|row| number::<i64>(row, 0)) {
                    None => format!("returned {rows:?}"),
                    Some(value) => {
                        more.push((name, value.to_string()));
                        continue;
                    }
                },
            };
            broken.push(part);
            more.push((error, said));
        }
        more.extend((!broken.is_empty()).then(|| ("broken", broken.join(", "))));
        facts.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        facts
    }

    fn missing_privileges(&self, facts: &BTreeMap<String, String>, user: &str) -> String {
        let lacks = |name: &str| facts.get(name).is_some_and(|value| value == "no");
        let unseen = self.answers.values().any(|answer| answer.as_ref().is_err_and(|e| e.is(NO_VIEW)))
            || self.views.iter().any(|(_, access)| *access != ViewAccess::All);
        let grants: Vec<&str> = [
            (lacks("create-table"), "CREATE TABLE"),
            (lacks("alter-system"), "ALTER SYSTEM"),
            (unseen, "SELECT_CATALOG_ROLE"),
        ]
        .into_iter()
        .filter_map(|(missing, grant)| missing.then_some(grant))
        .collect();
        let grants = (!grants.is_empty()).then(|| format!("GRANT {} TO {user}", grants.join(", ")));
        let lacks_quota = facts.contains_key("tablespace_without_quota");
        let quota = if lacks_quota { facts.get("tablespace") } else { None };
        let quota = quota.map(|tablespace| format!("ALTER USER {user} QUOTA 1G ON {tablespace}"));
        grants.into_iter().chain(quota).collect::<Vec<_>>().join("; ")
    }

    fn judge(&self) -> Vec<Finding> {
        use Severity::Warning;
        let facts = self.facts();
        let user = facts.get("user").map(|user| as_identifier(user));
        let finding = |id: &str, severity, value: &str, advice: &str| {
            Finding::new(id, severity, id.replace('-', " "), value, advice)
        };
        let mut out = vec![finding("never-run", Warning, "yes", super::NEVER_RUN)];
        let statements = self.missing_privileges(&facts, user.as_deref().unwrap_or("…"));
        if !statements.is_empty() {
            let advice = "all missing privileges at once; other findings say what each is for, and name smaller grants than the role";
            out.push(finding(TO_ASK_FOR, Warning, &statements, advice));
        }
        // One finding for each refused question: what is unknown, and the grant to ask for.
        for question in &KNOWLEDGE.questions {
            let (said, grant) = match self.answers.get(question.id.as_str()) {
                Some(Err(e)) => (e.text.as_str(), question.grant.as_str()),
                Some(Ok(rows)) if rows.is_empty() && question.id != "profile" => ("no rows", PUBLIC),
                _ => continue,
            };
            out.push(finding(&question.id, Warning, said, &format!("unknown: {}. {grant}", question.without)));
        }
        out.extend(rules::judge(&KNOWLEDGE.rules, &Known { settings: &facts, facts: BTreeMap::new() }));
        for (view, access) in &self.views {
            let (id, grant) = (format!("v${}", view.name.to_lowercase()), view.grant());
            out.push(match access {
                ViewAccess::All => finding(&id, Severity::Ok, "readable, all instances", ""),
                ViewAccess::One => {
                    let why = "of this instance only: on a cluster the other instances' work is missing";
                    finding(&id, Severity::Ok, "readable, this instance", &format!("{why}. {grant}"))
                }
                ViewAccess::None(said) => {
                    finding(&id, Warning, said, &format!("missing without it: {}. {grant}", view.missing()))
                }
            });
        }
        if let Some(user) = user {
            for finding in &mut out {
                let named = finding.advice.replace("TO …", &format!("TO {user}"));
                finding.advice = named.replace("USER …", &format!("USER {user}"));
            }
        }
        out
    }
}

/// A name as a statement takes it, quoted if needed.
fn as_identifier(name: &str) -> String {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_$#".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "")) }
}

impl Doctor for Oracle {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let mut findings = Answers::read(self.service.session("doctor")?.as_mut())?.judge();
        findings.extend(self.examine_awr()?);
        Ok(findings)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        let asked = self.doctor()?.into_iter().find(|f| f.id == TO_ASK_FOR);
        let privilege = |f: Finding| Privilege {
            sql: vec![GrantSql { grant: f.value, revoke: None }],
            gives: "what the findings of `loadline doctor` name",
            granted: false,
            used: Use::Needed,
        };
        Ok(asked.map(privilege).into_iter().collect())
    }

    /// The highest number of jobs, with three sessions reserved for loadline itself.
    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        let mut session = self.admin()?;
        let (mut limits, mut unknown) = (Vec::new(), Vec::new());
        for id in ["gv$resource_limit", "profile"] {
            match answered(session.query(KNOWLEDGE.query(id), &[]))? {
                Ok(rows) => limits.extend(rows.iter().filter_map(limit)),
                Err(e) => unknown.push(format!("{id} cannot be read: {}", e.text)),
            }
        }
        Ok(match limits.into_iter().min_by_key(|(free, _)| *free) {
            Some((free, because)) => JobLimit { jobs: Some(u32::try_from(free.max(0)).unwrap_or(u32::MAX)), because },
            None => JobLimit { jobs: None, because: unknown.join("; ") },
        })
    }

    /// Free space in the files of the user's tablespace at their present size. They may grow, unless DBA_DATA_FILES
    /// shows that they do not. Ignores quotas.
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError> {
        let mut session = self.admin()?;
        let Some(row) = session.query(KNOWLEDGE.query("free-space"), &[])?.into_iter().next() else { return Ok(None) };
        let files = match session.query(KNOWLEDGE.query("files"), &[]) {
            Ok(rows) => rows.first().and_then(|row| Some((number::<u64>(row, 0)?, number::<u64>(row, 1)?))),
            Err(e) if is_forbidden(&e) => None,
            Err(e) => return Err(e.into()),
        };
        let may_grow = match files.filter(|(files, _)| *files > 0) {
            Some((_, 0)) => None,
            Some((files, extending)) => Some(format!("{extending} of its {files} files extend themselves")),
            None => Some(
                "it is unknown whether its files extend themselves: GRANT SELECT ON SYS.DBA_DATA_FILES TO the user"
                    .to_owned(),
            ),
        };
        let place = format!("the files of the tablespace {}", text(&row, 0).unwrap_or_default());
        // A full tablespace has no row of free space.
        Ok(Some(FreeSpace { bytes: number(&row, 1).unwrap_or(0), place, may_grow }))
    }
}

/// Sessions that a limit leaves for jobs. UNLIMITED is no number.
fn limit(row: &Row) -> Option<(i64, String)> {
    let name = text(row, 0)?;
    if name == "SESSIONS_PER_USER" {
        let most: i64 = number(row, 1)?;
        return Some((most - 3, format!("the profile's SESSIONS_PER_USER = {most} (3 for loadline itself)")));
    }
    let (used, most): (i64, i64) = (number(row, 1)?, number(row, 2)?);
    // This session is one of those in use.
    Some((most - used - 2, format!("{name} = {most} ({used} in use, 3 for loadline itself)")))
}
