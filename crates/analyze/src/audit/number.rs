//! Numbers as printed, and the intervals that they stand for. The digits of a cell say how precise it is: `74` stands for 73.5 to 74.5,
//! `0.50` for 0.495 to 0.505.

use crate::stats::median;

/// How a table writes fractions and thousands: `1,234.5` or `1.234,5`. Spaces and apostrophes separate thousands in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Point,
    Comma,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number<'a> {
    pub(crate) value: f64,
    /// Half of its last digit, or what is printed behind `±`.
    pub(crate) half: f64,
    /// Digits from the first that is not 0, with `zeros`.
    pub(crate) digits: u8,
    /// Zeros at the end of a whole number, which may be digits or not: 3 of `15000`.
    pub(crate) zeros: u8,
    pub(crate) unit: &'a str,
    /// Whether a space separates its thousands.
    pub(crate) spaced: bool,
    /// Whether a plus sign or an arrow stands before it, as before a change.
    pub(crate) plus: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    Number(Number<'a>),
    /// Nothing, or only a bound: empty, `-`, `n/a`, `<1`.
    Absent,
    /// No number where one was meant: `NaN`, or `####` for one that is too long for its cell.
    Broken,
    /// Several numbers: `3–5`, `12 → 15`, `1 / 2`; or one that reads as `44.1` and as `44100`.
    Unclear,
    Text,
}

const ABSENT: [&str; 11] = ["", "-", "–", "—", "n/a", "na", "null", "none", "?", ".", "tbd"];
const BROKEN: [&str; 4] = ["nan", "inf", "infinity", "∞"];
const MARKS: &[char] = &['*', '†', '‡', '§', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁰', ')', '`', '_'];
const ARROWS: [char; 8] = ['▲', '▼', '↑', '↓', '⬆', '⬇', '△', '▽'];
/// Text between two numbers of one cell.
const BETWEEN: [&str; 11] = ["→", "->", "=>", "..", "…", "–", "—", " to ", " - ", "/", "-"];

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2007}' | '\'' | '’')
}

/// The figure in cell `text`; `style` decides what else can be read in two ways.
pub(crate) fn read(text: &str, style: Option<Style>) -> Cell<'_> {
    if let Some(number) = plain(text, style) {
        return Cell::Number(number);
    }
    let text = text.trim().trim_matches(['*', '`']).trim();
    let lower = text.to_lowercase();
    let is_fault = text.starts_with('#') && text.ends_with(['!', '?', '#']) && text.len() > 1;
    if ABSENT.contains(&lower.as_str()) || text.starts_with(['<', '>', '≤', '≥']) {
        Cell::Absent
    } else if is_fault || BROKEN.contains(&lower.trim_start_matches(['-', '+', '−'])) {
        Cell::Broken
    } else {
        figure(text, style).map_or_else(|cell| cell, Cell::Number)
    }
}

/// The number that a text is, in which a point can only be a decimal one.
pub(crate) fn with_point(text: &str) -> Option<Number<'_>> {
    if let Cell::Number(n) = read(text, Some(Style::Point)) { Some(n) } else { None }
}

fn figure(text: &str, style: Option<Style>) -> Result<Number<'_>, Cell<'_>> {
    let about = text.trim_start_matches(['~', '≈']).trim_start();
    let arrow = about.trim_start_matches(ARROWS).trim_start();
    let rest = arrow.strip_prefix(['-', '−', '+']).unwrap_or(arrow);
    let (body, behind) = rest.split_at(body_length(rest));
    let (digits, decimals) = interpret(body, style)?;
    let power = behind.strip_prefix(['e', 'E']).unwrap_or("");
    let is_end = |(at, c): &(usize, char)| !c.is_ascii_digit() && (*at > 0 || !matches!(c, '+' | '-'));
    let (power, after) = power.split_at(power.char_indices().find(is_end).map_or(power.len(), |(at, _)| at));
    let exponent: Option<i32> = power.parse().ok().filter(|e: &i32| e.abs() < 400);
    let place = exponent.unwrap_or(0) - i32::try_from(decimals).unwrap_or(0);
    let value: f64 = format!("{digits}e{place}").parse().unwrap_or(f64::INFINITY);
    let (unit, spread) = unit_behind(if exponent.is_some() { after } else { behind }, style)?;
    let significant = digits.trim_start_matches('0');
    let whole = decimals == 0 && exponent.is_none();
    let zeros = if whole { significant.len() - significant.trim_end_matches('0').len() } else { 0 };
    // About 30,900 is no more exact than 30,900 ± 50.
    let coarse = if about.len() < text.len() { zeros.max(1) as i32 } else { 0 };
    let half = (0.5 * 10f64.powi(place.saturating_add(coarse))).max(spread);
    if !value.is_finite() || !half.is_finite() {
        return Err(Cell::Text);
    }
    let [digits, zeros] = [significant.len(), zeros].map(|n| u8::try_from(n).unwrap_or(u8::MAX));
    let plus = arrow.starts_with('+') || arrow.len() < about.len();
    let value = if arrow.starts_with(['-', '−']) { -value } else { value };
    Ok(Number { value, half, digits, zeros, unit, spaced: body.contains(is_space), plus })
}

