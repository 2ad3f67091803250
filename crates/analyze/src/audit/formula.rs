//! Formulas of laws, as they are printed: `tps * redo_kib_per_tx / 1024 = redo_mib_per_s`.
//!
//! Words are ids of columns and numbers; one in capitals is what the law finds out. `?` stands behind what may be
//! missing, `??` behind what another term may hold as well, `~` before a factor that may be, and `!` behind the column that a finding
//! names; without it, that is the last one. A formula is not checked where the column behind `unless` is known. `tps` is either
//! throughput, `time_ms` either mean time, `jobs` what the jobs were found to be.

use super::interval::Interval;
use super::law::is_unknown;
use super::sheet::{Column, Sheet};

/// A product of columns, as places in the sheet, and a number.
#[derive(Debug, Clone)]
struct Term {
    text: String,
    factor: f64,
    top: Vec<usize>,
    bottom: Vec<usize>,
    /// The column that a finding names.
    named: Option<usize>,
}

/// Two sums that are equal, or of which the left is the smaller, with the columns of one table.
#[derive(Debug)]
pub(crate) struct Pair {
    left: Vec<Term>,
    right: Vec<Term>,
    pub(crate) equal: bool,
    /// Its columns, as places in the sheet; the one that a finding names is the last.
    pub(crate) columns: Vec<usize>,
    /// The formula as people write it; of a chain, this pair.
    pub(crate) text: String,
}

/// The formula with the columns that the table has, as pairs of sides; none if some are missing.
pub(crate) fn compile(text: &str, sheet: &Sheet<'_>) -> Option<Vec<Pair>> {
    let (text, unless) = text.split_once(" unless ").unwrap_or((text, ""));
    let all = |c: &Column| (0..sheet.rows()).all(|row| c.value(row).is_some());
    if sheet.column(unless).is_some_and(all) {
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
    (sides.len() > 1).then(|| sides.windows(2).map(|pair| Pair::new(&pair[0], &pair[1], sign)).collect())
}

impl Term {
    fn compile(text: &str, sheet: &Sheet<'_>) -> Option<Term> {
        let mut term = Term { text: text.to_owned(), factor: 1.0, top: Vec::new(), bottom: Vec::new(), named: None };
        let mut above = true;
        for word in text.split(' ') {
            let name = word.trim_matches(['!', '~', '?']);
            match (word, name.parse::<f64>(), sheet.resolve(name)) {
                ("*" | "/", ..) => above = word == "*",
                (_, Ok(number), _) => term.factor *= if above { number } else { 1.0 / number },
                (_, _, Some((columns, factor))) => {
                    term.factor *= factor;
                    if word.ends_with('!') {
                        term.named = columns.first().copied();
                    }
                    if above { term.top.extend(columns) } else { term.bottom.extend(columns) }
                }
                _ if word.starts_with('~') || is_unknown(word) => {}
                _ => return None,
            }
        }
        Some(term)
    }

    /// A sum as people write it.
    fn sum(terms: &[Term]) -> String {
        terms.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(" + ").replace(['?', '!', '~'], "")
    }

    /// The term, with `figure` of its columns.
    fn value(&self, figure: impl Fn(usize) -> Option<Interval>) -> Option<Interval> {
        let product = |all: &[usize]| all.iter().try_fold(Interval::exact(1.0), |p, c| Some(p.times(figure(*c)?)));
        let top = product(&self.top)?.scaled(self.factor);
        // It may be in another term already.
        let top = if self.text.ends_with("??") { Interval { low: 0.0, at: 0.0, ..top } } else { top };
        if self.bottom.is_empty() { Some(top) } else { Some(top.over(product(&self.bottom)?)) }
    }
}

impl Pair {
    fn new(left: &[Term], right: &[Term], sign: &str) -> Pair {
        let terms = || left.iter().chain(right);
        let named = terms().filter_map(|t| t.named).next_back();
        let mut columns: Vec<usize> = Vec::new();
        for column in terms().flat_map(|t| t.top.iter().chain(&t.bottom)).filter(|c| Some(**c) != named).chain(&named) {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        let text = Term::sum(left) + sign + &Term::sum(right);
        Pair { left: left.to_vec(), right: right.to_vec(), equal: sign == " = ", columns, text }
    }

    /// Both sides in a row; `cut` if digits were cut off rather than rounded.
    pub(crate) fn values(&self, row: usize, sheet: &Sheet<'_>, cut: bool) -> Option<(Interval, Interval)> {
        self.sides(|c| sheet.columns[c].interval(row, cut))
    }

    /// Both sides in a row if the figure of `column` is `x`.
    pub(crate) fn values_with(
        &self,
        (column, x): (usize, f64),
        row: usize,
        sheet: &Sheet<'_>,
    ) -> Option<(Interval, Interval)> {
        self.sides(|c| if c == column { Some(Interval::exact(x)) } else { sheet.columns[c].interval(row, false) })
    }

    fn sides(&self, figure: impl Fn(usize) -> Option<Interval>) -> Option<(Interval, Interval)> {
        let add = |sum: Interval, term: &Term| Some(sum.plus(term.value(&figure)?));
        let side = |terms: &[Term]| terms.iter().try_fold(Interval::exact(0.0), add);
        Some((side(&self.left)?, side(&self.right)?))
    }

    /// What `column` is in a row if the left side is `times` the right one, and `more`.
    pub(crate) fn solve(&self, column: usize, row: usize, sheet: &Sheet<'_>, (times, more): (f64, f64)) -> Option<f64> {
        let off =
            |x: f64| self.values_with((column, x), row, sheet).map(|(left, right)| left.at - right.at * times - more);
        let (at_0, at_1) = (off(0.0)?, off(1.0)?);
        Some(at_0 / (at_0 - at_1)).filter(|x| x.is_finite() && *x >= 0.0)
    }
}
