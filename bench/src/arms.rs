//! `loadline ab` against truth: comparisons of equal arms on a real server, and of arms that differ by a known amount.
//!
//! One long run of pairs is cut into comparisons of `--pairs` each, which is what as many runs would be, without as many
//! servers: each has its own coins, and whatever happens between the windows of a run happens between these.

use std::collections::BTreeMap;

use loadline_analyze::kpi::higher_is_better;
use loadline_analyze::paired::verdict::{detectable, verdict_of};
use loadline_analyze::paired::{PairedEstimate, Verdict, paired_ratio};
use loadline_analyze::stats::median;
use loadline_analyze::variants::{Cell, cells};
use loadline_database::OpenRequest;
use loadline_model::plan::{JobsSpec, TimeSpec};
use loadline_model::variant::VariantSpec;
use loadline_model::{Column, TestRecord, column};
use loadline_run::{PlanSpec, make_plan};

use crate::arena::Outcome;
use crate::outcomes::head;
use crate::short::study;

/// Margin of equivalence.
const MARGIN: f64 = 0.02;

#[derive(Debug, clap::Parser)]
pub(crate) struct ArmsArgs {
    /// Comparisons of equal arms
    #[arg(long, default_value_t = 200)]
    comparisons: u32,
    /// Comparisons of each planted difference
    #[arg(long, default_value_t = 20)]
    planted: u32,
    /// Comparisons of each setting whose direction is known
    #[arg(long, default_value_t = 4)]
    settings: u32,
    /// Pairs of a comparison
    #[arg(long, default_value_t = 16)]
    pairs: u32,
    /// Length of a window, s
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Number of jobs
    #[arg(long, default_value_t = 2)]
    jobs: u32,
    /// Workload of the equal arms
    #[arg(long, default_value = "LGWR-LAT1")]
    workload: String,
}

/// An arm that has `name = value`, or that is `url`.
fn arm(url: Option<&str>, setting: Option<(&str, &str)>) -> VariantSpec {
    let setting = setting.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    VariantSpec { target: url.map(str::to_owned), setting, ..VariantSpec::default() }
}

/// Figures by which two arms are compared.
#[derive(Clone)]
struct Case {
    workload: String,
    parameter: Option<(&'static str, i64)>,
    /// Share of the payload that can be compressed away.
    compressible: f64,
    jobs: u32,
    seconds: f64,
    pairs: u32,
}

impl Case {
    fn from_args(args: &ArmsArgs, workload: &str, comparisons: u32) -> Case {
        Case {
            workload: workload.to_owned(),
            parameter: None,
            compressible: 0.0,
            jobs: args.jobs,
            seconds: args.seconds,
            pairs: comparisons * args.pairs,
        }
    }

