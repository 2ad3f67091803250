//! Time of jobs between transactions, and figures of each part of them.

use loadline_database::Work;
use loadline_load::{JobResult, Measured, Request, Schedule, Tally};
use loadline_model::record::{KindFigures, PopulationFigures};
use loadline_model::{Driver, JobLoad, Keys, Latencies, Population, column};

use super::NONE_COMPLETED;
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, not_made, require};

/// The parts of `jobs`, each with its jobs: their numbers are in the order of the parts.
pub(crate) fn parts<'a>(load: &JobLoad, mut jobs: &'a [JobResult]) -> Vec<(Population, &'a [JobResult])> {
    let parts = load.parts(jobs.len() as u32).into_iter();
    parts
        .map(|part| {
            let (these, rest) = jobs.split_at((part.jobs as usize).min(jobs.len()));
            jobs = rest;
            (part, these)
        })
        .collect()
}

pub(crate) fn closed<'a>(load: &JobLoad, jobs: &'a [JobResult]) -> Vec<&'a JobResult> {
    let of_closed = |(part, jobs): (Population, &'a [JobResult])| part.rate_tps.is_none().then_some(jobs);
    parts(load, jobs).into_iter().filter_map(of_closed).flatten().collect()
}

/// Use of the jobs' time, as shares (0…1) of jobs × window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TimeShares {
    pub(crate) thinking: f64,
    /// Closing sessions and opening new ones.
    pub(crate) connecting: f64,
    /// Neither in transactions nor in these.
    pub(crate) outside: f64,
}

impl TimeShares {
    pub(crate) fn new<'a>(schedule: &Schedule, jobs: impl IntoIterator<Item = &'a JobResult>) -> TimeShares {
        let mut sums = TimeShares::default();
        let mut all = 0.0;
        for job in jobs {
            sums.thinking += job.thinking_ns as f64;
            sums.connecting += job.connecting_ns as f64;
            sums.outside += job.time_outside_ns(schedule);
            all += schedule.window_ns() as f64;
        }
        let share = |ns: f64| if all > 0.0 { ns / all } else { 0.0 };
        TimeShares { thinking: share(sums.thinking), connecting: share(sums.connecting), outside: share(sums.outside) }
    }
}

const ALIKE: &str = "each population has a load of its own: see the populations of the test";
const NO_THINKING: &str = "the jobs do not think";
const KEPT: &str = "the jobs keep their sessions";

/// Load, think times and new sessions.
pub(crate) fn figures(e: &Evidence<'_>, out: &mut Test) {
    let (measured, load, merged) = (e.measured, &e.request.load, e.merged());
    let times = TimeShares::new(&measured.schedule, &measured.jobs);
    let closed = closed(load, &measured.jobs);
    let outside_pct = (!closed.is_empty()).then(|| TimeShares::new(&measured.schedule, closed).outside * 100.0);
    out.set_or_absent(column::OUTSIDE_TX_PCT, outside_pct, "open loop: jobs wait between transactions on purpose");
    let one = if load.is_mixed() { ALIKE } else { "closed loop: no rate was asked for" };
    out.set_or_absent(column::RATE_TPS, load.rate_tps, one);
    let response = match &merged.response {
        Some(response) if !load.is_mixed() => response.summary_ns().ok_or(NONE_COMPLETED),
        _ => Err(one),
    };
    out.set_all(column::RESPONSE_TIMES.all(), response);
    let asked = if load.is_mixed() { ALIKE } else { NO_THINKING };
    out.set_or_absent(column::THINK_TIME_MS, load.think_s.map(|s| s * 1e3), asked);
    let thinks = if load.thinks() { Ok(()) } else { Err(NO_THINKING) };
    let mean = || mean_think_ns(&measured.jobs, merged).map(|ns| [ns / 1e6]).ok_or("no think time ended in the window");
    out.set_all([column::THINK_TIME_MS_MEAN], thinks.and_then(|()| mean()));
    out.set_all([column::THINKING_PCT], thinks.map(|()| [times.thinking * 100.0]));
    let slept = merged.scripted.as_ref().map(|did| did.sleeping_ns as f64);
    let all_ns = measured.schedule.window_ns() as f64 * measured.jobs.len().max(1) as f64;
    out.set_or_absent(column::SCRIPT_SLEEP_PCT, slept.map(|ns| ns / all_ns * 100.0), "no pgbench scripts were run");
    // Set once the rate is found, if it is.
    out.set_all_absent(&column::RATE_SEARCH, "no rate was searched (--rate auto)");
    for (column, figure) in column::KEYS.into_iter().zip(load.keys.map_or([None; 3], Keys::figures)) {
        out.set_or_absent(column, figure, "keys are not drawn so (--keys)");
    }
    out.set_or_absent(column::RECONNECT_EVERY, load.reconnect_every.map(|n| n as f64), KEPT);
    let connect = load.reconnect_every.map(|_| merged.connect.clone().unwrap_or_default()).ok_or(KEPT);
    let per_s = |connect: &Latencies| connect.count() as f64 / measured.schedule.window_s();
    let shares = connect.as_ref().map(|connect| [per_s(connect), times.connecting * 100.0]).map_err(|why| *why);
    out.set_all([column::CONNECTS_PER_S, column::CONNECTING_PCT], shares);
    let times = connect.and_then(|connect| connect.summary_ns().ok_or("no session was opened in the window"));
    out.set_all(column::CONNECT_TIMES.all(), times);
}

