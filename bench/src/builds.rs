//! Two builds of loadline under the same work, in pairs: what does a change cost, or another C library, compiler or profile?
//!
//! `-- builds OLD NEW --least 0.97` is the gate of a change: it fails if a workload of the plan is surely slower than that. Each
//! window is a run of its own, of one build, with a private server of its own; both builds run a workload right after one another,
//! and get options only that both know. The order within the pairs is that of `loadline ab`, and so is the interval.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_analyze::paired::{Pair, order, paired_ratio};
use loadline_analyze::stats::Interval;
use loadline_model::{Letter, TestRecord, column};
use loadline_run::{PlanError, PlanSpec, make_plan, plans};

use crate::arena::{Outcome, said_by};
use crate::outcomes::head;
use crate::short::stored;

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct BuildsArgs {
    /// Program of the old build
    old: PathBuf,
    /// Program of the new build, whose figures are divided by those of the old one
    new: PathBuf,
    /// Targets; null: is loadline's own loop
    #[arg(long, default_values = ["sqlite:", "postgres-temp:", "mariadb-temp:"])]
    target: Vec<String>,
    /// Plan that both builds come with
    #[arg(long, default_value = plans::DEFAULT_PLAN)]
    plan: String,
    /// Only these workloads [default: those of the plan]
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
    /// Jobs of each test
    #[arg(long, default_value = "1,4")]
    jobs: String,
    /// Pairs, at least 6 for an interval
    #[arg(long, default_value_t = 8)]
    pairs: usize,
    /// Window of each test, s
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Fail if an interval of the throughput lies wholly below this ratio, or the new build has no valid test where the old one has
    #[arg(long)]
    least: Option<f64>,
    /// Folder for the runs
    #[arg(long, default_value = "loadline-results")]
    results: PathBuf,
}

/// The interval of a ratio misses the truth in this share of comparisons.
const ERROR: f64 = 0.05;
/// Pairs from which on there is an interval with this error.
const MIN_PAIRS: usize = 6;

