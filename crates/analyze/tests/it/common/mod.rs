//! Records made by hand or read from a published study.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;

use loadline_model::{Column, Driver, LimitSource, TestLimit, TestRecord, column};

/// A valid record of `LGWR-LAT1` without figures.
pub(crate) fn record(platform: &str, test: u32, jobs: u32) -> TestRecord {
    TestRecord {
        platform: platform.to_owned(),
        run: format!("run-{platform}"),
        test,
        group: "log-writer".to_owned(),
        driver: Driver::Database,
        jobs,
        ..TestRecord::blank("LGWR-LAT1")
    }
}

/// `record` with more figures.
pub(crate) fn with(mut record: TestRecord, figures: &[(&Column, f64)]) -> TestRecord {
    figures.iter().for_each(|(column, value)| record.set(column, *value));
    record
}

/// `record`, compared with the limit `name`.
pub(crate) fn limited(record: TestRecord, name: &str) -> TestRecord {
    let limit = TestLimit {
        name: name.to_owned(),
        of: String::new(),
        jobs: record.jobs,
        redo_bytes_per_tx: None,
        tps: 1_000.0,
        samples: Vec::new(),
        source: LimitSource::Run,
    };
    TestRecord { limit: Some(limit), ..record }
}

/// A record with throughput (tps) and latency (ms), and equal work.
pub(crate) fn measured(platform: &str, test: u32, jobs: u32, tps: f64, ms: f64) -> TestRecord {
    let work = [(column::REDO_KIB_PER_TX, 1.9), (column::ROWS_PER_TX, 1.0), (column::STATEMENTS_PER_TX, 1.0)];
    let r = with(record(platform, test, jobs), &work);
    with(r, &[(column::COMMIT_THROUGHPUT_TPS, tps), (column::COMMIT_LATENCY_MS, ms)])
}

/// The records of `platform` in the published log-writer study.
pub(crate) fn study_1(platform: &str) -> Vec<TestRecord> {
    let mut lines = include_str!("../../../../../references/log-writer-exadata.csv").lines();
    let ids: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows = lines.map(|line| ids.iter().copied().zip(line.split(',')).collect::<BTreeMap<&str, &str>>());
    rows.filter(|row| row["platform"] == platform)
        .map(|row| {
            let mut r = record(platform, row["test"].parse().unwrap(), row["jobs"].parse().unwrap());
            r.workload = row["workload"].to_owned();
            r.run = row["run"].to_owned();
            r.nodes = row["nodes"].parse().unwrap();
            for (column, text) in row.iter().filter_map(|(id, text)| Some((column::column(id)?, text))) {
                if !["platform", "workload", "run", "test", "nodes", "jobs"].contains(&column.id) {
                    r.set(column, text.parse().unwrap());
                }
            }
            r
        })
        .collect()
}
