//! The statistics of two arms, of histories, and of warm-ups, against simulated truth: the tables of docs/statistics.md and
//! docs/steady.md.

mod histories;
mod steady;

use clap::Parser;
use loadline_analyze::paired::simulated::{Machine, normal, series};
use loadline_analyze::paired::verdict::{Verdict, declare, detectable, precise_enough, verdict_of};
use loadline_analyze::paired::{Pair, PairedEstimate, Question, judge, paired_ratio};
use loadline_analyze::stats::{mean, median, sample_sd};
use loadline_analyze::within::half_width;
use loadline_model::Random;

use crate::outcomes::head;

#[derive(Debug, Parser)]
pub(crate) struct StatisticsArgs {
    /// Simulated runs behind each figure; a quarter as many histories
    #[arg(long, default_value_t = 2000)]
    runs: usize,
    /// Only the tables of histories
    #[arg(long, conflicts_with = "only_steady")]
    only_histories: bool,
    /// Only the tables of warm-ups and steady windows
    #[arg(long)]
    only_steady: bool,
}

const ERROR: f64 = 0.05;
const QUIET: Machine = Machine::QUIET;

const MACHINES: [(&str, Machine); 8] = [
    ("noise only", QUIET),
    ("drift 50 %", Machine { drift: 0.405, ..QUIET }),
    ("drift 50 %, noise 1 %", Machine { drift: 0.405, noise: 0.01, ..QUIET }),
    ("5 % stalled to a tenth", Machine { stalls: 0.05, ..QUIET }),
    ("drift 50 %, 5 % stalled", Machine::ROUGH),
    ("heavy tails (t, 2 degrees of freedom)", Machine { heavy: true, ..QUIET }),
    ("half of the noise inherited", Machine { correlation: 0.5, ..QUIET }),
    ("wave of ±10 % every 4 windows", Machine { wave: 0.1, ..QUIET }),
];

/// Prints all tables.
pub(crate) fn run(args: &StatisticsArgs) {
    if !args.only_histories && !args.only_steady {
        coverage(args.runs);
        power(args.runs);
        price(args.runs);
        families(args.runs);
        figures(args.runs / 4);
        windows(args.runs);
    }
    if !args.only_steady {
        histories::print(args.runs / 4);
    }
    if !args.only_histories {
        steady::tables(args.runs);
    }
}

/// Begins a table, whose columns are separated by ` | `.
fn table(title: &str, columns: &str) {
    println!("\n### {title}\n\n{}", head(columns));
}

/// Columns of so many pairs, runs or values.
fn each<const N: usize>(numbers: [usize; N], what: &str) -> String {
    numbers.map(|n| format!("{n} {what}")).join(" | ")
}

/// `runs` values of `one`, each from its own run of `machine`.
fn simulate<T>(runs: usize, machine: Machine, pairs: usize, ratio: f64, one: impl Fn(&[Pair]) -> T) -> Vec<T> {
    let mut random = Random::new(pairs as u64);
    (0..runs).map(|_| one(&machine.run(&mut random, pairs, ratio))).collect()
}

/// Share of true values, in %.
fn percent(values: impl IntoIterator<Item = bool>) -> f64 {
    let (all, hits) = values.into_iter().fold((0, 0), |(all, hits), v| (all + 1, hits + usize::from(v)));
    100.0 * hits as f64 / f64::from(all.max(1))
}

/// Share that was found of those that differ, if some do.
fn of_those(found: usize, of: usize) -> String {
    if of == 0 { String::new() } else { format!("{:.0} %", 100.0 * found as f64 / of as f64) }
}

fn estimate(pairs: &[Pair], error: f64) -> Option<PairedEstimate> {
    paired_ratio(pairs, error).filter(|r| r.interval.is_some())
}

/// Whether the interval leaves out `truth`.
fn misses(ratio: &PairedEstimate, truth: f64) -> bool {
    ratio.interval.is_some_and(|i| i.low > truth || i.high < truth)
}

/// The typical half width, in %.
fn width(ratios: &[PairedEstimate]) -> f64 {
    let widths: Vec<f64> = ratios.iter().filter_map(PairedEstimate::half_width).collect();
    100.0 * median(&widths).unwrap_or(f64::NAN)
}

/// Each pair as a block of its own: the plain signed-rank test.
fn without_blocks(pairs: &[Pair]) -> Vec<Pair> {
    pairs.iter().flat_map(|p| [*p, Pair { a: None, b: None }]).collect()
}

