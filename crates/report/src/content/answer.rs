//! The answer for who looks for ten seconds: what each platform reached, what share of its limit that is and what bounds it; and how many
//! times better other platforms are than the first.

use loadline_analyze::kpi::THROUGHPUT;
use loadline_analyze::stats::Interval;
use loadline_analyze::{BoundBy, Comparison, Sweep, bound_of_sweep};
use loadline_model::column;
use loadline_model::format::number;
use minijinja::context;

use crate::bars::{intervals, share};
use crate::columns::value;
use crate::doc::{Block, Headline, Section};
use crate::platform_run::PlatformRun;
use crate::templates::{items, prose};
use crate::words::{cut, grouped, short_name, short_place, unit};

use super::factors;
use super::figure::doubts_of_share;
use super::qualified::MAX_REASON;

/// Most workloads of a platform.
const MOST: usize = 3;

/// The section; empty without a figure.
pub(crate) fn section(sides: &[PlatformRun<'_>], comparisons: &[Comparison]) -> Section {
    let mut blocks: Vec<Block> = sides.iter().filter_map(|side| answer(side, sides.len() > 1)).collect();
    // Peaks of a sweep over something else do different work by design.
    let over_jobs = comparisons.iter().filter(|c| c.over == column::JOBS.id);
    let (drawn, refused): (Vec<_>, Vec<_>) =
        over_jobs.map(|c| (c, at_peak(c))).partition(|(_, factor)| factor.is_some());
    let caveats = drawn.iter().filter(|(c, _)| c.peak().is_some_and(|peak| peak.caveat.is_some())).count();
    let single = drawn.iter().filter(|(_, factor)| matches!(factor, Some((_, _, None)))).count();
    let charts = grouped(drawn, |(c, _)| (&c.base, &c.other));
    let charts = charts.into_iter().filter_map(|((base, other), of)| {
        let mut rows: Vec<(String, f64, Option<Interval>)> = of.into_iter().filter_map(|(_, factor)| factor).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        intervals(&format!("{other} against {base}: times as good at the peak"), &rows, 0.0)
    });
    let qualified = items("answer-factors", context! { caveats, single, refused => refused.len() });
    let factors: Vec<Block> = Block::charts(2, charts).into_iter().chain(Block::list(qualified)).collect();
    if !factors.is_empty() {
        blocks.push(Block::Beside { blocks: factors });
    }
    Section::new("answer", "In short", blocks)
}

/// The factor of the main figure at the peaks of a workload.
fn at_peak(c: &Comparison) -> Option<(String, f64, Option<Interval>)> {
    let factor = &c.peak()?.factor(c.metrics.first()?)?.factor;
    (factor.value > 0.0).then(|| (factors::title(c), factor.value, factor.interval))
}

fn answer(side: &PlatformRun<'_>, is_named: bool) -> Option<Block> {
    let mut figures: Vec<Headline> = headlines(side).into_iter().filter_map(|sweep| headline(side, sweep)).collect();
    if is_named {
        // Several platforms are compared first; their key figures and load lines say why.
        figures.iter_mut().for_each(|figure| (figure.doubts, figure.because) = Default::default());
    }
    let label = if is_named { side.label.clone() } else { String::new() };
    let sentence = prose("answer", context! { label, figures });
    (!figures.is_empty()).then_some(Block::Answer { label, figures, sentence })
}

/// Commits, the last of the transactions, and reads of blocks; of other groups the first, where one of these is missing.
fn headlines<'a>(side: &'a PlatformRun<'_>) -> Vec<&'a Sweep> {
    let measured = || side.sweeps.iter().filter(|sweep| sweep.peak().is_some());
    let of_group = |group: &'static str| measured().filter(move |sweep| sweep.group == group && sweep.over_jobs());
    let wanted =
        [of_group("log-writer").next(), of_group("transaction-processing").next_back(), of_group("storage").next()];
    let mut out: Vec<&Sweep> = Vec::new();
    for sweep in wanted.into_iter().flatten().chain(measured()) {
        if out.len() < MOST && out.iter().all(|other| other.group != sweep.group) {
            out.push(sweep);
        }
    }
    out
}

fn headline(side: &PlatformRun<'_>, sweep: &Sweep) -> Option<Headline> {
    let peak = sweep.peak()?;
    let unit = match sweep.rate == THROUGHPUT {
        true if sweep.group == "log-writer" => "commits/s".to_owned(),
        true => "transactions/s".to_owned(),
        false => unit(sweep.rate),
    };
    let bound = if side.run.published.is_none() { bound_of_sweep(sweep, &side.run.records) } else { None };
    let by = bound.as_ref().map_or(BoundBy::Unknown, |bound| bound.by);
    let pct = peak.figure(column::LIMIT_SHARE_PCT).map(|share| share.mean);
    let doubts = doubts_of_share(&side.run.records, sweep, peak);
    let published = side.run.published.as_ref().filter(|published| published.imported);
    let kept = peak.kept.says().map(|kept| cut(&kept, MAX_REASON));
    let context = context! {
        doubtful => !doubts.is_empty(),
        qualified => kept.or_else(|| published.map(|_| "not checked by loadline".to_owned())),
        pct => pct.map(|pct| number(pct, usize::from(pct < 9.95))),
        by => (by != BoundBy::Unknown).then(|| by.name()),
    };
    Some(Headline {
        value: value(sweep.rate, sweep.rate_at(peak)?.mean),
        unit,
        place: format!("{}, {}", short_name(sweep, &side.sweeps), short_place(sweep, peak.at)),
        said: prose("answer-said", context),
        doubts: doubts.join("; "),
        because: bound.map_or_else(String::new, |bound| bound.because),
        drawn: pct.map(|pct| share(pct, by)),
    })
}
