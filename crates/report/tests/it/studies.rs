//! Published studies as reports: their factors and tables.

use std::collections::BTreeMap;

use loadline_model::column::{self, column};
use loadline_model::limits::SizePoint;
use loadline_model::{Detail, TestRecord};
use loadline_report::{Format, RunData, end_page};

use crate::common::*;

const DATA_LOAD: &str = include_str!("../../../../references/data-load-exadata-x4-2.csv");
/// Columns that identify a test.
const IDENTITY: usize = 6;

/// The tests of `platform` in a published table, with its figures.
fn published(csv: &str, platform: &str, product: [&str; 2]) -> RunData {
    let mut lines = csv.lines();
    let ids: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut m = manifest(platform, "7");
    [m.target.product, m.target.version] = product.map(str::to_owned);
    m.plan.workloads.clear();
    let test = |line: &str| -> TestRecord {
        let cells: Vec<&str> = line.split(',').collect();
        let row: BTreeMap<&str, &str> = ids.iter().copied().zip(cells.iter().copied()).collect();
        let number = |id: &str| row[id].parse().unwrap();
        let mut r = record(&m, number("test"), row["workload"], number("jobs"), 1.0, 1.0);
        r.nodes = number("nodes");
        r.checks.clear();
        r.figures.clear();
        r.absent.clear();
        r.waits = Default::default();
        for (id, text) in ids.iter().zip(cells).skip(IDENTITY) {
            r.set(column(id).unwrap(), text.parse().unwrap());
        }
        r
    };
    let records = lines.filter(|line| line.starts_with(&format!("{platform},"))).map(test).collect();
    RunData::new(m, records, Vec::new())
}

fn assert_has(page: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(page.contains(wanted), "the page lacks '{wanted}'");
    }
}

#[test]
fn the_factors_of_the_log_writer_study_are_computed() {
    let csv = include_str!("../../../../references/log-writer-exadata.csv");
    let of = |name: &str| published(csv, name, ["Oracle", "19c"]);
    let page = text(&[of("X5-2"), of("X9M-2")], Format::Html);
    let factors = ["4.95 at 48", "8.25 at 48", "one test each: no interval"];
    assert_has(&page, &factors);
    assert_has(&page, &["61 tests, all valid.", "still rising at 72 jobs"]);
}

fn data_load() -> RunData {
    let mut run = published(DATA_LOAD, "X4-2", ["Oracle", "12c"]);
    for r in &mut run.records {
        let kpis = [column::ROWS_PER_S, column::COMMIT_THROUGHPUT_TPS, column::SQL_SERVICE_TIME_S];
        r.group = "data-load".to_owned();
        r.kpis = kpis.map(|c| c.id.to_owned()).into();
        r.details.push(Detail::Swept("rows_per_tx".to_owned()));
        let figure = |r: &TestRecord, column| r.figure(column).unwrap();
        let (rows, tps) = (figure(r, column::ROWS_PER_TX), figure(r, column::TX_PER_S));
        r.parameters.insert("rows".to_owned(), rows as i64);
        r.set(column::COMMIT_THROUGHPUT_TPS, tps);
        // The study prints no latency: with one job its inverse is the transaction time.
        r.set(column::COMMIT_LATENCY_MS, 1e3 / tps);
    }
    run
}

#[test]
fn the_report_has_the_table_of_the_data_load_study() {
    let csv = text(&[data_load()], Format::Csv);
    assert_eq!(csv.lines().count(), DATA_LOAD.lines().count());
    for (ours, published) in csv.lines().zip(DATA_LOAD.lines()) {
        assert!(ours.starts_with(&format!("{published},")), "{published}\n{ours}");
    }
    // Shown tables have all of its columns too, in its order.
    let plain = text(&[data_load()], Format::Text);
    let table = plain.split("X4-2 – DBL-11 (run 7").nth(1).unwrap();
    let row = table.lines().find(|l| l.split_whitespace().next() == Some("8")).unwrap();
    let wanted = "8 1 1 1 100 1 27,020 270 0.003501 1,490 3,257 53.0 27.00 296 156.0 3 128.0 310";
    assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), wanted);
}

#[test]
fn rows_per_transaction_were_swept() {
    let page = text(&[data_load()], Format::Html);
    assert_has(&page, &["DBL-11: rows over rows/tx", "DBL-11: SQL service time over rows/tx"]);
    assert_has(&page, &["still rising at 100 rows/tx (+7.1 % over 50)"]);
    insta::assert_snapshot!("data_load_study", end_page(&data_load(), Some(100)));
}

#[test]
fn on_a_busy_disk_the_lowest_deciles_are_used() {
    let rows = include_str!("../../../analyze/tests/data/commit-time-by-redo.csv").lines();
    let mut run = run("busy disk", "run-busy", 1.0);
    run.records.truncate(1);
    let mut scan = scan(&run.manifest, 2, None, 0.0);
    let sizes = rows
        .map(|l| l.split(',').collect::<Vec<_>>())
        .filter(|r| r[0] == "1 MiB")
        .map(|r| SizePoint {
            idle_s: 0.0,
            redo_bytes: r[1].parse().unwrap(),
            commit_ns: r[2].split(' ').map(|ns| ns.parse().unwrap()).collect(),
            write_ns: Vec::new(),
        })
        .collect();
    scan.details = vec![Detail::Sizes(sizes)];
    run.records.push(scan);
    run.manifest.target.settings.insert("flush_at_bytes".to_owned(), "1048576".to_owned());
    let page = text(&[run], Format::Html);
    let lowest = "(in the lowest deciles: stalls blur the medians)";
    assert_has(&page, &[lowest, "flush_at_bytes = 1048576 (1.0 MiB).", "cut off above"]);
}
