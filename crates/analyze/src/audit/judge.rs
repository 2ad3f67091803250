//! Holds a formula against all rows of a table together. What one row alone cannot show, the others can: where they agree, a row
//! that does not is wrong, however small its deviation; where all are off by one factor, the columns mean something else.

use super::context::Context;
use super::finding::Severity;
use super::formula::Pair;
use super::interval::{Interval, common};
use super::law::{Grade, Law};
use super::reason::{Figure, Reason};
use super::sheet::{How, SAMPLE};

/// Share of the rows that must agree with each other to speak against another.
const MOST: f64 = 0.75;
/// Relative deviation that figures with all their digits have from one reading of a clock to the next.
pub(crate) const NOISE: f64 = 0.001;
/// How late counters are often read after the jobs' own count, and how late on a busy machine, s.
const LATE: f64 = 0.05;
const VERY_LATE: f64 = 0.5;

/// Said of a row that deviates, where others do not.
pub(crate) const AGREE: &str = "; the other rows agree";
const CUT: &str = "; it holds if digits were cut off";

/// Whether `count` of `all` rows are most of them.
pub(crate) fn is_most(count: usize, all: usize) -> bool {
    count as f64 >= MOST * all as f64
}

/// The range of ratios.
fn range(all: impl Iterator<Item = f64>) -> (f64, f64) {
    all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), at| (l.min(at), h.max(at)))
}

/// Says of the rows with these ratios that they are apart from the law.
pub(crate) fn apart(text: String, ratios: &[f64], rows: usize) -> Reason {
    let (low, high) = range(ratios.iter().copied());
    Reason::Apart(text, ratios.len(), rows, Figure(low), Figure(high))
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
        met >= 3 && is_most(met, precise) || met == 2 && self.0.len() == 3
    }
}

/// Two sides that are held against a table.
pub(crate) struct Held<'a> {
    pub(crate) law: &'static Law,
    pub(crate) pair: &'a Pair,
    pub(crate) context: &'a Context<'a>,
}

/// The left side as a multiple of the right one in a row.
struct Ratio {
    row: usize,
    rounded: Interval,
    cut: Interval,
}

impl Ratio {
    /// Whether it is 1 only if digits were cut off.
    fn is_cut(&self) -> bool {
        !self.rounded.holds(1.0) && self.cut.holds(1.0)
    }
}

