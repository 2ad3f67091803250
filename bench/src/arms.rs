//! `loadline ab` against truth: comparisons of equal arms on a real server, and of arms that differ by a known amount.
//!
//! One long run of pairs is cut into comparisons of `--pairs` each, which is what as many runs would be, without as many
//! servers: each has its own coins, and whatever happens between the windows of a run happens between these.

use loadline_analyze::arms::compare;
use loadline_analyze::paired::Verdict;
use loadline_database::OpenRequest;
use loadline_model::arms::ArmSpec;
use loadline_model::plan::{JobsSpec, PlanSpec, TimeSpec};
use loadline_model::{Plan, TestRecord};
use loadline_run::make_plan;

use crate::arena::Outcome;
use crate::short::study;

#[derive(Debug, clap::Parser)]
pub(crate) struct Args {
    /// Comparisons of equal arms
    #[arg(long, default_value_t = 200)]
    comparisons: u32,
    /// Comparisons of each planted difference
    #[arg(long, default_value_t = 20)]
    planted: u32,
    /// Pairs of a comparison
    #[arg(long, default_value_t = 16)]
    pairs: u32,
    /// Length of a window, s
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Number of jobs
    #[arg(long, default_value_t = 2)]
    jobs: u32,
    /// Workload of the comparisons on PostgreSQL
    #[arg(long, default_value = "LGWR-LAT1")]
    workload: String,
}

/// An arm that has `name = value`, or that is `url`.
fn arm(url: Option<&str>, setting: Option<(&str, &str)>) -> ArmSpec {
    let setting = setting.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    ArmSpec { target: url.map(str::to_owned), setting, ..ArmSpec::default() }
}

/// Measures the comparisons and prints how many had which verdict.
fn try_arms(args: &Args, what: &str, workload: &str, comparisons: u32, arms: [ArmSpec; 2]) -> Outcome<()> {
    let [a, b] = arms;
    let (url_a, url_b) = (a.target.clone(), b.target.clone());
    let default = "postgres-temp:".to_owned();
    let spec = PlanSpec {
        target: Some(default.clone()),
        workload: Some(vec![workload.to_owned()]),
        jobs: Some(JobsSpec::One(args.jobs)),
        duration: Some(TimeSpec::Seconds(args.seconds)),
        warmup: Some(TimeSpec::Seconds(0.2)),
        probe: Some(false),
        allow_disturbed: Some(true),
        pairs: Some(comparisons * args.pairs),
        arm_a: Some(a),
        arm_b: Some(b),
        ..PlanSpec::default()
    };
    let plan = make_plan(&spec).map_err(|e| e.to_string())?;
    let dir = tempfile::tempdir_in(".")?;
    let open = |url: Option<String>, settings| {
        let mut request = OpenRequest::new(url.as_deref().unwrap_or(&default), dir.path().to_owned());
        request.settings = settings;
        request
    };
    let of = plan.arms.clone().ok_or("no arms")?;
    let requests = (open(url_a, of.a.settings.clone()), open(url_b, of.b.settings.clone()));
    let records = study(plan.clone(), requests.0, Some(requests.1))?.records;
    let mut counts = [0; 4];
    let mut ratios = Vec::new();
    for n in 0..comparisons {
        let (verdict, ratio) = verdict(&plan, &records, n * args.pairs, args.pairs);
        counts[match verdict {
            Verdict::Faster => 0,
            Verdict::Slower => 1,
            Verdict::Equivalent => 2,
            Verdict::NotShown => 3,
        }] += 1;
        ratios.extend(ratio);
    }
    let [faster, slower, equivalent, not_shown] = counts;
    let typical = loadline_analyze::stats::median(&ratios).unwrap_or(f64::NAN);
    println!(
        "| {what} | {workload} | {comparisons} | {faster} | {slower} | {equivalent} | {not_shown} | {typical:.3} |"
    );
    Ok(())
}

/// Verdict and ratio of the main figure in the pairs after `from`.
fn verdict(plan: &Plan, records: &[TestRecord], from: u32, pairs: u32) -> (Verdict, Option<f64>) {
    let of = |r: &&TestRecord| (from + 1..=from + pairs).contains(&r.repetition);
    let part: Vec<TestRecord> =
        records.iter().filter(of).map(|r| TestRecord { repetition: r.repetition - from, ..r.clone() }).collect();
    let Some(arms) = &plan.arms else { return (Verdict::NotShown, None) };
    let mut arms = arms.as_ref().clone();
    (arms.pairs, arms.looks) = (pairs, vec![pairs as usize]);
    let compared = compare(&part, &arms);
    let row = compared.rows.first();
    let verdict = row.and_then(|r| r.verdict).unwrap_or(Verdict::NotShown);
    (verdict, row.and_then(|r| Some(r.ratio?.value)))
}

pub(crate) fn run(args: &Args) -> Outcome<()> {
    println!("Comparisons of {} pairs, windows of {} s, {} jobs, margin ±2 %.\n", args.pairs, args.seconds, args.jobs);
    println!("| arms | workload | comparisons | faster | slower | equivalent | not shown | B/A, median |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    // Only the planner of queries with twelve tables and more looks at it.
    let equal = [arm(None, Some(("geqo_seed", "0.1"))), arm(None, Some(("geqo_seed", "0.2")))];
    try_arms(args, "equal, PostgreSQL", &args.workload, args.comparisons, equal)?;
    // A commit of the reference log writer takes about 0.2 ms more than its pause, and varies as the device does.
    for (engine, scheme) in [("null engine", "null:"), ("reference log writer", "wal:")] {
        for (what, pause) in [("2 %", "1020us"), ("5 %", "1050us"), ("20 %", "1200us")] {
            let url = format!("{scheme}?pause={pause}");
            let arms = [arm(Some(&format!("{scheme}?pause=1000us")), None), arm(Some(&url), None)];
            try_arms(args, &format!("pause longer by {what}, {engine}"), "LGWR-LAT1", args.planted, arms)?;
        }
    }
    for (name, a, b, workload) in [
        ("synchronous_commit", "on", "off", "LGWR-LAT1"),
        ("full_page_writes", "off", "on", "TP-LIGHT"),
        ("wal_compression", "off", "on", "LGWR-LAT25"),
        ("shared_buffers", "8MB", "512MB", "TP-LOOKUP"),
    ] {
        let arms = [arm(None, Some((name, a))), arm(None, Some((name, b)))];
        try_arms(args, &format!("{name} {a} → {b}"), workload, args.planted.min(4), arms)?;
    }
    Ok(())
}