/// Nothing but digits, and a point that can only be a decimal one: most cells of a large table.
fn plain(text: &str, style: Option<Style>) -> Option<Number<'static>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let open = fraction.len() == 3 && style != Some(Style::Point);
    let all = || whole.bytes().chain(fraction.bytes());
    if whole.is_empty() || text.len() > 15 || open || !all().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10f64.powi(fraction.len() as i32);
    let value = all().fold(0u64, |value, b| value * 10 + u64::from(b - b'0')) as f64 / scale;
    let digits = all().skip_while(|b| *b == b'0').count() as u8;
    let zeros = if fraction.is_empty() { all().rev().take_while(|b| *b == b'0').count() as u8 } else { 0 };
    Some(Number { value, half: 0.5 / scale, digits, zeros: zeros.min(digits), unit: "", spaced: false, plus: false })
}

fn body_length(text: &str) -> usize {
    let run = |from: usize| text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let mut at = run(0);
    while let Some(c) = text[at..].chars().next().filter(|c| matches!(c, '.' | ',') || is_space(*c)) {
        let next = at + c.len_utf8();
        if if is_space(c) { at == 0 || run(next) != 3 } else { run(next) == 0 } {
            break;
        }
        at = next + run(next);
    }
    at
}

/// Digits of a number, and how many of them are decimals.
fn interpret(body: &str, style: Option<Style>) -> Result<(String, usize), Cell<'static>> {
    let plain: String = body.chars().filter(|c| !is_space(*c)).collect();
    let digits: String = plain.chars().filter(char::is_ascii_digit).collect();
    let (points, commas) = (plain.matches('.').count(), plain.matches(',').count());
    let point_last = plain.rfind('.') > plain.rfind(',');
    let (last, lasts) = if point_last { ('.', points) } else { (',', commas) };
    let parts: Vec<usize> = plain.split(last).map(str::len).collect();
    let (first, decimals) = (parts[0], parts[parts.len() - 1]);
    let groups = (1..=3).contains(&first) && decimals == 3 && parts[1..].iter().all(|n| matches!(n, 2 | 3));
    match (points + commas, points.min(commas)) {
        _ if digits.is_empty() => Err(Cell::Text),
        (0, _) => Ok((digits, 0)),
        (1, _) if groups && plain.len() == body.len() && !plain.starts_with('0') => match style {
            None => Err(Cell::Unclear),
            Some(style) => Ok((digits, if (style == Style::Point) == point_last { decimals } else { 0 })),
        },
        (1, _) => Ok((digits, decimals)),
        (_, 0) if groups => Ok((digits, 0)),
        (_, 1..) if lasts == 1 => Ok((digits, decimals)),
        _ => Err(Cell::Text),
    }
}

/// The unit behind a number, and its spread behind `±`.
fn unit_behind(text: &str, style: Option<Style>) -> Result<(&str, f64), Cell<'static>> {
    if let Some((unit, spread)) = text.split_once('±').or_else(|| text.split_once("+/-")) {
        let unit = unit.trim();
        return Ok(match read(spread, style) {
            Cell::Number(n) => (if unit.is_empty() { n.unit } else { unit }, n.value.abs()),
            _ => (unit, 0.0),
        });
    }
    let number = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let remark = text.starts_with(is_space) && text.ends_with('%') && !text.trim_start().starts_with('%');
    if !remark && BETWEEN.iter().any(|sign| text.split_once(sign).is_some_and(|(_, rest)| number(rest))) {
        return Err(Cell::Unclear);
    }
    // A remark, such as a change or a footnote: 31,050 (peak), 12 [1], 55 +5.19 %.
    let end = |c: char| matches!(c, '(' | '[' | '+' | '−' | '<') || remark && c == '-' || ARROWS.contains(&c);
    let unit = text.split(end).next().unwrap_or("").trim_matches(|c: char| c.is_whitespace() || is_space(c));
    let unit = unit.trim_end_matches(MARKS).trim_end();
    let odd = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ':' | '-');
    if unit.starts_with(odd) { Err(Cell::Text) } else { Ok((unit, 0.0)) }
}

