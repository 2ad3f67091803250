//! First runs on a machine that others use a third of the time: how many tests are valid in the end, what that takes, and whether tests
//! that were measured again are biased against quiet ones. Quiet runs alternate with noisy ones. The neighbour is scripted: its bursts
//! follow from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use loadline_analyze::paired::verdict::verdict_of;
use loadline_analyze::paired::{Verdict, paired_ratio};
use loadline_analyze::repeatable::repeatable;
use loadline_analyze::stats::median;
use loadline_analyze::sweep::swept_value;
use loadline_analyze::variants::{ERROR, cells};
use loadline_analyze::{BoundBy, bound};
use loadline_model::{Random, TestRecord, column};
use loadline_store::StoredRun;

use crate::arena::Outcome;
use crate::short::stored;
use crate::spoil::{Beside, LOOP};

/// Bursts are this long, ms.
const BURST_MS: std::ops::Range<u64> = 1_000..8_000;
/// Difference up to which arms are equal.
const MARGIN: f64 = 0.02;
/// Pauses are on average so many times as long: the neighbour works a third of the time.
const PAUSE: f64 = 2.0;
/// So many last longer than [`Beside`] does.
const BURSTS: u64 = 300;

#[derive(Debug, clap::Args)]
pub(crate) struct NoisyArgs {
    /// Program of loadline
    #[arg(long, default_value = "target/release/loadline")]
    loadline: PathBuf,
    /// Targets, separated by commas, each with the number of its pairs of a run beside the neighbour and a quiet one
    #[arg(long, value_delimiter = ',', default_values = ["sqlite:=8", "postgres-temp:=4"])]
    runs: Vec<String>,
    /// Plan of the runs
    #[arg(long, default_value = "quick")]
    plan: String,
    /// Comparisons of equal arms beside the neighbour
    #[arg(long, default_value_t = 40)]
    comparisons: u32,
    /// Seed of the bursts
    #[arg(long, default_value_t = 43)]
    seed: u64,
    /// Folder for the runs: those of the same target, plan and seed that are there are not made again, also if another build of loadline made
    /// them, so that the bench can be interrupted
    #[arg(long, default_value = "loadline-results/noisy")]
    results: PathBuf,
}

/// A shell script that uses one CPU, all of them or the device now and then, until it is dropped.
fn neighbour(seed: u64, folder: &Path) -> Outcome<Beside> {
    let (cpus, file) = (std::thread::available_parallelism().map_or(1, usize::from), folder.join("neighbour"));
    // Without a name, what is written ends with its writer.
    let mut script = format!(
        "cpu='{LOOP}'; device='exec 3>\"{0}\"; rm \"{0}\"; exec dd if=/dev/zero of=/dev/fd/3 bs=1M count=4096 oflag=dsync'; ",
        file.display()
    );
    let mut random = Random::new(seed);
    for _ in 0..BURSTS {
        let (times, what) = [(1, "cpu"), (cpus, "cpu"), (1, "device")][random.below(3) as usize];
        let mut length_s = || (BURST_MS.start + random.below(BURST_MS.end - BURST_MS.start)) as f64 / 1e3;
        let (busy_s, idle_s) = (length_s(), PAUSE * length_s());
        // All stay in the script's group of processes, which ends as one.
        let one = format!("timeout --foreground {busy_s} sh -c \"${what}\" &");
        script += &format!("for i in $(seq {times}); do {one} done; sleep {}; ", busy_s + idle_s);
    }
    Beside::start(1, &[], &script)
}

/// A run, and what it took.
struct Ran {
    records: Vec<TestRecord>,
    code: i32,
    took_s: f64,
    /// Workloads of the plan without a usable test.
    without: usize,
}

/// The run called `name` with the options `more`: that of an earlier call of this bench, or a new one.
fn loadline(args: &NoisyArgs, name: &str, more: &[&str]) -> Outcome<Ran> {
    let results = args.results.join(name);
    let note = results.join("outcome.json");
    if !note.exists() {
        let began = Instant::now();
        let (run, code) = stored(Command::new(&args.loadline).args(more).arg("--results").arg(&results))?;
        std::fs::write(&note, serde_json::to_string(&(code, began.elapsed().as_secs_f64(), run.path()))?)?;
    }
    let (code, took_s, folder): (i32, f64, PathBuf) = serde_json::from_str(&std::fs::read_to_string(&note)?)?;
    let StoredRun { records, manifest, .. } = StoredRun::open(&folder)?;
    let has_figure = |code: &str| records.iter().any(|r| r.workload == code && r.is_usable());
    let without = manifest.plan.workloads.iter().filter(|w| !has_figure(&w.code)).count();
    Ok(Ran { records, code, took_s, without })
}

pub(crate) fn run(args: &NoisyArgs) -> Outcome<()> {
    std::fs::create_dir_all(&args.results)?;
    println!("neighbour: bursts of 1 to 8 s, a third of the time, seed {}", args.seed);
    for (number, target) in args.runs.iter().enumerate() {
        let (target, runs) =
            target.rsplit_once('=').ok_or_else(|| format!("--runs {target}: it takes TARGET=N, such as sqlite:=8"))?;
        runs_on(args, target, runs.parse()?, args.seed + 1_000 * number as u64)?;
    }
    comparisons(args)
}

