//! Numbers as printed. The digits of a cell say how precise it is: `74` stands for 73.5 to 74.5, `0.50` for 0.495 to 0.505.

use crate::audit::unit::Unit;

/// How a table writes fractions and thousands. Spaces, also narrow ones, and apostrophes separate thousands in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

impl Style {
    fn decimal(self) -> u8 {
        if self == Style::Point { b'.' } else { b',' }
    }

    fn thousands(self) -> u8 {
        if self == Style::Point { b',' } else { b'.' }
    }
}

/// A printed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed<'a> {
    /// Its value, without the unit behind it.
    pub value: f64,
    /// Power of ten of its last digit: -2 of `0.50`.
    pub place: i32,
    /// Number of zeros at the end of a whole number, which may be digits or not: 3 of `15000`, 0 of `0.50`.
    pub zeros: u8,
    /// Number of its digits from the first that is not 0, without `zeros`.
    pub digits: u8,
    /// What stands behind it, such as `%`, `ms` or `k`.
    pub suffix: &'a str,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Number(Printed<'a>),
    /// Nothing: empty, `-`, `n/a`.
    Absent,
    /// Not a number where one was meant: `NaN`, `inf`, or `####` for one that is too long for its cell.
    Broken,
    /// Anything else.
    Text,
}

/// What stands for a missing figure.
const ABSENT: [&str; 10] = ["", "-", "–", "—", "n/a", "na", "null", "none", "?", "."];

/// What cell `text` holds.
#[must_use]
pub fn value(text: &str, style: Style) -> Value<'_> {
    if let Some(printed) = parse(text, style) {
        return Value::Number(printed);
    }
    let lower = text.trim().to_lowercase();
    let bare = lower.trim_start_matches(['-', '+', '−']);
    // "<1" and "> 1000" are no figures that a law could hold.
    let bound = ['<', '>', '≤', '≥'].iter().any(|sign| lower.starts_with(*sign));
    if ABSENT.contains(&lower.as_str()) || bound {
        Value::Absent
    } else if matches!(bare, "nan" | "inf" | "infinity" | "∞") || broken(&lower) {
        Value::Broken
    } else {
        Value::Text
    }
}

/// `####`, `****`, `#DIV/0!`.
fn broken(text: &str) -> bool {
    let all = |c| text.len() > 1 && text.chars().all(|d| d == c);
    all('#') || all('*') || (text.starts_with('#') && text.ends_with(['!', '?']) && text.len() > 3)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2007}' | '\'' | '’')
}

/// The number at the beginning of `text`, if there is one: sign, digits with separators of thousands, fraction, exponent,
/// and what stands behind.
#[must_use]
pub fn parse(text: &str, style: Style) -> Option<Printed<'_>> {
    let text = text.trim();
    if let Some(about) = text.strip_prefix(['~', '≈']) {
        // About 30,900 is no more exact than 30,900 ± 50.
        let printed = parse(about, style).filter(|p| !p.suffix.starts_with(['~', '≈']))?;
        let place = if printed.zeros > 0 { printed.place + i32::from(printed.zeros) } else { printed.place + 1 };
        return Some(Printed { place, zeros: 0, ..printed });
    }
    let (negative, rest) = match text.strip_prefix(['-', '−', '+']) {
        Some(rest) => (!text.starts_with('+'), rest),
        None => (false, text),
    };
    let mut digits = Digits::default();
    let whole = whole(rest, style, &mut digits)?;
    let mut at = whole;
    let bytes = rest.as_bytes();
    let mut fraction = 0;
    if bytes.get(at) == Some(&style.decimal()) {
        let count = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 && whole == 0 {
            return None;
        }
        bytes[at + 1..at + 1 + count].iter().for_each(|b| digits.push(*b));
        fraction = i32::try_from(count).ok()?;
        at += 1 + count;
    } else if whole == 0 {
        return None;
    }
    let (exponent, length) = exponent(&rest[at..]);
    at += length;
    // An address, a version, a date: 1.2.3, 2021-04-01.
    let suffix = rest[at..].trim_matches(|c: char| c.is_whitespace() || is_space(c));
    // A remark, such as a standard deviation: 31,050 (peak).
    let suffix = suffix.split(['(', '[', '±']).next().unwrap_or("").trim_end();
    let per = suffix.starts_with('/') && Unit::parse(suffix).is_some();
    if !per && suffix.starts_with(|c: char| c.is_ascii_digit() || ".,:-/".contains(c)) {
        return None;
    }
    let place = exponent - fraction;
    let zeros = if fraction == 0 && length == 0 { digits.zeros } else { 0 };
    let value = digits.value(place)?;
    Some(Printed {
        value: if negative { -value } else { value },
        place,
        zeros,
        digits: digits.significant.saturating_sub(zeros),
        suffix,
    })
}

