//! The published data-load study: the report has its table, column by column, and its sweep over rows per transaction.
//! Writes `target/tmp/study-2.html` to look at.

use std::collections::BTreeMap;

use crate::common::manifest;
use loadline_model::column;
use loadline_report::{Format, Options, RunData, end_page, render};

const PUBLISHED: &str = include_str!("../../../../references/data-load-exadata-x4-2.csv");

fn study() -> RunData {
    let mut lines = PUBLISHED.lines();
    let ids: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut m = manifest("X4-2", "7");
    m.plan.workloads = Vec::new();
    let rows = lines.map(|l| ids.iter().copied().zip(l.split(',')).collect::<BTreeMap<&str, &str>>());
    let records = rows
        .map(|row| {
            let number = |id: &str| row[id].parse::<f64>().unwrap();
            let mut r =
                crate::common::record(&m, number("test") as u32, row["workload"], number("jobs") as u32, 1.0, 1.0);
            r.group = "data-load".to_owned();
            r.kpis = [column::ROWS_PER_S, column::COMMIT_THROUGHPUT_TPS, column::SQL_SERVICE_TIME_S]
                .map(|c| c.id.to_owned())
                .into();
            r.swept = Some("rows_per_tx".to_owned());
            r.parameters.insert("rows".to_owned(), number("rows_per_tx") as i64);
            r.figures.clear();
            r.absent.clear();
            for id in ids.iter().skip(6) {
                r.set(column::column(id).unwrap(), number(id));
            }
            r.set(column::COMMIT_THROUGHPUT_TPS, number("tx_per_s"));
            // The study prints no latency: with one job its inverse is the transaction time.
            r.set(column::COMMIT_LATENCY_MS, 1e3 / number("tx_per_s"));
            r
        })
        .collect();
    RunData::new(m, records, Vec::new())
}

fn text(format: Format) -> String {
    String::from_utf8(render(&[study()], format, &Options::default()).unwrap()).unwrap()
}

#[test]
fn the_report_has_the_published_table() {
    let csv = text(Format::Csv);
    for (ours, published) in csv.lines().zip(PUBLISHED.lines()) {
        assert!(ours.starts_with(&format!("{published},")), "{published}\n{ours}");
    }
    assert_eq!(csv.lines().count(), PUBLISHED.lines().count());
    // Shown tables have all of its columns too, in its order.
    let plain = text(Format::Text);
    let table = plain.split("X4-2 – DBL-11 (run 7").nth(1).unwrap();
    let row = table.lines().find(|l| l.split_whitespace().next() == Some("8")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    let wanted = "8 1 1 1 100 1 27,020 270 0.003501 1,490 3,257 53.0 27.00 296 156.0 3 128.0 310";
    assert_eq!(cells.join(" "), wanted);
}

#[test]
fn rows_per_transaction_were_swept() {
    let page = text(Format::Html);
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("study-2.html"), &page).unwrap();
    let page = page.replace("&#x2f;", "/");
    for wanted in [
        "DBL-11: rows over rows/tx",
        "DBL-11: SQL service time over rows/tx",
        "still rising at 100 rows/tx (+7.1 % over 50)",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let end = end_page(&study(), Some(100));
    let line = end.lines().find(|l| l.starts_with("DBL-11")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.starts_with("DBL-11 27,020 rows/s 100 rows/tx 3.70 ms"), "{end}");
}
