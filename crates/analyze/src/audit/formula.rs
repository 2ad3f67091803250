//! Formulas of laws, as they are printed: `tps * redo_kib_per_tx / 1024 = redo_mib_per_s`.
//!
//! Words are ids of columns and numbers; one in capitals is what the law finds out. `?` stands behind what may be
//! missing, `??` behind what another term may hold as well, `~` before a factor that may be, and `!` behind the column that a finding
//! names; without it, that is the last one. A formula is not checked where the column behind `unless` is known. `tps` is either
//! throughput, `time_ms` either mean time, `jobs` what the jobs were found to be.

use super::context::Context;
use super::interval::Interval;
use super::sheet::Column;

/// A product of columns, as places in the sheet, and a number.
#[derive(Debug, Clone)]
struct Term {
    text: String,
    factor: f64,
    top: Vec<usize>,
    bottom: Vec<usize>,
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

/// Whether a word of a formula stands for a number that its law finds out.
pub(super) fn is_unknown(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// The formula with the columns that the table has, as pairs of sides; none if some are missing.
pub(crate) fn compile(text: &str, context: &Context<'_>) -> Option<Vec<Pair>> {
    let (text, unless) = text.split_once(" unless ").unwrap_or((text, ""));
    let all = |c: &Column| (0..context.rows()).all(|row| c.value(row).is_some());
    if context.sheet.column(unless).is_some_and(all) {
        return None;
    }
    let sign = if text.contains(" <= ") { " <= " } else { " = " };
    let mut sides: Vec<Vec<Term>> = Vec::new();
    for side in text.split(sign) {
        let mut terms = Vec::new();
        for term in side.split(" + ") {
            match Term::compile(term, context) {
                None if !term.ends_with('?') => return None,
                made => terms.extend(made),
            }
        }
        sides.extend((!terms.is_empty()).then_some(terms));
    }
    (sides.len() > 1).then(|| sides.windows(2).map(|pair| Pair::new(&pair[0], &pair[1], sign)).collect())
}

impl Term {
    fn compile(text: &str, context: &Context<'_>) -> Option<Term> {
        let mut term = Term { text: text.to_owned(), factor: 1.0, top: Vec::new(), bottom: Vec::new(), named: None };
        let mut above = true;
        for word in text.split(' ') {
            let name = word.trim_matches(['!', '~', '?']);
            match (word, name.parse::<f64>(), context.resolve(name)) {
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
}

impl Pair {
    fn new(left: &[Term], right: &[Term], sign: &str) -> Pair {
        let terms = || left.iter().chain(right);
        let named = terms().filter_map(|t| t.named).next_back();
        let mut columns: Vec<usize> = Vec::new();
        for column in terms().flat_map(|t| t.top.iter().chain(&t.bottom)) {
            if Some(*column) != named && !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns.extend(named);
        let text = Term::sum(left) + sign + &Term::sum(right);
        Pair { left: left.to_vec(), right: right.to_vec(), equal: sign == " = ", columns, text }
    }

    /// The left side as people write it.
    pub(crate) fn left_text(&self) -> String {
        Term::sum(&self.left)
    }

    fn sides(&self, figure: impl Fn(usize) -> Option<Interval>) -> Option<(Interval, Interval)> {
        let product = |all: &[usize]| all.iter().try_fold(Interval::exact(1.0), |p, c| Some(p.times(figure(*c)?)));
        let value = |term: &Term| {
            let top = product(&term.top)?.scaled(term.factor);
            // What another term may hold already may be nothing.
            let top = if term.text.ends_with("??") { Interval { low: 0.0, at: 0.0, ..top } } else { top };
            Some(if term.bottom.is_empty() { top } else { top.over(product(&term.bottom)?) })
        };
        let sum = |all: &[Term]| all.iter().try_fold(Interval::exact(0.0), |sum, term| Some(sum.plus(value(term)?)));
        Some((sum(&self.left)?, sum(&self.right)?))
    }

    /// Both sides in a row; `cut` if digits were cut off rather than rounded.
    pub(crate) fn values(&self, row: usize, context: &Context<'_>, cut: bool) -> Option<(Interval, Interval)> {
        self.sides(|c| context.sheet.columns[c].interval(row, cut))
    }

    /// The named figure of the left side in a row, and the rest of its product.
    pub(crate) fn named_and_rest(&self, row: usize, context: &Context<'_>) -> Option<(Interval, Interval)> {
        let (named, figure) = (*self.columns.last()?, |c: usize| context.sheet.columns[c].interval(row, false));
        let (rest, _) = self.sides(|c| if c == named { Some(Interval::exact(1.0)) } else { figure(c) })?;
        Some((figure(named)?, rest))
    }

    /// What `column` is in a row if the left side is `times` the right one, and `more`.
    pub(crate) fn solve(
        &self,
        column: usize,
        row: usize,
        context: &Context<'_>,
        (times, more): (f64, f64),
    ) -> Option<f64> {
        let off = |x: f64| {
            let figure = |c: usize| if c == column { Some(x) } else { context.sheet.columns[c].value(row) };
            let (left, right) = self.sides(|c| figure(c).map(Interval::exact))?;
            Some(left.at - right.at * times - more)
        };
        let (at_0, at_1) = (off(0.0)?, off(1.0)?);
        Some(at_0 / (at_0 - at_1)).filter(|x| x.is_finite() && *x >= 0.0)
    }
}
