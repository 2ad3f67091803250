//! Percentiles: in their order, with a mean between the bounds that they set, and the time of a part below that of the whole.

use super::Law;
use super::waits::SAMPLED;
use crate::audit::context::Context;
use crate::audit::finding::{Findings, shown};
use crate::audit::interval::{Interval, Reading};
use crate::audit::judge::{Above, Limit, above, keep};

/// Shares of the values at or below each figure of a family, and the ends of their ids.
const MARKS: [(f64, &str); 10] = [
    (0.0, "min"),
    (0.5, "p50"),
    (0.75, "p75"),
    (0.9, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p999"),
    (0.9999, "p9999"),
    (1.0, "max"),
    (-1.0, "mean"),
];

/// Families of times, and where their mean may stand otherwise, with its size in the family's unit.
const FAMILIES: [(&str, &[(&str, f64)]); 7] = [
    ("transaction_time_ns", &[("transaction_time_ns_mean", 1.0), ("commit_latency_ms", 1e6)]),
    ("commit_time_ns", &[("commit_time_ns_mean", 1.0)]),
    ("response_time_ns", &[("response_time_ns_mean", 1.0)]),
    ("read_time_us", &[]),
    ("visible_delay_ns", &[]),
    ("checkpoint_time_ns", &[]),
    ("calm_time_ns", &[]),
];

/// Deviation of percentiles that come from histograms.
const BUCKETS: f64 = 1.02;

/// The marks of a family that the table has: share and id.
fn marks(family: &str, context: &Context<'_>) -> Vec<(f64, &'static str)> {
    let of = |(share, end): &(f64, &str)| {
        let id = crate::audit::names::find(&format!("{family}_{end}"))?;
        (*share >= 0.0 && context.has(id)).then_some((*share, id))
    };
    MARKS.iter().filter_map(of).collect()
}

pub(super) fn order(context: &Context<'_>, findings: &mut Findings) {
    for (family, _) in FAMILIES {
        for pair in marks(family, context).windows(2) {
            let [(_, small), (_, large)] = *pair else { continue };
            let columns = [small, large];
            let of = |id, row| move |reading: Reading| context.interval(id, row, reading);
            let exceeds = |row| above(of(small, row), of(large, row));
            let say = |row| (context.value(large, row), format!("{small} is larger than {large}"));
            let limit = Limit::of("percentiles", &columns, small, true, context);
            // What headers name as percentiles of times is sure.
            let named = |id: &&str| context.sheet.column(id).is_some_and(|c| !c.ambiguous);
            let sure = limit.sure || columns.iter().all(named);
            keep(&Limit { sure, ..limit }, &exceeds, &say, context, findings);
        }
    }
}

pub(super) fn mean(context: &Context<'_>, findings: &mut Findings) {
    for (family, means) in FAMILIES {
        let marks = marks(family, context);
        for (id, size) in means.iter().filter(|(id, _)| !marks.is_empty() && context.has(id)) {
            let columns: Vec<&'static str> = [*id].into_iter().chain(marks.iter().map(|(_, id)| *id)).collect();
            bounds(context, id, *size, &marks, &columns, findings);
        }
    }
}

fn bounds(
    context: &Context<'_>,
    id: &'static str,
    size: f64,
    marks: &[(f64, &'static str)],
    columns: &[&'static str],
    findings: &mut Findings,
) {
    let present = |row| marks.iter().copied().filter(move |(_, id)| context.value(id, row).is_some());
    let at = |id: &'static str, row, reading| context.interval(id, row, reading).map(|i| i.scaled(1.0 / size));
    // Of all values, those between two marks are at least the lower one, and at most the higher one.
    let sum = |row, reading, upper: bool| {
        let (mut sum, mut marks) = (Interval::exact(0.0), present(row).peekable());
        let mut before = 0.0;
        while let Some((share, mark)) = marks.next() {
            let next = marks.peek().map_or(1.0, |(next, _)| *next);
            let weight = if upper { share - before } else { next - share };
            sum = sum.plus(at(mark, row, reading)?.scaled(weight.max(0.0)));
            before = share;
        }
        (!upper || before == 1.0).then(|| sum.scaled(if upper { BUCKETS } else { 1.0 / BUCKETS }))
    };
    let printed = |row, reading| context.interval(id, row, reading);
    let limit = Limit::of("mean", columns, id, true, context);
    for (upper, what) in [(false, "lower"), (true, "higher")] {
        let bound = |row, reading| sum(row, reading, upper);
        let exceeds = |row| match upper {
            false => above(|r| bound(row, r), |r| printed(row, r)),
            true => above(|r| printed(row, r), |r| bound(row, r)),
        };
        let say = |row| {
            (bound(row, Reading::Rounded).map(|b| b.at), format!("the mean is {what} than its percentiles allow"))
        };
        keep(&limit, &exceeds, &say, context, findings);
    }
    // Without a maximum, a mean above a high percentile says how long the rest must have been.
    let last = |row| present(row).last().filter(|(share, _)| (0.99..1.0).contains(share));
    let high = |row| move |reading| at(last(row)?.1, row, reading);
    let exceeds =
        |row| above(|r| printed(row, r), high(row)).map(|found| if found == Above::Edge { Above::No } else { found });
    let say = |row| {
        let ((share, mark), high) =
            (last(row).unwrap_or((0.99, id)), high(row)(Reading::Rounded).map_or(0.0, |h| h.at));
        let mean = context.value(id, row).unwrap_or(0.0);
        let text = format!(
            "the mean is above {mark}: right only if the slowest {} % take {} times the mean on average",
            shown((1.0 - share) * 100.0, 3),
            shown((mean - share * high) / (1.0 - share) / mean, 3)
        );
        (Some(high), text)
    };
    keep(&Limit { strict: false, ..limit }, &exceeds, &say, context, findings);
}

pub(super) fn inside(context: &Context<'_>, findings: &mut Findings) {
    for set in super::find("inside").into_iter().flat_map(Law::sets) {
        let &[part, whole] = set.as_slice() else { continue };
        if !context.has(part) || !context.has(whole) {
            continue;
        }
        // The longest of a sample is no longer than the longest of all; its percentiles may be.
        let all_timed = part.ends_with("_max");
        let off = if all_timed { BUCKETS } else { SAMPLED };
        let exceeds =
            |row| above(|r| context.interval(part, row, r), |r| Some(context.interval(whole, row, r)?.scaled(off)));
        let say = |row| {
            (context.value(whole, row), format!("{part} is of a part of the transaction and larger than {whole}"))
        };
        keep(&Limit::of("inside", &set, part, all_timed, context), &exceeds, &say, context, findings);
    }
}
