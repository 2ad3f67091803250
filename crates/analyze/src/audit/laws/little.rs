//! Little's law: jobs that are always busy are throughput × time. More is impossible; less is time outside the transactions.

use std::ops::Range;

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity, shown};
use crate::audit::interval::{Interval, Reading, common};
use crate::audit::judge::{SAMPLE, Sides, most_meet};

/// What the law is about.
pub(crate) const SESSIONS: [&str; 3] = ["jobs", "tps", "commit_latency_ms"];
/// Shares of the jobs' time outside transactions, %, if the tool knows its own loop.
pub(super) const OUTSIDE: [&str; 3] = ["outside_tx_pct", "thinking_pct", "connecting_pct"];

/// Relative excess that transactions crossing the window's edges may explain.
const EDGES: f64 = 0.01;
/// Share of the rows that must agree on a think time or a factor.
const MOST: f64 = 0.75;
/// Relative deviation up to which a factor is a whole number of groups of jobs.
const GROUPS: f64 = 0.03;
/// Relative deviation of figures with all their digits.
const NOISE: f64 = 0.001;
/// Share of the jobs that are busy, at least, in rows that show that jobs, rate and time are of the same thing.
const NEAR: f64 = 0.8;

/// The columns of rate and time that go together, and the time's unit in ms.
fn pair(context: &Context<'_>) -> Option<(&'static str, &'static str, f64)> {
    const PAIRS: [(&str, &str, f64); 4] = [
        ("tps", "commit_latency_ms", 1.0),
        ("tps", "transaction_time_ns_mean", 1e-6),
        ("io_per_s", "commit_latency_ms", 1.0),
        ("block_reads_per_s", "read_time_us_mean", 1e-3),
    ];
    PAIRS.into_iter().find(|(rate, time, _)| context.has(rate) && context.has(time))
}

/// The time of a transaction in ms, without what passed before its job began.
fn time(context: &Context<'_>, id: &'static str, ms: f64, row: usize, reading: Reading) -> Option<Interval> {
    let time = context.interval(id, row, reading)?.scaled(ms);
    match context.lag.and_then(|index| context.sheet.others.iter().find(|c| c.index == index)) {
        Some(lag) => {
            let unit = lag.printed.as_ref().map_or(1e-3, |u| u.size) * 1e3;
            Some(time.minus(Interval::of(lag.figure(row)?, reading).scaled(unit)).not_negative())
        }
        None => Some(time),
    }
}

/// Throughput × time: the transactions that are under way.
pub(crate) fn under_way(context: &Context<'_>, row: usize, reading: Reading) -> Option<Interval> {
    let (rate, id, ms) = pair(context)?;
    Some(context.interval(rate, row, reading)?.times(time(context, id, ms, row, reading)?).scaled(1e-3))
}

/// Throughput × time / jobs of a row.
pub(crate) fn busy(context: &Context<'_>, row: usize) -> Option<Interval> {
    Some(under_way(context, row, Reading::Rounded)?.over(context.jobs(row, Reading::Rounded)?))
}

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

fn rows(context: &Context<'_>, range: Range<usize>) -> Vec<Row> {
    let Some((rate, latency, ms)) = pair(context) else { return Vec::new() };
    let of = |row: usize| {
        let jobs = |reading| {
            // Where the tool knows its own loop, and what jobs did between transactions, they were in transactions for the rest.
            let known = OUTSIDE.into_iter().filter_map(|id| context.interval(id, row, reading));
            let outside = known.fold(Interval::exact(0.0), |sum, share| sum.plus(share.scaled(0.01)));
            Some(context.jobs(row, reading)?.times(Interval::exact(1.0).minus(outside)))
        };
        let time = |reading| time(context, latency, ms, row, reading);
        let busy = |reading| Some(under_way(context, row, reading)?.over(jobs(reading)?));
        let cycle = |reading| Some(jobs(reading)?.scaled(1e3).over(context.interval(rate, row, reading)?));
        let reading = Reading::Loose;
        let value = Row {
            row,
            sides: Sides::of(row, busy)?,
            busy: busy(reading)?,
            think: cycle(reading)?.minus(time(reading)?),
            cycle: cycle(reading)?,
            latency: time(reading)?.at,
            jobs: jobs(Reading::Rounded)?.at,
            tps: context.value(rate, row)?,
        };
        (value.jobs > 0.0 && value.tps > 0.0).then_some(value)
    };
    range.filter_map(of).collect()
}