fn coverage(runs: usize) {
    const PAIRS: [usize; 6] = [6, 8, 12, 16, 20, 32];
    let columns = format!("machine | {} | plain signed ranks, 20 pairs", each(PAIRS, "pairs"));
    table("95 % intervals that miss the true ratio, and their typical half width", &columns);
    let cell = |ratios: Vec<Option<PairedEstimate>>| {
        let ratios: Vec<PairedEstimate> = ratios.into_iter().flatten().collect();
        if ratios.is_empty() {
            return " none |".to_owned();
        }
        format!(" {:.1} %, ±{:.1} % |", percent(ratios.iter().map(|r| misses(r, 1.0))), width(&ratios))
    };
    for (name, machine) in MACHINES {
        let ours = PAIRS.map(|n| cell(simulate(runs, machine, n, 1.0, |p| estimate(p, ERROR)))).concat();
        let plain = cell(simulate(runs, machine, 20, 1.0, |p| estimate(&without_blocks(p), ERROR)));
        println!("| {name} |{ours}{plain}");
    }
}

fn power(runs: usize) {
    const MARGIN: f64 = 0.02;
    let columns = "machine | pairs | equal: faster or slower | equal: equivalent | detectable | 2 % found | 5 % | 20 %";
    table("Verdicts with a margin of ±2 %, one comparison", columns);
    let heavy = Machine { heavy: true, ..QUIET };
    for (name, machine) in [("noise 1 %", Machine { noise: 0.01, ..QUIET }), ("noise 3 %", QUIET)].into_iter().chain([
        ("drift, stalls, noise 1 %", Machine { noise: 0.01, ..Machine::ROUGH }),
        ("drift, stalls, noise 3 %", Machine::ROUGH),
        ("heavy tails", heavy),
    ]) {
        for pairs in [12, 16, 24, 48] {
            let judged = |ratio: f64| {
                let one =
                    |p: &[Pair]| paired_ratio(p, ERROR).map(|r| (verdict_of(r.interval, true, MARGIN), detectable(&r)));
                simulate(runs, machine, pairs, ratio, one).into_iter().flatten().collect::<Vec<_>>()
            };
            let share =
                |of: &[(Verdict, Option<f64>)], any: &[Verdict]| percent(of.iter().map(|(v, _)| any.contains(v)));
            let equal = judged(1.0);
            let seen: Vec<f64> = equal.iter().filter_map(|(_, d)| *d).collect();
            let found = [1.02, 1.05, 1.2].map(|r| format!(" {:.0} % |", share(&judged(r), &[Verdict::Faster])));
            println!(
                "| {name} | {pairs} | {:.1} % | {:.0} % | {:.1} % |{}",
                share(&equal, &[Verdict::Faster, Verdict::Slower]),
                share(&equal, &[Verdict::Equivalent]),
                100.0 * median(&seen).unwrap_or(f64::NAN),
                found.concat()
            );
        }
    }
}

fn price(runs: usize) {
    const MOST: usize = 124;
    let looks = declare(MOST, ERROR);
    let columns = "machine | precision | missed | reached | pairs used, mean | one look at a known number | price";
    table(&format!("`--precision` with looks at {looks:?} pairs"), columns);
    let share = ERROR / looks.len() as f64;
    for (name, machine) in
        [("noise only", QUIET), ("drift, stalls", Machine::ROUGH), ("heavy tails", Machine { heavy: true, ..QUIET })]
    {
        for precision in [0.03, 0.02, 0.015] {
            let runs = runs / 4;
            let stopped = simulate(runs, machine, MOST, 1.0, |pairs| {
                let at = |n: &usize| Some((*n, estimate(pairs.get(..*n)?, share)?));
                looks.iter().filter_map(at).find(|(n, r)| *n == MOST || precise_enough(r, precision))
            });
            let stopped: Vec<(usize, PairedEstimate)> = stopped.into_iter().flatten().collect();
            let mean = stopped.iter().map(|(n, _)| *n as f64).sum::<f64>() / stopped.len() as f64;
            // The smallest number of pairs that is precise enough in half of all runs.
            let fixed = (6..=MOST / 2).map(|blocks| 2 * blocks).find(|n| {
                let ratios = simulate(200, machine, *n, 1.0, |p| estimate(p, ERROR));
                width(&ratios.into_iter().flatten().collect::<Vec<_>>()) <= 100.0 * precision
            });
            println!(
                "| {name} | ±{} % | {:.1} % | {:.0} % | {mean:.0} | {} | {} |",
                100.0 * precision,
                percent(stopped.iter().map(|(_, r)| misses(r, 1.0))),
                percent(stopped.iter().map(|(_, r)| precise_enough(r, precision))),
                fixed.map_or_else(|| "more".to_owned(), |n| n.to_string()),
                fixed.map_or_else(String::new, |n| format!("{:.1} ×", mean / n as f64))
            );
        }
    }
}

