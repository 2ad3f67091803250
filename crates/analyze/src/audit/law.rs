//! The laws, which `laws.txt` has as data: docs/audit.md and `loadline audit --laws` are drawn from it. `formula.rs` reads formulas.

use std::sync::LazyLock;

use super::formula::is_unknown;
use super::sheet::How;

/// What a row that breaks a law is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// An error, if the other rows agree, or the columns are known so surely.
    Error(How),
    /// An error if the parts exceed the whole, or if the other rows agree: otherwise a part is not printed.
    Parts,
    /// A warning: something need be assumed.
    Warning,
    /// A warning, unless commits of the workload do not wait for the log.
    Waits,
    /// A warning where most rows agree, and nothing otherwise.
    Agreed,
    Info,
}

/// Grades by their words in `laws.txt`.
pub(crate) const GRADES: [(&str, Grade); 8] = [
    ("id", Grade::Error(How::Id)),
    ("unit", Grade::Error(How::Unit)),
    ("words", Grade::Error(How::Words)),
    ("parts", Grade::Parts),
    ("warning", Grade::Warning),
    ("waits", Grade::Waits),
    ("agreed", Grade::Agreed),
    ("info", Grade::Info),
];

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
}

/// Columns with which a law can be checked.
#[derive(Debug)]
pub struct Needed {
    /// Ids, in the order of the formula.
    pub of: Vec<&'static str>,
    /// How many of them are enough.
    pub least: usize,
}

/// All laws, in the order of the docs.
pub static LAWS: LazyLock<Vec<Law>> = LazyLock::new(|| {
    let mut all: Vec<Law> = Vec::new();
    for line in include_str!("laws.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").collect();
        match (parts.as_slice(), all.last_mut()) {
            (&[id, name, grade, slack, meaning], _) => {
                let grade = GRADES.iter().find(|(word, _)| *word == grade).map_or(Grade::Warning, |(_, grade)| *grade);
                let slack = slack.parse().unwrap_or(0.0);
                all.push(Law { id, name, formulas: Vec::new(), meaning, grade, slack, needs: Vec::new() });
            }
            (_, Some(law)) => match line.trim().strip_prefix("needs") {
                Some(columns) => law.needs.push(columns.trim()),
                None => law.formulas.push(line.trim()),
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

impl Needed {
    /// What a formula needs: all columns that may not be missing, or two of a chain whose columns may.
    fn of_formula(text: &'static str) -> Needed {
        let text = text.split(" unless ").next().unwrap_or(text);
        let is_id = |w: &&str| w.len() > 1 && *w != "<=" && !w.starts_with('~') && w.parse::<f64>().is_err();
        let ids = text.split_whitespace().filter(|w| is_id(w) && !is_unknown(w));
        let (optional, of): (Vec<&str>, Vec<&str>) = ids.partition(|w| w.ends_with('?'));
        let of: Vec<&str> = of.iter().map(|w| w.trim_end_matches('!')).collect();
        if of.is_empty() && !optional.is_empty() {
            return Needed { of: optional.iter().map(|w| w.trim_end_matches('?')).collect(), least: 2 };
        }
        Needed { least: of.len(), of }
    }
}

impl Law {
    /// Columns: with any of these sets, the law can be checked.
    pub fn needed(&self) -> impl Iterator<Item = Needed> {
        let texts = if self.needs.is_empty() { &self.formulas } else { &self.needs };
        texts.iter().map(|text| Needed::of_formula(text))
    }

    /// Whether its formulas are prose, because it says apart which columns it needs.
    #[cfg(test)]
    pub(crate) fn has_needs(&self) -> bool {
        !self.needs.is_empty()
    }

    /// All ids of columns in it.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &'static str> {
        let texts = self.formulas.iter().chain(&self.needs);
        texts.flat_map(|text| text.split(' ')).map(|word| word.trim_matches(['?', '!', '~']))
    }

    /// What a row that breaks it is, at worst.
    #[must_use]
    pub fn worst(&self) -> &'static str {
        match self.grade {
            Grade::Error(_) | Grade::Parts => "error",
            Grade::Info => "info",
            _ => "warning",
        }
    }
}
