//! Two stored runs: which is faster, by how much, how sure is that, what else changed between them, and how fast the machine itself was.

use loadline_analyze::compare::{ComparedAt, ComparisonRow};
use loadline_analyze::kpi::higher_is_better;
use loadline_analyze::paired::Verdict;
use loadline_analyze::paired::verdict::{detectable_of, verdict_of};
use loadline_analyze::stats::{Interval, Ratio, ratio_in_strata};
use loadline_analyze::sweep::JOBS;
use loadline_analyze::{Comparison, Factor};
use loadline_model::format::{bytes, counted};
use loadline_model::manifest::RunState;
use loadline_model::{TestLimit, TestRecord};
use minijinja::context;

use crate::content::profiles::{self, Place};
use crate::content::ratios::{self, Found, Shown};
use crate::content::{platform, variants};
use crate::doc::{Block, Document, Section, Standing};
use crate::platform_run::{PlatformRun, comparisons, scanned, sides};
use crate::templates::{items, prose};
use crate::text::for_terminal;
use crate::words::{grouped, percent, ratio};
use crate::{RunData, templates};

#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Margin of equivalence, 0.02 for ±2 %.
    pub margin: f64,
    pub across_drivers: bool,
    /// Whether unequal work is compared, and marked.
    pub unequal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCompared {
    #[error("name one run of `loadline ab`, or two runs")]
    Number,
    #[error("{0} is not a run of two arms (`loadline ab`): name a second run to compare it with")]
    NoArms(String),
    #[error("{0} is a run of two arms: compare it by itself")]
    Arms(String),
    #[error(
        "{0} is a run of levels of replication, each of which was measured in turns with a baseline: `loadline report` shows what they \
         cost"
    )]
    Levels(String),
}

#[derive(Debug)]
pub struct Compared {
    rows: Vec<Shown>,
    /// Whether curves of commit time over redo are compared: they have no ratio.
    pub has_curves: bool,
    title: String,
    blocks: Vec<Block>,
}

/// The heads say what A and B are; `more` stands below the figures.
fn blocks(heads: Vec<String>, rows: &[Shown], margin: f64, counted: &str, more: Vec<Block>) -> Vec<Block> {
    let figures = ratios::chart(rows, margin).into_iter().chain(Block::table(ratios::table(rows, counted)));
    Block::list(heads).into_iter().chain(figures).chain(more).collect()
}

impl Compared {
    /// Of a run of variants; `None` if it is not one.
    pub fn of_arms(run: &RunData) -> Option<Compared> {
        let (of, paired) = (variants::of_run(run)?, run.manifest.plan.arms()?);
        let labels = paired.variants.iter().map(|variant| variant.label.clone());
        let more = of.profiles().map(Block::Table).chain(Block::list(of.sentences())).collect();
        let rows = of.rows();
        let blocks = blocks(labels.collect(), &rows, paired.margin, "Pairs", more);
        Some(Compared { has_curves: !of.curves.is_empty(), title: run.manifest.run.clone(), rows, blocks })
    }

    /// Of one run of variants, or of two other runs, B against A, which are judged by `terms`.
    pub fn new(runs: &[RunData], terms: Terms) -> Result<Compared, NotCompared> {
        let id = |run: &RunData| run.manifest.run.clone();
        if let [run] = runs {
            return Compared::of_arms(run).ok_or_else(|| NotCompared::NoArms(id(run)));
        }
        let [a, b] = runs else { return Err(NotCompared::Number) };
        match [a, b].into_iter().find(|run| run.manifest.plan.paired.is_some()) {
            Some(run) if run.manifest.plan.arms().is_some() => Err(NotCompared::Arms(id(run))),
            Some(run) => Err(NotCompared::Levels(id(run))),
            None => Ok(Compared::of_two(runs, terms)),
        }
    }

