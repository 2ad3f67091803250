//! Finds the setting of the target that causes a sawtooth in commit times.
//!
//! A setting is a likely cause if the redo between two flushes that follows from it is within [`TOLERANCE`] of the
//! period. Settings are known by their names, for all databases.

use std::collections::BTreeMap;

use loadline_model::format::bytes;
use minijinja::context;

use crate::templates::parts;

/// Largest difference between the period and that of a likely cause, as a share.
const TOLERANCE: f64 = 0.05;

/// `Likely cause: flush_at_bytes = 1048576 (1.0 MiB).`, or the settings that do not match.
pub(crate) fn sentence(period_bytes: f64, settings: &BTreeMap<String, String>) -> String {
    // 0 disables a setting.
    let set = |[words, bytes]: [String; 2]| Some((words, bytes.parse().ok().filter(|bytes: &f64| *bytes > 0.0)?));
    let mut known: Vec<_> =
        parts("sizes of settings", context! { s => settings }).into_iter().filter_map(set).collect();
    let off = |(_, bytes): &(String, f64)| (period_bytes / bytes - 1.0).abs();
    known.sort_by(|a, b| off(a).total_cmp(&off(b)));
    let words = |(words, size): &(String, f64)| format!("{words} ({})", bytes(*size));
    let likely: Vec<String> = known.iter().filter(|c| off(c) <= TOLERANCE).map(words).collect();
    if !likely.is_empty() {
        return format!("Likely cause: {}.", likely.join(" or "));
    }
    if known.is_empty() {
        return "No setting explains it: no settings of log buffer or flushes are known for this target.".to_owned();
    }
    format!("No setting explains it: {}.", known.iter().map(words).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_near_the_period_is_likely() {
        for (period, settings, says) in [
            ("1028 k", "flush_at_bytes=1048576;buffer_bytes=9MiB", "Likely cause: flush_at_bytes = 1048576 (1.0 MiB)."),
            ("520 k", "flush_fraction=0.33;buffer_bytes=1.5 MiB", "flush_fraction = 0.33 of buffer_bytes = 1.5 MiB"),
            ("1 m", "wal_writer_flush_after=1MB;wal_buffers=16MB;fsync=on", "wal_writer_flush_after = 1MB (1.0 MiB)."),
            ("8.1 m", "innodb_log_buffer_size=16777216", "half of innodb_log_buffer_size = 16777216 (8.0 MiB)."),
            ("1048000", "page_size=1024;wal_autocheckpoint=1000", "wal_autocheckpoint = 1000 pages (1023.4 KiB)."),
            ("16 m", "page_size=1024;cache_size=-16384", "cache_size = -16384 (16.0 MiB)."),
            ("1 m", "flush_at_bytes=1MiB;flush_fraction=0.33;buffer_bytes=3145728", "1MiB (1.0 MiB) or flush_fraction"),
            (
                "1085 k",
                "wal_writer_flush_after=1MB;wal_buffers=4MB",
                "explains it: wal_writer_flush_after = 1MB (1.0 MiB),",
            ),
            ("1 m", "flush_at_bytes=0;flush_fraction=off;buffer_bytes=none", "no settings of log buffer"),
        ] {
            let pairs = settings.split(';').filter_map(|pair| pair.split_once('='));
            let settings = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let said = sentence(loadline_model::format::parse_bytes(period).unwrap() as f64, &settings);
            assert!(said.contains(says), "{said}");
        }
    }
}