/// The style of a table: that for which its cells speak, `Point` if none does, and none if they disagree.
pub(crate) fn style<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Style> {
    let mut counts = [0usize; 2];
    for cell in cells {
        let text = cell.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
        let body = &text[..body_length(text)];
        if let (true, Ok((_, decimals))) = (body.contains(['.', ',']), interpret(body, None)) {
            // The last separator is a decimal one, or separates thousands for the second time.
            counts[usize::from((body.rfind('.') > body.rfind(',')) != (decimals > 0))] += 1;
        }
    }
    let [points, commas] = counts;
    let agree = points.min(commas) * 10 <= points.max(commas);
    agree.then_some(if commas > points { Style::Comma } else { Style::Point })
}

/// All values from `low` to `high`, both included; `at` is what the cells give as they are printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) at: f64,
}

/// Relative error of the arithmetic itself, and of half widths, which are floats of 32 bits.
const DUST: f64 = 1e-6;

impl Interval {
    /// Interval of a cell that prints `at` with a last digit of `2 * half`; `cut` if digits were cut off, not rounded.
    pub(crate) fn around(at: f64, half: f64, cut: bool) -> Interval {
        let (below, above) = if cut { (0.0, 2.0 * half * (1.0 - 4.0 * DUST)) } else { (half, half) };
        let (low, dust) = (at - below * (1.0 + DUST), at.abs() * 1e-12);
        // What is counted or timed is not negative.
        let low = if at >= 0.0 { (low - dust).max(0.0) } else { low - dust };
        Interval { low, high: at + above * (1.0 + DUST) + dust, at }
    }

    pub(crate) fn exact(value: f64) -> Interval {
        Interval { low: value, high: value, at: value }
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub(crate) fn times(self, by: Interval) -> Interval {
        let all = [self.low * by.low, self.low * by.high, self.high * by.low, self.high * by.high];
        let (low, high) = all.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        Interval { low, high, at: self.at * by.at }
    }

    /// All quotients; up to infinity if `by` holds 0.
    pub(crate) fn over(self, by: Interval) -> Interval {
        let at = if by.at > 0.0 { self.at / by.at } else { f64::INFINITY };
        if by.low <= 0.0 {
            return Interval { low: if by.high > 0.0 { self.low / by.high } else { 0.0 }, high: f64::INFINITY, at };
        }
        Interval { at, ..self.times(Interval { low: 1.0 / by.high, high: 1.0 / by.low, at: 1.0 / by.at }) }
    }

    /// The sum with `factor` times `other`.
    pub(crate) fn plus(self, factor: f64, other: Interval) -> Interval {
        let by = other.times(Interval::exact(factor));
        Interval { low: self.low + by.low, high: self.high + by.high, at: self.at + by.at }
    }
}

/// The value that most of `intervals` hold, as near as can be to what is printed, and how many do.
pub(crate) fn common(intervals: &[Interval]) -> Option<(f64, usize)> {
    let finite = intervals.iter().filter(|i| i.low.is_finite() && i.high.is_finite());
    let mut ends: Vec<(f64, bool)> = finite.flat_map(|i| [(i.low, false), (i.high, true)]).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut depth, mut best, mut from, mut until) = (0usize, 0, 0.0, 0.0);
    for (i, (value, closes)) in ends.iter().enumerate() {
        depth = if *closes { depth.saturating_sub(1) } else { depth + 1 };
        if depth > best {
            (best, from) = (depth, *value);
            until = ends.get(i + 1).map_or(from, |(next, _)| *next);
        }
    }
    let printed: Vec<f64> = intervals.iter().filter(|i| i.low <= from && until <= i.high).map(|i| i.at).collect();
    (best > 0).then(|| (median(&printed).unwrap_or(from).max(from).min(until), best))
}