fn families(runs: usize) {
    let columns = "that differ by 5 % | noise | mean share of false verdicts | of those that differ, found";
    table("20 comparisons of 24 pairs judged together, margin ±2 %", columns);
    for (different, alike) in [(0, 1), (5, 1), (10, 1), (0, 20), (5, 5), (10, 20)] {
        let runs = runs / 2;
        let (mut wrong_share, mut found) = (0.0, 0);
        for seed in 0..runs {
            let truth = |n: usize| if n < different { 1.05 } else { 1.0 };
            let noise = |n: usize| Random::new((1000 * seed + n / alike) as u64);
            let figures: Vec<Vec<Pair>> = (0..20).map(|n| QUIET.run(&mut noise(n), 24, truth(n))).collect();
            let question = |pairs| Question { pairs, higher_is_better: true, margin: 0.02 };
            let family = judge(&figures.iter().map(|f| question(f)).collect::<Vec<_>>(), ERROR, 1);
            let verdicts: Vec<Verdict> = family.answers.iter().map(|a| a.verdict).collect();
            let (differ, equal) = verdicts.split_at(different);
            let right = differ.iter().filter(|v| **v == Verdict::Faster).count();
            let bad = differ.iter().filter(|v| matches!(v, Verdict::Slower | Verdict::Equivalent)).count()
                + equal.iter().filter(|v| matches!(v, Verdict::Slower | Verdict::Faster)).count();
            wrong_share += bad as f64 / family.verdicts.max(1) as f64;
            found += right;
        }
        let noise = if alike == 1 { "each its own".to_owned() } else { format!("{alike} share one") };
        let found = of_those(found, runs * different);
        println!("| {different} | {noise} | {:.1} % | {found} |", 100.0 * wrong_share / runs as f64);
    }
}

/// Equal arms of one workload with several figures of the same windows, some of which move against each other.
fn figures(runs: usize) {
    // How a figure follows what all windows have in common, and its own noise.
    const FIGURES: [(f64, f64); 5] = [(-0.05, 0.0), (0.05, 0.001), (-0.05, 0.03), (-0.03, 0.03), (-0.02, 0.2)];
    let title = "Runs of equal arms with a verdict on some figure beside the main one, no margin";
    table(title, "figures | pairs | judged together | judged one by one");
    for (cells, pairs) in [(1, 8), (1, 16), (1, 32), (4, 16)] {
        let mut random = Random::new(pairs as u64);
        let mut run = |_| {
            let mut all: Vec<Vec<Pair>> = Vec::new();
            for _ in 0..cells {
                let common: Vec<[f64; 2]> = (0..pairs).map(|_| [normal(&mut random), normal(&mut random)]).collect();
                all.extend(FIGURES.map(|(of_common, own)| {
                    let mut value = |common: f64| f64::exp(of_common * common + own * normal(&mut random));
                    common.iter().map(|[a, b]| Pair::new(value(*a), value(*b))).collect()
                }));
            }
            let question =
                |pairs: &Vec<Pair>| judge(&[Question { pairs, higher_is_better: true, margin: 0.0 }], ERROR, 1);
            let questions: Vec<Question<'_>> =
                all.iter().map(|pairs| Question { pairs, higher_is_better: true, margin: 0.0 }).collect();
            (judge(&questions, ERROR, 1).verdicts > 0, all.iter().any(|pairs| question(pairs).verdicts > 0))
        };
        let found: Vec<(bool, bool)> = (0..runs).map(&mut run).collect();
        println!(
            "| {} | {pairs} | {:.1} % | {:.1} % |",
            cells * FIGURES.len(),
            percent(found.iter().map(|f| f.0)),
            percent(found.iter().map(|f| f.1))
        );
    }
}

/// Intervals of single windows from their own course.
fn windows(runs: usize) {
    const VALUES: [usize; 5] = [40, 60, 100, 300, 600];
    let title = "95 % intervals of single windows that miss the true mean, and their typical half width in shares of the ideal one";
    table(title, &format!("φ | {}", each(VALUES, "values")));
    for correlation in [0.0, 0.5, 0.8, 0.9, 0.95] {
        let cell = |n: usize| {
            let of = |seed: usize| {
                let values = series(|_| 1.0, 0.1, correlation, seed as u64, n);
                Some((mean(&values)?, half_width(&values)?))
            };
            let found: Vec<(f64, f64)> = (0..runs).filter_map(of).collect();
            let means: Vec<f64> = found.iter().map(|(mean, _)| *mean).collect();
            let halves: Vec<f64> = found.iter().map(|(_, half)| *half).collect();
            let ideal = 1.96 * sample_sd(&means).unwrap_or(f64::NAN);
            let missed = percent(found.iter().map(|(mean, half)| (mean - 1.0).abs() > half * mean));
            format!(" {missed:.1} %, {:.1} × |", median(&halves).unwrap_or(f64::NAN) / ideal)
        };
        println!("| {correlation} |{}", VALUES.map(cell).concat());
    }
}
