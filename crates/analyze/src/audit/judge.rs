//! Holds a formula against all rows of a table together. What one row alone cannot show, the others can: where they agree, a row
//! that does not is wrong, however small its deviation; where all are off by one factor, the columns mean something else. A series
//! that is off by a factor of its own, beside others that are not, is judged alone.

use loadline_model::load::OPEN_LOOP;

use super::finding::{Figure, Reason, Severity};
use super::law::{Kind, Law, Pair, law};
use super::number::{Interval, common};
use super::sheet::{Column, How, SAMPLE};

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

/// The left side in a row, as a multiple of the right one; for parts of a whole, 1 and their difference in percent.
pub(crate) struct Row {
    row: usize,
    pub(crate) ratio: Interval,
    /// Whether it obeys the law as far as this row alone shows it.
    meets: bool,
    /// Whether it does so only if digits were cut off rather than rounded.
    cut: bool,
    /// Mean time, and what is missing to jobs / throughput, s.
    time: f64,
    pause: Interval,
    /// Whether transactions are due at a rate.
    open: bool,
}

fn ratio(law: &Law, pair: &Pair<'_>, row: usize, cut: bool) -> Option<Interval> {
    let (left, right) = pair.values(row, cut)?;
    let difference = || Interval::exact(1.0).plus(0.01, left).plus(-0.01, right);
    // Of nothing at all, both sides are 0.
    let is_something = left.at != 0.0 || right.at != 0.0;
    is_something.then(|| if law.kind == Kind::Parts { difference() } else { left.over(right) })
}

impl Row {
    pub(crate) fn read(law: &Law, pair: &Pair<'_>, row: usize) -> Option<Row> {
        let (sheet, ratio_of, slack) = (pair.sheet, |cut| ratio(law, pair, row, cut), law.slack);
        let (ratio, most) =
            (ratio_of(false)?, 1.0 + if slack > 0.0 { slack + sheet.late(row, VERY_LATE) } else { 0.0 });
        let meets = if pair.equal { ratio.holds(1.0) } else { ratio.low <= most };
        let mut r = Row { row, ratio, meets, cut: false, time: 0.0, pause: ratio, open: false };
        if law.kind == Kind::Jobs {
            let outside = OUTSIDE.iter().filter_map(|id| sheet.column(id)?.interval(row, false));
            let share = outside.fold(Interval::exact(1.0), |left, part| left.plus(-0.01, part));
            let (rate, time) = pair.named_and_rest(row)?;
            let jobs = pair.values(row, false)?.1.times(share);
            if rate.at <= 0.0 || jobs.at <= 0.0 {
                return None;
            }
            (r.ratio, r.time, r.pause) = (ratio.over(share), time.at, jobs.over(rate).plus(-1.0, time));
            r.open = sheet.value("rate_tps", row).is_some() || sheet.text("job_load", row).contains(OPEN_LOOP);
            // Each of all jobs has a transaction that began before the window, also where they pause most of the time.
            let longest = sheet.value("transaction_time_ns_max", row).map_or(5.0 * time.at, |ns| ns / 1e9);
            let tolerance = sheet.late(row, longest) / share.at.clamp(0.01, 1.0);
            r.meets = r.ratio.holds(1.0) || r.deviation(1.0) <= tolerance || r.open && r.ratio.low <= 1.0;
        } else if law.kind == Kind::Agreed {
            r.meets |= r.deviation(1.0) <= slack;
        }
        if !r.meets {
            let cut = ratio_of(true)?;
            r.cut = if pair.equal || law.kind == Kind::Jobs { cut.holds(1.0) } else { cut.low <= most };
        }
        Some(r)
    }

    fn deviation(&self, at: f64) -> f64 {
        (self.ratio.at / at - 1.0).abs()
    }

    /// The whole multiple of the right side that the left one is, within its digits, or hardly less.
    fn multiple(&self) -> Option<f64> {
        let near = |m: &f64| self.ratio.holds(*m) || (1.0 - GROUPS..1.0).contains(&(self.ratio.at / m));
        [self.ratio.at.round(), self.ratio.at.ceil()].into_iter().find(|m| (2.0..DEEPEST).contains(m) && near(m))
    }
}

fn count(rows: &[Row], is_counted: impl Fn(&Row) -> bool) -> usize {
    rows.iter().filter(|r| is_counted(r)).count()
}

/// Explanation of most rows: the left side is so many times the right one, or each job pauses for so many seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Factor(f64),
    Pause(f64),
}

