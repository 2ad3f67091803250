//! The private server's settings: what a DBA would set on a small machine, and the user's own.

use std::collections::BTreeMap;
use std::iter;

use loadline_model::format::nearest;
use nix::sys::signal::Signal;

use super::GALERA;
use super::binaries::Binaries;
use super::cluster::LOG_SIZE;
use crate::error::TargetError;
use crate::mysql::cache::CHUNK;
use crate::mysql::performance::{MARIADB_STAGES, MYSQL_STAGES};
use crate::mysql::version::Version;
use crate::temp::product::{Product, cannot_run};
use crate::temp::settings::{Settings, normal};
use crate::temp::user::ServerUser;

/// Settings that loadline chooses, to reach the server and to find its process.
pub(super) const RESERVED: &[&str] = &[
    "datadir", "socket", "port", "bind_address", "skip_networking", "pid_file", "user", "log_error", "basedir",
    "defaults_file", "defaults_extra_file", "no_defaults", "help", "bootstrap",
];

/// Further ones, of the nodes of a private cluster.
pub(super) const GALERA_RESERVED: &[&str] = &[
    "binlog_format", "default_storage_engine", "innodb_autoinc_lock_mode", "wsrep_on", "wsrep_provider",
    "wsrep_provider_options", "wsrep_cluster_name", "wsrep_cluster_address", "wsrep_new_cluster", "wsrep_node_name",
    "wsrep_node_address", "wsrep_node_incoming_address", "wsrep_start_position", "wsrep_sst_method", "wsrep_sst_auth",
    "wsrep_sst_donor", "wsrep_sst_receive_address",
];

/// What loadline sets at servers that replicate.
pub(super) const REPLICATED_RESERVED: &[&str] = &[
    "gtid_domain_id",
    "log_bin",
    "relay_log_recovery",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_master_timeout",
    "rpl_semi_sync_master_wait_no_slave",
    "rpl_semi_sync_master_wait_point",
    "rpl_semi_sync_slave_enabled",
    "server_id",
    "skip_log_bin",
    "skip_slave_start",
];

/// Settings of both: commits are in a binary log that is synced before they return, and one that waits for a replica waits as
/// long as loadline does: by default MariaDB gives up after 10 s, for all that follow.
const OF_REPLICATED: [(&str, &str); 5] = [
    ("log_bin", "binlog"),
    ("sync_binlog", "1"),
    ("server_id", "1"),
    ("rpl_semi_sync_master_timeout", "1000000000"),
    ("rpl_semi_sync_master_wait_no_slave", "ON"),
];
/// Settings of a replica: once killed, it fetches what it had not applied again.
pub(super) const OF_REPLICAS: [(&str, &str); 2] = [("rpl_semi_sync_slave_enabled", "ON"), ("relay_log_recovery", "ON")];

const MIB: u64 = 1 << 20;

/// Default buffer pool on a machine with `memory_bytes`, bytes.
fn default_pool(memory_bytes: u64) -> u64 {
    (memory_bytes / 8 / CHUNK * CHUNK).clamp(128 * MIB, 1024 * MIB)
}

