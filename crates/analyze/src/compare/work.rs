//! Checks that two points did equal work on the same kind of storage, and computes the factors between them.

use loadline_model::format::counted;
use loadline_model::{Column, DataSource, column};

use super::blocks::of_other_size;
use super::setup::{DefinedRedo, Setup};
use super::{ComparedAt, ComparisonRow, Factor};
use crate::kpi::{Metric, writes_redo};
use crate::stats::{Estimate, Interval, ratio};
use crate::sweep::SweepPoint;

/// Difference in redo per transaction, as a share, from which on it is said.
///
/// A log-writer workload is defined by its redo. Tests of it do equal work if their redo differs by less, or if both have as
/// much as the workload is defined with (LGWR-LAT1: 1 to 2 KiB), whatever the rows that calibration took for it. Elsewhere
/// the rows are the work, and redo is what a database needs for them: it is said how many times as much, and never refused.
const REDO_TOLERANCE: f64 = 0.10;
/// Redo this far outside the definition, as a share, is within it: the check redo-size allows as much at the edges of a window.
const REDO_EDGE: f64 = 0.05;
/// Redo per transaction that counts as none, KiB: background redo of the database.
const NO_REDO_KIB: f64 = 0.1;

/// Role of redo in a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Redo {
    /// The redo size defines the workload.
    Defines(DefinedRedo),
    /// The database writes as much redo as it needs for the work.
    Written,
    /// The workload writes none; any redo is background redo of the database.
    None,
}

/// Compares the points of two sweeps of the same workload.
pub(super) struct WorkComparison<'a> {
    names: (&'a str, &'a str),
    pub(super) metrics: Vec<Metric>,
    redo: Redo,
    over_jobs: bool,
    /// Where each ran, if with different drivers.
    drivers: Option<String>,
    /// What else differs between the setups, if other work may be compared.
    told: Option<Vec<String>>,
    /// See [`Setup::not_recorded`].
    not_recorded: [Vec<&'static str>; 2],
}

