//! A run of two platforms that comes with loadline: what a report looks like before anything was measured.

use std::collections::BTreeMap;
use std::io::BufReader;

use flate2::read::GzDecoder;
use loadline_analyze::waits::Counts;
use loadline_model::{Json, Series};
use serde::Deserialize;
use serde_json::Value;

use crate::{OverTime, ReportError, RunData};

/// One platform, as its run folder held it, with throughput alone over time and latencies by power of two.
#[derive(Deserialize)]
struct Stored {
    manifest: Value,
    records: Vec<Value>,
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
    stored.iter().map(run).collect()
}

fn run(stored: &Stored) -> Result<RunData, ReportError> {
    let records = stored.records.iter().map(read).collect::<Result<_, _>>()?;
    let series = stored.series.iter().filter_map(|(test, series)| Some((*test, OverTime::from_series(series)?)));
    let run = RunData::new(read(&stored.manifest)?, records, Vec::new());
    Ok(RunData { over_time: series.collect(), histograms: stored.histograms.clone(), ..run })
}

fn read<T: Json>(stored: &Value) -> Result<T, ReportError> {
    Ok(T::from_json(stored.to_string().as_bytes())?)
}
