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
    use crate::audit::law::{GRADES, LAWS};

    /// Words in files of data that mean nothing: no column, no concept and no kind of a unit.
    #[test]
    fn no_word_is_misspelt() {
        let mut unknown: Vec<&str> = Vec::new();
        let (laws, words) = (include_str!("laws.txt"), include_str!("words.txt"));
        for line in laws.lines().filter(|line| line.contains(" | ")) {
            let parts: Vec<&str> = line.split(" | ").collect();
            let is_known = |grade: &str| GRADES.iter().any(|(word, _)| *word == grade);
            let is_law = parts.len() == 5 && is_known(parts[2]) && parts[3].parse::<f64>().is_ok();
            unknown.extend((!is_law && !line.starts_with('#')).then_some(line));
        }
        let signs = ["*", "/", "+", "=", "<=", "or", "unless", "tps", "time_ms", ""];
        let is_known = |word: &&str| signs.contains(word) || find_column(word).is_some();
        let is_number = |word: &str| word.parse::<f64>().is_ok() || word.chars().all(|c| c.is_ascii_uppercase());
        let prose = |text: &&str| text.contains(" of ") || text.starts_with("two ") || text.ends_with(" figure");
        let formulas = LAWS.iter().flat_map(|law| &law.formulas).filter(|text| !prose(text));
        unknown.extend(
            formulas
                .flat_map(|text| text.split(' '))
                .map(|word| word.trim_matches(['?', '!', '~']))
                .filter(|word| !is_known(word) && !is_number(word)),
        );
        let piece = |kind: &'static str| kind.rsplit('.').next().unwrap_or(kind);
        let is_kind = |kind: &str| {
            ["*", "any", "size", "bandwidth"].contains(&kind) || WORDS.units.iter().any(|u| piece(u.kind) == kind)
        };
        for rule in &WORDS.rules {
            unknown.extend(rule.kinds.iter().filter(|kind| !is_kind(piece(kind))));
            let concepts = rule.concepts.iter().flat_map(|part| part.trim_end_matches('?').split('|'));
            unknown.extend(concepts.filter(|c| !WORDS.concepts.iter().any(|(concept, _)| concept == c)));
            unknown.extend(find_column(rule.id).is_none().then_some(rule.id));
        }
        let starts = ["unit ", "word ", "rule ", "column ", "#"];
        unknown.extend(words.lines().filter(|l| !l.is_empty() && !starts.iter().any(|start| l.starts_with(start))));
        assert_eq!(unknown, Vec::<&str>::new());
    }
}
