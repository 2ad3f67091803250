//! Units of columns: as the ids of our columns end with them, and as headers print them.

/// What is counted, and per what. `Bytes / Second` is a bandwidth, `One / Second` a rate, `One` a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// What is counted.
    pub of: Of,
    /// Per what.
    pub per: Per,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Anything: tests, rows, transactions.
    One,
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// A share of a whole.
    Share,
}

/// Per what it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Per nothing.
    Whole,
    /// Per second.
    Second,
    /// Per transaction.
    Transaction,
}

/// What kind of piece is counted, where a unit names it: `rows/s` is no throughput of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Piece {
    /// Anything.
    #[default]
    Any,
    /// Transactions, requests, events.
    Transaction,
    /// Rows, records.
    Row,
    /// Queries, statements.
    Query,
    /// Requests to a device.
    Io,
    /// Messages.
    Message,
}

/// A unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// What it measures.
    pub dimension: Dimension,
    /// What kind of piece it counts.
    pub piece: Piece,
    /// Value of one of it in seconds, bytes, parts of one, or pieces.
    pub size: f64,
    /// The other size that it may have: 1,024 of a KB, which strictly is 1,000.
    pub or: Option<f64>,
    /// As printed.
    pub text: String,
}

const KIB: f64 = 1024.0;

fn unit(of: Of, size: f64) -> Unit {
    Unit { dimension: Dimension { of, per: Per::Whole }, piece: Piece::Any, size, or: None, text: String::new() }
}

fn pieces(piece: Piece, size: f64) -> Unit {
    Unit { piece, ..unit(Of::One, size) }
}

/// A simple unit: no `per`.
fn simple(text: &str) -> Option<Unit> {
    let decimal = |power: i32| Unit { or: Some(KIB.powi(power)), ..unit(Of::Bytes, 1000f64.powi(power)) };
    // The case tells bits from bytes, and mega from milli.
    match text {
        "B" => return Some(unit(Of::Bytes, 1.0)),
        "b" | "bit" | "bits" => return Some(unit(Of::Bytes, 0.125)),
        "M" => return Some(unit(Of::One, 1e6)),
        _ => {}
    }
    Some(match text.to_lowercase().as_str() {
        "ns" | "nsec" | "nanoseconds" | "nanosecond" => unit(Of::Time, 1e-9),
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => unit(Of::Time, 1e-6),
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => unit(Of::Time, 1e-3),
        "s" | "sec" | "secs" | "second" | "seconds" => unit(Of::Time, 1.0),
        "min" | "mins" | "minute" | "minutes" => unit(Of::Time, 60.0),
        "h" | "hour" | "hours" => unit(Of::Time, 3600.0),
        "%" | "pct" | "percent" => unit(Of::Share, 0.01),
        "byte" | "bytes" => unit(Of::Bytes, 1.0),
        "kib" => unit(Of::Bytes, KIB),
        "mib" => unit(Of::Bytes, KIB.powi(2)),
        "gib" => unit(Of::Bytes, KIB.powi(3)),
        "tib" => unit(Of::Bytes, KIB.powi(4)),
        "kb" | "kbyte" | "kbytes" => decimal(1),
        "mb" | "mbyte" | "mbytes" => decimal(2),
        "gb" | "gbyte" | "gbytes" => decimal(3),
        "tb" | "tbyte" | "tbytes" => decimal(4),
        "kbit" | "kbits" => unit(Of::Bytes, 125.0),
        "mbit" | "mbits" => unit(Of::Bytes, 125e3),
        "gbit" | "gbits" => unit(Of::Bytes, 125e6),
        "k" | "thousand" | "thousands" | "x1000" | "×1000" | "'000" => unit(Of::One, 1e3),
        "million" | "millions" | "mops" => unit(Of::One, 1e6),
        "1" | "#" | "count" | "ops" | "op" | "blocks" | "writes" | "reads" => unit(Of::One, 1.0),
        "io" | "ios" | "i/os" => pieces(Piece::Io, 1.0),
        "rows" | "row" | "records" | "record" | "rec" | "docs" => pieces(Piece::Row, 1.0),
        "queries" | "query" | "q" | "statements" | "stmts" => pieces(Piece::Query, 1.0),
        "msg" | "msgs" | "message" | "messages" => pieces(Piece::Message, 1.0),
        "tx" | "txn" | "txns" | "trx" | "transactions" | "transaction" | "trans" | "commits" | "commit" | "xacts"
        | "calls" | "requests" | "req" | "reqs" | "events" => pieces(Piece::Transaction, 1.0),
        "ktx" => pieces(Piece::Transaction, 1e3),
        "mtx" => pieces(Piece::Transaction, 1e6),
        "kops" | "kop" => unit(Of::One, 1e3),
        "kio" => pieces(Piece::Io, 1e3),
        _ => return None,
    })
}

