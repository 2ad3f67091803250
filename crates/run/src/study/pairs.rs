//! A run of pairs: each variant is measured in turns with the first one, window by window.

use std::sync::Arc;

use loadline_analyze::paired::BLOCK;
use loadline_analyze::paired::flips::FEW_BLOCKS;
use loadline_analyze::paired::ratio::least_pairs;
use loadline_analyze::paired::verdict::precise_enough;
use loadline_analyze::paired::{order, paired_ratio};
use loadline_analyze::variants::{Cell, ERROR, cells};
use loadline_database::Work;
use loadline_load::TestError;
use loadline_model::TestRecord;
use loadline_model::format::counted;
use loadline_model::live::LiveTest;
use loadline_model::plan::{Plan, PlannedWorkload};
use loadline_model::variant::{InPair, Letter, Paired};

use super::measure::PlannedTest;
use super::refused::Refused;
use super::{Context, StudyError};

/// A workload at a number of jobs, of which a variant is compared with the first.
struct Comparison<'a> {
    plan: &'a Plan,
    paired: &'a Paired,
    code: &'a str,
    jobs: u32,
    /// Index of the variant.
    other: usize,
    left: usize,
}

impl<'a> Comparison<'a> {
    /// Those of a plan in the order in which they are measured.
    fn all(plan: &'a Plan, paired: &'a Paired) -> Vec<Comparison<'a>> {
        let mut all = Vec::new();
        for workload in &plan.workloads {
            for jobs in plan.jobs_over(1).into_iter().flatten() {
                let of = |other| Comparison { plan, paired, code: &workload.code, jobs, other, left: 0 };
                all.extend((1..paired.variants.len()).map(of));
            }
        }
        let count = all.len();
        all.iter_mut().enumerate().for_each(|(at, comparison)| comparison.left = count - at);
        all
    }

    /// Seed of the order of its windows: of its own for each, or one unlucky order would hold for all.
    fn seed(&self) -> u64 {
        let code = self.code;
        let cell = match &self.paired.variants[self.other].level {
            Some(point) => format!("{code} {point:?}"),
            None if self.other > 1 => format!("{code} {}", Letter::nth(self.other)),
            None => code.to_owned(),
        };
        cell.bytes().fold(self.paired.seed ^ u64::from(self.jobs), |seed, byte| {
            seed.wrapping_mul(0x0000_0100_0000_01b3).wrapping_add(u64::from(byte))
        })
    }

    fn has(&self, r: &TestRecord, window: &InPair) -> bool {
        (r.workload.as_str(), r.jobs) == (self.code, self.jobs)
            && r.variant.as_ref().is_some_and(|of| of.compares_as(window))
    }

    /// Skipped tests if a variant is refused with so many `jobs`, or with any (0): of several beside the first, the others can be measured.
    fn refused(&self, variant: usize, jobs: u32) -> Refused {
        let is_one_of_several = variant > 0 && self.paired.links.is_none() && self.paired.variants.len() > 2;
        match jobs {
            _ if is_one_of_several => Refused::Arm(Letter::nth(variant), jobs),
            0 => Refused::Whole,
            _ => Refused::Jobs(jobs),
        }
    }

    fn workload(&self, variant: usize) -> Option<&'a PlannedWorkload> {
        self.plan.workload_of(&self.paired.variants[variant], self.code)
    }

    /// Whether a window of one variant can have the tables and procedures of any other's.
    fn is_shared(&self) -> bool {
        let work = |variant| self.workload(variant).map(|w| (w.driver, &w.parameters));
        (1..self.paired.variants.len()).all(|variant| work(variant) == work(0))
    }
}

/// Whether the target is why: at another level it may do better.
fn is_of_target(e: &StudyError) -> bool {
    matches!(e, StudyError::Target(_) | StudyError::Test { source: TestError::Target(_) | TestError::Counters(_), .. })
}

