//! Checks that two points did equal work on the same kind of storage, and computes the factors between them.

use loadline_model::format::{bytes, counted};
use loadline_model::{Column, DataSource, column};

use super::setup::{DefinedRedo, Setup};
use super::{ComparedAt, ComparisonRow, Factor};
use crate::kpi::{higher_is_better, writes_redo};
use crate::stats::{Estimate, Interval, ratio};
use crate::sweep::{Saturation, Sweep, SweepPoint};

/// Difference in redo per transaction, as a share, from which on it is said. Tests of a log-writer workload do equal work if their redo
/// differs by less, or if both have as much as the workload is defined with (LGWR-LAT1: 1 to 2 KiB), whatever their rows. Elsewhere
/// the rows are the work, and redo is what a database needs for them: never refused.
const REDO_TOLERANCE: f64 = 0.10;
/// Redo this far outside the definition, as a share, is within it: the check redo-size allows as much for transactions that cross its start or end.
const REDO_EDGE: f64 = 0.05;
/// Redo per transaction that counts as none, KiB: background redo of the database.
const NO_REDO_KIB: f64 = 0.1;

/// Rates of blocks, or of calls that move blocks, with the bytes that they move.
const OF_BLOCKS: [(&Column, Option<&Column>); 4] = [
    (column::BLOCK_READS_PER_S, Some(column::READ_MIB_PER_S)),
    (column::IO_PER_S, None),
    (column::PHYSICAL_WRITES_PER_S, Some(column::PHYSICAL_WRITTEN_MIB_PER_S)),
    (column::PHYSICAL_WRITTEN_BLOCKS_PER_S, Some(column::PHYSICAL_WRITTEN_MIB_PER_S)),
];

