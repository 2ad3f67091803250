//! The answer for who looks for ten seconds: what each platform reached, what share of its limit that is and what bounds it; how many times
//! better other platforms are than the first; and caveats before a figure is used.

use loadline_analyze::kept::doubt;
use loadline_analyze::kpi::{THROUGHPUT, rate_of};
use loadline_analyze::stats::Interval;
use loadline_analyze::{Bound, BoundBy, Comparison, Saturation, Sweep, SweepPoint};
use loadline_model::disturbance::why_not_valid;
use loadline_model::format::{counted, duration_ns, number};
use loadline_model::{Severity, TestRecord, column};
use minijinja::{Value, context};

use super::factors;
use super::page::beyond;
use super::qualified::{self, LIMIT, doubts_of_share};
use crate::bars::{intervals, share};
use crate::doc::{Block, Section};
use crate::platform_run::PlatformRun;
use crate::templates::{items, prose, stored};
use crate::words::{alike, cut, grouped, short_name, short_place, stop, unit, value};

/// Most workloads of a platform, each of another group.
const MOST: usize = 3;

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
    let mut of_groups: Vec<&Sweep> = Vec::new();
    for sweep in by_weight(&side.sweeps) {
        if of_groups.len() < MOST && of_groups.iter().all(|other| other.group != sweep.group) {
            of_groups.push(sweep);
        }
    }
    let figures: Vec<Value> = of_groups.into_iter().filter_map(|sweep| headline(side, sweep, is_named)).collect();
    let label = if is_named { side.label.clone() } else { String::new() };
    let sentence = prose("answer", context! { label, figures });
    (!figures.is_empty()).then_some(Block::Answer { label, figures, sentence })
}

/// Those of `sweeps` with a peak: commits, the last of the transactions and reads of blocks first, which are there once more in their places.
pub(crate) fn by_weight(sweeps: &[Sweep]) -> impl Iterator<Item = &Sweep> {
    let measured = || sweeps.iter().filter(|sweep| sweep.peak().is_some());
    let of_group = |group: &'static str| measured().filter(move |sweep| sweep.group == group && sweep.over_jobs());
    let first =
        [of_group("log-writer").next(), of_group("transaction-processing").next_back(), of_group("storage").next()];
    first.into_iter().flatten().chain(measured())
}

/// A figure for who looks for ten seconds. Several platforms are compared first; their key figures and load lines say why.
fn headline(side: &PlatformRun<'_>, sweep: &Sweep, is_one_of_several: bool) -> Option<Value> {
    let peak = sweep.peak()?;
    let unit = match sweep.rate == THROUGHPUT {
        true if sweep.group == "log-writer" => "commits/s".to_owned(),
        true => "transactions/s".to_owned(),
        false => unit(sweep.rate),
    };
    let bound = side.bound(sweep);
    let by = bound.as_ref().map_or(BoundBy::Unknown, |bound| bound.by);
    let pct = peak.figure(column::LIMIT_SHARE_PCT).map(|share| share.mean);
    let doubts = doubts_of_share(&side.run.records, sweep, peak);
    let published = side.run.published.as_ref().filter(|published| published.imported);
    let context = context! {
        doubtful => !doubts.is_empty(),
        pct => pct.map(|pct| number(pct, usize::from(pct < 9.95))),
        by => (by != BoundBy::Unknown).then(|| by.name()),
    };
    let said = prose("answer-said", context);
    let qualified = qualified::kept_by(peak).or_else(|| published.map(|_| "not checked by loadline".to_owned()));
    let (doubts, because) =
        if is_one_of_several { Default::default() } else { (doubts.join("; "), bound.map(|b| b.because)) };
    Some(context! {
        value => value(sweep.rate, sweep.rate_at(peak)?.mean), unit,
        place => format!("{}, {}", short_name(sweep, &side.sweeps), short_place(sweep, peak.at)),
        said, qualified, doubts, because, drawn => pct.map(|pct| share(pct, by)),
    })
}

