//! What bounds each workload at its peak, against the component that it is named for.
//!
//! Runs short sweeps on one database after another, or takes stored runs, and prints a table. It fails if something else
//! bounds a workload and its page does not say why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use loadline_analyze::stats::median;
use loadline_analyze::{BoundBy, Sweep, bound_of_sweep, sweeps};
use loadline_database::OpenRequest;
use loadline_model::format::number;
use loadline_model::plan::PlanSpec;
use loadline_model::{Column, Manifest, TestRecord, column};
use loadline_run::make_plan;
use loadline_run::study::Ended;
use loadline_store::StoredRun;
use loadline_workload::{CATALOGUE, Component, Workload};

use crate::arena::Outcome;
use crate::short::{Windows, study};

/// Databases by default.
const TARGETS: [&str; 3] = ["sqlite:", "postgres-temp:", "mariadb-temp:"];

/// Parameters that replace sweeps over them by one point: the sweep over jobs follows.
const FIXED: [(&str, &str, i64); 5] = [
    ("DBL-11", "rows", 10),
    ("DBL-12", "rows", 20),
    ("DBL-22", "indexes", 0),
    ("DA-AGG", "groups", 10_000),
    ("STO-RANDOM", "write-pct", 20),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Databases; by default SQLite and private servers of PostgreSQL and MariaDB
    #[arg(long)]
    target: Vec<String>,
    /// Workloads; by default all that are swept
    #[arg(long, value_delimiter = ',')]
    workload: Vec<String>,
    #[command(flatten)]
    windows: Windows,
    /// Repetitions of each test; with several, how far each limit is from its median is printed as well
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Folder of the runs, which are kept; by default they are removed
    #[arg(long)]
    results: Option<PathBuf>,
    /// Folders of stored runs to judge instead of measuring
    #[arg(long)]
    run: Vec<PathBuf>,
}

/// A run to judge.
struct Judged {
    manifest: Manifest,
    records: Vec<TestRecord>,
}

