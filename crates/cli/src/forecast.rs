//! `loadline forecast`: what lies beyond the measured jobs of stored runs and published tables.

use std::path::Path;

use loadline_analyze::forecast::{Evaluated, Figure, Fitted, Question, Series, evaluate, fit, series};
use loadline_model::TestRecord;
use loadline_model::manifest::RunState;
use loadline_report::{Forecasts, evaluation_page};
use loadline_store::StoredRun;

use crate::args::ForecastArgs;
use crate::exit::{self, Failure};
use crate::source::{PREFIX, check_workloads};
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
        remarks.extend(warnings.iter().chain(&more).map(|remark| format!("{input}: {remark}")));
    }
    let title = args.inputs.iter().map(|input| input.display().to_string()).collect::<Vec<_>>().join(", ");
    remarks.iter().for_each(|remark| output::say(&format!("note: {remark}")));
    if all.is_empty() {
        return Err(Failure::usage(format!("{title}: there is no series in it with 2 job counts or more")));
    }
    check_workloads(&args.workload, all.iter().map(|s| s.workload.as_str()))?;
    let wanted = |s: &Series| args.workload.is_empty() || args.workload.contains(&s.workload);
    let (page, refused, shown) = if args.evaluate {
        let found: Vec<Evaluated> = evaluate(&all).into_iter().filter(|s| wanted(&s.fitted.series)).collect();
        if found.is_empty() {
            return Err(Failure::usage(format!("{title}: no series has 4 job counts, so none can be held out")));
        }
        (evaluation_page(&title, &found, remarks, args.list.format), 0, found.len())
    } else {
        let figures = [Figure::Tps, Figure::P99Ms, Figure::LatencyMs, Figure::CpuPct];
        let limits = figures.into_iter().zip([args.tps, args.p99, args.latency, args.cpu]);
        let questions = limits.filter_map(|(figure, limit)| Some(Question { figure, limit: limit? })).collect();
        let fitted: Vec<Fitted> = fit(&all).into_iter().filter(|f| wanted(&f.series)).collect();
        let (refused, shown) = (fitted.iter().filter(|f| f.refused.is_some()).count(), fitted.len());
        let jobs = args.jobs.iter().flatten().copied().map(f64::from).collect();
        (Forecasts { title, remarks, fitted, jobs, questions }.render(args.list.format), refused, shown)
    };
    output::write(&args.list.output, page.map_err(|e| Failure::failed(e.to_string()))?.as_bytes())?;
    if refused > 0 {
        output::say(&format!("of {refused} of {shown} series nothing is forecast beyond the measured jobs"));
    }
    Ok(if refused == shown { exit::FAILED } else { 0 })
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
    if stored.manifest.plan.arms().is_some() {
        return Err(Failure::usage(format!("{} is a run of two arms: a forecast is made from a sweep", stored.id())));
    }
    Ok((stored.manifest.state, stored.records, stored.warnings))
}
