//! Judges an equation in all rows of a table together. What one row alone cannot show, the others can: where they all meet, a
//! row that does not is wrong, however small its deviation; where all are off by the same factor, the columns mean something
//! else than assumed, and no row is wrong.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading, common};
use crate::audit::laws;

/// What it means if an equation is missed on one side.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    /// It cannot be.
    Never(&'static str),
    /// It can be, under the assumption that the text states.
    Unless(&'static str),
    /// It can be, under an assumption that holds for all rows of a table or for none.
    UnlessInAll(&'static str),
}

impl Side {
    fn text(self) -> &'static str {
        match self {
            Side::Never(text) | Side::Unless(text) | Side::UnlessInAll(text) => text,
        }
    }
}

/// Both sides of an equation, as quotient or difference, in one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) row: usize,
    rounded: Interval,
    loose: Interval,
    cut: Interval,
}

impl Sides {
    /// From a function that computes it as the digits are read.
    pub(crate) fn of(row: usize, compute: impl Fn(Reading) -> Option<Interval>) -> Option<Sides> {
        let rounded = compute(Reading::Rounded)?;
        Some(Sides { row, rounded, loose: compute(Reading::Loose)?, cut: compute(Reading::Cut)? })
    }

    /// Whether the sides meet if the digits were rounded.
    pub(crate) fn meets(&self, at: f64) -> bool {
        self.rounded.holds(at) || self.loose.holds(at)
    }

    /// Whether they meet if digits were cut off.
    pub(crate) fn cut_meets(&self, at: f64) -> bool {
        self.cut.holds(at)
    }

    /// Whether they are apart, on the upper side.
    pub(crate) fn is_above(&self, at: f64) -> bool {
        self.rounded.low > at
    }

    fn at_edge(&self, at: f64) -> bool {
        !self.meets(at) && self.cut.holds(at)
    }
}

/// An equation.
pub(crate) struct Equation<'f> {
    pub(crate) law: &'static str,
    pub(crate) columns: &'f [&'static str],
    /// The column that is compared.
    pub(crate) target: &'static str,
    /// What the sides are if they are equal: 1 as a quotient, 0 as a difference.
    pub(crate) equal: f64,
    pub(crate) above: Side,
    pub(crate) below: Side,
    /// Relative deviation that has known causes and is no more than a warning.
    pub(crate) slack: f64,
    /// The target as the other columns give it, in a row where the sides are as given.
    pub(crate) recompute: &'f dyn Fn(usize, f64) -> Option<f64>,
}

impl Equation<'_> {
    fn formula(&self) -> &'static str {
        laws::find(self.law).map_or("", |law| law.formula)
    }
}

/// Share of the rows that must agree with each other to speak against another.
const MOST: f64 = 0.75;
/// Relative deviation that figures with all their digits have from one reading of a clock to the next.
const NOISE: f64 = 0.001;
/// How late counters are often read after the jobs' own count, and how late on a busy machine, s.
const LATE: f64 = 0.05;
pub(crate) const VERY_LATE: f64 = 0.5;

/// Both sides in all rows; `None` if they meet everywhere, so that there is nothing to judge.
pub(crate) fn missed(
    rows: std::ops::Range<usize>,
    at: f64,
    compute: impl Fn(usize, Reading) -> Option<Interval>,
) -> Option<Vec<Sides>> {
    if rows.clone().all(|row| compute(row, Reading::Rounded).is_none_or(|sides| sides.holds(at))) {
        return None;
    }
    Some(rows.filter_map(|row| Sides::of(row, |reading| compute(row, reading))).collect())
}

/// Rows by which is decided what all rows have in common.
pub(crate) const SAMPLE: usize = 20_000;

/// Whether most of several rows hold `at`.
pub(crate) fn most_meet(all: &[Sides], at: f64) -> bool {
    let count = all.iter().filter(|s| s.meets(at)).count();
    all.len() >= 3 && count as f64 >= MOST * all.len() as f64
}

/// Rows in the order of their precision, with how many of them meet.
struct Witnesses(Vec<(f64, usize)>);

impl Witnesses {
    fn of(all: &[Sides], at: f64) -> Witnesses {
        let half = |s: &Sides| (s.rounded.high - s.rounded.low) / 2.0;
        let mut rows: Vec<(f64, bool)> = all.iter().map(|s| (half(s), s.meets(at))).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut met = 0;
        let counted = rows.into_iter().map(|(half, meets)| {
            met += usize::from(meets);
            (half, met)
        });
        Witnesses(counted.collect())
    }

