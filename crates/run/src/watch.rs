//! Watches a running database for a while, read only and without any load: `loadline snapshot`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use loadline_collect::{CollectError, CpuSource, Point, Rates, Sampler, SamplerConfig};
use loadline_database::{Scope, Target, TargetError, kind_of};
use loadline_load::{SECOND_NS, TestError};
use loadline_model::activity::{WATCHED_SCHEMA, Watched};
use loadline_model::column;
use loadline_storage::now_ns;
use loadline_store::rfc3339;

use crate::activity::{ReadViews, of_period};
use crate::figures::machine;
use crate::figures::series::series_of;
use crate::study::side::add_storage;
use crate::test::Test;

/// How often is looked whether the user wants to stop.
const TICK: Duration = Duration::from_millis(200);

/// Refuses targets of which only loadline's own load could be seen.
pub fn check(url: &str) -> Result<(), TargetError> {
    if kind_of(url)?.is_temporary(url) {
        return Err(refused(url, "loadline makes this server for its own load; give the URL of a running one"));
    }
    Ok(())
}

fn refused(url: &str, why: &str) -> TargetError {
    TargetError::Usage(format!("{url} cannot be watched: {why}"))
}

/// Watches `target` for `seconds`, or until `stop`. Calls `begin` when nothing refuses it any more.
pub fn watch(target: &dyn Target, seconds: f64, stop: &AtomicBool, begin: impl FnOnce()) -> Result<Watched, TestError> {
    let unread = |e: CollectError| TestError::Counters(e.to_string());
    let mut info = target.info()?;
    if target.abilities().tables.is_none() {
        return Err(refused(&info.url, &format!("loadline can only see its own sessions of {}", info.product)).into());
    }
    add_storage(&mut info);
    let views = ReadViews::new(target, false);
    let observer = target.observer_of(Scope::All)?;
    begin();
    let mut config = SamplerConfig::new(now_ns());
    let device = |role| info.device(role).map(str::to_owned);
    config.cpu = if info.local { CpuSource::Local } else { CpuSource::Snapshot };
    (config.disk, config.data_disk) = (device("log"), device("data"));
    let sampler = Sampler::start(config, observer).map_err(unread)?;
    let recent = sampler.recent();
    let taken_at = SystemTime::now();
    let open = sampler.reading("open").map_err(unread)?;
    let end_ns = open.system.at_ns + (seconds * 1e9) as u64;
    while now_ns() < end_ns && !stop.load(Ordering::Relaxed) && !recent.has_failed() {
        std::thread::sleep(TICK.min(Duration::from_nanos(end_ns.saturating_sub(now_ns()))));
    }
    let lost = recent.has_failed();
    let close = sampler.reading("close").map_err(unread)?;
    let collected = sampler.finish();
    // Of a database that went away, the last reading is its end.
    let last = |p: &&Point| p.snapshot.is_some() && p.system.at_ns > open.system.at_ns;
    let (end, went) = match close.snapshot.clone() {
        Ok(snapshot) => (snapshot, None),
        Err(why) => {
            let point = collected.points.iter().rev().find(last).and_then(|p| p.snapshot.clone());
            (point.ok_or_else(|| TestError::Counters(why.clone()))?, Some(why))
        }
    };
    let close_ns = if went.is_some() { end.at_ns } else { close.system.at_ns };
    let activity = of_period(&collected, open.system.at_ns, close_ns, views.grown(target));
    let seconds_watched = close_ns.saturating_sub(open.system.at_ns) as f64 / 1e9;
    // Whole seconds: a rate over the few milliseconds that the last reading was late says nothing.
    let series_ns = seconds_watched as u64 * SECOND_NS;
    let mut notes = collected.problems.clone();
    if collected.wait_samples.is_empty() {
        notes.push(
            "the sessions of others could not be sampled: this user may not see them (`loadline doctor --grants`)"
                .to_owned(),
        );
    }
    let early = close.system.at_ns < end_ns;
    let skipped = early && lost;
    notes.extend(cut_short(went.as_deref(), early, skipped, [seconds_watched, seconds]));
    Ok(Watched {
        schema: WATCHED_SCHEMA,
        loadline_version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: rfc3339(taken_at),
        seconds: seconds_watched,
        target: info,
        waits: collected.waits_between(open.system.at_ns, close_ns),
        series: series_of(&collected.points, open.system.at_ns, series_ns, SECOND_NS, None),
        figures: figures(&open.system.rates_until(&close.system)),
        open: open.snapshot.map_err(TestError::Counters)?,
        close: end,
        complete: went.is_none() && !skipped,
        activity,
        notes,
    })
}

/// Why not all of the seconds were watched: of so many, so many were wanted. `unread`: the counters could not be read once.
fn cut_short(went: Option<&str>, early: bool, unread: bool, [watched_s, wanted_s]: [f64; 2]) -> Option<String> {
    match went {
        Some(why) => Some(format!("the database went away after {watched_s:.0} s: {why}")),
        None if unread => {
            Some(format!("ended after {watched_s:.0} of {wanted_s:.0} s, because the counters could not be read once"))
        }
        None => early.then(|| format!("ended by the user after {watched_s:.0} of {wanted_s:.0} s")),
    }
}

/// CPU and log device by column id.
fn figures(rates: &Rates) -> BTreeMap<String, f64> {
    let mut out = Test::default();
    machine::rates(&mut out, rates);
    if let Some(s) = rates.cpu {
        out.set(column::CPU_STEAL_PCT, s.steal_pct);
    }
    out.values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_is_said_to_have_ended_what_the_user_ended() {
        let said = |went, early, unread| cut_short(went, early, unread, [12.3, 60.0]);
        assert_eq!(said(None, false, false), None);
        assert!(said(None, true, false).unwrap().contains("by the user after 12 of 60 s"));
        assert!(said(None, true, true).unwrap().contains("could not be read"));
        assert!(said(Some("gone"), true, true).unwrap().contains("went away after 12 s: gone"));
    }
}