/// loadline's settings for a machine with `memory_bytes`, overridden by the user's. The products' servers get the same
/// where they have the same: no binary log, and one buffer pool that changes its size in small steps.
pub(super) fn settings(
    product: &'static Product,
    version: &Version,
    memory_bytes: u64,
    given: &BTreeMap<String, String>,
) -> Settings {
    let pool = default_pool(memory_bytes) / MIB;
    let mut defaults = vec![
        ("innodb_flush_log_at_trx_commit", "1".to_owned()),
        ("innodb_doublewrite", "ON".to_owned()),
        ("innodb_flush_method", "O_DIRECT".to_owned()),
        ("innodb_buffer_pool_size", format!("{pool}M")),
        ("innodb_buffer_pool_chunk_size", CHUNK.to_string()),
        ("max_connections", "300".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "0".to_owned()),
    ];
    if !version.mariadb {
        defaults.extend([
            log_size(version),
            ("innodb_buffer_pool_instances", "1".to_owned()),
            ("local_infile", "ON".to_owned()),
            ("secure_file_priv", "NULL".to_owned()),
            ("log_bin", "OFF".to_owned()),
        ]);
        let of_commits = MYSQL_STAGES.iter().map(|stage| ("performance_schema_instrument", format!("{stage}=ON")));
        defaults.extend(of_commits);
        return Settings::new(product, defaults, given);
    }
    defaults.extend([
        log_size(version),
        ("query_cache_type", "0".to_owned()),
        ("query_cache_size", "0".to_owned()),
        ("performance_schema", "0".to_owned()),
        // Only sockets lead to it, and from 11.4 on the server would make a key at each start, which takes 1 to 50 s.
        ("ssl", "OFF".to_owned()),
    ]);
    let replicated = product.reserved.contains(&REPLICATED_RESERVED);
    if replicated {
        defaults.extend(OF_REPLICATED.map(|(name, value)| (name, value.to_owned())));
    }
    if product.scheme == GALERA.scheme {
        // Galera replicates rows, and InnoDB must not lock the next key of a table, which the others do not see.
        defaults.extend([("binlog_format", "ROW".to_owned()), ("innodb_autoinc_lock_mode", "2".to_owned())]);
        defaults.retain(|(name, _)| *name != "innodb_log_file_size");
        defaults.push(("innodb_log_file_size", LOG_SIZE.to_owned()));
    }
    // With a binary log performance_schema times the whole commit. The cost of this stage alone is within
    // the noise (12 interleaved starts with and without, 8 jobs: 2.3 % more server CPU per commit, quartiles
    // -3 and +10 %).
    if replicated || given.iter().any(|(name, value)| normal(name) == "log_bin" && !is_off(value)) {
        let of_commits = MARIADB_STAGES.iter().map(|stage| format!("{stage}=ON"));
        let instruments = iter::once("%=OFF".to_owned()).chain(of_commits);
        defaults.retain(|(name, _)| *name != "performance_schema");
        defaults.push(("performance_schema", "1".to_owned()));
        defaults.extend(instruments.map(|what| ("performance_schema_instrument", what)));
    }
    Settings::new(product, defaults, given)
}

/// Size of the buffer pool that loadline chose, bytes; `None` if the user did.
pub(super) fn own_pool(settings: &Settings, memory_bytes: u64) -> Option<u64> {
    let chunk_or_pool = ["innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size"];
    let given = settings.given.keys().any(|name| chunk_or_pool.contains(&normal(name).as_str()));
    (!given).then(|| default_pool(memory_bytes))
}

/// Arguments of the server.
pub(super) fn arguments(settings: &Settings) -> Vec<String> {
    settings.all().map(|(name, value)| argument(name, value)).collect()
}

fn argument(name: &str, value: &str) -> String {
    // MySQL would take the value for the name of the file.
    if normal(name) == "log_bin" && is_off(value) {
        return "--skip-log-bin".to_owned();
    }
    format!("--{}={value}", name.replace('_', "-"))
}

fn is_off(value: &str) -> bool {
    matches!(value, "0" | "OFF" | "off")
}

/// The setting for the size of the log, and loadline's default. MySQL 8.0.30 has a new one.
fn log_size(version: &Version) -> (&'static str, String) {
    (
        if version.is_mysql_from((8, 0, 30)) { "innodb_redo_log_capacity" } else { "innodb_log_file_size" },
        "2G".to_owned(),
    )
}

/// The text of a line of the server's log: `2026-… 0 [ERROR] [MY-000067] [Server] unknown variable …`.
pub(super) fn message(line: &str) -> &str {
    let mut text = line.split_once("] ").map_or(line, |(_, text)| text);
    while let Some((_, rest)) = text.strip_prefix('[').and_then(|tag| tag.split_once("] ")) {
        text = rest;
    }
    text.trim()
}