/// Throughput and latency of a test for who looks for ten seconds.
pub(crate) fn of_test(r: &TestRecord, bound: &Bound) -> Vec<Value> {
    let (rate, pct) = (rate_of(&[r]), r.figure(column::LIMIT_SHARE_PCT));
    let by = (bound.by != BoundBy::Unknown).then(|| bound.by.name());
    let doubts = doubt(r, None);
    let shown = pct.map(|pct| number(pct, usize::from(pct < 9.95)));
    let said = prose("answer-said", context! { doubtful => doubts.is_some(), pct => shown, by });
    let drawn = pct.map(|pct| share(pct, bound.by));
    let throughput = r.figure(rate).map(|v| {
        let place = counted(r.jobs as usize, "job");
        context! { value => value(rate, v), unit => unit(rate), place, said, doubts, drawn, because => bound.because }
    });
    let ns = |column| r.figure(column).map(duration_ns);
    let p99 = ns(column::RESPONSE_TIME_NS_P99).or_else(|| ns(column::TRANSACTION_TIME_NS_P99));
    let mean = ns(column::RESPONSE_TIME_NS_MEAN).or_else(|| ns(column::TRANSACTION_TIME_NS_MEAN));
    let place = mean.map(|mean| format!("99 % of the transactions took no longer; mean {mean}"));
    let latency = p99.map(|value| context! { value, unit => "p99", place });
    throughput.into_iter().chain(latency).collect()
}

/// Most characters of what was noticed.
const MOST_NOTICED: usize = 320;

/// Caveats; empty if there are none.
pub(crate) fn mind(sides: &[PlatformRun<'_>]) -> Section {
    let all = sides.iter().flat_map(|side| minded(side).into_iter().map(move |item| (item, side.label.as_str())));
    let items = grouped(all, |(item, _)| item.clone()).into_iter().map(|(item, of)| {
        let labels: Vec<&str> = of.into_iter().map(|(_, label)| label).collect();
        if sides.len() > 1 { format!("{}: {item}", labels.join(", ")) } else { item }
    });
    Section::new("mind", "What to mind", Block::list(items).into_iter().collect())
}

pub(crate) fn bounded(name: &str, bound: &Bound) -> String {
    let by = if bound.by == BoundBy::Unknown { ":" } else { " is bounded by" };
    format!("{name}{by} {}.", stop(&bound.sentence()))
}

fn minded(side: &PlatformRun<'_>) -> Vec<String> {
    let (plan, records) = (&side.run.manifest.plan, side.run.records.as_slice());
    if records.is_empty() {
        return Vec::new();
    }
    let mut refused = alike(records.iter().filter(|r| !r.is_usable()).map(|r| (why_not_valid(r), r.test)));
    refused.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let noticed = qualified::noticed(records).into_iter().chain(qualified::noted_sentences(records));
    let mut findings: Vec<_> = side.run.manifest.doctor.iter().filter(|f| f.severity > Severity::Ok).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let names = |of: &dyn Fn(&Sweep, &SweepPoint) -> bool| -> Vec<String> {
        let peaks = side.sweeps.iter().filter_map(|s| Some((s, s.peak()?)));
        peaks.filter(|(s, peak)| of(s, peak)).map(|(s, _)| short_name(s, &side.sweeps)).collect()
    };
    let is_rising = |s: &Sweep| s.over_jobs() && matches!(s.saturation(), Saturation::Rising { .. });
    let rising_below = side.sweeps.iter().filter(|s| is_rising(s) && s.beyond().next().is_some());
    let rising_below =
        rising_below.map(|s| format!("{} ({})", short_name(s, &side.sweeps), beyond(s).trim_start_matches("; ")));
    // A percentile is known to a thousandth.
    let few_are_slow = |_: &Sweep, peak: &SweepPoint| {
        let ns = |column| peak.figure(column).map(|e| e.mean);
        let both = ns(column::TRANSACTION_TIME_NS_MEAN).zip(ns(column::TRANSACTION_TIME_NS_P99));
        both.is_some_and(|(mean, p99)| mean > 1.01 * p99)
    };
    let context = context! {
        refused,
        kept => qualified::kept(records.iter()),
        valid => records.iter().filter(|r| r.valid).count(),
        noticed => noticed.map(|sentence| cut(&sentence, MOST_NOTICED)).collect::<Vec<_>>(),
        rising => names(&|s, _| is_rising(s) && s.beyond().next().is_none()),
        rising_below => rising_below.collect::<Vec<_>>(),
        slow => names(&few_are_slow),
        without_limit => names(&|_, peak| side.run.published.is_none() && peak.figure(LIMIT).is_none()),
        measured => names(&|_, _| true),
        why => records.iter().find_map(|r| r.absent.get(column::LIMIT_SHARE_PCT.id)),
        findings,
        plan => stored(plan),
        private => side.run.manifest.target.kind.ends_with("-temp"),
    };
    items("mind", context)
}
