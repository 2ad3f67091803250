//! CPU time: its parts, and their sum.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity};
use crate::interval::{Interval, Reading};
use crate::judge::{Equation, Side, Sides, judge, missed, most_meet};

pub(crate) static CPU_PARTS: Law = Law {
    id: "cpu-parts",
    name: "Parts of the busy CPU time",
    formula: "cpu_user_pct + cpu_sys_pct = cpu_busy_pct",
    needs: &[&["cpu_busy_pct", "cpu_user_pct", "cpu_sys_pct"]],
    tolerance: "none where the parts exceed the whole, or where the other rows agree; else a missing part is a warning",
    meaning: "A wrong digit, or figures of different times",
    check: Check::Own(parts),
};

pub(crate) static CPU_SUM: Law = Law {
    id: "cpu-sum",
    name: "CPU time is busy, idle or waiting",
    formula: "cpu_busy_pct + cpu_idle_pct + cpu_iowait_pct = 100",
    needs: &[&["cpu_busy_pct", "cpu_idle_pct"], &["cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct"]],
    tolerance: "none above 100, or where the other rows agree; else a missing part is a warning",
    meaning: "A wrong digit; idle that holds iowait or not; a part that is not printed, such as steal",
    check: Check::Own(sum),
};

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

/// The first of several ways to add up, or another one if most rows agree with it and not with the first; and its rows.
fn best<'p>(
    context: &Context<'_>,
    whole: Option<&'static str>,
    ways: &[&'p [&'static str]],
) -> Option<(&'p [&'static str], Vec<Sides>)> {
    let mut possible = ways.iter().copied().filter(|way| way.iter().all(|id| context.has(id)));
    let sides = |way| missed(context.rows(), 0.0, |row, reading| difference(context, whole, way, row, reading));
    let fits = |all: &[Sides]| all.iter().filter(|s| s.meets(0.0)).count();
    let way = possible.next()?;
    let all = sides(way)?;
    // An interval more is a wider sum: a few rows more are no sign.
    if fits(&all) * 2 < all.len() {
        for way in possible {
            match sides(way) {
                Some(other) if fits(&other) * 4 >= other.len() * 3 => return Some((way, other)),
                Some(_) => {}
                None => return Some((way, Vec::new())),
            }
        }
    }
    Some((way, all))
}

fn parts(context: &Context<'_>, findings: &mut Findings) {
    let ways: [&[&'static str]; 2] =
        [&["cpu_user_pct", "cpu_sys_pct"], &["cpu_user_pct", "cpu_sys_pct", "cpu_iowait_pct"]];
    let Some((way, all)) = best(context, Some("cpu_busy_pct"), &ways) else { return };
    if way.len() == 3 {
        let text = "busy holds iowait: with it, user and sys add up".to_owned();
        findings.push(context.about_table(CPU_PARTS.id, Severity::Info, way, text));
    }
    let columns: Vec<&'static str> = ["cpu_busy_pct"].iter().chain(way).copied().collect();
    let sum = |row: usize, _: f64| way.iter().try_fold(0.0, |all, id| Some(all + context.value(id, row)?));
    let equation = Equation {
        law: CPU_PARTS.id,
        formula: CPU_PARTS.formula,
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

fn sum(context: &Context<'_>, findings: &mut Findings) {
    let ways: [&[&'static str]; 4] = [
        &["cpu_busy_pct", "cpu_idle_pct", "cpu_iowait_pct"],
        &["cpu_busy_pct", "cpu_idle_pct"],
        &["cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct", "cpu_iowait_pct"],
        &["cpu_user_pct", "cpu_sys_pct", "cpu_idle_pct"],
    ];
    let ways = if context.has("cpu_busy_pct") { &ways[..2] } else { &ways[2..] };
    let Some((way, all)) = best(context, None, ways) else { return };
    if !way.contains(&"cpu_iowait_pct") && context.has("cpu_iowait_pct") {
        let text = "idle or busy holds iowait: without adding it, the sum is 100".to_owned();
        findings.push(context.about_table(CPU_SUM.id, Severity::Info, way, text));
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
        law: CPU_SUM.id,
        formula: CPU_SUM.formula,
        columns: way,
        target,
        equal: 0.0,
        above: if complete { Side::UnlessInAll(missing) } else { Side::Unless(missing) },
        below: Side::Never("the parts are more than the whole"),
        slack: 0.0,
        recompute: &rest,
    };
    judge(&equation, &all, context, findings);
}
