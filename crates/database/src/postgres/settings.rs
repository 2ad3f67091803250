//! The server's settings, without secrets.

use std::collections::BTreeMap;

use super::knowledge::{KNOWLEDGE, message};
use super::sql::{literal, own};
use super::wire::{Connection, Row, Values};
use crate::cloud::Cloud;
use crate::error::TargetError;
use crate::rules::SettingValues;

#[derive(Debug, Clone, Default)]
struct Setting {
    /// Value with its unit: `128MB`.
    shown: String,
    /// A size in bytes, or another number in its base unit.
    number: Option<f64>,
    is_default: bool,
    /// Whether the value is that of a server without any setting, whoever set it.
    is_built_in: bool,
}

/// A size in bytes, or another number in its unit. The unit of a number of blocks is the size of one: `8kB`. An extension may show any
/// text for its number.
fn number(text: Option<&str>, unit: Option<&str>) -> Option<f64> {
    let unit = unit.unwrap_or_default();
    let count = unit.trim_end_matches(char::is_alphabetic);
    let bytes = match &unit[count.len()..] {
        "kB" => 1024.0,
        "MB" => 1_048_576.0,
        _ => 1.0,
    };
    Some(text?.parse::<f64>().ok()? * count.parse().unwrap_or(1.0) * bytes)
}

#[derive(Debug, Clone, Default)]
pub(super) struct PgSettings(BTreeMap<String, Setting>);

impl PgSettings {
    /// Reads the settings of this session, including those of its role and its database.
    pub(super) fn read(c: &mut Connection) -> Result<PgSettings, TargetError> {
        let rows = c.query(&own(&KNOWLEDGE.queries.text("settings", &[])))?;
        let setting = |row: &Row| {
            let (shown, number) = (row.text(1), number(row.value(2), row.value(3)));
            (row.text(0), Setting { shown, number, is_default: row.is_true(4), is_built_in: row.is_true(5) })
        };
        Ok(PgSettings(rows.iter().map(setting).collect()))
    }

    pub(super) fn cloud(&self) -> Option<&'static Cloud> {
        Cloud::from_settings(self.0.keys().map(String::as_str))
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.text(name) == Some("on")
    }

    /// Disk space that the log takes while bytes are `written`, if they are `kept` by slots or not. Segments are reused after each
    /// checkpoint, which starts near `max_wal_size`: a soft limit, so half of it is added. Archiver and slots may retain any number
    /// (<https://www.postgresql.org/docs/current/wal-configuration.html>).
    pub(super) fn log_bytes(&self, kept: bool, written: u64) -> u64 {
        let archived = self.text("archive_mode").is_some_and(|mode| mode != "off");
        let size = |name: &str| self.number(name).unwrap_or(0.0).max(0.0) as u64;
        match size("max_wal_size") {
            0 => written,
            _ if archived || kept => written,
            max => written.min((max + max / 2).saturating_add(size("wal_keep_size"))),
        }
    }

    /// The settings stored with a run: the important ones and all changed ones, without secrets.
    pub(super) fn stated(&self) -> BTreeMap<String, String> {
        self.without_secrets(|name, s| !s.is_default || KNOWLEDGE.recorded.iter().any(|recorded| recorded == name))
    }

    pub(super) fn changed(&self) -> BTreeMap<String, String> {
        self.without_secrets(|_, s| !s.is_default && !s.is_built_in)
    }

    fn without_secrets(&self, wanted: impl Fn(&str, &Setting) -> bool) -> BTreeMap<String, String> {
        let secret = |name: &str, shown: &str| {
            let name = name.to_ascii_lowercase();
            KNOWLEDGE.secret.iter().any(|part| name.contains(part))
                && !matches!(shown, "" | "(disabled)" | "on" | "off")
        };
        let shown = |(name, s): (&String, &Setting)| {
            let value = if secret(name, &s.shown) { "(set, not shown)".to_owned() } else { s.shown.clone() };
            (name.clone(), value)
        };
        self.0.iter().filter(|(name, s)| wanted(name, s)).map(shown).collect()
    }

    #[cfg(test)]
    pub(super) fn from_pairs(pairs: &[(&str, &str)]) -> PgSettings {
        let setting = |shown: &str| {
            let number = shown.parse().ok();
            Setting { shown: shown.into(), number, is_default: false, is_built_in: false }
        };
        PgSettings(pairs.iter().map(|(name, value)| ((*name).to_owned(), setting(value))).collect())
    }
}

