//! Times of each kind of transaction of a mix: of a test, and of two sides beside each other.

use loadline_analyze::paired::paired_ratio;
use loadline_analyze::paired::ratio::levels;
use loadline_analyze::stats::{self, Estimate, Interval};
use loadline_analyze::variants::{Cell, ERROR};
use loadline_model::TestRecord;
use loadline_model::format::{counted, duration_ns, number, whole};
use loadline_model::record::KindFigures;

use super::wait_profiles::Place;
use crate::RunData;
use crate::bars::{Bars, Height};
use crate::doc::{Block, Cell as TableCell, Chart, Notes, Table};
use crate::spec::TableSpec;
use crate::words::{grouped, ratio};

struct Figure {
    name: &'static str,
    unit: &'static str,
    /// In tps or ns.
    of: fn(&KindFigures) -> Option<f64>,
    shown: fn(f64) -> String,
}

const FIGURES: [Figure; 4] = [
    Figure { name: "tps", unit: "tps", of: |kind| Some(kind.tps), shown: whole },
    Figure { name: "p50", unit: "ms", of: |kind| Some(kind.transaction_ns?[1]), shown: ms },
    Figure { name: "p95", unit: "ms", of: |kind| kind.p95_ns, shown: ms },
    Figure { name: "p99", unit: "ms", of: |kind| Some(kind.transaction_ns?[2]), shown: ms },
];
const PERCENTILES: &[Figure] = FIGURES.split_at(1).1;

fn ms(ns: f64) -> String {
    number(ns / 1e6, 3)
}

/// Percentiles of the times of each kind; `None` if all transactions are of one.
pub(crate) fn chart(r: &TestRecord) -> Option<Chart> {
    let height =
        |ns: f64, name: &str, kind: &KindFigures| (ns / 1e6, format!("{}: {name} {}", kind.name, duration_ns(ns)));
    let heights = |kind: &KindFigures| -> Vec<Height> {
        PERCENTILES.iter().map(|of| (of.of)(kind).map(|ns| height(ns, of.name, kind))).collect()
    };
    let bars = Bars {
        title: format!("{} with {}: times of each kind", r.workload, counted(r.jobs as usize, "job")),
        y_label: "Transaction time [ms]".to_owned(),
        places: r.kinds().iter().map(|kind| kind.name.clone()).collect(),
        parts: PERCENTILES.iter().zip(0..).map(|(of, colour)| (of.name.to_owned(), colour)).collect(),
        heights: r.kinds().iter().map(heights).collect(),
        ..Bars::default()
    };
    bars.drawn()
}

/// A chart for each workload of a run with several kinds: of the test with the highest throughput.
pub(crate) fn charts(run: &RunData) -> Option<Block> {
    let with_kinds = run.records.iter().filter(|r| r.is_usable() && !r.kinds().is_empty());
    let tps = |r: &&TestRecord| r.kinds().iter().map(|kind| kind.tps).sum::<f64>();
    let peak = |(_, tests): (&String, Vec<&TestRecord>)| {
        tests.into_iter().max_by(|a, b| tps(a).total_cmp(&tps(b))).and_then(chart)
    };
    Block::charts(2, grouped(with_kinds, |r| &r.workload).into_iter().filter_map(peak))
}

/// A figure of A and of B, and B/A with its 95 % interval, or why there is none.
type Compared = ((f64, f64), f64, Result<Interval, String>);

/// A figure of a kind of transaction on both sides, and a test that has it.
type Line<'a> = (&'a TestRecord, &'a str, &'static Figure, Compared);

/// Value of a figure of a kind in a test.
type InTest<'a> = dyn Fn(&TestRecord) -> Option<f64> + 'a;

/// The figures of each kind in two runs, at the `places` that are compared.
pub(crate) fn of_runs(places: &[Place<'_>]) -> Option<Table> {
    let lines = places.iter().flat_map(|[x, y]| {
        lines(x, |figure| {
            let [a, b] =
                [x, y].map(|tests| Estimate::from_values(&tests.iter().filter_map(|r| figure(r)).collect::<Vec<_>>()));
            let (a, b) = a.zip(b)?;
            let found = stats::ratio(&b, &a)?;
            let why = || "an interval needs two tests of each run (--repeat)".to_owned();
            Some(((a.mean, b.mean), found.value, found.interval.ok_or_else(why)))
        })
    });
    table(lines.collect())
}

/// The figures of each kind in the pairs of a variant and the first.
pub(crate) fn of_pairs<'a>(cells: impl Iterator<Item = &'a Cell<'a>>) -> Option<Table> {
    let lines = cells.flat_map(|cell| {
        let windows: Vec<&TestRecord> = cell.pairs.iter().flatten().flatten().copied().collect();
        lines(&windows, |figure| {
            let pairs = cell.pairs_by(figure);
            let found = paired_ratio(&pairs, ERROR)?;
            let interval = found.interval.ok_or_else(|| found.why_no_interval().unwrap_or_default());
            Some((levels(&pairs)?, found.value, interval))
        })
    });
    table(lines.collect())
}