pub(super) fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some((rate, latency, _)) = pair(context) else { return };
    let columns = ["jobs", rate, latency];
    // Mostly, all rows meet.
    if context.rows().all(|row| busy(context, row).is_none_or(|busy| busy.holds(1.0))) {
        return;
    }
    let all = rows(context, context.rows());
    let sides: Vec<Sides> = all.iter().map(|r| r.sides).collect();
    let model = Model::of(&all, &sides);
    let sure = context.is_sure(&[rate, latency]);
    model.say(&all, sure, context, &columns, findings);
    // Digits that were cut off rather than rounded.
    let cut = |r: &&Row| r.sides.cut_meets(1.0) && !r.sides.meets(1.0);
    let rounded = |r: &Row| r.sides.meets(1.0) && !r.sides.cut_meets(1.0);
    let cut = if all.iter().filter(cut).count() >= 2 && !all.iter().any(rounded) {
        |r: &Row| r.sides.cut_meets(1.0)
    } else {
        |_: &Row| false
    };
    let odd = |row: &&Row| {
        // What an open loop does not ask for, its jobs need not do; and a job's first transaction began before the window.
        let open = is_open(context, row.row);
        // Each of all jobs has such a transaction, also where they think most of the time and few are busy.
        let all_per_busy = context.jobs(row.row, Reading::Rounded).map_or(1.0, |all| (all.at / row.jobs).max(1.0));
        let edge = (row.busy.at - 1.0).abs() <= context.edges(row.row) * all_per_busy;
        let fine = row.sides.meets(1.0) && model == Model::Busy || model.holds(row) || cut(row);
        !(fine || edge || open && row.busy.low <= 1.0)
    };
    let (over, under): (Vec<&Row>, Vec<&Row>) = all.iter().filter(odd).partition(|r| r.busy.low > 1.0);
    // A rate and a time of slightly different transactions, as those of one second of a test are, scatter to both sides.
    let small = |r: &&Row| (r.busy.at - 1.0).abs() <= EDGES;
    let scatters = model != Model::Busy && over.iter().any(small) && under.iter().any(small);
    let beyond = |some: Vec<_>| some.into_iter().filter(|r| !(scatters && small(r))).collect();
    let (over, under): (Vec<&Row>, Vec<&Row>) = (beyond(over), beyond(under));
    // Digits that leave half of it open show nothing.
    let sharp = |r: &&Row| r.busy.high - r.busy.low < 0.5;
    let is_near = |r: &&Row| r.sides.meets(1.0) || (NEAR..=1.0 + EDGES).contains(&r.busy.at);
    let near = all.iter().filter(sharp).filter(is_near).count();
    let agreed = near >= 2 && near * 2 >= all.len();
    let agree = agreed || matches!(model, Model::Think(_)) || matches!(model, Model::Part(share) if share < 1.0);
    let of_open = !over.is_empty() && over.iter().all(|r| is_open(context, r.row));
    let factor = matches!(model, Model::Part(share) if share > 1.0);
    if of_open {
        let text = format!(
            "throughput × time is more than the jobs in {} of {} rows: the times of this open loop count from when transactions were \
             due, and these waited for a job",
            over.len(),
            all.len()
        );
        findings.push(context.about_table("little", Severity::Info, &columns, text));
    } else if !sure && !agree && !factor && over.len() * 2 > all.len() {
        findings.push(context.about_table("little", Severity::Warning, &columns, format!("{}: jobs, rate and time are not of the same thing. They are jobs of each node or client, with several requests under way; a rate that counts parts of them; or times that hold a wait for a job", range(&over, &all))));
    } else {
        for row in over {
            report(row, &model, agree || sure, context, &columns, findings);
        }
    }
    // Where no row is near its jobs, no average is diluted: they do other things as well.
    if rate == "tps" && !(sure || agree || factor) && under.len() >= 2 && under.len() * 2 > all.len() {
        findings.push(context.about_table("dilution", Severity::Warning, &columns, format!("{}: jobs are idle or do other things as well, the time is that of a part of the transaction, or the load is that of an open loop", range(&under, &all))));
        return;
    }
    if !sure && under.len() > 1 && under.iter().all(small) {
        let text = format!("{}: so little that other work between the transactions explains it", range(&under, &all));
        findings.push(context.about_table("dilution", Severity::Info, &columns, text));
        return;
    }
    for row in under.into_iter().filter(|_| agree || rate == "tps") {
        report(row, &model, false, context, &columns, findings);
    }
}

/// Between which shares of the jobs some rows are.
fn range(some: &[&Row], all: &[Row]) -> String {
    let (low, high) = some.iter().fold((f64::INFINITY, 0.0f64), |(l, h), r| (l.min(r.busy.at), h.max(r.busy.at)));
    format!(
        "throughput × time is {} to {} times the jobs in {} of {} rows",
        shown(low, 3),
        shown(high, 3),
        some.len(),
        all.len()
    )
}

