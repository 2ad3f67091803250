//! Laws of the form a × b = c × d: rates, sizes, counts and times that are one figure said twice.

use super::{Check, Law};
use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading};
use crate::audit::judge::{Equation, SAMPLE, Side, Sides, judge, missed, most_meet};

/// `constant` × the product of `top` = the product of `bottom`.
pub(crate) struct Product {
    pub(crate) top: &'static [&'static str],
    pub(crate) bottom: &'static [&'static str],
    pub(crate) constant: f64,
    /// The column whose printed figure is compared.
    pub(crate) target: &'static str,
    pub(crate) above: Side,
    pub(crate) below: Side,
    /// Relative deviation that has known causes.
    pub(crate) slack: f64,
}

/// What figures that are counted over different times may differ by.
pub(crate) const WINDOWS: Side = Side::Unless("they can differ only if they were counted over different times");

/// Whole numbers of this column are exact, rather than rounded means, if most rows then agree.
const EXACT: &str = "rows_per_tx";

/// `constant` × the product of `top` = the product of `bottom`.
pub(crate) const fn of(
    top: &'static [&'static str],
    constant: f64,
    bottom: &'static [&'static str],
    target: &'static str,
    above: Side,
    below: Side,
    slack: f64,
) -> Check {
    Check::Product(Product { top, bottom, constant, target, above, below, slack })
}

impl Product {
    /// The quotient of both sides in a row.
    pub(crate) fn quotient(
        &self,
        context: &Context<'_>,
        row: usize,
        exact: Option<&'static str>,
        reading: Reading,
    ) -> Option<Interval> {
        let figure = |id: &'static str| match context.value(id, row) {
            Some(value) if Some(id) == exact && value.fract() == 0.0 => Some(Interval::exact(value)),
            _ => context.interval(id, row, reading),
        };
        let product =
            |ids: &[&'static str]| ids.iter().try_fold(Interval::exact(1.0), |all, id| Some(all.times(figure(id)?)));
        let (top, bottom) = (product(self.top)?, product(self.bottom)?);
        // Of nothing at all, both sides are 0.
        if top.low <= 0.0 && bottom.low <= 0.0 {
            let zero = |ids: &[&'static str]| ids.iter().any(|id| context.value(id, row) == Some(0.0));
            if zero(self.top) && zero(self.bottom) {
                return None;
            }
        }
        Some(top.scaled(self.constant).over(bottom))
    }

    /// The target as the other columns give it.
    fn recomputed(&self, context: &Context<'_>, row: usize) -> Option<f64> {
        let value = |ids: &[&'static str]| {
            let others = ids.iter().filter(|id| **id != self.target);
            others.copied().try_fold(1.0, |all, id| Some(all * context.value(id, row)?))
        };
        let (top, bottom) = (value(self.top)? * self.constant, value(self.bottom)?);
        let found = if self.top.contains(&self.target) { bottom / top } else { top / bottom };
        Some(found).filter(|v| v.is_finite())
    }

    pub(crate) fn check(&self, law: &Law, context: &Context<'_>, findings: &mut Findings) {
        let times = self.kilobyte(law, context, findings);
        let rows = |exact| {
            missed(context.rows(), 1.0, |row, reading| Some(self.quotient(context, row, exact, reading)?.scaled(times)))
        };
        let sharp = self.top.contains(&EXACT).then(|| rows(Some(EXACT)).filter(|all| most_meet(all, 1.0)));
        let all = sharp.flatten().or_else(|| rows(None)).unwrap_or_default();
        let columns: Vec<&'static str> = self.top.iter().chain(self.bottom).copied().collect();
        // The database counts its redo over an interval of its own, with other commits in it.
        let counted =
            context.has("commits_database") && columns.contains(&"tps") && columns.contains(&"redo_mib_per_s");
        let equation = Equation {
            law: law.id,
            columns: &columns,
            target: self.target,
            equal: 1.0,
            above: if counted { WINDOWS } else { self.above },
            below: if counted { WINDOWS } else { self.below },
            slack: self.slack,
            recompute: &|row, _| self.recomputed(context, row),
        };
        judge(&equation, &all, context, findings);
        self.fill(law, &columns, context, findings);
    }

    /// What the quotient is multiplied by if a header leaves open which kilobyte it means: that with which most rows meet.
    fn kilobyte(&self, law: &Law, context: &Context<'_>, findings: &mut Findings) -> f64 {
        let open = |ids: &[&'static str], up: bool| -> Vec<f64> {
            let columns = ids.iter().filter_map(|id| context.sheet.column(context.resolve(id)?));
            let other = columns.filter_map(|c| c.or.map(|or| or / c.factor));
            other.map(|times| if up { times } else { 1.0 / times }).collect()
        };
        let (top, bottom) = (open(self.top, true), open(self.bottom, false));
        let mut factors = vec![1.0];
        for times in top.iter().chain(&bottom) {
            factors.extend(factors.clone().iter().map(|f| f * times));
        }
        if factors.len() == 1 {
            return 1.0;
        }
        let sample = 0..context.rows().len().min(SAMPLE);
        let all: Vec<Sides> =
            sample.filter_map(|row| Sides::of(row, |reading| self.quotient(context, row, None, reading))).collect();
        let fits = |times: f64| all.iter().filter(|s| s.meets(1.0 / times)).count();
        let mut best = (fits(1.0), 1.0);
        for times in factors {
            if fits(times) > best.0 {
                best = (fits(times), times);
            }
        }
        if best.1 != 1.0 {
            let columns: Vec<&'static str> = self.top.iter().chain(self.bottom).copied().collect();
            let text = format!("{}: fits in {} of {} rows if KB and MB are binary", law.formula, best.0, all.len());
            findings.push(context.about_table("kilobyte", Severity::Info, &columns, text));
        }
        best.1
    }

    /// Says what a missing target must have been.
    fn fill(&self, law: &Law, columns: &[&'static str], context: &Context<'_>, findings: &mut Findings) {
        let missing = |row: &usize| context.value(self.target, *row).is_none();
        for row in context.rows().filter(missing) {
            if let Some(value) =
                self.recomputed(context, row).filter(|v| *v > 0.0 && findings.wants(law.id, Severity::Info))
            {
                let text = format!("{}: {} is not printed; it was {}", law.formula, self.target, shown(value, 4));
                findings.push(context.about_row(law.id, Severity::Info, row, columns, self.target, Some(value), text));
            }
        }
    }
}
