//! Checks the server for what would spoil the figures of a run, and the user's privileges.

use std::collections::BTreeMap;
use std::sync::Arc;

use loadline_model::format::bytes;
use loadline_model::{Capabilities, Capability, Driver, Finding, Severity};
use loadline_workload::{CATALOGUE, Workload};

use super::cache;
use super::instance::MysqlInstance;
use super::knowledge::{Grant, KNOWLEDGE, Version, message};
use super::performance::CommitTimes;
use super::server::{Mysql, NOWAIT};
use super::settings::MysqlSettings;
use super::wire::Connection;
use crate::cloud::Cloud;
use crate::descriptor::Release;
use crate::error::{TargetError, unless_refused};
use crate::flavour::Flavour;
use crate::kind::{Lack, lacking};
use crate::role::{Doctor, GrantSql, JobLimit, Privilege};
use crate::rules::{self, Known, SettingValues};
use crate::storage::in_memory;

/// Inputs of the rules beside the settings, by name.
type Facts = BTreeMap<&'static str, String>;

impl Doctor for Mysql {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let find = |instance: &MysqlInstance| {
            instance.admin(|c| {
                let settings = MysqlSettings::read(c)?;
                let facts = ask(c, &settings, instance)?;
                Ok(judge(&settings, facts, &privileges(c)?))
            })
        };
        let at = |instance: &MysqlInstance| Ok((instance.endpoint.config.place(), find(instance)?));
        let all = self.nodes.instances.iter().map(at).collect::<Result<Vec<_>, TargetError>>()?;
        Ok(of_all(&all, self.server.is_some()))
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        self.first().admin(privileges)
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let private = self.server.is_some();
        let (mut missing, mut by_setting, mut checkpoints) = (Vec::<Lack>::new(), Vec::new(), Vec::new());
        // Of a private server the plan knew it.
        if !private && self.nodes.instances.iter().any(|instance| instance.version.is_mariadb()) {
            missing.extend(lacking("mariadb"));
        }
        for instance in &self.nodes.instances {
            let (local_infile, flush, no_checkpoint) = instance.admin(|c| {
                let flush = c.number("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")?;
                Ok((c.value("SELECT @@GLOBAL.local_infile")?, flush, cache::flush_refusal(c)?))
            })?;
            let labelled = |why: &str| self.labelled(instance, why.to_owned());
            if local_infile.as_deref() != Some("1") {
                missing.push((Driver::Client, Capability::BulkLoad, labelled(&message("no-local-infile", &[]))));
            }
            if let Some(why) = no_checkpoint {
                checkpoints.extend(Driver::ALL.map(|d| (d, Capability::Checkpoint, labelled(&why))));
            }
            // loadline itself changes it on private servers only, where it is what was given.
            let given = if private { None } else { flush };
            let value = given.map_or(instance.settings.flush(), |value| value as u8);
            let waits = matches!(value, 1 | 3);
            if waits && private {
                continue;
            }
            let (capability, why) = match waits {
                true => (Capability::CommitNowait, "commits-wait"),
                false => (Capability::CommitWait, "commits-do-not-wait"),
            };
            let temp = if instance.version.is_mariadb() { "mariadb-temp" } else { "mysql-temp" };
            let (value, nowait) = (value.to_string(), NOWAIT.to_string());
            let parts = [("value", value.as_str()), ("nowait", &nowait), ("temp", temp)];
            let why = labelled(&KNOWLEDGE.notes.text(why, &parts));
            // What a procedure cannot do whatever the setting is comes first.
            let others = Driver::ALL.into_iter().filter(|d| !missing.iter().any(|m| (m.0, m.1) == (*d, capability)));
            by_setting.extend(others.map(|d| (d, capability, "innodb_flush_log_at_trx_commit")));
            missing.extend(Driver::ALL.map(|d| (d, capability, why.clone())));
        }
        missing.extend(checkpoints);
        Ok(Capabilities { missing, by_setting, ..Capabilities::default() })
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        self.nodes.job_limit(true, |i| Ok((i.admin(job_limit)?, i.endpoint.config.place())))
    }
}