    /// Measures all pairs. Each window begins right after a checkpoint and 0.2 s of warm-up.
    fn measure(&self, arms: [VariantSpec; 2]) -> Outcome<Vec<TestRecord>> {
        let urls = arms.each_ref().map(|arm| arm.target.clone());
        let default = "postgres-temp:".to_owned();
        let of = |(name, value): (&str, i64)| {
            BTreeMap::from([(self.workload.clone(), BTreeMap::from([(name.to_owned(), value)]))])
        };
        let spec = PlanSpec {
            target: Some(default.clone()),
            workload: Some(vec![self.workload.clone()]),
            parameters: self.parameter.map(of),
            payload_compressibility: Some(self.compressible),
            jobs: Some(JobsSpec::One(self.jobs)),
            duration: Some(TimeSpec::Seconds(self.seconds)),
            warmup: Some(TimeSpec::Seconds(0.2)),
            probe: Some(false),
            pairs: Some(self.pairs),
            variant: Some(arms.to_vec()),
            ..PlanSpec::default()
        };
        let plan = make_plan(&spec).map_err(|e| e.to_string())?;
        let dir = tempfile::tempdir_in(".")?;
        let open = |url: Option<String>, settings| {
            let mut request = OpenRequest::new(url.as_deref().unwrap_or(&default), dir.path().to_owned());
            request.settings = settings;
            request
        };
        let variants = plan.arms().ok_or("no arms")?.variants.iter();
        let mut requests = urls.into_iter().zip(variants).map(|(url, variant)| open(url, variant.settings.clone()));
        let (first, others) = (requests.next().ok_or("no arms")?, requests.collect());
        Ok(study(plan, first, others)?.records)
    }
}

fn ratio_of(cell: &Cell<'_>, figure: Option<&Column>) -> Option<(PairedEstimate, bool)> {
    let (pairs, higher_is_better) = match figure {
        Some(column) => (cell.pairs_of(column), false),
        None => (cell.main_pairs(), higher_is_better(cell.metrics().first()?)),
    };
    Some((paired_ratio(&pairs, 0.05)?, higher_is_better))
}

/// Prints how many of the comparisons in `records`, of `pairs` each, had which verdict.
fn count(what: &str, case: &Case, records: &[TestRecord], pairs: u32, figure: Option<&Column>) {
    let (mut counts, mut ratios, mut seen) = ([0; 4], Vec::new(), Vec::new());
    let comparisons = case.pairs / pairs;
    for n in 0..comparisons {
        let from = n * pairs;
        let of = |r: &&TestRecord| (from + 1..=from + pairs).contains(&r.repetition);
        let part: Vec<TestRecord> =
            records.iter().filter(of).map(|r| TestRecord { repetition: r.repetition - from, ..r.clone() }).collect();
        let found = cells(&part, pairs).first().and_then(|cell| ratio_of(cell, figure));
        let verdict = found.map_or(Verdict::NotShown, |(ratio, more)| verdict_of(ratio.interval, more, MARGIN));
        // In the order in which they are declared.
        counts[verdict as usize] += 1;
        ratios.extend(found.map(|(ratio, _)| ratio.value));
        seen.extend(found.and_then(|(ratio, _)| detectable(&ratio)));
    }
    let [faster, slower, equivalent, not_shown] = counts;
    let typical = median(&ratios).unwrap_or(f64::NAN);
    let detectable = median(&seen).map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    let workload = &case.workload;
    println!(
        "| {what} | {workload} | {comparisons} | {faster} | {slower} | {equivalent} | {not_shown} | {typical:.3} | {detectable} |"
    );
}

pub(crate) fn run(args: &ArmsArgs) -> Outcome<()> {
    println!("Comparisons of {} pairs, windows of {} s, {} jobs, margin ±2 %.\n", args.pairs, args.seconds, args.jobs);
    let verdicts = "faster | slower | equivalent | not shown";
    println!("{}", head(&format!("arms | workload | comparisons | {verdicts} | B/A, median | found with 80 %, from")));
    if args.comparisons > 0 {
        // Only the planner of queries with twelve tables and more looks at it.
        let equal = [arm(None, Some(("geqo_seed", "0.1"))), arm(None, Some(("geqo_seed", "0.2")))];
        let case = Case::from_args(args, &args.workload, args.comparisons);
        count("equal, PostgreSQL", &case, &case.measure(equal)?, args.pairs, None);
    }
    // A commit of the reference log writer takes about 0.2 ms more than its pause, and varies as the device does.
    for (engine, scheme) in [("null engine", "null:"), ("reference log writer", "wal:")] {
        for (what, pause) in [("2 %", "1020us"), ("5 %", "1050us"), ("20 %", "1200us")] {
            if args.planted > 0 {
                let url = format!("{scheme}?pause={pause}");
                let arms = [arm(Some(&format!("{scheme}?pause=1000us")), None), arm(Some(&url), None)];
                let case = Case::from_args(args, "LGWR-LAT1", args.planted);
                let records = case.measure(arms)?;
                count(&format!("pause longer by {what}, {engine}"), &case, &records, args.pairs, None);
            }
        }
    }
    // Of many accounts, nearly every change after a checkpoint is the first to its page, which is then logged as a whole; its rows
    // can be compressed.
    let known = [
        ("synchronous_commit", ["on", "off"], "LGWR-LAT1"),
        ("full_page_writes", ["off", "on"], "TP-LIGHT"),
        ("wal_compression", ["off", "on"], "TP-LIGHT"),
        ("shared_buffers", ["8MB", "512MB"], "TP-LOOKUP"),
    ];
    for (name, [a, b], workload) in known {
        if args.settings == 0 {
            break;
        }
        let parameter = (workload == "TP-LIGHT").then_some(("accounts", 1_000_000));
        let arms = [arm(None, Some((name, a))), arm(None, Some((name, b)))];
        let compressible = if parameter.is_some() { 0.8 } else { 0.0 };
        let case = Case { parameter, compressible, ..Case::from_args(args, workload, args.settings) };
        let records = case.measure(arms)?;
        let what = format!("{name} {a} → {b}");
        count(&what, &case, &records, args.pairs, None);
        if parameter.is_some() {
            let redo = format!("{what}: redo per transaction, less is faster");
            count(&redo, &case, &records, args.pairs, Some(column::REDO_KIB_PER_TX));
        }
    }
    Ok(())
}
