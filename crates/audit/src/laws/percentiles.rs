//! Percentiles: in their order, with a mean between the bounds that they set, and the time of a part below that of the whole.

use super::waits::SAMPLED;
use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::Reading;
use crate::judge::{Above, above};

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

const ORDER: &[&[&str]] = &[
    &["transaction_time_ns_p50", "transaction_time_ns_p99"],
    &["transaction_time_ns_p95"],
    &["transaction_time_ns_p99", "transaction_time_ns_max"],
    &["commit_time_ns_p50", "commit_time_ns_p99"],
    &["commit_time_ns_p99", "commit_time_ns_max"],
    &["response_time_ns_p50", "response_time_ns_p99"],
    &["response_time_ns_p99", "response_time_ns_max"],
    &["read_time_us_p50", "read_time_us_p99"],
    &["visible_delay_ns_p50", "visible_delay_ns_p99"],
];

pub(crate) static PERCENTILES: Law = Law {
    id: "percentiles",
    name: "Percentiles rise",
    formula: "min ≤ p50 ≤ p90 ≤ p95 ≤ p99 ≤ p99.9 ≤ max",
    needs: ORDER,
    tolerance: "none",
    meaning: "A wrong digit, exchanged columns, or percentiles of different tests",
    check: Check::Own(order),
};

pub(crate) static MEAN: Law = Law {
    id: "mean",
    name: "The mean that percentiles allow",
    formula: "0.5·p50 + 0.01·p99 − … ≤ mean ≤ 0.5·p50 + 0.49·p99 + 0.01·max: no value lies below the mark before it or above the one behind it",
    needs: &[
        &["commit_latency_ms", "transaction_time_ns_p50"],
        &["commit_latency_ms", "transaction_time_ns_p95"],
        &["commit_latency_ms", "transaction_time_ns_p99"],
        &["commit_latency_ms", "transaction_time_ns_max"],
        &["transaction_time_ns_mean", "transaction_time_ns_p50"],
        &["transaction_time_ns_mean", "transaction_time_ns_p99"],
        &["transaction_time_ns_mean", "transaction_time_ns_max"],
        &["commit_time_ns_mean", "commit_time_ns_p50"],
        &["commit_time_ns_mean", "commit_time_ns_p99"],
        &["commit_time_ns_mean", "commit_time_ns_max"],
        &["response_time_ns_mean", "response_time_ns_p50"],
    ],
    tolerance: "2 %, for percentiles of histograms; a mean above p99 without a maximum is a warning",
    meaning: "A wrong digit or unit, or mean and percentiles of different times",
    check: Check::Own(mean),
};

pub(crate) static INSIDE: Law = Law {
    id: "inside",
    name: "Percentiles of a part",
    formula: "commit_time_ns_x ≤ transaction_time_ns_x, for p50, p99 and max",
    needs: &[
        &["commit_time_ns_p50", "transaction_time_ns_p50"],
        &["commit_time_ns_p99", "transaction_time_ns_p99"],
        &["commit_time_ns_max", "transaction_time_ns_max"],
    ],
    tolerance: "2 %, for percentiles of histograms; for p50 and p99 a warning, with 25 %, as commit times may be those of a sample",
    meaning: "A wrong digit or unit, or times of different transactions",
    check: Check::Own(inside),
};

/// Deviation of percentiles that come from histograms.
const BUCKETS: f64 = 1.02;

/// The marks of a family that the table has: share and id.
fn marks(family: &str, context: &Context<'_>) -> Vec<(f64, &'static str)> {
    let of = |(share, end): &(f64, &str)| {
        let id = crate::names::find(&format!("{family}_{end}"))?;
        (*share >= 0.0 && context.has(id)).then_some((*share, id))
    };
    MARKS.iter().filter_map(of).collect()
}

fn severity(found: Above) -> Severity {
    if found == Above::Yes { Severity::Error } else { Severity::Warning }
}

fn order(context: &Context<'_>, findings: &mut Findings) {
    for (family, _) in FAMILIES {
        for pair in marks(family, context).windows(2) {
            let [(_, small), (_, large)] = *pair else { continue };
            for row in context.rows() {
                let of = |id| move |reading: Reading| context.interval(id, row, reading);
                let Some(found @ (Above::Edge | Above::Yes)) = above(of(small), of(large)) else { continue };
                let (text, most) = (format!("{small} is larger than {large}"), context.value(large, row));
                findings.push(context.about_row(
                    PERCENTILES.id,
                    severity(found),
                    row,
                    &[small, large],
                    small,
                    most,
                    text,
                ));
            }
        }
    }
}

