//! The line printed when a test is completed.

use loadline_analyze::kpi::{LATENCY, rate_of};
use loadline_analyze::sweep::{JOBS, swept_value};
use loadline_model::disturbance::judged;
use loadline_model::format::{ABSENT, counted, number};
use loadline_model::record::LevelPoint;
use loadline_model::{ArmName, Column, TestRecord, column};

use crate::columns::value;
use crate::words::{place, unit};

/// The test's first KPI and mean latency, and the redo of log-writer tests. Without line break and verdict.
#[must_use]
pub fn test_line(record: &TestRecord) -> String {
    let figure = |column: &Column, decimals| record.figure(column).map_or(ABSENT.to_owned(), |v| number(v, decimals));
    let jobs = place(JOBS, record.jobs);
    let mut lead = format!("test {:>2}  {:<14}  {jobs:>8}", record.test, record.workload);
    match (&record.level, record.arm) {
        (Some(LevelPoint { level, delay_ms }), arm) => {
            let level = if arm == Some(ArmName::A) { "baseline" } else { level };
            lead += &format!("  {level:<12} {delay_ms:>4} ms");
        }
        (None, Some(arm)) => lead += &format!("  {arm}"),
        (None, None) => {}
    }
    if record.nodes > 1 {
        lead += &format!("  {} nodes", record.nodes);
    }
    // The swept value follows the jobs.
    let swept =
        record.swept.as_deref().map_or(String::new(), |over| format!("  {:>12}", place(over, swept_value(record))));
    if record.group == "log-writer" || record.kpis.is_empty() {
        return format!(
            "{lead}{swept}  {:>10} tps  {:>9} ms  {:>8} MiB/s of redo",
            figure(column::COMMIT_THROUGHPUT_TPS, 0),
            figure(LATENCY, 3),
            figure(column::REDO_MIB_PER_S, 2)
        );
    }
    let rate = rate_of(&[record]);
    let shown = record.figure(rate).map_or(ABSENT.to_owned(), |v| value(rate, v));
    format!("{lead}{swept}  {shown:>10} {:<14}  {:>9} ms", unit(rate), figure(LATENCY, 3))
}

/// Why a test is not valid, or the option that keeps it.
fn verdict(r: &TestRecord) -> String {
    match (&r.invalid_reason, &r.kept_by()[..]) {
        (Some(_), _) if r.is_disturbed() => format!("  ({})", judged(r)),
        (Some(why), _) => format!("  REFUSED: {why}"),
        (None, [_, ..]) => format!("  (kept by {})", r.kept_by().join(" and ")),
        (None, []) => r
            .figure(column::CACHED_PCT_MAX)
            .map_or(String::new(), |pct| format!("  (valid: at most {} % of it from caches)", number(pct, 1))),
    }
}

/// How common the windows of agents were.
fn skew(r: &TestRecord) -> String {
    match column::START_SKEW_MS.cell(r) {
        column::Cell::Number(ms) => {
            format!("  {}, skew ≤ {} ms", counted(r.by_agent.len(), "agent"), number(ms, 3))
        }
        _ => String::new(),
    }
}

/// The line of a test that is done: [`test_line`], or the sizes of a scan, with the verdict.
#[must_use]
pub fn done_line(r: &TestRecord) -> String {
    let again = r.try_of.map_or_else(String::new, |first| format!("  (test {first} again)"));
    if !r.sizes.is_empty() {
        let ms = |column: &Column| r.figure(column).map_or(ABSENT.to_owned(), |ns| number(ns / 1e6, 3));
        return format!(
            "test {:>2}  {:<14}  {} sizes, commit time {} ms at the median, {} ms at the longest{again}{}",
            r.test,
            r.workload,
            r.sizes.len(),
            ms(column::COMMIT_TIME_NS_P50),
            ms(column::COMMIT_TIME_NS_MAX),
            verdict(r)
        );
    }
    test_line(r) + &skew(r) + &again + &verdict(r)
}
