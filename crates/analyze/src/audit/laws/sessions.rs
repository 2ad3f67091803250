//! Which figures of a table are its jobs. Throughput × time is the number of transactions under way: that of the column called
//! jobs, of another one, or of two together, such as nodes × clients or clients × requests in flight.

use super::little::{OUTSIDE, SESSIONS, under_way};
use crate::audit::context::Context;
use crate::audit::finding::{Finding, Severity};
use crate::audit::header::Header;
use crate::audit::interval::{Interval, Reading};
use crate::audit::names;
use crate::audit::sheet::Bound;

/// Rows by which it is decided.
const SAMPLE: usize = 1000;
/// Columns that are tried.
const TRIED: usize = 12;
/// How far throughput × time is off the jobs if they are always busy.
const NEAR: f64 = 0.02;
/// Share of the jobs that are busy at least, where they only bound throughput × time.
const BUSY: f64 = 0.3;
/// Settings that may count sessions or what each of them has under way.
const COUNTS: [&str; 6] = ["jobs", "threads", "nodes", "rows_per_tx", "groups", "agents"];
/// Words of headers of a time that passed before a job began.
const LAGS: [&str; 5] = ["lag", "schedule", "queue", "queueing", "queuing"];

/// How throughput × time goes with some columns: rows where it is their product, above it, and below it by less than [`BUSY`].
#[derive(Clone, Copy, Default)]
struct Fit {
    same: usize,
    over: usize,
    busy: usize,
}

/// Finds the columns whose product the jobs are, or the wait that the time holds. Comes before all laws.
pub(crate) fn settle(context: &mut Context<'_>) -> Option<Finding> {
    let rows = context.rows().len().min(SAMPLE);
    let own = OUTSIDE.iter().any(|id| context.has(id));
    let flights: Vec<(usize, Interval)> = (0..rows)
        .filter_map(|row| Some((row, under_way(context, row, Reading::Loose).filter(|i| i.at > 0.0)?)))
        .collect();
    if flights.is_empty() || own {
        return None;
    }
    let count = flights.len();
    let most = |n: usize| n * 4 >= count * 3;
    let sheet = &context.sheet;
    let whole = |c: &&Bound| {
        let cells = || (0..rows).map(|row| c.figure(row).map_or(0.0, |f| f.value));
        cells().all(|v| v >= 1.0 && v.fract() == 0.0) && cells().any(|v| v > 1.0)
    };
    let jobs = sheet.column("jobs");
    let counted = sheet.columns.iter().filter(|c| c.id != "jobs" && COUNTS.contains(&c.id));
    let singles: Vec<&Bound> = jobs.into_iter().chain(counted.chain(&sheet.others).filter(whole).take(TRIED)).collect();
    let fit = |of: &[&Bound]| {
        flights.iter().fold(Fit::default(), |mut fit, (row, flight)| {
            let sessions = of.iter().map(|c| c.figure(*row).map_or(f64::NAN, |f| f.value)).product::<f64>();
            let busy = flight.scaled(1.0 / sessions);
            fit.same += usize::from(busy.high - busy.low < 0.3 && (busy.holds(1.0) || (busy.at - 1.0).abs() < NEAR));
            fit.over += usize::from(busy.low > 1.0 + NEAR);
            fit.busy += usize::from(busy.low <= 1.0 + NEAR && busy.at > BUSY);
            fit
        })
    };
    let base = jobs.map(|jobs| fit(&[jobs]));
    if base.is_some_and(|b| (most(b.same) || count < 3) && b.over == 0) {
        return None;
    }
    // Where nearly all rows fit the column of jobs, only another one of them with which all do.
    let certain = base.is_some_and(|b| most(b.same));
    let is_jobs = |c: &Bound| {
        c.id == "threads" || names::read(&Header::parse(&sheet.table.headers[c.index])).is_some_and(|m| m.id == "jobs")
    };
    let mut all: Vec<Vec<&Bound>> = singles.iter().skip(usize::from(jobs.is_some())).map(|c| vec![*c]).collect();
    all.extend(
        (0..singles.len())
            .flat_map(|i| (i + 1..singles.len()).map(move |j| (i, j)))
            .map(|(i, j)| vec![singles[i], singles[j]]),
    );
    let over = base.map_or(0, |b| b.over);
    let mut best: Option<(Fit, Vec<&Bound>)> = None;
    for of in all {
        let found = fit(&of);
        if certain && !(of.len() == 1 && is_jobs(of[0]) && found.same == count) {
            continue;
        }
        let sharp = most(found.same) && found.same > base.map_or(2, |b| b.same) && (count >= 3 || over * 2 >= count);
        // Not as many as they could be, but never more.
        let bounds = base.is_some() && over * 2 > count && found.over == 0 && most(found.busy);
        if (sharp || bounds) && best.as_ref().is_none_or(|(b, _)| (found.same, found.busy) > (b.same, b.busy)) {
            best = Some((found, of));
        }
    }
    let name = |c: &Bound| format!("'{}'", sheet.table.headers[c.index]);
    if let Some((found, of)) = best {
        let names: Vec<String> = of.iter().map(|c| name(c)).collect();
        let names = names.join(" × ");
        let text = if most(found.same) {
            format!("throughput × time is {names} in {} of {count} rows: they are taken for the jobs", found.same)
        } else {
            format!(
                "throughput × time is more than the jobs, and no more than {names}: they are taken for the transactions under way"
            )
        };
        let each = |row| of.iter().map(|c: &&Bound| c.figure(row).map_or(f64::NAN, |f| f.value)).product();
        context.sessions = Some(context.rows().map(each).collect());
        return Some(context.about_table("little", Severity::Info, &SESSIONS, text));
    }
    // A time that holds the wait for a job.
    let jobs = jobs.filter(|_| over > 0)?;
    let is_lag = |c: &&Bound| {
        c.printed.is_some()
            && sheet.table.headers[c.index]
                .to_lowercase()
                .split(|c: char| !c.is_alphanumeric())
                .any(|w| LAGS.contains(&w))
    };
    let lag = sheet.others.iter().find(is_lag)?;
    context.lag = Some(lag.index);
    let beyond = |(row, _): &(usize, Interval)| {
        let rest = under_way(context, *row, Reading::Loose).map_or(0.0, |i| i.low);
        jobs.figure(*row).is_some_and(|f| rest > f.value * (1.0 + NEAR))
    };
    if flights.iter().any(beyond) {
        context.lag = None;
        return None;
    }
    let text = format!("throughput × time is more than the jobs; without {}, it is not: the time holds it", name(lag));
    Some(context.about_table("little", Severity::Info, &SESSIONS, text))
}
