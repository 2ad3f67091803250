//! What a column is by its header: the unit of its figures, the words of its subject, and their statistic. `headers.txt` has units,
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

fn lines(what: &str) -> impl Iterator<Item = &'static [&'static str]> + use<> {
    LINES.get(what).into_iter().flatten().map(Vec::as_slice)
}

/// The concept or statistic that `word` stands for; `what` says which of the two.
fn named(what: &str, word: &str) -> Option<&'static str> {
    lines(what).find(|line| line[1..].contains(&word)).map(|line| line[0])
}

/// All columns that audits know: ours, and those that others print.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|c| c.id).chain(lines("column").flatten().copied())
}

pub(crate) fn find_column(id: &str) -> Option<&'static str> {
    known().find(|k| *k == id)
}

pub(crate) fn is_text(id: &str) -> bool {
    column(id).is_some_and(|c| matches!(c.format, Format::Text | Format::YesNo))
}

/// A unit. Its kind is `time`, `share`, `bytes` or `count`, with what is counted behind a point and what it is per behind a slash:
/// `count.row/s`.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// The unit that `text` names: `ms`, `MiB/s`, `KB per tx`, `tps`, `krps`, `kBpt`, `%`.
    pub(crate) fn parse(text: &str) -> Option<Unit> {
        let text = text.trim().trim_end_matches('.');
        let quotient = || {
            let (above, below) = text.rsplit_once('/').or_else(|| text.rsplit_once(" per "))?;
            let above = if above.trim().is_empty() { "1" } else { above.trim() };
            Unit::of(above, |kind| kind != "share" && !kind.contains('/'))?.per(&below.trim().to_lowercase())
        };
        let found = Unit::of(text, |_| text != "#").or_else(quotient)?;
        Some(Unit { text: text.to_owned(), ..found })
    }

    /// The unit that a word is, in its own letters or in small ones, also in thousands and millions of what is counted.
    fn of(word: &str, of_kind: impl Fn(&str) -> bool) -> Option<Unit> {
        let find = |word: &str| lines("unit").find(|line| of_kind(line[0]) && line[2..].contains(&word));
        let small = word.to_lowercase();
        let (line, times) = match find(word).or_else(|| find(&small)) {
            Some(line) => (line, 1.0),
            None => {
                let piece = word.strip_prefix(['k', 'K', 'M'])?.trim_start().to_lowercase();
                let line = find(&piece).filter(|line| line[0].starts_with("count") && piece.len() > 1)?;
                (line, if word.starts_with('M') { 1e6 } else { 1e3 })
            }
        };
        let (size, other) = line[1].split_once(',').unwrap_or((line[1], ""));
        let size = size.parse().unwrap_or(1.0) * times;
        Some(Unit { kind: line[0].to_owned(), size, other: other.parse().ok(), text: word.to_owned() })
    }

    fn per(self, below: &str) -> Option<Unit> {
        let line = lines("per").find(|line| line[2..].contains(&below))?;
        let parts: f64 = line[1].parse().ok()?;
        let kind = match (self.is_time(), line[0]) {
            (true, "/s") => return None,
            (true, _) => self.kind,
            (false, per) => self.kind + per,
        };
        Some(Unit { kind, size: self.size * parts, other: self.other.map(|o| o * parts), ..self })
    }

    /// The unit in which the figures of a column with this id are.
    pub(crate) fn of_id(id: &str) -> Unit {
        const UNITS: [&str; 9] = ["ns", "us", "ms", "mib", "kib", "bytes", "pct", "mops", "tps"];
        let parts: Vec<&str> = id.split('_').collect();
        let per = parts.windows(2).find(|w| w[0] == "per" && matches!(w[1], "s" | "tx")).map(|w| w[1]);
        let unit = match (UNITS.iter().find(|unit| parts.contains(unit)), per) {
            (Some(&"mops"), _) => "M/s".to_owned(),
            (Some(unit), Some(per)) => format!("{unit}/{per}"),
            (None, Some(per)) => format!("1/{per}"),
            (Some(unit), None) => (*unit).to_owned(),
            (None, None) => (if id.ends_with("_s") { "s" } else { "1" }).to_owned(),
        };
        Unit::parse(&unit).unwrap_or_default()
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

/// The id of a column, and that of a second one that means the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meaning {
    pub(crate) id: &'static str,
    pub(crate) second: Option<&'static str>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    /// Words in lower case, without the unit.
    pub(crate) words: Vec<String>,
    /// Unit, in brackets or among the words.
    pub(crate) unit: Option<Unit>,
    pub(crate) bracketed: bool,
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
                    header.bracketed = true;
                    words
                }
                None if is_remark || !inside.contains(|c: char| c.is_alphabetic() || c == '%') => "",
                None => inside,
            };
            plain += &format!(" {after} ");
        }
        let plain = plain.replace(" per ", "/").replace("_per_", "/").replace("%ile", "th");
        let split = |c: char| c.is_whitespace() || matches!(c, '_' | ',' | ':' | ';' | '-' | '–' | '=' | '|');
        plain
            .split(split)
            .for_each(|token| header.add(token.trim_matches(['*', '`', '.', '†', '‡', '¹', '²', '³', '"'])));
        // `95th pct`: a rank is no share.
        let is_rank = header.is_rank();
        header.unit = header.unit.filter(|u| u.kind != "share" || !is_rank);
        header
    }

    /// Adds the unit that a token is, or its words: `AverageLatency`, `WAL/tx`, `%usr`, `#N`, `99thPercentile`.
    fn add(&mut self, token: &str) {
        let among = |u: &Unit| u.kind.contains('/') && token != "ops";
        let among = |u: &Unit| among(u) || lines("among").any(|names| names.contains(&token.to_lowercase().as_str()));
        if let Some(unit) = Unit::parse(token).filter(among) {
            // What is counted is a word, too: `rows/s`, `qps`.
            let piece = unit.kind.split(['.', '/']).nth(1);
            let counted = match (token.split_once('/'), piece) {
                (Some((what, _)), Some(_)) if unit.kind.starts_with("count") => what,
                (None, Some(piece @ ("tx" | "row" | "query" | "io" | "neworder"))) if unit.kind.contains('.') => piece,
                (None, Some("min")) => "tx",
                (None, Some("logblock")) => "redo",
                _ => "",
            };
            let tpmc = if token.eq_ignore_ascii_case("tpmc") { token } else { "" };
            self.words.extend([counted, tpmc].iter().filter(|w| !w.is_empty()).map(|w| w.to_lowercase()));
            // `IOPS (k)` are thousands.
            let thousands = self.unit.take_if(|u| u.kind == "count" && u.size >= 1e3).map_or(1.0, |u| u.size);
            self.unit.get_or_insert(Unit { size: unit.size * thousands, ..unit });
        } else if token.starts_with('#') && token.len() == 2 {
            self.words.push(token.to_lowercase());
        } else if let Some(Ok(rank)) = token.strip_suffix("th").or(token.strip_suffix('%')).map(str::parse::<f64>) {
            // `95% latency` is the 95th percentile, and so is `95.00th`.
            self.words.push(format!("{rank}th"));
        } else {
            if token.contains('%') && token.len() > 1 {
                self.unit.get_or_insert(Unit::of_id("pct"));
            }
            let (mut spaced, mut before) = (String::new(), ' ');
            let mut chars = token.chars().peekable();
            while let Some(c) = chars.next() {
                let part = c.is_alphanumeric() || c == '.' && before.is_ascii_digit() || c == 'Δ';
                // `LogFile` is two words, `MySQL` is one.
                if c.is_uppercase() && before.is_lowercase() && chars.peek().is_some_and(|next| next.is_lowercase()) {
                    spaced.push(' ');
                }
                spaced.push(if part { c } else { ' ' });
                before = c;
            }
            self.words.extend(spaced.split_whitespace().map(str::to_lowercase));
        }
    }

    pub(crate) fn is_rank(&self) -> bool {
        self.words.iter().filter_map(|w| named("statistic", w)).any(|id| id.starts_with('p'))
    }

    pub(crate) fn has_unknown_words(&self) -> bool {
        self.words.iter().any(|w| named("word", w).or_else(|| named("statistic", w)).is_none())
    }

    /// The column that it means; `strict` if all words must be known.
    pub(crate) fn meaning(&self, strict: bool) -> Option<Meaning> {
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
        let id = |id: &&str| find_column(&id.replace('*', statistics.first().unwrap_or(&alternative)));
        Some(Meaning { id: id(ids.first()?)?, second: ids.get(1).and_then(id) })
    }
}

