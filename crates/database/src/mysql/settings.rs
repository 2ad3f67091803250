//! The server's global settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::knowledge::KNOWLEDGE;
use super::wire::Connection;
use crate::cloud::Cloud;
use crate::error::TargetError;
use crate::role::LogSpace;
use crate::rules::SettingValues;

/// Values by name, in small letters.
#[derive(Debug, Clone, Default)]
pub(super) struct MysqlSettings(pub(super) BTreeMap<String, String>);

impl MysqlSettings {
    pub(super) fn read(c: &mut Connection) -> Result<MysqlSettings, TargetError> {
        let all = c.pairs("SHOW GLOBAL VARIABLES")?;
        Ok(MysqlSettings(all.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect()))
    }

    /// The managed service that these settings are of.
    pub(super) fn cloud(&self) -> Option<&'static Cloud> {
        Cloud::from_settings(self.0.keys().map(String::as_str).chain(self.text("datadir")))
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(|v| v.eq_ignore_ascii_case("on") || v == "1")
    }

    /// `innodb_flush_log_at_trx_commit`.
    pub(super) fn flush(&self) -> u8 {
        self.number("innodb_flush_log_at_trx_commit").unwrap_or(1.0) as u8
    }

    /// Whether each block is written to the doublewrite buffer first, and synced at its place before the buffer is used again.
    pub(super) fn doublewrites(&self) -> bool {
        let of = |name| self.text(name).unwrap_or_default();
        // MySQL's DETECT_ONLY writes no blocks there, only their numbers.
        ["on", "detect_and_recover"].iter().any(|on| of("innodb_doublewrite").eq_ignore_ascii_case(on))
            && !["nosync", "littlesync"].contains(&of("innodb_flush_method"))
    }

    /// Whether InnoDB's log may be opened with O_SYNC, so that each write is also a sync.
    pub(super) fn log_writes_sync(&self) -> bool {
        self.text("innodb_flush_method").is_some_and(|method| method.eq_ignore_ascii_case("O_DSYNC"))
    }

    /// Settings that a run records; none that may hold a secret.
    pub(super) fn recorded(&self) -> BTreeMap<String, String> {
        let begins = |name: &str| KNOWLEDGE.recorded_beginnings.iter().any(|begin| name.starts_with(begin.as_str()));
        let wanted = |name: &String| !is_secret(name) && (KNOWLEDGE.recorded.contains(name) || begins(name));
        let kept = self.0.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (name.clone(), value.clone()));
        // Of Galera's options those that bound its speed, or how long it waits: `gcache.size = 128M; gcs.fc_limit = 16; …`.
        let options = self.text("wsrep_provider_options").unwrap_or_default().split(';');
        let options = options.filter_map(|option| option.split_once('=')).map(|(n, v)| (n.trim(), v.trim()));
        let options = options.filter(|(n, _)| KNOWLEDGE.recorded_provider_options.iter().any(|name| name == n));
        kept.chain(options.map(|(n, v)| (format!("wsrep_provider_options.{n}"), v.to_owned()))).collect()
    }

    fn data_dir(&self) -> &Path {
        Path::new(self.text("datadir").unwrap_or("/"))
    }

    pub(super) fn log_dir(&self) -> PathBuf {
        let home = self.text("innodb_log_group_home_dir").unwrap_or("./");
        // `join` with an absolute path returns that path.
        self.data_dir().join(home.trim_start_matches("./"))
    }

    /// Disk space that the binary log takes when `data` bytes are loaded, and where.
    pub(super) fn binary_log(&self, data: u64) -> LogSpace {
        if !self.is_on("log_bin") {
            return LogSpace::default();
        }
        let place = self.text("log_bin_basename").map(|name| self.data_dir().join(name));
        let dir = place.and_then(|p| Some(p.parent()?.display().to_string()));
        LogSpace { bytes: data, dir, unknown: None }
    }
}

impl SettingValues for MysqlSettings {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.text(name)
    }
}

/// Whether the setting may hold a secret, as the statements of `init_connect`. Settings about keys of tables hold none.
pub(super) fn is_secret(name: &str) -> bool {
    let has = |parts: &[String]| parts.iter().any(|part| name.contains(part.as_str()));
    has(&KNOWLEDGE.secret) && !has(&KNOWLEDGE.no_secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings<const N: usize>(all: [(&str, &str); N]) -> MysqlSettings {
        MysqlSettings(all.map(|(n, v)| (n.to_owned(), v.to_owned())).into())
    }

    #[test]
    fn secrets_are_not_recorded() {
        let s = settings([("innodb_secret_key", "x"), ("innodb_page_size", "16384"), ("hostname", "h")]);
        assert_eq!(s.recorded().keys().collect::<Vec<_>>(), ["innodb_page_size"]);
    }

    #[test]
    fn blocks_are_doublewritten_if_they_can_be_recovered() {
        for (value, expected) in [("ON", true), ("DETECT_AND_RECOVER", true), ("DETECT_ONLY", false), ("OFF", false)] {
            assert_eq!(settings([("innodb_doublewrite", value)]).doublewrites(), expected, "{value}");
        }
    }

    #[test]
    fn only_a_binary_log_grows_with_the_data() {
        let of = |on| settings([("log_bin", on), ("log_bin_basename", "/logs/bin"), ("datadir", "/data/")]);
        assert_eq!(of("OFF").binary_log(1 << 40), LogSpace::default());
        let space = of("ON").binary_log(1 << 40);
        assert_eq!((space.bytes, space.dir.as_deref()), (1 << 40, Some("/logs")));
    }
}