impl<'a> WorkComparison<'a> {
    pub(super) fn of(setup: &Setup<'a>, metrics: Vec<Metric>) -> WorkComparison<'a> {
        let a = setup.a;
        let redo = match setup.defined_redo() {
            Some(defined) => Redo::Defines(defined),
            None if writes_redo(&a.group, &a.workload, a.facts.or(setup.b.facts)) => Redo::Written,
            None => Redo::None,
        };
        WorkComparison {
            names: (setup.base.label, setup.other.label),
            metrics,
            redo,
            over_jobs: a.over_jobs(),
            drivers: setup.drivers().map(|d| d.said),
            told: setup.told(),
            not_recorded: setup.not_recorded(),
        }
    }

    pub(super) fn row(&self, at: ComparedAt, a: &SweepPoint, b: &SweepPoint) -> ComparisonRow {
        // Peaks of a sweep over a work parameter do different work by design.
        let alike = self.over_jobs || a.at == b.at;
        let work = if alike { work_apart(self.names, self.redo, a, b) } else { Ok(None) };
        let (unequal, noted) = work.map_or_else(|why| (Some(why), None), |noted| (None, noted));
        let told = self.told.as_ref().map(|told| told.iter().chain(&unequal).cloned().collect::<Vec<_>>().join("; "));
        let refused = all_refused(self.names, at, a, b)
            .or_else(|| other_source(self.names, a, b))
            .or_else(|| unequal.filter(|_| self.told.is_none()));
        if refused.is_some() {
            return ComparisonRow { at, factors: Vec::new(), refused, caveat: None };
        }
        let factors = self.metrics.iter().filter_map(|m| factor(*m, a, b)).collect();
        let all = [
            told.filter(|told| !told.is_empty()).map(|told| format!("not the same work (--unequal): {told}")),
            self.drivers.clone(),
            kept(self.names, a, b),
            of_other_size(self.names, &self.metrics, a, b),
            noted,
            timed(self.names, a, b),
            self.unchecked(a, b),
        ];
        let caveats: Vec<String> = all.into_iter().flatten().collect();
        ComparisonRow { at, factors, refused, caveat: (!caveats.is_empty()).then(|| caveats.join("; ")) }
    }

    fn unchecked(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let evidence = [
            (column::REDO_KIB_PER_TX, "redo per transaction"),
            (column::ROWS_PER_TX, "rows per transaction"),
            (column::STATEMENTS_PER_TX, "statements per transaction"),
        ];
        let lacks = |point: &SweepPoint, setup: &[&'static str]| -> Vec<&str> {
            evidence
                .iter()
                .filter(|(c, _)| self.redo != Redo::None || *c != column::REDO_KIB_PER_TX)
                .filter(|(c, _)| point.figure(c).is_none())
                .map(|(_, what)| *what)
                .chain(setup.iter().copied())
                .collect()
        };
        let (a, b) = (lacks(a, &self.not_recorded[0]), lacks(b, &self.not_recorded[1]));
        let named =
            |what: &[&str], whose: String| (!what.is_empty()).then(|| format!("{} on {whose}", what.join(", ")));
        let missing: Vec<String> = if a == b {
            named(&a, "both platforms".to_owned()).into_iter().collect()
        } else {
            let (x, y) = self.names;
            [named(&a, format!("'{x}'")), named(&b, format!("'{y}'"))].into_iter().flatten().collect()
        };
        (!missing.is_empty())
            .then(|| format!("equal work could not be fully checked; not recorded: {}", missing.join("; ")))
    }
}

/// The differences of the work, if there are any worth a word; as an error if it is unequal.
fn work_apart(names: (&str, &str), redo: Redo, a: &SweepPoint, b: &SweepPoint) -> Result<Option<String>, String> {
    let unequal = |why: String| Err(format!("unequal work: {why}"));
    let Redo::Defines(defined) = redo else {
        let apart = (redo == Redo::Written).then(|| redo_apart(names, a, b)).flatten();
        return counts_apart(names, COUNTS, a, b).map_or(Ok(apart), unequal);
    };
    let rows = counts_apart(names, &COUNTS[..1], a, b);
    if let Some(why) = rows.clone().filter(|_| !defined.rows_chosen).or_else(|| counts_apart(names, &COUNTS[1..], a, b))
    {
        return unequal(why);
    }
    let rows = rows.map(|rows| format!("{rows}, which calibration chose for the same redo"));
    let Some(apart) = redo_apart(names, a, b) else { return Ok(rows) };
    let Some([min, max]) = defined.kib else { return unequal(apart) };
    let within = |p: &SweepPoint| {
        let kib = p.figure(column::REDO_KIB_PER_TX).map_or(0.0, |kib| kib.mean);
        (min * (1.0 - REDO_EDGE)..=max * (1.0 + REDO_EDGE)).contains(&kib)
    };
    let defined = format!("{apart}; the workload is defined with {min:.2} to {max:.2} KiB");
    if within(a) && within(b) {
        return Ok(Some(rows.into_iter().chain([defined]).collect::<Vec<_>>().join("; ")));
    }
    unequal(defined)
}

/// The redo per transaction of both, if it differs by more than the tolerance.
fn redo_apart(names: (&str, &str), a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    let (x, y) = (a.figure(column::REDO_KIB_PER_TX)?.mean, b.figure(column::REDO_KIB_PER_TX)?.mean);
    if x.max(y) <= NO_REDO_KIB {
        return None;
    }
    let times = x.max(y) / x.min(y);
    (!times.is_finite() && x != y || times > 1.0 + REDO_TOLERANCE).then(|| {
        let decimals = if times < 2.0 { 2 } else { usize::from(times < 10.0) };
        let times = if times.is_finite() { format!(", {times:.decimals$} times as much") } else { String::new() };
        let (more, less) = if x > y { ((x, names.0), (y, names.1)) } else { ((y, names.1), (x, names.0)) };
        format!("{:.2} KiB of redo per transaction on '{}'{times} as the {:.2} on '{}'", more.0, more.1, less.0, less.1)
    })
}

fn factor(metric: Metric, a: &SweepPoint, b: &SweepPoint) -> Option<Factor> {
    let (x, y) = (a.figure(metric.column)?, b.figure(metric.column)?);
    let factor = if metric.higher_is_better { ratio(y, x)? } else { ratio(x, y)? };
    let half = |point: &SweepPoint, e: &Estimate| match e.half_width() {
        Some(half) => Some(half / e.mean),
        None => point.within_window(metric.column),
    };
    let halves = half(a, x).zip(half(b, y)).filter(|_| factor.interval.is_none());
    let within = halves.map(|(x, y)| {
        let half = x.ln_1p().hypot(y.ln_1p()).exp();
        Interval { low: factor.value / half, high: factor.value * half }
    });
    Some(Factor { metric, base: x.mean, other: y.mean, n_base: x.n, n_other: y.n, factor, within })
}

/// Reasons of several job counts are said once, so none names its own.
fn all_refused(names: (&str, &str), at: ComparedAt, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    let place = |p: &SweepPoint| match at {
        ComparedAt::Jobs(_) => String::new(),
        ComparedAt::Peak { .. } => format!(" at {}", counted(p.jobs as usize, "job")),
    };
    let side = |name: &str, p: &SweepPoint| {
        p.tests.is_empty().then(|| format!("all tests of '{name}'{} are refused", place(p)))
    };
    side(names.0, a).or_else(|| side(names.1, b))
}

/// Refuses to compare cached figures with device figures.
fn other_source(names: (&str, &str), a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    let from = |p: &SweepPoint| match p.data_source {
        Some(DataSource::Device) => "from the device",
        Some(DataSource::Cached) => "from a cache",
        Some(DataSource::Lukewarm) => "partly from a cache",
        Some(DataSource::Bounded) => "from caches up to a bound above 10 %",
        None => "from an unknown source",
    };
    if a.data_source != b.data_source {
        return Some(format!(
            "different sources: blocks came {} on '{}', {} on '{}'",
            from(a),
            names.0,
            from(b),
            names.1
        ));
    }
    (a.forced.not_the_devices != b.forced.not_the_devices).then(|| {
        let (kept, proved) = if a.forced.not_the_devices { names } else { (names.1, names.0) };
        format!("different sources: device figures on '{proved}', but figures kept by --allow-cached on '{kept}'")
    })
}

/// What qualifies the figures of a platform, if anything.
fn kept(names: (&str, &str), a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    match (a.kept(), b.kept()) {
        (None, None) => None,
        (Some(x), Some(y)) if x == y => Some(format!("on both platforms {x}")),
        (x, y) => {
            let said = [(names.0, x), (names.1, y)].map(|(name, kept)| kept.map(|k| format!("on '{name}' {k}")));
            Some(said.into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
    }
}

/// Notes mean read times from different clocks: the database's, or the longer time of a transaction with one read.
fn timed(names: (&str, &str), a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    let both = a.figure(column::READ_TIME_US_MEAN).is_some() && b.figure(column::READ_TIME_US_MEAN).is_some();
    let own = |p: &SweepPoint| p.figure(column::READ_WAIT_PCT).is_some();
    (both && own(a) != own(b)).then(|| {
        let (database, jobs) = if own(a) { names } else { (names.1, names.0) };
        format!("the mean read time is measured by the database on '{database}', and is that of whole transactions on '{jobs}'")
    })
}

/// Counts that make work, the rows first.
const COUNTS: &[(&Column, &str)] = &[
    (column::ROWS_PER_TX, "rows per transaction"),
    (column::STATEMENTS_PER_TX, "statements per transaction"),
    (column::THREADS, "parallel workers"),
];

/// The first of `counts` that differs.
fn counts_apart(names: (&str, &str), counts: &[(&Column, &str)], a: &SweepPoint, b: &SweepPoint) -> Option<String> {
    counts.iter().find_map(|(column, what)| {
        let (x, y) = (a.figure(column)?.mean, b.figure(column)?.mean);
        // Counts are whole numbers; means over repetitions may differ slightly.
        ((x - y).abs() >= 0.5).then(|| format!("{x:.0} {what} on '{}', {y:.0} on '{}'", names.0, names.1))
    })
}