impl Model {
    /// Explanation of most of the rows, if many do not obey the law.
    fn find(law: &Law, pair: &Pair<'_>, rows: &[Row]) -> Option<Model> {
        if rows.len() < 4 || count(rows, |r| !r.meets) * 2 < rows.len() {
            return None;
        }
        let (of_jobs, sample) = (law.kind == Kind::Jobs, &rows[..rows.len().min(SAMPLE)]);
        let most = |of: fn(&Row) -> Interval| {
            let (value, count) = common(&sample.iter().map(of).collect::<Vec<_>>())?;
            is_most(count, sample.len()).then_some(value)
        };
        let is_below = of_jobs && is_most(count(rows, |r| r.ratio.high < 1.0), rows.len());
        let pause = most(|r| r.pause).filter(|s| is_below && *s > 0.0);
        let late = NOISE.max(if of_jobs { law.slack } else { pair.sheet.late(0, LATE) });
        let factor = || most(|r| r.ratio).filter(|at| (at - 1.0).abs() > late && (pair.equal || is_below || *at > 1.0));
        pause.map(Model::Pause).or_else(|| factor().map(Model::Factor))
    }

    fn fits(self, row: &Row) -> bool {
        match self {
            Model::Pause(s) => row.pause.holds(s),
            Model::Factor(at) => row.ratio.holds(at) || at > 1.0 && row.deviation(at) < GROUPS && row.time > 0.0,
        }
    }

    fn factor(self, row: &Row) -> f64 {
        match self {
            Model::Factor(at) => at,
            Model::Pause(s) => row.time / (row.time + s),
        }
    }
}

/// Holds a law's formula against all rows of its table. Each series that a model of its own explains is judged alone.
pub(crate) fn check(law: &'static Law, pair: &Pair<'_>) {
    let (sheet, of_jobs) = (pair.sheet, law.kind == Kind::Jobs);
    let read = || (0..sheet.table.rows()).filter_map(|row| Row::read(law, pair, row));
    if read().all(|r| r.meets) {
        return;
    }
    let mut rows: Vec<Row> = read().collect();
    if sheet.series.len() > 1 && Model::find(law, pair, &rows).is_none() {
        // A factor explains no series if most rows of the table agree that the columns are what they are called.
        let agree = is_most(count(&rows, |r| r.meets), rows.len());
        let mut others: Vec<Option<Row>> = (0..sheet.table.rows()).map(|row| Row::read(law, pair, row)).collect();
        rows.clear();
        for series in &sheet.series {
            let own: Vec<Row> = series.iter().filter_map(|row| others[*row].take()).collect();
            let is_explained = match Model::find(law, pair, &own) {
                Some(Model::Pause(_)) => true,
                Some(Model::Factor(at)) if of_jobs => at < 1.0,
                Some(Model::Factor(_)) => pair.equal && !agree && !pair.is_sure(law.sure),
                None => false,
            };
            if is_explained {
                let alone = own.first().map(|r| r.row);
                Judge::new(law, pair, own, alone).judge();
            } else {
                rows.extend(own);
            }
        }
        rows.sort_by_key(|r| r.row);
    }
    Judge::new(law, pair, rows, None).judge();
}

/// A law's formula with rows of a table, and what they say together.
struct Judge<'a> {
    law: &'static Law,
    pair: &'a Pair<'a>,
    rows: Vec<Row>,
    /// A row of the series that is judged alone.
    alone: Option<usize>,
    of_jobs: bool,
    /// Whether digits were cut off, in as many rows as `Row::cut` says.
    cut: bool,
    model: Option<Model>,
    /// Half widths of the rows, the most precise first, with how many up to each meet.
    witnesses: Vec<(f64, usize)>,
    /// Whether the columns are surely what they were taken for, or the rows show it.
    known: bool,
}