/// Counts that make work, the rows first, then the statements.
const COUNTS: [(&Column, &str); 3] = [
    (column::ROWS_PER_TX, "rows per transaction"),
    (column::STATEMENTS_PER_TX, "statements per transaction"),
    (column::THREADS, "parallel workers"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Redo {
    Defines(DefinedRedo),
    /// The database writes as much redo as it needs for the work.
    Written,
    /// The workload writes none; any redo is background redo of the database.
    None,
}

impl Setup<'_> {
    /// The names of the platforms, that of the base first if `base_first`.
    fn ordered(&self, base_first: bool) -> [&str; 2] {
        let [a, b] = self.names();
        if base_first { [a, b] } else { [b, a] }
    }

    fn redo(&self) -> Redo {
        match self.defined_redo() {
            Some(defined) => Redo::Defines(defined),
            None if writes_redo(&self.a.group, &self.a.workload, self.a.facts.or(self.b.facts)) => Redo::Written,
            None => Redo::None,
        }
    }

    pub(super) fn row(
        &self,
        metrics: &[&'static Column],
        at: ComparedAt,
        a: &SweepPoint,
        b: &SweepPoint,
    ) -> ComparisonRow {
        // Peaks of a sweep over a work parameter do different work by design.
        let alike = self.a.over_jobs() || a.at == b.at;
        let work = if alike { self.work_apart(a, b) } else { Ok(None) };
        let (unequal, noted) = work.map_or_else(|why| (Some(why), None), |noted| (None, noted));
        let told = self.told().map(|told| told.into_iter().chain(unequal.clone()).collect::<Vec<_>>().join("; "));
        let apart = if told.is_none() { unequal } else { None };
        let refused = self.all_refused(at, a, b).or_else(|| self.other_source(a, b)).or(apart);
        if refused.is_some() {
            return ComparisonRow::refused(at, refused);
        }
        let factors = metrics.iter().filter_map(|metric| factor(metric, a, b)).collect();
        let all = [
            told.filter(|told| !told.is_empty()).map(|told| format!("not the same work (--unequal): {told}")),
            self.drivers().map(|(said, _)| said),
            self.kept(a, b),
            self.blocks_apart(metrics, a, b),
            noted,
            self.timed(a, b),
            self.unchecked(a, b),
            self.still_rising(at),
        ];
        let caveats: Vec<String> = all.into_iter().flatten().collect();
        let caveat = (!caveats.is_empty()).then(|| caveats.join("; "));
        ComparisonRow { at, factors, refused, caveat, tests: [a.tests.clone(), b.tests.clone()] }
    }

    /// The platform that alone was still rising at its most jobs, which favours the other one at the peaks.
    fn still_rising(&self, at: ComparedAt) -> Option<String> {
        let ComparedAt::Peak { .. } = at else { return None };
        let rising_at = |sweep: &Sweep| match sweep.saturation() {
            Saturation::Rising { jobs, .. } if sweep.over_jobs() => Some(counted(jobs as usize, "job")),
            _ => None,
        };
        let [of_a, of_b] = self.names();
        let (name, most) = match (rising_at(self.a), rising_at(self.b)) {
            (Some(most), None) => (of_a, most),
            (None, Some(most)) => (of_b, most),
            _ => return None,
        };
        Some(format!("'{name}' was still rising at its {most}: its peak may be higher"))
    }

    fn unchecked(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let evidence = [(column::REDO_KIB_PER_TX, "redo per transaction"), COUNTS[0], COUNTS[1]];
        let redo = self.redo();
        let lacks = |point: &SweepPoint, setup: &[&'static str]| -> Vec<&str> {
            evidence
                .iter()
                .filter(|(c, _)| redo != Redo::None || *c != column::REDO_KIB_PER_TX)
                .filter(|(c, _)| point.figure(c).is_none())
                .map(|(_, what)| *what)
                .chain(setup.iter().copied())
                .collect()
        };
        let [setup_of_a, setup_of_b] = self.not_recorded();
        let (a, b) = (lacks(a, &setup_of_a), lacks(b, &setup_of_b));
        let [of_a, of_b] = self.names().map(|name| format!("'{name}'"));
        let all = if a == b { vec![(a, "both platforms".to_owned())] } else { vec![(a, of_a), (b, of_b)] };
        let missing = all.iter().filter(|(what, _)| !what.is_empty());
        let missing: Vec<String> = missing.map(|(what, whose)| format!("{} on {whose}", what.join(", "))).collect();
        (!missing.is_empty())
            .then(|| format!("equal work could not be fully checked; not recorded: {}", missing.join("; ")))
    }

    /// The differences of the work, if there are any worth a word; as an error if it is unequal.
    fn work_apart(&self, a: &SweepPoint, b: &SweepPoint) -> Result<Option<String>, String> {
        let redo = self.redo();
        let unequal = |why: String| Err(format!("unequal work: {why}"));
        let Redo::Defines(defined) = redo else {
            let apart = (redo == Redo::Written).then(|| self.redo_apart(a, b)).flatten();
            return self.counts_apart(&COUNTS, a, b).map_or(Ok(apart), unequal);
        };
        let rows = self.counts_apart(&COUNTS[..1], a, b);
        let of_rows = if defined.rows_chosen { None } else { rows.clone() };
        if let Some(why) = of_rows.or_else(|| self.counts_apart(&COUNTS[1..], a, b)) {
            return unequal(why);
        }
        let rows = rows.map(|rows| format!("{rows}, which calibration chose for the same redo"));
        let Some(apart) = self.redo_apart(a, b) else { return Ok(rows) };
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
    fn redo_apart(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let (x, y) = (a.figure(column::REDO_KIB_PER_TX)?.mean, b.figure(column::REDO_KIB_PER_TX)?.mean);
        if x.max(y) <= NO_REDO_KIB {
            return None;
        }
        let times = x.max(y) / x.min(y);
        (!times.is_finite() && x != y || times > 1.0 + REDO_TOLERANCE).then(|| {
            let decimals = if times < 2.0 { 2 } else { usize::from(times < 10.0) };
            let times = if times.is_finite() { format!(", {times:.decimals$} times as much") } else { String::new() };
            let ([more, less], high, low) = (self.ordered(x > y), x.max(y), x.min(y));
            format!("{high:.2} KiB of redo per transaction on '{more}'{times} as the {low:.2} on '{less}'")
        })
    }

    /// Reasons of several job counts are said once, so none names its own.
    fn all_refused(&self, at: ComparedAt, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let place = |p: &SweepPoint| match at {
            ComparedAt::Jobs(_) => String::new(),
            ComparedAt::Peak { .. } => format!(" at {}", counted(p.jobs as usize, "job")),
        };
        let side = |name: &str, p: &SweepPoint| {
            p.tests.is_empty().then(|| format!("all tests of '{name}'{} are refused", place(p)))
        };
        let [of_a, of_b] = self.names();
        side(of_a, a).or_else(|| side(of_b, b))
    }

    fn other_source(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let from = |p: &SweepPoint| match p.kept.data_source {
            Some(DataSource::Device) => "from the device",
            Some(DataSource::Cached) => "from a cache",
            Some(DataSource::Lukewarm) => "partly from a cache",
            Some(DataSource::Bounded) => "from caches up to a bound above 10 %",
            None => "from an unknown source",
        };
        if a.kept.data_source != b.kept.data_source {
            return Some(format!("different sources: blocks came {}", self.on_both(from(a), from(b))));
        }
        (a.kept.forced.not_the_devices != b.kept.forced.not_the_devices).then(|| {
            let [kept, proved] = self.ordered(a.kept.forced.not_the_devices);
            format!("different sources: device figures on '{proved}', but figures kept by --allow-cached on '{kept}'")
        })
    }

    /// Qualification of the figures of a platform, if any.
    fn kept(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        match [a.kept.says(), b.kept.says()] {
            [Some(x), Some(y)] if x == y => Some(format!("on both platforms {x}")),
            both => {
                let said = self
                    .names()
                    .into_iter()
                    .zip(both)
                    .filter_map(|(name, kept)| Some(format!("on '{name}' {}", kept?)));
                Some(said.collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
            }
        }
    }

    /// Mean read times from different clocks: the database's, or the longer time of a transaction with one read.
    fn timed(&self, a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let both = a.figure(column::READ_TIME_US_MEAN).is_some() && b.figure(column::READ_TIME_US_MEAN).is_some();
        let own = |p: &SweepPoint| p.figure(column::READ_WAIT_PCT).is_some();
        (both && own(a) != own(b)).then(|| {
            let [database, jobs] = self.ordered(own(a));
            format!("the mean read time is measured by the database on '{database}', and is that of whole transactions on '{jobs}'")
        })
    }

    fn counts_apart(&self, counts: &[(&Column, &str)], a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        counts.iter().find_map(|(column, what)| {
            let (x, y) = (a.figure(column)?.mean, b.figure(column)?.mean);
            // Counts are whole numbers; means over repetitions may differ slightly.
            ((x - y).abs() >= 0.5).then(|| self.on_both(format!("{x:.0} {what}"), format!("{y:.0}")))
        })
    }

    /// The sizes of the blocks if they differ and a compared figure depends on them, with the factor of the bytes.
    fn blocks_apart(&self, metrics: &[&'static Column], a: &SweepPoint, b: &SweepPoint) -> Option<String> {
        let [x, y] = [a, b].map(|p| p.figure(column::BLOCK_BYTES).map(|e| e.mean));
        let (x, y) = (x?, y?);
        let compared = |c: &Column| metrics.contains(&c) && a.figure(c).is_some() && b.figure(c).is_some();
        let (_, moved) = OF_BLOCKS.into_iter().find(|(rate, _)| x != y && compared(rate))?;
        let moved = moved.and_then(|c| Some((c, ratio(b.figure(c)?, a.figure(c)?)?))).map(|(c, factor)| {
            format!("; the factor of {} [{}] is {:.2}", c.title.to_lowercase(), c.unit, factor.value)
        });
        let sizes = self.on_both(format!("blocks of {}", bytes(x)), format!("of {}", bytes(y)));
        Some(format!("{sizes}: as many blocks are not as many bytes{}", moved.unwrap_or_default()))
    }
}

fn factor(metric: &'static Column, a: &SweepPoint, b: &SweepPoint) -> Option<Factor> {
    let (x, y) = (a.figure(metric)?, b.figure(metric)?);
    let factor = if higher_is_better(metric) { ratio(y, x)? } else { ratio(x, y)? };
    let half = |point: &SweepPoint, e: &Estimate| match e.half_width() {
        Some(half) => Some(half / e.mean),
        None => point.within_window(metric),
    };
    let halves = if factor.interval.is_none() { half(a, x).zip(half(b, y)) } else { None };
    let within = halves.map(|(x, y)| {
        let half = x.ln_1p().hypot(y.ln_1p()).exp();
        Interval { low: factor.value / half, high: factor.value * half }
    });
    Some(Factor { metric, base: x.mean, other: y.mean, n_base: x.n, n_other: y.n, factor, within })
}
