//! Finds the setting of the target that causes a sawtooth in commit times.
//!
//! A setting is a likely cause if the redo between two flushes that follows from it is within [`TOLERANCE`] of the
//! period. Settings are known by their names, for all databases.

use std::collections::BTreeMap;

use loadline_model::format::bytes;

/// Largest difference between the period and that of a likely cause, as a share.
const TOLERANCE: f64 = 0.05;

type Settings = BTreeMap<String, String>;

/// `Likely cause: flush_at_bytes = 1048576 (1.0 MiB).`, or the settings that do not match.
pub(crate) fn sentence(period_bytes: f64, settings: &Settings) -> String {
    let mut known = candidates(settings);
    let off = |c: &Candidate| (period_bytes / c.bytes - 1.0).abs();
    known.sort_by(|a, b| off(a).total_cmp(&off(b)));
    let words = |c: &Candidate| format!("{} ({})", c.words, bytes(c.bytes));
    let likely: Vec<String> = known.iter().filter(|c| off(c) <= TOLERANCE).map(words).collect();
    if !likely.is_empty() {
        return format!("Likely cause: {}.", likely.join(" or "));
    }
    if known.is_empty() {
        return "No setting explains it: no settings of log buffer or flushes are known for this target.".to_owned();
    }
    let all: Vec<String> = known.iter().map(words).collect();
    format!("No setting explains it: {}.", all.join(", "))
}

/// A setting and the redo after which it makes the database write the log.
struct Candidate {
    words: String,
    bytes: f64,
}

fn candidates(settings: &Settings) -> Vec<Candidate> {
    let get = |name: &str| settings.get(name).map(|v| v.trim());
    let size = |name: &str| get(name).and_then(parse_bytes);
    let mut out = Vec::new();
    let mut add = |words: String, bytes: Option<f64>| out.extend(bytes.map(|bytes| Candidate { words, bytes }));
    let own = |name: &str| format!("{name} = {}", get(name).unwrap_or_default());
    // Of the reference log writer (wal), PostgreSQL and InnoDB.
    for name in ["flush_at_bytes", "buffer_bytes", "wal_writer_flush_after", "wal_buffers", "innodb_log_buffer_size"] {
        add(own(name), size(name));
    }
    let share = get("flush_fraction").and_then(parse_fraction);
    let filled = size("buffer_bytes").zip(share).map(|(buffer, share)| buffer * share);
    add(format!("{} of {}", own("flush_fraction"), own("buffer_bytes")), filled);
    // InnoDB writes its buffer when it is half full.
    add(format!("half of {}", own("innodb_log_buffer_size")), size("innodb_log_buffer_size").map(|b| b / 2.0));
    // SQLite counts pages; each has a header of 24 bytes in its log.
    let page = get("page_size").and_then(|v| v.parse::<f64>().ok()).filter(|p| *p > 0.0);
    let pages = |name: &str| get(name).and_then(|v| v.parse::<f64>().ok());
    let frames = pages("wal_autocheckpoint").filter(|n| *n > 0.0).zip(page).map(|(n, page)| n * (page + 24.0));
    add(format!("{} pages", own("wal_autocheckpoint")), frames);
    let cache = pages("cache_size").zip(page).map(|(n, page)| if n < 0.0 { -n * 1024.0 } else { n * page });
    add(own("cache_size"), cache.filter(|c| *c > 0.0));
    out
}

/// Parses `1048576`, `16MB`, `64kB`, `1.5 MiB` as bytes (binary units, as in databases); `None` for anything else and
/// for 0, which disables a setting.
fn parse_bytes(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor).filter(|b| *b > 0.0)
}

/// Parses `1/3`, `0.333` or `33 %`.
fn parse_fraction(text: &str) -> Option<f64> {
    let number = |t: &str| t.trim().parse::<f64>().ok();
    let share = match (text.split_once('/'), text.strip_suffix('%')) {
        (Some((a, b)), _) => number(a)? / number(b)?,
        (None, Some(percent)) => number(percent)? / 100.0,
        (None, None) => number(text)?,
    };
    (share > 0.0 && share <= 1.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1024.0 * 1024.0;

    fn words_for(period: f64, settings: &[(&str, &str)]) -> String {
        sentence(period, &settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn a_setting_near_the_period_is_likely() {
        let wal = [("flush_at_bytes", "1048576"), ("flush_fraction", "1/3"), ("buffer_bytes", "1.5 MiB")];
        assert_eq!(words_for(1.004 * MIB, &wal), "Likely cause: flush_at_bytes = 1048576 (1.0 MiB).");
        assert_eq!(
            words_for(0.51 * MIB, &wal),
            "Likely cause: flush_fraction = 1/3 of buffer_bytes = 1.5 MiB (512.0 KiB)."
        );
        let postgres = [("wal_writer_flush_after", "1MB"), ("wal_buffers", "16MB"), ("fsync", "on")];
        assert_eq!(words_for(MIB, &postgres), "Likely cause: wal_writer_flush_after = 1MB (1.0 MiB).");
        assert_eq!(
            words_for(8.1 * MIB, &[("innodb_log_buffer_size", "16777216")]),
            "Likely cause: half of innodb_log_buffer_size = 16777216 (8.0 MiB)."
        );
        let sqlite = [("page_size", "1024"), ("wal_autocheckpoint", "1000"), ("cache_size", "-16384")];
        assert_eq!(words_for(1_048_000.0, &sqlite), "Likely cause: wal_autocheckpoint = 1000 pages (1023.4 KiB).");
        assert_eq!(words_for(16.0 * MIB, &sqlite), "Likely cause: cache_size = -16384 (16.0 MiB).");
    }

    #[test]
    fn settings_off_the_period_are_not_likely() {
        let postgres = [("wal_writer_flush_after", "1MB"), ("wal_buffers", "4MB")];
        assert_eq!(
            words_for(1.06 * MIB, &postgres),
            "No setting explains it: wal_writer_flush_after = 1MB (1.0 MiB), wal_buffers = 4MB (4.0 MiB)."
        );
        assert!(words_for(MIB, &[("fsync", "on")]).starts_with("No setting explains it: no settings of"));
        for off in ["off", "none", "0", "", "-1", "1 parsec"] {
            assert!(
                words_for(MIB, &[("flush_at_bytes", off)]).starts_with("No setting explains it: no settings"),
                "{off}"
            );
        }
        assert!(words_for(MIB, &[("flush_fraction", "1/0"), ("buffer_bytes", "3 MiB")]).starts_with("No setting"));
    }

    #[test]
    fn settings_with_the_same_period_are_both_named() {
        let both =
            words_for(MIB, &[("flush_at_bytes", "1MiB"), ("flush_fraction", "0.3333"), ("buffer_bytes", "3145728")]);
        assert_eq!(
            both,
            "Likely cause: flush_at_bytes = 1MiB (1.0 MiB) or flush_fraction = 0.3333 of buffer_bytes = 3145728 (1023.9 KiB)."
        );
    }
}