impl<'a> Judge<'a> {
    fn new(law: &'static Law, pair: &'a Pair<'a>, mut rows: Vec<Row>, alone: Option<usize>) -> Judge<'a> {
        let of_jobs = law.kind == Kind::Jobs;
        // Rows that meet if digits were rounded, and not if they were cut off, show that they were rounded.
        let only_rounded = |r: &Row| ratio(law, pair, r.row, true).is_some_and(|cut| !cut.holds(1.0));
        if pair.equal && rows.iter().any(|r| r.ratio.holds(1.0) && only_rounded(r)) {
            rows.iter_mut().for_each(|r| r.cut = false);
        }
        let cut = count(&rows, |r| r.cut);
        let cut = if of_jobs {
            cut >= 2 && cut == count(&rows, |r| !r.meets)
        } else {
            pair.equal && rows.len() >= 4 && cut * 2 > rows.len()
        };
        let model = if of_jobs || pair.equal && !cut { Model::find(law, pair, &rows) } else { None };
        let at = if let Some(Model::Factor(at)) = model { at } else { 1.0 };
        let witness = |r: &Row| ((r.ratio.high - r.ratio.low) / 2.0, usize::from(r.ratio.holds(at)));
        let mut witnesses: Vec<(f64, usize)> = rows.iter().map(witness).collect();
        witnesses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut met = 0;
        witnesses.iter_mut().for_each(|(_, count)| (met, *count) = (met + *count, met + *count));
        let is_near = |r: &Row| r.ratio.holds(1.0) || (NEAR..=1.0 + law.slack).contains(&r.ratio.at);
        let near = count(&rows, |r| r.ratio.high - r.ratio.low < 0.5 && is_near(r));
        let known = if of_jobs {
            pair.is_sure(How::Id) || near >= 2 && near * 2 >= rows.len()
        } else {
            // Of what only a header says, most rows know better.
            pair.is_sure(law.sure) && (!pair.equal || rows.len() <= 2 || pair.is_sure(How::Id))
        };
        let known = known || model.is_some();
        Judge { law, pair, rows, alone, of_jobs, cut, model, witnesses, known }
    }

    fn judge(&self) {
        let (rows, missed) = (self.rows.len(), count(&self.rows, |r| !r.meets));
        if self.law.kind == Kind::Agreed && (rows < 3 || missed * 4 > rows) {
            return;
        }
        let fitting = |model: Model| count(&self.rows, |r| model.fits(r));
        let cut = count(&self.rows, |r| self.cut && r.cut);
        match self.model {
            Some(model @ Model::Pause(s)) => {
                self.about(self.law, Severity::Info, Reason::Think(Figure(s * 1e3), fitting(model), rows));
            }
            Some(model @ Model::Factor(at)) => {
                let law = if self.of_jobs && at < 1.0 { law("dilution") } else { self.law };
                let why = Reason::Factor(self.text(law), fitting(model), rows, Figure(at), &law.meaning);
                self.about(law, Severity::Warning, why);
            }
            None if cut * 2 > rows => {
                self.about(self.law, Severity::Info, Reason::Cut(self.pair.text.clone(), cut, rows));
            }
            None => {}
        }
        let fits = |r: &Row| match self.model {
            Some(model) => model.fits(r) || r.meets && !r.ratio.holds(1.0),
            None => r.meets,
        };
        let odd: Vec<&Row> = self.rows.iter().filter(|r| !(fits(r) || self.cut && r.cut)).collect();
        if !self.of_jobs {
            return self.report_side(self.law, &odd);
        }
        let (mut above, mut below): (Vec<&Row>, Vec<&Row>) = odd.into_iter().partition(|r| r.ratio.low > 1.0);
        // A rate and a time of slightly different transactions scatter to both sides.
        let is_small = |r: &&Row| r.deviation(1.0) <= self.law.slack;
        if above.iter().any(is_small) && below.iter().any(is_small) {
            [&mut above, &mut below].into_iter().for_each(|side| side.retain(|r| !is_small(r)));
        }
        if !above.is_empty() && above.iter().all(|r| r.open) {
            self.about(self.law, Severity::Info, Reason::OpenLoop(above.len(), rows));
        } else {
            self.report_side(self.law, &above);
        }
        self.report_side(law("dilution"), &below);
    }

    /// Whether most of the rows whose digits would show a deviation as large as `deviation` have none.
    fn others_speak_against(&self, deviation: f64) -> bool {
        let precise = self.witnesses.partition_point(|(half, _)| *half < deviation);
        let met = precise.checked_sub(1).map_or(0, |last| self.witnesses[last].1);
        met >= 3 && is_most(met, precise) || met == 2 && self.witnesses.len() == 3
    }

    fn about(&self, law: &'static Law, severity: Severity, reason: Reason) {
        self.pair.sheet.about(self.alone, (&law.id, severity), &self.pair.columns, reason);
    }

    /// The formula of the law, or of what is beside it.
    fn text(&self, law: &Law) -> String {
        if law.id == self.law.id { self.pair.text.clone() } else { self.pair.text.replace("<=", "=") }
    }

    /// Reports rows that do not fit, each or together; `law` is that of the side on which they are.
    fn report_side(&self, law: &'static Law, side: &[&Row]) {
        let (under, rows) = (law.id != self.law.id, self.rows.len());
        if self.known || side.len() < 2 || !under && side.len() * 2 <= rows {
            let kept = rows - side.len() >= 2 && rows >= 3 * side.len();
            return side.iter().for_each(|r| self.report(law, r, kept));
        }
        let ratios = || side.iter().map(|r| r.ratio.at);
        let (low, high) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(f64::NEG_INFINITY, f64::max));
        let worst = (high - 1.0).max(1.0 - low);
        let severity = if under && worst <= self.law.slack { Severity::Info } else { Severity::Warning };
        if worst > NOISE || !self.pair.equal {
            self.about(law, severity, Reason::Apart(self.text(law), side.len(), rows, Figure(low), Figure(high)));
        }
    }

