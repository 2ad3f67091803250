//! The private server's settings: what a DBA would set on a small machine, and the user's settings.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_model::format::nearest;
use nix::sys::signal::Signal;

use super::PRODUCT;
use super::binaries::Binaries;
use crate::error::TargetError;
use crate::temp::product::cannot_run;
use crate::temp::settings::Settings;
use crate::temp::user::ServerUser;

/// Settings that loadline needs to reach the server, to read its log and to find its processes.
pub(super) const RESERVED: &[&str] = &[
    "cluster_name", "config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "listen_addresses",
    "log_destination", "logging_collector", "port", "unix_socket_directories", "unix_socket_group",
    "unix_socket_permissions", "lc_messages", "log_line_prefix",
];

const MIB: u64 = 1 << 20;

/// A usual shared_buffers for a machine with this much memory, MiB.
pub(super) fn shared_buffers(memory_bytes: u64) -> u64 {
    (memory_bytes / 8 / MIB).clamp(16, 1024)
}

/// loadline's defaults for a machine with this much memory, and the user's settings.
pub(super) fn settings(memory_bytes: u64, given: &BTreeMap<String, String>) -> Settings {
    let on = || "on".to_owned();
    let defaults = vec![
        ("fsync", on()),
        ("synchronous_commit", on()),
        ("full_page_writes", on()),
        ("autovacuum", on()),
        ("max_connections", "300".to_owned()),
        ("shared_buffers", format!("{}MB", shared_buffers(memory_bytes))),
        ("max_wal_size", "4GB".to_owned()),
        ("checkpoint_timeout", "15min".to_owned()),
        // For devices that serve many reads at once; the default is made for a single disk.
        ("effective_io_concurrency", "32".to_owned()),
        // Costs two clock reads per write of the log.
        ("track_wal_io_timing", on()),
    ];
    Settings::new(&PRODUCT, defaults, given)
}

/// Sets loadline's default of shared_buffers, MiB; `false` if the user set it, or if it is unchanged.
pub(super) fn set_shared_buffers(settings: &mut Settings, mib: u64) -> bool {
    let value = format!("{mib}MB");
    own_shared_buffers(settings).is_some_and(|now| std::mem::replace(now, value.clone()) != value)
}

/// The value of shared_buffers that loadline chose; `None` if the user did.
fn own_shared_buffers(settings: &mut Settings) -> Option<&mut String> {
    settings.defaults.iter_mut().find(|(name, _)| *name == "shared_buffers").map(|(_, value)| value)
}

/// Puts the size of shared_buffers that loadline chose for `present` in place of its default in `settings`.
pub(super) fn keep_shared_buffers(settings: &mut Settings, present: &mut Settings) {
    if let Some((value, present)) = own_shared_buffers(settings).zip(own_shared_buffers(present)) {
        value.clone_from(present);
    }
}

/// The configuration file, with `last` at its end. It includes initdb's file first, so later settings override it.
pub(super) fn file(settings: &Settings, name: &str, sockets: &str, last: &[(&str, String)]) -> String {
    let fixed = [
        ("cluster_name", name),
        ("listen_addresses", ""),
        ("unix_socket_directories", sockets),
        ("unix_socket_permissions", "0700"),
        ("log_destination", "stderr"),
        ("logging_collector", "off"),
        ("log_line_prefix", "%m [%p] "),
    ];
    let mut text = "include 'data/postgresql.conf'\n".to_owned();
    for (name, value) in settings.all().chain(fixed).chain(last.iter().map(|(name, value)| (*name, value.as_str()))) {
        let value = value.replace('\\', "\\\\").replace('\'', "''");
        text.push_str(&format!("{name} = '{value}'\n"));
    }
    text
}

/// Checks each setting with PostgreSQL itself (`postgres -c name=value -C name`).
pub(super) fn check_values(
    given: &BTreeMap<String, String>,
    binaries: &Binaries,
    user: &ServerUser,
    data: &Path,
) -> Result<(), TargetError> {
    for (name, value) in given {
        if !is_name(name) {
            return Err(unknown(name, binaries, user));
        }
        let mut command = user.command(binaries.postgres(), Signal::SIGKILL);
        command.arg("-D").arg(data).arg("-c").arg(format!("{name}={value}")).arg("-C").arg(name);
        let output = command.output().map_err(|e| cannot_run(&binaries.postgres(), &e))?;
        if output.status.success() {
            continue;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("unrecognized configuration parameter") {
            return Err(unknown(name, binaries, user));
        }
        return Err(TargetError::Usage(if PRODUCT.is_secret(name) {
            format!("--setting {name}: PostgreSQL rejects its value (not shown here)")
        } else {
            format!("--setting {name}={value}: postgres says: '{}'", server_message(&stderr))
        }));
    }
    Ok(())
}

/// Whether PostgreSQL accepts the name in configuration files.
fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'$')
}

