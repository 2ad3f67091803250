//! Shares of a whole.

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity};
use crate::interval::{Interval, Reading};
use crate::judge::{Above, Equation, Side, Sides, above, judge};

pub(crate) static SHARES: Law = Law {
    id: "share",
    name: "No share exceeds its whole",
    formula: "0 ≤ x_pct ≤ 100",
    needs: &[
        &["cpu_busy_pct"],
        &["cpu_user_pct"],
        &["cpu_sys_pct"],
        &["cpu_idle_pct"],
        &["cpu_iowait_pct"],
        &["client_cpu_pct"],
        &["device_util_pct"],
        &["data_device_util_pct"],
        &["cache_hit_pct"],
        &["flash_cache_write_pct"],
        &["reads_within_512us_pct"],
        &["checkpoint_share_pct"],
        &["write_pct"],
        &["outside_tx_pct"],
        &["thinking_pct"],
        &["connecting_pct"],
    ],
    tolerance: "none; a warning where most rows exceed 100, as they are then shares of one CPU",
    meaning: "A wrong digit, or CPU time in percent of one CPU",
    check: Check::Own(shares),
};

pub(crate) static CACHE_HITS: Law = Law {
    id: "cache-hits",
    name: "Reads = gets × misses",
    formula: "block_gets_per_s × (1 − cache_hit_pct / 100) = block_reads_per_s",
    needs: &[&["block_gets_per_s", "cache_hit_pct", "block_reads_per_s"]],
    tolerance: "2 %; none where the other rows agree within their digits",
    meaning: "A wrong digit, or reads that bypass the cache",
    check: Check::Own(hits),
};

fn shares(context: &Context<'_>, findings: &mut Findings) {
    for set in SHARES.needs {
        let Some(id) = set.first().copied().filter(|id| context.has(id)) else { continue };
        let beyond = |row: usize| {
            above(|reading| context.interval(id, row, reading), |_| Some(Interval::exact(100.0)))
                .filter(|found| *found != Above::No)
        };
        let rows = context.rows().len();
        let count = context.rows().filter(|row| beyond(*row).is_some()).count();
        let of_one = id.starts_with("cpu_") && count > 2 && count * 3 > rows;
        for row in context.rows() {
            let Some(found) = beyond(row) else { continue };
            let (severity, text) = match (of_one, found) {
                (true, _) => (Severity::Warning, "more than 100 %: it can only be in percent of one CPU"),
                (_, Above::Edge) => (Severity::Warning, "more than 100 % by its last digit"),
                _ => (Severity::Error, "a share of more than 100 %"),
            };
            if findings.wants(SHARES.id, severity) {
                findings.push(context.about_row(SHARES.id, severity, row, &[id], id, Some(100.0), text.to_owned()));
            }
        }
    }
}

fn hits(context: &Context<'_>, findings: &mut Findings) {
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
        law: CACHE_HITS.id,
        formula: CACHE_HITS.formula,
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
