//! Holds a formula against all rows of a table together. What one row alone cannot show, the others can: where they agree, a row
//! that does not is wrong, however small its deviation; where all are off by one factor, the columns mean something else. A series
//! that is off by a factor of its own, beside others that are not, is judged alone.

use loadline_model::load::OPEN_LOOP;

use super::context::Context;
use super::finding::{Figure, Reason, Severity};
use super::formula::Pair;
use super::interval::{Interval, common};
use super::law::{Kind, Law, law};
use super::sheet::{How, SAMPLE};

/// Share of the rows that must agree with each other to speak against another.
const MOST: f64 = 0.75;
/// Relative deviation that figures with all their digits have from one reading of a clock to the next.
const NOISE: f64 = 0.001;
/// How late counters are often read after the jobs' own count, and how late on a busy machine, s.
const LATE: f64 = 0.05;
const VERY_LATE: f64 = 0.5;
/// Relative deviation up to which a product of columns are the jobs.
pub(crate) const GROUPS: f64 = 0.03;
/// Requests of a job that may be in flight: a thousand of them are rather another unit.
const DEEPEST: f64 = 500.0;
/// Share of the jobs that are busy, at least, in rows that show that jobs, rate and time are of the same thing.
const NEAR: f64 = 0.8;
/// Shares of the jobs' time outside transactions, %, if the tool knows its own loop.
const OUTSIDE: [&str; 3] = ["outside_tx_pct", "thinking_pct", "connecting_pct"];

pub(crate) fn is_most(count: usize, all: usize) -> bool {
    count as f64 >= MOST * all as f64
}

/// How many rows do not obey the law.
fn missed(rows: &[Row]) -> usize {
    rows.iter().filter(|r| !r.meets).count()
}

/// The left side in a row, as a multiple of the right one; for parts of a whole, 1 and their difference in percent.
struct Row {
    row: usize,
    ratio: Interval,
    /// Whether it obeys the law as far as this row alone shows it.
    meets: bool,
    /// Whether it does so only if digits were cut off rather than rounded.
    cut: bool,
    /// Mean time, and what is missing to jobs / throughput, ms.
    time: f64,
    pause: Interval,
    /// Whether transactions are due at a rate.
    open: bool,
}

impl Row {
    /// How far it is from a left side of `at` times the right one.
    fn deviation(&self, at: f64) -> f64 {
        (self.ratio.at / at - 1.0).abs()
    }

    /// The whole multiple of the right side that the left one is, within its digits, or hardly less.
    fn multiple(&self) -> Option<f64> {
        let near = |m: &f64| self.ratio.holds(*m) || (1.0 - GROUPS..1.0).contains(&(self.ratio.at / m));
        [self.ratio.at.round(), self.ratio.at.ceil()].into_iter().find(|m| (2.0..DEEPEST).contains(m) && near(m))
    }
}

/// What explains most rows: the left side is so many times the right one, or each job pauses for so many ms.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Factor(f64),
    Pause(f64),
}

impl Model {
    fn fits(self, row: &Row) -> bool {
        match self {
            Model::Pause(ms) => row.pause.holds(ms),
            Model::Factor(at) => row.ratio.holds(at) || at > 1.0 && row.deviation(at) < GROUPS && row.time > 0.0,
        }
    }

    fn factor(self, row: &Row) -> f64 {
        match self {
            Model::Factor(at) => at,
            Model::Pause(ms) => row.time / (row.time + ms),
        }
    }
}

/// A law's formula with the rows of a table, and what they say together.
pub(crate) struct Judge<'a> {
    law: &'static Law,
    pair: &'a Pair,
    context: &'a Context<'a>,
    /// Whether the jobs are on the right: more is impossible, and less is time outside the transactions.
    of_jobs: bool,
    is_two_sided: bool,
    model: Option<Model>,
    /// Half widths of the rows, the most precise first, with how many up to each meet.
    witnesses: Vec<(f64, usize)>,
    /// Whether the columns are what they were taken for.
    known: bool,
    /// Whether a row shows that digits were rounded.
    rounded: bool,
    /// A row of the series that is judged alone.
    alone: Option<usize>,
}

