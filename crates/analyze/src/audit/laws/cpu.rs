//! CPU time: its parts, and their sum.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::interval::{Interval, Reading};
use crate::audit::judge::{Equation, Side, Sides, judge, missed, most_meet};

/// The difference of the first of `ids` and the sum of the others, or of 100 and the sum of all.
fn difference(
    context: &Context<'_>,
    whole: Option<&'static str>,
    parts: &[&'static str],
    row: usize,
    reading: Reading,
) -> Option<Interval> {
    let sum =
        parts.iter().try_fold(Interval::exact(0.0), |all, id| Some(all.plus(context.interval(id, row, reading)?)))?;
    let whole = match whole {
        Some(id) => context.interval(id, row, reading)?,
        None => Interval::exact(100.0),
    };
    Some(whole.minus(sum))
}

/// Ways to add up: with `base` and what is part of no other figure, and with or without iowait and steal, which some count
/// elsewhere, in the order of `with`.
fn ways(context: &Context<'_>, base: &[&'static str], with: [(bool, bool); 4]) -> Vec<Vec<&'static str>> {
    const OTHERS: [&str; 3] = ["cpu_nice_pct", "cpu_irq_pct", "cpu_softirq_pct"];
    let others = OTHERS.into_iter().filter(|id| base.contains(&"cpu_user_pct") && context.has(id));
    let base: Vec<&'static str> = base.iter().copied().chain(others).collect();
    let way = |(iowait, steal)| {
        let more = [("cpu_iowait_pct", iowait), ("cpu_steal_pct", steal)].into_iter().filter(|(_, has)| *has);
        base.iter().copied().chain(more.map(|(id, _)| id)).collect::<Vec<_>>()
    };
    with.map(way).into_iter().filter(|way| way.iter().all(|id| context.has(id))).collect()
}

/// The first of several ways to add up, or another one if most rows agree with it and not with the first; and its rows.
fn best(
    context: &Context<'_>,
    whole: Option<&'static str>,
    ways: Vec<Vec<&'static str>>,
) -> Option<(Vec<&'static str>, Vec<Sides>)> {
    let sides = |way: &[&'static str]| {
        missed(context.rows(), 0.0, |row, reading| difference(context, whole, way, row, reading)).unwrap_or_default()
    };
    let fits = |all: &[Sides]| all.iter().filter(|s| s.meets(0.0)).count();
    let mut ways = ways.into_iter();
    let first = ways.next()?;
    let all = sides(&first);
    // An interval more is a wider sum: a few rows more are no sign.
    if fits(&all) * 2 < all.len() {
        for way in ways {
            let other = sides(&way);
            if fits(&other) * 4 >= other.len() * 3 {
                return Some((way, other));
            }
        }
    }
    Some((first, all))
}

pub(super) fn parts(context: &Context<'_>, findings: &mut Findings) {
    let with = [(false, false), (false, true), (true, false), (true, true)];
    let ways = ways(context, &["cpu_user_pct", "cpu_sys_pct"], with);
    let Some((way, all)) = best(context, Some("cpu_busy_pct"), ways) else { return };
    if way.contains(&"cpu_iowait_pct") {
        let text = "busy holds iowait: with it, user and sys add up".to_owned();
        findings.push(context.about_table("cpu-parts", Severity::Info, &way, text));
    }
    let columns: Vec<&'static str> = ["cpu_busy_pct"].iter().chain(&way).copied().collect();
    let sum = |row: usize, _: f64| way.iter().try_fold(0.0, |all, id| Some(all + context.value(id, row)?));
    let equation = Equation {
        law: "cpu-parts",
        columns: &columns,
        target: "cpu_busy_pct",
        equal: 0.0,
        above: Side::UnlessInAll("a part is missing, such as steal, or a digit is wrong"),
        below: Side::Never("the parts are more than the whole"),
        slack: 0.0,
        recompute: &sum,
    };
    judge(&equation, &all, context, findings);
}

pub(super) fn sum(context: &Context<'_>, findings: &mut Findings) {
    let (base, with): (&[&'static str], _) = if context.has("cpu_busy_pct") {
        (&["cpu_busy_pct", "cpu_idle_pct"], [(true, false), (false, false), (true, true), (false, true)])
    } else {
        (&["cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct"], [(true, true), (true, false), (false, true), (false, false)])
    };
    let Some((way, all)) = best(context, None, ways(context, base, with)) else { return };
    if !way.contains(&"cpu_iowait_pct") && context.has("cpu_iowait_pct") {
        let text = "idle or busy holds iowait: without adding it, the sum is 100".to_owned();
        findings.push(context.about_table("cpu-sum", Severity::Info, &way, text));
    }
    let target = "cpu_idle_pct";
    // Without a column of iowait, the rest may be it.
    let complete = way.contains(&"cpu_iowait_pct") || context.has("cpu_iowait_pct");
    let all =
        if complete || most_meet(&all, 0.0) { all } else { all.into_iter().filter(|s| !s.is_above(0.0)).collect() };
    let missing = "a part is missing, such as iowait or steal, or a digit is wrong";
    let rest = |row: usize, _: f64| {
        let others = way.iter().filter(|id| **id != target);
        others.copied().try_fold(100.0, |left, id| Some(left - context.value(id, row)?))
    };
    let equation = Equation {
        law: "cpu-sum",
        columns: &way,
        target,
        equal: 0.0,
        above: if complete { Side::UnlessInAll(missing) } else { Side::Unless(missing) },
        below: Side::Never("the parts are more than the whole"),
        slack: 0.0,
        recompute: &rest,
    };
    judge(&equation, &all, context, findings);
}
