//! Little's law: jobs that are always busy are throughput × time. More is impossible; less is time outside the transactions.

use crate::audit::context::Context;
use crate::audit::finding::{Findings, Severity};
use crate::audit::interval::{Interval, common};
use crate::audit::judge::{MOST, Witnesses, range};
use crate::audit::law::law;
use crate::audit::reason::reason;
use crate::audit::sheet::{How, SAMPLE};

/// Rates and times that go together.
const PAIRS: [[&str; 2]; 3] =
    [["tps", "time_ms"], ["io_per_s", "commit_latency_ms"], ["queries_per_s", "commit_latency_ms"]];
/// What the jobs may be the product of, if `jobs` alone are too few.
const SESSIONS: [&[&str]; 8] = [
    &["nodes", "jobs"],
    &["threads", "jobs"],
    &["queue_depth", "jobs"],
    &["queue_depth"],
    &["nodes", "threads"],
    &["threads"],
    &["nodes", "threads", "jobs"],
    &["nodes", "queue_depth", "jobs"],
];
/// Shares of the jobs' time outside transactions, %, if the tool knows its own loop.
const OUTSIDE: [&str; 3] = ["outside_tx_pct", "thinking_pct", "connecting_pct"];
/// Relative excess that transactions crossing the window's edges may explain.
const EDGES: f64 = 0.01;
/// Relative deviation up to which a product of columns are the jobs.
const GROUPS: f64 = 0.03;
/// Relative deviation of figures with all their digits.
const NOISE: f64 = 0.001;
/// Share of the jobs that are busy, at least, in rows that show that jobs, rate and time are of the same thing.
const NEAR: f64 = 0.8;

struct Row {
    row: usize,
    /// Throughput × time as a multiple of the jobs.
    busy: Interval,
    /// Whether that can be 1 if digits were cut off rather than rounded.
    cut: bool,
    /// jobs / throughput − time, ms.
    think: Interval,
    /// Relative error by transactions that began before the window.
    edge: f64,
    /// Whether transactions are due at a rate.
    open: bool,
}

fn pair(context: &Context<'_>) -> Option<[&'static str; 2]> {
    PAIRS.into_iter().find(|pair| pair.iter().all(|name| context.resolve(name).is_some()))
}

/// Rate, time in ms and jobs of a row.
fn figures(context: &Context<'_>, row: usize, cut: bool) -> Option<[Interval; 3]> {
    let [rate, time] = pair(context)?;
    let value = |name: &str| {
        let (columns, factor) = context.resolve(name)?;
        let mut figures = columns.iter().map(|c| context.sheet.columns[*c].interval(row, cut));
        figures.try_fold(Interval::exact(factor), |all, i| Some(all.times(i?)))
    };
    Some([value(rate)?, value(time)?, value("jobs")?])
}

fn read(context: &Context<'_>, row: usize) -> Option<Row> {
    let known = OUTSIDE.iter().filter_map(|id| context.interval(id, row));
    let share = known.fold(Interval::exact(1.0), |left, share| left.plus(share.scaled(-0.01)));
    let [rate, time, all] = figures(context, row, false).filter(|[rate, _, jobs]| rate.at > 0.0 && jobs.at > 0.0)?;
    let [rate_cut, time_cut, all_cut] = figures(context, row, true)?;
    let jobs = all.times(share);
    let longest = context.value("transaction_time_ns_max", row).map_or(5.0 * time.at / 1e3, |ns| ns / 1e9);
    Some(Row {
        row,
        busy: rate.times(time).scaled(1e-3).over(jobs),
        cut: rate_cut.times(time_cut).scaled(1e-3).over(all_cut.times(share)).holds(1.0),
        think: jobs.scaled(1e3).over(rate).plus(time.scaled(-1.0)),
        // Each of all jobs has such a transaction, also where they think most of the time.
        edge: context.late(row, longest) / share.at.clamp(0.01, 1.0),
        open: context.value("rate_tps", row).is_some() || context.sheet.text("job_load", row).contains("open loop"),
    })
}