/// A line for each figure of each kind of `tests` that can be compared.
fn lines<'a>(tests: &[&'a TestRecord], compare: impl Fn(&InTest<'_>) -> Option<Compared>) -> Vec<Line<'a>> {
    let Some(first) = tests.iter().copied().find(|r| !r.kinds().is_empty()) else { return Vec::new() };
    let all = first.kinds().iter().flat_map(|kind| FIGURES.iter().map(move |figure| (kind.name.as_str(), figure)));
    let line = |(kind, figure): (&'a str, &'static Figure)| {
        let in_test = |r: &TestRecord| (figure.of)(r.kinds().iter().find(|of| of.name == kind)?);
        Some((first, kind, figure, compare(&in_test)?))
    };
    all.filter_map(line).collect()
}

fn table(lines: Vec<Line<'_>>) -> Option<Table> {
    let notes = Notes::default();
    let interval = |(_, kind, _, (.., interval)): &Line<'_>| match interval {
        Ok(of) => TableCell::from(format!("{} – {}", ratio(of.low), ratio(of.high))),
        Err(why) => TableCell::absent(notes.mark(why, kind)),
    };
    TableSpec::<&Line<'_>>::new("figures narrow", &lines)
        .text("Workload", |(first, ..)| &first.workload)
        .once()
        .text("Jobs", |(first, ..)| first.jobs)
        .once()
        .text("Kind", |(_, kind, ..)| *kind)
        .once()
        .text("Figure", |(.., figure, _)| figure.name)
        .number("A", "", |(.., figure, (sides, ..))| (figure.shown)(sides.0))
        .number("B", "", |(.., figure, (sides, ..))| (figure.shown)(sides.1))
        .text("Unit", |(.., figure, _)| figure.unit)
        .number("B / A", "", |(.., (_, value, _))| ratio(*value))
        .number("95 % interval", "", interval)
        .caption("Times of each kind of transaction")
        .sub("each interval by itself: of twenty figures that are the same, one seems to differ")
        .notes(&notes)
        .if_rows()
}

#[cfg(test)]
mod tests {
    use loadline_model::Detail;

    use super::*;

    fn test(kinds: &[(&str, f64, f64)]) -> TestRecord {
        let kind = |(name, tps, ms): &(&str, f64, f64)| {
            let [p50, p95, p99] = [1e6, 2e6, 3e6].map(|ns| ms * ns);
            let stored = serde_json::json!({"name": name, "weight": 1, "transactions": 10, "tps": tps,
                "transaction_ns": [p50, p50, p99], "p95_ns": p95});
            serde_json::from_value(stored).unwrap()
        };
        TestRecord { details: vec![Detail::Kinds(kinds.iter().map(kind).collect())], ..TestRecord::blank("TP-MIXED") }
    }

    #[test]
    fn kinds_of_both_runs_are_compared_each_with_its_own() {
        let a = test(&[("small", 80.0, 1.0), ("large", 20.0, 9.0)]);
        let [b, c] = [18.0, 18.2].map(|ms| test(&[("large", 10.0, ms), ("new", 1.0, 1.0)]));
        let cells = |b: &[&TestRecord]| -> Vec<Vec<String>> {
            let table = of_runs(&[[vec![&a, &a], b.to_vec()]]).unwrap();
            table.rows.iter().map(|r| r.cells.iter().map(|c| c.text.clone()).collect()).collect()
        };
        let one = cells(&[&b]);
        assert_eq!(one.len(), 4, "the other kinds are of one side: {one:?}");
        assert_eq!(one[0][2..8], ["large", "tps", "20", "10", "tps", &ratio(0.5)]);
        assert_eq!(one[1][3..8], ["p50", "9.000", "18.000", "ms", &ratio(2.0)]);
        assert!(!one[1][8].contains('–') || one[1][8].len() < 4, "{one:?}");
        let two = cells(&[&b, &c]);
        assert!(two[1][8].contains(" – "), "{two:?}");
        let none = test(&[]);
        assert!(of_runs(&[[vec![&a], vec![&none]]]).is_none() && chart(&none).is_none() && chart(&a).is_some());
    }
}
