//! Claims against tables: "latency factor 6", "up to 70 % faster". A claim is a ratio of two platforms; the table gives it for
//! each test that both have.

use std::collections::{HashMap, HashSet};

use crate::context::Context;
use crate::finding::{Finding, Severity, shown};
use crate::header::Header;
use crate::interval::{Interval, Reading};
use crate::names;
use crate::table::number::{self, Style};
use crate::unit::{Of, Per, Unit};

/// Law of findings about claims.
const CLAIM: &str = "claim";

/// A claimed ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// As written.
    pub text: String,
    /// Columns that it may be about; empty for throughput and latency.
    columns: Vec<&'static str>,
    /// The ratio, 1 or more, as its digits say.
    ratio: (f64, f64),
    /// Whether it is the largest ratio of all.
    up_to: bool,
}

/// Why a claim cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no claim: write what it is about and a ratio, such as 'latency factor 6', 'throughput 2.8x' or 'up to 70 % faster'"
)]
pub struct ClaimError(String);

/// Words of a claim that name no figure.
const FILLERS: [&str; 34] = [
    "factor",
    "up",
    "to",
    "at",
    "most",
    "least",
    "by",
    "of",
    "a",
    "the",
    "is",
    "x",
    "times",
    "fold",
    "percent",
    "more",
    "faster",
    "higher",
    "better",
    "lower",
    "less",
    "shorter",
    "reduction",
    "reduced",
    "slower",
    "improvement",
    "improved",
    "increase",
    "increased",
    "than",
    "gain",
    "and",
    "about",
    "as",
];

impl Claim {
    /// Parses a claim.
    ///
    /// # Errors
    /// There is no ratio in it, or what it is about is not known.
    pub fn parse(text: &str) -> Result<Claim, ClaimError> {
        let wrong = || ClaimError(text.to_owned());
        let lower = text.to_lowercase().replace(['×', '-'], " x ").replace("x  fold", "fold");
        let lower = lower.replace('_', "\u{1}");
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
        let ratio = if !percent {
            (low, high)
        } else if has(&["lower", "less", "shorter", "reduc", "cut"]) {
            if high >= 100.0 {
                return Err(wrong());
            }
            (1.0 / (1.0 - low / 100.0), 1.0 / (1.0 - high / 100.0))
        } else {
            (1.0 + low / 100.0, 1.0 + high / 100.0)
        };
        if !(ratio.0.is_finite() && ratio.1 > 0.0) {
            return Err(wrong());
        }
        let name = format!("{} {}", &lower[..at], rest.trim_start_matches('%'));
        let words: Vec<&str> = name.split_whitespace().filter(|w| !FILLERS.contains(w)).collect();
        let columns = columns(&words.join(" ").replace('\u{1}', "_")).ok_or_else(wrong)?;
        let up_to = lower.contains("up to") || lower.contains("at most");
        Ok(Claim { text: text.to_owned(), columns, ratio, up_to })
    }

    fn is_about(&self, id: &str) -> bool {
        let defaults = ["commit_throughput_tps", "tx_per_s", "commit_latency_ms"];
        if self.columns.is_empty() { defaults.contains(&id) } else { self.columns.contains(&id) }
    }
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
            "commit_latency_ms",
            "transaction_time_ns_mean",
            "log_file_sync_ms",
            "redo_write_time_us",
            "redo_sync_time_us",
            "read_time_us_mean",
            "sql_service_time_s",
        ]),
        "throughput" => times(&["commit_throughput_tps", "tx_per_s", "rows_per_s", "redo_mib_per_s", "data_mib_per_s"]),
        _ => {
            let header = Header::parse(words);
            names::by_words(&header.words, header.unit.as_ref()).map(|id| vec![id])
        }
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
fn ratios(all: &[&Measured]) -> Vec<Observed> {
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
                let of = |test: &&str| {
                    let ratio = figures.get(&(*a, *test))?.over(*figures.get(&(*b, *test))?);
                    Some(((*test).to_owned(), ratio))
                };
                let ratios: Vec<(String, Interval)> = tests.iter().filter_map(of).collect();
                if ratios.is_empty() {
                    continue;
                }
                let turned = ratios.iter().map(|(_, r)| r.at.ln()).sum::<f64>() < 0.0;
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

/// Judges each claim by what all tables gave.
pub(crate) fn judge(claims: &[Claim], measured: &[Vec<Vec<Measured>>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, claim) in claims.iter().enumerate() {
        let figures: Vec<&Measured> = measured.iter().filter_map(|table| table.get(i)).flatten().collect();
        let all = ratios(&figures);
        let reached = |o: &Observed| o.ratios.iter().any(|(_, r)| r.high >= claim.ratio.0);
        let anywhere = all.iter().any(reached);
        if all.is_empty() {
            let text =
                "no two platforms have such a figure in the same tests, in one table or in one of each".to_owned();
            findings.push(finding(claim, Severity::Warning, None, String::new(), None, text));
        }
        for one in &all {
            findings.push(one.against(claim, anywhere));
        }
    }
    findings
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
        let mean = (self.ratios.iter().map(|(_, r)| r.at.ln()).sum::<f64>() / self.ratios.len() as f64).exp();
        let (low, high) = claim.ratio;
        let count = self.ratios.iter().filter(|(_, r)| r.high >= low).count();
        let all = self.ratios.len();
        let unit = Unit::of_id(self.column).dimension;
        let better = if unit.of == Of::Time && unit.per == Per::Whole { "times as long" } else { "times as much" };
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
        let (severity, text) = if most.high < low {
            let severity = if anywhere { Severity::Warning } else { Severity::Error };
            let other = if anywhere { "; another figure reaches it" } else { "" };
            (severity, format!("{range}: {} at best ({at}), so the claim is not reached{other}", shown(most.at, 3)))
        } else if claim.up_to && most.low > high {
            (Severity::Info, format!("{range}: the best ({at}) is more than claimed"))
        } else if claim.up_to || count == all {
            (Severity::Info, format!("{range}: the claim holds ({} at {at})", shown(most.at, 3)))
        } else {
            (Severity::Warning, format!("{range}: the claim is reached in {count} of them only"))
        };
        let recomputed = if claim.up_to || most.high < low { most.at } else { mean };
        let claimed = (low + high) / 2.0;
        finding(claim, severity, Some(self), shown(recomputed, 4), Some((claimed / recomputed - 1.0) * 100.0), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read() {
        let ratio = |text: &str| Claim::parse(text).map(|c| (c.ratio, c.up_to)).unwrap();
        let close = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        assert!(close(ratio("latency factor 6").0, (5.5, 6.5)) && !ratio("latency factor 6").1);
        assert!(close(ratio("up to 70 % faster").0, (1.695, 1.705)) && ratio("up to 70 % faster").1);
        assert!(close(ratio("throughput 2.8x").0, (2.75, 2.85)));
        let (low, high) = ratio("log_file_sync_ms 50% lower").0;
        assert!(low < 2.0 && high > 2.0 && high < 2.1, "{low} {high}");
        assert_eq!(Claim::parse("p99 latency 3x").unwrap().columns, ["transaction_time_ns_p99"]);
        for text in ["", "fast", "latency", "100 % lower latency", "beauty 3x"] {
            assert!(Claim::parse(text).is_err(), "{text}");
        }
    }
}