impl Held<'_> {
    pub(crate) fn check(&self) {
        if self.pair.equal { self.equal() } else { self.at_most() }
    }

    fn about_table(&self, severity: Severity, reason: Reason) {
        self.context.about_table(self.law.id, severity, &self.pair.columns, reason);
    }

    /// The left side as a multiple of the right one, or for parts of a whole, 1 and their difference in percent.
    fn ratio(&self, row: usize, cut: bool) -> Option<Interval> {
        let (left, right) = self.pair.values(row, self.context, cut)?;
        // Of nothing at all, both sides are 0.
        if left.at == 0.0 && right.at == 0.0 {
            return None;
        }
        let difference = || left.plus(right.scaled(-1.0)).scaled(0.01).plus(Interval::exact(1.0));
        Some(if self.law.grade == Grade::Parts { difference() } else { left.over(right) })
    }

    /// The factor that most rows have in common, if few have none, and how many have it.
    fn common_factor(&self, all: &[Ratio], off: usize) -> Option<(f64, usize)> {
        let intervals: Vec<Interval> = all.iter().take(SAMPLE).map(|r| r.rounded).collect();
        let (factor, count) = common(&intervals)?;
        let is_other = (factor - 1.0).abs() > NOISE.max(self.context.late(0, LATE));
        (is_most(count, intervals.len()) && off * 2 >= all.len() && all.len() >= 4 && is_other)
            .then_some((factor, count))
    }

    fn equal(&self) {
        if (0..self.context.rows()).all(|row| self.ratio(row, false).is_none_or(|r| r.holds(1.0))) {
            return;
        }
        let of_row = |row| Some(Ratio { row, rounded: self.ratio(row, false)?, cut: self.ratio(row, true)? });
        let all: Vec<Ratio> = (0..self.context.rows()).filter_map(of_row).collect();
        let (rows, agreed) = (all.len(), self.law.grade == Grade::Agreed);
        let missed = || all.iter().filter(|r| !r.rounded.holds(1.0));
        let near = |r: &Ratio| agreed && (r.rounded.at - 1.0).abs() <= self.law.slack;
        if agreed && (rows < 3 || missed().filter(|r| !near(r)).count() * 4 > rows) {
            return;
        }
        // Rows that meet if digits were rounded, and not if they were cut off, show that they were rounded.
        let rounded = all.iter().any(|r| r.rounded.holds(1.0) && !r.cut.holds(1.0));
        let edges = all.iter().filter(|r| !rounded && r.is_cut()).count();
        let (off, cut) = (missed().count(), rows >= 4 && edges * 2 > rows);
        if cut {
            self.about_table(Severity::Info, Reason::Cut(self.pair.text.clone(), edges, rows));
        }
        let factor = self.common_factor(&all, off).filter(|_| !cut);
        if let Some((factor, count)) = factor {
            let why = Reason::Factor(self.pair.text.clone(), count, rows, Figure(factor), self.law.meaning);
            self.about_table(Severity::Warning, why);
        }
        // Of what only a header says, most rows know better.
        let by_header = rows > 2 && !self.context.is_sure(&self.pair.columns, How::Id);
        if factor.is_none() && (by_header || !self.is_sure()) && !cut && rows > 1 && off * 2 > rows {
            let ratios: Vec<f64> = missed().map(|r| r.rounded.at).collect();
            if ratios.iter().any(|at| (at - 1.0).abs() > NOISE) {
                self.about_table(Severity::Warning, apart(self.pair.text.clone(), &ratios, rows));
            }
            return;
        }
        let at = factor.map_or(1.0, |(factor, _)| factor);
        let witnesses = Witnesses::new(all.iter().map(|r| (r.rounded, r.rounded.holds(at))));
        for ratio in all.iter().filter(|r| !r.rounded.holds(at) && !near(r)) {
            let edge = !rounded && ratio.is_cut();
            let agree = witnesses.speak_against((ratio.rounded.at - at).abs());
            // Less than the whole is a part that is not printed.
            let is_part = self.law.grade == Grade::Parts && ratio.rounded.at <= at;
            if !(cut && edge) && (agree || !is_part) {
                self.report(ratio, at, agree, edge);
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
        self.context.is_sure(&self.pair.columns, how)
    }

    /// Adds a finding about a row, of the column that must be wrong: that which is printed as 0, or else the named one. In the other rows
    /// the left side is `at` times the right one.
    fn find(&self, severity: Severity, row: usize, at: f64, agree: bool, edge: bool) {
        let zero = |c: &usize| self.context.sheet.columns[*c].value(row) == Some(0.0);
        let (mut columns, zeros): (Vec<usize>, Vec<usize>) = self.pair.columns.iter().partition(|c| !zero(c));
        columns.extend(&zeros);
        // A part may be 0; a rate or a whole that is not may not.
        let columns = if zeros.len() == 1 && self.law.grade != Grade::Parts { &columns } else { &self.pair.columns };
        let usual = if self.law.grade == Grade::Parts { (1.0, (at - 1.0) * 100.0) } else { (at, 0.0) };
        let recomputed = columns.last().and_then(|c| self.pair.solve(*c, row, self.context, usual));
        let said = [if agree { AGREE } else { "" }, if edge { CUT } else { "" }];
        let why = Reason::Broken(self.pair.text.clone(), self.law.meaning, said[0], said[1]);
        self.context.find((self.law.id, severity), row, columns, recomputed, why);
    }

    fn report(&self, ratio: &Ratio, at: f64, agree: bool, edge: bool) {
        let has = |id| self.context.sheet.has(id);
        let names = |id: &str| self.pair.columns.iter().any(|c| self.context.sheet.columns[*c].id == id);
        let deviation = (ratio.rounded.at / at - 1.0).abs();
        // A counter that is read at another moment than the jobs' own deviates as much, in one row as well as in all.
        let late = deviation < NOISE.max(self.context.late(ratio.row, LATE));
        if late && !agree {
            return;
        }
        let enough = deviation > self.law.slack.max(self.context.late(ratio.row, VERY_LATE));
        // The database counts its redo over an interval of its own, with other commits in it.
        let own_interval = names("redo_mib_per_s") && has("commits_database");
        // Busy and idle leave room for waiting, unless that is a column.
        let waiting = names("cpu_idle_pct") && !has("cpu_iowait_pct") && ratio.rounded.at < 1.0;
        let excused = edge || late || own_interval || waiting || at != 1.0;
        let can_be = matches!(self.law.grade, Grade::Error(_) | Grade::Parts) && !excused;
        let severity = if can_be && (agree || self.is_sure() && enough) { Severity::Error } else { Severity::Warning };
        self.find(severity, ratio.row, at, agree, edge);
    }

    fn at_most(&self) {
        let (mut rows, mut broken, given) = (0, Vec::new(), self.law.slack);
        for row in 0..self.context.rows() {
            let sides = |cut| self.pair.values(row, self.context, cut);
            let Some((left, right)) = sides(false) else { continue };
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
            let ratios: Vec<f64> = broken.iter().map(|(.., ratio)| *ratio).collect();
            return self.about_table(Severity::Warning, apart(self.pair.text.clone(), &ratios, rows));
        }
        let agree = kept >= 2 && kept >= 2 * broken.len();
        for (row, edge, _) in broken {
            let error = matches!(self.law.grade, Grade::Error(_)) && !edge && (sure || agree);
            self.find(if error { Severity::Error } else { Severity::Warning }, row, 1.0, agree, edge);
        }
    }
}
