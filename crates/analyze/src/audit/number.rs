//! Numbers as printed. The digits of a cell say how precise it is: `74` stands for 73.5 to 74.5, `0.50` for 0.495 to 0.505.

/// How a table writes fractions and thousands. Spaces, also narrow ones, and apostrophes separate thousands in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// A printed number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number<'a> {
    /// Value, without the unit behind it.
    pub(crate) value: f64,
    /// Half of its last digit, or what is printed behind `±`.
    pub(crate) half: f64,
    /// Digits from the first that is not 0, with `zeros`.
    pub(crate) digits: u8,
    /// Zeros at the end of a whole number, which may be digits or not: 3 of `15000`.
    pub(crate) zeros: u8,
    /// Unit behind it, such as `%`, `ms` or `k`.
    pub(crate) unit: &'a str,
    /// Whether a space separates its thousands.
    pub(crate) spaced: bool,
    /// Whether a plus sign stands before it, as before a change.
    pub(crate) plus: bool,
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    /// A number.
    Number(Number<'a>),
    /// Nothing, or only a bound: empty, `-`, `n/a`, `<1`.
    Absent,
    /// No number where one was meant: `NaN`, or `####` for one that is too long for its cell.
    Broken,
    /// Several numbers: `3–5`, `12 → 15`, `1 / 2`.
    Several,
    /// A number that reads as `44.1` and as `44100`.
    Ambiguous,
    /// Anything else.
    Text,
}

const ABSENT: [&str; 11] = ["", "-", "–", "—", "n/a", "na", "null", "none", "?", ".", "tbd"];
/// Marks of footnotes and of emphasis.
const MARKS: &[char] = &['*', '†', '‡', '§', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁰', ')', '`', '_'];
const ARROWS: [char; 8] = ['▲', '▼', '↑', '↓', '⬆', '⬇', '△', '▽'];

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2007}' | '\'' | '’')
}

/// The figure in cell `text`; `style` decides what else can be read in two ways.
pub(crate) fn read(text: &str, style: Option<Style>) -> Cell<'_> {
    let text = text.trim().trim_matches(['*', '`']).trim();
    let lower = if text.len() < 12 { text.to_lowercase() } else { String::new() };
    let bare = lower.trim_start_matches(['-', '+', '−']);
    let all = |c: char| text.len() > 1 && text.chars().all(|d| d == c);
    if text.len() < 12 && ABSENT.contains(&lower.as_str()) || text.starts_with(['<', '>', '≤', '≥']) {
        return Cell::Absent;
    }
    let fault = text.starts_with('#') && text.ends_with(['!', '?']) && text.len() > 3;
    if matches!(bare, "nan" | "inf" | "infinity" | "∞") || all('#') || fault {
        return Cell::Broken;
    }
    let about = text.trim_start_matches(['~', '≈']).trim_start();
    let arrow = about.trim_start_matches(ARROWS).trim_start();
    let (sign, rest) = match arrow.strip_prefix(['-', '−']) {
        Some(rest) => (-1.0, rest),
        None => (1.0, arrow.strip_prefix('+').unwrap_or(arrow)),
    };
    let body = &rest[..body_length(rest)];
    let (digits, decimals) = match interpret(body, style) {
        Reading::Number(digits, decimals) => (digits, decimals),
        Reading::Either => return Cell::Ambiguous,
        Reading::None => return Cell::Text,
    };
    let (exponent, length) = exponent(&rest[body.len()..]);
    let Ok(value) = format!("{digits}e{}", i64::from(exponent) - decimals as i64).parse::<f64>() else {
        return Cell::Text;
    };
    let unit = match Behind::read(&rest[body.len() + length..], style) {
        Behind::Unit(unit) => (unit, 0.0),
        Behind::Spread(unit, spread) => (unit, spread),
        Behind::Several => return Cell::Several,
        Behind::Else => return Cell::Text,
    };
    let significant = digits.trim_start_matches('0');
    let zeros =
        if decimals == 0 && length == 0 { significant.len() - significant.trim_end_matches('0').len() } else { 0 };
    // About 30,900 is no more exact than 30,900 ± 50.
    let coarse = if about.len() < text.len() { 10f64.powi(i32::try_from(zeros.max(1)).unwrap_or(1)) } else { 1.0 };
    let half = 0.5 * 10f64.powi(exponent - i32::try_from(decimals).unwrap_or(0)) * coarse;
    if !value.is_finite() || !half.is_finite() {
        return Cell::Text;
    }
    let small = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    Cell::Number(Number {
        value: sign * value,
        half: half.max(unit.1),
        digits: small(significant.len()),
        zeros: small(zeros),
        unit: unit.0,
        spaced: body.contains(is_space),
        plus: arrow.starts_with('+') || arrow.len() < about.len(),
    })
}

