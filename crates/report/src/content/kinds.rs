//! Times of each kind of transaction of a mix: of a test, and of two sides beside each other.

use loadline_analyze::stats::mean;
use loadline_model::TestRecord;
use loadline_model::format::{counted, duration_ns, number, whole};
use loadline_model::record::KindFigures;

use super::wait_profiles::by_place;
use crate::RunData;
use crate::bars::{Bars, Height};
use crate::doc::{Block, Chart, Table};
use crate::spec::TableSpec;
use crate::words::{grouped, ratio};

/// Names of the percentiles, and what they are of a kind, ns.
type Percentile = (&'static str, fn(&KindFigures) -> Option<f64>);

const PERCENTILES: [Percentile; 3] = [
    ("p50", |kind| Some(kind.transaction_ns?[1])),
    ("p95", |kind| kind.p95_ns),
    ("p99", |kind| Some(kind.transaction_ns?[2])),
];

/// Percentiles of the times of each kind; `None` if all transactions are of one.
pub(crate) fn chart(r: &TestRecord) -> Option<Chart> {
    let height =
        |ns: f64, name: &str, kind: &KindFigures| (ns / 1e6, format!("{}: {name} {}", kind.name, duration_ns(ns)));
    let heights = |kind: &KindFigures| -> Vec<Height> {
        PERCENTILES.iter().map(|(name, of)| of(kind).map(|ns| height(ns, name, kind))).collect()
    };
    let bars = Bars {
        title: format!("{} with {}: times of each kind", r.workload, counted(r.jobs as usize, "job")),
        y_label: "Transaction time [ms]".to_owned(),
        places: r.kinds.iter().map(|kind| kind.name.clone()).collect(),
        parts: PERCENTILES.iter().zip(0..).map(|((name, _), colour)| ((*name).to_owned(), colour)).collect(),
        heights: r.kinds.iter().map(heights).collect(),
        ..Bars::default()
    };
    bars.drawn()
}

/// A chart for each workload of a run with several kinds: of the test with the highest throughput.
pub(crate) fn charts(run: &RunData) -> Option<Block> {
    let with_kinds = run.records.iter().filter(|r| r.is_usable() && !r.kinds.is_empty());
    let tps = |r: &&TestRecord| r.kinds.iter().map(|kind| kind.tps).sum::<f64>();
    let peak = |(_, tests): (&String, Vec<&TestRecord>)| {
        tests.into_iter().max_by(|a, b| tps(a).total_cmp(&tps(b))).and_then(chart)
    };
    Block::charts(2, grouped(with_kinds, |r| &r.workload).into_iter().filter_map(peak))
}

/// Throughput and times of each kind of a test, with their chart; nothing if all transactions are of one.
pub(crate) fn of_test(r: &TestRecord, caption: &str) -> Option<Block> {
    let ms = |ns: Option<f64>| ns.map(|ns| number(ns / 1e6, 3));
    let mut table = TableSpec::<&KindFigures>::of("figures narrow", &r.kinds)
        .text("Kind", |kind| &kind.name)
        .number("Weight", "", |kind| kind.weight.to_string())
        .number("Throughput", "tps", |kind| whole(kind.tps))
        .number("Mean", "ms", |kind| ms(kind.transaction_ns.map(|times| times[0])))
        .caption(caption);
    for (name, of) in PERCENTILES {
        table = table.number(name, "ms", move |kind| ms(of(kind)));
    }
    Block::beside(chart(r), Block::table(table.build()))
}

/// A kind of a place, with means of throughput and percentiles over the tests of both sides.
#[derive(Clone, Copy)]
struct Line<'a> {
    first: &'a TestRecord,
    name: &'a str,
    of: [[Option<f64>; 4]; 2],
}

/// A row for each kind of transaction of the places at which both sides have valid tests.
pub(crate) fn compared(a: &[&TestRecord], b: &[&TestRecord]) -> Option<Table> {
    let mut lines = Vec::new();
    for (at, x) in by_place(a) {
        let y = by_place(b).into_iter().find(|(other, _)| *other == at).map(|(_, tests)| tests).unwrap_or_default();
        let Some(first) = x.iter().copied().find(|r| !r.kinds.is_empty()) else { continue };
        let line = |kind: &'_ KindFigures| [&x, &y].map(|tests| means(tests, &kind.name));
        let both = first.kinds.iter().map(|kind| Line { first, name: &kind.name, of: line(kind) });
        lines.extend(both.filter(|line| line.of[1][0].is_some()));
    }
    let mut table = TableSpec::<Line<'_>>::of("figures", lines)
        .text("Workload", |line| &line.first.workload)
        .once()
        .text("Jobs", |line| line.first.jobs)
        .once()
        .text("Kind", |line| line.name);
    for (at, figure) in ["tps", "p50", "p95", "p99"].into_iter().enumerate() {
        for (side, name) in ["A", "B"].into_iter().enumerate() {
            table = table.number(&format!("{name} {figure}"), if at == 0 { "" } else { "ms" }, move |line| {
                line.of[side][at].map(|value| if at == 0 { whole(value) } else { number(value / 1e6, 3) })
            });
        }
        table = table.number("B / A", "", move |line| line.of[0][at].zip(line.of[1][at]).map(|(a, b)| ratio(b / a)));
    }
    table.caption("Times of each kind of transaction").sub("means over tests, without an interval").if_rows()
}

/// Means of throughput and percentiles of the kind `name` over `tests`; `None` where no test has it.
fn means(tests: &[&TestRecord], name: &str) -> [Option<f64>; 4] {
    let kinds = || tests.iter().flat_map(|r| &r.kinds).filter(|kind| kind.name == name);
    let of = |figure: fn(&KindFigures) -> Option<f64>| mean(&kinds().filter_map(figure).collect::<Vec<_>>());
    let [(_, p50), (_, p95), (_, p99)] = PERCENTILES;
    [of(|kind| Some(kind.tps)), of(p50), of(p95), of(p99)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(kinds: &[(&str, f64, f64)]) -> TestRecord {
        let kind = |(name, tps, ms): &(&str, f64, f64)| KindFigures {
            name: (*name).to_owned(),
            weight: 1,
            transactions: Some(10),
            tps: *tps,
            transaction_ns: Some([ms * 1e6, ms * 1e6, ms * 3e6]),
            p95_ns: Some(ms * 2e6),
        };
        TestRecord { kinds: kinds.iter().map(kind).collect(), ..TestRecord::blank("TP-MIXED") }
    }

    #[test]
    fn kinds_of_both_sides_are_compared_each_with_its_own() {
        let (a, b) =
            (test(&[("small", 80.0, 1.0), ("large", 20.0, 9.0)]), test(&[("large", 10.0, 18.0), ("new", 1.0, 1.0)]));
        let table = compared(&[&a, &a], &[&b]).unwrap();
        let cells: Vec<Vec<&str>> =
            table.rows.iter().map(|r| r.cells.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(cells.len(), 1, "the others are of one side");
        assert_eq!(cells[0][2..6], ["large", "20", "10", &ratio(0.5)]);
        assert_eq!(cells[0][6..9], ["9.000", "18.000", &ratio(2.0)]);
        assert!(compared(&[&a], &[&test(&[])]).is_none() && chart(&test(&[])).is_none() && chart(&a).is_some());
    }
}
