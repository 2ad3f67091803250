//! Claims against tables: "latency factor 6", "up to 70 % faster". A claim is a ratio of two platforms; the table gives it for
//! each test that both have.

use std::collections::{HashMap, HashSet};

use crate::audit::context::Context;
use crate::audit::finding::{Finding, Severity, shown};
use crate::audit::header::Header;
use crate::audit::interval::{Interval, Reading};
use crate::audit::names;
use crate::audit::table::number::{self, Style};
use crate::audit::unit::{Of, Per, Unit};

/// Law of findings about claims.
const CLAIM: &str = "claim";

/// A claimed ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// As written.
    pub text: String,
    /// Columns that it may be about; empty for throughput and latency.
    columns: Vec<&'static str>,
    /// The ratio, more than 1.
    value: f64,
    /// From where to where a ratio is the claimed one, by the claim's digits and [`ROUNDED`].
    ratio: (f64, f64),
    /// Whether it is the largest ratio of all.
    up_to: bool,
    /// Whether it is the mean of all.
    average: bool,
    /// Which platform it is about, and than which other, if it says so.
    named: Option<Named>,
}

/// `X is … than Y`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    /// Name of X, in lower case; `None`: any other than Y.
    one: Option<String>,
    /// Name of Y, in lower case; empty: any other than X.
    other: String,
    way: Way,
}

/// In which way X differs from Y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the figure's own meaning: shorter times, more of all else.
    Better,
    Worse,
    Higher,
    Lower,
}

impl Named {
    /// Splits a claim in lower case into what it is about and the platforms that it names.
    fn split(text: &str) -> (String, Option<Named>) {
        // "1.9 times as fast as", "2x over", "compared with"
        let text = [" as fast as ", " over ", " vs ", " versus ", " compared to ", " compared with "]
            .iter()
            .fold(text.to_owned(), |text, words| text.replace(words, " faster than "));
        let text =
            [(" as high as ", " higher than "), (" as much as ", " more than "), (" as long as ", " longer than ")]
                .iter()
                .fold(text, |text, (words, than)| text.replace(words, than));
        const VERBS: [&str; 6] = [" reduces ", " improves ", " increases ", " lowers ", " cuts ", " raises "];
        let does = VERBS.into_iter().any(|v| text.contains(v));
        let (head, other) = match text.split_once(" than ") {
            Some((head, other)) => (head, other),
            None if does => (text.as_str(), ""),
            None => return (text, None),
        };
        let verbs = [" is ", " has ", " gives ", " delivers ", " shows ", " runs "].into_iter().chain(VERBS);
        let verb = verbs.into_iter().find(|v| head.contains(v));
        let (one, rest) =
            verb.and_then(|verb| head.split_once(verb)).map_or((None, head), |(one, rest)| (Some(one), rest));
        // `the latency of X`, `X's latency`
        let figure_of = |one: &str| match (one.split_once(" of "), one.split_once("'s ")) {
            (Some((figure, name)), _) | (None, Some((name, figure))) => (name.to_owned(), format!("{figure} {rest}")),
            (None, None) => (one.to_owned(), rest.to_owned()),
        };
        let (one, rest) = one.map(figure_of).map_or((None, rest.to_owned()), |(name, rest)| (Some(name), rest));
        let has =
            |words: &[&str]| words.iter().any(|word| rest.split_whitespace().any(|w| w.trim_matches(',') == *word));
        let way = if has(&["slower", "worse"]) {
            Way::Worse
        } else if has(&["lower", "less", "shorter", "fewer"])
            || [" reduces ", " lowers ", " cuts "].iter().any(|v| head.contains(v))
        {
            Way::Lower
        } else if has(&["higher", "more", "longer", "larger"]) {
            Way::Higher
        } else {
            Way::Better
        };
        let name = |text: &str| text.trim().trim_start_matches("the ").trim_end_matches(['.', ',']).to_owned();
        let named = Named { one: one.as_deref().map(name), other: name(other), way };
        let verb = VERBS.into_iter().find(|v| head.contains(v)).unwrap_or("");
        (format!("{verb}{rest}"), (named.one.is_some() || !named.other.is_empty()).then_some(named))
    }

    fn is_other(&self, platform: &str) -> bool {
        let platform = platform.to_lowercase();
        if self.other.is_empty() { self.one.as_ref() != Some(&platform) } else { platform == self.other }
    }

    fn is_one(&self, platform: &str) -> bool {
        !self.is_other(platform) && self.one.as_ref().is_none_or(|one| platform.to_lowercase() == *one)
    }

