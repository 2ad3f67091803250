//! Published studies as reports: their factors and tables.

use std::collections::BTreeMap;

use loadline_model::column;
use loadline_model::{Detail, TestRecord};
use loadline_report::{Format, RunData, end_page};
use serde_json::{Value, json};

use crate::common::*;

const DATA_LOAD: &str = include_str!("../../../../references/data-load-exadata-x4-2.csv");

/// The tests of `platform` in a published table, with its figures and `more`.
fn published(csv: &str, platform: &str, product: [&str; 2], more: &Value) -> RunData {
    let mut m = manifest(platform, "7");
    [m.target.product, m.target.version] = product.map(str::to_owned);
    m.plan.workloads.clear();
    let bare = TestRecord {
        checks: Vec::new(),
        absent: BTreeMap::new(),
        waits: Default::default(),
        figures: BTreeMap::new(),
        ..record(&m, 1, "", 1, 1.0, 1.0)
    };
    let mut records = tests(&patched(&bare, more.clone()), csv);
    records.retain(|r| r.platform == platform);
    made(m, records)
}

#[test]
fn the_factors_of_the_log_writer_study_are_computed() {
    let csv = include_str!("../../../../references/log-writer-exadata.csv");
    let of = |name: &str| published(csv, name, ["Oracle", "19c"], &json!({}));
    assert_says(
        &text(&[of("X5-2"), of("X9M-2")], Format::Html),
        &["4.95 at 48", "8.25 at 48", "one test each: no interval", "61 tests, all valid.", "still rising at 72 jobs"],
    );
}

fn data_load() -> RunData {
    let more = json!({"group": "data-load", "kpis": ["rows_per_s", "commit_throughput_tps", "sql_service_time_s"],
        "swept": "rows_per_tx"});
    let mut run = published(DATA_LOAD, "X4-2", ["Oracle", "12c"], &more);
    for r in &mut run.records {
        let [rows, tps] = [column::ROWS_PER_TX, column::TX_PER_S].map(|column| r.figure(column).unwrap());
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
    assert_says(
        &text(&[data_load()], Format::Html),
        &[
            "DBL-11: rows over rows/tx",
            "DBL-11: SQL service time over rows/tx",
            "still rising at 100 rows/tx (+7.1 % over 50)",
        ],
    );
    insta::assert_snapshot!("data_load_study", end_page(&data_load(), Some(100)));
}

#[test]
fn on_a_busy_disk_the_lowest_deciles_are_used() {
    let mut run = run("busy disk", "run-busy", 1.0);
    run.records.truncate(1);
    let mut scan = scan(&run.manifest, 2, None, 0.0);
    scan.details = vec![Detail::Sizes(scanned("1 MiB"))];
    run.records.push(scan);
    run.manifest.target.settings.insert("flush_at_bytes".to_owned(), "1048576".to_owned());
    assert_says(
        &text(&[run], Format::Html),
        &["(in the lowest deciles: stalls blur the medians)", "flush_at_bytes = 1048576 (1.0 MiB).", "cut off above"],
    );
}
