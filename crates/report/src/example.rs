//! A run of two platforms that comes with loadline: what a report looks like before anything was measured.

use std::collections::BTreeMap;
use std::io::BufReader;

use flate2::read::GzDecoder;
use loadline_analyze::waits::Counts;
use loadline_model::{Manifest, Series, TestRecord};
use serde::Deserialize;

use crate::{OverTime, ReportError, RunData};

/// One platform, as its run folder held it, with throughput alone over time and latencies by power of two.
#[derive(Deserialize)]
struct Stored {
    manifest: Manifest,
    records: Vec<TestRecord>,
    series: BTreeMap<u32, Series>,
    histograms: BTreeMap<u32, Vec<(String, Counts)>>,
}

/// Eight workloads of the quick plan on PostgreSQL and MariaDB, with windows of 0.4 s on a machine of two CPUs.
///
/// # Errors
/// The runs cannot be read: an internal error.
pub fn example() -> Result<Vec<RunData>, ReportError> {
    const RUNS: &[u8] = include_bytes!("example.json.gz");
    let stored: Vec<Stored> = serde_json::from_reader(BufReader::new(GzDecoder::new(RUNS)))?;
    let run = |Stored { manifest, records, series, histograms }| {
        let over_time =
            series.iter().filter_map(|(test, series)| Some((*test, OverTime::from_series(series)?))).collect();
        RunData { over_time, histograms, ..RunData::new(manifest, records, Vec::new()) }
    };
    Ok(stored.into_iter().map(run).collect())
}