/// Noisy and quiet runs on `target` in turn.
fn runs_on(args: &NoisyArgs, target: &str, runs: u64, seed: u64) -> Outcome<()> {
    let of = ["run", "--plan", &args.plan, "--target", target];
    let (mut noisy, mut quiet) = (Vec::new(), Vec::new());
    for number in 0..runs {
        let (kind_of_target, plan) = (target.replace(|c: char| !c.is_alphanumeric(), ""), &args.plan);
        let name = |kind: &str| format!("{kind_of_target}-{plan}-{}-{kind}", seed + number);
        let neighbour = neighbour(seed + number, &args.results)?;
        noisy.push(loadline(args, &name("noisy"), &of)?);
        drop(neighbour);
        quiet.push(loadline(args, &name("quiet"), &of)?);
        let (last, beside) = (&noisy[noisy.len() - 1], &quiet[quiet.len() - 1]);
        println!(
            "{target} {}: {} of {} tests valid, {} of them by the first try; {} workloads without a figure; exit code {}; {:.2} × the time of \
             the quiet run",
            number + 1,
            last.records.iter().filter(|r| r.valid).count(),
            last.records.len(),
            last.records.iter().filter(|r| r.valid && r.tries == 1).count(),
            last.without,
            last.code,
            last.took_s / beside.took_s,
        );
    }
    bias(target, &noisy, &quiet);
    agreement(target, &quiet);
    Ok(())
}

/// Parts of a test's identity within a run.
fn point(r: &TestRecord) -> (String, u32, u32, u32) {
    (r.workload.clone(), r.jobs, swept_value(r), r.repetition)
}

fn throughputs<'a>(records: impl Iterator<Item = &'a TestRecord>) -> BTreeMap<(String, u32, u32, u32), Vec<f64>> {
    let mut found: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for r in records {
        found.entry(point(r)).or_default().extend(r.figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0));
    }
    found
}

/// Tests that took several tries against quiet windows of the same point.
fn bias(target: &str, noisy: &[Ran], quiet: &[Ran]) {
    let again = throughputs(noisy.iter().flat_map(|ran| &ran.records).filter(|r| r.valid && r.tries > 1));
    let once = throughputs(quiet.iter().flat_map(|ran| &ran.records).filter(|r| r.valid && r.tries == 1));
    let by_cpu: BTreeSet<_> = quiet
        .iter()
        .flat_map(|ran| &ran.records)
        .filter(|r| bound(r).is_some_and(|bound| bound.by == BoundBy::Cpu))
        .map(point)
        .collect();
    for (name, is_cpu) in [("bound by CPU", true), ("others", false)] {
        let of_kind = again.iter().filter(|(point, _)| by_cpu.contains(*point) == is_cpu);
        let ratios: Vec<f64> =
            of_kind.filter_map(|(point, tps)| Some(median(tps)? / median(once.get(point)?)?)).collect();
        let shown = median(&ratios).map_or("none".to_owned(), |ratio| format!("{ratio:.3}"));
        println!(
            "{target}: throughput of tests of several tries / of quiet ones, {name}: {shown} at the median of {} points",
            ratios.len()
        );
    }
}

/// How often two quiet runs agree within what both said.
fn agreement(target: &str, quiet: &[Ran]) {
    let (mut agree, mut all) = (0_u32, 0_u32);
    for (number, a) in quiet.iter().enumerate() {
        for b in &quiet[number + 1..] {
            let Some((of_a, of_b)) = repeatable(&a.records).zip(repeatable(&b.records)) else { continue };
            let within = 1.0 + of_a.within.max(of_b.within);
            let theirs = throughputs(b.records.iter().filter(|r| r.valid));
            for (point, tps) in throughputs(a.records.iter().filter(|r| r.valid)) {
                let Some((a, b)) = median(&tps).zip(theirs.get(&point).and_then(|tps| median(tps))) else { continue };
                agree += u32::from((a / b).max(b / a) <= within);
                all += 1;
            }
        }
    }
    if all == 0 {
        println!("{target}: no two quiet runs have figures to compare");
        return;
    }
    let share = 100.0 * f64::from(agree) / f64::from(all);
    println!(
        "{target}: {share:.0} % of {all} pairs of figures of two quiet runs agree within what was said (expected: 80 to 97 %)"
    );
}

/// Equal arms beside the neighbour.
fn comparisons(args: &NoisyArgs) -> Outcome<()> {
    let arms = "ab --target-a null:?pause=1ms --target-b null:?pause=1ms --workload LGWR-LAT1 --jobs 1 --duration 1s --warmup 200ms";
    let arms: Vec<&str> = arms.split(' ').collect();
    let (mut verdicts, mut wrong) = (0_u32, 0_u32);
    for number in 0..args.comparisons {
        let _neighbour = neighbour(args.seed + 100_000 + u64::from(number), &args.results)?;
        let ran = loadline(args, &format!("equal-{}-{number}", args.seed), &arms)?;
        for cell in cells(&ran.records, u32::MAX) {
            let Some(ratio) = paired_ratio(&cell.main_pairs(), ERROR) else { continue };
            verdicts += 1;
            wrong += u32::from(matches!(verdict_of(ratio.interval, true, MARGIN), Verdict::Faster | Verdict::Slower));
        }
    }
    println!("equal arms beside the neighbour: {wrong} of {verdicts} verdicts are false (expected: at most 5 %)");
    Ok(())
}
