//! Waits of the slowest transactions of a test.

use loadline_model::column;
use loadline_model::format::number;
use loadline_model::slow::{SlowFigures, SlowWait, WaitClass};
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
    let waits: Vec<(bool, &SlowWait)> = slow
        .waits
        .iter()
        .take(MOST)
        .map(|wait| (false, wait))
        .chain(slow.background.iter().map(|work| (true, work)))
        .collect();
    vec![Block::para(said)].into_iter().chain(table(slow, waits, caption)).collect()
}

fn table(slow: &SlowFigures, waits: Vec<(bool, &SlowWait)>, caption: &str) -> Option<Block> {
    let name = |(background, wait): &(bool, &SlowWait)| match (background, wait.class) {
        (true, _) => format!("during {}", wait.event),
        (_, WaitClass::Other) => wait.event.clone(),
        (_, class) => class.name().to_owned(),
    };
    let pct = |wait: &SlowWait, which: usize| number(slow.shares(wait)[which] * 100.0, 1);
    let table = TableSpec::<(bool, &SlowWait)>::new("figures narrow", waits)
        .text("Wait", |wait| name(&wait))
        .text("Mostly", |(_, wait)| &wait.event)
        .number("Slow", "samples", |(_, wait)| wait.samples.to_string())
        .number("", "%", |(_, wait)| pct(wait, 0))
        .number("Explains", "%", |(background, wait)| (!background).then(|| number(slow.explained(wait) * 100.0, 1)))
        .number("Others", "samples", |(_, wait)| wait.others.to_string())
        .number("", "%", |(_, wait)| pct(wait, 1))
        .caption(caption);
    Block::table(table.build())
}
