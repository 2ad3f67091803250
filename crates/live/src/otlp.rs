//! Pushes the metrics of a run that goes on to a collector: OTLP over HTTP, encoded as JSON
//! (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! The same metrics as on `/metrics`, from a process of its own that reads the run folder. [`endpoint`] is the way to the collector.

pub mod endpoint;

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_store::{clock_s, runs_in, writer};
use prometheus_client::registry::Unit;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::metrics::{Described, Metrics, PREFIX};
use crate::now::Follower;
use crate::serve::{stdin_ended, stopped};
use endpoint::{Collector, Problem};

/// Longest time for pushes of the run's last state: the command waits for them.
const LAST_PATIENCE: Duration = Duration::from_secs(4);

/// What is pushed, and where to.
#[derive(Debug)]
pub struct PushOptions {
    /// The folder that holds the runs.
    pub dir: PathBuf,
    /// The process whose run it is.
    pub writer: u32,
    /// Time between two pushes.
    pub every: Duration,
    /// Where to.
    pub collector: Collector,
    /// Attributes of the resource, besides `service.name` and `service.version`.
    pub attributes: Vec<(String, String)>,
}

/// Why nothing is pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The collector did not take an empty request.
    #[error("{0}")]
    Collector(#[from] Problem),
    /// The runtime cannot be started.
    #[error("the pushing process cannot start: {0}")]
    Failed(std::io::Error),
}

/// Pushes until standard input ends, then the last state of the run. Asks the collector first, then calls `ready`; calls `say` with
/// what the user must know: when the collector begins to fail, when it takes metrics again, and how many pushes failed.
///
/// # Errors
/// [`PushError`]: the collector is not there at the beginning. Later failures are said.
pub fn push(options: &PushOptions, ready: impl FnOnce(), say: impl Fn(&str)) -> Result<(), PushError> {
    // Best effort. Threads of the runtime inherit it.
    let _ = loadline_storage::run_only_when_idle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(PushError::Failed)?;
    runtime.block_on(async {
        options.collector.post(request(&options.attributes, Vec::new(), 0.0)).await?;
        ready();
        let mut pushing = Pushing { options, say, run: None, pushes: 0, failed: 0, failing: false };
        let ended = async {
            tokio::select! { () = stopped() => (), () = stdin_ended(true) => () }
        };
        tokio::pin!(ended);
        loop {
            let next = async {
                tokio::time::sleep(options.every).await;
                pushing.push().await
            };
            // A push that is under way is given up for the last one.
            tokio::select! { () = &mut ended => break, _ = next => () }
        }
        pushing.push_last().await;
        pushing.summary();
        Ok(())
    })
}

struct Pushing<'o, S> {
    options: &'o PushOptions,
    say: S,
    run: Option<Follower>,
    pushes: usize,
    failed: usize,
    failing: bool,
}

impl<S: Fn(&str)> Pushing<'_, S> {
    /// Pushes the run as it stands. Whether it is with the collector; also if there is no run yet.
    async fn push(&mut self) -> bool {
        if self.run.is_none() {
            self.run = run_of(&self.options.dir, self.options.writer).map(|path| Follower::new(&path));
        }
        let Some(run) = &mut self.run else { return true };
        let id = run.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (mut metrics, now_s) = (Metrics::default(), clock_s());
        metrics.add(&id, run.look(), now_s);
        let body = request(&self.options.attributes, metrics.described().collect(), now_s);
        let result = self.options.collector.post(body).await;
        self.count(result);
        !self.failing
    }

    /// Pushes the run as it stands until the collector takes it, once a second.
    async fn push_last(&mut self) {
        let end = Instant::now() + LAST_PATIENCE;
        loop {
            match tokio::time::timeout_at(end, self.push()).await {
                Ok(true) => return,
                Err(_) => return self.count(Err(self.options.collector.unanswered(LAST_PATIENCE))),
                Ok(false) => {}
            }
            let next = Instant::now() + Duration::from_secs(1);
            if next >= end {
                return;
            }
            tokio::time::sleep_until(next).await;
        }
    }

    fn count(&mut self, result: Result<(), Problem>) {
        self.pushes += 1;
        self.failed += usize::from(result.is_err());
        match &result {
            Ok(()) if self.failing => (self.say)("--otlp: the collector takes metrics again"),
            Err(problem) if !self.failing => (self.say)(&format!("--otlp: {problem}; tried again until the run ends")),
            _ => {}
        }
        self.failing = result.is_err();
    }

    fn summary(&self) {
        let last = if self.failing { ", the last state of the run among them" } else { "" };
        if self.failed > 0 {
            (self.say)(&format!("--otlp: {} of {} pushes failed{last}", self.failed, self.pushes));
        }
    }
}

/// The run that a process writes.
fn run_of(dir: &Path, process: u32) -> Option<PathBuf> {
    runs_in(dir).ok()?.into_iter().rev().find(|run| writer(run) == Some(process))
}

/// An `ExportMetricsServiceRequest` of gauges as they are at `now_s`, s since 1970. 64-bit integers are strings in OTLP's JSON.
fn request(attributes: &[(String, String)], metrics: Vec<Described>, now_s: f64) -> Vec<u8> {
    let pair = |(key, value): (&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
    let at = format!("{:.0}", now_s * 1e9);
    let metric = |described: Described| {
        let point = |(labels, value): (Vec<(&'static str, String)>, f64)| {
            let labels: Vec<Value> = labels.iter().map(|(key, value)| pair((key, value))).collect();
            json!({ "attributes": labels, "timeUnixNano": at, "asDouble": value })
        };
        // Names as on `/metrics`, so that the same queries and dashboards hold. Prometheus adds a unit's name unless it is
        // there: `seconds` for `s`, `ratio` for `1`.
        let unit = match &described.unit {
            Some(Unit::Seconds) => "s",
            Some(_) => "1",
            None => "",
        };
        let ending = described.unit.map(|unit| format!("_{}", unit.as_str())).unwrap_or_default();
        json!({
            "name": format!("{PREFIX}_{}{ending}", described.name),
            "description": described.help,
            "unit": unit,
            "gauge": { "dataPoints": described.samples.into_iter().map(point).collect::<Vec<_>>() },
        })
    };
    let service = [("service.name", PREFIX), ("service.version", env!("CARGO_PKG_VERSION"))];
    let given = attributes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let ours = service.into_iter().filter(|(key, _)| !attributes.iter().any(|(given, _)| given == key));
    let resource: Vec<Value> = ours.chain(given).map(pair).collect();
    let metrics: Vec<Value> = metrics.into_iter().filter(|m| !m.samples.is_empty()).map(metric).collect();
    let scope = json!({ "scope": { "name": PREFIX, "version": env!("CARGO_PKG_VERSION") }, "metrics": metrics });
    json!({ "resourceMetrics": [{ "resource": { "attributes": resource }, "scopeMetrics": [scope] }] })
        .to_string()
        .into_bytes()
}
