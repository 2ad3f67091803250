//! Sample data of this crate's tests.

use loadline_model::manifest::MANIFEST_SCHEMA;
use loadline_model::{Jobs, Latencies, Manifest, Plan, Series, Snapshot, TestRecord, column};

use crate::folder::TestOutput;

pub(crate) fn record(test: u32) -> TestRecord {
    let mut record = TestRecord {
        platform: "laptop – „x“".to_owned(),
        run: "r".to_owned(),
        test,
        group: "log-writer".to_owned(),
        target: "null:".to_owned(),
        jobs: 1 << test,
        started_at: "2026-11-20T16:15:30.000Z".to_owned(),
        ..TestRecord::blank("LGWR-LAT1")
    };
    record.set(column::COMMIT_THROUGHPUT_TPS, 5_200.0 / 3.0);
    record.set(column::ELAPSED_S, 2.0);
    record
}

pub(crate) fn output(test: u32) -> TestOutput {
    let mut latencies = Latencies::new();
    (1..100).for_each(|i| latencies.record(i * 12_345));
    let series = Series { columns: vec!["t_s".to_owned(), "tps".to_owned()], rows: vec![vec![Some(0.0), Some(0.1)]] };
    TestOutput {
        record: record(test),
        series,
        histograms: vec![("transaction".to_owned(), latencies), ("commit".to_owned(), Latencies::new())],
        snapshots: vec![("open".to_owned(), Snapshot::default()), ("close".to_owned(), Snapshot::default())],
        activity: None,
        native: None,
    }
}

pub(crate) fn manifest() -> Manifest {
    let plan = Plan { target: "null:".to_owned(), jobs: Jobs::List(vec![1, 2]), duration_s: 2.0, ..Plan::default() };
    Manifest {
        schema: MANIFEST_SCHEMA,
        run: "r".to_owned(),
        loadline_version: "0.1.0".to_owned(),
        started_at: "2026-11-20T16:15:30.000Z".to_owned(),
        command: vec!["loadline".to_owned(), "run".to_owned()],
        plan,
        ..Manifest::default()
    }
}
