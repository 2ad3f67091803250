//! What the sessions of two sides waited for, per transaction: why one is slower.

use std::collections::BTreeMap;

use loadline_analyze::kpi::THROUGHPUT;
use loadline_model::TestRecord;
use loadline_model::format::{ABSENT, duration_ns};

use crate::doc::{Head, Row, Table};

/// Waits shown of a workload and number of jobs: those that differ most.
const MOST: usize = 4;
/// A difference below this share of a transaction's time is not shown.
const LEAST: f64 = 0.02;

/// Mean time in `event` per transaction, ns, over `tests`; `None` without samples.
fn per_transaction(tests: &[&TestRecord], event: &str) -> Option<f64> {
    let of = |r: &&TestRecord| {
        let tps = r.figure(THROUGHPUT).filter(|tps| *tps > 0.0)?;
        Some(r.waits.mean_sessions(&[event])? / tps * 1e9)
    };
    let times: Vec<f64> = tests.iter().filter_map(of).collect();
    loadline_analyze::stats::mean(&times)
}

/// What tests must have in common.
fn place(test: &TestRecord) -> (&str, u32, &BTreeMap<String, i64>) {
    (&test.workload, test.jobs, &test.parameters)
}

/// A row for each wait whose time per transaction differs, of all places at which both sides have valid tests.
pub(crate) fn table(a: &[&TestRecord], b: &[&TestRecord]) -> Option<Table> {
    let mut rows = Vec::new();
    let (mut seen, mut more) = (Vec::new(), false);
    for first in a.iter().filter(|r| r.valid) {
        if seen.contains(&place(first)) {
            continue;
        }
        seen.push(place(first));
        let [x, y] = [a, b].map(|side| {
            side.iter().copied().filter(|r| r.valid && place(r) == place(first)).collect::<Vec<&TestRecord>>()
        });
        let (all, of_place) = rows_of(first, &x, &y);
        more |= all > of_place.len();
        rows.extend(of_place);
    }
    let numbers = ["A", "B", "B − A"].map(|title| Head::number(title, "per transaction"));
    let head = ["Workload", "Jobs", "Wait"].map(Head::text).into_iter().chain(numbers);
    let caption = "What the sessions waited for".to_owned();
    let sub =
        if more { format!("sampled; the {MOST} that differ most") } else { "sampled; those that differ".to_owned() };
    (!rows.is_empty()).then(|| Table { caption, sub, ..Table::of("figures narrow", head, rows) })
}

/// The waits that differ, and a row for each of the first.
fn rows_of(first: &TestRecord, a: &[&TestRecord], b: &[&TestRecord]) -> (usize, Vec<Row>) {
    let mut events: Vec<&str> = a.iter().chain(b).flat_map(|r| r.waits.sessions.keys()).map(String::as_str).collect();
    events.sort_unstable();
    events.dedup();
    let both = |event: &str| Some((per_transaction(a, event)?, per_transaction(b, event)?));
    let mut found: Vec<(&str, f64, f64)> =
        events.into_iter().filter_map(|event| both(event).map(|(x, y)| (event, x, y))).collect();
    let whole: f64 = found.iter().map(|(_, x, y)| x.max(*y)).sum();
    found.retain(|(_, x, y)| (y - x).abs() > LEAST * whole);
    found.sort_by(|(_, x, y), (_, v, w)| (w - v).abs().total_cmp(&(y - x).abs()));
    let row = |(n, (event, x, y)): (usize, &(&str, f64, f64))| {
        let place =
            if n == 0 { [first.workload.clone(), first.jobs.to_string()] } else { [String::new(), String::new()] };
        let time = |ns: f64| if ns == 0.0 { ABSENT.to_owned() } else { duration_ns(ns) };
        let more = format!("{}{}", if y > x { "+" } else { "" }, duration_ns(y - x));
        let cells = place.into_iter().chain([(*event).to_owned(), time(*x), time(*y), more]);
        Row { first: n == 0, ..Row::of(cells) }
    };
    (found.len(), found.iter().take(MOST).enumerate().map(row).collect())
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
        let table = table(&[&a], &[&b, &b]).unwrap();
        let cells: Vec<Vec<&str>> =
            table.rows.iter().map(|r| r.cells.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(cells[0], ["LGWR-LAT1", "1", "IO:Sync", "500.0 µs", "2.00 ms", "+1.50 ms"]);
        assert_eq!(cells[1], ["", "", "Lock:x", "–", "200.0 µs", "+200.0 µs"]);
        assert_eq!(cells.len(), 2, "the CPU is the same per transaction");
        assert_eq!(table.sub, "sampled; those that differ");
    }

    #[test]
    fn invalid_tests_and_other_work_are_left_out() {
        let (a, mut b) = (test(1000.0, &[("CPU", 10)]), test(500.0, &[("CPU", 10)]));
        b.valid = false;
        assert!(table(&[&a], &[&b]).is_none());
        b.valid = true;
        b.jobs = 2;
        assert!(table(&[&a], &[&b]).is_none());
    }
}
