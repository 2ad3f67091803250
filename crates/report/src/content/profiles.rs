//! Times of each kind of transaction, of a test and of two sides beside each other; and what the sessions of two sides waited for, per
//! transaction: why one is slower.

use std::collections::BTreeSet;

use loadline_analyze::kpi::THROUGHPUT;
use loadline_analyze::paired::paired_ratio;
use loadline_analyze::paired::ratio::levels;
use loadline_analyze::stats::{self, Estimate, Interval};
use loadline_analyze::variants::{Cell, ERROR};
use loadline_model::TestRecord;
use loadline_model::format::{counted, duration_ns, number, whole};
use loadline_model::record::KindFigures;
use minijinja::context;

use crate::RunData;
use crate::bars::{Bars, Height};
use crate::doc::{Block, Chart, Table};
use crate::spec::TableSpec;
use crate::words::grouped;

struct Figure {
    name: &'static str,
    unit: &'static str,
    /// In tps or ns.
    of: fn(&KindFigures) -> Option<f64>,
}

const FIGURES: [Figure; 4] = [
    Figure { name: "tps", unit: "tps", of: |kind| Some(kind.tps) },
    Figure { name: "p50", unit: "ms", of: |kind| Some(kind.transaction_ns?[1]) },
    Figure { name: "p95", unit: "ms", of: |kind| kind.p95_ns },
    Figure { name: "p99", unit: "ms", of: |kind| Some(kind.transaction_ns?[2]) },
];
const PERCENTILES: &[Figure] = FIGURES.split_at(1).1;

