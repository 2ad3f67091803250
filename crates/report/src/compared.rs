//! Two stored runs: which is faster, by how much, how sure is that, and what else changed between them.

pub(crate) mod machine;

use loadline_analyze::compare::{ComparedAt, ComparisonRow};
use loadline_analyze::kpi::higher_is_better;
use loadline_analyze::paired::Verdict;
use loadline_analyze::paired::verdict::{detectable_of, verdict_of};
use loadline_analyze::stats::Interval;
use loadline_analyze::sweep::JOBS;
use loadline_analyze::{Comparison, Factor};
use loadline_model::TestRecord;
use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use minijinja::context;

use crate::content::ratios::{self, Shown};
use crate::content::wait_profiles::Place;
use crate::content::{kinds, platform, variants, wait_profiles};
use crate::doc::{Block, Document, Section, Table};
use crate::platform_run::{PlatformRun, comparisons_as_told, scanned, sides};
use crate::templates::{items, prose};
use crate::text::for_terminal;
use crate::words::ratio;
use crate::{RunData, templates};

/// How two runs are compared.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Margin of equivalence, 0.02 for ±2 %.
    pub margin: f64,
    /// Whether figures of different drivers are compared.
    pub across_drivers: bool,
    /// Whether unequal work is compared, and marked.
    pub unequal: bool,
}

/// Why runs are not compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCompared {
    /// Neither one run nor two.
    #[error("name one run of `loadline ab`, or two runs")]
    Number,
    /// A single run that has no variants.
    #[error("{0} is not a run of two arms (`loadline ab`): name a second run to compare it with")]
    NoArms(String),
    /// One of two runs has variants.
    #[error("{0} is a run of two arms: compare it by itself")]
    Arms(String),
    /// One of two runs has levels, which are compared with the baseline of their own run.
    #[error(
        "{0} is a run of levels of replication, each of which was measured in turns with a baseline: `loadline report` shows what they \
         cost"
    )]
    Levels(String),
}

#[derive(Debug)]
pub struct Compared {
    rows: Vec<Shown>,
    /// Whether curves of commit time over redo are compared.
    has_curves: bool,
    title: String,
    blocks: Vec<Block>,
    text: String,
}

impl Compared {
    /// `heads` says what A and B are, `margin` what is equivalent; `more` stands below the table.
    fn made(
        (title, heads): (String, Vec<String>),
        (rows, margin): (Vec<Shown>, f64),
        counted: &str,
        more: Vec<Block>,
        width: usize,
    ) -> Compared {
        let figures = ratios::chart(&rows, margin).into_iter().chain(Block::table(ratios::table(&rows, counted)));
        let blocks: Vec<Block> = Block::list(heads).into_iter().chain(figures).chain(more).collect();
        let text = for_terminal(&blocks, Some(width)).trim_start_matches('\n').to_owned();
        Compared { rows, has_curves: false, title, blocks, text }
    }

    /// Of a run of variants; `None` if it is not one.
    pub fn of_arms(run: &RunData, width: usize) -> Option<Compared> {
        let of = variants::of_run(run)?;
        let paired = run.manifest.plan.arms()?;
        let labels = paired.variants.iter().map(|variant| variant.label.clone());
        let more = of.profiles().map(Block::Table).chain(Block::list(of.sentences())).collect();
        let (heads, rows) = ((run.manifest.run.clone(), labels.collect()), (of.rows(), paired.margin));
        let compared = Compared::made(heads, rows, "Pairs", more, width);
        Some(Compared { has_curves: of.has_curves(), ..compared })
    }

    /// Of one run of variants, or of two other runs, B against A, which are judged by `terms`.
    ///
    /// # Errors
    /// [`NotCompared`].
    pub fn new(runs: &[RunData], terms: Terms, width: usize) -> Result<Compared, NotCompared> {
        let id = |run: &RunData| run.manifest.run.clone();
        if let [run] = runs {
            return Compared::of_arms(run, width).ok_or_else(|| NotCompared::NoArms(id(run)));
        }
        let [a, b] = runs else { return Err(NotCompared::Number) };
        match [a, b].into_iter().find(|run| run.manifest.plan.paired.is_some()) {
            Some(run) if run.manifest.plan.arms().is_some() => Err(NotCompared::Arms(id(run))),
            Some(run) => Err(NotCompared::Levels(id(run))),
            None => Ok(Compared::of_two(runs, terms, width)),
        }
    }

    fn of_two(runs: &[RunData], terms: Terms, width: usize) -> Compared {
        let sides = sides(runs);
        let compared = comparisons_as_told(&sides, terms.across_drivers, terms.unequal);
        let rows: Vec<Shown> = compared.iter().flat_map(|comparison| shown(comparison, terms.margin)).collect();
        let title = format!("{} against {}", runs[1].manifest.run, runs[0].manifest.run);
        let qualified = Block::list(qualified(&sides).into_iter().map(|sentence| format!("! {sentence}")));
        let profiles = profiles(&sides, &compared).map(Block::Table);
        let more = qualified.into_iter().chain(profiles).chain(differences(&sides)).collect();
        Compared::made((title, heads(&sides)), (rows, terms.margin), "Tests", more, width)
    }