    fn of_two(runs: &[RunData], terms: Terms) -> Compared {
        let sides = sides(runs);
        let compared = comparisons(&sides, terms.across_drivers, terms.unequal);
        let rows: Vec<Shown> = compared.iter().flat_map(|comparison| shown(comparison, terms.margin)).collect();
        let title = format!("{} against {}", runs[1].manifest.run, runs[0].manifest.run);
        let qualified = Block::list(qualified(&sides).into_iter().map(|sentence| format!("! {sentence}")));
        let at_jobs = compared.iter().flat_map(|comparison| &comparison.rows);
        // Where the runs are compared.
        let places: Vec<Place<'_>> = at_jobs.filter_map(|row| tests_behind(&sides, row)).collect();
        let profiles = profiles::of_runs(&places).into_iter().map(Block::Table);
        let more = qualified.into_iter().chain(profiles).chain(differences(&sides)).collect();
        let blocks = blocks(heads(&sides), &rows, terms.margin, "Tests", more);
        Compared { rows, has_curves: false, title, blocks }
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
            // Without intervals nothing is shown.
            standing: Standing::new(figures == 0 || refused > 0, with_interval == 0),
            sections: vec![Section::new("ratios", "Comparison", self.blocks)],
            ..Document::default()
        };
        templates::html(&page, false)
    }

    /// The comparison for a terminal `width` characters wide.
    pub fn text(&self, width: usize) -> String {
        for_terminal(&self.blocks, Some(width)).trim_start_matches('\n').to_owned()
    }

    /// A row per workload, number of jobs and figure, with the ratio B/A.
    pub fn csv(&self) -> String {
        ratios::listing(&self.rows).csv()
    }

    /// Number of main figures that were compared, of those with an interval, without which nothing can be shown, and of those
    /// that were refused.
    pub fn counts(&self) -> [usize; 3] {
        let count = |of: fn(&Shown) -> bool| self.rows.iter().filter(|row| row.main && of(row)).count();
        [count(|row| row.found.is_some()), count(|row| row.interval().is_some()), count(|row| row.found.is_none())]
    }

    /// Main figures of which it is shown that B is slower by more than `share` (0.03: 3 %), in words.
    pub fn slower_by(&self, share: f64) -> Vec<String> {
        let found = self.rows.iter().filter(|row| row.main).filter_map(|row| Some((row, row.found?)));
        let is_slower =
            |found: &Found| found.interval.is_some_and(|i| beyond(i, share)) && found.verdict == Verdict::Slower;
        let slower = found.filter(|(_, found)| is_slower(found));
        slower.map(|(row, found)| format!("{} is {} of A's", named(row), ratio(found.ratio))).collect()
    }

    /// Main figures of which nothing can be shown: not compared, or without an interval.
    pub fn not_judged(&self) -> Vec<String> {
        let shown = self.rows.iter().filter(|row| row.main && row.interval().is_none());
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
    let row = |(workload, jobs), column| Shown {
        workload,
        jobs,
        arm: None,
        column,
        main: column == main,
        found: None,
        why: None,
        but: None,
    };
    let refused = |place, why: &str| Shown { why: Some(why.to_owned()), ..row(place, main) };
    if let Some(why) = &comparison.refused {
        return vec![refused((workload, None), why)];
    }
    let mut rows = Vec::new();
    for at_jobs in &comparison.rows {
        let ComparedAt::Jobs(at) = at_jobs.at else { continue };
        if at_jobs.factor(main).is_none() {
            let unknown = || format!("{} is not known of both", main.title);
            rows.push(refused(place(at), &at_jobs.refused.clone().unwrap_or_else(unknown)));
        }
        rows.extend(at_jobs.factors.iter().map(|factor| {
            let found = found(factor, margin);
            let within = factor.factor.interval.is_none() && found.interval.is_some();
            let caveat = if factor.metric == main { at_jobs.caveat.clone() } else { None };
            let but = caveat.into_iter().chain(within.then(|| prose("one-window", ())));
            Shown {
                found: Some(found),
                why: found.interval.is_none().then(|| prose("no-interval", ())),
                but: but.reduce(|a, b| format!("{a}; {b}")),
                ..row(place(at), factor.metric)
            }
        }));
    }
    let one_sided = comparison.one_sided.iter();
    rows.extend(one_sided.map(|(at, lacks)| refused(place(*at), &format!("'{lacks}' has no test there"))));
    rows
}