    /// Reports a row; `kept` if enough others keep the law.
    fn report(&self, law: &'static Law, r: &Row, kept: bool) {
        let (pair, sheet, under) = (self.pair, self.pair.sheet, law.id != self.law.id);
        let columns = || pair.columns.iter().map(move |c| &sheet.columns[*c]);
        let (names, at) = (|id: &str| columns().any(|c| c.id == id), self.model.map_or(1.0, |model| model.factor(r)));
        let (deviation, is_parts) = (r.deviation(at), self.law.kind == Kind::Parts);
        // More than the jobs is impossible, and less is time outside the transactions.
        let two_sided = pair.equal || self.of_jobs;
        let agree = if two_sided { self.others_speak_against((r.ratio.at - at).abs()) } else { kept };
        // A counter that is read at another moment than the jobs' own deviates as much, in one row as well as in all.
        let noise = NOISE.max(if self.of_jobs { 0.0 } else { sheet.late(r.row, LATE) });
        let late = two_sided && deviation < noise && !matches!(self.model, Some(Model::Pause(_)));
        // Less than the whole is a part that is not printed.
        let is_part = is_parts && r.ratio.at <= at;
        // One row alone does not distinguish idle time from what a tool needs between two transactions.
        let is_little = under && self.rows.len() == 1 && deviation < GROUPS;
        if late && self.of_jobs || is_little || !agree && (late || is_part || under && !self.known) {
            return;
        }
        // The database counts its redo over an interval of its own, with other commits in it.
        let own_interval = names("redo_mib_per_s") && sheet.has("commits_database");
        // Busy and idle leave room for waiting, unless that is a column.
        let waiting = names("cpu_idle_pct") && !sheet.has("cpu_iowait_pct") && r.ratio.at < 1.0;
        // CPU time may be in percent of one CPU.
        let one_cpu = !pair.equal && columns().all(|c: &Column| c.how > How::Id && c.id.starts_with("cpu_"));
        let other = self.model.is_some_and(|model| pair.equal || model.factor(r) >= 1.0);
        let multiple = if self.of_jobs { r.multiple() } else { None };
        let excused = r.cut || late || own_interval || waiting || one_cpu || other || multiple.is_some();
        let certain = if self.of_jobs {
            self.known && !under && deviation > self.law.slack
        } else {
            let enough = !pair.equal || deviation > self.law.slack.max(sheet.late(r.row, VERY_LATE));
            agree || enough && pair.is_sure(self.law.sure)
        };
        let severity = match self.law.severity {
            Severity::Error if certain && !excused => Severity::Error,
            _ if under && !agree && self.model.is_none() && deviation <= self.law.slack => Severity::Info,
            _ => Severity::Warning,
        };
        // The column that must be wrong is that which is printed as 0, or else the named one. A part may be 0; a rate or a whole may not.
        let is_zero = |c: &usize| sheet.columns[*c].value(r.row) == Some(0.0);
        let (mut others, zeros): (Vec<usize>, Vec<usize>) = pair.columns.iter().partition(|c| !is_zero(c));
        others.extend(&zeros);
        let columns = if zeros.len() == 1 && !is_parts { &others } else { &pair.columns };
        let usual = if is_parts { (1.0, (at - 1.0) * 100.0) } else { (at, 0.0) };
        let recomputed = columns.last().and_then(|c| pair.solve(*c, r.row, usual));
        let agree = if agree { "; the other rows agree" } else { "" };
        let hint = if r.cut { "; it holds if digits were cut off" } else { "" };
        let why = match multiple {
            Some(multiple) => Reason::InFlight(pair.text.clone(), Figure(multiple)),
            None => Reason::Broken(self.text(law), &law.meaning, agree, hint),
        };
        sheet.find((&law.id, severity), r.row, columns, recomputed, why);
    }
}