pub(crate) fn run(args: &Args) -> Outcome<ExitCode> {
    let scratch = tempfile::tempdir_in(".")?;
    let results = args.results.clone().unwrap_or_else(|| scratch.path().to_owned());
    let mut runs = args.run.iter().map(|path| stored(path)).collect::<Outcome<Vec<Judged>>>()?;
    if runs.is_empty() {
        let targets = if args.target.is_empty() { TARGETS.map(str::to_owned).to_vec() } else { args.target.clone() };
        for target in &targets {
            runs.push(stored(&measured(args, target, &results)?)?);
        }
    }
    let lines: Vec<Line> = runs.iter().flat_map(lines).collect();
    println!(
        "| workload | database | peak | of the limit | bounded by | named for | verdict |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    for workload in CATALOGUE {
        lines.iter().filter(|line| line.workload == workload.code).for_each(|line| println!("{}", line.text));
    }
    if args.repeat > 1 {
        println!("\n{}", stability(&runs));
    }
    let bad: Vec<String> =
        lines.iter().filter(|l| !l.ok).map(|l| format!("{} on {}", l.workload, l.database)).collect();
    println!("\n{} of {} are bounded by something else without a reason", bad.len(), lines.len());
    bad.iter().for_each(|which| println!("  {which}"));
    Ok(if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stored(path: &Path) -> Outcome<Judged> {
    let run = StoredRun::open(path)?;
    Ok(Judged { manifest: run.manifest, records: run.records })
}

/// Runs the sweeps on `target`, and returns the folder of the run.
fn measured(args: &Args, target: &str, results: &Path) -> Outcome<PathBuf> {
    let all = || CATALOGUE.iter().filter(|w| w.scan().is_none()).map(|w| w.code.to_owned()).collect();
    let workload: Vec<String> = if args.workload.is_empty() { all() } else { args.workload.clone() };
    let fixed = FIXED.iter().filter(|(code, ..)| workload.iter().any(|w| w.eq_ignore_ascii_case(code)));
    let parameters = fixed.map(|(code, name, value)| ((*code).to_owned(), [((*name).to_owned(), *value)].into()));
    let spec = PlanSpec {
        parameters: Some(parameters.collect()),
        workload: Some(workload),
        repeat: Some(args.repeat),
        ..args.windows.spec(target)
    };
    std::fs::create_dir_all(results)?;
    eprintln!("{target}");
    let outcome = study(make_plan(&spec)?, OpenRequest::new(target, results.canonicalize()?), None)?;
    match outcome.ended {
        Ended::Complete => Ok(outcome.folder),
        Ended::Interrupted => Err("interrupted".into()),
        Ended::Failed(e) => Err(e.into()),
    }
}

/// A line of the table.
struct Line {
    workload: &'static str,
    database: String,
    text: String,
    ok: bool,
}

fn lines(run: &Judged) -> Vec<Line> {
    let all = sweeps(&run.records);
    let database = run.manifest.target.product.clone();
    let planned = run.manifest.plan.workloads.iter().filter_map(|w| loadline_workload::find(&w.code).ok());
    planned.map(|w| line(w, &database, all.iter().find(|s| s.workload == w.code), &run.records)).collect()
}

fn line(w: &'static Workload, database: &str, sweep: Option<&Sweep>, records: &[TestRecord]) -> Line {
    let bound = sweep.and_then(|s| bound_of_sweep(s, records));
    let peak = sweep.and_then(|s| Some((s, s.peak()?)));
    let peak_text = peak.and_then(|(s, p)| {
        let figure = |c: &Column| p.figure(c).map(|e| format!("{} {}", number(e.mean, 0), c.unit));
        Some(format!("{}, {} jobs", figure(s.rate)?, p.jobs))
    });
    let (ok, verdict) = match &bound {
        None => (false, "no valid test".to_owned()),
        Some(bound) => verdict(w, bound.by),
    };
    let limit = peak.and_then(|(_, p)| {
        let mut same = records.iter().filter(|r| r.workload == w.code && r.jobs == p.jobs);
        let limit = same.find_map(|r| r.limit.as_ref())?;
        Some(format!("{} % of {}", number(p.figure(column::LIMIT_SHARE_PCT)?.mean, 0), limit.name))
    });
    let because = bound.map_or("–".to_owned(), |b| b.sentence());
    let text = format!(
        "| {} | {database} | {} | {} | {because} | {} | {verdict} |",
        w.code,
        peak_text.unwrap_or_else(|| "–".to_owned()),
        limit.unwrap_or_else(|| "–".to_owned()),
        w.named_for.phrase()
    );
    Line { workload: w.code, database: database.to_owned(), text, ok }
}

/// How far the limits of repeated tests are from their median, by reference.
fn stability(runs: &[Judged]) -> String {
    let mut off: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let mut repeated: BTreeMap<(&str, &str, u32), Vec<f64>> = BTreeMap::new();
        for (r, limit) in run.records.iter().filter_map(|r| r.limit.as_ref().map(|limit| (r, limit))) {
            repeated.entry((&limit.name, &r.workload, r.jobs)).or_default().push(limit.tps);
        }
        for ((name, ..), rates) in repeated.iter().filter(|(_, rates)| rates.len() > 1) {
            let middle = median(rates).unwrap_or(f64::NAN);
            off.entry(name).or_default().extend(rates.iter().map(|rate| (rate / middle - 1.0).abs() * 100.0));
        }
    }
    let line = |(name, off): (&&str, &Vec<f64>)| {
        let most = off.iter().copied().fold(0.0, f64::max);
        let within = off.iter().filter(|off| **off <= 5.0).count();
        let middle = median(off).unwrap_or(f64::NAN);
        format!("| {name} | {} | {middle:.1} % | {most:.1} % | {within} |\n", off.len())
    };
    let head =
        "| limit | measured | off its median, median | at most | within 5 % |\n| --- | --- | --- | --- | --- |\n";
    head.to_owned() + &off.iter().map(line).collect::<String>()
}

/// Whether a workload may be bounded by this, and why.
fn verdict(w: &Workload, by: BoundBy) -> (bool, String) {
    let Some(component) = component(by) else { return (false, "UNKNOWN".to_owned()) };
    if w.named_for.is(component) {
        return (true, "ok".to_owned());
    }
    match w.named_for.why(component) {
        Some(_) => (true, format!("its page says why {}", component.phrase())),
        None => (false, "NO REASON".to_owned()),
    }
}

/// The component that a limit belongs to.
fn component(by: BoundBy) -> Option<Component> {
    match by {
        BoundBy::Rate => Some(Component::Rate),
        BoundBy::Client => Some(Component::Client),
        BoundBy::Cpu => Some(Component::Cpu),
        BoundBy::SingleWriter => Some(Component::SingleWriter),
        BoundBy::DeviceBandwidth | BoundBy::LogSync | BoundBy::LogWrite | BoundBy::Replica => Some(Component::Log),
        BoundBy::StorageReads => Some(Component::DeviceReads),
        BoundBy::StorageWrites => Some(Component::DeviceWrites),
        BoundBy::Locks => Some(Component::Locks),
        BoundBy::RoundTrip => Some(Component::RoundTrip),
        BoundBy::ThinkTime | BoundBy::ScriptSleep | BoundBy::Connecting | BoundBy::Unknown => None,
    }
}
