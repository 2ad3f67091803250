//! The laws, which `laws.txt` has as data: docs/audit.md and `loadline audit --laws` are drawn from it. `formula.rs` reads formulas.

use std::sync::LazyLock;

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
    /// Sets of columns that a law with a function of its own needs; an empty one is any column.
    pub(crate) needs: Vec<&'static str>,
}

/// All laws, in the order of the docs.
pub static LAWS: LazyLock<Vec<Law>> = LazyLock::new(|| {
    let mut all: Vec<Law> = Vec::new();
    for line in include_str!("laws.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").collect();
        match (parts.as_slice(), all.last_mut()) {
            (&[id, name, grade, slack, meaning], _) => {
                let (grade, slack) = (Grade::parse(grade), slack.parse().unwrap_or(0.0));
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

impl Grade {
    fn parse(text: &str) -> Grade {
        match text {
            "id" => Grade::Error(How::Id),
            "unit" => Grade::Error(How::Unit),
            "words" => Grade::Error(How::Words),
            "parts" => Grade::Parts,
            "waits" => Grade::Waits,
            "agreed" => Grade::Agreed,
            "info" => Grade::Info,
            _ => Grade::Warning,
        }
    }
}

/// The law with this id.
pub(crate) fn law(id: &str) -> &'static Law {
    LAWS.iter().find(|law| law.id == id).unwrap_or(&LAWS[0])
}

impl Law {
    /// Sets of columns: with any of them the law can be checked.
    pub fn sets(&self) -> impl Iterator<Item = Vec<&'static str>> + use<> {
        let needed = |w: &&str| {
            w.len() > 1 && *w != "<=" && !w.ends_with('?') && !w.starts_with('~') && w.parse::<f64>().is_err()
        };
        let columns =
            move |text: &'static str| text.split(' ').filter(needed).map(|w| w.trim_end_matches('!')).collect();
        let needs = if self.needs.is_empty() { self.formulas.clone() } else { self.needs.clone() };
        needs.into_iter().map(columns).filter(|set: &Vec<_>| !set.is_empty())
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
