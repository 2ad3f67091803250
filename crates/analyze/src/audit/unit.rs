//! Units of columns: as headers print them, and as the ids of our columns end with them.

use super::words::WORDS;

/// A unit. Its kind is `time`, `share`, `bytes`, `bandwidth`, `size` (bytes per transaction), or `count`, `rate` and `per_tx` with what
/// is counted: `rate.row`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    pub(crate) kind: String,
    /// One of it in seconds, bytes, parts of one, or pieces.
    pub(crate) size: f64,
    /// Its other size: 1,024 bytes of a KB, which strictly has 1,000.
    pub(crate) other: Option<f64>,
    /// As printed.
    pub(crate) text: String,
}

impl Unit {
    /// The unit that `text` names: `ms`, `MiB/s`, `KB per tx`, `tps`, `rbps`, `kBpt`, `%`.
    pub(crate) fn parse(text: &str) -> Option<Unit> {
        let text = text.trim().trim_end_matches('.');
        let whole = |text: &str| Unit::simple(text, |_| true).filter(|_| text != "#");
        let found = whole(text).or_else(|| Unit::quotient(text)).or_else(|| Unit::compact(text));
        found.or_else(|| whole(&text.to_lowercase())).map(|unit| Unit { text: text.to_owned(), ..unit })
    }

    fn simple(text: &str, of_kind: fn(&str) -> bool) -> Option<Unit> {
        let u = WORDS.unit(text, of_kind)?;
        Some(Unit { kind: u.kind.to_owned(), size: u.size, other: u.other, text: text.to_owned() })
    }

    /// What can be counted per something, also in thousands and millions.
    fn counted(text: &str) -> Option<Unit> {
        let is_counted = |kind: &str| kind.starts_with("count") || matches!(kind, "bytes" | "time");
        let times = if text.starts_with('M') { 1e6 } else { 1e3 };
        let plain = Unit::simple(text, is_counted).or_else(|| Unit::simple(&text.to_lowercase(), is_counted));
        plain.or_else(|| {
            let rest = text.strip_prefix(['k', 'K', 'M'])?.trim_start();
            let piece = Unit::simple(&rest.to_lowercase(), |kind| kind.starts_with("count."))?;
            Some(Unit { size: times, ..piece })
        })
    }

    /// `MB/s`, `rows per second`.
    fn quotient(text: &str) -> Option<Unit> {
        let (above, below) = text.rsplit_once('/').or_else(|| text.rsplit_once(" per "))?;
        let above = if above.trim().is_empty() { "1" } else { above.trim() };
        Unit::per(Unit::counted(above)?, below.trim())
    }

    /// `tps`, `kqps`, `dbps`, `MBps`, `rpt`, `kBpt`: what is counted, and `ps` or `pt`.
    fn compact(text: &str) -> Option<Unit> {
        let (head, tail) = text.split_at_checked(text.len().checked_sub(2)?)?;
        let below = match tail.to_lowercase().as_str() {
            "ps" => "s",
            "pt" => "tx",
            _ => return None,
        };
        let above =
            Unit::counted(head).filter(|u| !matches!(head, "s" | "h" | "1" | "k" | "M" | "") && u.kind != "time")?;
        Unit::per(above, below)
    }

    fn per(above: Unit, below: &str) -> Option<Unit> {
        let (second, parts) = match below.to_lowercase().as_str() {
            "s" | "sec" | "second" | "secs" => (true, 1.0),
            "ms" => (true, 1e3),
            "min" | "minute" => (true, 1.0 / 60.0),
            "h" | "hour" => (true, 1.0 / 3600.0),
            "tx" | "txn" | "trx" | "transaction" | "commit" | "xact" | "iter" => (false, 1.0),
            _ => return None,
        };
        let kind = match (above.kind.as_str(), second) {
            ("bytes", true) => "bandwidth".to_owned(),
            ("bytes", false) => "size".to_owned(),
            ("time", false) => "time".to_owned(),
            ("time", true) => return None,
            (count, true) => count.replace("count", "rate"),
            (count, false) => count.replace("count", "per_tx"),
        };
        Some(Unit { kind, size: above.size * parts, other: above.other.map(|o| o * parts), ..above })
    }

    /// The unit in which the figures of a column with this id are.
    pub(crate) fn of_id(id: &str) -> Unit {
        const UNITS: [&str; 9] = ["ns", "us", "ms", "mib", "kib", "bytes", "pct", "mops", "tps"];
        let parts: Vec<&str> = id.split('_').collect();
        let per = match parts.last() {
            Some(below @ (&"s" | &"tx")) if parts.contains(&"per") => format!("/{below}"),
            _ => String::new(),
        };
        let unit = match UNITS.iter().find(|unit| parts.contains(unit)) {
            Some(&"mops") => "M/s".to_owned(),
            Some(unit) => format!("{unit}{per}"),
            None if per.is_empty() && id.ends_with("_s") => "s".to_owned(),
            None => format!("1{per}"),
        };
        let plain = || Unit { kind: "count.any".to_owned(), size: 1.0, other: None, text: String::new() };
        Unit::parse(&unit).unwrap_or_else(plain)
    }
}
