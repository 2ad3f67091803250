//! The laws, which `laws.toml` has as data: `loadline audit --laws` and the page of the book are drawn from it. Their formulas are compiled with
//! the columns of a table: `tps * redo_kib_per_tx / 1024 = redo_mib_per_s`.
//!
//! Words of a formula are ids of columns and numbers; one in capitals is what the law finds out. `?` stands behind what may be
//! missing, `??` behind what another term may hold as well, `~` before a factor that may be, and `!` behind the column that a finding
//! names; without it, that is the last one. A formula is not checked where the column behind `unless` is known. `tps` is either
//! throughput, `time_ms` either mean time, `jobs` what the jobs were found to be.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::finding::Severity;
use super::number::Interval;
use super::sheet::{Column, How, Sheet};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A row that breaks it is wrong, if the other rows agree, or the columns are known surely enough.
    #[default]
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Stable id, in the column `law` of findings.
    pub id: String,
    pub name: String,
    pub formulas: Vec<String>,
    /// Likely meaning of a breach.
    pub meaning: String,
    pub severity: Severity,
    /// How surely columns must be known for a row to be wrong, whatever the others are.
    #[serde(default)]
    pub(crate) sure: How,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// Relative deviation that has known causes.
    #[serde(default)]
    pub(crate) slack: f64,
    /// Columns that it needs, where its formulas do not say it.
    #[serde(default)]
    needs: Vec<String>,
    /// A word of its formulas, and what it may be.
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

pub static LAWS: LazyLock<Vec<Law>> = LazyLock::new(|| {
    let file = toml::from_str::<BTreeMap<String, Vec<Law>>>(include_str!("laws.toml"));
    file.unwrap_or_default().remove("law").unwrap_or_default()
});

pub(crate) fn law(id: &str) -> &'static Law {
    LAWS.iter().find(|law| law.id == id).unwrap_or(&LAWS[0])
}

impl Law {
    /// Sets of columns, with any of which it can be checked: how many of them are enough, and their ids.
    pub fn needed(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
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

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let texts = self.formulas.iter().chain(&self.needs);
        texts.flat_map(|text| text.split(' ')).map(|word| word.trim_matches(['?', '!', '~']))
    }
}

/// A product of columns, as places in the sheet, and a number.
#[derive(Clone)]
struct Term {
    text: String,
    factor: f64,
    /// Columns, and whether the product has them above its line.
    columns: Vec<(usize, bool)>,
    named: Option<usize>,
}

/// Two sums that are equal, or of which the left is the smaller, with the columns of one table.
pub(crate) struct Pair<'a> {
    pub(crate) sheet: &'a Sheet<'a>,
    left: Vec<Term>,
    right: Vec<Term>,
    pub(crate) equal: bool,
    /// Columns, as places in the sheet; the one that a finding names is the last.
    pub(crate) columns: Vec<usize>,
    /// The formula as people write it; of a chain, this pair.
    pub(crate) text: String,
}

