//! The laws, which `laws.txt` has as data: docs/audit.md and `loadline audit --laws` are drawn from it. `formula.rs` reads formulas.

use std::sync::LazyLock;

use super::finding::Severity;
use super::formula::is_unknown;
use super::sheet::How;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing: a row that breaks it is wrong, if the other rows agree, or the columns are known surely enough.
    Plain,
    /// More than the jobs are impossible; fewer break another law.
    Jobs,
    /// More than the whole is impossible; with less, a part may be not printed.
    Parts,
    /// One of its formulas is enough.
    Waits,
    /// It holds where most rows agree.
    Agreed,
}

/// A law that the figures of a test obey.
#[derive(Debug)]
#[non_exhaustive]
pub struct Law {
    /// Stable id, in the column `law` of findings.
    pub id: &'static str,
    /// Name.
    pub name: &'static str,
    /// What holds, in ids of columns.
    pub formulas: Vec<&'static str>,
    /// What it likely means if it is broken.
    pub meaning: &'static str,
    /// What a row that breaks it is, at worst.
    pub severity: Severity,
    /// How surely columns must be known for a row to be wrong, whatever the others are.
    pub(crate) sure: How,
    pub(crate) kind: Kind,
    /// Relative deviation that has known causes.
    pub(crate) slack: f64,
    /// Columns that it needs, where its formulas do not say it.
    needs: Vec<&'static str>,
    /// What a word in its formulas may be.
    pub(crate) values: Vec<&'static str>,
}

/// All laws, in the order of the docs.
pub static LAWS: LazyLock<Vec<Law>> = LazyLock::new(|| {
    let mut all: Vec<Law> = Vec::new();
    for line in include_str!("laws.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").collect();
        match (parts.as_slice(), all.last_mut()) {
            (&[id, name, grade, slack, meaning], _) => {
                let has = |word: &str| grade.split(' ').any(|w| w == word);
                let is = |severity: &Severity| has(severity.name());
                let severity = [Severity::Error, Severity::Info].into_iter().find(is).unwrap_or(Severity::Warning);
                let (formulas, needs, values) = Default::default();
                let sure = [(How::Unit, "unit"), (How::Words, "words")].into_iter().find(|(_, word)| has(word));
                let kinds =
                    [(Kind::Jobs, "jobs"), (Kind::Parts, "parts"), (Kind::Waits, "waits"), (Kind::Agreed, "agreed")];
                let kind = kinds.into_iter().find(|(_, word)| has(word)).map_or(Kind::Plain, |(kind, _)| kind);
                let (sure, slack) = (sure.map_or(How::Id, |(how, _)| how), slack.parse().unwrap_or(0.0));
                all.push(Law { id, name, formulas, meaning, severity, sure, kind, slack, needs, values });
            }
            (_, Some(law)) => match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
                ("needs", columns) => law.needs.push(columns),
                ("with", values) => law.values = values.split(' ').collect(),
                ("says", text) => law.formulas.push(text),
                _ => law.formulas.push(line.trim()),
            },
            _ => {}
        }
    }
    all
});

pub(crate) fn law(id: &str) -> &'static Law {
    LAWS.iter().find(|law| law.id == id).unwrap_or(&LAWS[0])
}

impl Law {
    /// Sets of columns, with any of which it can be checked: how many of them are enough, and their ids.
    pub fn needed(&self) -> impl Iterator<Item = (usize, Vec<&'static str>)> {
        let is_id = |w: &&str| w.len() > 1 && !w.starts_with(['<', '~']) && w.parse::<f64>().is_err() && !is_unknown(w);
        let texts = if self.needs.is_empty() { &self.formulas } else { &self.needs };
        texts.iter().map(move |text| {
            let plainest = text.rsplit(" or ").next().unwrap_or(text);
            let words = plainest.split(' ').take_while(|word| *word != "unless").filter(is_id);
            let (optional, of): (Vec<&str>, Vec<&str>) = words.partition(|w| w.ends_with('?'));
            // Of a chain whose columns may all be missing, two are needed.
            let (least, of) = if of.is_empty() { (optional.len().min(2), optional) } else { (of.len(), of) };
            (least, of.iter().map(|w| w.trim_end_matches(['!', '?'])).collect())
        })
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.formulas.iter().chain(&self.needs);
        texts.flat_map(|text| text.split(' ')).map(|word| word.trim_matches(['?', '!', '~']))
    }
}
