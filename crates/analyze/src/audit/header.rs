//! A header as words and a unit: `Commit latency [ms]`, `Redo (MB/s)`, `avgLatencyMs`, `latency_us`, `p99, us`.

use crate::audit::unit::{self, Unit};

/// A header, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Header {
    /// Words in small letters, without units.
    pub(crate) words: Vec<String>,
    /// Unit, if one is named.
    pub(crate) unit: Option<Unit>,
    /// A second unit of the same header.
    pub(crate) second: Option<Unit>,
    /// A word that is a name and a unit: `tps`, `iops`.
    pub(crate) rate: Option<String>,
}

impl Header {
    /// Takes `text` apart.
    pub(crate) fn parse(text: &str) -> Header {
        let text = without_marks(text);
        // Nothing but a unit: "MiB/s", "M ops/s".
        if let Some(unit) = Unit::parse(&text) {
            let rate = unit.dimension.per == unit::Per::Second && unit.size >= 1e3;
            let ops = rate && matches!(unit.piece, unit::Piece::Any | unit::Piece::Transaction);
            match unit.dimension.of {
                unit::Of::Bytes => return Header { unit: Some(unit), ..Header::default() },
                unit::Of::One if ops => {
                    return Header { unit: Some(unit), words: vec!["ops".to_owned()], ..Header::default() };
                }
                _ => {}
            }
        }
        let (rest, mut units, more) = brackets(&text);
        let rest = match rest.rsplit_once([',', ';']).or_else(|| rest.rsplit_once(" in ")) {
            Some((name, last)) if Unit::parse(last).is_some() => {
                units.extend(Unit::parse(last));
                name.to_owned()
            }
            _ => rest,
        };
        let tokens = percentiles(tokens(&format!("{rest} {more}")));
        let texts: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let (left, own) = unit::take_unit(&texts);
        // "TPS per client" is no rate of all.
        let ratio = left.iter().any(|w| w.eq_ignore_ascii_case("per"))
            && own.as_ref().is_some_and(|u| u.dimension.per == unit::Per::Second);
        let (left, own) = if ratio { (texts.clone(), None) } else { (left, own) };
        // TPS (k)
        let thousands = units.iter().position(|u| u.is_multiplier());
        let own = match (own, thousands) {
            (Some(own), Some(at)) if own.dimension.of == unit::Of::One && !own.is_multiplier() => {
                let times = units.remove(at);
                Some(Unit { size: own.size * times.size, ..own })
            }
            (own, _) => own,
        };
        match (own, units.first_mut()) {
            // WAL per transaction [kB]
            (Some(own), Some(size)) if own.is_only_per() && size.dimension.per == unit::Per::Whole => {
                size.dimension.per = own.dimension.per;
                size.size *= own.size;
                size.or = size.or.map(|or| or * own.size);
            }
            (Some(own), _) => units.insert(0, own),
            (None, _) => {}
        }
        let words: Vec<String> = left.iter().map(|w| w.to_lowercase()).collect();
        let named = |unit: &&Unit| Unit::parse(&unit.text).is_some_and(|u| u.dimension.per == unit::Per::Second);
        let rate =
            units.iter().filter(named).map(|u| u.text.to_lowercase()).find(|t| t.chars().all(char::is_alphabetic));
        // Two units of one name: latency_ms_us.
        let several = texts.iter().filter_map(|w| unit::named(w)).filter(|u| u.dimension.of == unit::Of::Time);
        let mut times = several.collect::<Vec<_>>();
        times.dedup_by(|a, b| a.size == b.size);
        if times.len() > 1 && units.iter().all(|u| u.dimension.of == unit::Of::Time) {
            units.extend(times);
        }
        let first = units.first().cloned();
        let differs = |u: &&Unit| first.as_ref().is_some_and(|f| f.size != u.size || f.dimension.of != u.dimension.of);
        let second = units.iter().find(differs).cloned();
        Header { words, unit: first, second, rate }
    }
}

