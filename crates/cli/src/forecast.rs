//! `loadline forecast`: what lies beyond the measured jobs of a stored run or of a table of results.

use std::collections::{HashMap, HashSet};
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
    let evaluated = Evaluated::of(&input.title, &input.series, input.remarks, |series| is_of(series, &args.workload));
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
        Forecasted::of(&input.title, &input.series, input.remarks, questions, |series| is_of(series, &args.workload));
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
    let (mut found, mut remarks, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for table in &tables {
        let sheet = Sheet::new(table, &mapping);
        let row = |row: Option<usize>| row.map_or_else(String::new, |row| format!("row {}: ", row + 1));
        let said = table.remarks.iter().chain(&sheet.remarks).map(|r| format!("{}{}", row(r.row), r.reason));
        remarks.extend(said);
        match columns_missing(&sheet) {
            Some(what) => missing.push(format!("{}: {what}", table.name)),
            None => found.extend(of_sheet(&sheet, &mut remarks)?),
        }
    }
    if found.is_empty() && !missing.is_empty() {
        remarks.iter().for_each(|remark| output::say(&format!("note: {remark}")));
        return Err(Failure::usage(missing.join("\n")));
    }
    remarks.extend(missing);
    Ok(Input { title, series: found, remarks })
}

/// What a table lacks to be forecast.
fn columns_missing(sheet: &Sheet<'_>) -> Option<String> {
    let jobs = (!sheet.has("jobs")).then_some("jobs");
    let tps = sheet.throughput().is_none().then_some("commit_throughput_tps");
    let missing: Vec<&str> = jobs.into_iter().chain(tps).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "it has no column {}; its columns are {}. Say which is which with --columns 'HEADER=ID,…', such as --columns 'clients=jobs'",
            missing.join(" and no column "),
            sheet.table.headers.join(", ")
        )
    })
}

fn of_sheet(sheet: &Sheet<'_>, remarks: &mut Vec<String>) -> Result<Vec<Series>, Failure> {
    let throughput = sheet.throughput().unwrap_or("commit_throughput_tps");
    let (mut found, mut single) = (Vec::new(), Vec::new());
    for (label, rows) in groups(sheet) {
        let first = rows.first().copied().unwrap_or(0);
        let (platform, workload) = (sheet.text("platform", first), sheet.text("workload", first));
        let (label, workload) = names(&label, platform, workload, &sheet.table.name);
        let label = label.as_str();
        let mut points: Vec<Point> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut out = LeftOut::default();
        for row in &rows {
            if matches!(sheet.text("valid", *row), "false" | "no" | "0") {
                out.add("left out: the test is invalid", *row);
                continue;
            }
            let Some(point) = point_of(sheet, throughput, *row, label)? else {
                out.add("left out: jobs or throughput are missing", *row);
                continue;
            };
            if !seen.insert(format!("{point:?}")) {
                out.add("there twice: it counts once", *row);
                continue;
            }
            points.push(point);
        }
        out.say(label, remarks);
        remarks.extend(impossible(sheet, label, &rows, &points));
        let mut jobs: Vec<f64> = points.iter().map(|p| p.jobs).collect();
        jobs.sort_by(f64::total_cmp);
        let repeated = jobs.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
        let repeated: Vec<String> = repeated.map(|same| same[0].to_string()).collect();
        if !repeated.is_empty() {
            remarks.push(format!("{label} has several rows with {} jobs: their median counts", repeated.join(", ")));
        }
        match points.first() {
            Some(first) if points.iter().all(|p| p.jobs == first.jobs) => {
                single.push(format!("{label} ({} jobs)", first.jobs));
            }
            Some(_) => {
                found.push(Series::new(platform, &workload, &points).map_err(|e| Failure::usage(e.to_string()))?)
            }
            None => {}
        }
    }
    if !single.is_empty() {
        let (few, is) = few(&single);
        remarks.push(format!("{few} {is} left out, with a single job count: a forecast needs 2, better 4"));
    }
    Ok(found)
}

/// The first of many names, and the verb that goes with them.
fn few(names: &[String]) -> (String, &'static str) {
    const NAMED: usize = 5;
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let is = if names.len() == 1 { "is" } else { "are" };
    (format!("{}{more}", names[..names.len().min(NAMED)].join(", ")), is)
}

