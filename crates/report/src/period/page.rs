//! The sections of the page, in order.

use loadline_model::activity::Topic;
use loadline_model::disturbance::why_not_valid;
use loadline_model::{Imported, TestRecord, Validity};
use minijinja::context;

use super::{Period, counters, load, over_time, time, views};
use crate::content::{kept_tests, stop, verdict as tests_verdict};
use crate::doc::{Block, Document, Section};
use crate::templates::prose;

pub(super) fn document(periods: &[Period]) -> Document {
    let mut sections = vec![
        Section::of("answer", "The test", time::answer(periods)),
        Section::of("load", "Load profile", load::blocks(periods)),
        Section::of("time", "Time model", time::model(periods)),
        Section::of("waits", "Top waits", time::waits(periods)),
        Section::of("over-time", "Over time", over_time::blocks(periods)),
        Section::of("latency", "Latencies", time::latencies(periods)),
    ];
    sections.extend(counters::sections(periods));
    sections
        .extend(Topic::ALL.map(|topic| Section::of(views::id(topic), topic.title(), views::blocks(topic, periods))));
    sections.push(Section::of("cost", "What the sampling cost", cost(periods)));
    sections.push(Section::of("not-here", "Not on this page", views::missing(periods)));
    sections.retain(|s| !s.blocks.is_empty());
    let several = periods.len() > 1;
    let (all_well, verdict) = verdict(periods);
    Document {
        title: periods.iter().map(|p| p.title.as_str()).collect::<Vec<_>>().join(" · "),
        subtitle: periods.iter().map(|p| p.subtitle.as_str()).collect::<Vec<_>>().join(" · "),
        all_well,
        verdict,
        remarks: periods.iter().flat_map(|p| p.remarks.iter().map(move |r| named(p, several, r))).collect(),
        sections,
        ..Document::default()
    }
}

fn named(period: &Period, several: bool, text: &str) -> String {
    let of = if several { format!("{}: ", period.label) } else { String::new() };
    format!("{of}{}.", stop(text))
}

/// Whether all tests are valid, and what to say of them.
fn verdict(periods: &[Period]) -> (bool, String) {
    let tests = || periods.iter().filter_map(|p| p.record.as_ref());
    let of_test = |r: &TestRecord| {
        let (imported, validity) = (r.imported.as_ref().map(Imported::unchecked), r.validity().map(Validity::name));
        context! { test => r.test, imported, validity, why => (!r.valid).then(|| why_not_valid(r)) }
    };
    let all_well = tests().all(|r| r.valid && r.imported.is_none()) && kept_tests(tests()).is_none();
    let each: Vec<_> = tests().map(of_test).collect();
    (
        all_well,
        prose("verdict-of-tests", context! { tests => each, all_well, verdict => tests_verdict(tests(), false) }),
    )
}

/// What reading counters and sampling sessions cost.
fn cost(periods: &[Period]) -> Vec<Block> {
    let said = |p: &Period| Some(named(p, periods.len() > 1, &prose("cost", &p.activity.as_ref()?.sampling)));
    periods.iter().filter_map(said).map(Block::para).collect()
}