    /// Whether most of the rows whose digits would show a deviation as large as `deviation` have none.
    fn speak_against(&self, deviation: f64) -> bool {
        let precise = self.0.partition_point(|(half, _)| *half < deviation);
        let met = precise.checked_sub(1).and_then(|last| self.0.get(last)).map_or(0, |(_, met)| *met);
        (met >= 3 && met as f64 >= MOST * precise as f64) || (met == 2 && self.0.len() == 3)
    }
}

/// Judges `equation` in `all` rows.
pub(crate) fn judge(equation: &Equation<'_>, all: &[Sides], context: &Context<'_>, findings: &mut Findings) {
    let equal = equation.equal;
    let most = most_meet(all, equal);
    let sure = context.is_sure(equation.columns);
    // Rows that meet if digits were rounded, and not if they were cut off, show that they were rounded.
    let rounded = all.iter().any(|s| s.meets(equal) && !s.cut_meets(equal));
    let edges = all.iter().filter(|s| s.at_edge(equal) && !rounded).count();
    let cut = all.len() >= 4 && edges as f64 > 0.5 * all.len() as f64;
    let mut about_table =
        |severity, text| findings.push(context.about_table(equation.law, severity, equation.columns, text));
    if cut {
        let text =
            format!("{}: digits were cut off rather than rounded in {edges} of {} rows", equation.formula(), all.len());
        about_table(Severity::Info, text);
    }
    let off = all.iter().filter(|s| !s.meets(equal)).count();
    let mut at = equal;
    if !most && !cut && all.len() >= 4 {
        let intervals: Vec<Interval> = all.iter().take(SAMPLE).map(|s| s.rounded).collect();
        if let Some((value, count)) = common(&intervals)
            && count as f64 >= MOST * intervals.len() as f64
            && off as f64 >= 0.5 * all.len() as f64
            && (value - equal).abs() > NOISE.max(context.late(0, LATE))
        {
            at = value;
            let side = if value > equal { equation.above } else { equation.below };
            let value = shown(value, 5);
            let off = if equal == 0.0 {
                format!("both sides differ by {value}")
            } else {
                format!("its left side is {value} × its right")
            };
            let text = format!("{}: in {count} of {} rows {off}; {}", equation.formula(), intervals.len(), side.text());
            about_table(Severity::Warning, text);
        }
    }
    // Columns that were inferred, and do not agree anywhere: they are something else.
    if at == equal && !sure && !cut && all.len() > 1 && off * 2 > all.len() {
        let of = all.iter().filter(|s| !s.meets(equal)).map(|s| s.rounded.at);
        let (low, high) = of.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), at| (l.min(at), h.max(at)));
        let what = if equal == 0.0 { "they differ by" } else { "its left side is, as a multiple of its right," };
        let text = format!(
            "{}: not in {off} of {} rows, where {what} {} to {}: the columns are not what they were taken for, or figures of different \
             tests or times",
            equation.formula(),
            all.len(),
            shown(low, 4),
            shown(high, 4)
        );
        about_table(Severity::Warning, text);
        return;
    }
    let witnesses = Witnesses::of(all, at);
    for sides in all.iter().filter(|s| !s.meets(at)) {
        let most = witnesses.speak_against((sides.rounded.at - at).abs());
        let edge = sides.at_edge(at) && !rounded;
        if !(edge && cut) {
            row(equation, sides, at, (most, sure), edge, context, findings);
        }
    }
}

