//! Checks the server for what would spoil the figures of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loadline_model::format::bytes;
use loadline_model::{Finding, Severity};
use loadline_workload::{CATALOGUE, Workload};

use super::knowledge::KNOWLEDGE;
use super::performance::CommitTimes;
use super::version::Version;
use super::wire::Connection;
use super::{grants, own_sessions};
use crate::cloud::Cloud;
use crate::error::TargetError;
use crate::flavour::Flavour;
use crate::role::{JobLimit, LogSpace, Privilege};
use crate::rules::{self, Known, SettingValues};
use crate::storage::in_memory;

/// The server's global settings.
#[derive(Debug, Clone, Default)]
pub(super) struct MysqlSettings(pub(super) BTreeMap<String, String>);

impl MysqlSettings {
    /// Reads SHOW GLOBAL VARIABLES.
    pub(super) fn read(c: &mut Connection) -> Result<MysqlSettings, TargetError> {
        let all = c.pairs("SHOW GLOBAL VARIABLES")?;
        Ok(MysqlSettings(all.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }

    /// The managed service that these settings are of.
    pub(super) fn cloud(&self) -> Option<&'static Cloud> {
        Cloud::of(self.0.keys().map(String::as_str).chain(self.get("datadir")))
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| v.eq_ignore_ascii_case("on") || v == "1")
    }

    /// Settings that a run records; none that may hold a secret.
    pub(super) fn recorded(&self) -> BTreeMap<String, String> {
        let wanted = |name: &String| {
            KNOWLEDGE.recorded.contains(name)
                || KNOWLEDGE.recorded_beginnings.iter().any(|begin| name.starts_with(begin.as_str()))
        };
        let kept = self.0.iter().filter(|(name, _)| wanted(name) && !is_secret(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).chain(self.provider_options()).collect()
    }

    /// Those of Galera's options that bound its speed, or how long it waits: `gcache.size = 128M; gcs.fc_limit = 16; …`.
    fn provider_options(&self) -> impl Iterator<Item = (String, String)> {
        let options = self.get("wsrep_provider_options").unwrap_or_default().split(';');
        let options = options.filter_map(|option| option.split_once('=')).map(|(n, v)| (n.trim(), v.trim()));
        options
            .filter(|(n, _)| KNOWLEDGE.recorded_provider_options.iter().any(|name| name == n))
            .map(|(n, v)| (format!("wsrep_provider_options.{n}"), v.to_owned()))
    }
}

impl SettingValues for MysqlSettings {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)
    }

    fn number(&self, name: &str) -> Option<f64> {
        MysqlSettings::number(self, name)
    }
}

/// Whether the setting may hold a secret, as the statements of `init_connect`. Settings about keys of tables hold none.
pub(super) fn is_secret(name: &str) -> bool {
    let has = |parts: &[String]| parts.iter().any(|part| name.contains(part.as_str()));
    has(&KNOWLEDGE.secret) && !has(&KNOWLEDGE.no_secret)
}

/// The server's state besides its settings.
#[derive(Debug, Clone, Default)]
pub(super) struct MysqlState {
    pub(super) version: Version,
    pub(super) privileges: Vec<Privilege>,
    /// Whether the user may write despite `read_only`. From MariaDB 10.11 on SUPER does not allow it.
    pub(super) ignores_read_only: bool,
    /// Running sessions of others.
    pub(super) others_running: f64,
    /// Memory of the server's machine, bytes; `None` if it is another machine.
    pub(super) memory: Option<f64>,
    /// Whether the log is in main memory; `false` on another machine.
    pub(super) log_in_memory: bool,
    /// Whether performance_schema times commits.
    pub(super) times: Option<CommitTimes>,
    /// Why a member of a Galera cluster takes no writes now.
    pub(super) not_ready: Option<String>,
    pub(super) flavour: Option<&'static Flavour>,
}

