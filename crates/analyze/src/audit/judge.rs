//! Holds a formula against all rows of a table together. What one row alone cannot show, the others can: where they agree, a row
//! that does not is wrong, however small its deviation; where all are off by one factor, the columns mean something else.

use super::context::Context;
use super::finding::{Findings, Severity};
use super::formula::Formula;
use super::interval::{Interval, common};
use super::law::{Grade, Law};
use super::reason::{Reason, reason};
use super::sheet::{How, SAMPLE};

/// Share of the rows that must agree with each other to speak against another.
pub(crate) const MOST: f64 = 0.75;
/// Relative deviation that figures with all their digits have from one reading of a clock to the next.
const NOISE: f64 = 0.001;
/// How late counters are often read after the jobs' own count, and how late on a busy machine, s.
const LATE: f64 = 0.05;
const VERY_LATE: f64 = 0.5;

/// Checks all pairs of sides of a formula.
pub(crate) fn check(
    law: &'static Law,
    text: &'static str,
    formula: &Formula,
    context: &Context<'_>,
    findings: &mut Findings,
) {
    for pair in formula.pairs() {
        let held = Held { law, text, formula, pair, columns: formula.columns(pair), context };
        if formula.equal { held.equal(findings) } else { held.at_most(findings) }
    }
}

/// A pair of sides that is held against a table.
struct Held<'a> {
    law: &'static Law,
    text: &'static str,
    formula: &'a Formula,
    pair: usize,
    columns: Vec<usize>,
    context: &'a Context<'a>,
}

/// The left side as a multiple of the right one in a row.
struct Ratio {
    row: usize,
    rounded: Interval,
    cut: Interval,
}

/// Rows in the order of their precision, with how many of them meet.
pub(crate) struct Witnesses(Vec<(f64, usize)>);

impl Witnesses {
    /// From all rows, as their ratio and whether it meets.
    pub(crate) fn new(all: impl Iterator<Item = (Interval, bool)>) -> Witnesses {
        let mut rows: Vec<(f64, usize)> = all.map(|(i, meets)| ((i.high - i.low) / 2.0, usize::from(meets))).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        for at in 1..rows.len() {
            rows[at].1 += rows[at - 1].1;
        }
        Witnesses(rows)
    }

    /// Whether most of the rows whose digits would show a deviation as large as `deviation` have none.
    pub(crate) fn speak_against(&self, deviation: f64) -> bool {
        let precise = self.0.partition_point(|(half, _)| *half < deviation);
        let met = precise.checked_sub(1).map_or(0, |last| self.0[last].1);
        (met >= 3 && met as f64 >= MOST * precise as f64) || (met == 2 && self.0.len() == 3)
    }
}

/// The range of ratios.
pub(crate) fn range(all: impl Iterator<Item = f64>) -> (f64, f64) {
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), at| (l.min(at), h.max(at)))
}