/// Whether `name` can be a setting's name, so that it adds no other argument.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Checks each setting by itself (`mariadbd --name=value --help --verbose`, `mysqld …`), then all together where MySQL can.
pub(super) fn check_values(
    given: &BTreeMap<String, String>,
    binaries: &Binaries,
    user: &ServerUser,
) -> Result<(), TargetError> {
    let ask = |more: &[String]| {
        let mut command = user.command(&binaries.server, Signal::SIGKILL);
        command.arg("--no-defaults").args(binaries.paths()).args(more);
        command.output().map_err(|e| cannot_run(&binaries.server, &e))
    };
    let help = ["--help".to_owned(), "--verbose".to_owned()];
    let unknown = |name: &str, near: Option<&str>| {
        let hint = near.map_or_else(
            || format!("'{} --help --verbose' lists its settings", binaries.server.display()),
            |nearest| format!("did you mean '{nearest}'?"),
        );
        let (product, version) = (binaries.version.product(), &binaries.version.text);
        TargetError::Usage(format!("--setting {name}: {product} {version} has no setting '{name}': {hint}"))
    };
    let server = binaries.server.file_name().unwrap_or_default().to_string_lossy();
    let wrong = |name: &str, error: &str| TargetError::Usage(format!("--setting {name}: {server} says: '{error}'"));
    for (name, value) in given {
        if !is_name(name) {
            return Err(TargetError::Usage(format!("--setting {name}: '{name}' is not the name of a setting")));
        }
        let output = ask(&[&[argument(name, value)], &help[..]].concat())?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = is_unknown(&stderr);
        // MySQL accepts any name when it is asked for help: one of a plugin may be right, one like a known name is not.
        let plain = !["skip_", "disable_", "enable_", "maximum_", "loose_"].iter().any(|p| normal(name).starts_with(p));
        if refused || (plain && !binaries.version.mariadb) {
            // A server that refuses a setting does not list the others.
            let list = if refused { ask(&help)? } else { output };
            let list = String::from_utf8_lossy(&list.stdout).into_owned();
            // The list of names and values at the end of the help.
            let known = list.lines().skip_while(|l| !l.starts_with("-----")).skip(1);
            let known: Vec<String> = known.filter_map(|l| l.split_whitespace().next()).map(normal).collect();
            let near = nearest(&normal(name), known.iter().map(String::as_str));
            if refused || (near.is_some() && !known.contains(&normal(name))) {
                return Err(unknown(name, near));
            }
        }
        let error = stderr.lines().find(|l| l.contains("[ERROR]") || l.contains("adjusted to"));
        if let Some(error) = error.map(message) {
            return Err(wrong(name, error));
        }
    }
    if given.is_empty() || !binaries.version.is_mysql_from((8, 0, 16)) {
        return Ok(());
    }
    // Unlike its help, this accepts no unknown name, and it loads the plugins that another setting names.
    let all = given.iter().map(|(name, value)| argument(name, value));
    let output = ask(&all.chain(["--validate-config".to_owned()]).collect::<Vec<_>>())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let Some(error) = stderr.lines().find(|l| l.contains("[ERROR]")).map(message) else { return Ok(()) };
    let name = named(error, given);
    Err(if is_unknown(error) && given.contains_key(&name) { unknown(&name, None) } else { wrong(&name, error) })
}

fn is_unknown(error: &str) -> bool {
    error.contains("unknown variable") || error.contains("unknown option")
}