/// The digits of a number as they are read.
#[derive(Default)]
struct Digits {
    /// Those that fit.
    number: u64,
    /// Digits that did not fit.
    dropped: i32,
    significant: u8,
    zeros: u8,
}

impl Digits {
    fn push(&mut self, byte: u8) {
        let digit = byte - b'0';
        match self.number.checked_mul(10).and_then(|n| n.checked_add(digit.into())).filter(|_| self.dropped == 0) {
            Some(number) => self.number = number,
            None => self.dropped += 1,
        }
        if digit > 0 || self.significant > 0 {
            self.significant = self.significant.saturating_add(1);
            self.zeros = if digit == 0 { self.zeros.saturating_add(1) } else { 0 };
        }
    }

    /// The number with its last digit at `place`; `None` beyond what a float holds.
    fn value(&self, place: i32) -> Option<f64> {
        let power = place.saturating_add(self.dropped);
        let number = self.number as f64;
        // Powers of ten up to 22 are exact, so that the quotient is rounded once.
        let value = match power {
            0 => number,
            -22..0 => number / 10f64.powi(-power),
            1..=22 => number * 10f64.powi(power),
            _ => format!("{}e{power}", self.number).parse().ok()?,
        };
        value.is_finite().then_some(value)
    }
}

/// Reads digits with separators of thousands; returns their length.
fn whole(text: &str, style: Style, digits: &mut Digits) -> Option<usize> {
    let bytes = text.as_bytes();
    let run = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let mut at = run(0);
    bytes[..at].iter().for_each(|b| digits.push(*b));
    if at == 0 || at > 3 {
        return Some(at);
    }
    let mut separator = None;
    loop {
        let next = text[at..].chars().next();
        let Some(c) = next.filter(|c| is_space(*c) || *c == char::from(style.thousands())) else { break };
        let (start, spaced) = (at + c.len_utf8(), is_space(c));
        // All separators are the same.
        if separator.is_some_and(|s| s != c) {
            break;
        }
        match run(start) {
            3 => {}
            // 12,34,567
            2 if !spaced && run(start + 3) >= 2 => {}
            _ if spaced => break,
            // In the other style that is a fraction.
            _ => return None,
        }
        let length = run(start);
        bytes[start..start + length].iter().for_each(|b| digits.push(*b));
        at = start + length;
        separator = Some(c);
    }
    Some(at)
}

/// `e-3` and its length.
fn exponent(text: &str) -> (i32, usize) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return (0, 0) };
    let signed = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    let end = text.len() - signed.len() + digits;
    match rest[..end - 1].trim_start_matches('+').parse::<i32>() {
        Ok(power) if digits > 0 && power.abs() < 400 => (power, end),
        _ => (0, 0),
    }
}