fn mean(context: &Context<'_>, findings: &mut Findings) {
    for (family, means) in FAMILIES {
        let marks = marks(family, context);
        if marks.is_empty() {
            continue;
        }
        for (id, size) in means.iter().filter(|(id, _)| context.has(id)) {
            let columns: Vec<&'static str> = [*id].into_iter().chain(marks.iter().map(|(_, id)| *id)).collect();
            for row in context.rows() {
                bounds(context, row, id, *size, &marks, &columns, findings);
            }
        }
    }
}

fn bounds(
    context: &Context<'_>,
    row: usize,
    id: &'static str,
    size: f64,
    marks: &[(f64, &'static str)],
    columns: &[&'static str],
    findings: &mut Findings,
) {
    let present: Vec<(f64, &'static str)> =
        marks.iter().copied().filter(|(_, id)| context.value(id, row).is_some()).collect();
    let at = |id: &'static str, reading| context.interval(id, row, reading).map(|i| i.scaled(1.0 / size));
    // Of all values, those between two marks are at least the lower one.
    let least = |reading| {
        let mut sum = crate::interval::Interval::exact(0.0);
        for (i, (share, mark)) in present.iter().enumerate() {
            let next = present.get(i + 1).map_or(1.0, |(next, _)| *next);
            sum = sum.plus(at(mark, reading)?.scaled((next - share).max(0.0)));
        }
        Some(sum.scaled(1.0 / BUCKETS))
    };
    let most = |reading| {
        let (mut sum, mut before) = (crate::interval::Interval::exact(0.0), 0.0);
        for (share, mark) in &present {
            sum = sum.plus(at(mark, reading)?.scaled((share - before).max(0.0)));
            before = *share;
        }
        (before == 1.0).then(|| sum.scaled(BUCKETS))
    };
    let printed = |reading| context.interval(id, row, reading);
    let text = |what: &str| format!("the mean is {what} than its percentiles allow");
    let cases = [
        (above(least, printed), "lower", least(Reading::Rounded)),
        (above(printed, most), "higher", most(Reading::Rounded)),
    ];
    for (found, what, bound) in cases {
        if let Some(found @ (Above::Edge | Above::Yes)) = found {
            let bound = bound.map(|b| b.at);
            findings.push(context.about_row(MEAN.id, severity(found), row, columns, id, bound, text(what)));
        }
    }
    // Without a maximum, a mean above a high percentile says how long the rest must have been.
    let Some((share, mark)) = present.last().copied().filter(|(share, _)| (0.99..1.0).contains(share)) else { return };
    if let Some(Above::Yes) = above(printed, |reading| at(mark, reading))
        && let (Some(mean), Some(high)) = (printed(Reading::Rounded), at(mark, Reading::Rounded))
    {
        let rest = (mean.at - share * high.at) / (1.0 - share);
        let text = format!(
            "the mean is above {mark}: right only if the slowest {} % take {} times the mean on average",
            shown((1.0 - share) * 100.0, 3),
            shown(rest / mean.at, 3)
        );
        let most = Some(high.at);
        findings.push(context.about_row(MEAN.id, Severity::Warning, row, columns, id, most, text));
    }
}

fn inside(context: &Context<'_>, findings: &mut Findings) {
    for set in INSIDE.needs {
        let [part, whole] = *set else { continue };
        if !context.has(part) || !context.has(whole) {
            continue;
        }
        for row in context.rows() {
            // The longest of a sample is no longer than the longest of all; its percentiles may be.
            let all_timed = part.ends_with("_max");
            let off = if all_timed { BUCKETS } else { SAMPLED };
            let all = |reading| Some(context.interval(whole, row, reading)?.scaled(off));
            let Some(found @ (Above::Edge | Above::Yes)) = above(|r| context.interval(part, row, r), all) else {
                continue;
            };
            let text = format!("{part} is of a part of the transaction and larger than {whole}");
            let most = context.value(whole, row);
            let severity = if all_timed { severity(found) } else { Severity::Warning };
            findings.push(context.about_row(INSIDE.id, severity, row, &[part, whole], part, most, text));
        }
    }
}
