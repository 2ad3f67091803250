//! Shares of a whole.

use super::Law;
use crate::audit::context::Context;
use crate::audit::finding::Findings;
use crate::audit::interval::{Interval, Reading};
use crate::audit::judge::{Equation, Limit, Side, Sides, above, judge, keep};

pub(super) fn shares(context: &Context<'_>, findings: &mut Findings) {
    for set in super::find("share").into_iter().flat_map(Law::sets) {
        let &[id] = set.as_slice() else { continue };
        if !context.has(id) {
            continue;
        }
        let exceeds = |row: usize| above(|r| context.interval(id, row, r), |_| Some(Interval::exact(100.0)));
        // The CPU time of one process, and a device that serves several requests at once, may have more.
        let one = id.starts_with("cpu_") || id.ends_with("_util_pct");
        let text = if one {
            "more than 100 %: it can only be in percent of one CPU or channel"
        } else {
            "a share of more than 100 %"
        };
        let sure = context.is_sure(&set);
        let limit = Limit { law: "share", columns: &set, target: id, strict: sure || !one, sure: sure && !one };
        keep(&limit, &exceeds, &|_| (Some(100.0), text.to_owned()), context, findings);
    }
}

pub(super) fn hits(context: &Context<'_>, findings: &mut Findings) {
    let columns = ["block_gets_per_s", "cache_hit_pct", "block_reads_per_s"];
    let of = |row: usize| {
        Sides::of(row, |reading| {
            let hits = context.interval("cache_hit_pct", row, reading)?.scaled(0.01);
            let misses = Interval::exact(1.0).minus(hits);
            let misses = misses.not_negative();
            let expected = context.interval("block_gets_per_s", row, reading)?.times(misses);
            let reads = context.interval("block_reads_per_s", row, reading)?;
            let gets = context.interval("block_gets_per_s", row, Reading::Rounded)?.high.max(1.0);
            // As a share of the gets, so that no quotient has a 0 below it.
            Some(reads.minus(expected).scaled(1.0 / gets))
        })
    };
    let all: Vec<Sides> = context.rows().filter_map(of).collect();
    let recompute = |row: usize, _: f64| {
        Some(context.value("block_gets_per_s", row)? * (1.0 - context.value("cache_hit_pct", row)? / 100.0))
    };
    let equation = Equation {
        law: "cache-hits",
        columns: &columns,
        target: "block_reads_per_s",
        equal: 0.0,
        above: Side::Unless("more was read than missed: reads bypass the cache, or read ahead"),
        below: Side::Never("fewer blocks were read than missed"),
        slack: 0.02,
        recompute: &recompute,
    };
    judge(&equation, &all, context, findings);
}
