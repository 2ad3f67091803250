//! Little's law: jobs that are always busy are throughput × time. More is impossible; less is time outside the transactions.

use std::ops::Range;

use super::{Check, Law};
use crate::context::Context;
use crate::finding::{Findings, Severity, shown};
use crate::interval::{Interval, Reading, common};
use crate::judge::{SAMPLE, Sides, most_meet};

const NEEDS: &[&[&str]] = &[&["jobs", "tps", "commit_latency_ms"], &["jobs", "tps", "transaction_time_ns_mean"]];

pub(crate) static LITTLE: Law = Law {
    id: "little",
    name: "Little's law",
    formula: "tps × commit_latency_ms / 1000 ≤ jobs",
    needs: NEEDS,
    tolerance: "an error if it is above; below it by a common time or factor, or alone, is a warning. One transaction per job, which began before the window, and 1 % where the other rows do not agree, are no error",
    meaning: "A wrong digit or unit; jobs per node; transactions that overlap in one session",
    check: Check::Own(check),
};

pub(crate) static DILUTION: Law = Law {
    id: "dilution",
    name: "Diluted throughput",
    formula: "tps × commit_latency_ms / 1000 = jobs, for jobs that do nothing else",
    needs: NEEDS,
    tolerance: "always a warning: it assumes that jobs do not think",
    meaning: "The average contains ramp-up, stragglers or other time without load; the rate without it is jobs / latency",
    check: Check::Own(|_, _| {}),
};

/// Relative excess that transactions crossing the window's edges may explain.
const EDGES: f64 = 0.01;
/// Share of the rows that must agree on a think time or a factor.
const MOST: f64 = 0.75;
/// Relative deviation up to which a factor is a whole number of groups of jobs.
const GROUPS: f64 = 0.03;
/// Relative deviation of figures with all their digits.
const NOISE: f64 = 0.001;

/// What is known of one row.
struct Row {
    row: usize,
    /// throughput × time / jobs.
    sides: Sides,
    busy: Interval,
    /// jobs / throughput − time, ms.
    think: Interval,
    /// jobs / throughput, ms.
    cycle: Interval,
    latency: f64,
    jobs: f64,
    tps: f64,
}

fn latency_of(context: &Context<'_>) -> Option<(&'static str, f64)> {
    [("commit_latency_ms", 1.0), ("transaction_time_ns_mean", 1e-6)].into_iter().find(|(id, _)| context.has(id))
}

fn rows(context: &Context<'_>, range: Range<usize>) -> Vec<Row> {
    let Some((latency, ms)) = latency_of(context) else { return Vec::new() };
    let of = |row: usize| {
        let jobs = |reading| {
            let all = context.interval("jobs", row, reading)?;
            // Where the tool knows its own loop, and what jobs did between transactions, they were in transactions for the rest.
            let shares = ["outside_tx_pct", "thinking_pct", "connecting_pct"];
            let known = shares.into_iter().filter_map(|id| context.interval(id, row, reading));
            let outside = known.fold(Interval::exact(0.0), |sum, share| sum.plus(share.scaled(0.01)));
            let nodes = if context.per_node { context.value("nodes", row)? } else { 1.0 };
            Some(all.times(Interval::exact(1.0).minus(outside)).scaled(nodes))
        };
        let time = |reading| Some(context.interval(latency, row, reading)?.scaled(ms));
        let tps = |reading| context.interval("tps", row, reading);
        let busy = |reading| Some(tps(reading)?.times(time(reading)?).scaled(1e-3).over(jobs(reading)?));
        let cycle = |reading| Some(jobs(reading)?.scaled(1e3).over(tps(reading)?));
        let reading = Reading::Loose;
        let value = Row {
            row,
            sides: Sides::of(row, busy)?,
            busy: busy(reading)?,
            think: cycle(reading)?.minus(time(reading)?),
            cycle: cycle(reading)?,
            latency: context.value(latency, row)? * ms,
            jobs: jobs(Reading::Rounded)?.at,
            tps: context.value("tps", row)?,
        };
        (value.jobs > 0.0 && value.tps > 0.0).then_some(value)
    };
    range.filter_map(of).collect()
}

/// Whether `jobs` are those of each node: then throughput × time is the jobs of all.
pub(crate) fn jobs_are_per_node(context: &Context<'_>) -> bool {
    if !context.has("nodes") {
        return false;
    }
    let all = rows(context, 0..context.rows().len().min(SAMPLE));
    let several: Vec<(&Row, f64)> =
        all.iter().filter_map(|r| Some((r, context.value("nodes", r.row)?))).filter(|(_, n)| *n > 1.0).collect();
    let count = |test: &dyn Fn(&Row, f64) -> bool| several.iter().filter(|(r, n)| test(r, *n)).count() as f64;
    let most = MOST * several.len() as f64;
    several.len() >= 2
        && count(&|r, _| r.busy.low > 1.0) >= most
        && count(&|r, n| r.busy.at > 0.8 * n && r.busy.low <= n) >= most
}

fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some((latency, _)) = latency_of(context) else { return };
    let columns = ["jobs", "tps", latency];
    // Mostly, all rows meet.
    let fine = |row| busy(context, row).is_none_or(|busy| busy.holds(1.0));
    if !context.per_node && context.rows().all(fine) {
        return;
    }
    let all = rows(context, context.rows());
    if context.per_node {
        let text = "jobs are those of each node: throughput × time is jobs × nodes".to_owned();
        findings.push(context.about_table(LITTLE.id, Severity::Info, &["jobs", "nodes", "tps", latency], text));
    }
    let sides: Vec<Sides> = all.iter().map(|r| r.sides).collect();
    let model = Model::of(&all, &sides);
    model.say(&all, context, &columns, findings);
    for row in &all {
        if row.sides.meets(1.0) && model == Model::Busy || model.holds(row) {
            continue;
        }
        // What an open loop does not ask for, its jobs need not do; and a job's first transaction began before the window.
        let open = context.value("rate_tps", row.row).is_some()
            || context.sheet.text("job_load", row.row).contains("open loop");
        let idle = open && row.busy.low <= 1.0;
        // Each of all jobs has such a transaction, also where they think most of the time and few are busy.
        let all_per_busy = context.value("jobs", row.row).map_or(1.0, |all| (all / row.jobs).max(1.0));
        if idle || (row.busy.at - 1.0).abs() <= context.edges(row.row) * all_per_busy {
            continue;
        }
        let lower = row.busy.low <= 1.0 && !model.is_sharp();
        if lower && !findings.wants(DILUTION.id, Severity::Warning) {
            continue;
        }
        let (severity, law, recomputed, text) = verdict(row, &model, context);
        if row.busy.holds(1.0) && model != Model::Busy && severity != Severity::Error && !model.is_sharp() {
            continue;
        }
        if (row.busy.at - 1.0).abs() < NOISE && model == Model::Unknown {
            continue;
        }
        if findings.wants(law, severity) {
            findings.push(context.about_row(law, severity, row.row, &columns, "tps", recomputed, text));
        }
    }
}

/// What explains most rows.
#[derive(Debug, PartialEq)]
enum Model {
    /// Jobs are always in transactions.
    Busy,
    /// They think for this long, ms.
    Think(f64),
    /// The printed time is this share of the whole.
    Part(f64),
    /// Nothing in common.
    Unknown,
}

impl Model {
    fn of(all: &[Row], sides: &[Sides]) -> Model {
        if most_meet(sides, 1.0) {
            return Model::Busy;
        }
        if all.len() < 4 {
            return Model::Unknown;
        }
        let all = &all[..all.len().min(SAMPLE)];
        let most = MOST * all.len() as f64;
        let agreed = |of: fn(&Row) -> Interval| common(&all.iter().map(of).collect::<Vec<_>>());
        let below = all.iter().filter(|r| r.busy.high < 1.0).count() as f64;
        if let Some((ms, count)) = agreed(|r| r.think)
            && count as f64 >= most
            && below >= most
            && ms > 0.0
        {
            return Model::Think(ms);
        }
        match agreed(|r| r.busy) {
            // A factor near 1 is the end of a window, or ramp-up: each row says it.
            Some((share, _)) if (share - 1.0).abs() <= EDGES => Model::Unknown,
            Some((share, count)) if count as f64 >= most && (below >= most || share > 1.0) => Model::Part(share),
            _ => Model::of_groups(all),
        }
    }

    /// Whether most rows have nearly the same whole number of times their jobs.
    fn of_groups(all: &[Row]) -> Model {
        let mut shares: Vec<f64> = all.iter().map(|r| r.busy.at).collect();
        shares.sort_by(f64::total_cmp);
        let groups = shares.get(shares.len() / 2).map_or(1.0, |median| median.round());
        let near = all.iter().filter(|r| (r.busy.at / groups - 1.0).abs() < GROUPS).count();
        if groups >= 2.0 && near as f64 >= MOST * all.len() as f64 { Model::Part(groups) } else { Model::Unknown }
    }

    fn is_sharp(&self) -> bool {
        matches!(self, Model::Think(_) | Model::Part(_))
    }

    fn holds(&self, row: &Row) -> bool {
        match self {
            Model::Think(ms) => row.think.holds(*ms),
            Model::Part(share) if *share > 1.0 => row.busy.holds(*share) || (row.busy.at / share - 1.0).abs() < GROUPS,
            Model::Part(share) => row.busy.holds(*share),
            Model::Busy | Model::Unknown => false,
        }
    }

