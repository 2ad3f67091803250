//! `/metrics`: runs that go on and the newest one, for Prometheus. What is said of each: [`crate::metrics`].

use loadline_model::manifest::RunState;
use loadline_store::{clock_s, is_written};

use super::Served;
use super::http::Answer;
use super::pages::PageError;
use crate::metrics::Metrics;

/// Runs shown at a time.
const MOST_RUNS: usize = 20;

/// Media type of OpenMetrics text.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn metrics(served: &Served) -> Result<Answer, PageError> {
    let listed = served.runs.list()?;
    let going = listed.iter().enumerate().filter(|(at, run)| {
        *at == 0
            || run.brief.as_ref().is_ok_and(|b| b.state == RunState::Started)
                && served.runs.path(&run.id).is_ok_and(|path| is_written(&path) == Some(true))
    });
    let mut metrics = Metrics::default();
    let now_s = clock_s();
    for (_, run) in going.take(MOST_RUNS) {
        // One that cannot be read does not hide the others.
        let _ = served.look(&run.id, |now| metrics.add(&run.id, now, now_s));
    }
    Ok(Answer::new(KIND, metrics.text().into_bytes()))
}