/// Whether a word of a formula stands for a number that its law finds out.
pub(crate) fn is_unknown(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// The formula with the columns that the table has, as pairs of sides; none if some are missing.
pub(crate) fn compile<'a>(text: &str, sheet: &'a Sheet<'a>) -> Option<Vec<Pair<'a>>> {
    let (text, unless) = text.split_once(" unless ").unwrap_or((text, ""));
    let is_complete = |c: &Column| (0..sheet.table.rows()).all(|row| c.value(row).is_some());
    if sheet.column(unless).is_some_and(is_complete) {
        return None;
    }
    let sign = if text.contains(" <= ") { " <= " } else { " = " };
    let mut sides: Vec<Vec<Term>> = Vec::new();
    for side in text.split(sign) {
        let mut terms = Vec::new();
        for term in side.split(" + ") {
            match Term::compile(term, sheet) {
                None if !term.ends_with('?') => return None,
                made => terms.extend(made),
            }
        }
        sides.extend((!terms.is_empty()).then_some(terms));
    }
    (sides.len() > 1).then(|| sides.windows(2).map(|two| Pair::new(sheet, &two[0], sign, &two[1])).collect())
}

impl Term {
    fn compile(text: &str, sheet: &Sheet<'_>) -> Option<Term> {
        let mut term = Term { text: text.to_owned(), factor: 1.0, columns: Vec::new(), named: None };
        let mut above = true;
        for word in text.split(' ') {
            let name = word.trim_matches(['!', '~', '?']);
            match (word, name.parse::<f64>(), sheet.resolve(name)) {
                ("*" | "/", ..) => above = word == "*",
                (_, Ok(number), _) => term.factor *= if above { number } else { 1.0 / number },
                (_, _, Some((columns, factor))) => {
                    term.factor *= factor;
                    term.named = if word.ends_with('!') { columns.first().copied().or(term.named) } else { term.named };
                    term.columns.extend(columns.into_iter().map(|column| (column, above)));
                }
                _ if word.starts_with('~') || is_unknown(word) => {}
                _ => return None,
            }
        }
        Some(term)
    }
}

impl<'a> Pair<'a> {
    fn new(sheet: &'a Sheet<'a>, left: &[Term], sign: &str, right: &[Term]) -> Pair<'a> {
        let terms = || left.iter().chain(right);
        let named = terms().filter_map(|t| t.named).next_back();
        let mut columns: Vec<usize> = Vec::new();
        for (column, _) in terms().flat_map(|t| &t.columns) {
            if Some(*column) != named && !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns.extend(named);
        let text = [left, right].map(|side| side.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(" + "));
        let text = text.join(sign).replace(['?', '!', '~'], "");
        Pair { sheet, left: left.to_vec(), right: right.to_vec(), equal: sign == " = ", columns, text }
    }

    /// Whether all columns are known at least as surely as by `how`.
    pub(crate) fn is_sure(&self, how: How) -> bool {
        self.columns.iter().all(|c| self.sheet.columns[*c].how <= how)
    }

    fn sides(&self, figure: impl Fn(usize) -> Option<Interval>) -> Option<(Interval, Interval)> {
        let value = |term: &Term| {
            let mut product = Interval::exact(term.factor);
            for (column, above) in &term.columns {
                product = if *above { product.times(figure(*column)?) } else { product.over(figure(*column)?) };
            }
            // What another term may hold already may be nothing.
            Some(if term.text.ends_with("??") { Interval { low: 0.0, at: 0.0, ..product } } else { product })
        };
        let sum = |all: &[Term]| all.iter().try_fold(Interval::exact(0.0), |sum, t| Some(sum.plus(1.0, value(t)?)));
        Some((sum(&self.left)?, sum(&self.right)?))
    }

    /// Both sides in a row; `cut` if digits were cut off rather than rounded.
    pub(crate) fn values(&self, row: usize, cut: bool) -> Option<(Interval, Interval)> {
        self.sides(|c| self.sheet.columns[c].interval(row, cut))
    }

    /// The named figure of the left side in a row, and the rest of its product.
    pub(crate) fn named_and_rest(&self, row: usize) -> Option<(Interval, Interval)> {
        let (named, figure) = (*self.columns.last()?, |c: usize| self.sheet.columns[c].interval(row, false));
        let (rest, _) = self.sides(|c| if c == named { Some(Interval::exact(1.0)) } else { figure(c) })?;
        Some((figure(named)?, rest))
    }

    /// Value of `column` in a row if the left side is `times` the right one, and `more`.
    pub(crate) fn solve(&self, column: usize, row: usize, (times, more): (f64, f64)) -> Option<f64> {
        let off = |x: f64| {
            let figure = |c: usize| if c == column { Some(x) } else { self.sheet.columns[c].value(row) };
            let (left, right) = self.sides(|c| figure(c).map(Interval::exact))?;
            Some(left.at - right.at * times - more)
        };
        let (at_0, at_1) = (off(0.0)?, off(1.0)?);
        Some(at_0 / (at_0 - at_1)).filter(|x| x.is_finite() && *x >= 0.0)
    }
}