    /// Whether X must have the higher figure.
    fn wants_more(&self, column: &str) -> bool {
        match self.way {
            Way::Higher => true,
            Way::Lower => false,
            Way::Better => !is_time(column),
            Way::Worse => is_time(column),
        }
    }

    /// Its names that none of `platforms` has.
    fn unknown<'a>(&'a self, platforms: &[&str]) -> Vec<&'a str> {
        let there = |name: &&str| platforms.iter().any(|p| p.to_lowercase() == **name);
        self.one
            .as_deref()
            .into_iter()
            .chain([self.other.as_str()])
            .filter(|name| !name.is_empty() && !there(name))
            .collect()
    }
}

/// Whether a column is a time of a transaction or request.
fn is_time(column: &str) -> bool {
    let unit = Unit::of_id(column).dimension;
    unit.of == Of::Time && unit.per == Per::Whole
}

/// Why a claim cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no claim: {why}")]
pub struct ClaimError {
    text: String,
    why: &'static str,
}

const NO_CLAIM: &str =
    "write what it is about and a ratio, such as 'latency factor 6', 'throughput 2.8x' or 'up to 70 % faster'";
const NO_RATIO: &str = "its ratio must be more than 1: '2x' rather than '0.5x', and '20 % lower' rather than '-20 %'";

/// How much less than claimed still is what was claimed, where the claim's digits leave that: 2.78 is 2.8, and 2.5 is not 3.
const ROUNDED: f64 = 0.01;

/// Words of a claim that name no figure.
const FILLERS: &str = "cut cuts down on average fast much high low factor up to at most least by of a the is x times fold percent more \
    faster higher better lower less shorter reduction reduces reduced slower improvement improves improved increase increases increased \
    than gain and about as lowers raises";

impl Claim {
    /// Parses a claim.
    ///
    /// # Errors
    /// There is no ratio in it, or what it is about is not known.
    pub fn parse(text: &str) -> Result<Claim, ClaimError> {
        let error = |why| ClaimError { text: text.to_owned(), why };
        let (wrong, no_ratio) = (|| error(NO_CLAIM), || error(NO_RATIO));
        if is_negative(text) {
            return Err(no_ratio());
        }
        let (lower, named) = Named::split(&in_digits(&text.to_lowercase()));
        // Names keep their dashes: X9M-2.
        let lower = lower.replace(['×', '-'], " x ").replace('_', "\u{1}");
        let at = lower.find(|c: char| c.is_ascii_digit()).ok_or_else(wrong)?;
        // A digit of a name, such as p99, is none of the ratio: the last number is it.
        let last = lower
            .char_indices()
            .filter(|(i, c)| c.is_ascii_digit() && starts_number(&lower, *i))
            .map(|(i, _)| i)
            .next_back();
        let at = last.unwrap_or(at);
        let number: String = lower[at..].chars().take_while(|c| c.is_ascii_digit() || *c == '.' || *c == ',').collect();
        let number = number.trim_end_matches(['.', ',']);
        let printed = number::parse(number, Style::Point).ok_or_else(wrong)?;
        let rest = lower[at + number.len()..].trim_start();
        // 180 % may be rounded to tens; of 70 % nobody knows.
        let coarse = i32::from(printed.zeros > 0 && printed.digits + printed.zeros > 2);
        let half = 0.5 * 10f64.powi(printed.place + coarse);
        let (low, high) = (printed.value - half, printed.value + half);
        let percent = rest.starts_with('%') || rest.starts_with("percent");
        let has = |words: &[&str]| words.iter().any(|w| lower.contains(w));
        let of = |value: f64| match (percent, has(&["lower", "less", "shorter", "reduc", "cut"])) {
            (false, _) => value,
            _ if has(&["down to", "reduced to", "cut to"]) => 100.0 / value,
            (true, true) => 1.0 / (1.0 - value / 100.0),
            (true, false) => 1.0 + value / 100.0,
        };
        let value = of(printed.value);
        if !(value.is_finite() && value > 1.0) {
            return Err(no_ratio());
        }
        let (one, other) = (of(low), of(high));
        let ratio = (one.min(other).max(value * (1.0 - ROUNDED)), one.max(other).min(value * (1.0 + ROUNDED)));
        let name = format!("{} {}", &lower[..at], rest.trim_start_matches('%'));
        let words: Vec<&str> = name.split_whitespace().filter(|w| !FILLERS.split(' ').any(|f| f == *w)).collect();
        let columns = columns(&words.join(" ").replace('\u{1}', "_")).ok_or_else(wrong)?;
        let up_to = lower.contains("up to") || lower.contains("at most");
        let average = lower.contains("on average");
        Ok(Claim { text: text.to_owned(), columns, value, ratio, up_to, average, named })
    }