impl Context<'_> {
    /// Measures all pairs that are missing. Windows of a pair follow each other; a resumed run measures a broken pair anew. A level
    /// that cannot be brought about is left out, and the run ends with its error; the others go on.
    pub(super) fn measure_in_pairs(&mut self, plan: &Plan, paired: &Paired) -> Result<(), StudyError> {
        let all = Comparison::all(plan, paired);
        self.say_too_few(paired, all.len());
        let mut failed = None;
        for (at, comparison) in all.iter().enumerate() {
            match self.compare(comparison) {
                // The next level starts a replica again that hangs.
                Err(e) if paired.links.is_some() && is_of_target(&e) => {
                    self.unless_stopped()?;
                    let level = paired.variants[comparison.other].level.as_ref().map_or("", |point| &point.level);
                    self.warn(format!("level {level} is left out: {e}"));
                    // The first reason is the run's error.
                    failed.get_or_insert(e);
                }
                compared => compared?,
            }
            let is_last = all.get(at + 1).is_none_or(|next| next.code != comparison.code);
            if is_last && paired.links.is_none() {
                // Those of workloads before it are gone.
                for ((variant, _), work) in std::mem::take(&mut self.works) {
                    self.take(paired, variant, None)?;
                    self.drop_unneeded_tables(&work);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Says that no interval can come of the plan's pairs.
    fn say_too_few(&mut self, paired: &Paired, comparisons: usize) {
        let pairs = paired.pairs as usize;
        let (least, what) = if paired.links.is_some() {
            (least_pairs(ERROR, true), "there is no interval of 95 %".to_owned())
        } else {
            let among = if comparisons == 1 { String::new() } else { format!(" among {comparisons} comparisons") };
            let least = least_pairs(ERROR / comparisons as f64, pairs.div_ceil(BLOCK) < FEW_BLOCKS);
            (least, format!("no difference can be shown{among}, however large"))
        };
        // A scan has an interval of its own.
        let is_scan = |code: &str| self.known.find(code).is_ok_and(|workload| workload.scan.is_some());
        let has_windows = self.manifest.plan.workloads.iter().any(|w| !is_scan(&w.code));
        if pairs < least && has_windows && !self.tries.is_end {
            self.warn(format!("with {} {what}: that takes {least} (--pairs)", counted(pairs, "pair")));
        }
    }

    /// Measures the missing pairs of a comparison, unless the server refuses them.
    fn compare(&mut self, comparison: &Comparison<'_>) -> Result<(), StudyError> {
        let Comparison { paired, other, .. } = comparison;
        let of_pair = paired.window(*other, true);
        let places = order(comparison.seed(), paired.pairs as usize);
        for (index, pair) in places.into_iter().enumerate() {
            let number = index as u32 + 1;
            let is_refused = self.refused.leaves_out(comparison.code, comparison.jobs, None, Some(Letter::nth(*other)));
            if is_refused || !self.tries.is_end && self.is_precise(comparison, &of_pair, index) {
                return Ok(());
            }
            while let Some(try_of) = self.next_pair(comparison, &of_pair, number) {
                let first = self.next_test();
                for (place, side) in pair.into_iter().enumerate() {
                    self.unless_stopped()?;
                    let variant = if side == Letter::A { 0 } else { *other };
                    let position = self.position(comparison, variant, (number, place), try_of);
                    if !self.window(comparison, variant, position)? {
                        return Ok(());
                    }
                }
                self.judge_try(first, try_of);
            }
        }
        Ok(())
    }

    /// The place of a window in the run: that at `place` of the pair `number`.
    fn position(
        &self,
        Comparison { paired, code, jobs, other, left, .. }: &Comparison<'_>,
        variant: usize,
        (number, place): (u32, usize),
        try_of: Option<u32>,
    ) -> LiveTest {
        let left = 2 * (left * paired.pairs as usize - (number as usize - 1)) - place;
        LiveTest {
            test: self.next_test(),
            workload: (*code).to_owned(),
            jobs: *jobs,
            repetition: number,
            repeat: paired.pairs,
            arm: Some(paired.window(*other, variant == 0).arm),
            try_of,
            left_s: self.left_s(left as f64 * self.tries.window_s),
            left_exact: paired.precision.is_none(),
        }
    }

    /// Measures a window of `variant`. `false`: the server refuses it, so the rest of the comparison is left out.
    fn window(&mut self, of: &Comparison<'_>, variant: usize, position: LiveTest) -> Result<bool, StudyError> {
        let Comparison { paired, other, jobs, .. } = of;
        let Some(workload) = of.workload(variant) else { return Ok(false) };
        let in_pair = paired.window(*other, variant == 0);
        let Some(work) = self.work_in_pair(of, variant, &in_pair)? else { return Ok(false) };
        let test = PlannedTest { workload, work, position, swept: None, in_pair: Some(in_pair) };
        match test.measure(self) {
            Ok(()) => Ok(true),
            Err(e) if paired.links.is_none() => {
                self.leave_out_refused(workload, of.refused(variant, *jobs), e).map(|()| false)
            }
            Err(e) => Err(e),
        }
    }

    /// Whether the comparison has reached its precision at a declared look, with `done` pairs.
    fn is_precise(&self, comparison: &Comparison<'_>, of_pair: &InPair, done: usize) -> bool {
        let paired = comparison.paired;
        let wanted = if paired.looks.contains(&done) { paired.precision } else { None };
        let Some(precision) = wanted else { return false };
        let cells = cells(&self.records, paired.pairs);
        let is_meant = |cell: &&Cell<'_>| {
            (cell.workload, cell.jobs, cell.other()) == (comparison.code, comparison.jobs, of_pair.beside)
        };
        let Some(cell) = cells.iter().find(is_meant) else { return false };
        let mut pairs = cell.main_pairs();
        pairs.truncate(done);
        let ratio = paired_ratio(&pairs, ERROR / paired.looks.len().max(1) as f64);
        ratio.is_some_and(|ratio| precise_enough(&ratio, precision))
    }

    /// Whether a pair is measured now: `Some(None)` if it is missing, and with the number of its first window if it is due again.
    fn next_pair(&mut self, comparison: &Comparison<'_>, of_pair: &InPair, number: u32) -> Option<Option<u32>> {
        let is_meant = |r: &TestRecord| r.repetition == number && comparison.has(r, of_pair);
        if let Some((first, _)) = self.due_again(is_meant) {
            return Some(Some(first));
        }
        let found: Vec<&TestRecord> = self.records.iter().filter(|r| is_meant(r)).collect();
        (!self.tries.is_end && Cell::last_pair(&found).is_none()).then_some(None)
    }

    /// The work of `variant`, which is brought about for its `window`, and its tables there. Work that differs on the same target is
    /// prepared anew. The first variant is prepared before another one if all have its calibration, and before all levels, which
    /// have their tables in the baseline. `None`: the server refuses the workload.
    fn work_in_pair(
        &mut self,
        of: &Comparison<'_>,
        variant: usize,
        window: &InPair,
    ) -> Result<Option<Arc<Work>>, StudyError> {
        let Some((first, workload)) = of.workload(0).zip(of.workload(variant)) else { return Ok(None) };
        let needs_first = of.paired.links.is_some() || variant > 0 && !self.manifest.calibration.contains_key(of.code);
        if needs_first && !self.works.contains_key(&(0, of.code.to_owned())) {
            self.take(of.paired, 0, None)?;
            if self.prepared(first, 0, Refused::Whole)?.is_none() {
                return Ok(None);
            }
        }
        self.take(of.paired, variant, Some(window))?;
        let shared = self.shares_target() && of.is_shared();
        if self.shares_target() && !shared {
            self.works.remove(&(variant, of.code.to_owned()));
        }
        self.prepared(workload, if shared { 0 } else { variant }, of.refused(variant, 0))
    }
}