fn row(
    equation: &Equation<'_>,
    sides: &Sides,
    at: f64,
    (most, sure): (bool, bool),
    edge: bool,
    context: &Context<'_>,
    findings: &mut Findings,
) {
    let middle = sides.rounded.at;
    let moved = if at == equation.equal { middle } else { middle / at };
    let recomputed = (equation.recompute)(sides.row, moved);
    let printed = context.value(equation.target, sides.row);
    let deviation =
        printed.zip(recomputed).map_or(f64::INFINITY, |(p, r)| (p - r).abs() / r.abs().max(f64::MIN_POSITIVE));
    // A counter that is read at another moment than the jobs' own deviates as much, in one row as well as in all.
    let timing = deviation < NOISE.max(context.late(sides.row, LATE));
    if timing && !most {
        return;
    }
    let side = if middle > at { equation.above } else { equation.below };
    let alone = match side {
        Side::Never(_)
            if !edge
                && !timing
                && (most || sure && deviation > equation.slack.max(context.late(sides.row, VERY_LATE))) =>
        {
            Severity::Error
        }
        Side::UnlessInAll(_) if !edge && !timing && most => Severity::Error,
        _ => Severity::Warning,
    };
    let severity = if at == equation.equal { alone } else { Severity::Warning };
    if !findings.wants(equation.law, severity) {
        return;
    }
    let others = match (most, at == equation.equal) {
        (true, _) => "; the other rows agree",
        (_, false) => "; the other rows agree on another factor",
        _ => "",
    };
    let zero = match recomputed.filter(|_| printed == Some(0.0)) {
        Some(value) => format!("; it is printed as 0 and must have been {}", shown(value, 4)),
        None => String::new(),
    };
    let edge = if edge { "; it fits if digits were cut off rather than rounded" } else { "" };
    let moment = if timing { "; it fits if they were read at slightly different moments" } else { "" };
    let text = format!("{}: {}{others}{zero}{edge}{moment}", equation.formula(), side.text());
    findings.push(
        context.about_row(equation.law, severity, sides.row, equation.columns, equation.target, recomputed, text),
    );
}

/// A bound that figures cannot exceed.
pub(crate) struct Limit<'f> {
    pub(crate) law: &'static str,
    pub(crate) columns: &'f [&'static str],
    /// The column that is too large, or too small.
    pub(crate) target: &'static str,
    /// Whether it can be an error: nothing need be assumed.
    pub(crate) strict: bool,
    /// Whether it is sure what the columns are.
    pub(crate) sure: bool,
}

impl<'f> Limit<'f> {
    /// Of columns of which it is sure what they are if they were not inferred.
    pub(crate) fn of(
        law: &'static str,
        columns: &'f [&'static str],
        target: &'static str,
        strict: bool,
        context: &Context<'_>,
    ) -> Limit<'f> {
        Limit { law, columns, target, strict, sure: context.is_sure(columns) }
    }
}

/// Judges a limit in all rows. It is an error only where the columns are sure, or most other rows keep to it; where most rows
/// of columns that were inferred do not, the columns are something else.
pub(crate) fn keep(
    limit: &Limit<'_>,
    exceeds: &dyn Fn(usize) -> Option<Above>,
    say: &dyn Fn(usize) -> (Option<f64>, String),
    context: &Context<'_>,
    findings: &mut Findings,
) {
    let (mut all, mut broken) = (0usize, Vec::new());
    for row in context.rows() {
        match exceeds(row) {
            Some(Above::No) => all += 1,
            Some(found) => {
                all += 1;
                broken.push((row, found));
            }
            None => {}
        }
    }
    let kept = all - broken.len();
    if !limit.sure && broken.len() > 1 && broken.len() > kept {
        let text = broken.first().map_or_else(String::new, |(row, _)| say(*row).1);
        let text = format!(
            "in {} of {all} rows, such as {}: {text}; the columns are not what they were taken for",
            broken.len(),
            broken.first().map_or(0, |(row, _)| row + 1)
        );
        findings.push(context.about_table(limit.law, Severity::Warning, limit.columns, text));
        return;
    }
    for (row, found) in broken {
        let error = limit.strict && found == Above::Yes && (limit.sure || kept >= 2);
        let severity = if error { Severity::Error } else { Severity::Warning };
        if findings.wants(limit.law, severity) {
            let (recomputed, text) = say(row);
            findings.push(context.about_row(limit.law, severity, row, limit.columns, limit.target, recomputed, text));
        }
    }
}

/// Whether something is larger than something else that it cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// Not, or not surely.
    No,
    /// Unless both are at the very ends of what their digits leave, or digits were cut off rather than rounded.
    Edge,
    /// However the digits are read.
    Yes,
}

/// Compares `left` with `right` as the digits may be read; `None` if one of them is missing.
pub(crate) fn above(
    left: impl Fn(Reading) -> Option<Interval>,
    right: impl Fn(Reading) -> Option<Interval>,
) -> Option<Above> {
    let (small, large) = (left(Reading::Loose)?, right(Reading::Loose)?);
    // 2.2 and 2.1 meet in nothing but 2.15.
    let end = ((small.high - small.low) + (large.high - large.low)) * 1e-5;
    if small.low + end <= large.high {
        return Some(Above::No);
    }
    let cut = left(Reading::Cut)?.low > right(Reading::Cut)?.high;
    Some(if cut && small.low > large.high { Above::Yes } else { Above::Edge })
}