    /// What it needs that no table has.
    fn missing(&self, figures: &[&Measured]) -> String {
        let mut platforms: Vec<&str> = figures.iter().map(|m| m.platform.as_str()).collect();
        platforms.sort_unstable();
        platforms.dedup();
        if let Some(named) = self.named.as_ref().filter(|_| platforms.len() > 1) {
            let unknown = named.unknown(&platforms);
            if !unknown.is_empty() {
                return format!("no platform is called {}; there are {}", unknown.join(" or "), platforms.join(", "));
            }
        }
        let usual = ["commit_throughput_tps", "commit_latency_ms"];
        let columns = if self.columns.is_empty() { &usual[..] } else { &self.columns };
        match platforms.as_slice() {
            [] => format!("no column is known as {}; say with --columns which one is", columns.join(" or ")),
            [one] => format!(
                "it is about two platforms, and only '{one}' has such a figure; say with --columns which column names the platform"
            ),
            _ => format!("{} have no test in common", platforms.join(", ")),
        }
    }

    /// How its number was read.
    fn reading(&self) -> String {
        let (low, high) = (shown(self.ratio.0, 4), shown(self.ratio.1, 4));
        let value = shown(self.value, 4);
        if self.up_to { format!("{value}, {low} to {high} at best") } else { format!("{value}, {low} or more") }
    }

    fn is_about(&self, id: &str) -> bool {
        let defaults = ["commit_throughput_tps", "tx_per_s", "commit_latency_ms"];
        if self.columns.is_empty() { defaults.contains(&id) } else { self.columns.contains(&id) }
    }
}

/// Whether a number has a sign: `-3`, and not `p99-latency` or `2-fold`.
fn is_negative(text: &str) -> bool {
    let mut last = ' ';
    let chars: Vec<char> = text.chars().collect();
    chars.windows(2).any(|two| {
        let signed = matches!(two[0], '-' | '−') && two[1].is_ascii_digit() && !last.is_alphanumeric();
        last = two[0];
        signed
    })
}

/// `twice` and `half` with their digits.
fn in_digits(text: &str) -> String {
    let word = |word: &str| match word {
        "twice" | "double" | "doubled" | "doubles" | "half" | "halved" | "halves" => "2x".to_owned(),
        "thrice" | "triple" | "tripled" => "3x".to_owned(),
        _ => word.to_owned(),
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a number begins here, and no name goes on.
fn starts_number(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_none_or(|c| !(c.is_alphanumeric() || c == '.' || c == ',' || c == '\u{1}'))
}

/// Columns that words mean; none at all mean the usual ones.
fn columns(words: &str) -> Option<Vec<&'static str>> {
    if words.is_empty() {
        return Some(Vec::new());
    }
    if let Some(id) = names::find(words) {
        return Some(vec![id]);
    }
    let times = |all: &[&'static str]| Some(all.to_vec());
    match words {
        "latency" | "latencies" | "response time" => times(&[
            "commit_latency_ms", "transaction_time_ns_mean", "log_file_sync_ms", "redo_write_time_us",
            "redo_sync_time_us", "read_time_us_mean", "sql_service_time_s",
        ]),
        "throughput" => times(&["commit_throughput_tps", "tx_per_s", "rows_per_s", "redo_mib_per_s", "data_mib_per_s"]),
        _ => names::read(&Header::parse(words)).map(|m| vec![m.id]),
    }
}

/// The ratios of one column between two platforms, in all tests that both have.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    table: String,
    column: &'static str,
    platforms: (String, String),
    /// Test and ratio, at least 1 on the whole.
    ratios: Vec<(String, Interval)>,
}

/// A figure that a claim may be about.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    table: String,
    /// Whether the table names platforms; otherwise it is one itself.
    of_several: bool,
    platform: String,
    test: String,
    column: &'static str,
    figure: Interval,
}

/// Rows in which claims are looked for.
const ROWS: usize = 10_000;

