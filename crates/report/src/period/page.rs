//! The sections of the page, in order.

use loadline_model::activity::Topic;
use loadline_model::disturbance::why_not_valid;

use super::{Period, counters, load, over_time, time, views};
use crate::content::{kept_tests, kept_verdict, stop};
use crate::doc::{Block, Document, Section};

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
    let tests: Vec<_> = periods.iter().filter_map(|p| p.record.as_ref()).collect();
    let invalid: Vec<String> = tests
        .iter()
        .filter(|r| !r.valid)
        .map(|r| {
            format!(
                "Test {} is {}: {}.",
                r.test,
                r.validity().map_or("not valid", |of| of.name()),
                stop(why_not_valid(r))
            )
        })
        .collect();
    let imported: Vec<String> = tests
        .iter()
        .filter_map(|r| Some(format!("Test {} is {}.", r.test, r.imported.as_ref()?.unchecked())))
        .collect();
    if !imported.is_empty() {
        return (false, imported.into_iter().chain(invalid).collect::<Vec<_>>().join(" "));
    }
    let kept = kept_verdict(tests.len(), kept_tests(tests.iter().copied()));
    match (tests.is_empty(), invalid.is_empty()) {
        (true, _) => (true, "Watched without any load of loadline's own.".to_owned()),
        (false, true) if tests.len() == 1 => (kept.is_empty(), format!("1 test, and it is valid{kept}.")),
        (false, true) => (kept.is_empty(), format!("{} tests, all valid{kept}.", tests.len())),
        (false, false) => (false, invalid.join(" ")),
    }
}

fn cost(periods: &[Period]) -> Vec<Block> {
    let of = |p: &Period| {
        let s = &p.activity.as_ref()?.sampling;
        Some(named(
            p,
            periods.len() > 1,
            &format!(
                "in the window loadline read all counters {} times and sampled the sessions {} times, in one session; the \
                 database took {:.0} ms for all answers, {:.1} % of the window",
                s.readings, s.samples, s.answer_ms, s.answer_pct
            ),
        ))
    };
    periods.iter().filter_map(of).map(Block::para).collect()
}