fn unknown(name: &str, binaries: &Binaries, user: &ServerUser) -> TargetError {
    let list = user.command(binaries.postgres(), Signal::SIGKILL).arg("--describe-config").output();
    let list = list.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let known = list.lines().filter_map(|line| line.split('\t').next());
    let hint = nearest(name, known).map_or_else(
        || "`postgres --describe-config` lists all settings".to_owned(),
        |nearest| format!("did you mean '{nearest}'?"),
    );
    TargetError::Usage(format!("--setting {name}: PostgreSQL {} has no setting '{name}': {hint}", binaries.version))
}

/// The server's error messages in its log, with their explanation.
pub(super) fn server_message(log: &str) -> String {
    let message = |line: &str, levels: &[&str]| {
        let found = levels.iter().filter_map(|level| line.find(level).map(|at| at + level.len())).min()?;
        Some(line[found..].trim().to_owned())
    };
    // What its sessions heard while it stopped and started is no cause.
    let heard = ["terminating connection due to", "the database system is"];
    let lines: Vec<&str> = log.lines().filter(|line| !heard.iter().any(|text| line.contains(text))).collect();
    let mut parts: Vec<String> = Vec::new();
    // An invalid line of a configuration file is explained in a LOG message before the fatal one.
    for levels in [&["FATAL:", "PANIC:", "ERROR:", "DETAIL:", "HINT:", "error:", "detail:", "hint:"][..], &["LOG:"][..]]
    {
        parts.extend(lines.iter().filter_map(|line| message(line, levels)));
        if !parts.is_empty() && !parts.iter().any(|part| part.contains("contains errors")) {
            break;
        }
    }
    if parts.is_empty() {
        parts = lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    }
    let first = parts.len().saturating_sub(6);
    parts[first..].join(" – ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_given_setting_replaces_the_default_and_is_quoted() {
        let settings = settings(4096 * MIB, &map(&[("FSYNC", "off"), ("a.b", r"it's \x")]));
        let file = file(&settings, "loadline-pg-x", "/s", &[]);
        assert!(file.contains("FSYNC = 'off'\n") && !file.contains("fsync = 'on'"), "{file}");
        assert!(file.contains(r"a.b = 'it''s \\x'"), "{file}");
        assert!(file.contains("shared_buffers = '512MB'"), "{file}");
        assert!(super::file(&super::settings(1 << 50, &map(&[])), "", "", &[]).contains("shared_buffers = '1024MB'"));
    }

    #[test]
    fn reserved_names_are_refused() {
        for name in ["port", "Listen_Addresses", "cluster_name"] {
            let error = PRODUCT.check_names(&map(&[(name, "1")])).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("leave it out"), "{error}");
        }
        assert!(
            PRODUCT.check_names(&map(&[("fsync", "on"), ("FSYNC", "off")])).unwrap_err().to_string().contains("twice")
        );
        assert!(PRODUCT.check_names(&map(&[("a", "b\nport = 1")])).unwrap_err().to_string().contains("control"));
        assert!(PRODUCT.check_names(&map(&[("work_mem", "4MB")])).is_ok());
    }

    #[test]
    fn no_password_is_shown() {
        let given = map(&[("primary_conninfo", "password=abc"), ("work_mem", "4MB")]);
        assert_eq!(settings(1 << 30, &given).shown(), "primary_conninfo=(not shown), work_mem=4MB");
    }

    #[test]
    fn the_servers_own_words() {
        let log = "2026-01-01 00:00:00.000 UTC [7] LOG:  invalid value for parameter \"x\": \"y\"\n\
                   2026-01-01 00:00:00.000 UTC [7] FATAL:  configuration file \"/p\" contains errors\n";
        assert!(server_message(log).contains("invalid value for parameter \"x\""), "{}", server_message(log));
        let log = "now [7] LOG:  starting\nnow [7] FATAL:  no memory\nnow [7] HINT:  use less\n";
        assert_eq!(server_message(log), "no memory – use less");
        let restarted = "FATAL:  terminating connection due to administrator command\nLOG:  database system is shut down\nFATAL:  no library\n";
        assert_eq!(server_message(restarted), "no library");
        assert_eq!(server_message("odd\n"), "odd");
        assert_eq!(server_message(""), "");
    }
}