/// Finds out what the jobs are, if those of the column called so are too few.
pub(crate) fn settle(context: &mut Context<'_>, findings: &mut Findings) {
    let rows = 0..context.rows().min(SAMPLE);
    let busy = |context: &Context<'_>| -> Vec<Interval> {
        rows.clone().filter_map(|row| read(context, row)).map(|r| r.busy).collect()
    };
    let fits = |all: &[Interval]| all.iter().filter(|b| b.holds(1.0) || (b.at - 1.0).abs() < GROUPS).count();
    let alone = busy(context);
    if context.sheet.has("jobs") && alone.iter().all(|b| b.low <= 1.0 + EDGES) {
        return;
    }
    for columns in SESSIONS {
        context.jobs = columns.to_vec();
        let all = busy(context);
        let count = fits(&all);
        if count >= 2 && count as f64 >= MOST * all.len() as f64 && count > fits(&alone) {
            let why = reason!(Sessions, count, all.len(), columns.join(" × "));
            return findings.about_table("little", Severity::Info, columns.to_vec(), why);
        }
    }
    context.jobs = vec!["jobs"];
}

/// What explains most rows: jobs are always in transactions, they think for so many ms, the printed time is a share of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Busy,
    Think(f64),
    Part(f64),
    Unknown,
}

impl Model {
    fn find(all: &[Row]) -> Model {
        let all = &all[..all.len().min(SAMPLE)];
        let is_most = |count: usize| all.len() >= 3 && count as f64 >= MOST * all.len() as f64;
        let most = |is: fn(&&Row) -> bool| is_most(all.iter().filter(is).count());
        let common = |of: fn(&Row) -> Interval| {
            let found = common(&all.iter().map(of).collect::<Vec<_>>());
            found.filter(|(_, count)| all.len() >= 4 && is_most(*count)).map(|(value, _)| value)
        };
        let below = most(|r| r.busy.high < 1.0);
        match (common(|r| r.think), common(|r| r.busy)) {
            _ if most(|r| r.busy.holds(1.0)) => Model::Busy,
            (Some(ms), _) if below && ms > 0.0 => Model::Think(ms),
            (_, Some(share)) if (share - 1.0).abs() > EDGES && (below || share > 1.0) => Model::Part(share),
            _ => Model::Unknown,
        }
    }

    fn holds(self, row: &Row) -> bool {
        match self {
            Model::Busy => row.busy.holds(1.0),
            Model::Think(ms) => row.think.holds(ms),
            Model::Part(share) => row.busy.holds(share) || share > 1.0 && (row.busy.at / share - 1.0).abs() < GROUPS,
            Model::Unknown => false,
        }
    }

    fn say(self, all: &[Row], columns: &[usize], context: &Context<'_>, findings: &mut Findings) {
        let (rows, count) = (all.len(), all.iter().filter(|r| self.holds(r)).count());
        let (law, severity, why) = match self {
            Model::Think(ms) => (law("little"), Severity::Info, reason!(Think, ms, count, rows)),
            Model::Part(factor) => {
                let law = law(if factor > 1.0 { "little" } else { "dilution" });
                (law, Severity::Warning, reason!(Factor, law.formulas[0], count, rows, factor, law.meaning))
            }
            Model::Busy | Model::Unknown => return,
        };
        findings.about_table(law.id, severity, context.ids(columns), why);
    }
}