impl MysqlState {
    pub(super) fn ask(c: &mut Connection, settings: &MysqlSettings, local: bool) -> Result<MysqlState, TargetError> {
        let grants = grants::lines(c)?.into_iter().filter(|g| g.contains(" ON *.* ")).collect::<Vec<_>>();
        let has = |what: &str| grants.iter().any(|g| g.contains(what) || g.contains("ALL PRIVILEGES"));
        let running = c.pairs("SHOW GLOBAL STATUS LIKE 'Threads_running'")?;
        let running = running.first().and_then(|(_, n)| n.parse::<f64>().ok()).unwrap_or(1.0);
        let running = running - own_sessions::at_work_for_the_server(c)? as f64;
        let memory = std::fs::read_to_string("/proc/meminfo").ok().filter(|_| local);
        let memory = memory.and_then(|text| crate::machine::total_memory(&text)).map(|bytes| bytes as f64);
        Ok(MysqlState {
            version: c.version.clone(),
            privileges: grants::privileges(c)?,
            ignores_read_only: has("READ ONLY ADMIN")
                || has("READ_ONLY ADMIN")
                || (has("SUPER") && !(c.version.mariadb && c.version.is_at_least(10, 11))),
            others_running: (running - 1.0).max(0.0),
            memory,
            log_in_memory: local && in_memory(&log_dir(settings)) == Some(true),
            times: None,
            not_ready: not_ready(c, settings)?,
            flavour: None,
        })
    }
}

/// Why a member of a Galera cluster takes no writes now, if so.
fn not_ready(c: &mut Connection, settings: &MysqlSettings) -> Result<Option<String>, TargetError> {
    if !settings.is_on("wsrep_on") {
        return Ok(None);
    }
    let status = c.pairs("SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status')")?;
    Ok(wsrep_trouble(&status))
}

fn wsrep_trouble(status: &[(String, String)]) -> Option<String> {
    let bad = |(name, value): &&(String, String)| match name.as_str() {
        "wsrep_ready" => !value.eq_ignore_ascii_case("on"),
        _ => !value.eq_ignore_ascii_case("primary"),
    };
    status.iter().find(bad).map(|(name, value)| format!("{name} = {value}"))
}

/// The directory of the redo log.
pub(super) fn log_dir(settings: &MysqlSettings) -> std::path::PathBuf {
    let home = settings.get("innodb_log_group_home_dir").unwrap_or("./");
    // `join` with an absolute path returns that path.
    Path::new(settings.get("datadir").unwrap_or("/")).join(home.trim_start_matches("./"))
}

/// Disk space that the binary log takes when `data` bytes are loaded, and where.
pub(super) fn binary_log(settings: &MysqlSettings, data: u64) -> LogSpace {
    if !settings.is_on("log_bin") {
        return LogSpace::default();
    }
    let place =
        settings.get("log_bin_basename").map(|name| Path::new(settings.get("datadir").unwrap_or("/")).join(name));
    let dir = place.and_then(|p| Some(p.parent()?.display().to_string()));
    LogSpace { bytes: data, dir, unknown: None }
}

/// What the rules need beside the settings.
fn facts(s: &MysqlSettings, f: &MysqlState) -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::from([
        ("version", format!("{} {}", f.version.product(), f.version.text)),
        ("product", f.version.product().to_owned()),
        ("others_running", format!("{:.0}", f.others_running)),
        ("no_wait_in_procedures", super::sql::NO_WAIT_IN_PROCEDURES.to_owned()),
    ]);
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    let yes = |is: bool| is.then(|| "yes".to_owned());
    say("flavour", f.flavour.map(|flavour| flavour.name.clone()));
    say("flavour_advice", f.flavour.and_then(Flavour::advice).map(str::to_owned));
    let pool = s.number("innodb_buffer_pool_size").unwrap_or(0.0);
    say("pool", Some(bytes(pool)));
    say("pool_too_large", yes(f.memory.is_some_and(|memory| pool > memory * 0.9)));
    say("memory", f.memory.map(bytes));
    let log = s.number("innodb_redo_log_capacity").or_else(|| {
        Some(s.number("innodb_log_file_size")? * s.number("innodb_log_files_in_group").unwrap_or(1.0).max(1.0))
    });
    say("redo_log", Some(bytes(log.unwrap_or(0.0))));
    say("redo_log_bytes", Some(log.unwrap_or(0.0).to_string()));
    say("ignores_read_only", yes(f.ignores_read_only));
    say("wsrep_trouble", f.not_ready.clone());
    let most = s.number("max_connections").unwrap_or(151.0);
    say("few_statements", yes(s.number("max_prepared_stmt_count").is_some_and(|statements| statements < most)));
    let needs = |w: &&Arc<Workload>| w.tables.iter().any(|table| table.primary_key().is_none());
    let codes: Vec<&str> = CATALOGUE.iter().filter(needs).map(|w| w.code.as_str()).collect();
    say("without_primary_key", Some(codes.join(", ")));
    say("log_in_memory", f.log_in_memory.then(|| log_dir(s).display().to_string()));
    let times = match &f.times {
        Some(CommitTimes::Absent(why)) => why,
        Some(CommitTimes::Partial) => "partial",
        Some(CommitTimes::Timed(_)) | None => "timed",
    };
    say("commit_times", Some(times.to_owned()));
    facts
}