/// What stands behind "per".
fn denominator(text: &str) -> Option<(Per, f64)> {
    Some(match text.to_lowercase().as_str() {
        "s" | "sec" | "second" | "secs" => (Per::Second, 1.0),
        "ms" => (Per::Second, 1e3),
        "min" | "minute" => (Per::Second, 1.0 / 60.0),
        "h" | "hour" => (Per::Second, 1.0 / 3600.0),
        "tx" | "txn" | "trx" | "transaction" | "commit" | "xact" => (Per::Transaction, 1.0),
        _ => return None,
    })
}

impl Unit {
    /// The unit `text` names: `ms`, `MiB/s`, `KB per tx`, `1/s`, `tps`, `%`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Unit> {
        let text = text.trim().trim_end_matches('.');
        let found = Unit::rate(text).or_else(|| Unit::quotient(text)).or_else(|| simple(text));
        let found = found.or_else(|| Unit::multiple(text));
        found.filter(|_| text != "#").map(|unit| Unit { text: text.to_owned(), ..unit })
    }

    /// Thousands or millions of a unit: `k tps`, `M rows/s`.
    fn multiple(text: &str) -> Option<Unit> {
        let times = simple(text.get(..1).filter(|c| matches!(*c, "k" | "K" | "M"))?)?.size;
        let rest = text[1..].trim_start();
        let unit = Unit::rate(rest).or_else(|| Unit::quotient(rest))?;
        (unit.dimension.of == Of::One).then_some(Unit { size: unit.size * times, ..unit })
    }

    /// Units of one word that are rates.
    fn rate(text: &str) -> Option<Unit> {
        let per_second = |of, size| Some(Unit { dimension: Dimension { of, per: Per::Second }, ..unit(of, size) });
        let of = |piece, size| Some(Unit { piece, ..per_second(Of::One, size)? });
        match text {
            "Kbps" | "kbps" => return per_second(Of::Bytes, 125.0),
            "Mbps" | "mbps" | "Mb/s" | "Mbit/s" => return per_second(Of::Bytes, 125e3),
            "Gbps" | "gbps" | "Gb/s" | "Gbit/s" => return per_second(Of::Bytes, 125e6),
            _ => {}
        }
        match text.to_lowercase().as_str() {
            "ops" | "hz" => per_second(Of::One, 1.0),
            "tps" | "rps" => of(Piece::Transaction, 1.0),
            "ktps" | "krps" => of(Piece::Transaction, 1e3),
            "mtps" => of(Piece::Transaction, 1e6),
            "tpm" | "nopm" | "tpmc" => of(Piece::Transaction, 1.0 / 60.0),
            "qps" => of(Piece::Query, 1.0),
            "kqps" => of(Piece::Query, 1e3),
            "mqps" => of(Piece::Query, 1e6),
            "iops" => of(Piece::Io, 1.0),
            "kiops" => of(Piece::Io, 1e3),
            "miops" => of(Piece::Io, 1e6),
            _ => None,
        }
    }

    fn quotient(text: &str) -> Option<Unit> {
        let (above, below) = text.rsplit_once('/').or_else(|| text.rsplit_once(" per "))?;
        let (per, parts) = denominator(below.trim())?;
        let above = above.trim();
        let above = if above.is_empty() { unit(Of::One, 1.0) } else { simple(above)? };
        // "Time per second" is a share that nobody prints.
        let dimension = Dimension { of: above.dimension.of, per };
        Some(Unit { dimension, size: above.size * parts, or: above.or.map(|or| or * parts), ..above })
    }

    /// Whether it is thousands or millions of anything.
    pub(crate) fn is_multiplier(&self) -> bool {
        self.dimension.per == Per::Whole
            && self.dimension.of == Of::One
            && self.size > 1.0
            && simple(&self.text).is_some_and(|u| {
                let named = ["ktx", "mtx", "kops", "kop", "kio", "mops"];
                u.piece == Piece::Any && !named.contains(&self.text.to_lowercase().as_str())
            })
    }

    /// Whether it says no more than "per something".
    pub(crate) fn is_only_per(&self) -> bool {
        self.dimension.of == Of::One && self.dimension.per != Per::Whole && self.text.starts_with("1/")
    }

    /// The unit of the column of ours with this id.
    #[must_use]
    pub fn of_id(id: &str) -> Unit {
        let words: Vec<&str> = id.split('_').collect();
        let (_, unit) = take_unit(&words);
        unit.unwrap_or_else(|| self::unit(Of::One, 1.0))
    }
}

/// The unit that a word of a name is.
pub(crate) fn named(word: &str) -> Option<Unit> {
    in_name(word)
}