/// Mean think time of `jobs`, ns: their time in it over the number that ended. Of exponential times that is the estimate with the
/// greatest likelihood, whatever part of them the window cuts off (Lawless, Statistical Models and Methods for Lifetime Data, 2003,
/// chapter 4.1); a mean of those that ended would be of short ones.
pub(crate) fn mean_think_ns(jobs: &[JobResult], tally: &Tally) -> Option<f64> {
    let all: f64 = jobs.iter().map(|job| job.thinking_ns as f64).sum();
    (tally.thoughts > 0).then(|| all / tally.thoughts as f64)
}

/// Mean, median and 99th percentile, ns.
fn times(all: &Latencies) -> Option<[f64; 3]> {
    all.summary_ns().map(|[mean, p50, p99, _]| [mean, p50, p99])
}

/// Names and weights of the kinds of transactions: scripts of a mix, or arms of the program's choice; none if all are of one kind.
fn kinds(work: &Work) -> Vec<(&str, i64)> {
    let all = match &work.workload.scripts {
        Some(mix) => mix.scripts().collect(),
        None => work.program.kinds(),
    };
    if all.len() > 1 { all } else { Vec::new() }
}

/// Figures of each kind of transaction; empty if all are of one, or their kinds are unknown.
pub(crate) fn of_each_kind(request: &Request, measured: &Measured) -> Vec<KindFigures> {
    if measured.merged.kinds.is_empty() {
        return Vec::new();
    }
    let all = measured.merged.kinds.iter().map(Some).chain(std::iter::repeat(None));
    // Parts of transactions that cross the window are shared out alike.
    let each =
        loadline_load::tps(&measured.jobs, &measured.schedule) / (measured.merged.transaction.count().max(1) as f64);
    let figures = |((name, weight), all): ((&str, i64), Option<&Latencies>)| KindFigures {
        name: name.to_owned(),
        weight,
        transactions: Some(all.map_or(0, Latencies::count)),
        tps: all.map_or(0.0, |all| all.count() as f64 * each),
        transaction_ns: all.and_then(times),
        p95_ns: all.and_then(|all| all.quantile_ns(0.95)).map(|ns| ns as f64),
    };
    kinds(&request.work).into_iter().zip(all).map(figures).collect()
}

/// Whether the kinds of transactions, merged, are all transactions.
pub(crate) fn kinds_are_all(e: &Evidence<'_>) -> Option<Verdict> {
    let names: Vec<&str> = kinds(e.work()).into_iter().map(|(name, _)| name).collect();
    let Tally { transaction: all, kinds, .. } = e.merged();
    if names.is_empty() || kinds.is_empty() && all.count() == 0 {
        return None;
    }
    // At the client each is known, unless it depends on what the database computes.
    if kinds.is_empty() && e.work().program.computations_per_tx() > 0 {
        return Some(not_made("transactions compute in the database: what they choose afterwards is known only there"));
    }
    if kinds.is_empty() && e.request.driver == Driver::Database {
        return Some(not_made("the procedure returns a histogram of all transactions: their kinds are unknown"));
    }
    let mut sum = Latencies::new();
    kinds.iter().for_each(|kind| sum.merge(kind));
    let same = sum.histogram() == all.histogram() && sum.sum_ns() == all.sum_ns() && sum.max_ns() == all.max_ns();
    let [merged, of_all] = [&sum, all].map(|of| format!("{} in {:.6} s", of.count(), of.sum_ns() as f64 / 1e9));
    let detail = format!("transactions of {}, merged: {merged}; all transactions: {of_all}", names.join(", "));
    Some(require(same && kinds.len() <= names.len(), detail))
}

/// Figures of each population; empty if all jobs are alike.
pub(crate) fn of_each(request: &Request, measured: &Measured) -> Vec<PopulationFigures> {
    // Jobs that are all alike have no populations.
    let parts = if request.load.is_mixed() { parts(&request.load, &measured.jobs) } else { Vec::new() };
    let each = parts.into_iter().zip(&measured.populations);
    each.map(|((population, jobs), tally)| PopulationFigures {
        population,
        tps: loadline_load::tps(jobs, &measured.schedule),
        transaction_ns: times(&tally.transaction),
        response_ns: tally.response.as_ref().and_then(times),
    })
    .collect()
}