impl<'a> Judge<'a> {
    pub(crate) fn check(law: &'static Law, pair: &'a Pair, context: &'a Context<'a>) {
        let mut judge = Judge::new(law, pair, context);
        if (0..context.rows()).filter_map(|row| judge.read(row)).any(|r| !r.meets) {
            let all: Vec<Row> = (0..context.rows()).filter_map(|row| judge.read(row)).collect();
            let alone = context.series.len() > 1 && judge.model(&all, missed(&all)).is_none();
            let rest = if alone { judge.without_series(all) } else { all };
            judge.judge(&rest);
        }
    }

    /// Whether a model explains most rows of a series, and none of them is surely impossible: a factor does not if most rows of the table
    /// `agree` that the columns are what they are called.
    fn explains(&self, series: &[Row], agree: bool) -> bool {
        match self.model(series, missed(series)) {
            Some(Model::Pause(_)) => true,
            Some(Model::Factor(at)) if self.of_jobs => at < 1.0,
            Some(Model::Factor(_)) => {
                self.pair.equal && !agree && !self.context.is_sure(&self.pair.columns, self.law.sure)
            }
            None => false,
        }
    }

    /// Judges each series alone that a model of its own explains, and returns the other rows.
    fn without_series(&self, rows: Vec<Row>) -> Vec<Row> {
        let series = &self.context.series;
        let agree = is_most(rows.iter().filter(|r| r.meets).count(), rows.len());
        let mut place = vec![series.len(); self.context.rows()];
        series.iter().enumerate().for_each(|(at, rows)| rows.iter().for_each(|row| place[*row] = at));
        let mut groups: Vec<Vec<Row>> = std::iter::repeat_with(Vec::new).take(series.len() + 1).collect();
        rows.into_iter().for_each(|r| groups[place[r.row]].push(r));
        let (alone, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|rows| self.explains(rows, agree));
        for rows in alone {
            Judge { alone: rows.first().map(|r| r.row), ..Judge::new(self.law, self.pair, self.context) }.judge(&rows);
        }
        let mut rest: Vec<Row> = others.into_iter().flatten().collect();
        rest.sort_by_key(|r| r.row);
        rest
    }

    /// The left side as a multiple of the right one in each row of the sample.
    pub(crate) fn ratios(law: &'static Law, pair: &'a Pair, context: &'a Context<'a>) -> Vec<Interval> {
        let judge = Judge::new(law, pair, context);
        (0..context.rows().min(SAMPLE)).filter_map(|row| judge.read(row)).map(|r| r.ratio).collect()
    }

