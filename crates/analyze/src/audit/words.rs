//! The vocabulary of `words.txt`: units, concepts of words, and rules that make a column of both.

use std::sync::LazyLock;

use loadline_model::column::{COLUMNS, column};
use loadline_model::format::Format;

/// A unit by its words: kind, size, and another size that it may have.
pub(crate) struct UnitWords {
    pub(crate) kind: &'static str,
    pub(crate) size: f64,
    pub(crate) other: Option<f64>,
    words: Vec<&'static str>,
}

/// A column by the kind of its unit and its concepts.
pub(crate) struct Rule {
    kinds: Vec<&'static str>,
    concepts: Vec<&'static str>,
    pub(crate) id: &'static str,
}

#[derive(Default)]
pub(crate) struct Words {
    units: Vec<UnitWords>,
    concepts: Vec<(&'static str, Vec<&'static str>)>,
    pub(crate) rules: Vec<Rule>,
    columns: Vec<&'static str>,
}

pub(crate) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut all = Words::default();
    for line in include_str!("words.txt").lines() {
        let (what, rest) = line.split_once(' ').unwrap_or(("", ""));
        let mut words = rest.split_whitespace();
        match what {
            "unit" => {
                let (kind, sizes) = (words.next().unwrap_or(""), words.next().unwrap_or("1"));
                let (size, other) = sizes.split_once(',').unwrap_or((sizes, ""));
                let (size, other) = (size.parse().unwrap_or(1.0), other.parse().ok());
                all.units.push(UnitWords { kind, size, other, words: words.collect() });
            }
            "word" => all.concepts.push((words.next().unwrap_or(""), words.collect())),
            "column" => all.columns.extend(words),
            "rule" => {
                let (kinds, pattern) = rest.split_once(" | ").unwrap_or((rest, ""));
                let (concepts, id) = pattern.rsplit_once("= ").unwrap_or(("", pattern));
                let [kinds, concepts] = [kinds, concepts].map(|text| text.split_whitespace().collect());
                all.rules.push(Rule { kinds, concepts, id });
            }
            _ => {}
        }
    }
    all
});

impl Words {
    /// The unit that a word is, if `of_kind` takes its kind.
    pub(crate) fn unit(&self, word: &str, of_kind: fn(&str) -> bool) -> Option<&UnitWords> {
        self.units.iter().find(|u| of_kind(u.kind) && u.words.contains(&word))
    }

    /// The concept of a word: `-` if it means nothing, `None` if nobody knows it.
    pub(crate) fn concept(&self, word: &str) -> Option<&'static str> {
        self.concepts.iter().find(|(_, words)| words.contains(&word)).map(|(concept, _)| *concept)
    }
}

impl Rule {
    /// Whether a unit of `kind` and these concepts are those of the rule; `rate` is in all.
    pub(crate) fn fits(&self, kind: &str, concepts: &[&str]) -> bool {
        let is = |k: &&str| k.strip_suffix('*').map_or(*k == kind, |start| kind.starts_with(start));
        let has = |part: &str, c: &str| part.trim_end_matches('?').split('|').any(|p| p == c);
        self.kinds.iter().any(is)
            && self.concepts.iter().all(|part| part.ends_with('?') || concepts.iter().any(|c| has(part, c)))
            && concepts.iter().all(|c| *c == "rate" || self.concepts.iter().any(|part| has(part, c)))
    }
}

/// All columns that audits know: ours, and those that others print.
pub(crate) fn known() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|c| c.id).chain(WORDS.columns.iter().copied())
}

/// The column with this id.
pub(crate) fn find_column(id: &str) -> Option<&'static str> {
    known().find(|k| *k == id)
}

/// Whether the cells of a column are text.
pub(crate) fn is_text(id: &str) -> bool {
    column(id).is_some_and(|c| matches!(c.format, Format::Text | Format::YesNo))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::law::GRADES;

    /// Words of a line of `laws.txt` that mean nothing.
    fn unknown_in_laws(line: &str) -> Vec<&str> {
        let parts: Vec<&str> = line.split(" | ").collect();
        if let [_, _, grade, slack, _] = parts.as_slice() {
            let is_known = GRADES.iter().any(|(word, _)| word == grade) && slack.parse::<f64>().is_ok();
            return if is_known { Vec::new() } else { vec![line] };
        }
        let is_number = |word: &str| word.parse::<f64>().is_ok() || word.chars().all(|c| c.is_ascii_uppercase());
        let signs = ["needs", "unless", "*", "/", "+", "=", "<=", "tps", "time_ms"];
        let is_known = |word: &&str| signs.contains(word) || is_number(word) || find_column(word).is_some();
        let words = line.split(' ').take_while(|word| *word != "says").map(|word| word.trim_matches(['?', '!', '~']));
        words.filter(|word| !is_known(word)).collect()
    }

    /// Words of a line of `words.txt` that mean nothing, or that no header can have.
    fn unknown_in_words(line: &str) -> Vec<&str> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (kinds, concepts) = rest.split_once(" | ").unwrap_or(("", ""));
        let piece = |kind: &str| kind.rsplit('.').next().unwrap_or(kind).to_owned();
        let made = ["*", "any", "size", "bandwidth"].map(str::to_owned);
        let is_kind =
            |kind: &&str| made.contains(&piece(kind)) || WORDS.units.iter().any(|u| piece(u.kind) == piece(kind));
        let concepts = concepts.split([' ', '|']).map(|c| c.trim_end_matches('?'));
        let is_known = |c: &&str| ["", "="].contains(c) || find_column(c).is_some();
        let is_concept = |c: &str| WORDS.concepts.iter().any(|(concept, _)| *concept == c);
        match what {
            "" | "unit" | "column" => Vec::new(),
            "word" => rest.split(' ').filter(|word| word.contains('_')).collect(),
            "rule" => {
                let kinds = kinds.split(' ').filter(|kind| !is_kind(kind));
                kinds.chain(concepts.filter(|c| !is_known(c) && !is_concept(c))).collect()
            }
            _ => vec![what],
        }
    }

    #[test]
    fn no_word_is_misspelt() {
        let (laws, words) = (include_str!("laws.txt"), include_str!("words.txt"));
        let files = [("laws.txt", laws, unknown_in_laws as fn(_) -> _), ("words.txt", words, unknown_in_words)];
        for (file, text, unknown) in files {
            for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
                assert_eq!(unknown(line), Vec::<&str>::new(), "{file}:{}", n + 1);
            }
        }
    }
}