impl Held<'_> {
    fn about_table(&self, findings: &mut Findings, severity: Severity, why: Reason) {
        findings.about_table(self.law.id, severity, self.context.ids(&self.columns), why);
    }

    /// The left side as a multiple of the right one, or for parts of a whole, 1 and their difference in percent.
    fn ratio(&self, row: usize, cut: bool) -> Option<Interval> {
        let (left, right) = self.formula.values(self.pair, row, self.context, cut)?;
        // Of nothing at all, both sides are 0.
        if left.at == 0.0 && right.at == 0.0 {
            return None;
        }
        let difference = || left.plus(right.scaled(-1.0)).scaled(0.01).plus(Interval::exact(1.0));
        Some(if self.law.grade == Grade::Parts { difference() } else { left.over(right) })
    }

    /// The factor that most rows have in common, if few have none.
    fn common_factor(&self, all: &[Ratio], off: usize) -> Option<(f64, usize)> {
        let intervals: Vec<Interval> = all.iter().take(SAMPLE).map(|r| r.rounded).collect();
        let (factor, count) = common(&intervals)?;
        let is_most = count as f64 >= MOST * intervals.len() as f64 && off * 2 >= all.len() && all.len() >= 4;
        let is_other = (factor - 1.0).abs() > NOISE.max(self.context.late(0, LATE));
        (is_most && is_other).then_some((factor, count))
    }

    fn equal(&self, findings: &mut Findings) {
        if (0..self.context.rows()).all(|row| self.ratio(row, false).is_none_or(|r| r.holds(1.0))) {
            return;
        }
        let of_row = |row| Some(Ratio { row, rounded: self.ratio(row, false)?, cut: self.ratio(row, true)? });
        let all: Vec<Ratio> = (0..self.context.rows()).filter_map(of_row).collect();
        let (rows, grade) = (all.len(), self.law.grade);
        let missed = || all.iter().filter(|r| !r.rounded.holds(1.0));
        let near = |r: &Ratio| grade == Grade::Agreed && (r.rounded.at - 1.0).abs() <= self.law.slack;
        if grade == Grade::Agreed && (rows < 3 || missed().filter(|r| !near(r)).count() * 4 > rows) {
            return;
        }
        // Rows that meet if digits were rounded, and not if they were cut off, show that they were rounded.
        let rounded = all.iter().any(|r| r.rounded.holds(1.0) && !r.cut.holds(1.0));
        let edge = |r: &Ratio| !rounded && !r.rounded.holds(1.0) && r.cut.holds(1.0);
        let (off, edges) = (missed().count(), all.iter().filter(|r| edge(r)).count());
        let cut = rows >= 4 && edges * 2 > rows;
        if cut {
            self.about_table(findings, Severity::Info, reason!(Cut, self.formula_text(), edges, rows));
        }
        let factor = self.common_factor(&all, off).filter(|_| !cut);
        if let Some((factor, count)) = factor {
            let why = reason!(Factor, self.formula_text(), count, rows, factor, self.law.meaning);
            self.about_table(findings, Severity::Warning, why);
        }
        // Of what only a header says, most rows know better.
        let by_header = rows > 2 && !self.context.is_sure(&self.columns, How::Id);
        if factor.is_none() && (by_header || !self.is_sure()) && !cut && rows > 1 && off * 2 > rows {
            let (low, high) = range(missed().map(|r| r.rounded.at));
            if low < 1.0 - NOISE || high > 1.0 + NOISE {
                let why = reason!(Apart, self.formula_text(), off, rows, low, high);
                self.about_table(findings, Severity::Warning, why);
            }
            return;
        }
        let at = factor.map_or(1.0, |(factor, _)| factor);
        let witnesses = Witnesses::new(all.iter().map(|r| (r.rounded, r.rounded.holds(at))));
        let holds = |r: &&Ratio| r.rounded.holds(at) || cut && edge(r) || near(r);
        for ratio in all.iter().filter(|r| !holds(r)) {
            let agree = witnesses.speak_against((ratio.rounded.at - at).abs());
            // Less than the whole is a part that is not printed.
            if agree || grade != Grade::Parts || ratio.rounded.at > at {
                self.report(ratio, at, agree, edge(ratio), findings);
            }
        }
    }

    /// Whether rows are judged one by one, even if most of them break the law.
    fn is_sure(&self) -> bool {
        let how = match self.law.grade {
            Grade::Error(how) => how,
            Grade::Waits => How::Words,
            Grade::Parts | Grade::Warning | Grade::Agreed | Grade::Info => How::Id,
        };
        self.context.is_sure(&self.columns, how)
    }

    /// The formula as people write it; of a chain, the pair.
    fn formula_text(&self) -> String {
        if self.text.matches("<=").count() > 1 {
            return self.context.ids(&self.columns).join(" <= ");
        }
        let there = |term: &&str| !term.ends_with('?') || self.context.sheet.has(term.trim_end_matches('?'));
        let terms: Vec<&str> = self.text.split(" + ").filter(there).collect();
        terms.join(" + ").replace(['?', '!', '~'], "")
    }

    /// The columns with the one that must be wrong last: that which is printed as 0, or else the named one.
    fn columns_of(&self, row: usize) -> Vec<usize> {
        let zero = |c: &usize| self.context.sheet.columns[*c].value(row) == Some(0.0);
        let (mut columns, zeros): (Vec<usize>, Vec<usize>) = self.columns.iter().partition(|c| !zero(c));
        columns.extend(&zeros);
        if zeros.len() == 1 { columns } else { self.columns.clone() }
    }

    fn broken(&self, agree: bool, edge: bool) -> Reason {
        let edge = if edge { "; it holds if digits were cut off" } else { "" };
        let more = if agree { format!("; the other rows agree{edge}") } else { edge.to_owned() };
        reason!(Broken, self.formula_text(), self.law.meaning, more)
    }

    fn report(&self, ratio: &Ratio, at: f64, agree: bool, edge: bool, findings: &mut Findings) {
        let (row, columns) = (ratio.row, self.columns_of(ratio.row));
        let recomputed = columns.last().and_then(|c| self.formula.solve(self.pair, *c, row, self.context));
        let deviation = (ratio.rounded.at / at - 1.0).abs();
        // A counter that is read at another moment than the jobs' own deviates as much, in one row as well as in all.
        let late = deviation < NOISE.max(self.context.late(row, LATE));
        if late && !agree {
            return;
        }
        let enough = deviation > self.law.slack.max(self.context.late(row, VERY_LATE));
        // The database counts its redo over an interval of its own, with other commits in it.
        let ids = self.context.ids(&self.columns);
        let of_redo = ids.contains(&"redo_mib_per_s");
        let own_interval = of_redo && self.context.sheet.has("commits_database");
        // Busy and idle leave room for waiting, unless that is a column.
        let waiting =
            ids.contains(&"cpu_idle_pct") && !self.context.sheet.has("cpu_iowait_pct") && ratio.rounded.at < 1.0;
        let excused = edge || late || own_interval || waiting;
        let can_be = matches!(self.law.grade, Grade::Error(_) | Grade::Parts) && at == 1.0 && !excused;
        let severity = if can_be && (agree || self.is_sure() && enough) { Severity::Error } else { Severity::Warning };
        let why = (recomputed, self.broken(agree, edge));
        self.context.find(findings, (self.law.id, severity), row, &columns, why);
    }

    fn at_most(&self, findings: &mut Findings) {
        let (mut rows, mut broken, given) = (0, Vec::new(), self.law.slack);
        for row in 0..self.context.rows() {
            let counts = self.law.grade != Grade::Waits || self.context.workload(row).is_none_or(|w| w.waits);
            let sides = |cut| self.formula.values(self.pair, row, self.context, cut);
            let Some((left, right)) = sides(false).filter(|_| counts) else { continue };
            rows += 1;
            let slack = 1.0 + if given > 0.0 { given + self.context.late(row, VERY_LATE) } else { 0.0 };
            // 2.2 and 2.1 meet in nothing but 2.15.
            let end = ((left.high - left.low) + (right.high - right.low)) * 1e-5;
            if left.low + end > right.high * slack {
                let edge = left.low <= right.high * slack || sides(true).is_none_or(|(l, r)| l.low <= r.high * slack);
                broken.push((row, edge, left.at / right.at));
            }
        }
        let (kept, sure) = (rows - broken.len(), self.is_sure());
        if !sure && broken.len() > 1 && broken.len() > kept {
            let (low, high) = range(broken.iter().map(|(.., ratio)| *ratio));
            let why = reason!(Apart, self.formula_text(), broken.len(), rows, low, high);
            return self.about_table(findings, Severity::Warning, why);
        }
        for (row, edge, _) in broken {
            let error = matches!(self.law.grade, Grade::Error(_)) && !edge && (sure || kept >= 2);
            let severity = if error { Severity::Error } else { Severity::Warning };
            let columns = self.columns_of(row);
            let bound = columns.last().and_then(|c| self.formula.solve(self.pair, *c, row, self.context));
            self.context.find(findings, (self.law.id, severity), row, &columns, (bound, self.broken(kept >= 2, edge)));
        }
    }
}
