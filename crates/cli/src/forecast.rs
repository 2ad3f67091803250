//! `loadline forecast`: what lies beyond the measured jobs of a stored run or of a table of results.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_analyze::audit::{Mapping, Sheet, table};
use loadline_analyze::forecast::{Figure, Point, Series, of_run as of_run_tests};
use loadline_report::{Evaluated, Forecasted, Questions};
use loadline_store::StoredRun;

use crate::args::ForecastArgs;
use crate::exit::{self, Failure};
use crate::output;
use crate::source;
use crate::target::run_folder;

/// Series and what was left out or assumed, in words.
struct Input {
    title: String,
    series: Vec<Series>,
    remarks: Vec<String>,
}

pub(crate) fn forecast(args: &ForecastArgs) -> Result<u8, Failure> {
    let input = match source::text(&args.input)? {
        Some((text, name)) => of_text(&text, name, args)?,
        None => of_path(args)?,
    };
    input.remarks.iter().for_each(|remark| output::say(&format!("note: {remark}")));
    if input.series.is_empty() {
        return Err(Failure::usage(format!("{}: there is no series in it with 2 job counts or more", input.title)));
    }
    let of_none = |w: &&String| !input.series.iter().any(|s| is_of(s, std::slice::from_ref(w)));
    if let Some(unknown) = args.workload.iter().find(of_none) {
        let mut names: Vec<&str> = input.series.iter().map(|s| s.workload.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Failure::usage(format!(
            "--workload {unknown}: there is no series of it; there are {}",
            names.join("; ")
        )));
    }
    if args.evaluate { evaluate(args, input) } else { answer(args, input) }
}

/// A run or a file.
fn of_path(args: &ForecastArgs) -> Result<Input, Failure> {
    let path = run_folder(&args.input, &args.results);
    if path.is_dir() {
        return of_run(&path, args);
    }
    of_text(&source::text_of_file(&path)?, path.display().to_string(), args)
}

fn evaluate(args: &ForecastArgs, input: Input) -> Result<u8, Failure> {
    let evaluated = Evaluated::new(&input.title, &input.series, input.remarks, |series| is_of(series, &args.workload));
    if evaluated.series() == 0 {
        let most = input.series.iter().map(|s| s.points.len()).max().unwrap_or(0);
        return Err(Failure::usage(format!(
            "{}: the longest series has {most} job counts; to hold some out, 4 are needed",
            input.title
        )));
    }
    write(args, &evaluated.render(args.format).map_err(|e| Failure::failed(e.to_string()))?)
}

fn answer(args: &ForecastArgs, input: Input) -> Result<u8, Failure> {
    let limits = [(Figure::P99Ms, args.p99), (Figure::LatencyMs, args.latency), (Figure::CpuPct, args.cpu)];
    let questions = Questions {
        jobs: args.jobs.iter().flatten().copied().map(f64::from).collect(),
        tps: args.tps,
        limits: limits.into_iter().filter_map(|(figure, limit)| Some((figure, limit?))).collect(),
    };
    let forecasted =
        Forecasted::new(&input.title, &input.series, input.remarks, questions, |series| is_of(series, &args.workload));
    write(args, &forecasted.render(args.format).map_err(|e| Failure::failed(e.to_string()))?)?;
    forecasted.unanswered().iter().for_each(|text| output::say(&format!("note: {text}")));
    let [series, refused] = forecasted.counts();
    if refused > 0 {
        output::say(&format!("of {refused} of {series} series nothing is forecast beyond the measured jobs"));
    }
    Ok(if refused == series { exit::FAILED } else { 0 })
}

fn write(args: &ForecastArgs, text: &str) -> Result<u8, Failure> {
    output::write(&args.output, text.as_bytes())?;
    Ok(0)
}

/// Sweeps of a stored run: valid tests of closed loops.
fn of_run(path: &Path, args: &ForecastArgs) -> Result<Input, Failure> {
    if !args.columns.is_empty() {
        return Err(Failure::usage("--columns is for tables of results; the columns of a run are known"));
    }
    let stored = StoredRun::open(path)?;
    let mut remarks: Vec<String> = stored.warnings.clone();
    if stored.manifest.plan.arms.is_some() {
        return Err(Failure::usage(format!("{} is a run of two arms: a forecast is made from a sweep", stored.id())));
    }
    let (series, more) = of_run_tests(&stored.manifest, &stored.records).map_err(|e| Failure::usage(e.to_string()))?;
    remarks.extend(more);
    Ok(Input { title: stored.id(), series, remarks })
}

