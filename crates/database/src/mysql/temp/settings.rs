//! The private server's settings: what a DBA would set on a small machine, and the user's own.

use std::collections::BTreeMap;
use std::iter;

use loadline_model::format::nearest;
use nix::sys::signal::Signal;

use super::PRODUCT;
use super::binaries::Binaries;
use crate::error::TargetError;
use crate::mysql::cache::CHUNK;
use crate::mysql::performance::MARIADB_STAGES;
use crate::temp::product::cannot_run;
use crate::temp::settings::{Settings, normal};
use crate::temp::user::ServerUser;

/// Settings that loadline chooses, to reach the server and to find its process.
pub(super) const RESERVED: &[&str] = &[
    "datadir",
    "socket",
    "port",
    "bind_address",
    "skip_networking",
    "pid_file",
    "user",
    "log_error",
    "basedir",
    "defaults_file",
    "defaults_extra_file",
    "no_defaults",
    "help",
    "bootstrap",
];

const MIB: u64 = 1 << 20;

/// Default buffer pool on a machine with `memory_bytes`, bytes.
fn default_pool(memory_bytes: u64) -> u64 {
    (memory_bytes / 8 / CHUNK * CHUNK).clamp(128 * MIB, 1024 * MIB)
}

/// loadline's settings for a machine with `memory_bytes`, overridden by the user's.
pub(super) fn settings(memory_bytes: u64, given: &BTreeMap<String, String>) -> Settings {
    let pool = default_pool(memory_bytes) / MIB;
    let mut defaults = vec![
        ("innodb_flush_log_at_trx_commit", "1".to_owned()),
        ("innodb_doublewrite", "1".to_owned()),
        ("innodb_flush_method", "O_DIRECT".to_owned()),
        ("innodb_buffer_pool_size", format!("{pool}M")),
        ("innodb_buffer_pool_chunk_size", CHUNK.to_string()),
        ("innodb_log_file_size", "2G".to_owned()),
        ("max_connections", "300".to_owned()),
        ("query_cache_type", "0".to_owned()),
        ("query_cache_size", "0".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "0".to_owned()),
        ("performance_schema", "0".to_owned()),
    ];
    // With a binary log performance_schema times the whole commit. The cost of this stage alone is within
    // the noise (12 interleaved starts with and without, 8 jobs: 2.3 % more server CPU per commit, quartiles
    // -3 and +10 %).
    if given.iter().any(|(name, value)| normal(name) == "log_bin" && !matches!(value.as_str(), "0" | "OFF" | "off")) {
        let of_commits = MARIADB_STAGES.iter().map(|stage| format!("{stage}=ON"));
        let instruments = iter::once("%=OFF".to_owned()).chain(of_commits);
        defaults.retain(|(name, _)| *name != "performance_schema");
        defaults.push(("performance_schema", "1".to_owned()));
        defaults.extend(instruments.map(|what| ("performance_schema_instrument", what)));
    }
    Settings::new(&PRODUCT, defaults, given)
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
    format!("--{}={value}", name.replace('_', "-"))
}

/// Whether `name` can be a setting's name, so that it adds no other argument.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Checks each setting by itself (`mariadbd --name=value --help --verbose`).
pub(super) fn check_values(
    given: &BTreeMap<String, String>,
    binaries: &Binaries,
    user: &ServerUser,
) -> Result<(), TargetError> {
    let ask = |more: &[String]| {
        let mut command = user.command(&binaries.server, Signal::SIGKILL);
        command.arg("--no-defaults").args(more).args(["--help", "--verbose"]);
        command.output().map_err(|e| cannot_run(&binaries.server, &e))
    };
    for (name, value) in given {
        if !is_name(name) {
            return Err(TargetError::Usage(format!("--setting {name}: '{name}' is not the name of a setting")));
        }
        let output = ask(&[argument(name, value)])?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if stderr.contains("unknown variable") || stderr.contains("unknown option") {
            let list = String::from_utf8_lossy(&ask(&[])?.stdout).into_owned();
            // The list of names and values at the end of the help.
            let known = list.lines().skip_while(|l| !l.starts_with("-----")).skip(1);
            let known: Vec<String> = known.filter_map(|l| l.split_whitespace().next()).map(normal).collect();
            let hint = nearest(&normal(name), known.iter().map(String::as_str)).map_or_else(
                || "'mariadbd --help --verbose' lists its settings".to_owned(),
                |nearest| format!("did you mean '{nearest}'?"),
            );
            let version = &binaries.version;
            return Err(TargetError::Usage(format!(
                "--setting {name}: MariaDB {version} has no setting '{name}': {hint}"
            )));
        }
        let error = stderr.lines().find(|l| l.contains("[ERROR]") || l.contains("adjusted to"));
        if let Some(error) = error.and_then(|l| l.split_once("] ")).map(|(_, text)| text.trim()) {
            return Err(TargetError::Usage(format!("--setting {name}: mariadbd says: '{error}'")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_setting_replaces_a_default_in_any_spelling() {
        let given: BTreeMap<String, String> = [("Innodb-Log-File-Size".to_owned(), "1G".to_owned())].into();
        let arguments = arguments(&settings(8 << 30, &given));
        let sizes: Vec<_> = arguments.iter().filter(|a| a.to_lowercase().contains("log-file-size")).collect();
        assert_eq!(sizes, ["--Innodb-Log-File-Size=1G"]);
        assert!(arguments.contains(&"--innodb-buffer-pool-size=1024M".to_owned()));
    }

    #[test]
    fn commits_are_timed_with_a_binary_log_only() {
        let of = |pairs: &[(&str, &str)]| {
            let given = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            arguments(&settings(8 << 30, &given))
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
            let said = PRODUCT.check_names(&given).map_or_else(|e| e.to_string(), |()| String::new());
            assert!(said.contains(words) && said.is_empty() == words.is_empty(), "{name}: {said}");
        }
        assert!(is_name("log-bin") && !is_name("-x") && !is_name("a=b") && !is_name(""));
    }
}