/// The text without what points to a footnote, and `p(90)` as `p90`.
fn without_marks(text: &str) -> String {
    let mark = |c: char| "¹²³⁴⁵⁶⁷⁸⁹⁰†‡§*".contains(c);
    let plain: String = text.chars().filter(|c| !mark(*c)).collect();
    match plain.split_once("p(") {
        Some((before, after)) if after.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{before}p{}", after.replacen(')', " ", 1))
        }
        _ => plain,
    }
}

/// The text without brackets, the units in them, and what else they hold.
fn brackets(text: &str) -> (String, Vec<Unit>, String) {
    let (mut rest, mut units, mut more) = (String::new(), Vec::new(), String::new());
    let mut left = text;
    while let Some(open) = left.find(['(', '[', '{']) {
        let (before, inside) = left.split_at(open);
        let Some(close) = inside.find([')', ']', '}']) else { break };
        rest.push_str(before);
        rest.push(' ');
        let inner = inside.get(1..close).unwrap_or("").trim();
        let footnote = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_digit());
        match Unit::parse(inner) {
            // Counts are in ones: [1]. Behind a name of something else it is a footnote as well.
            _ if footnote => {}
            Some(unit) => units.push(unit),
            None => {
                let parts: Vec<&str> = inner.split(['/', ',', ';', '|']).flat_map(|p| p.split(" or ")).collect();
                let parsed: Option<Vec<Unit>> = parts.iter().map(|p| Unit::parse(p)).collect();
                match parsed {
                    Some(all) if !all.is_empty() => units.extend(all),
                    _ => more.push_str(&format!(" {inner}")),
                }
            }
        }
        left = inside.get(close + 1..).unwrap_or("");
    }
    rest.push_str(left);
    (rest, units, more)
}