/// Rows that are not used, by why: the first of many are named.
#[derive(Default)]
struct LeftOut(Vec<(&'static str, Vec<String>)>);

impl LeftOut {
    fn add(&mut self, why: &'static str, row: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, rows)) => rows.push((row + 1).to_string()),
            None => self.0.push((why, vec![(row + 1).to_string()])),
        }
    }

    fn say(self, label: &str, remarks: &mut Vec<String>) {
        for (why, rows) in self.0 {
            let (named, is) = few(&rows);
            let row = if rows.len() == 1 { "row" } else { "rows" };
            remarks.push(format!("{row} {named} of {label} {is} {why}"));
        }
    }
}

/// What a series is called in messages, and its workload with what distinguishes it from others of the platform. `label` names what
/// is not the same in the whole table, which may be neither.
fn names(label: &str, platform: &str, workload: &str, table: &str) -> (String, String) {
    let words: Vec<&str> = label.split(' ').collect();
    let of = |name: &str| words.windows(name.split(' ').count()).any(|w| w.join(" ") == name);
    let own = if of(platform) { label.replacen(platform, "", 1) } else { label.to_owned() };
    let own = if of(workload) { own } else { format!("{workload} {own}") };
    let own = own.trim();
    let label = if label.is_empty() { own } else { label };
    match (label.is_empty(), own.is_empty()) {
        (true, _) => (table.to_owned(), table.to_owned()),
        (false, true) => (label.to_owned(), String::new()),
        (false, false) => (label.to_owned(), own.to_owned()),
    }
}

/// What no platform can do, in words: more CPU than there is, or more transactions at a time than jobs (Little's law).
fn impossible(sheet: &Sheet<'_>, label: &str, rows: &[usize], points: &[Point]) -> Vec<String> {
    /// Ramp-up and rounding bring averages apart by so much.
    const APART: f64 = 1.1;
    let cpu = rows.iter().find_map(|row| sheet.value("cpu_busy_pct", *row).filter(|pct| *pct > 100.0));
    let cpu = cpu.map(|pct| format!("{label}: cpu_busy_pct is {pct}, and 100 is all CPUs: such figures are left out"));
    let little = points.iter().find(|p| p.latency_ms.is_some_and(|ms| p.tps * ms / 1e3 > p.jobs * APART));
    let little = little.map(|p| {
        format!(
            "{label}: with {} jobs tps × latency is more than jobs, which cannot be; `loadline audit` says more",
            p.jobs
        )
    });
    cpu.into_iter().chain(little).collect()
}

/// Labels and rows of the series; repetitions of a test belong together.
fn groups(sheet: &Sheet<'_>) -> Vec<(String, Vec<usize>)> {
    let mut out: Vec<(String, Vec<usize>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for series in sheet.series() {
        let first = series.rows.first().copied().unwrap_or(0);
        let header =
            sheet.column("repetition").and_then(|c| sheet.table.headers.get(c.index)).map_or("", String::as_str);
        let repetition = format!("{header} {}", sheet.text("repetition", first));
        let label =
            if header.is_empty() { series.label } else { series.label.replace(&repetition, "").trim().to_owned() };
        match known.get(&label) {
            Some(at) => out[*at].1.extend(series.rows),
            None => {
                known.insert(label.clone(), out.len());
                out.push((label, series.rows));
            }
        }
    }
    out
}

/// The figures of a row; `None` without jobs or throughput.
fn point_of(sheet: &Sheet<'_>, throughput: &str, row: usize, label: &str) -> Result<Option<Point>, Failure> {
    for id in ["jobs", throughput] {
        let bound = sheet.column(id);
        let cell = bound.map_or("", |c| sheet.table.cell(row, c.index));
        let broken = bound.is_some_and(|c| c.broken.contains(&row) || c.unread.contains(&row));
        if broken || sheet.value(id, row).is_some_and(|v| !v.is_finite() || v <= 0.0) {
            return Err(Failure::usage(format!(
                "row {} of {label}: {id} is '{cell}'; a number above 0 is needed",
                row + 1
            )));
        }
    }
    // Other figures that are no positive number are missing ones.
    let value = |id: &str| sheet.value(id, row).filter(|v| v.is_finite() && *v > 0.0);
    let (Some(jobs), Some(tps)) = (value("jobs"), value(throughput)) else { return Ok(None) };
    Ok(Some(Point {
        jobs,
        tps,
        latency_ms: value("commit_latency_ms"),
        away_ms: ["thinking_pct", "connecting_pct"]
            .into_iter()
            .filter_map(value)
            .reduce(|a, b| a + b)
            .map(|pct| pct / 100.0 * jobs / tps * 1e3),
        p99_ms: value("transaction_time_ns_p99").map(|ns| ns / 1e6),
        sync_ms: value("log_file_sync_ms"),
        redo_kib: value("redo_kib_per_tx").or_else(|| Some(value("redo_mib_per_s")? * 1024.0 / tps)),
        cpu_pct: value("cpu_busy_pct").filter(|pct| *pct <= 100.0),
    }))
}

/// Whether a series is of one of the `workloads`; of any if none is named.
fn is_of(series: &Series, workloads: &[String]) -> bool {
    let mut words = series.workload.split([' ', ',']);
    workloads.is_empty() || words.any(|word| workloads.iter().any(|w| w == word))
}
