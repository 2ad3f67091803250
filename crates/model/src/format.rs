//! Formats and parses numbers, times and sizes.

use serde::Deserialize;
use strsim::levenshtein;

pub const ABSENT: &str = "–";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Text,
    YesNo,
    /// Whole number with thousands separators; see [`whole`] for small ones.
    Integer,
    /// Fixed number of decimals, with thousands separators.
    Fixed(usize),
    /// Stored in ns, shown in ms with three decimals.
    NsAsMs,
}

/// `n` with `decimals` decimals and a comma between groups of three digits.
pub fn number(n: f64, decimals: usize) -> String {
    let plain = format!("{:.*}", decimals, n.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    // No "-0.0": the sign stays only if a digit other than 0 does.
    if n < 0.0 && plain.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('-');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `n` as a whole number. A small fraction keeps one or two decimals, so that 0.3 tps is not shown as 0.
pub fn whole(n: f64) -> String {
    let decimals = match n.abs() {
        a if a.fract() == 0.0 || a >= 9.95 => 0,
        a if a >= 0.95 => 1,
        _ => 2,
    };
    number(n, decimals)
}

/// A time in ns, shown in a fitting unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`.
pub fn duration_ns(ns: f64) -> String {
    match ns.abs() {
        a if a < 1e3 => format!("{ns:.0} ns"),
        a if a < 1e6 => format!("{:.1} µs", ns / 1e3),
        a if a < 1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// Whole seconds as `45 s`, `2 min 05 s` or `1 h 03 min`.
pub fn duration_s(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

/// Bytes in binary units: `512 B`, `1.5 KiB`, `23.4 GiB`.
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n.abs() < 1024.0 {
        return format!("{n:.0} B");
    }
    let mut value = n / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value.abs() < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// Parses `512MiB`, `4GiB`, `64k` or a bare number of bytes. Units are binary, with or without `iB` or `B`, in any case.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size: write a number and KiB, MiB, GiB or TiB, such as 512MiB or 1.5GiB");
    let known = Some(text).filter(|text| !text.contains(['p', 'P', '+']));
    known.and_then(|text| size(text, 1024.0)).filter(|bytes| *bytes < 9e15).map(|bytes| bytes as u64).ok_or_else(wrong)
}

/// Bytes of a number with a unit, in any case: `kilo` is the step from one to the next, 1024 if it has an `i`. Without one it is bytes.
pub(crate) fn size(text: &str, kilo: f64) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let at = lower.find(|c| !matches!(c, '0'..='9' | '.' | '+')).unwrap_or(lower.len());
    let (digits, unit) = (&lower[..at], lower[at..].trim());
    let (letter, base) = match unit.strip_suffix("ib") {
        Some("") => return None,
        Some(letter) => (letter, 1024.0),
        None => (unit.strip_suffix('b').unwrap_or(unit), kilo),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    Some(digits.parse::<f64>().ok()? * f64::powi(base, i32::try_from(power).ok()?))
}

/// A share from 0.01 % to 50 %, as `2%` or `0.02`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = share_of(text).ok().filter(|share| (0.000_1..=0.5).contains(share));
    share.ok_or_else(|| format!("'{text}' must be between 0.01% and 50%, such as 2%"))
}

/// A share as `30%` or `0.3`.
pub fn share_of(text: &str) -> Result<f64, String> {
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|n| n / 100.0),
        None => text.trim().parse(),
    };
    share.map_err(|_| format!("'{text}' is no share, such as 30%"))
}

/// Parses `500ms`, `30s`, `5m`, `1h`, `250us` or a bare number of seconds, as seconds.
pub fn parse_duration_s(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a duration: write a number with a unit, such as 500ms, 30s, 5m or 1h");
    let text_trimmed = text.trim();
    let split = text_trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text_trimmed.len());
    let (digits, unit) = text_trimmed.split_at(split);
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let factor = match unit.trim() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Ok(value * factor)
}

/// `1 agent`, `3 agents`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A line of CSV: cells quoted as in RFC 4180, ended by LF.
pub fn csv_line(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::new();
    for (at, cell) in cells.into_iter().enumerate() {
        let cell = cell.as_ref();
        if at > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.extend(["\"", &cell.replace('"', "\"\""), "\""]);
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
    out
}

/// The entry of `known` most similar to `given`, if it is similar enough to be a suggestion.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|k| (levenshtein(&given, &k.to_lowercase()), k))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, k)| *d <= (k.chars().count() / 2).max(2))
        .map(|(_, k)| k)
}

/// A suggestion to append to a message about `given`: `: did you mean 'NEAREST'?`; empty without one.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or(String::new(), |near| format!(": did you mean '{near}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_in_binary_units() {
        let good = [("512MiB", 512 << 20), ("1.5g", 3 << 29), ("64 KB", 64 << 10), ("4096", 4096), ("2TiB", 2 << 40)];
        for (text, bytes) in good {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "1.2.3", "5 apples", "1e9", "99999999TiB", "1PiB", "+1GiB", "inf", "nan"] {
            assert!(parse_bytes(text).is_err_and(|e| e.contains(&format!("'{text}'"))), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped_and_values_get_a_readable_unit() {
        let grouped = [(1_234_567.891, 1), (999.0, 0), (-1_000.0, 0), (-0.001, 2)].map(|(n, digits)| number(n, digits));
        assert_eq!(grouped, ["1,234,567.9", "999", "-1,000", "0.00"]);
        // Small fractions are not shown as zero.
        let small = [0.0, 0.3, 3.0, 3.12, 9.96, 1234.5].map(whole);
        assert_eq!(small, ["0", "0.30", "3", "3.1", "10", "1,234"]);
        assert_eq!([850.0, 12_345.0, 4_560_000.0].map(duration_ns), ["850 ns", "12.3 µs", "4.56 ms"]);
        assert_eq!(duration_s(125.0), "2 min 05 s");
        assert_eq!([1536.0, 5.0 * 1024.0 * 1024.0 * 1024.0].map(bytes), ["1.5 KiB", "5.0 GiB"]);
    }

    #[test]
    fn durations_are_parsed() {
        for (text, s) in [("500ms", 0.5), ("30s", 30.0), ("5m", 300.0), ("1h", 3600.0), ("2.5", 2.5)] {
            assert_eq!(parse_duration_s(text), Ok(s), "{text}");
        }
        for text in ["", "s", "10 parsecs", "-3s", "1..2s"] {
            assert!(parse_duration_s(text).unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let known = ["LGWR-LAT1", "LGWR-LAT25", "LGWR-THR"];
        assert_eq!(nearest("lgwr-lat", known), Some("LGWR-LAT1"));
        assert_eq!(nearest("LGWR-THRU", known), Some("LGWR-THR"));
        assert_eq!(nearest("zzzzzzzzzzzzzzzz", known), None);
    }
}