/// Words of a name. A slash before a unit of time, or before a transaction, is a "per".
fn tokens(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    let chars: Vec<char> = text.trim().chars().collect();
    let one_word = !text.trim().contains(|c: char| c.is_whitespace() || c == '_' || c == '-');
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        match c {
            '/' => spaced.push_str(" per "),
            '.' if before.is_some_and(char::is_ascii_digit) && chars.get(i + 1).is_some_and(char::is_ascii_digit) => {
                spaced.push('.');
            }
            '%' if before.is_some_and(char::is_ascii_digit) => spaced.push('%'),
            '%' => spaced.push_str(" % "),
            c if c.is_alphanumeric() => {
                // avgLatencyMs
                if one_word && c.is_uppercase() && before.is_some_and(|b| b.is_lowercase()) && chars.len() > 4 {
                    spaced.push(' ');
                }
                spaced.push(*c);
            }
            _ => spaced.push(' '),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Words with the percentiles among them as one word each: `95th pct`, `99 %`, `lat99` become `p95`, `p99`, `lat p99`.
fn percentiles(words: Vec<String>) -> Vec<String> {
    const MARKS: [&str; 8] = ["%", "pct", "pctl", "perc", "percentile", "percentiles", "quantile", "line"];
    let digits = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let high = |word: &str| digits(word) && word.parse().is_ok_and(|p: f64| (50.0..100.0).contains(&p));
    let timed = words.iter().any(|w| TIMES.iter().any(|t| w.to_lowercase().starts_with(t)));
    let mut all: Vec<String> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let lower = word.to_lowercase();
        let mark = |at: Option<usize>| {
            at.and_then(|at| words.get(at)).is_some_and(|w| MARKS.contains(&w.to_lowercase().as_str()))
        };
        let bare = ["th", "st", "nd", "rd", "%"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
        let joined = TIMES.iter().find_map(|t| Some((*t, lower.strip_prefix(t).filter(|rest| high(rest))?)));
        let marked = bare != lower || mark(i.checked_sub(1)) || mark(Some(i + 1));
        if let Some((time, percentile)) = joined {
            all.extend([time.to_owned(), format!("p{percentile}")]);
        } else if high(bare) && (marked || timed) {
            all.push(format!("p{bare}"));
        } else if !(mark(Some(i)) && all.last().is_some_and(|p| p.starts_with('p') && digits(&p[1..]))) {
            all.push(word.clone());
        }
    }
    all
}

/// Words for times of which there are percentiles.
const TIMES: [&str; 4] = ["latency", "lat", "response", "rt"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::names::read;

    #[test]
    fn headers_are_taken_apart_and_found() {
        let cases = [
            ("Commit latency [ms]", "commit_latency_ms", 1e-3),
            ("Redo (MB/s)", "redo_mib_per_s", 1e6),
            ("redo_kb_per_tx", "redo_kib_per_tx", 1e3),
            ("commit_latency_us", "commit_latency_ms", 1e-6),
            ("avgLatencyMs", "commit_latency_ms", 1e-3),
            ("latency average (ms)", "commit_latency_ms", 1e-3),
            ("p99 (us)", "transaction_time_ns_p99", 1e-6),
            ("95th percentile", "transaction_time_ns_p95", 0.0),
            ("TPS", "commit_throughput_tps", 1.0),
            ("tps", "commit_throughput_tps", 1.0),
            ("Transactions/s", "tx_per_s", 1.0),
            ("Redo data [KiB/tx]", "redo_kib_per_tx", 1024.0),
            ("Redo data [MiB/s]", "redo_mib_per_s", 1_048_576.0),
            ("CPU busy [%]", "cpu_busy_pct", 0.01),
            ("CPU %", "cpu_busy_pct", 0.01),
            ("%usr", "cpu_user_pct", 0.01),
            ("Clients", "jobs", 0.0),
            ("IOPS", "io_per_s", 1.0),
            ("rows", "rows_per_tx", 0.0),
            ("Rows [1/s]", "rows_per_s", 1.0),
            ("Commit time p50 [ms]", "commit_time_ns_p50", 1e-3),
            ("Elapsed [s]", "elapsed_s", 1.0),
            ("log file sync, ms", "log_file_sync_ms", 1e-3),
            ("tpm", "commit_throughput_tps", 1.0 / 60.0),
            ("TPS (k)", "commit_throughput_tps", 1e3),
            ("tpmC", "commit_throughput_tps", 1.0 / 60.0),
            ("WAL per txn [kB]", "redo_kib_per_tx", 1e3),
            ("Throughput² (tps)", "commit_throughput_tps", 1.0),
            ("Users[1]", "jobs", 0.0),
            ("tps (without initial connection time)", "commit_throughput_tps", 1.0),
            ("TPS (median of 3)", "commit_throughput_tps", 1.0),
            ("Average TPS", "commit_throughput_tps", 1.0),
            ("Throughput (rows/s)", "rows_per_s", 1.0),
            ("Throughput (MB/s)", "data_mib_per_s", 1e6),
            ("Requests/sec", "commit_throughput_tps", 1.0),
            ("No. of concurrent clients", "jobs", 0.0),
            ("num_threads", "threads", 0.0),
            ("Latency / ms", "commit_latency_ms", 1e-3),
            ("ms per transaction", "commit_latency_ms", 1e-3),
            ("99.9th pct latency (us)", "transaction_time_ns_p999", 1e-6),
            ("p(95)", "transaction_time_ns_p95", 0.0),
            ("lat99", "transaction_time_ns_p99", 0.0),
        ];
        for (text, id, size) in cases {
            let header = Header::parse(text);
            assert_eq!(read(&header).map(|m| m.id), Some(id), "{text}: {header:?}");
            assert_eq!(header.unit.as_ref().map_or(0.0, |u| u.size), size, "{text}");
            assert_eq!(header.second, None, "{text}");
        }
        let others = [
            "Max TPS", "TPS per client", "TPM/NOPM", "Throughput (msg/s)", "Avg active sessions", "Δ TPS",
            "Total latency",
        ];
        for text in ["comment", "stddev", "price [$]", ""].into_iter().chain(others) {
            let header = Header::parse(text);
            assert_eq!(read(&header), None, "{text}");
        }
    }

    #[test]
    fn two_units_in_a_header_are_seen() {
        for text in ["Latency [ms/us]", "latency_ms_us", "latency_ms [us]", "Time (ms or s)"] {
            assert!(Header::parse(text).second.is_some(), "{text}: {:?}", Header::parse(text));
        }
    }
}
