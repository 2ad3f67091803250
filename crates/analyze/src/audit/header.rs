//! Meaning of a column by its header: the unit of its figures, the words of its subject, and their statistic. `headers.txt` has units,
//! words and rules: to read one more header, add a word or a rule there.

use std::collections::HashMap;
use std::sync::LazyLock;

use loadline_model::column::{COLUMNS, column};
use loadline_model::format::Format;

/// Lines of `headers.txt` as words, by their first one.
static LINES: LazyLock<HashMap<&str, Vec<Vec<&str>>>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
    for mut words in include_str!("headers.txt").lines().map(str::split_whitespace) {
        words.next().into_iter().for_each(|first| all.entry(first).or_default().push(words.clone().collect()));
    }
    all
});

type Line = &'static [&'static str];

fn lines(what: &str) -> impl Iterator<Item = Line> + use<> {
    LINES.get(what).into_iter().flatten().map(Vec::as_slice)
}

/// The concept or statistic that `word` stands for; `what` says which of the two.
fn named(what: &str, word: &str) -> Option<&'static str> {
    lines(what).find(|line| line[1..].contains(&word)).map(|line| line[0])
}

pub(crate) fn words(what: &str) -> impl Iterator<Item = &'static str> + use<> {
    lines(what).flatten().copied()
}

/// All columns that audits know: ours, and those that others print.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|c| c.id).chain(words("column"))
}

pub(crate) fn find_column(id: &str) -> Option<&'static str> {
    known().find(|k| *k == id)
}

pub(crate) fn is_text(id: &str) -> bool {
    column(id).is_some_and(|c| matches!(c.format, Format::Text | Format::YesNo))
}

/// A unit. Its kind is `time`, `share`, `bytes` or `count`, with what is counted and per what: `count.row/s`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Unit {
    pub(crate) kind: String,
    /// One of it in seconds, bytes, parts of one, or pieces.
    pub(crate) size: f64,
    /// Other size: 1,024 bytes of a KB, which strictly has 1,000.
    pub(crate) other: Option<f64>,
    pub(crate) text: String,
}

impl Unit {
    /// The unit that `text` names: `ms`, `MiB/s`, `KB per tx`, `tps`, `krps`, `kBpt`, `%`.
    pub(crate) fn parse(text: &str) -> Option<Unit> {
        let text = text.trim().trim_end_matches('.');
        let quotient = || {
            let (above, below) = text.rsplit_once('/').or_else(|| text.rsplit_once(" per "))?;
            let above = if above.trim().is_empty() { "1" } else { above.trim() };
            let unit = Unit::from_word(above, |kind| kind != "share" && !kind.contains('/'))?;
            let below = below.trim().to_lowercase();
            let line = lines("per").find(|line| line[2..].contains(&below.as_str()))?;
            let parts: f64 = line[1].parse().ok()?;
            let kind = match (unit.is_time(), line[0]) {
                (true, "/s") => return None,
                (true, _) => unit.kind,
                (false, per) => unit.kind + per,
            };
            Some(Unit { kind, size: unit.size * parts, other: unit.other.map(|o| o * parts), text: String::new() })
        };
        let found = Unit::from_word(text, |_| text != "#").or_else(quotient)?;
        Some(Unit { text: text.to_owned(), ..found })
    }

    /// The unit that a word is, in its own letters or in small ones, also in thousands and millions of what is counted.
    fn from_word(word: &str, of_kind: impl Fn(&str) -> bool) -> Option<Unit> {
        let find = |word: &str| lines("unit").find(|line| of_kind(line[0]) && line[2..].contains(&word));
        let small = word.to_lowercase();
        let thousands = || {
            let piece = word.strip_prefix(['k', 'K', 'M'])?.trim_start().to_lowercase();
            let line = find(&piece).filter(|line| line[0].starts_with("count") && piece.len() > 1)?;
            Some((line, if word.starts_with('M') { 1e6 } else { 1e3 }))
        };
        let (line, times) = find(word).or_else(|| find(&small)).map(|line| (line, 1.0)).or_else(thousands)?;
        let (size, other) = line[1].split_once(',').unwrap_or((line[1], ""));
        let size = size.parse().unwrap_or(1.0) * times;
        Some(Unit { kind: line[0].to_owned(), size, other: other.parse().ok(), text: word.to_owned() })
    }

    /// The unit in which the figures of a column with this id are.
    pub(crate) fn of_id(id: &str) -> Unit {
        let id = format!("_{id}_");
        let unit = lines("own").find(|line| id.contains(line[1])).map_or("1", |line| line[0]);
        Unit::parse(unit).unwrap_or_default()
    }

    pub(crate) fn is_time(&self) -> bool {
        self.kind == "time"
    }