/// For which style a cell speaks; `None` if it could be either.
fn evidence(text: &str) -> Option<Style> {
    let text = text.trim().trim_start_matches(['-', '+', '−']);
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',') {
        return None;
    }
    let number: &str = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).next().unwrap_or("");
    let (points, commas) = (number.matches('.').count(), number.matches(',').count());
    let behind = |c| number.rsplit(c).next().map_or(0, str::len);
    let zero = |c: char| number.starts_with(&format!("0{c}")) || number.starts_with(c);
    match (points, commas) {
        (0, 0) => None,
        (1, 0) => (behind('.') != 3 || zero('.')).then_some(Style::Point),
        (0, 1) => (behind(',') != 3 || zero(',')).then_some(Style::Comma),
        (_, 0) => Some(Style::Comma),
        (0, _) => Some(Style::Point),
        _ => Some(if number.rfind('.') > number.rfind(',') { Style::Point } else { Style::Comma }),
    }
}

/// The style for which most of `cells` speak; `1,234` alone is read as in English.
#[must_use]
pub fn style<'a>(cells: impl Iterator<Item = &'a str>) -> Style {
    let balance: i64 = cells.filter_map(evidence).map(|style| if style == Style::Comma { 1 } else { -1 }).sum();
    if balance > 0 { Style::Comma } else { Style::Point }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, style: Style) -> Option<(f64, i32)> {
        parse(text, style).map(|p| (p.value, p.place))
    }

    #[test]
    fn numbers_are_read_in_both_styles() {
        let point = [
            ("74", 74.0, 0),
            ("0.50", 0.5, -2),
            ("1,234.5", 1234.5, -1),
            ("12 345", 12345.0, 0),
            ("12\u{a0}345,", 12345.0, 0),
            ("1'234'567", 1_234_567.0, 0),
            ("-3", -3.0, 0),
            ("1.25e3", 1250.0, 1),
            (".5", 0.5, -1),
            ("12,34,567", 1_234_567.0, 0),
            ("0.0001682", 0.000_168_2, -7),
        ];
        for (text, value, place) in point {
            let text = text.trim_end_matches(',');
            assert_eq!(read(text, Style::Point), Some((value, place)), "{text}");
        }
        for (text, value, place) in [("1.234,5", 1234.5, -1), ("0,506", 0.506, -3), ("12\u{202f}345", 12345.0, 0)] {
            assert_eq!(read(text, Style::Comma), Some((value, place)), "{text}");
        }
        for text in ["", "x", "1.2.3", "2021-04-01", "10:15", "-", "e5", "1,23", ","] {
            assert_eq!(read(text, Style::Point), None, "{text}");
        }
    }

    #[test]
    fn the_unit_behind_a_number_and_its_digits_are_kept() {
        let p = parse("26.5 ms", Style::Point).unwrap();
        assert_eq!((p.value, p.suffix, p.digits, p.zeros), (26.5, "ms", 3, 0));
        let p = parse("15000", Style::Point).unwrap();
        assert_eq!((p.digits, p.zeros), (2, 3));
        assert_eq!(parse("0.500", Style::Point).unwrap().digits, 3);
        assert_eq!(parse("74%", Style::Point).unwrap().suffix, "%");
    }

    #[test]
    fn broken_cells_are_neither_absent_nor_text() {
        for text in ["NaN", "-inf", "#####", "#DIV/0!"] {
            assert_eq!(value(text, Style::Point), Value::Broken, "{text}");
        }
        for text in ["", " – ", "N/A"] {
            assert_eq!(value(text, Style::Point), Value::Absent, "{text}");
        }
        assert_eq!(value("LGWR-LAT1", Style::Point), Value::Text);
    }

    #[test]
    fn the_style_is_that_of_the_cells_that_can_be_only_one() {
        assert_eq!(style(["1.234", "0,5", "12"].into_iter()), Style::Comma);
        assert_eq!(style(["1,234", "12"].into_iter()), Style::Point);
        assert_eq!(style(["1.234.567"].into_iter()), Style::Comma);
        assert_eq!(style(["1,234.5", "1,5"].into_iter()), Style::Point);
    }
}