pub(super) fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some([rate, time]) = pair(context) else { return };
    if (0..context.rows()).all(|row| read(context, row).is_none_or(|r| r.busy.holds(1.0))) {
        return;
    }
    let all: Vec<Row> = (0..context.rows()).filter_map(|row| read(context, row)).collect();
    let columns = context.places(&["jobs", time, rate]);
    let (model, rows, sure) = (Model::find(&all), all.len(), context.is_sure(&columns, How::Id));
    model.say(&all, &columns, context, findings);
    let cut_only = all.iter().filter(|r| r.cut && !r.busy.holds(1.0)).count();
    let cut = cut_only >= 2 && all.iter().all(|r| r.cut || !r.busy.holds(1.0));
    let odd = |r: &&Row| {
        let fine = model.holds(r) || cut && r.cut || r.busy.holds(1.0) && model == Model::Unknown;
        !(fine || (r.busy.at - 1.0).abs() <= r.edge || r.open && r.busy.low <= 1.0)
    };
    let (over, under): (Vec<&Row>, Vec<&Row>) = all.iter().filter(odd).partition(|r| r.busy.low > 1.0);
    // A rate and a time of slightly different transactions scatter to both sides.
    let small = |r: &&Row| (r.busy.at - 1.0).abs() <= EDGES;
    let scatters = model != Model::Busy && over.iter().any(small) && under.iter().any(small);
    let beyond = |some: Vec<_>| -> Vec<&Row> { some.into_iter().filter(|r| !(scatters && small(r))).collect() };
    let (over, under) = (beyond(over), beyond(under));
    let sharp = |r: &&Row| r.busy.high - r.busy.low < 0.5;
    let is_near = |r: &&Row| r.busy.holds(1.0) || (NEAR..=1.0 + EDGES).contains(&r.busy.at);
    let near = all.iter().filter(sharp).filter(is_near).count();
    let explained = matches!(model, Model::Think(_) | Model::Part(_));
    let agree = near >= 2 && near * 2 >= rows || explained;
    let apart = |some: &[&Row], id| {
        let (low, high) = range(some.iter().map(|r| r.busy.at));
        reason!(Apart, law(id).formulas[0], some.len(), rows, low, high)
    };
    if !over.is_empty() && over.iter().all(|r| r.open) {
        findings.about_table("little", Severity::Info, context.ids(&columns), reason!(OpenLoop, over.len(), rows));
    } else if !sure && !agree && over.len() * 2 > rows {
        findings.about_table("little", Severity::Warning, context.ids(&columns), apart(&over, "little"));
    } else {
        let error = (agree || sure) && !matches!(model, Model::Part(share) if share > 1.0);
        report(&over, (error, model), &columns, context, findings);
    }
    // Where no row is near its jobs, no average is diluted: they do other things as well.
    if !sure && !agree && under.len() >= 2 {
        let severity = if under.iter().all(small) { Severity::Info } else { Severity::Warning };
        return findings.about_table("dilution", severity, context.ids(&columns), apart(&under, "dilution"));
    }
    // What the digits of a row leave open is not held against it, unless the model is sharp.
    let witnesses = Witnesses::new(all.iter().map(|r| (r.busy, r.busy.holds(1.0))));
    let said =
        |r: &&Row| explained || !r.busy.holds(1.0) && (agree || sure || witnesses.speak_against(1.0 - r.busy.at));
    let under: Vec<&Row> = under.into_iter().filter(said).collect();
    report(&under, (false, model), &columns, context, findings);
}

fn report(
    some: &[&Row],
    (error, model): (bool, Model),
    columns: &[usize],
    context: &Context<'_>,
    findings: &mut Findings,
) {
    for r in some.iter().filter(|r| (r.busy.at - 1.0).abs() >= NOISE || model != Model::Unknown) {
        let over = r.busy.low > 1.0;
        let far = (r.busy.at - 1.0).abs() > EDGES || model == Model::Busy;
        // A job is between two transactions for a moment: alone, that little dilutes nothing.
        let severity = match (over, far || model != Model::Unknown) {
            (true, _) if error && far => Severity::Error,
            (false, false) => Severity::Info,
            _ => Severity::Warning,
        };
        let law = law(if over || matches!(model, Model::Think(_)) { "little" } else { "dilution" });
        let recomputed = figures(context, r.row, false).and_then(|[rate, time, jobs]| {
            let cycle = time.at + if let Model::Think(ms) = model { ms } else { 0.0 };
            let printed = context.sheet.columns[*columns.last()?].value(r.row)?;
            Some(jobs.at * 1e3 / cycle * printed / rate.at).filter(|v| v.is_finite())
        });
        let more = if model == Model::Unknown { "" } else { "; the other rows agree" };
        let why = (recomputed, reason!(Broken, law.formulas[0], law.meaning, more));
        context.find(findings, (law.id, severity), r.row, columns, why);
    }
}