/// Findings of all servers by their places: once what all of a private cluster have, and of a user's servers each with its place.
fn of_all(all: &[(String, Vec<Finding>)], private: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, finding) in all.iter().flat_map(|(at, found)| found.iter().map(move |finding| (at, finding))) {
        let is_common = all.iter().all(|(_, found)| found.contains(finding)) && (private || all.len() == 1);
        let subject = if is_common { finding.subject.clone() } else { format!("{} ({at})", finding.subject) };
        let finding = Finding { subject, ..finding.clone() };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

/// Facts that the server and its machine must be asked for.
fn ask(c: &mut Connection, settings: &MysqlSettings, instance: &MysqlInstance) -> Result<Facts, TargetError> {
    let MysqlInstance { version, local, times, .. } = instance;
    let ignores_read_only = ignores_read_only(&lines(c)?, version);
    let at_work = KNOWLEDGE.at_work_for_the_server.at(version.release);
    let at_work = unless_refused(at_work.map_or(Ok(None), |sql| c.number(sql)))?.unwrap_or(0.0);
    let others_running = threads(c, "running")? - at_work - 1.0;
    let commit_times = match times {
        CommitTimes::Absent(why) => why,
        CommitTimes::Partial => "partial",
        CommitTimes::Timed(_) => "timed",
    };
    let memory = if *local { std::fs::read_to_string("/proc/meminfo").ok() } else { None };
    let memory = memory.and_then(|text| crate::machine::total_memory(&text)).map(|bytes| bytes as f64);
    let pool = settings.number("innodb_buffer_pool_size").unwrap_or(0.0);
    let (log_dir, flavour) = (settings.log_dir(), instance.endpoint.recognised.flavour());
    let yes = |is: bool| is.then(|| "yes".to_owned());
    let facts = [
        ("version", Some(format!("{} {}", version.product(), version.text))),
        ("product", Some(version.product().to_owned())),
        ("flavour", flavour.map(|flavour| flavour.name.clone())),
        ("flavour_advice", flavour.and_then(Flavour::advice).map(str::to_owned)),
        ("others_running", Some(format!("{:.0}", others_running.max(0.0)))),
        ("commit_times", Some(commit_times.to_owned())),
        ("memory", memory.map(bytes)),
        ("pool_too_large", yes(memory.is_some_and(|memory| pool > memory * 0.9))),
        ("ignores_read_only", yes(ignores_read_only)),
        ("log_in_memory", (*local && in_memory(&log_dir) == Some(true)).then(|| log_dir.display().to_string())),
    ];
    Ok(facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Whether an account with these lines of SHOW GRANTS may write although `read_only` is on.
fn ignores_read_only(lines: &[String], version: &Version) -> bool {
    let mut global = lines.iter().filter_map(|line| split_grant(line)).filter(|(_, place)| *place == "*.*");
    global.any(|(privileges, _)| KNOWLEDGE.ignore_read_only.all(version.release).any(|name| privileges.contains(name)))
}

/// Findings from what was read; `facts` are those of [`ask`].
fn judge(settings: &MysqlSettings, mut facts: Facts, privileges: &[Privilege]) -> Vec<Finding> {
    let number = |name| settings.number(name);
    let log = number("innodb_redo_log_capacity").unwrap_or_else(|| {
        number("innodb_log_file_size").unwrap_or(0.0) * number("innodb_log_files_in_group").unwrap_or(1.0).max(1.0)
    });
    let most = number("max_connections").unwrap_or(151.0);
    let few_statements = number("max_prepared_stmt_count").is_some_and(|statements| statements < most);
    let no_key = |w: &&Arc<Workload>| w.tables.iter().any(|table| table.primary_key().is_none());
    let without_key: Vec<&str> = CATALOGUE.iter().filter(no_key).map(|w| w.code.as_str()).collect();
    facts.extend([
        ("pool", bytes(number("innodb_buffer_pool_size").unwrap_or(0.0))),
        ("redo_log", bytes(log)),
        ("redo_log_bytes", log.to_string()),
        ("few_statements", if few_statements { "yes" } else { "no" }.to_owned()),
        ("without_primary_key", without_key.join(", ")),
        ("no_wait_in_procedures", lacking("mariadb").into_iter().map(|(_, _, why)| why).collect()),
    ]);
    let mut out = rules::judge(&KNOWLEDGE.rules, &Known { settings, facts });
    // Roles may grant what SHOW GRANTS does not show.
    out.extend(privileges.iter().filter_map(|p| p.finding(Severity::Refused)));
    out.extend(settings.cloud().map(Cloud::finding));
    out
}

/// Number of the server's sessions that are `running`, or `connected`.
fn threads(c: &mut Connection, what: &str) -> Result<f64, TargetError> {
    let shown = c.shown("GLOBAL STATUS", [format!("Threads_{what}")])?;
    Ok(shown.into_values().next().and_then(|n| n.parse().ok()).unwrap_or(1.0))
}

fn job_limit(c: &mut Connection) -> Result<JobLimit, TargetError> {
    /// Sessions that loadline needs beside its jobs: counters, lock, administration, cancelling.
    const OWN: f64 = 4.0;
    let others = threads(c, "connected")? - 1.0;
    let most = c.number("SELECT @@GLOBAL.max_connections")?.unwrap_or(151.0);
    let mut limit = (most - others - OWN).max(0.0);
    let mut because =
        format!("max_connections = {most:.0} ({others:.0} in use by others, {OWN:.0} for loadline itself)");
    let of_user = c.number("SELECT @@SESSION.max_user_connections")?.filter(|n| *n > 0.0);
    if let Some(of_user) = of_user.filter(|n| n - OWN < limit) {
        limit = (of_user - OWN).max(0.0);
        because = format!("max_user_connections = {of_user:.0}, of which loadline needs {OWN:.0}");
    }
    Ok(JobLimit { jobs: Some(limit as u32), because })
}

/// The lines of SHOW GRANTS, in capitals, those of active roles included.
fn lines(c: &mut Connection) -> Result<Vec<String>, TargetError> {
    // MariaDB shows the grants of the current role anyway.
    let roles =
        if c.version.is_mariadb() { None } else { c.value("SELECT CURRENT_ROLE()")?.filter(|roles| roles != "NONE") };
    let using = roles.map_or(String::new(), |roles| format!(" FOR CURRENT_USER() USING {roles}"));
    let rows = c.query(&format!("SHOW GRANTS{using}"))?;
    Ok(rows.into_iter().flatten().flatten().map(|line| line.to_uppercase()).collect())
}

fn privileges(c: &mut Connection) -> Result<Vec<Privilege>, TargetError> {
    let lines = lines(c)?;
    let account = c.value(&KNOWLEDGE.queries.text("account", &[]))?.unwrap_or_default();
    let on = c.number("SELECT @@GLOBAL.performance_schema")? == Some(1.0);
    Ok(granted(&lines, &account, c.version.release, on))
}

/// Whether the pattern of a grant (`load%`, `load\_line`) covers `text`.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'%', rest @ ..], _) => (0..=text.len()).any(|from| text.get(from..).is_some_and(|text| is_like(rest, text))),
        ([b'\\', c, rest @ ..], [t, text @ ..]) => c == t && is_like(rest, text),
        ([b'_', rest @ ..], [_, text @ ..]) => is_like(rest, text),
        ([c, rest @ ..], [t, text @ ..]) => c == t && is_like(rest, text),
        _ => false,
    }
}

/// Privileges and place of a line of SHOW GRANTS. The account after them may have the name of a privilege.
fn split_grant(line: &str) -> Option<(&str, &str)> {
    let (privileges, rest) = line.split_once(" ON ")?;
    Some((privileges, rest.split_once(" TO ")?.0))
}

/// `performance_schema`: whether the server has it, for which one of them is.
fn granted(lines: &[String], account: &str, release: Release, performance_schema: bool) -> Vec<Privilege> {
    let split = lines.iter().filter_map(|line| split_grant(line));
    let split: Vec<(&str, String)> = split.map(|(what, place)| (what, place.replace('`', ""))).collect();
    let privilege = |grant: &'static Grant| {
        let (_, place) = grant.sql.split_once(" ON ")?;
        let place = place.to_uppercase();
        let here = |of: &str| of == "*.*" || is_like(of.as_bytes(), place.as_bytes());
        let shows = |what: &str| grant.shown.iter().any(|name| what.contains(name)) || what.contains("ALL PRIVILEGES");
        // What comes from a wider grant, or from a role, cannot be taken back by itself.
        let by_itself =
            |(what, of): &(&str, String)| *of == place && grant.shown.first().is_some_and(|name| what.contains(name));
        let mut sql = GrantSql::for_role(&grant.sql, account);
        sql.revoke.take_if(|_| !split.iter().any(by_itself));
        // What is in the database may be others': `loadline clean` drops what is loadline's.
        let before = grant.before.clone().map(|grant| GrantSql { grant, revoke: None });
        Some(Privilege {
            sql: before.into_iter().chain([sql]).collect(),
            gives: &grant.gives,
            granted: split.iter().any(|(what, of)| here(of) && shows(what)),
            used: grant.used,
        })
    };
    let there = |grant: &&Grant| grant.versions.has(release) && (performance_schema || !grant.performance_schema);
    KNOWLEDGE.grants.iter().filter(there).filter_map(privilege).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cases::cases;

    type Texts = BTreeMap<String, String>;

    /// Ids and severities of the findings of a good server, but for these settings and facts.
    fn found(changed: Texts, facts: Texts) -> Vec<(String, Severity)> {
        let mut settings: Texts = cases("mysql-good").into_iter().collect();
        settings.extend(changed);
        let good = [("product", "MariaDB"), ("others_running", "0"), ("commit_times", "timed")];
        let good = good.into_iter().map(|(name, value)| (name, value.to_owned()));
        let facts = good.chain(facts.into_iter().map(|(name, value)| (&*name.leak(), value))).collect();
        judge(&MysqlSettings(settings), facts, &[]).into_iter().map(|f| (f.id, f.severity)).collect()
    }

    #[test]
    fn what_spoils_the_figures_is_found_by_its_setting() {
        let good = found(Texts::new(), Texts::new());
        assert!(good.iter().all(|(_, severity)| *severity == Severity::Ok), "{good:?}");
        let ids = "version innodb_flush_log_at_trx_commit log_bin innodb_doublewrite innodb_flush_method \
                   innodb_buffer_pool_size innodb_log_file_size read_only query_cache_type general_log slow_query_log sql_mode \
                   character_set_server performance_schema other-sessions commit-in-procedures";
        assert_eq!(good.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(" "), ids);
        for (changed, facts, id, severity) in cases::<(Texts, Texts, String, Severity)>("mysql-doctor") {
            let what = format!("{changed:?} {facts:?}");
            let found = found(changed, facts);
            assert!(found.contains(&(id.clone(), severity)), "{what}: {id} in {found:?}");
            // Nothing else is found, but what follows from a binary log.
            let others = found.iter().filter(|of| of.0 != id && !good.contains(of) && !of.0.contains("_bin"));
            assert_eq!(others.count(), 0, "{what}: {found:?}");
        }
    }

    #[test]
    fn what_differs_between_nodes_has_its_place() {
        let of = |subject: &str| Finding::new("id", Severity::Ok, subject, "", "");
        let all = [("n1".to_owned(), vec![of("a"), of("b")]), ("n2".to_owned(), vec![of("a")])];
        let subjects =
            |all: &[_], private| of_all(all, private).into_iter().map(|f| f.subject).collect::<Vec<_>>().join(", ");
        assert_eq!(subjects(&all, true), "a, b (n1)");
        assert_eq!(subjects(&all, false), "a (n1), b (n1), a (n2)");
        assert_eq!(subjects(&all[..1], false), "a, b");
    }

    #[test]
    fn privileges_and_not_names_ignore_read_only() {
        for (grant, version, ignores) in cases::<(String, String, bool)>("mysql-read-only") {
            let version = Version::parse(&version);
            assert_eq!(ignores_read_only(std::slice::from_ref(&grant), &version), ignores, "{grant} {version:?}");
        }
    }

    #[test]
    fn what_is_missing_follows_from_the_grants() {
        for (lines, missing) in cases::<(Vec<String>, Vec<String>)>("mysql-grants") {
            let lines: Vec<String> = lines.iter().map(|l| l.to_uppercase()).collect();
            let release = Release { product: crate::descriptor::Product::Mariadb, number: [10, 11, 6] };
            let lacking = granted(&lines, "'ann'@'%'", release, true).into_iter().filter(|p| !p.granted);
            let found: Vec<String> = lacking.map(|p| p.sql.last().unwrap().grant.clone()).collect();
            let wanted = missing.iter().map(|what| format!("GRANT {what} TO 'ann'@'%'"));
            assert_eq!(found, wanted.collect::<Vec<_>>(), "{lines:?}");
        }
    }
}