    /// The kind without what is counted: what a cell may state in another size.
    pub(crate) fn family(&self) -> String {
        let (kind, per) = self.kind.split_once('/').unwrap_or((&self.kind, ""));
        format!("{}{}", kind.split('.').next().unwrap_or(kind), if per == "s" { "/s" } else { "" })
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    pub(crate) words: Vec<String>,
    pub(crate) unit: Option<Unit>,
    /// Whether three headers of its table, at least, are ranks without a unit.
    pub(crate) among_ranks: bool,
    /// Whether there is a second unit of another kind, so that it is the header of two columns.
    pub(crate) second: bool,
}

impl Header {
    pub(crate) fn parse(text: &str) -> Header {
        let (mut header, mut plain) = (Header::default(), String::new());
        // `p(95)` is a percentile, and no remark.
        let text = ["p(5", "p(7", "p(9"].iter().fold(text.to_owned(), |text, p| text.replace(p, &p.replace('(', "")));
        for (at, piece) in text.split(['[', '(', '{']).enumerate() {
            let bracket = piece.split_once([']', ')', '}']).unwrap_or((piece, ""));
            let (inside, after) = if at == 0 { ("", piece) } else { bracket };
            let (words, last) = inside.trim().rsplit_once(", ").unwrap_or(("", inside));
            let is_remark = ["with", "incl", "excl"].iter().any(|start| inside.starts_with(start));
            plain += match Unit::parse(last) {
                Some(unit) => {
                    header.second |= header.unit.as_ref().is_some_and(|first| first.kind != unit.kind);
                    header.unit.get_or_insert(unit);
                    words
                }
                None if is_remark || !inside.contains(|c: char| c.is_alphabetic() || c == '%') => "",
                None => inside,
            };
            plain += &format!(" {after} ");
        }
        let plain = plain.replace(" per ", "/").replace("_per_", "/").replace("%ile", "th").replace("%-tile", "th");
        let split = |c: char| c.is_whitespace() || matches!(c, '_' | ',' | ':' | ';' | '-' | '–' | '=' | '|');
        for token in plain.split(split) {
            header.add(token.trim_matches(['*', '`', '.', '†', '‡', '¹', '²', '³', '"']));
        }
        // `95th pct`: a rank is no share.
        let is_rank = header.is_rank();
        header.unit = header.unit.filter(|u| u.kind != "share" || !is_rank);
        header
    }

    /// Adds the unit that a token is, or its words: `AverageLatency`, `WAL/tx`, `%usr`, `#N`, `99thPercentile`.
    fn add(&mut self, token: &str) {
        let lower = token.to_lowercase();
        let among = |u: &Unit| u.kind.contains('/') && token != "ops" || words("among").any(|name| name == lower);
        let rank = token.strip_suffix("th").or(token.strip_suffix('%')).and_then(|rank| rank.parse::<f64>().ok());
        if let Some(unit) = Unit::parse(token).filter(among) {
            // What is counted is a word, too: `rows/s`, `qps`; but not `rps`, which may be rows.
            let is_clear =
                unit.kind.contains('.') && !unit.kind.contains(".rowortx") && named("word", &lower).is_some();
            let what = lower.split('/').next().unwrap_or_default();
            if !what.is_empty() && unit.kind.starts_with("count") && (token.contains('/') || is_clear) {
                self.words.push(what.to_owned());
            }
            // `IOPS (k)` are thousands.
            let thousands = self.unit.take_if(|u| u.kind == "count" && u.size >= 1e3).map_or(1.0, |u| u.size);
            self.unit.get_or_insert(Unit { size: unit.size * thousands, ..unit });
        } else if token.starts_with('#') && token.len() == 2 {
            self.words.push(lower);
        } else if let Some(rank) = rank {
            // `95% latency` is the 95th percentile, and so is `95.00th`.
            self.words.push(format!("{rank}th"));
        } else {
            if token.contains('%') && token.len() > 1 {
                self.unit.get_or_insert(Unit::of_id("pct"));
            }
            let chars: Vec<char> = token.chars().collect();
            let is = |at: Option<usize>, what: fn(&char) -> bool| at.and_then(|at| chars.get(at)).is_some_and(what);
            let spaced = chars.iter().enumerate().flat_map(|(at, c)| {
                let (before, next) = (at.checked_sub(1), Some(at + 1));
                let part = c.is_alphanumeric() || *c == 'Δ' || *c == '.' && is(before, char::is_ascii_digit);
                // `LogFile` is two words, `MySQL` is one.
                let begins = c.is_uppercase() && is(before, |c| c.is_lowercase()) && is(next, |c| c.is_lowercase());
                [begins.then_some(' '), Some(if part { *c } else { ' ' })].into_iter().flatten()
            });
            let spaced: String = spaced.collect();
            self.words.extend(spaced.split_whitespace().map(str::to_lowercase));
        }
    }