/// Percentiles of the times of each kind; `None` if all transactions are of one.
pub(crate) fn chart(r: &TestRecord) -> Option<Chart> {
    let heights = |kind: &KindFigures| -> Vec<Height> {
        let text = |name: &str, ns: f64| format!("{}: {name} {}", kind.name, duration_ns(ns));
        PERCENTILES.iter().map(|of| (of.of)(kind).map(|ns| (ns / 1e6, text(of.name, ns)))).collect()
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

/// The tests of A and those of B that are compared with them.
pub(crate) type Place<'a> = [Vec<&'a TestRecord>; 2];

/// Tables of the kinds and of the waits in two runs, at the `places` that are compared.
pub(crate) fn of_runs(places: &[Place<'_>]) -> Vec<Table> {
    kinds_of_runs(places).into_iter().chain(waits(places)).collect()
}

/// Tables of the kinds and of the waits in the valid pairs of a variant and the first.
pub(crate) fn of_pairs(cells: &[&Cell<'_>]) -> Vec<Table> {
    let in_pairs = cells.iter().map(|cell| {
        let valid = cell.pairs.iter().flatten().filter(|pair| pair.iter().all(|r| r.is_usable()));
        let (a, b): (Vec<_>, Vec<_>) = valid.map(|[a, b]| (*a, *b)).unzip();
        [a, b]
    });
    let places: Vec<Place<'_>> = in_pairs.collect();
    kinds_of_pairs(cells).into_iter().chain(waits(&places)).collect()
}

/// A figure of A and of B, and B/A with its 95 % interval, or why there is none.
type Compared = ((f64, f64), f64, Result<Interval, String>);

/// A figure of a kind of transaction on both sides, and a test that has it.
type Line<'a> = (&'a TestRecord, &'a str, &'static Figure, Compared);

type InTest<'a> = dyn Fn(&TestRecord) -> Option<f64> + 'a;

fn kinds_of_runs(places: &[Place<'_>]) -> Option<Table> {
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
    kinds(lines.collect())
}

fn kinds_of_pairs(cells: &[&Cell<'_>]) -> Option<Table> {
    let lines = cells.iter().flat_map(|cell| {
        let windows: Vec<&TestRecord> = cell.pairs.iter().flatten().flatten().copied().collect();
        lines(&windows, |figure| {
            let pairs = cell.pairs_by(figure);
            let found = paired_ratio(&pairs, ERROR)?;
            let interval = found.interval.ok_or_else(|| found.why_no_interval().unwrap_or_default());
            Some((levels(&pairs)?, found.value, interval))
        })
    });
    kinds(lines.collect())
}

fn lines<'a>(tests: &[&'a TestRecord], compare: impl Fn(&InTest<'_>) -> Option<Compared>) -> Vec<Line<'a>> {
    let Some(first) = tests.iter().copied().find(|r| !r.kinds().is_empty()) else { return Vec::new() };
    let all = first.kinds().iter().flat_map(|kind| FIGURES.iter().map(move |figure| (kind.name.as_str(), figure)));
    let line = |(kind, figure): (&'a str, &'static Figure)| {
        let in_test = |r: &TestRecord| (figure.of)(r.kinds().iter().find(|of| of.name == kind)?);
        Some((first, kind, figure, compare(&in_test)?))
    };
    all.filter_map(line).collect()
}

fn kinds(lines: Vec<Line<'_>>) -> Option<Table> {
    let row = |(first, kind, figure, (sides, ratio, interval)): &Line<'_>| {
        let shown = |of: f64| if figure.unit == "ms" { number(of / 1e6, 3) } else { whole(of) };
        let [a, b] = [sides.0, sides.1].map(shown);
        context! {
            workload => first.workload, jobs => first.jobs, kind, name => figure.name, unit => figure.unit, a, b, ratio,
            interval => interval.as_ref().ok(), why => interval.as_ref().err(),
        }
    };
    TableSpec::new("figures narrow", &lines)
        .columns("table of kinds", row)
        .caption("Times of each kind of transaction")
        .sub("each interval by itself: of twenty figures that are the same, one seems to differ")
        .if_rows()
}

/// Waits shown of a workload and number of jobs: those that differ most.
const MOST: usize = 4;
/// A difference below this share of a transaction's time is not shown.
const LEAST: f64 = 0.02;

/// Mean time in `event` per transaction, ns, over `tests`; `None` without samples.
fn per_transaction(tests: &[&TestRecord], event: &str) -> Option<f64> {
    let of = |r: &&TestRecord| {
        let tps = r.figure(THROUGHPUT).filter(|tps| *tps > 0.0)?;
        Some(r.waits.mean_sessions(|one| one == event)? / tps * 1e9)
    };
    let times: Vec<f64> = tests.iter().filter_map(of).collect();
    stats::mean(&times)
}

/// A wait of a place, with its time per transaction on both sides, ns.
type Wait<'a> = (&'a TestRecord, &'a str, f64, f64);

fn waits(places: &[Place<'_>]) -> Option<Table> {
    let (mut rows, mut more) = (Vec::new(), false);
    for [x, y] in places {
        let found = differing(x, y);
        more |= found.len() > MOST;
        rows.extend(found.into_iter().take(MOST));
    }
    let which = if more { format!("the {MOST} that differ most") } else { "those that differ".to_owned() };
    let row = |(r, event, a, b): Wait<'_>| context! { workload => r.workload, jobs => r.jobs, event, a, b };
    let table = TableSpec::<Wait<'_>>::new("figures narrow", rows).columns("table of waits", row);
    table.caption("What the sessions waited for").sub(format!("sampled; {which}")).if_rows()
}

fn differing<'a>(a: &[&'a TestRecord], b: &[&'a TestRecord]) -> Vec<Wait<'a>> {
    let events: BTreeSet<&str> = a.iter().chain(b).flat_map(|r| r.waits.sessions.keys()).map(String::as_str).collect();
    let both = |event| Some((a[0], event, per_transaction(a, event)?, per_transaction(b, event)?));
    let mut found: Vec<Wait<'_>> = events.into_iter().filter_map(both).collect();
    let whole: f64 = found.iter().map(|(.., x, y)| x.max(*y)).sum();
    found.retain(|(.., x, y)| (y - x).abs() > LEAST * whole);
    found.sort_by(|(.., x, y), (.., v, w)| (w - v).abs().total_cmp(&(y - x).abs()));
    found
}

#[cfg(test)]
mod tests {
    use loadline_model::Detail;

    use super::*;
    use crate::words::ratio;

    fn test(kinds: &[(&str, f64, f64)]) -> TestRecord {
        let kind = |(name, tps, ms): &(&str, f64, f64)| {
            let [p50, p95, p99] = [1e6, 2e6, 3e6].map(|ns| ms * ns);
            let stored = serde_json::json!({"name": name, "weight": 1, "transactions": 10, "tps": tps,
                "transaction_ns": [p50, p50, p99], "p95_ns": p95});
            serde_json::from_value(stored).unwrap()
        };
        TestRecord { details: vec![Detail::Kinds(kinds.iter().map(kind).collect())], ..TestRecord::blank("TP-MIXED") }
    }

    fn texts(table: &Table) -> Vec<Vec<String>> {
        table.rows.iter().map(|r| r.cells.iter().map(|c| c.text.clone()).collect()).collect()
    }

    #[test]
    fn kinds_of_both_runs_are_compared_each_with_its_own() {
        let a = test(&[("small", 80.0, 1.0), ("large", 20.0, 9.0)]);
        let [b, c] = [18.0, 18.2].map(|ms| test(&[("large", 10.0, ms), ("new", 1.0, 1.0)]));
        let cells = |b: &[&TestRecord]| texts(&kinds_of_runs(&[[vec![&a, &a], b.to_vec()]]).unwrap());
        let one = cells(&[&b]);
        assert_eq!(one.len(), 4, "the other kinds are of one side: {one:?}");
        assert_eq!(one[0][2..8], ["large", "tps", "20", "10", "tps", &ratio(0.5)]);
        assert_eq!(one[1][3..8], ["p50", "9.000", "18.000", "ms", &ratio(2.0)]);
        assert!(!one[1][8].contains('–') || one[1][8].len() < 4, "{one:?}");
        let two = cells(&[&b, &c]);
        assert!(two[1][8].contains(" – "), "{two:?}");
        let none = test(&[]);
        assert!(kinds_of_runs(&[[vec![&a], vec![&none]]]).is_none() && chart(&none).is_none() && chart(&a).is_some());
    }

    fn sampled(tps: f64, waits: &[(&str, u64)]) -> TestRecord {
        let mut record = TestRecord::blank("LGWR-LAT1");
        record.set(THROUGHPUT, tps);
        record.waits.samples = 10;
        record.waits.sessions = waits.iter().map(|(event, n)| ((*event).to_owned(), *n)).collect();
        record
    }

    #[test]
    fn what_differs_most_comes_first_and_what_is_equal_is_left_out() {
        let a = sampled(1000.0, &[("CPU", 10), ("IO:Sync", 5)]);
        let b = sampled(500.0, &[("CPU", 5), ("IO:Sync", 10), ("Lock:x", 1)]);
        let table = waits(&[[vec![&a], vec![&b, &b]]]).unwrap();
        let cells = texts(&table);
        assert_eq!(cells[0], ["LGWR-LAT1", "1", "IO:Sync", "500.0 µs", "2.00 ms", "+1.50 ms"]);
        assert_eq!(cells[1], ["", "", "Lock:x", "–", "200.0 µs", "+200.0 µs"]);
        assert_eq!(cells.len(), 2, "the CPU is the same per transaction");
        assert_eq!(table.sub, "sampled; those that differ");
    }
}
