//! Two builds of loadline under the same work, in pairs: what does the other C library, compiler or profile cost?
//!
//! `-- builds target/release/loadline target/x86_64-unknown-linux-musl/release/loadline`. Each window is a run of its own, of one
//! build, with a private server of its own. The order within the pairs is that of `loadline ab`, and so is the interval.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_analyze::paired::{Pair, PairedRatio, order, paired_ratio};
use loadline_model::{ArmName, TestRecord, column};
use loadline_store::StoredRun;

use crate::arena::{Outcome, said_by};

/// The windows of a comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Windows {
    /// Pairs
    #[arg(long, default_value_t = 12)]
    pub(crate) pairs: usize,
    /// Window of each test, s
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u32,
    /// Folder for the runs
    #[arg(long, default_value = "loadline-results")]
    pub(crate) results: PathBuf,
}

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Program of build A
    a: PathBuf,
    /// Program of build B, whose figures are divided by those of A
    b: PathBuf,
    /// What is run: TARGET=WORKLOAD,…; null: is loadline's own loop
    #[arg(long, default_values = ["null:=LGWR-LAT1", "postgres-temp:=LGWR-LAT1,TP-LOOKUP", "sqlite:=LGWR-LAT1,TP-LOOKUP"])]
    work: Vec<String>,
    /// Jobs of each test
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    jobs: Vec<u32>,
    #[command(flatten)]
    windows: Windows,
}

/// Figures that are compared, by name.
pub(crate) type Figure = (&'static str, fn(&TestRecord) -> Option<f64>);
/// Transactions per second.
pub(crate) const TRANSACTIONS: Figure =
    ("transactions/s", |r| r.figure(column::COMMIT_THROUGHPUT_TPS).or_else(|| r.figure(column::TX_PER_S)));
const FIGURES: [Figure; 2] = [TRANSACTIONS, ("client CPU/tx", |r| r.figure(column::CLIENT_CPU_US_PER_TX))];

/// A test of the comparison: target, workload, jobs.
type Test = (String, String, u32);

pub(crate) fn run(args: &Args) -> Outcome<()> {
    let work: Vec<(&str, &str)> = args.work.iter().map(|work| of(work)).collect::<Outcome<_>>()?;
    for build in [&args.a, &args.b] {
        println!("{}: {}", build.display(), version(build)?);
    }
    let jobs: Vec<String> = args.jobs.iter().map(u32::to_string).collect();
    compare(&args.windows, &FIGURES, &work, |arm, (target, workloads)| {
        let build = if arm == ArmName::A { &args.a } else { &args.b };
        let (seconds, jobs) = (format!("{}s", args.windows.seconds), jobs.join(","));
        let what = ["--target", target, "--workload", workloads, "--jobs", &jobs, "--duration", &seconds];
        records(build, &args.windows.results, &what)
    })
}

/// Measures pairs of `windows` of each work, and prints the ratios of their figures.
pub(crate) fn compare(
    windows: &Windows,
    figures: &[Figure],
    work: &[(&str, &str)],
    mut measure: impl FnMut(ArmName, (&str, &str)) -> Outcome<Vec<TestRecord>>,
) -> Outcome<()> {
    let Windows { pairs, seconds, .. } = *windows;
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    println!("{pairs} pairs, {seconds} s a window, order from seed {seed}");
    let mut all: BTreeMap<(Test, usize), Vec<Pair>> = BTreeMap::new();
    for (number, order) in order(u64::from(seed), pairs).into_iter().enumerate() {
        for what in work {
            let mut measured: BTreeMap<Test, [Option<TestRecord>; 2]> = BTreeMap::new();
            for arm in order {
                let at = usize::from(arm != ArmName::A);
                for record in measure(arm, *what)? {
                    if let Some(why) = &record.invalid_reason {
                        eprintln!("    INVALID ({arm}, {} with {} jobs): {why}", record.workload, record.jobs);
                    }
                    let test = (what.0.to_owned(), record.workload.clone(), record.jobs);
                    measured.entry(test).or_default()[at] = Some(record);
                }
            }
            for (test, records) in measured {
                for (at, (_, of)) in figures.iter().enumerate() {
                    let [a, b] = &records;
                    let figure = |record: &Option<TestRecord>| of(record.as_ref().filter(|r| r.valid)?);
                    all.entry((test.clone(), at)).or_default().push(Pair { a: figure(a), b: figure(b) });
                }
            }
        }
        eprintln!("pair {} of {pairs} is done", number + 1);
    }
    println!(
        "\n| target | workload | jobs | figure | B / A | 95 % interval | pairs |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for (((target, workload, jobs), at), pairs) in &all {
        let (value, interval, valid) = shown(paired_ratio(pairs, 0.05));
        println!("| {target} | {workload} | {jobs} | {} | {value} | {interval} | {valid} |", figures[*at].0);
    }
    Ok(())
}

/// `TARGET=WORKLOADS`; a target may have `=` in its parameters.
fn of(work: &str) -> Outcome<(&str, &str)> {
    work.rsplit_once('=').ok_or_else(|| format!("'{work}' is not TARGET=WORKLOAD,…").into())
}

fn version(build: &Path) -> Outcome<String> {
    said_by(Command::new(build).arg("--version"), "build it first")
}

/// The tests of a run of `build`. Its exit code says no more than they do.
pub(crate) fn records(build: &Path, results: &Path, what: &[&str]) -> Outcome<Vec<TestRecord>> {
    let mut run = Command::new(build);
    run.args(["run", "--no-probe", "--driver", "client", "--warmup", "1s"]).args(what).arg("--results").arg(results);
    let out = run.stderr(Stdio::piped()).output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let failed = || format!("{} {}: {}", build.display(), what.join(" "), String::from_utf8_lossy(&out.stderr));
    let folder = said.lines().last().filter(|_| out.status.code().is_some_and(|code| code <= 1)).ok_or_else(failed)?;
    Ok(StoredRun::open(Path::new(folder))?.records)
}

/// Ratio, interval, and valid of all pairs, as text.
fn shown(ratio: Option<PairedRatio>) -> (String, String, String) {
    let absent = || "–".to_owned();
    let Some(ratio) = ratio else { return (absent(), absent(), "0".to_owned()) };
    let interval = ratio.interval.map(|i| format!("{:.3} to {:.3}", i.low, i.high));
    let interval = interval.or_else(|| ratio.why_no_interval()).unwrap_or_else(absent);
    (format!("{:.3}", ratio.value), interval, format!("{} of {}", ratio.pairs, ratio.pairs + ratio.dropped))
}