/// A figure that is compared: its name, and where it is.
type Figure = (&'static str, fn(&TestRecord) -> Option<f64>);
const FIGURES: [Figure; 2] = [
    ("throughput", |r| r.figure(column::COMMIT_THROUGHPUT_TPS).or_else(|| r.figure(column::TX_PER_S))),
    ("client CPU/tx", |r| r.figure(column::CLIENT_CPU_US_PER_TX)),
];

/// A workload with a number of jobs on a target.
type Test = (String, String, u32);

pub(crate) fn run(args: &BuildsArgs) -> Outcome<ExitCode> {
    for build in [&args.old, &args.new] {
        println!("{}: {}", build.display(), said_by(Command::new(build).arg("--version"), "build it first")?);
    }
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    println!("{} pairs, {} s a window, order from seed {seed}", args.pairs, args.seconds);
    let work = work(args)?;
    let mut all: BTreeMap<Test, [Vec<Pair>; FIGURES.len()]> = BTreeMap::new();
    for (number, order) in order(u64::from(seed), args.pairs).into_iter().enumerate() {
        for (target, workload) in &work {
            let mut measured: BTreeMap<Test, [Option<TestRecord>; 2]> = BTreeMap::new();
            for arm in order {
                for record in records(args, arm, target, workload)? {
                    let test = (target.clone(), record.workload.clone(), record.jobs);
                    let of_both = measured.entry(test).or_default();
                    match &record.invalid_reason {
                        Some(why) if !record.is_usable() => {
                            eprintln!("    REFUSED ({arm}, {workload} with {} jobs): {why}", record.jobs)
                        }
                        _ => of_both[usize::from(arm != Letter::A)] = Some(record),
                    }
                }
            }
            for (test, [old, new]) in measured {
                for (pairs, (_, figure)) in all.entry(test).or_default().iter_mut().zip(FIGURES) {
                    pairs.push(Pair { a: old.as_ref().and_then(figure), b: new.as_ref().and_then(figure) });
                }
            }
        }
        eprintln!("pair {} of {} is done", number + 1, args.pairs);
    }
    println!("\n{}", head("target | workload | jobs | figure | new / old | 95 % interval | pairs"));
    for ((target, workload, jobs), figures) in &all {
        for (pairs, (name, _)) in figures.iter().zip(FIGURES) {
            println!("| {target} | {workload} | {jobs} | {name} | {} of {} |", cells(pairs), pairs.len());
        }
    }
    let Some(least) = args.least else { return Ok(ExitCode::SUCCESS) };
    let throughputs = || all.iter().map(|(test, [throughput, ..])| (test, throughput));
    let judged = throughputs().filter(|(_, pairs)| interval(pairs).is_some()).count();
    let bad: Vec<_> = throughputs().filter_map(|(test, pairs)| Some((test, why_slower(pairs, least)?))).collect();
    println!("\n{judged} of {} tests have an interval; too slow: {}", all.len(), bad.len());
    for ((target, workload, jobs), why) in &bad {
        println!("  {workload} with {jobs} jobs on {target}: {why}");
    }
    Ok(if bad.is_empty() && judged > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Each target with each workload that it can run.
fn work(args: &BuildsArgs) -> Outcome<Vec<(String, String)>> {
    let spec = plans::find(&args.plan)?.spec()?;
    let of_plan = spec.workload.clone().unwrap_or_default();
    let workloads = if args.workload.is_empty() { &of_plan } else { &args.workload };
    let mut work = Vec::new();
    for target in &args.target {
        for workload in workloads {
            let one = PlanSpec {
                target: Some(target.clone()),
                workload: Some(vec![workload.clone()]),
                ..PlanSpec::default()
            };
            match make_plan(&spec.clone().overridden_by(one)) {
                Err(PlanError::Nothing { .. }) => eprintln!("{workload} is not for {target}"),
                Err(e) => return Err(e.into()),
                Ok(_) => work.push((target.clone(), workload.clone())),
            }
        }
    }
    Ok(work)
}

/// New / old and its interval, over the pairs in which both builds have the figure; the number of these pairs.
fn cells(pairs: &[Pair]) -> String {
    let Some(ratio) = paired_ratio(pairs, ERROR) else { return "– | – | 0".to_owned() };
    let interval = ratio.interval.map(|i| format!("{:.3} to {:.3}", i.low, i.high));
    let interval = interval.or_else(|| ratio.why_no_interval()).unwrap_or_else(|| "–".to_owned());
    format!("{:.3} | {interval} | {}", ratio.value, ratio.pairs)
}

fn interval(pairs: &[Pair]) -> Option<Interval> {
    paired_ratio(pairs, ERROR)?.interval
}

/// Why the throughput of the new build is worse than `least` allows, if it is.
fn why_slower(pairs: &[Pair], least: f64) -> Option<String> {
    if pairs.iter().any(|pair| pair.a.is_some()) && pairs.iter().all(|pair| pair.b.is_none()) {
        return Some("no test of the new build is valid".to_owned());
    }
    let valid = |of: fn(&Pair) -> Option<f64>| pairs.iter().filter(|pair| of(pair).is_some()).count();
    let (old, new) = (valid(|pair| pair.a), valid(|pair| pair.b));
    if interval(pairs).is_none() && old >= MIN_PAIRS && new < old {
        return Some(format!("{new} of its tests are valid, {old} of the old build"));
    }
    let interval = interval(pairs)?;
    (interval.high < least).then(|| format!("at most {:.3}", interval.high))
}

/// The tests of a run. Its exit code says no more than they do. Who else uses the machine disturbs one build as the other.
fn records(args: &BuildsArgs, arm: Letter, target: &str, workload: &str) -> Outcome<Vec<TestRecord>> {
    let build = if arm == Letter::A { &args.old } else { &args.new };
    let seconds = format!("{}s", args.seconds);
    let mut run = Command::new(build);
    run.args(["run", "--no-probe", "--plan", &args.plan, "--target", target]);
    run.args(["--workload", workload, "--jobs", &args.jobs, "--duration", &seconds, "--results"]);
    Ok(stored(run.arg(&args.results))?.0.records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_too_slow_if_its_interval_lies_below_the_bound_or_no_test_is_valid() {
        let old = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0];
        let pairs = |ratio: f64| old.map(|tps| Pair::new(tps, ratio * tps));
        assert_eq!(why_slower(&pairs(1.0), 0.97), None);
        assert_eq!(why_slower(&pairs(0.9), 0.97).unwrap(), "at most 0.900");
        assert_eq!(why_slower(&pairs(0.9), 0.85), None, "the bound allows it");
        assert_eq!(why_slower(&pairs(0.9)[..2], 0.97), None, "two pairs show nothing");
        assert!(why_slower(&pairs(1.0).map(|pair| Pair { b: None, ..pair }), 0.97).is_some());
        assert_eq!(why_slower(&[Pair { a: None, b: None }; 8], 0.97), None, "refused by both");
    }
}