/// The figures of a table that `claim` may be about.
pub(crate) fn figures(claim: &Claim, context: &Context<'_>) -> Vec<Measured> {
    let sheet = &context.sheet;
    let by = ["platform", "arm", "level", "driver"].into_iter().find(|id| sheet.has(id));
    let mut all = Vec::new();
    for row in context.rows().take(ROWS) {
        let parts = ["workload", "jobs", "threads", "rows_per_tx", "block_bytes"].map(|id| match sheet.text(id, row) {
            "" => String::new(),
            text if id == "workload" => format!("{text} "),
            text => format!("{text} {id} "),
        });
        let test = parts.concat().trim().to_owned();
        for column in sheet.columns.iter().map(|c| c.id).filter(|id| claim.is_about(id)) {
            let figure = context.interval(column, row, Reading::Loose).filter(|i| i.low > 0.0);
            all.extend(figure.map(|figure| Measured {
                table: sheet.table.name.clone(),
                of_several: by.is_some(),
                platform: by.map_or_else(|| sheet.table.name.clone(), |by| sheet.text(by, row).to_owned()),
                test: test.clone(),
                column,
                figure,
            }));
        }
    }
    all
}

/// The ratios of each column between each two platforms: of one table, or each of a table of its own.
fn ratios(all: &[&Measured], named: Option<&Named>) -> Vec<Observed> {
    #[derive(Default)]
    struct Group<'a> {
        platforms: Vec<&'a str>,
        tests: Vec<&'a str>,
        seen: HashSet<&'a str>,
        /// The first figure of each platform in each test.
        figures: HashMap<(&'a str, &'a str), Interval>,
    }
    let mut order: Vec<(&str, &'static str)> = Vec::new();
    let mut groups: HashMap<(&str, &'static str), Group<'_>> = HashMap::new();
    for m in all {
        let key = (if m.of_several { m.table.as_str() } else { "" }, m.column);
        let group = groups.entry(key).or_insert_with(|| {
            order.push(key);
            Group::default()
        });
        if !group.platforms.contains(&m.platform.as_str()) {
            group.platforms.push(&m.platform);
        }
        if group.seen.insert(&m.test) {
            group.tests.push(&m.test);
        }
        group.figures.entry((&m.platform, &m.test)).or_insert(m.figure);
    }
    let mut observed = Vec::new();
    for key in order {
        let Some(Group { platforms, tests, figures, .. }) = groups.get(&key) else { continue };
        for (i, a) in platforms.iter().enumerate() {
            for b in platforms.iter().skip(i + 1) {
                let pair = named.map(|n| (n.is_one(a) && n.is_other(b), n.is_one(b) && n.is_other(a)));
                if pair == Some((false, false)) {
                    continue;
                }
                let of = |test: &&str| {
                    let ratio = figures.get(&(*a, *test))?.over(*figures.get(&(*b, *test))?);
                    Some(((*test).to_owned(), ratio))
                };
                let ratios: Vec<(String, Interval)> = tests.iter().filter_map(of).collect();
                if ratios.is_empty() {
                    continue;
                }
                // What is claimed of X is held against X, also where Y has more.
                let turned = match (named, pair) {
                    (Some(named), Some((a_is_one, _))) => a_is_one != named.wants_more(key.1),
                    _ => ratios.iter().map(|(_, r)| r.at.ln()).sum::<f64>() < 0.0,
                };
                let turn = |r: Interval| if turned { Interval::exact(1.0).over(r) } else { r };
                let (more, less) = if turned { (b, a) } else { (a, b) };
                observed.push(Observed {
                    table: key.0.to_owned(),
                    column: key.1,
                    platforms: ((*more).to_owned(), (*less).to_owned()),
                    ratios: ratios.into_iter().map(|(test, r)| (test, turn(r))).collect(),
                });
            }
        }
    }
    observed
}

/// Judges each claim by what all tables gave; and what is missing for those that cannot be judged.
pub(crate) fn judge(claims: &[Claim], measured: &[Vec<Vec<Measured>>]) -> (Vec<Finding>, Vec<String>) {
    let (mut findings, mut unchecked) = (Vec::new(), Vec::new());
    for (i, claim) in claims.iter().enumerate() {
        let figures: Vec<&Measured> = measured.iter().filter_map(|table| table.get(i)).flatten().collect();
        let all = ratios(&figures, claim.named.as_ref());
        let anywhere = all.iter().any(|o| o.ratios.iter().any(|(_, r)| r.at >= claim.ratio.0));
        if all.is_empty() {
            let text = claim.missing(&figures);
            unchecked.push(format!("'{}' cannot be checked: {text}", claim.text));
            findings.push(finding(claim, Severity::Warning, None, String::new(), None, text));
        }
        for one in &all {
            findings.push(one.against(claim, anywhere));
        }
    }
    (findings, unchecked)
}

fn finding(
    claim: &Claim,
    severity: Severity,
    of: Option<&Observed>,
    recomputed: String,
    deviation_pct: Option<f64>,
    text: String,
) -> Finding {
    Finding {
        severity,
        table: of.map_or_else(String::new, |o| o.table.clone()),
        row: None,
        test: String::new(),
        columns: of.map(|o| o.column).into_iter().collect(),
        law: CLAIM,
        printed: claim.text.clone(),
        recomputed,
        deviation_pct,
        message: text,
    }
}

impl Observed {
    /// Holds the claim against the ratios. `anywhere`: whether another column reaches it.
    fn against(&self, claim: &Claim, anywhere: bool) -> Finding {
        let by = |a: &&(String, Interval), b: &&(String, Interval)| a.1.at.total_cmp(&b.1.at);
        let (best, least) = (self.ratios.iter().max_by(by), self.ratios.iter().min_by(by));
        let (Some((at, most)), Some((_, least))) = (best, least) else {
            return finding(claim, Severity::Warning, Some(self), String::new(), None, String::new());
        };
        let all = self.ratios.len();
        let mean = (self.ratios.iter().map(|(_, r)| r.at.ln()).sum::<f64>() / all as f64).exp();
        let (low, high) = claim.ratio;
        let count = self.ratios.iter().filter(|(_, r)| r.at >= low).count();
        let better = if is_time(self.column) { "times as long" } else { "times as much" };
        let (few, many) = (shown(least.at, 3), shown(most.at, 3));
        let (ours, theirs) = (&self.platforms.0, &self.platforms.1);
        let range = if all == 1 {
            format!("{}: {ours} has {many} {better} as {theirs} in one test", self.column)
        } else {
            let mean = shown(mean, 3);
            format!(
                "{}: {ours} has {few} to {many} {better} as {theirs} in {all} tests, {mean} in the geometric mean",
                self.column
            )
        };
        let missed = most.at < low || claim.average && mean < low;
        let (severity, text) = if missed {
            let room = self.ratios.iter().map(|(_, r)| r.high).fold(0.0, f64::max);
            let severity = if anywhere || room >= low { Severity::Warning } else { Severity::Error };
            let other = match (anywhere, room >= low) {
                (true, _) => "; another figure reaches it",
                (_, true) => "; only what was rounded from the cells could reach it",
                _ => "",
            };
            let reached = if claim.average { shown(mean, 3) + " on average" } else { format!("{many} at best ({at})") };
            (severity, format!("{range}: {reached}, so the claim is not reached{other}"))
        } else if claim.up_to && most.at > high {
            (Severity::Info, format!("{range}: the best ({at}) is more than claimed"))
        } else if claim.up_to || claim.average || count == all {
            (Severity::Info, format!("{range}: the claim holds ({many} at {at})"))
        } else {
            (Severity::Warning, format!("{range}: the claim is reached in {count} of them only"))
        };
        let text = format!("{text}; the claim is read as {}", claim.reading());
        let recomputed = if (claim.up_to || missed) && !claim.average { most.at } else { mean };
        let deviation = (claim.value / recomputed - 1.0) * 100.0;
        finding(claim, severity, Some(self), shown(recomputed, 4), Some(deviation), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read() {
        let ratio = |text: &str| Claim::parse(text).map(|c| (c.ratio, c.up_to)).unwrap();
        let close = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        // One digit is no licence to call 5.5 six.
        assert!(close(ratio("latency factor 6").0, (5.94, 6.06)) && !ratio("latency factor 6").1);
        assert!(close(ratio("up to 70 % faster").0, (1.695, 1.705)) && ratio("up to 70 % faster").1);
        assert!(close(ratio("throughput 2.8x").0, (2.772, 2.828)));
        let value = |text: &str| Claim::parse(text).map(|c| c.value).unwrap();
        assert!((value("log_file_sync_ms 50% lower") - 2.0).abs() < 1e-9);
        for (text, expected) in [
            ("twice as fast", 2.0),
            ("half the latency", 2.0),
            ("latency down to 40 %", 2.5),
            ("latency cut to 40 %", 2.5),
            ("on average 2.2 times", 2.2),
            ("2-fold throughput", 2.0),
        ] {
            assert!((value(text) - expected).abs() < 1e-9, "{text}: {}", value(text));
        }
        assert_eq!(Claim::parse("p99 latency 3x").unwrap().columns, ["transaction_time_ns_p99"]);
        let nonsense =
            ["latency factor 0", "latency factor -3", "throughput 0.5x", "1x", "0 % faster", "latency -20 %"];
        for text in ["", "fast", "latency", "100 % lower latency", "beauty 3x"].into_iter().chain(nonsense) {
            assert!(Claim::parse(text).is_err(), "{text}");
        }
    }
}