/// Series of a table of results in any of the forms that `loadline audit` reads.
fn of_text(text: &str, title: String, args: &ForecastArgs) -> Result<Input, Failure> {
    let bad = |what: String| Failure::usage(format!("{title}: {what}"));
    let tables = table::read(text, &title).map_err(|e| bad(e.to_string()))?;
    let mapping = match args.columns.as_slice() {
        [] => Mapping::default(),
        given => Mapping::parse(&given.join(",")).map_err(|e| bad(e.to_string()))?,
    };
    mapping.check(&tables).map_err(|e| bad(e.to_string()))?;
    let (mut series, mut remarks, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for table in &tables {
        let sheet = Sheet::new(table, &mapping);
        let row = |row: Option<usize>| row.map_or_else(String::new, |row| format!("row {}: ", row + 1));
        let said = table.remarks.iter().chain(&sheet.remarks).map(|r| format!("{}{}", row(r.row), r.reason));
        remarks.extend(said);
        match (sheet.has("jobs"), sheet.throughput()) {
            (true, Some(throughput)) => series.extend(of_sheet(&sheet, throughput, &mut remarks)?),
            (jobs, _) => missing.push(format!(
                "{}: it has no column {}; its columns are {}. Say which is which with --columns 'HEADER=ID,…', such as --columns 'clients=jobs'",
                table.name,
                if jobs { "commit_throughput_tps" } else { "jobs and commit_throughput_tps" },
                table.headers.join(", ")
            )),
        }
    }
    if series.is_empty() && !missing.is_empty() {
        remarks.iter().for_each(|remark| output::say(&format!("note: {remark}")));
        return Err(Failure::usage(missing.join("\n")));
    }
    remarks.extend(missing);
    Ok(Input { title, series, remarks })
}

/// Columns besides the platform whose cells distinguish series.
const KEYS: [&str; 10] =
    ["workload", "target", "driver", "job_load", "arm", "level", "nodes", "rate_tps", "rows_per_tx", "threads"];

fn of_sheet(sheet: &Sheet<'_>, throughput: &str, remarks: &mut Vec<String>) -> Result<Vec<Series>, Failure> {
    let rows = sheet.table.rows();
    let telling = KEYS.map(|id| id == "workload" || (0..rows).any(|row| sheet.text(id, row) != sheet.text(id, 0)));
    let name = |row: usize| {
        let ids = KEYS.into_iter().zip(telling).filter_map(|(id, tells)| tells.then_some(id));
        let cells = ids.map(|id| (id, sheet.text(id, row))).filter(|(_, cell)| !cell.is_empty());
        let name = |(id, cell): (&str, &str)| match sheet.value(id, row) {
            Some(_) => format!("{id} {cell}"),
            None => cell.to_owned(),
        };
        cells.map(name).collect::<Vec<_>>().join(" ")
    };
    let mut series: BTreeMap<(&str, String), Vec<Point>> = BTreeMap::new();
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in 0..rows {
        let why = match point(sheet, throughput, row)? {
            _ if matches!(sheet.text("valid", row), "false" | "no" | "0") => "left out: the test is invalid",
            None => "left out: jobs or throughput are missing",
            Some(point) => {
                let points = series.entry((sheet.text("platform", row), name(row))).or_default();
                if !points.contains(&point) {
                    points.push(point);
                    continue;
                }
                "there twice: it counts once"
            }
        };
        left_out.entry(why).or_default().push((row + 1).to_string());
    }
    remarks.extend(left_out.iter().map(|(why, rows)| format!("row {} is {why}", few(rows))));
    let mut found = Vec::new();
    for ((platform, workload), points) in &series {
        let workload = if platform.is_empty() && workload.is_empty() { &sheet.table.name } else { workload };
        let one = Series::new(platform, workload, points).map_err(|e| Failure::usage(e.to_string()))?;
        if one.points.len() < points.len() {
            remarks.push(format!("{} has several rows of the same jobs: their median counts", one.name()));
        }
        match one.points.as_slice() {
            [_] => remarks
                .push(format!("{} is left out, with a single job count: a forecast needs 2, better 4", one.name())),
            _ => found.push(one),
        }
    }
    Ok(found)
}

/// The first of many names.
fn few(names: &[String]) -> String {
    const NAMED: usize = 5;
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMED].join(", ")),
        _ => names.join(", "),
    }
}

/// The figures of a row; `None` without jobs or throughput.
fn point(sheet: &Sheet<'_>, throughput: &str, row: usize) -> Result<Option<Point>, Failure> {
    for id in ["jobs", throughput] {
        let cell = sheet.text(id, row);
        let value = sheet.value(id, row);
        if value.map_or(!cell.trim().is_empty(), |v| !v.is_finite() || v <= 0.0) {
            return Err(Failure::usage(format!("row {}: {id} is '{cell}'; a number above 0 is needed", row + 1)));
        }
    }
    // Other figures that are no positive number are missing ones.
    let value = |id: &str| sheet.value(id, row).filter(|v| v.is_finite() && *v > 0.0);
    let (Some(jobs), Some(tps)) = (value("jobs"), value(throughput)) else { return Ok(None) };
    Ok(Some(Point {
        latency_ms: value("commit_latency_ms"),
        p99_ms: value("transaction_time_ns_p99").map(|ns| ns / 1e6),
        sync_ms: value("log_file_sync_ms"),
        redo_kib: value("redo_kib_per_tx").or_else(|| Some(value("redo_mib_per_s")? * 1024.0 / tps)),
        cpu_pct: value("cpu_busy_pct").filter(|pct| *pct <= 100.0),
        ..Point::with_away(jobs, tps, ["thinking_pct", "connecting_pct"].map(value))
    }))
}

/// Whether a series is of one of the `workloads`; of any if none is named.
fn is_of(series: &Series, workloads: &[String]) -> bool {
    let mut words = series.workload.split([' ', ',']);
    workloads.is_empty() || words.any(|word| workloads.iter().any(|w| w == word))
}