fn found(factor: &Factor, margin: f64) -> Found {
    let more = higher_is_better(factor.metric);
    // A factor says how many times better B is; a ratio is B/A.
    let turned = |i: Interval| if more { i } else { Interval { low: 1.0 / i.high, high: 1.0 / i.low } };
    let interval = factor.factor.interval.or(factor.within).map(turned);
    Found {
        sides: (factor.base, factor.other),
        ratio: factor.other / factor.base,
        interval,
        verdict: verdict_of(interval, more, margin),
        detectable: interval.map(|i| detectable_of(i, 0.95)),
        pairs: factor.n_base.min(factor.n_other),
        dropped: 0,
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
    let machine = if imported { Vec::new() } else { machine(first, second) };
    let runs: Vec<_> = ["A", "B"].into_iter().zip(sides).map(said).collect();
    items("comparison", context! { runs, imported, machine, curves => scanned(sides) })
}

fn is_imported(sides: &[PlatformRun<'_>]) -> bool {
    sides.iter().any(|side| side.run.published.is_some())
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
    let changed = Block::list(changed.map(|([what, from], [_, to])| format!("changed: {what}: {from} → {to}")));
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

/// Differences below this share are not worth a word if nothing tells how sure they are.
const VARIES: f64 = 0.1;

/// How fast the machine was in B against A, or that it is unknown.
fn machine(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Vec<String> {
    let found: Vec<String> = limits(a, b).into_iter().chain(probes(a, b)).collect();
    if !found.is_empty() {
        return found;
    }
    vec!["How fast the machine itself was then is unknown: a run measures that unless it has --no-probe.".to_owned()]
}

/// The tests of one place, and the name of their limit.
fn place(test: &TestRecord) -> Option<(&str, impl PartialEq)> {
    let limit = test.limit().filter(|limit| limit.tps > 0.0)?;
    Some((limit.name.as_str(), (&test.workload, test.jobs, test.driver, &test.parameters)))
}

/// A sentence for each kind of limit that was measured beside the same tests of both.
fn limits(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Vec<String> {
    let [a, b] = [a, b].map(|side| &side.run.records);
    let mut names: Vec<&str> = a.iter().filter_map(|r| Some(place(r)?.0)).collect();
    names.sort_unstable();
    names.dedup();
    let sentence = |name: &str| {
        let seen = grouped(a.iter().filter(|r| place(r).is_some_and(|(of, _)| of == name)), |r| place(r));
        let of = |tests: &[TestRecord], at: &TestRecord| -> Vec<f64> {
            let limits: Vec<&TestLimit> =
                tests.iter().filter(|r| place(r) == place(at)).filter_map(|r| r.limit()).collect();
            match limits.as_slice() {
                // It was measured before and after the test.
                [one] if one.samples.iter().all(|tps| *tps > 0.0) && one.samples.len() > 1 => one.samples.clone(),
                all => all.iter().map(|limit| limit.tps).collect(),
            }
        };
        let strata: Vec<(Vec<f64>, Vec<f64>)> = seen.iter().map(|(_, at)| (of(a, at[0]), of(b, at[0]))).collect();
        Some(said(name, &ratio_in_strata(&strata)?))
    };
    names.into_iter().filter_map(sentence).collect()
}

fn said(name: &str, found: &Ratio) -> String {
    let value = found.value;
    let context = context! {
        name,
        differs => found.interval.map_or((value - 1.0).abs() >= VARIES, |i| !i.contains(1.0)),
        slower => value < 1.0,
        by => percent((value - 1.0).abs()),
        measured => [found.n_denominator, found.n_numerator],
        ratio => ratio(value),
        interval => found.interval.map(|i| [ratio(i.low), ratio(i.high)]),
    };
    prose("machine-itself", context)
}

fn probes(a: &PlatformRun<'_>, b: &PlatformRun<'_>) -> Option<String> {
    let (a, b) = (&a.run.manifest.probes, &b.run.manifest.probes);
    let roles = a.keys().filter_map(|role| {
        let (x, y) = (a.get(role)?, b.get(role)?);
        if (x.engine, x.direct, x.file_bytes) != (y.engine, y.direct, y.file_bytes) {
            return Some(context! { role });
        }
        let rates = x.rows.iter().filter_map(|row| {
            let then = y.row(row.operation, row.size_bytes, row.depth)?.per_s / row.per_s;
            let what = format!("{}, {}", row.operation.title().to_lowercase(), bytes(row.size_bytes as f64));
            (then.is_finite() && then > 0.0).then_some((then, what))
        });
        let mut rates: Vec<(f64, String)> = rates.collect();
        rates.sort_by(|x, y| x.0.total_cmp(&y.0));
        let [low, .., high] = rates.as_slice() else { return None };
        Some(context! { role, low, high, middle => rates[rates.len() / 2].0, count => rates.len() })
    });
    let roles: Vec<_> = roles.collect();
    (!roles.is_empty()).then(|| prose("probes", context! { roles }))
}