fn is_open(context: &Context<'_>, row: usize) -> bool {
    context.value("rate_tps", row).is_some() || context.sheet.text("job_load", row).contains("open loop")
}

fn report(
    row: &Row,
    model: &Model,
    error: bool,
    context: &Context<'_>,
    columns: &[&'static str],
    findings: &mut Findings,
) {
    let lower = row.busy.low <= 1.0 && !model.is_sharp();
    if lower && !findings.wants("dilution", Severity::Warning) {
        return;
    }
    let (severity, law, recomputed, text) = verdict(row, model);
    let severity = if error { severity } else { Severity::Warning };
    let hidden = row.busy.holds(1.0) && *model != Model::Busy && severity != Severity::Error && !model.is_sharp();
    if hidden || (row.busy.at - 1.0).abs() < NOISE && *model == Model::Unknown {
        return;
    }
    if findings.wants(law, severity) {
        findings.push(context.about_row(law, severity, row.row, columns, columns[1], recomputed, text));
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
        let above = all.iter().filter(|r| r.busy.low > 1.0).count() * 2 > all.len();
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
            Some((share, count)) if count as f64 >= most && (below >= most || share > 1.0 && above) => {
                Model::Part(share)
            }
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

    fn say(&self, all: &[Row], sure: bool, context: &Context<'_>, columns: &[&'static str], findings: &mut Findings) {
        let count = all.iter().filter(|r| self.holds(r)).count();
        let of = format!("in {count} of {} rows", all.len());
        let (law, severity, text) = match self {
            Model::Think(ms) => {
                let text = format!(
                    "jobs / throughput − time is {} ms {of}: a think time, or time outside what was timed",
                    shown(*ms, 4)
                );
                ("little", Severity::Info, text)
            }
            Model::Part(share) if *share < 1.0 => {
                let text = format!(
                    "throughput × time is {} of the jobs {of}: the rest of their time is in none of the figures. The time is that of a part of \
                     the transaction, or each average contains the same idle time",
                    shown(*share, 4)
                );
                ("dilution", Severity::Warning, text)
            }
            Model::Part(share) => {
                let groups = (share - share.round()).abs() < GROUPS * share && *share < 65.0;
                let why = match share {
                    s if groups => format!(
                        "they can only be those of each of {} nodes or load generators, or requests under way in each",
                        s.round()
                    ),
                    s if (900.0..1100.0).contains(s) => {
                        "the times are a thousandth of what is printed (µs for ms?)".to_owned()
                    }
                    s if (55.0..65.0).contains(s) => "the rate is per minute rather than per second".to_owned(),
                    s if (9e5..1.1e6).contains(s) => {
                        "the times are a millionth of what is printed (ns for ms?)".to_owned()
                    }
                    _ => "jobs, rate and time are not of the same thing".to_owned(),
                };
                let severity = if sure && !groups { Severity::Error } else { Severity::Warning };
                (
                    "little",
                    severity,
                    format!(
                        "throughput × time is {} times the jobs {of}, which no job can do alone: {why}",
                        shown(*share, 4)
                    ),
                )
            }
            Model::Busy | Model::Unknown => return,
        };
        findings.push(context.about_table(law, severity, columns, text));
    }
}

fn verdict(row: &Row, model: &Model) -> (Severity, &'static str, Option<f64>, String) {
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
        return (severity, "little", Some(full), text);
    }
    if row.latency == 0.0 {
        let text =
            format!("the time is printed as 0; with this throughput it was up to {} ms", shown(row.cycle.high, 4));
        return (Severity::Warning, "little", None, text);
    }
    let with = |what: String, tps: f64| {
        let text = format!("with the {what} that other rows have, throughput would be {}", shown(tps, 5));
        (Severity::Warning, "little", Some(tps), text)
    };
    match model {
        Model::Think(ms) => with(format!("think time of {} ms", shown(*ms, 4)), row.jobs / (row.latency + ms) * 1e3),
        Model::Part(share) => with(format!("share of {}", shown(*share, 4)), full * share),
        Model::Busy | Model::Unknown => {
            let text = format!(
                "throughput is {} % lower than jobs / time, {} tps: the average is diluted by ramp-up or stragglers, or each job is idle for \
                 {} ms per transaction{others}",
                shown(-excess * 100.0, 2),
                shown(full, 5),
                shown(row.think.at, 3)
            );
            (Severity::Warning, "dilution", Some(full), text)
        }
    }
}