/// Why counters cannot be read: of the log's syncs, and times of the sessions' reads and of the log; and `/proc/stat` of the server's
/// machine, which need not be read of this one.
#[derive(Debug, Clone, Default)]
pub(super) struct CounterGaps {
    pub(super) redo_syncs: Option<String>,
    pub(super) read_times: Option<String>,
    pub(super) log_times: Option<String>,
    pub(super) proc_stat: Option<String>,
    pub(super) reads_proc_stat: bool,
}

/// Why the server does not count its log syncs with these settings; `None` if it does.
pub(super) fn uncounted_syncs(settings: &PgSettings) -> Option<String> {
    if settings.text("fsync") == Some("off") {
        return Some(message("no-syncs", &[]));
    }
    let method = settings.text("wal_sync_method")?;
    matches!(method, "open_sync" | "open_datasync").then(|| message("writes-sync", &[("method", method)]))
}

impl SettingValues for PgSettings {
    /// Value with its unit; `None` if there is no such setting or the role cannot see it.
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|setting| setting.shown.as_str())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.number
    }
}

/// Refuses names of extensions' settings that nothing defines: PostgreSQL takes any name with a dot, and does nothing with it.
pub(super) fn refuse_placeholders(c: &mut Connection, given: &BTreeMap<String, String>) -> Result<(), TargetError> {
    for name in given.keys() {
        let Some((extension, _)) = name.split_once('.') else { continue };
        // The library of the one language that a new server has is loaded when it is first used.
        if extension == "plpgsql" {
            c.query("LOAD 'plpgsql'")?;
        }
        if c.value(&format!("SELECT name FROM pg_settings WHERE lower(name) = lower({})", literal(name)))?.is_none() {
            let parts = [("name", name.as_str()), ("extension", extension)];
            return Err(TargetError::Usage(message("placeholder", &parts)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn secrets_are_not_stated() {
        let hidden = [
            "primary_conninfo", "archive_cleanup_command", "recovery_end_command", "vectorize.openai_key",
            "ai.Api_Token", "anon.salt",
        ];
        let shown = ["fsync", "log_replication_commands", "tcp_keepalives_idle"];
        let of = |name: &'static str| (name, if shown.contains(&name) { "on" } else { "geheim" });
        let pairs: Vec<_> = hidden.into_iter().chain(shown).map(of).collect();
        let stated = PgSettings::from_pairs(&pairs).stated();
        assert!(hidden.iter().all(|name| stated[*name] == "(set, not shown)"), "{stated:?}");
        assert!(shown.iter().all(|name| stated[*name] == "on"), "{stated:?}");
    }

    #[test]
    fn sizes_are_in_bytes_and_a_text_is_no_number() {
        for (text, unit, want) in cases::<(String, String, Vec<f64>)>("postgres-numbers") {
            assert_eq!(number(Some(&text), Some(&unit)).into_iter().collect::<Vec<_>>(), want, "{text} {unit}");
        }
        assert_eq!((number(Some("7"), None), number(None, Some("kB"))), (Some(7.0), None));
    }

    #[test]
    fn a_setting_that_was_set_to_its_default_has_not_changed() {
        let mut s = PgSettings::from_pairs(&[("max_connections", "100"), ("work_mem", "8MB")]);
        for (name, setting) in &mut s.0 {
            setting.is_built_in = name == "max_connections";
        }
        assert_eq!(s.changed().into_keys().collect::<Vec<_>>(), ["work_mem"]);
        assert_eq!(s.stated().len(), 2);
    }

    #[test]
    fn the_log_is_bounded_if_segments_are_reused() {
        let settings = |archive| PgSettings::from_pairs(&[("archive_mode", archive), ("max_wal_size", "1073741824")]);
        let usual = settings("off");
        assert_eq!(usual.log_bytes(false, 1 << 40), 1536 << 20);
        assert_eq!(usual.log_bytes(false, 1 << 20), 1 << 20, "no more than is written");
        for (unbounded, kept) in [(settings("on"), false), (usual, true), (PgSettings::default(), false)] {
            assert_eq!(unbounded.log_bytes(kept, 1 << 40), 1 << 40, "{unbounded:?}");
        }
    }
}
