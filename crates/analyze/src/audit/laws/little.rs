//! Little's law: jobs that are always busy are throughput × time. More is impossible; less is time outside the transactions.

use loadline_model::load::OPEN_LOOP;

use crate::audit::context::Context;
use crate::audit::finding::Severity;
use crate::audit::formula::{Pair, compile};
use crate::audit::interval::{Interval, common};
use crate::audit::judge::{AGREE, NOISE, Witnesses, apart, is_most};
use crate::audit::law::{Law, law};
use crate::audit::reason::{Figure, Reason};
use crate::audit::sheet::{How, SAMPLE};

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
/// Relative deviation up to which a product of columns are the jobs.
const GROUPS: f64 = 0.03;
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

impl Row {
    fn is_over(&self) -> bool {
        self.busy.low > 1.0
    }

    fn deviation(&self) -> f64 {
        (self.busy.at - 1.0).abs()
    }
}

/// The law for a rate and a time that go together.
struct Loop<'a> {
    law: &'static Law,
    context: &'a Context<'a>,
    /// Throughput × time, and the jobs.
    pair: Pair,
    rate: &'static str,
    time: &'static str,
}

impl<'a> Loop<'a> {
    fn new(law: &'static Law, context: &'a Context<'a>) -> Option<Loop<'a>> {
        let compiled = |text: &&'static str| Some((*text, compile(text, context)?.pop()?));
        let (text, pair) = law.formulas.iter().find_map(compiled)?;
        let mut words = text.split([' ', '!', '*']).filter(|word| !word.is_empty());
        Some(Loop { law, context, pair, rate: words.next()?, time: words.next()? })
    }

    fn rows(&self, most: usize) -> impl Iterator<Item = Row> {
        (0..self.context.rows().min(most)).filter_map(|row| self.read(row))
    }

    fn read(&self, row: usize) -> Option<Row> {
        let context = self.context;
        let known = OUTSIDE.iter().filter_map(|id| context.interval(id, row));
        let share = known.fold(Interval::exact(1.0), |left, share| left.plus(share.scaled(-0.01)));
        let busy = |cut| self.pair.values(row, context, cut).map(|(left, jobs)| left.over(jobs.times(share)));
        let [rate, time, jobs] = [self.rate, self.time, "jobs"].map(|name| context.figure(name, row, false));
        let (rate, time, jobs) = (rate?, time?, jobs?);
        if rate.at <= 0.0 || jobs.at <= 0.0 {
            return None;
        }
        let longest = context.value("transaction_time_ns_max", row).map_or(5.0 * time.at / 1e3, |ns| ns / 1e9);
        let is_open = || context.sheet.text("job_load", row).contains(OPEN_LOOP);
        Some(Row {
            row,
            busy: busy(false)?,
            cut: busy(true)?.holds(1.0),
            think: jobs.times(share).scaled(1e3).over(rate).plus(time.scaled(-1.0)),
            // Each of all jobs has such a transaction, also where they think most of the time.
            edge: context.late(row, longest) / share.at.clamp(0.01, 1.0),
            open: context.value("rate_tps", row).is_some() || is_open(),
        })
    }

    fn about_table(&self, law: &Law, severity: Severity, reason: Reason) {
        self.context.about_table(law.id, severity, &self.pair.columns, reason);
    }

    /// The formula of the law, or of dilution.
    fn text(&self, law: &Law) -> String {
        if law.id == self.law.id { self.pair.text.clone() } else { self.pair.text.replace("<=", "=") }
    }
}

/// Finds out what the jobs are, if those of the column called so are too few.
pub(crate) fn settle(context: &mut Context<'_>) {
    let law = law("little");
    let busy = |context: &Context<'_>| -> Vec<Interval> {
        Loop::new(law, context).map_or_else(Vec::new, |all| all.rows(SAMPLE).map(|row| row.busy).collect())
    };
    let fits = |all: &[Interval]| all.iter().filter(|b| b.holds(1.0) || (b.at - 1.0).abs() < GROUPS).count();
    let alone = busy(context);
    if context.sheet.has("jobs") && alone.iter().all(|b| b.low <= 1.0 + law.slack) {
        return;
    }
    for columns in SESSIONS {
        context.jobs = columns.to_vec();
        let all = busy(context);
        let count = fits(&all);
        if count >= 2 && is_most(count, all.len()) && count > fits(&alone) {
            let why = Reason::Sessions(count, all.len(), columns.join(" × "));
            return context.about_table(law.id, Severity::Info, &context.places(&["jobs"]), why);
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
    fn find(all: &[Row], slack: f64) -> Model {
        let all = &all[..all.len().min(SAMPLE)];
        let most = |is: fn(&&Row) -> bool| all.len() >= 3 && is_most(all.iter().filter(is).count(), all.len());
        let common = |of: fn(&Row) -> Interval| {
            let found = common(&all.iter().map(of).collect::<Vec<_>>());
            found.filter(|(_, count)| all.len() >= 4 && is_most(*count, all.len())).map(|(value, _)| value)
        };
        let below = most(|r| r.busy.high < 1.0);
        match (common(|r| r.think), common(|r| r.busy)) {
            _ if most(|r| r.busy.holds(1.0)) => Model::Busy,
            (Some(ms), _) if below && ms > 0.0 => Model::Think(ms),
            (_, Some(share)) if (share - 1.0).abs() > slack && (below || share > 1.0) => Model::Part(share),
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
}

pub(super) fn check(little: &'static Law, context: &Context<'_>) {
    let Some(found) = Loop::new(little, context) else { return };
    if found.rows(usize::MAX).all(|row| row.busy.holds(1.0)) {
        return;
    }
    let all: Vec<Row> = found.rows(usize::MAX).collect();
    let (dilution, model, rows) = (law("dilution"), Model::find(&all, little.slack), all.len());
    let sure = context.is_sure(&found.pair.columns, How::Id);
    let holding = all.iter().filter(|r| model.holds(r)).count();
    match model {
        Model::Think(ms) => found.about_table(little, Severity::Info, Reason::Think(Figure(ms), holding, rows)),
        Model::Part(factor) => {
            let law = if factor > 1.0 { little } else { dilution };
            let why = Reason::Factor(found.text(law), holding, rows, Figure(factor), law.meaning);
            found.about_table(law, Severity::Warning, why);
        }
        Model::Busy | Model::Unknown => {}
    }
    let cut_only = all.iter().filter(|r| r.cut && !r.busy.holds(1.0)).count();
    let cut = cut_only >= 2 && all.iter().all(|r| r.cut || !r.busy.holds(1.0));
    let is_odd = |r: &&Row| {
        let fine = model.holds(r) || cut && r.cut || r.busy.holds(1.0) && model == Model::Unknown;
        !(fine || r.deviation() <= r.edge || r.open && r.busy.low <= 1.0)
    };
    let is_small = |r: &&Row| r.deviation() <= little.slack;
    let small = || all.iter().filter(is_odd).filter(is_small);
    // A rate and a time of slightly different transactions scatter to both sides.
    let scatters = model != Model::Busy && small().any(Row::is_over) && !small().all(Row::is_over);
    let odd = all.iter().filter(|r| is_odd(r) && !(scatters && is_small(r)));
    let (over, under): (Vec<&Row>, Vec<&Row>) = odd.partition(|r| r.is_over());
    let is_near = |r: &&Row| r.busy.holds(1.0) || (NEAR..=1.0 + little.slack).contains(&r.busy.at);
    let near = all.iter().filter(|r| r.busy.high - r.busy.low < 0.5).filter(is_near).count();
    let explained = matches!(model, Model::Think(_) | Model::Part(_));
    let known = sure || explained || near >= 2 && near * 2 >= rows;
    let all_apart = |some: &[&Row], law, severity| {
        let ratios: Vec<f64> = some.iter().map(|r| r.busy.at).collect();
        found.about_table(law, severity, apart(found.text(law), &ratios, rows));
    };
    if !over.is_empty() && over.iter().all(|r| r.open) {
        found.about_table(little, Severity::Info, Reason::OpenLoop(over.len(), rows));
    } else if !known && over.len() * 2 > rows {
        all_apart(&over, little, Severity::Warning);
    } else {
        let can_be = known && !matches!(model, Model::Part(share) if share > 1.0);
        over.into_iter().for_each(|row| found.report(row, can_be, model));
    }
    // Where no row is near its jobs, no average is diluted: they do other things as well.
    if !known && under.len() >= 2 {
        let severity = if under.iter().all(is_small) { Severity::Info } else { Severity::Warning };
        return all_apart(&under, dilution, severity);
    }
    // What the digits of a row leave open is not held against it, unless the model is sharp.
    let witnesses = Witnesses::new(all.iter().map(|r| (r.busy, r.busy.holds(1.0))));
    let is_said = |r: &Row| !r.busy.holds(1.0) && (known || witnesses.speak_against(1.0 - r.busy.at));
    under.into_iter().filter(|r| explained || is_said(r)).for_each(|row| found.report(row, false, model));
}

impl Loop<'_> {
    /// Adds a finding about a row; an error if it `can_be` one.
    fn report(&self, r: &Row, can_be: bool, model: Model) {
        if r.deviation() < NOISE && model == Model::Unknown {
            return;
        }
        let over = r.is_over();
        // pgbench leaves the time to connect out of its rate, and not out of its time.
        let far = r.deviation() > self.law.slack;
        // A job is between two transactions for a moment: alone, that little dilutes nothing.
        let severity = match (over, far || model != Model::Unknown) {
            (true, _) if can_be && far => Severity::Error,
            (false, false) => Severity::Info,
            _ => Severity::Warning,
        };
        let law = if over || matches!(model, Model::Think(_)) { self.law } else { law("dilution") };
        let time = self.context.figure(self.time, r.row, false).map_or(0.0, |time| time.at);
        let factor = match model {
            Model::Think(ms) => time / (time + ms),
            Model::Part(share) => share,
            Model::Busy | Model::Unknown => 1.0,
        };
        let rate = self.pair.columns.last().and_then(|rate| self.pair.solve(*rate, r.row, self.context, (1.0, 0.0)));
        let recomputed = rate.map(|rate| rate * factor).filter(|v| v.is_finite());
        let more = if model == Model::Unknown { "" } else { AGREE };
        let why = Reason::Broken(self.text(law), law.meaning, more, "");
        self.context.find((law.id, severity), r.row, &self.pair.columns, recomputed, why);
    }
}