/// Findings from what was read.
pub(super) fn examine(s: &MysqlSettings, f: &MysqlState) -> Vec<Finding> {
    let mut out = rules::judge(&KNOWLEDGE.rules, &Known { settings: s, facts: facts(s, f) });
    // Roles may grant what SHOW GRANTS does not show.
    out.extend(f.privileges.iter().filter_map(|p| p.finding(Severity::Refused)));
    out.extend(s.cloud().map(Cloud::finding));
    out
}

/// Number of sessions that the server has left for jobs.
pub(super) fn job_limit(c: &mut Connection, settings: &MysqlSettings) -> Result<JobLimit, TargetError> {
    /// Sessions that loadline needs beside its jobs: counters, lock, administration, cancelling.
    const OWN: f64 = 4.0;
    let connected = c.pairs("SHOW GLOBAL STATUS LIKE 'Threads_connected'")?;
    let connected = connected.first().and_then(|(_, n)| n.parse::<f64>().ok()).unwrap_or(1.0);
    let most = settings.number("max_connections").unwrap_or(151.0);
    let mut limit = (most - (connected - 1.0) - OWN).max(0.0);
    let mut because =
        format!("max_connections = {most:.0}, of which {connected:.0} are in use and loadline needs {OWN:.0}");
    let of_user = c.number("SELECT @@SESSION.max_user_connections")?.filter(|n| *n > 0.0);
    if let Some(of_user) = of_user.filter(|n| n - OWN < limit) {
        limit = (of_user - OWN).max(0.0);
        because = format!("max_user_connections = {of_user:.0}, of which loadline needs {OWN:.0}");
    }
    Ok(JobLimit { jobs: Some(limit as u32), because })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flavour::FLAVOURS;
    use crate::role::{GrantSql, Use};

    fn good() -> Vec<(&'static str, &'static str)> {
        vec![
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "OFF"),
            ("innodb_doublewrite", "ON"),
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_buffer_pool_size", "1073741824"),
            ("innodb_log_file_size", "4294967296"),
            ("read_only", "OFF"),
            ("query_cache_type", "OFF"),
            ("general_log", "OFF"),
        ]
    }

    fn severity(changed: &[(&str, &str)], state: &MysqlState, id: &str) -> Option<Severity> {
        let mut all: BTreeMap<String, String> = good().into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        all.extend(changed.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        examine(&MysqlSettings(all), state).into_iter().find(|f| f.id == id).map(|f| f.severity)
    }

    fn state() -> MysqlState {
        MysqlState { version: Version::parse("10.11.6-MariaDB"), ..MysqlState::default() }
    }

    #[test]
    fn what_spoils_the_figures_is_refused() {
        let method = |value| severity(&[("innodb_flush_method", value)], &state(), "innodb_flush_method");
        assert_eq!((method("nosync"), method("O_DIRECT")), (Some(Severity::Refused), Some(Severity::Ok)));
        for (name, bad) in [("debug_no_sync", "ON"), ("innodb_force_recovery", "1")] {
            assert_eq!(severity(&[(name, bad)], &state(), name), Some(Severity::Refused), "{name}");
            assert_eq!(severity(&[], &state(), name), None, "{name}");
        }
        let memory = MysqlState { log_in_memory: true, ..state() };
        assert_eq!(severity(&[], &memory, "log-folder"), Some(Severity::Refused));
        assert_eq!(severity(&[], &state(), "log-folder"), None);
    }

    #[test]
    fn a_read_only_server_cannot_be_forced() {
        for (name, bad, well) in [
            ("read_only", "ON", "OFF"),
            ("read_only", "NO_LOCK", "0"),
            ("super_read_only", "ON", "OFF"),
            ("innodb_read_only", "1", "OFF"),
        ] {
            assert_eq!(severity(&[(name, bad)], &state(), name), Some(Severity::Impossible), "{name}");
            assert_eq!(severity(&[(name, well)], &state(), name), Some(Severity::Ok), "{name}");
        }
        let admin = MysqlState { ignores_read_only: true, ..state() };
        assert_eq!(severity(&[("read_only", "ON")], &admin, "read_only"), Some(Severity::Ok));
        assert_eq!(
            severity(&[("innodb_force_recovery", "4")], &state(), "innodb_force_recovery"),
            Some(Severity::Impossible)
        );
        let status = |ready: &str, cluster: &str| {
            let pairs = [("wsrep_ready", ready), ("wsrep_cluster_status", cluster)];
            wsrep_trouble(&pairs.map(|(n, v)| (n.to_owned(), v.to_owned())))
        };
        assert_eq!(status("ON", "Primary"), None);
        assert_eq!(status("OFF", "Primary").as_deref(), Some("wsrep_ready = OFF"));
        let split = MysqlState { not_ready: status("ON", "non-Primary"), ..state() };
        assert_eq!(severity(&[], &split, "wsrep_ready"), Some(Severity::Impossible));
        assert_eq!(severity(&[], &state(), "wsrep_ready"), None);
    }

    #[test]
    fn what_must_be_read_with_care_is_a_warning() {
        for (name, bad) in [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_flush_log_at_trx_commit", "0"),
            ("log_bin", "ON"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_flush_method", "fsync"),
            ("innodb_buffer_pool_size", "1048576"),
            ("innodb_log_file_size", "100663296"),
            ("general_log", "ON"),
        ] {
            assert_eq!(severity(&[(name, bad)], &state(), name), Some(Severity::Warning), "{name}");
            assert_eq!(severity(&[], &state(), name), Some(Severity::Ok), "{name}");
        }
        assert_eq!(severity(&[("wsrep_on", "ON")], &state(), "wsrep_on"), Some(Severity::Warning));
        let aurora = MysqlState { flavour: Some(&FLAVOURS.aurora), ..state() };
        assert_eq!(severity(&[], &aurora, "flavour"), Some(Severity::Warning));
        let percona = MysqlState { flavour: crate::flavour::of(&["Percona Server (GPL)"]), ..state() };
        assert_eq!(severity(&[], &percona, "flavour"), Some(Severity::Ok));
        let binlog = |sync| severity(&[("log_bin", "ON"), ("sync_binlog", sync)], &state(), "sync_binlog");
        assert_eq!((binlog("0"), binlog("1")), (Some(Severity::Warning), Some(Severity::Ok)));
        let untimed = MysqlState { times: Some(CommitTimes::Absent("off".into())), ..state() };
        assert_eq!(severity(&[], &untimed, "performance_schema"), Some(Severity::Warning));
        let partial = MysqlState { times: Some(CommitTimes::Partial), ..state() };
        assert_eq!(severity(&[], &partial, "performance_schema"), Some(Severity::Ok));
        let process = Privilege {
            sql: vec![GrantSql::of("PROCESS ON *.*", "ann")],
            gives: "it",
            granted: false,
            used: Use::Figures,
        };
        let poor = MysqlState { privileges: vec![process], ..state() };
        assert_eq!(severity(&[], &poor, "privilege"), Some(Severity::Warning));
        assert_eq!(severity(&[("datadir", "/rdsdbdata/db/")], &state(), "cloud"), Some(Severity::Warning));
        let cache = [("query_cache_type", "ON"), ("query_cache_size", "1048576")];
        assert_eq!(severity(&cache, &state(), "query_cache_type"), Some(Severity::Warning));
    }

    #[test]
    fn secrets_are_not_recorded() {
        let all = [("innodb_secret_key", "x"), ("innodb_page_size", "16384"), ("hostname", "h")];
        let s = MysqlSettings(all.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect());
        assert_eq!(s.recorded().keys().collect::<Vec<_>>(), ["innodb_page_size"]);
    }

    #[test]
    fn only_a_binary_log_grows_with_the_data() {
        let settings = |on: &str| {
            let all = [("log_bin", on), ("log_bin_basename", "/logs/bin"), ("datadir", "/data/")];
            MysqlSettings(all.map(|(n, v)| (n.to_owned(), v.to_owned())).into())
        };
        assert_eq!(binary_log(&settings("OFF"), 1 << 40), LogSpace::default());
        let space = binary_log(&settings("ON"), 1 << 40);
        assert_eq!((space.bytes, space.dir.as_deref()), (1 << 40, Some("/logs")));
    }
}