/// The setting that an error of the server is about, in the user's spelling; all if none is named.
fn named(error: &str, given: &BTreeMap<String, String>) -> String {
    let error = normal(error);
    let names = given.keys().filter(|name| error.contains(&normal(name)));
    // The longest: `log_bin` is a part of `log_bin_index`.
    names.max_by_key(|name| name.len()).cloned().unwrap_or_else(|| given.keys().cloned().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::temp::{MARIADB, MYSQL};

    #[test]
    fn a_given_setting_replaces_a_default_in_any_spelling() {
        let given: BTreeMap<String, String> = [("Innodb-Log-File-Size".to_owned(), "1G".to_owned())].into();
        let arguments = arguments(&settings(&MARIADB, &Version::parse("10.11.6-MariaDB"), 8 << 30, &given));
        let sizes: Vec<_> = arguments.iter().filter(|a| a.to_lowercase().contains("log-file-size")).collect();
        assert_eq!(sizes, ["--Innodb-Log-File-Size=1G"]);
        assert!(arguments.contains(&"--innodb-buffer-pool-size=1024M".to_owned()));
    }

    #[test]
    fn mysql_has_no_binary_log_unless_asked_and_its_log_has_the_same_size() {
        let of = |version: &str, pairs: &[(&str, &str)]| {
            let given = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            arguments(&settings(&MYSQL, &Version::parse(version), 8 << 30, &given))
        };
        for (version, log) in [("8.0.29", "--innodb-log-file-size=2G"), ("9.7.4", "--innodb-redo-log-capacity=2G")] {
            let arguments = of(version, &[]);
            assert!(arguments.contains(&log.to_owned()), "{version}: {arguments:?}");
            assert!(arguments.contains(&"--skip-log-bin".to_owned()), "{version}: {arguments:?}");
            assert!(!arguments.iter().any(|a| a.contains("query-cache")), "{version}: {arguments:?}");
        }
        let with = of("8.0.33", &[("log_bin", "bin")]);
        assert!(with.contains(&"--log-bin=bin".to_owned()) && !with.contains(&"--skip-log-bin".to_owned()), "{with:?}");
    }

    #[test]
    fn the_servers_own_words() {
        for (line, said) in [
            ("2026-01-01 0:00:00 0 [ERROR] mariadbd: Error while setting value", "mariadbd: Error while setting value"),
            (
                "2026-01-01T00:00:00.1Z 0 [ERROR] [MY-000067] [Server] unknown variable 'a[1] b'.",
                "unknown variable 'a[1] b'.",
            ),
            ("odd", "odd"),
        ] {
            assert_eq!(message(line), said);
        }
    }

    #[test]
    fn an_error_is_about_the_setting_that_it_names() {
        let given = ["log_bin", "log_bin_index", "Nonsense_xyz"].map(|name| (name.to_owned(), String::new())).into();
        assert_eq!(named("unknown variable 'nonsense-xyz=1'.", &given), "Nonsense_xyz");
        assert_eq!(named("Error while setting value '' to 'log-bin-index'", &given), "log_bin_index");
        assert_eq!(named("out of memory", &given), "Nonsense_xyz, log_bin, log_bin_index");
    }

    #[test]
    fn commits_are_timed_with_a_binary_log_only() {
        let of = |pairs: &[(&str, &str)]| {
            let given = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            arguments(&settings(&MARIADB, &Version::parse("10.11.6-MariaDB"), 8 << 30, &given))
        };
        let timed = "--performance-schema-instrument=stage/sql/Commit=ON".to_owned();
        let with = of(&[("log-bin", "bin")]);
        assert!(with.contains(&timed) && with.contains(&"--performance-schema=1".to_owned()), "{with:?}");
        for without in [of(&[]), of(&[("log_bin", "OFF")])] {
            assert!(!without.contains(&timed) && without.contains(&"--performance-schema=0".to_owned()), "{without:?}");
        }
        let own = of(&[("log_bin", "bin"), ("performance_schema", "0")]);
        assert!(!own.contains(&"--performance-schema=1".to_owned()), "{own:?}");
    }

    #[test]
    fn what_loadline_needs_is_reserved() {
        for (name, words) in [("data-dir", ""), ("datadir", "itself"), ("skip-networking", "itself")] {
            let given = [(name.to_owned(), "1".to_owned())].into();
            let said = MARIADB.check_names(&given).map_or_else(|e| e.to_string(), |()| String::new());
            assert!(said.contains(words) && said.is_empty() == words.is_empty(), "{name}: {said}");
        }
        assert!(is_name("log-bin") && !is_name("-x") && !is_name("a=b") && !is_name(""));
    }
}