    pub(crate) fn is_rank(&self) -> bool {
        self.words.iter().filter_map(|w| named("statistic", w)).any(|id| id.starts_with('p'))
    }

    pub(crate) fn has_unknown_words(&self) -> bool {
        self.words.iter().any(|w| named("word", w).or_else(|| named("statistic", w)).is_none())
    }

    /// The id of the column that it means, and that of a second one that means the same; `strict` if all words must be known.
    pub(crate) fn meaning(&self, strict: bool) -> Option<Vec<&'static str>> {
        if strict && self.has_unknown_words() || self.second {
            return None;
        }
        let found = |what| {
            let all = self.words.iter().filter_map(|w| named(what, w));
            let mut all: Vec<&'static str> = all.filter(|c| *c != "-").collect();
            all.dedup();
            all
        };
        let (mut concepts, statistics) = (found("word"), found("statistic"));
        concepts.extend(statistics.iter().map(|s| if s.starts_with('p') { "p" } else { "end" }));
        concepts.extend(self.among_ranks.then_some("ranks"));
        let is_long = self.unit.as_ref().is_some_and(|u| u.is_time() && u.size >= 1.0);
        concepts.extend(self.words.is_empty().then_some(if is_long { "time" } else { "bare" }));
        if statistics.len() > 1 {
            return None;
        }
        let kind = self.unit.as_ref().map(|u| u.kind.as_str());
        let (ids, alternative) = lines("rule").find_map(|rule| fits(rule, kind, &concepts))?;
        let statistic = statistics.first().unwrap_or(&alternative);
        ids.iter().map(|id| find_column(&id.replace('*', statistic))).collect()
    }
}

/// The ids of a rule, if the kind of a unit and these concepts are those of the rule, and the last alternative that is one of them.
fn fits(rule: Line, kind: Option<&str>, concepts: &[&str]) -> Option<(Line, &'static str)> {
    let at = |sign| rule.iter().position(|word| *word == sign);
    let (bar, is) = (at("|")?, at("=")?);
    let (kinds, parts) = (&rule[..bar], &rule[bar + 1..is]);
    let of_kind = |pattern: &&str| match (kind, pattern.strip_prefix('-'), pattern.split_once('*')) {
        (None, Some(""), _) => !concepts.contains(&"rate"),
        (None, Some(concept), _) => concepts.contains(&concept),
        (Some(kind), None, Some((start, end))) => {
            kind.strip_prefix(start).and_then(|k| k.strip_suffix(end)).is_some_and(|piece| !piece.contains('/'))
        }
        (Some(kind), None, None) => kind == *pattern,
        _ => false,
    };
    let held = |part: &'static str| part.trim_end_matches('?').split('|').find(|c| concepts.contains(c));
    let is_in = |c: &&str| {
        matches!(*c, "rate" | "size" | "mean" | "time" | "db" | "bare" | "ranks")
            || parts.iter().any(|part| part.trim_end_matches('?').split('|').any(|p| p == *c))
    };
    let alternative = parts.iter().filter(|part| part.contains('|')).find_map(|part| held(part));
    let is_all = parts.iter().all(|part| part.ends_with('?') || held(part).is_some()) && concepts.iter().all(is_in);
    (kinds.iter().any(of_kind) && is_all).then_some((&rule[is + 1..], alternative.unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{LAWS, Law};

    /// Words of rules that mean nothing: no column, no concept and no kind of a unit; and ids of laws and settings that are no column.
    #[test]
    fn no_word_of_a_rule_is_misspelt() {
        let free = ["-", "p", "end", "bare", "ranks", "|", "="];
        let is_kind = |word: &str| lines("unit").any(|l| l[0] == word || Some(l[0]) == word.split(['/', '*']).next());
        let is_concept = |word: &str| lines("word").any(|line| line[0] == word) || free.contains(&word);
        let is_id = |word: &str| word.contains('*') || find_column(word).is_some();
        let words = lines("rule").flatten().flat_map(|word| word.trim_matches(['?', '-']).split('|'));
        let ids =
            LAWS.iter().flat_map(Law::needed).flat_map(|(_, of)| of).filter(|id| *id != "tps" && *id != "time_ms");
        let ids = ids.chain(["key", "setting", "count"].into_iter().flat_map(super::words)).filter(|id| !is_id(id));
        let unknown = words.filter(|w| !w.is_empty() && !is_concept(w) && !is_kind(w) && !is_id(w)).chain(ids);
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
