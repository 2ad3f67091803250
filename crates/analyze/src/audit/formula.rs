//! Formulas of laws, as they are printed: `tps * redo_kib_per_tx / 1024 = redo_mib_per_s`.
//!
//! Words are ids of columns and numbers. `?` stands behind what may be missing, `??` behind what another term may hold as well, `~` before a factor that may be, and `!` behind the
//! column that a finding names; without it, that is the last one. `tps` is either throughput, `time_ms` either mean time, `jobs` what
//! the jobs were found to be.

use super::context::Context;
use super::interval::Interval;

/// A product of columns, as places in the sheet, and a number.
#[derive(Debug)]
struct Term {
    factor: f64,
    /// Whether it may be in another term already.
    contained: bool,
    top: Vec<usize>,
    bottom: Vec<usize>,
}

/// Sums that are equal, or that rise, with the columns of one table.
#[derive(Debug)]
pub(crate) struct Formula {
    sides: Vec<Vec<Term>>,
    pub(crate) equal: bool,
    named: Option<usize>,
}

impl Formula {
    /// The formula with the columns that the table has; `None` if some are missing.
    pub(crate) fn compile(text: &'static str, context: &Context<'_>) -> Option<Formula> {
        let equal = !text.contains(" <= ");
        let mut formula = Formula { sides: Vec::new(), equal, named: None };
        for side in text.split(if equal { " = " } else { " <= " }) {
            let mut terms = Vec::new();
            for term in side.split(" + ") {
                match formula.term(term.trim_end_matches('?'), context) {
                    Some(made) => terms.push(Term { contained: term.ends_with("??"), ..made }),
                    None if term.ends_with('?') => {}
                    None => return None,
                }
            }
            formula.sides.extend((!terms.is_empty()).then_some(terms));
        }
        (formula.sides.len() > 1).then_some(formula)
    }

    fn term(&mut self, text: &'static str, context: &Context<'_>) -> Option<Term> {
        let (mut term, mut above) = (Term { factor: 1.0, contained: false, top: Vec::new(), bottom: Vec::new() }, true);
        for word in text.split(' ') {
            let name = word.trim_matches(['!', '~']);
            match (word, name.parse::<f64>(), context.resolve(name)) {
                ("*" | "/", ..) => above = word == "*",
                (_, Ok(number), _) => term.factor *= if above { number } else { 1.0 / number },
                (_, _, Some((columns, factor))) => {
                    term.factor *= factor;
                    if word.ends_with('!') {
                        self.named = columns.first().copied();
                    }
                    if above { term.top.extend(columns) } else { term.bottom.extend(columns) }
                }
                _ if word.starts_with('~') => {}
                _ => return None,
            }
        }
        Some(term)
    }

    /// Pairs of sides that are next to each other.
    pub(crate) fn pairs(&self) -> std::ops::Range<usize> {
        0..self.sides.len() - 1
    }

    /// Both sides of a pair in a row; `cut` if digits were cut off rather than rounded.
    pub(crate) fn values(
        &self,
        pair: usize,
        row: usize,
        context: &Context<'_>,
        cut: bool,
    ) -> Option<(Interval, Interval)> {
        let figure = |index: &usize| context.sheet.columns.get(*index)?.interval(row, cut);
        let product = |all: &[usize]| all.iter().try_fold(Interval::exact(1.0), |p, c| Some(p.times(figure(c)?)));
        let value = |term: &Term| {
            let top = product(&term.top)?.scaled(term.factor);
            let top = if term.contained { Interval { low: 0.0, at: 0.0, ..top } } else { top };
            if term.bottom.is_empty() { Some(top) } else { Some(top.over(product(&term.bottom)?)) }
        };
        let side = |at: usize| {
            let mut terms = self.sides.get(at)?.iter();
            let first = value(terms.next()?)?;
            terms.try_fold(first, |sum, term| Some(sum.plus(value(term)?)))
        };
        Some((side(pair)?, side(pair + 1)?))
    }

    /// Columns of a pair, as places in the sheet; the one that a finding names is the last.
    pub(crate) fn columns(&self, pair: usize) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::new();
        for column in self.sides[pair..=pair + 1].iter().flatten().flat_map(|t| t.top.iter().chain(&t.bottom)) {
            if !all.contains(column) {
                all.push(*column);
            }
        }
        if let Some(named) = self.named.filter(|named| all.contains(named)) {
            all.retain(|c| *c != named);
            all.push(named);
        }
        all
    }

    /// What `column` is in a row if both sides of a pair are equal.
    pub(crate) fn solve(&self, pair: usize, column: usize, row: usize, context: &Context<'_>) -> Option<f64> {
        let with = |x: f64, terms: &[Term]| {
            let value = |c: &usize| if *c == column { Some(x) } else { context.sheet.columns.get(*c)?.value(row) };
            let product = |all: &[usize]| all.iter().try_fold(1.0, |p, c| Some(p * value(c)?));
            let mut terms = terms.iter().filter(|t| !t.contained);
            terms.try_fold(0.0, |sum, t| Some(sum + t.factor * product(&t.top)? / product(&t.bottom)?))
        };
        let off = |x: f64| Some(with(x, self.sides.get(pair)?)? - with(x, self.sides.get(pair + 1)?)?);
        let (at_0, at_1) = (off(0.0)?, off(1.0)?);
        Some(at_0 / (at_0 - at_1)).filter(|x| x.is_finite() && *x >= 0.0)
    }
}