/// The ids of a rule, if the kind of a unit and these concepts are those of the rule, and the last alternative that is one of them.
fn fits(
    rule: &'static [&'static str],
    kind: Option<&str>,
    concepts: &[&str],
) -> Option<(&'static [&'static str], &'static str)> {
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
        matches!(*c, "rate" | "size" | "mean" | "time" | "bare" | "ranks")
            || parts.iter().any(|part| part.trim_end_matches('?').split('|').any(|p| p == *c))
    };
    let alternative = parts.iter().filter(|part| part.contains('|')).find_map(|part| held(part));
    let is_all = parts.iter().all(|part| part.ends_with('?') || held(part).is_some()) && concepts.iter().all(is_in);
    (kinds.iter().any(of_kind) && is_all).then_some((&rule[is + 1..], alternative.unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of rules that mean nothing: no column, no concept and no kind of a unit.
    #[test]
    fn no_word_of_a_rule_is_misspelt() {
        let free = ["-", "p", "end", "bare", "ranks", "|", "="];
        let is_kind =
            |word: &str| lines("unit").any(|line| line[0] == word || Some(line[0]) == word.split(['/', '*']).next());
        let is_concept = |word: &str| lines("word").any(|line| line[0] == word) || free.contains(&word);
        let is_id = |word: &str| word.contains('*') || find_column(word).is_some();
        let words = lines("rule").flatten().flat_map(|word| word.trim_matches(['?', '-']).split('|'));
        let unknown = words.filter(|w| !w.is_empty() && !is_concept(w) && !is_kind(w) && !is_id(w));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