    fn new(law: &'static Law, pair: &'a Pair, context: &'a Context<'a>) -> Judge<'a> {
        let of_jobs = law.kind == Kind::Jobs;
        let is_two_sided = pair.equal || of_jobs;
        let (model, witnesses, known, rounded, alone) = (None, Vec::new(), false, false, None);
        Judge { law, pair, context, of_jobs, is_two_sided, model, witnesses, known, rounded, alone }
    }

    fn ratio(&self, row: usize, cut: bool) -> Option<Interval> {
        let (left, right) = self.pair.values(row, self.context, cut)?;
        // Of nothing at all, both sides are 0.
        if left.at == 0.0 && right.at == 0.0 {
            return None;
        }
        let difference = || left.plus(right.scaled(-1.0)).scaled(0.01).plus(Interval::exact(1.0));
        Some(if self.law.kind == Kind::Parts { difference() } else { left.over(right) })
    }

    fn read(&self, row: usize) -> Option<Row> {
        let (context, ratio, slack) = (self.context, self.ratio(row, false)?, self.law.slack);
        let most = 1.0 + if slack > 0.0 { slack + context.late(row, VERY_LATE) } else { 0.0 };
        let meets = if self.pair.equal { ratio.holds(1.0) } else { ratio.low <= most };
        let mut r = Row { row, ratio, meets, cut: false, time: 0.0, pause: ratio, open: false };
        if self.of_jobs {
            let outside = OUTSIDE.iter().filter_map(|id| context.sheet.column(id)?.interval(row, false));
            let share = outside.fold(Interval::exact(1.0), |left, part| left.plus(part.scaled(-0.01)));
            let (rate, time) = self.pair.named_and_rest(row, context)?;
            let jobs = self.pair.values(row, context, false)?.1.times(share);
            if rate.at <= 0.0 || jobs.at <= 0.0 {
                return None;
            }
            (r.ratio, r.time) = (ratio.over(share), time.at * 1e3);
            r.pause = jobs.over(rate).plus(time.scaled(-1.0)).scaled(1e3);
            r.open =
                context.value("rate_tps", row).is_some() || context.sheet.text("job_load", row).contains(OPEN_LOOP);
            // Each of all jobs has a transaction that began before the window, also where they pause most of the time.
            let longest = context.value("transaction_time_ns_max", row).map_or(5.0 * time.at, |ns| ns / 1e9);
            let edge = context.late(row, longest) / share.at.clamp(0.01, 1.0);
            r.meets = r.ratio.holds(1.0) || r.deviation(1.0) <= edge || r.open && r.ratio.low <= 1.0;
        } else if self.law.kind == Kind::Agreed {
            r.meets |= r.deviation(1.0) <= slack;
        }
        if !r.meets {
            let cut = self.ratio(row, true)?;
            r.cut = if self.is_two_sided { cut.holds(1.0) } else { cut.low <= most };
        }
        Some(r)
    }

    fn judge(&mut self, all: &[Row]) {
        let missed = missed(all);
        if self.law.kind == Kind::Agreed && (all.len() < 3 || missed * 4 > all.len()) {
            return;
        }
        // Rows that meet if digits were rounded, and not if they were cut off, show that they were rounded.
        let is_rounded = |r: &Row| r.ratio.holds(1.0) && self.ratio(r.row, true).is_some_and(|cut| !cut.holds(1.0));
        self.rounded = self.pair.equal && all.iter().any(is_rounded);
        let edges = all.iter().filter(|r| r.cut && !self.rounded).count();
        let most = edges * 2 > all.len();
        let cut = if self.of_jobs { edges >= 2 && edges == missed } else { self.pair.equal && all.len() >= 4 && most };
        self.model = self.model(all, missed).filter(|_| self.of_jobs || self.pair.equal && !cut);
        match self.model {
            Some(model) => self.announce(all, model),
            None if cut && most => {
                self.about_table(self.law, Severity::Info, Reason::Cut(self.pair.text.clone(), edges, all.len()));
            }
            None => {}
        }
        self.known = self.model.is_some() || self.is_known(all);
        self.witnesses = self.witnesses(all);
        let fits = |r: &Row| match self.model {
            Some(model) => model.fits(r) || r.meets && !r.ratio.holds(1.0),
            None => r.meets,
        };
        let odd: Vec<&Row> = all.iter().filter(|r| !(fits(r) || cut && r.cut && !self.rounded)).collect();
        if !self.of_jobs {
            return self.report_side(self.law, &odd, all.len());
        }
        let (mut above, mut below): (Vec<&Row>, Vec<&Row>) = odd.into_iter().partition(|r| r.ratio.low > 1.0);
        // A rate and a time of slightly different transactions scatter to both sides.
        let is_small = |r: &&Row| r.deviation(1.0) <= self.law.slack;
        if above.iter().any(is_small) && below.iter().any(is_small) {
            [&mut above, &mut below].into_iter().for_each(|side| side.retain(|r| !is_small(r)));
        }
        if !above.is_empty() && above.iter().all(|r| r.open) {
            self.about_table(self.law, Severity::Info, Reason::OpenLoop(above.len(), all.len()));
        } else {
            self.report_side(self.law, &above, all.len());
        }
        self.report_side(law("dilution"), &below, all.len());
    }

    /// Whether the columns are surely what they were taken for, or the rows show it.
    fn is_known(&self, all: &[Row]) -> bool {
        let is_sure = |how| self.context.is_sure(&self.pair.columns, how);
        if self.of_jobs {
            let is_near = |r: &&Row| r.ratio.holds(1.0) || (NEAR..=1.0 + self.law.slack).contains(&r.ratio.at);
            let near = all.iter().filter(|r| r.ratio.high - r.ratio.low < 0.5).filter(is_near).count();
            return is_sure(How::Id) || near >= 2 && near * 2 >= all.len();
        }
        // Of what only a header says, most rows know better.
        is_sure(self.law.sure) && (!self.pair.equal || all.len() <= 2 || is_sure(How::Id))
    }

    fn witnesses(&self, all: &[Row]) -> Vec<(f64, usize)> {
        let at = if let Some(Model::Factor(at)) = self.model { at } else { 1.0 };
        let witness = |r: &Row| ((r.ratio.high - r.ratio.low) / 2.0, usize::from(r.ratio.holds(at)));
        let mut found: Vec<(f64, usize)> = all.iter().map(witness).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut met = 0;
        for witness in &mut found {
            met += witness.1;
            witness.1 = met;
        }
        found
    }

    /// Whether most of the rows whose digits would show a deviation as large as `deviation` have none.
    fn others_speak_against(&self, deviation: f64) -> bool {
        let precise = self.witnesses.partition_point(|(half, _)| *half < deviation);
        let met = precise.checked_sub(1).map_or(0, |last| self.witnesses[last].1);
        met >= 3 && is_most(met, precise) || met == 2 && self.witnesses.len() == 3
    }

    fn model(&self, all: &[Row], missed: usize) -> Option<Model> {
        if all.len() < 4 || missed * 2 < all.len() {
            return None;
        }
        let sample = &all[..all.len().min(SAMPLE)];
        let most = |of: fn(&Row) -> Interval| {
            let (value, count) = common(&sample.iter().map(of).collect::<Vec<_>>())?;
            is_most(count, sample.len()).then_some(value)
        };
        let is_below = self.of_jobs && is_most(all.iter().filter(|r| r.ratio.high < 1.0).count(), all.len());
        let pause = most(|r| r.pause).filter(|ms| is_below && *ms > 0.0);
        let late = NOISE.max(if self.of_jobs { self.law.slack } else { self.context.late(0, LATE) });
        let factor =
            || most(|r| r.ratio).filter(|at| (at - 1.0).abs() > late && (self.pair.equal || is_below || *at > 1.0));
        pause.map(Model::Pause).or_else(|| factor().map(Model::Factor))
    }

    fn about_table(&self, law: &Law, severity: Severity, reason: Reason) {
        match self.alone {
            Some(row) => self.context.about_series(row, law.id, severity, &self.pair.columns, reason),
            None => self.context.about_table(law.id, severity, &self.pair.columns, reason),
        }
    }

    /// The formula of the law, or of what is beside it.
    fn text(&self, law: &Law) -> String {
        if law.id == self.law.id { self.pair.text.clone() } else { self.pair.text.replace("<=", "=") }
    }

    fn announce(&self, all: &[Row], model: Model) {
        let fitting = all.iter().filter(|r| model.fits(r)).count();
        match model {
            Model::Pause(ms) => {
                self.about_table(self.law, Severity::Info, Reason::Think(Figure(ms), fitting, all.len()));
            }
            Model::Factor(at) => {
                let law = if self.of_jobs && at < 1.0 { law("dilution") } else { self.law };
                let why = Reason::Factor(self.text(law), fitting, all.len(), Figure(at), law.meaning);
                self.about_table(law, Severity::Warning, why);
            }
        }
    }

    /// Reports rows that do not fit, each or together; `law` is that of the side on which they are.
    fn report_side(&self, law: &Law, side: &[&Row], rows: usize) {
        let under = law.id != self.law.id;
        if !self.known && side.len() > 1 && (under || side.len() * 2 > rows) {
            let ratios = || side.iter().map(|r| r.ratio.at);
            let (low, high) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(f64::NEG_INFINITY, f64::max));
            let worst = (high - 1.0).max(1.0 - low);
            let severity = if under && worst <= self.law.slack { Severity::Info } else { Severity::Warning };
            if worst > NOISE || !self.pair.equal {
                let why = Reason::Apart(self.text(law), side.len(), rows, Figure(low), Figure(high));
                self.about_table(law, severity, why);
            }
            return;
        }
        let kept = rows - side.len() >= 2 && rows >= 3 * side.len();
        side.iter().for_each(|r| self.report(law, r, kept));
    }

    /// Reports a row; `kept` if enough others keep the law.
    fn report(&self, law: &Law, r: &Row, kept: bool) {
        let (context, columns, under) = (self.context, &self.pair.columns, law.id != self.law.id);
        let (has, at) = (|id| context.sheet.has(id), self.model.map_or(1.0, |model| model.factor(r)));
        let names = |id: &str| columns.iter().any(|c| context.sheet.columns[*c].id == id);
        let deviation = r.deviation(at);
        let agree = if self.is_two_sided { self.others_speak_against((r.ratio.at - at).abs()) } else { kept };
        // A counter that is read at another moment than the jobs' own deviates as much, in one row as well as in all.
        let noise = NOISE.max(if self.of_jobs { 0.0 } else { context.late(r.row, LATE) });
        let late = self.is_two_sided && deviation < noise && !matches!(self.model, Some(Model::Pause(_)));
        // Less than the whole is a part that is not printed.
        let is_part = self.law.kind == Kind::Parts && r.ratio.at <= at;
        if late && self.of_jobs || !agree && (late || is_part || under && !self.known) {
            return;
        }
        let edge = r.cut && !self.rounded;
        // The database counts its redo over an interval of its own, with other commits in it.
        let own_interval = names("redo_mib_per_s") && has("commits_database");
        // Busy and idle leave room for waiting, unless that is a column.
        let waiting = names("cpu_idle_pct") && !has("cpu_iowait_pct") && r.ratio.at < 1.0;
        // CPU time may be in percent of one CPU.
        let one_cpu =
            |c: &usize| context.sheet.columns[*c].how > How::Id && context.sheet.columns[*c].id.starts_with("cpu_");
        let one_cpu = !self.pair.equal && columns.iter().all(one_cpu);
        let other = self.model.is_some_and(|model| self.pair.equal || model.factor(r) >= 1.0);
        let multiple = r.multiple().filter(|_| self.of_jobs);
        let excused = edge || late || own_interval || waiting || one_cpu || other || multiple.is_some();
        let certain = if self.of_jobs {
            self.known && !under && deviation > self.law.slack
        } else {
            let enough = !self.pair.equal || deviation > self.law.slack.max(context.late(r.row, VERY_LATE));
            agree || enough && context.is_sure(columns, self.law.sure)
        };
        let severity = match self.law.severity {
            Severity::Error if certain && !excused => Severity::Error,
            _ if under && !agree && self.model.is_none() && deviation <= self.law.slack => Severity::Info,
            _ => Severity::Warning,
        };
        // The column that must be wrong is that which is printed as 0, or else the named one. A part may be 0; a rate or a whole may not.
        let zero = |c: &usize| context.sheet.columns[*c].value(r.row) == Some(0.0);
        let (mut others, zeros): (Vec<usize>, Vec<usize>) = columns.iter().partition(|c| !zero(c));
        others.extend(&zeros);
        let columns = if zeros.len() == 1 && self.law.kind != Kind::Parts { &others } else { columns };
        let usual = if self.law.kind == Kind::Parts { (1.0, (at - 1.0) * 100.0) } else { (at, 0.0) };
        let recomputed = columns.last().and_then(|c| self.pair.solve(*c, r.row, context, usual));
        let agree = if agree { "; the other rows agree" } else { "" };
        let edge = if edge { "; it holds if digits were cut off" } else { "" };
        let why = match multiple {
            Some(multiple) => Reason::InFlight(self.pair.text.clone(), Figure(multiple)),
            None => Reason::Broken(self.text(law), law.meaning, agree, edge),
        };
        context.find((law.id, severity), r.row, columns, recomputed, why);
    }
}
