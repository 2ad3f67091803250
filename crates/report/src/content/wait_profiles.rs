//! Waits of the sessions of two sides, per transaction: why one is slower.

use std::collections::BTreeSet;

use loadline_analyze::kpi::THROUGHPUT;
use loadline_model::TestRecord;
use loadline_model::format::duration_ns;

use crate::doc::Table;
use crate::spec::TableSpec;

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
    loadline_analyze::stats::mean(&times)
}

/// The tests of A and those of B that are compared with them.
pub(crate) type Place<'a> = [Vec<&'a TestRecord>; 2];

/// A wait of a place, with its time per transaction on both sides, ns.
type Wait<'a> = (&'a TestRecord, &'a str, f64, f64);

/// A row for each wait whose time per transaction differs, of all `places`.
pub(crate) fn table(places: &[Place<'_>]) -> Option<Table> {
    let (mut rows, mut more) = (Vec::new(), false);
    for [x, y] in places {
        let found = differing(x, y);
        more |= found.len() > MOST;
        rows.extend(found.into_iter().take(MOST));
    }
    let time = |ns: f64| (ns != 0.0).then(|| duration_ns(ns));
    let each = "per transaction";
    TableSpec::<Wait<'_>>::new("figures narrow", rows)
        .text("Workload", |(first, ..)| &first.workload)
        .once()
        .text("Jobs", |(first, ..)| first.jobs)
        .once()
        .text("Wait", |(_, event, ..)| event)
        .number("A", each, |(.., x, _)| time(x))
        .number("B", each, |(.., y)| time(y))
        .number("B − A", each, |(.., x, y)| format!("{}{}", if y > x { "+" } else { "" }, duration_ns(y - x)))
        .caption("What the sessions waited for")
        .sub(if more {
            format!("sampled; the {MOST} that differ most")
        } else {
            "sampled; those that differ".to_owned()
        })
        .if_rows()
}

/// The waits of one place that differ, those that differ most first.
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
    use super::*;

    fn test(tps: f64, waits: &[(&str, u64)]) -> TestRecord {
        let mut record = TestRecord::blank("LGWR-LAT1");
        record.set(THROUGHPUT, tps);
        record.waits.samples = 10;
        record.waits.sessions = waits.iter().map(|(event, n)| ((*event).to_owned(), *n)).collect();
        record
    }

    #[test]
    fn what_differs_most_comes_first_and_what_is_equal_is_left_out() {
        let (a, b) =
            (test(1000.0, &[("CPU", 10), ("IO:Sync", 5)]), test(500.0, &[("CPU", 5), ("IO:Sync", 10), ("Lock:x", 1)]));
        let table = table(&[[vec![&a], vec![&b, &b]]]).unwrap();
        let cells: Vec<Vec<&str>> =
            table.rows.iter().map(|r| r.cells.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(cells[0], ["LGWR-LAT1", "1", "IO:Sync", "500.0 µs", "2.00 ms", "+1.50 ms"]);
        assert_eq!(cells[1], ["", "", "Lock:x", "–", "200.0 µs", "+200.0 µs"]);
        assert_eq!(cells.len(), 2, "the CPU is the same per transaction");
        assert_eq!(table.sub, "sampled; those that differ");
    }
}
