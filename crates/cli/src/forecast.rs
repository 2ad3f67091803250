//! `loadline forecast`: what lies beyond the measured jobs of stored runs and published tables.

use std::path::Path;

use loadline_analyze::forecast::{Evaluated, Figure, Question, Series, evaluate, fit, series};
use loadline_model::TestRecord;
use loadline_model::manifest::RunState;
use loadline_report::{Forecasts, ReportError, evaluation_page};
use loadline_store::StoredRun;

use crate::args::ForecastArgs;
use crate::exit::{self, Failure};
use crate::source::PREFIX;
use crate::stored::check_workloads;
use crate::target::run_folder;
use crate::{output, references};

pub(crate) fn forecast(args: &ForecastArgs) -> Result<u8, Failure> {
    let runs = args.inputs.iter().map(|input| read(args, input)).collect::<Result<Vec<_>, _>>()?;
    let beside: Vec<TestRecord> = runs.iter().flat_map(|(_, records, _)| records).cloned().collect();
    let (mut all, mut remarks, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for (input, (state, records, warnings)) in args.inputs.iter().zip(&runs) {
        let input = input.display();
        let run = records.first().map(|r| &r.run);
        if run.is_some() && known.contains(&run) {
            return Err(Failure::usage(format!("{input} is the run of another input once more: name it once")));
        }
        known.push(run);
        let (series, more) = series(*state, records, &beside);
        all.extend(series);
        let of = if runs.len() > 1 { format!("{input}: ") } else { String::new() };
        remarks.extend(warnings.iter().chain(&more).map(|remark| format!("{of}{remark}")));
    }
    let wanted = |s: &Series| args.workload.is_empty() || args.workload.contains(&s.workload);
    if args.evaluate {
        let short = all.iter().filter(|s| s.points.len() < 4 && wanted(s));
        remarks.extend(short.map(|s| format!("{} is left out: it has fewer than 4 points", s.name())));
    }
    let title = args.inputs.iter().map(|input| input.display().to_string()).collect::<Vec<_>>().join(", ");
    remarks.iter().for_each(|remark| output::say(&format!("note: {remark}")));
    if all.is_empty() {
        return Err(Failure::usage(format!("{title}: there is no series in it with 2 job counts or more")));
    }
    check_workloads(&args.workload, all.iter().map(|s| s.workload.as_str()))?;
    if args.evaluate {
        let found: Vec<Evaluated> = evaluate(&all).into_iter().filter(|s| wanted(&s.fitted.series)).collect();
        if found.is_empty() {
            return Err(Failure::usage(format!("{title}: no series has 4 job counts, so none can be held out")));
        }
        return write(args, evaluation_page(&title, &found, remarks, args.format));
    }
    let limits = [(Figure::P99Ms, args.p99), (Figure::LatencyMs, args.latency), (Figure::CpuPct, args.cpu)];
    let limits = limits.into_iter().filter_map(|(figure, limit)| Some(Question::Exceeds(figure, limit?)));
    let forecasts = Forecasts {
        title,
        remarks,
        fitted: fit(&all).into_iter().filter(|f| wanted(&f.series)).collect(),
        jobs: args.jobs.iter().flatten().copied().map(f64::from).collect(),
        questions: args.tps.map(Question::Reaches).into_iter().chain(limits).collect(),
    };
    write(args, forecasts.render(args.format))?;
    for (f, question) in forecasts.fitted.iter().flat_map(|f| forecasts.questions.iter().map(move |q| (f, q))) {
        if f.ask(*question).is_none() {
            let (name, figure) = (f.series.name(), question.figure().title());
            output::say(&format!("note: {name} has no {figure}, so nothing is said of it"));
        }
    }
    let (shown, refused) = (forecasts.fitted.len(), forecasts.fitted.iter().filter(|f| f.refused.is_some()).count());
    if refused > 0 {
        output::say(&format!("of {refused} of {shown} series nothing is forecast beyond the measured jobs"));
    }
    Ok(if refused == shown { exit::FAILED } else { 0 })
}

fn write(args: &ForecastArgs, text: Result<String, ReportError>) -> Result<u8, Failure> {
    output::write(&args.output, text.map_err(|e| Failure::failed(e.to_string()))?.as_bytes())?;
    Ok(0)
}

/// State, tests and warnings of a run or a published table.
fn read(args: &ForecastArgs, input: &Path) -> Result<(RunState, Vec<TestRecord>, Vec<String>), Failure> {
    let name = input.to_string_lossy();
    if name.starts_with(PREFIX) {
        let run = references::named(&name)?;
        return Ok((run.manifest.state, run.records, run.warnings));
    }
    if name == "-" || input.is_file() {
        return Err(Failure::usage(format!(
            "'{name}' is no run: forecasts are made from runs; `loadline import` makes one of a tool's report, and `loadline audit` \
             checks a table"
        )));
    }
    let stored = StoredRun::open(&run_folder(input, &args.results))?;
    if stored.manifest.plan.arms.is_some() {
        return Err(Failure::usage(format!("{} is a run of two arms: a forecast is made from a sweep", stored.id())));
    }
    Ok((stored.manifest.state, stored.records, stored.warnings))
}