    /// Whether curves of commit time over redo are compared: they have no ratio.
    pub fn has_curves(&self) -> bool {
        self.has_curves
    }

    pub fn html(self) -> String {
        let [figures, with_interval, refused] = self.counts();
        let page = Document {
            title: self.title.clone(),
            subtitle: "Ratios of B to A with 95 % intervals".to_owned(),
            verdict: format!(
                "{} compared, {with_interval} with an interval, {refused} refused.",
                counted(figures, "main figure")
            ),
            all_well: figures > 0 && refused == 0,
            sections: vec![Section::new("ratios", "Comparison", self.blocks)],
            ..Document::default()
        };
        templates::html(&page, false)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// A row per workload, number of jobs and figure, with the ratio B/A.
    pub fn csv(&self) -> String {
        ratios::listing(&self.rows).csv()
    }

    /// Number of main figures that were compared, of those with an interval, without which nothing can be shown, and of those
    /// that were refused.
    pub fn counts(&self) -> [usize; 3] {
        let count = |of: fn(&Shown) -> bool| self.rows.iter().filter(|row| row.main && of(row)).count();
        [
            count(|row| row.verdict.is_some()),
            count(|row| row.verdict.is_some() && row.interval.is_some()),
            count(|row| row.verdict.is_none()),
        ]
    }

    /// Main figures of which it is shown that B is slower by more than `share` (0.03: 3 %), in words.
    pub fn slower_by(&self, share: f64) -> Vec<String> {
        let shown = |row: &&Shown| row.main && row.verdict == Some(Verdict::Slower);
        let found = self.rows.iter().filter(shown).filter(|row| row.interval.is_some_and(|i| beyond(i, share)));
        found.map(|row| format!("{} is {} of A's", named(row), row.ratio.map_or_else(String::new, ratio))).collect()
    }

    /// Main figures of which nothing can be shown: not compared, or without an interval.
    pub fn not_judged(&self) -> Vec<String> {
        let shown = self.rows.iter().filter(|row| row.main && (row.verdict.is_none() || row.interval.is_none()));
        shown.map(|row| row.why.as_ref().map_or_else(|| named(row), |why| format!("{} ({why})", named(row)))).collect()
    }
}

/// A row's figure: `LGWR-LAT1 with 4 jobs: Commit throughput`.
fn named(row: &Shown) -> String {
    format!("{}: {}", row.place(), row.column.title)
}

/// Whether an interval of a ratio that leaves out 1 is beyond a difference of `share` in its direction.
pub(crate) fn beyond(interval: Interval, share: f64) -> bool {
    if interval.high < 1.0 { interval.high <= 1.0 / (1.0 + share) } else { interval.low >= 1.0 + share }
}

/// The rows of a workload at each job count.
fn shown(comparison: &Comparison, margin: f64) -> Vec<Shown> {
    let Some(main) = comparison.metrics.first().copied() else { return Vec::new() };
    // A swept value is no number of jobs.
    let nodes = comparison.nodes.map_or_else(String::new, |n| format!(" nodes={n}"));
    let workload = comparison.workload.clone() + &nodes;
    let place = |at: u32| match comparison.over == JOBS {
        true => (workload.clone(), Some(at)),
        false => (format!("{workload} {}={at}", comparison.over), None),
    };
    let refused = |(workload, jobs), why: &str| Shown {
        workload,
        jobs,
        arm: None,
        column: main,
        main: true,
        sides: None,
        ratio: None,
        interval: None,
        verdict: None,
        detectable: None,
        pairs: 0,
        dropped: 0,
        why: Some(why.to_owned()),
        but: None,
    };
    if let Some(why) = &comparison.refused {
        return vec![refused((workload, None), why)];
    }
    let mut rows = Vec::new();
    for row in &comparison.rows {
        let ComparedAt::Jobs(at) = row.at else { continue };
        if row.factor(main).is_none() {
            let unknown = || format!("{} is not known of both", main.title);
            rows.push(refused(place(at), &row.refused.clone().unwrap_or_else(unknown)));
        }
        rows.extend(row.factors.iter().map(|factor| {
            let is_main = factor.metric == main;
            let shown = of_factor(place(at), factor, is_main, margin);
            let caveat = if is_main { row.caveat.clone() } else { None };
            Shown { but: caveat.into_iter().chain(shown.but).reduce(|a, b| format!("{a}; {b}")), ..shown }
        }));
    }
    let one_sided = comparison.one_sided.iter();
    rows.extend(one_sided.map(|(at, lacks)| refused(place(*at), &format!("'{lacks}' has no test there"))));
    rows
}

fn of_factor((workload, jobs): (String, Option<u32>), factor: &Factor, main: bool, margin: f64) -> Shown {
    let more = higher_is_better(factor.metric);
    // A factor says how many times better B is; a ratio is B/A.
    let turned = |i: Interval| if more { i } else { Interval { low: 1.0 / i.high, high: 1.0 / i.low } };
    let interval = factor.factor.interval.or(factor.within).map(turned);
    let within = if factor.factor.interval.is_none() { factor.within } else { None };
    let pairs = factor.n_base.min(factor.n_other);
    Shown {
        workload,
        jobs,
        arm: None,
        column: factor.metric,
        main,
        sides: Some((factor.base, factor.other)),
        ratio: Some(factor.other / factor.base),
        interval,
        verdict: Some(verdict_of(interval, more, margin)),
        detectable: interval.map(|i| detectable_of(i, 0.95)),
        pairs,
        dropped: 0,
        why: interval.is_none().then(|| prose("no-interval", ())),
        but: within.map(|_| prose("one-window", ())),
    }
}

/// `A: laptop (2026-11-20-161530-postgres, 2026-11-20T16:15:30Z)`, and B.
fn heads(sides: &[PlatformRun<'_>]) -> Vec<String> {
    let head = |(name, side): (&str, &PlatformRun<'_>)| {
        let m = &side.run.manifest;
        format!("{name}: {} ({}, {})", m.plan.platform, m.run, m.started_at)
    };
    ["A", "B"].into_iter().zip(sides).map(head).collect()
}

fn qualified(sides: &[PlatformRun<'_>]) -> Vec<String> {
    let [first, second] = sides else { return Vec::new() };
    let said = |(name, side): (&str, &PlatformRun<'_>)| {
        let RunData { manifest, records, published, .. } = side.run;
        let noticed = records.iter().filter(|r| r.disturbed_by.is_some()).count();
        let source = published.as_ref().map(|p| &p.source);
        let (run, complete) = (&manifest.run, manifest.state == RunState::Complete);
        context! { name, run, source, complete, noticed, tests => records.len() }
    };
    let imported = is_imported(sides);
    let machine = if imported { Vec::new() } else { machine::sentences(first, second) };
    let runs: Vec<_> = ["A", "B"].into_iter().zip(sides).map(said).collect();
    items("comparison", context! { runs, imported, machine, curves => scanned(sides) })
}

/// Whether another tool measured one of the runs.
fn is_imported(sides: &[PlatformRun<'_>]) -> bool {
    sides.iter().any(|side| side.run.published.is_some())
}

/// Times of each kind of transaction, and what the sessions of both waited for, where the runs are compared.
fn profiles(sides: &[PlatformRun<'_>], compared: &[Comparison]) -> impl Iterator<Item = Table> {
    let rows = compared.iter().flat_map(|comparison| &comparison.rows);
    let places: Vec<Place<'_>> = rows.filter_map(|row| tests_behind(sides, row)).collect();
    [kinds::of_runs(&places), wait_profiles::table(&places)].into_iter().flatten()
}

/// The tests of both sides that count for `row`; `None` if it is not of equal job counts, or has no factor.
fn tests_behind<'a>(sides: &[PlatformRun<'a>], row: &ComparisonRow) -> Option<Place<'a>> {
    let (ComparedAt::Jobs(_), false, [a, b]) = (row.at, row.factors.is_empty(), sides) else { return None };
    let of_side = |side: &PlatformRun<'a>, tests: &[u32]| -> Vec<&'a TestRecord> {
        side.run.records.iter().filter(|r| tests.contains(&r.test)).collect()
    };
    let [of_a, of_b] = &row.tests;
    Some([of_side(a, of_a), of_side(b, of_b)])
}

/// Other changes from the first to the second of `sides`: those that the manifests name, and settings.
fn differences(sides: &[PlatformRun<'_>]) -> Vec<Block> {
    let [first, second] = sides else { return Vec::new() };
    if is_imported(sides) {
        return Vec::new();
    }
    let [from, to] = [first, second].map(|side| platform::facts_of("comparison", &side.run.manifest));
    let changed = from.into_iter().zip(to).filter(|(from, to)| from != to);
    let changed = Block::list(changed.map(|((what, from), (_, to))| format!("changed: {what}: {from} → {to}")));
    let same = || Block::para("The manifests name the same product, version, machine and plan.");
    let mut blocks = vec![changed.unwrap_or_else(same)];
    blocks.extend(platform::settings(sides).blocks);
    for block in &mut blocks {
        if let Block::Table(differing) = block {
            differing.caption = "Settings that differ".to_owned();
        }
    }
    blocks
}
