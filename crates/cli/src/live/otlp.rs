//! The process of `loadline run --otlp`.

use std::path::Path;
use std::time::Duration;

use loadline_live::otlp::endpoint::{Collector, Problem, pairs};
use loadline_live::otlp::{PushError, PushOptions};

use crate::exit::Failure;
use crate::output;

/// The line of the process begins with this once the collector has answered.
pub(super) const READY: &str = "metrics are pushed to ";
/// Headers for the collector; the first that is set counts.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// Time between two pushes, ms.
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const DEFAULT_INTERVAL_MS: u64 = 5_000;

/// Refuses a URL or a variable that is malformed.
pub(super) fn check(url: &str) -> Result<(), Failure> {
    options(Path::new(""), url).map(|_| ())
}

/// Pushes the run of the process that started this one, until standard input ends.
pub(super) fn push(dir: &Path, url: &str) -> Result<u8, Failure> {
    let options = options(dir, url)?;
    let ready = || output::say(&format!("{READY}{} every {:?}", options.collector.name(), options.every));
    loadline_live::otlp::push(&options, ready, output::say).map_err(|e| match e {
        PushError::Collector(_) => Failure::usage(e.to_string()),
        PushError::Failed(_) => Failure::failed(e.to_string()),
    })?;
    Ok(0)
}

fn options(dir: &Path, url: &str) -> Result<PushOptions, Failure> {
    let wrong = |e: Problem| Failure::usage(format!("--otlp: {e}"));
    let set = |name: &'static str| Some((name, std::env::var(name).ok().filter(|text| !text.is_empty())?));
    let of =
        |variable: Option<(&'static str, String)>| variable.map_or(Ok(Vec::new()), |(name, text)| pairs(name, &text));
    let headers = of(HEADERS.into_iter().find_map(set)).map_err(wrong)?;
    let every_ms = set(INTERVAL).map_or(Ok(DEFAULT_INTERVAL_MS), |(_, text)| {
        let ms = text.trim().parse().ok().filter(|ms| (100..=3_600_000).contains(ms));
        ms.ok_or_else(|| {
            Failure::usage(format!("{INTERVAL}={text}: no whole number of milliseconds from 100 to 3600000"))
        })
    })?;
    Ok(PushOptions {
        dir: dir.to_owned(),
        writer: std::os::unix::process::parent_id(),
        every: Duration::from_millis(every_ms),
        collector: Collector::new(url, &headers).map_err(wrong)?,
        attributes: of(set(ATTRIBUTES)).map_err(wrong)?,
    })
}