/// Length of digits with their separators.
fn body_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let mut at = run(0);
    while let Some(c) = text[at..].chars().next() {
        let next = at + c.len_utf8();
        let group = run(next);
        let goes_on = if is_space(c) { group == 3 && (1..=3).contains(&run(at.saturating_sub(3))) } else { group > 0 };
        if !(matches!(c, '.' | ',') || is_space(c)) || !goes_on {
            break;
        }
        at = next + group;
    }
    at
}

/// Digits of a number, and how many of them are decimals.
enum Reading {
    Number(String, usize),
    Either,
    None,
}

fn interpret(body: &str, style: Option<Style>) -> Reading {
    let spaced = body.contains(is_space);
    let plain: String = body.chars().filter(|c| !is_space(*c)).collect();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    if digits(&plain).is_empty() {
        return Reading::None;
    }
    let count = |c: char| plain.matches(c).count();
    let decimal = |c: char| match plain.rsplit_once(c) {
        Some((whole, fraction)) => Reading::Number(digits(whole) + fraction, fraction.len()),
        None => Reading::None,
    };
    let groups = |c: char| {
        let mut parts = plain.split(c);
        let first = parts.next().is_some_and(|p| (1..=3).contains(&p.len()));
        first && parts.clone().last().is_some_and(|p| p.len() == 3) && parts.all(|p| matches!(p.len(), 2 | 3))
    };
    let c = match (count('.'), count(',')) {
        (0, 0) => return Reading::Number(plain, 0),
        (1, 0) => '.',
        (0, 1) => ',',
        (_, 0) if groups('.') => return Reading::Number(digits(&plain), 0),
        (0, _) if groups(',') => return Reading::Number(digits(&plain), 0),
        (1, _) if plain.rfind('.') > plain.rfind(',') => return decimal('.'),
        (_, 1) if plain.rfind(',') > plain.rfind('.') => return decimal(','),
        _ => return Reading::None,
    };
    let zero = plain.starts_with('0') || plain.starts_with(c);
    match (groups(c) && !spaced && !zero, style) {
        (true, None) => Reading::Either,
        (true, Some(style)) if (style == Style::Point) != (c == '.') => Reading::Number(digits(&plain), 0),
        _ => decimal(c),
    }
}

/// The exponent at the beginning of `text`, and its length.
fn exponent(text: &str) -> (i32, usize) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return (0, 0) };
    let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    let length = rest.len() - signed.len() + digits;
    rest[..length].parse::<i32>().ok().filter(|e| digits > 0 && e.abs() < 400).map_or((0, 0), |e| (e, 1 + length))
}

/// What stands behind a number.
enum Behind<'a> {
    Unit(&'a str),
    /// Its spread, behind `±`.
    Spread(&'a str, f64),
    Several,
    Else,
}

impl Behind<'_> {
    fn read(text: &str, style: Option<Style>) -> Behind<'_> {
        let number = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
        if let Some((unit, spread)) = text.split_once('±').or_else(|| text.split_once("+/-")) {
            return match read(spread, style) {
                Cell::Number(n) => {
                    Behind::Spread(if unit.trim().is_empty() { n.unit } else { unit.trim() }, n.value.abs())
                }
                _ => Behind::Unit(unit.trim()),
            };
        }
        let several = ["→", "->", "=>", "..", "…", "–", "—", " to ", " - ", "/", "-"];
        let remark = text.starts_with(is_space) && text.ends_with('%') && !text.trim_start().starts_with('%');
        if !remark && several.iter().any(|sign| text.split_once(sign).is_some_and(|(_, rest)| number(rest))) {
            return Behind::Several;
        }
        // A remark, such as a change or a footnote: 31,050 (peak), 12 [1], 55 +5.19 %.
        let end = |c: char| matches!(c, '(' | '[' | '+' | '−' | '<') || remark && c == '-' || ARROWS.contains(&c);
        let unit = text.split(end).next().unwrap_or("").trim_matches(|c: char| c.is_whitespace() || is_space(c));
        let unit = unit.trim_end_matches(MARKS).trim_end();
        let odd = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ':' | '-');
        if unit.starts_with(odd) { Behind::Else } else { Behind::Unit(unit) }
    }
}

/// The style of a table: that for which its cells speak, `Point` if none does, and none if they disagree.
pub(crate) fn style<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Style> {
    let (mut points, mut commas) = (0usize, 0usize);
    for cell in cells {
        let text = cell.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
        let body = &text[..body_length(text)];
        if !body.contains(['.', ',']) {
            continue;
        }
        if let (Reading::Number(_, decimals), Reading::Number(..)) =
            (interpret(body, None), interpret(body, Some(Style::Point)))
        {
            // The last separator is a decimal one, or separates thousands for the second time.
            let last_is_point = body.rfind('.') > body.rfind(',');
            if last_is_point == (decimals > 0) { points += 1 } else { commas += 1 }
        }
    }
    let (few, many) = (points.min(commas), points.max(commas));
    if few * 10 > many {
        return None;
    }
    Some(if commas > points { Style::Comma } else { Style::Point })
}
