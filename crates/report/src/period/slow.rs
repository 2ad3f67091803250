//! Waits of the slowest transactions of a test.

use loadline_model::column;
use loadline_model::format::number;
use loadline_model::slow::{SlowWait, WaitClass};
use minijinja::context;

use super::Period;
use super::words::heading;
use crate::doc::Block;
use crate::spec::TableSpec;
use crate::templates::prose;

/// Waits shown: those that explain most.
const MOST: usize = 8;

/// A sentence and a table for each test.
pub(super) fn blocks(periods: &[Period]) -> Vec<Block> {
    periods.iter().flat_map(|p| of_period(p, &heading(p, periods, "slowest transactions"))).collect()
}

fn of_period(p: &Period, caption: &str) -> Vec<Block> {
    let Some(record) = &p.record else { return Vec::new() };
    let Some(slow) = record.slow() else {
        // A run of an older version says nothing of them.
        let why = record.absent.get(column::SLOW_WAIT.id);
        return why.map(|why| Block::para(prose("slow-unknown", context! { why }))).into_iter().collect();
    };
    let share = |wait: &SlowWait| slow.shares(wait).map(|share| share * 100.0);
    let cause = slow.cause();
    let why = cause.as_ref().err().map(ToString::to_string);
    let words = slow.words();
    let shares = cause.ok().map(share);
    let said = prose("slow", context! { slow, words, shares, why });
    let pct = |wait: &SlowWait, which: usize| number(slow.shares(wait)[which] * 100.0, 1);
    let is_work = |wait: &&SlowWait| wait.class == WaitClass::Background;
    let waits = slow.waits.iter().filter(|wait| !is_work(wait)).take(MOST).chain(slow.waits.iter().filter(is_work));
    let table = TableSpec::<&SlowWait>::new("figures narrow", waits)
        .text("Wait", SlowWait::words)
        .text("Mostly", |wait| &wait.event)
        .number("Slow", "samples", |wait| wait.samples.to_string())
        .number("", "%", |wait| pct(wait, 0))
        .number("Explains", "%", |wait| (!is_work(&wait)).then(|| number(slow.explained(wait) * 100.0, 1)))
        .number("Others", "samples", |wait| wait.others.to_string())
        .number("", "%", |wait| pct(wait, 1))
        .caption(caption);
    [Some(Block::para(said)), Block::table(table.build())].into_iter().flatten().collect()
}