    fn say(&self, all: &[Row], context: &Context<'_>, columns: &[&'static str], findings: &mut Findings) {
        let count = all.iter().filter(|r| self.holds(r)).count();
        let (severity, text) = match self {
            Model::Think(ms) => (
                Severity::Info,
                format!(
                    "jobs / throughput − time is {} ms in {count} of {} rows: a think time, or time outside what was timed",
                    shown(*ms, 4),
                    all.len()
                ),
            ),
            Model::Part(share) if *share < 1.0 => (
                Severity::Warning,
                format!(
                    "throughput × time is {} of the jobs in {count} of {} rows: the rest of their time is in none of the figures. The time is \
                     that of a part of the transaction, or each average contains the same idle time",
                    shown(*share, 4),
                    all.len()
                ),
            ),
            // As many nodes as the factor, each with these jobs.
            Model::Part(share)
                if !context.has("nodes") && (share - share.round()).abs() < GROUPS * share && *share < 65.0 =>
            {
                (
                    Severity::Warning,
                    format!(
                        "throughput × time is {} times the jobs in {count} of {} rows: they can only be those of each of {} nodes or load \
                     generators, or the rate is that of all",
                        shown(*share, 4),
                        all.len(),
                        share.round()
                    ),
                )
            }
            Model::Part(share) => (
                Severity::Error,
                format!(
                    "throughput × time is {} times the jobs in {count} of {} rows, which no job can do{}",
                    shown(*share, 4),
                    all.len(),
                    unit_slip(*share)
                ),
            ),
            Model::Busy | Model::Unknown => return,
        };
        let part = matches!(self, Model::Part(share) if *share < 1.0);
        let law = if part { DILUTION.id } else { LITTLE.id };
        findings.push(context.about_table(law, severity, columns, text));
    }
}

/// What a factor between printed and true time may be.
fn unit_slip(share: f64) -> &'static str {
    match share {
        s if (900.0..1100.0).contains(&s) => ": the times are a thousandth of what is printed (µs for ms?)",
        s if (55.0..65.0).contains(&s) => ": the rate is per minute rather than per second",
        s if (9e5..1.1e6).contains(&s) => ": the times are a millionth of what is printed (ns for ms?)",
        _ => ": jobs, rate and time are not of the same thing",
    }
}

fn verdict(row: &Row, model: &Model, context: &Context<'_>) -> (Severity, &'static str, Option<f64>, String) {
    let full = row.jobs / row.latency * 1e3;
    let excess = row.busy.at - 1.0;
    let others = if *model == Model::Busy { ", or a digit is wrong; the other rows agree" } else { "" };
    if row.busy.low > 1.0 && !matches!(model, Model::Part(share) if *share > 1.0) {
        let cut = row.sides.cut_meets(1.0);
        let small = *model != Model::Busy && excess <= EDGES;
        let severity = if cut || small { Severity::Warning } else { Severity::Error };
        let why = match (cut, small) {
            (true, _) => "it fits if digits were cut off rather than rounded",
            (_, true) => "so little that transactions which cross the ends of the window may explain it",
            _ => "no job can be in more than one transaction: a wrong digit or unit",
        };
        let others = if *model == Model::Busy { "; the other rows agree" } else { "" };
        let text = format!(
            "throughput × time is {} jobs, and there were {}: {why}{others}",
            shown(row.tps * row.latency / 1e3, 5),
            shown(row.jobs, 5)
        );
        return (severity, LITTLE.id, Some(full), text);
    }
    if row.latency == 0.0 {
        let text =
            format!("the time is printed as 0; with this throughput it was up to {} ms", shown(row.cycle.high, 4));
        return (Severity::Warning, LITTLE.id, None, text);
    }
    let (tps, expected) = (context.resolve("tps").unwrap_or("tps"), format!("{} tps", shown(full, 5)));
    match model {
        Model::Think(ms) => {
            let with = row.jobs / (row.latency + ms) * 1e3;
            let text = format!(
                "with the think time of {} ms that other rows have, {tps} would be {}",
                shown(*ms, 4),
                shown(with, 5)
            );
            (Severity::Warning, LITTLE.id, Some(with), text)
        }
        Model::Part(share) => {
            let with = full * share;
            let text = format!(
                "with the share of {} that other rows have, {tps} would be {}",
                shown(*share, 4),
                shown(with, 5)
            );
            (Severity::Warning, LITTLE.id, Some(with), text)
        }
        Model::Busy | Model::Unknown => {
            let lost = -excess * 100.0;
            let text = format!(
                "throughput is {} % lower than jobs / time, {expected}: the average is diluted by ramp-up or stragglers, or each job is idle \
                 for {} ms per transaction{others}",
                shown(lost, 2),
                shown(row.think.at, 3)
            );
            (Severity::Warning, DILUTION.id, Some(full), text)
        }
    }
}

/// Throughput × time / jobs of a row.
pub(crate) fn busy(context: &Context<'_>, row: usize) -> Option<Interval> {
    let (latency, ms) = latency_of(context)?;
    let reading = Reading::Rounded;
    let time = context.interval(latency, row, reading)?.scaled(ms * 1e-3);
    let nodes = if context.per_node { context.value("nodes", row)? } else { 1.0 };
    Some(context.interval("tps", row, reading)?.times(time).over(context.interval("jobs", row, reading)?.scaled(nodes)))
}
