//! `/metrics`: runs that go on and the newest one, for Prometheus. What is said of each: [`crate::metrics`].

use std::collections::BTreeMap;

use loadline_model::manifest::RunState;
use loadline_store::{clock_s, is_written};

use super::Served;
use super::http::{Answer, Body, values};
use super::pages::PageError;
use crate::metrics::Metrics;
use crate::now::Follower;

/// Runs shown at a time.
const MOST_RUNS: usize = 20;

/// Media type of OpenMetrics text.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The runs that are followed from one request to the next, by name.
pub(super) type Followed = BTreeMap<String, Follower>;

/// The answer to `?run=NAME&run=NAME`; without a name, of the runs that go on and of the newest.
pub(super) fn metrics(served: &Served, query: &str) -> Result<Answer, PageError> {
    if let Some(part) = query.split('&').find(|part| !part.is_empty() && !part.starts_with("run=")) {
        let text = format!("'{part}' is not known here: /metrics?run=NAME names a run, again for another");
        return Err(PageError::Asked(text));
    }
    let mut asked = values(query, "run");
    let named = !asked.is_empty();
    if !named {
        let listed = served.runs.list()?;
        let open = |state: &RunState| *state == RunState::Started;
        let going = listed.iter().enumerate().filter(|(at, run)| {
            *at == 0
                || run.brief.as_ref().is_ok_and(|b| open(&b.state))
                    && served.runs.path(&run.id).is_ok_and(|path| is_written(&path) == Some(true))
        });
        asked = going.map(|(_, run)| run.id.clone()).collect();
        asked.truncate(MOST_RUNS);
    } else if asked.len() > MOST_RUNS {
        return Err(PageError::Asked(format!("{} runs are named: {MOST_RUNS} at most", asked.len())));
    }
    let mut followed = served.followed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut next = Followed::new();
    let mut metrics = Metrics::default();
    let now_s = clock_s();
    for id in asked {
        // Without a name, one that cannot be read does not hide the others.
        let path = match served.runs.path(&id) {
            Ok(path) => path,
            Err(_) if !named => continue,
            Err(e) => return Err(e.into()),
        };
        let follower = followed.remove(&id).unwrap_or_else(|| Follower::new(&path));
        let follower = next.entry(id.clone()).or_insert(follower);
        metrics.add(&id, follower.look(), now_s);
    }
    *followed = next;
    drop(followed);
    Ok(Answer::new(KIND, Body::Whole(metrics.text().into_bytes())))
}
