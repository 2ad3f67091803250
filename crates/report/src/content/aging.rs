//! How a database grows old in a long window: throughput, 99th percentile, size of its tables and what is unused in them.

use loadline_analyze::steady::{Drift, drift};
use loadline_model::record::AgePoint;
use loadline_model::{Column, TestRecord, column};
use minijinja::context;

use crate::doc::{Block, Chart, Section};
use crate::platform_run::PlatformRun;
use crate::svg;
use crate::templates::prose;
use crate::words::{heading_of, value};

pub(crate) fn section(sides: &[PlatformRun<'_>]) -> Section {
    let mut blocks = Vec::new();
    for (colour, side) in sides.iter().enumerate() {
        for test in side.run.records.iter().filter(|r| !r.aging().is_empty()) {
            blocks.push(Block::para(verdict(test, if sides.len() > 1 { &side.label } else { "" })));
            blocks.extend(Block::charts(2, charts(test, colour)));
        }
    }
    Section::new("aging", "Aging", blocks)
}

pub(crate) fn verdict(test: &TestRecord, platform: &str) -> String {
    let rates: Vec<f64> = test.aging().iter().map(|point| point.tps).collect();
    // Of a cache that is still filled at first the second half says more.
    let [found, later] = [&rates[..], &rates[rates.len() / 2..]].map(drift);
    let p99 = test.aging().iter().map(|point| Some(point.p99_ns? as f64)).collect::<Option<Vec<f64>>>();
    let told = |of: Drift| format!("{:+.1} % ({:.1} standard errors)", of.change * 100.0, of.errors.abs());
    let sizes = column::WEAR.map(|column| {
        let of = |point: &AgePoint| point.sizes.get(column.id).map(|v| value(column, *v));
        let ends = test.aging().first().and_then(of).zip(test.aging().iter().rev().find_map(of));
        let why = test.absent.get(column.id).cloned().unwrap_or_else(|| "not measured".to_owned());
        context! { title => column.title, unit => column.unit, ends, why }
    });
    let context = context! {
        platform, test => test.test, workload => test.workload, jobs => test.jobs,
        minutes => test.aging().last().map(|point| point.t_s / 60.0),
        parts => test.aging().len(),
        usable => test.is_usable(),
        interrupted => test.figure(column::COMMIT_THROUGHPUT_TPS).is_none(),
        disturbed => test.is_disturbed(),
        rate => test.load().has_rate(),
        whole => found.map(told),
        later => later.map(told),
        p99 => p99.and_then(|p99| drift(&p99)).map(told),
        falls => found.is_some_and(|drift| drift.errors <= -Drift::LIMIT),
        falls_later => later.is_some_and(|drift| drift.errors <= -Drift::LIMIT_OF_HALF),
        rises => found.is_some_and(|drift| drift.errors >= Drift::LIMIT),
        least => found.and_then(|drift| drift.least()),
        sizes,
    };
    prose("aging", context)
}

/// Throughput, 99th percentile and sizes over the time since the window start.
fn charts(test: &TestRecord, colour: usize) -> impl Iterator<Item = Chart> {
    let chart = |column: &Column, of: &dyn Fn(&AgePoint) -> Option<f64>| {
        let points = test.aging().iter().filter_map(|point| Some((point.t_s / 60.0, of(point)?)));
        let line = svg::ChartLine::through(&format!("test {}", test.test), colour, points);
        if line.points.len() < 2 {
            return None;
        }
        let title = format!("{}, test {}: {}", test.workload, test.test, column.title.to_lowercase());
        let labels = ["Time since window start [min]".to_owned(), heading_of(column, false)];
        svg::Chart::of_lines(title, labels, vec![line], (480.0, 220.0)).drawn()
    };
    let from_due = test.load().has_rate();
    let p99 = if from_due { column::RESPONSE_TIME_NS_P99 } else { column::TRANSACTION_TIME_NS_P99 };
    let tps = chart(column::COMMIT_THROUGHPUT_TPS, &|point| Some(point.tps));
    let times = chart(p99, &|point| point.p99_ns.map(|ns| ns as f64 / 1e6));
    let sizes = column::WEAR.map(|column| chart(column, &|point| point.sizes.get(column.id).copied()));
    [tps, times].into_iter().chain(sizes).flatten()
}