/// Words that are units where they stand among others. "min" is a minimum there, "b" and "k" are letters.
fn in_name(word: &str) -> Option<Unit> {
    const ALSO: [&str; 9] = ["ns", "us", "µs", "ms", "s", "sec", "secs", "seconds", "pct"];
    const BYTES: [&str; 12] = ["bytes", "kib", "mib", "gib", "kb", "mb", "gb", "tb", "mops", "kbit", "mbit", "gbit"];
    let lower = word.to_lowercase();
    let known = ALSO.contains(&lower.as_str()) || BYTES.contains(&lower.as_str()) || lower.starts_with("percent");
    let known =
        known && lower != "percentile" || word == "%" || lower.starts_with("milli") || lower.starts_with("micro");
    let rate = Unit::rate(word).filter(|_| lower != "ops");
    let unit = if known { simple(word) } else { rate };
    unit.map(|u| Unit { text: word.to_owned(), ..u })
}

/// Takes the units out of the words of a name: what is left, and the unit. `None` as a unit if there is none. Of several,
/// the first that is no `per …` counts; [`units`] knows whether there are several.
#[must_use]
pub fn take_unit<'a>(words: &[&'a str]) -> (Vec<&'a str>, Option<Unit>) {
    let (mut left, mut found): (Vec<&str>, Option<Unit>) = (Vec::new(), None);
    let mut per: Option<(Per, f64, String)> = None;
    let mut at = 0;
    while at < words.len() {
        let word = words[at];
        let next = words.get(at + 1).and_then(|next| denominator(next).map(|d| (d, *next)));
        match (word.eq_ignore_ascii_case("per") && at + 1 < words.len(), next) {
            (true, Some(((what, parts), name))) if per.is_none() => {
                // "Latency / ms" is no rate: nothing is counted.
                let counted = found.is_some() || left.iter().any(|w| simple(w).is_some());
                match simple(name).filter(|_| name == "ms" && !counted) {
                    Some(time) => found = Some(Unit { text: name.to_owned(), ..time }),
                    None => per = Some((what, parts, name.to_owned())),
                }
                at += 2;
                continue;
            }
            _ => {}
        }
        match in_name(word) {
            Some(unit) if found.is_none() => found = Some(unit),
            Some(_) => {}
            None => left.push(word),
        }
        at += 1;
    }
    let unit = match (found, per) {
        (Some(found), None) => Some(found),
        (found, Some((what, parts, name))) => {
            let above = found.unwrap_or_else(|| unit(Of::One, 1.0));
            let text = format!("{}/{name}", if above.text.is_empty() { "1" } else { &above.text });
            let dimension = Dimension { of: above.dimension.of, per: what };
            Some(Unit { dimension, size: above.size * parts, or: above.or.map(|or| or * parts), text, ..above })
        }
        (None, None) => None,
    };
    (left, unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::column::COLUMNS;

    #[test]
    fn ids_of_our_columns_end_with_their_units() {
        let size = |id| Unit::of_id(id).size;
        assert_eq!(size("commit_latency_ms"), 1e-3);
        assert_eq!(size("commit_time_ns_p99"), 1e-9);
        assert_eq!(size("redo_mib_per_s"), 1_048_576.0);
        assert_eq!(size("redo_bytes_per_tx"), 1.0);
        assert_eq!(size("cpu_busy_pct"), 0.01);
        assert_eq!(size("client_cpu_us_per_tx"), 1e-6);
        assert_eq!(size("mops_per_s"), 1e6);
        let per = |id| Unit::of_id(id).dimension.per;
        assert_eq!(per("redo_kib_per_tx"), Per::Transaction);
        assert_eq!(per("redo_blocks_per_s"), Per::Second);
        assert_eq!(per("commit_throughput_tps"), Per::Second);
        assert_eq!(per("rows_per_tx"), Per::Transaction);
    }

    #[test]
    fn the_unit_of_an_id_is_that_which_its_column_states() {
        for column in COLUMNS.iter().filter(|c| c.id != "client_job_cpu_pct" && !c.unit.is_empty()) {
            let (stated, own) = (Unit::parse(column.unit), Unit::of_id(column.id));
            if let Some(stated) = stated {
                assert_eq!(stated.dimension.of, own.dimension.of, "{column}: {}", column.unit);
            }
        }
    }

    #[test]
    fn printed_units_are_read() {
        let size = |text| Unit::parse(text).unwrap_or_else(|| panic!("{text}")).size;
        for (text, bytes) in [("MiB/s", 1_048_576.0), ("MB/s", 1e6), ("Gbit/s", 125e6), ("KB per tx", 1e3), ("B", 1.0)]
        {
            assert_eq!(size(text), bytes, "{text}");
        }
        assert_eq!(Unit::parse("MB/s").unwrap().or, Some(1_048_576.0));
        assert_eq!(Unit::parse("MiB/s").unwrap().or, None);
        for text in ["", "avg", "p99", "of 3 runs", "#"] {
            assert_eq!(Unit::parse(text), None, "{text}");
        }
    }
}
