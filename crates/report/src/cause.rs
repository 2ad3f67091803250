//! Finds the setting of the target that causes a sawtooth in commit times.
//!
//! A setting is a likely cause if the redo between two flushes that follows from it is within [`TOLERANCE`] of the
//! period. Settings are known by their names, for all databases.

use std::collections::BTreeMap;

use loadline_model::format::{bytes, parse_bytes};

/// Largest difference between the period and that of a likely cause, as a share.
const TOLERANCE: f64 = 0.05;
/// Settings of the reference log writer (wal), PostgreSQL and InnoDB that are a size.
const SIZES: [&str; 5] =
    ["flush_at_bytes", "buffer_bytes", "wal_writer_flush_after", "wal_buffers", "innodb_log_buffer_size"];
/// SQLite counts pages; each has a header in its log, bytes.
const FRAME_HEADER: f64 = 24.0;

type Settings = BTreeMap<String, String>;

/// `Likely cause: flush_at_bytes = 1048576 (1.0 MiB).`, or the settings that do not match.
pub(crate) fn sentence(period_bytes: f64, settings: &Settings) -> String {
    let mut known = candidates(settings);
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

/// Settings in words, and the redo after which each makes the database write the log.
fn candidates(settings: &Settings) -> Vec<(String, f64)> {
    let get = |name: &str| settings.get(name).map_or("", |v| v.trim());
    let own = |name: &str| format!("{name} = {}", get(name));
    let size = |name: &str| parse_bytes(get(name)).ok().map(|n| n as f64);
    let number = |name: &str| get(name).parse::<f64>().ok();
    let mut all: Vec<(String, Option<f64>)> = SIZES.iter().map(|name| (own(name), size(name))).collect();
    let filled = size("buffer_bytes")
        .zip(number("flush_fraction").filter(|share| *share <= 1.0))
        .map(|(buffer, share)| buffer * share);
    all.push((format!("{} of {}", own("flush_fraction"), own("buffer_bytes")), filled));
    // InnoDB writes its buffer when it is half full.
    let half = size("innodb_log_buffer_size").map(|b| b / 2.0);
    all.push((format!("half of {}", own("innodb_log_buffer_size")), half));
    let page = number("page_size");
    let frames = number("wal_autocheckpoint").zip(page).map(|(n, page)| n * (page + FRAME_HEADER));
    all.push((format!("{} pages", own("wal_autocheckpoint")), frames));
    let cache = number("cache_size").zip(page).map(|(n, page)| if n < 0.0 { -n * 1024.0 } else { n * page });
    all.push((own("cache_size"), cache));
    // 0 disables a setting.
    all.into_iter().filter_map(|(words, bytes)| Some((words, bytes.filter(|b| *b > 0.0)?))).collect()
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
            let said = sentence(parse_bytes(period).unwrap() as f64, &settings);
            assert!(said.contains(says), "{said}");
        }
    }
}
