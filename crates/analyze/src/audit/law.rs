//! The laws, which `laws.txt` has as data: docs/audit.md and `loadline audit --laws` are drawn from it. `formula.rs` reads formulas.

use std::sync::LazyLock;

use super::formula::is_unknown;
use super::sheet::How;

/// What a row that breaks a law is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// An error, if the other rows agree, or the columns are known so surely.
    Error(How),
    /// An error if more than the jobs are under way, and a warning of another law if fewer are.
    Jobs,
    /// An error if the parts exceed the whole, or if the other rows agree: otherwise a part is not printed.
    Parts,
    /// A warning: something need be assumed.
    Warning,
    /// A warning; one of its formulas is enough.
    Waits,
    /// A warning where most rows agree, and nothing otherwise.
    Agreed,
    Info,
}

impl Grade {
    /// The grade of a word in `laws.txt`.
    fn named(word: &str) -> Grade {
        match word {
            "id" => Grade::Error(How::Id),
            "unit" => Grade::Error(How::Unit),
            "words" => Grade::Error(How::Words),
            "jobs" => Grade::Jobs,
            "parts" => Grade::Parts,
            "waits" => Grade::Waits,
            "agreed" => Grade::Agreed,
            "info" => Grade::Info,
            _ => Grade::Warning,
        }
    }
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
    pub(crate) grade: Grade,
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
                let (grade, slack) = (Grade::named(grade), slack.parse().unwrap_or(0.0));
                let (formulas, needs, values) = Default::default();
                all.push(Law { id, name, formulas, meaning, grade, slack, needs, values });
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

/// The law with this id.
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

    /// All ids of columns in it.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.formulas.iter().chain(&self.needs);
        texts.flat_map(|text| text.split(' ')).map(|word| word.trim_matches(['?', '!', '~']))
    }

    /// How surely columns must be known for a row to be wrong, whatever the others are.
    pub(crate) fn sure(&self) -> How {
        match self.grade {
            Grade::Error(how) => how,
            Grade::Waits => How::Words,
            _ => How::Id,
        }
    }

    /// What a row that breaks it is, at worst.
    #[must_use]
    pub fn worst(&self) -> &'static str {
        match self.grade {
            Grade::Error(_) | Grade::Jobs | Grade::Parts => "error",
            Grade::Info => "info",
            _ => "warning",
        }
    }
}
