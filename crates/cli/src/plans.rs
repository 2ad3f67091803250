//! `loadline plans`: the plans that come with loadline.

use loadline_model::plan::Jobs;
use loadline_report::Format;
use loadline_run::plans::{NamedPlan, PLANS};
use loadline_run::{PlanSpec, make_plan};

use crate::args::PlansArgs;
use crate::exit::Failure;
use crate::listing::Listing;
use crate::output;

pub(crate) fn plans(args: &PlansArgs) -> Result<u8, Failure> {
    let file = &args.list.output;
    if args.name.is_some() && file.is_file() {
        // It may be a copy that was changed.
        let shown = file.display();
        return Err(Failure::usage(format!("'{shown}' exists: name another file with --output, or remove it first")));
    }
    match (args.name, args.list.format) {
        (Some(plan), Format::Text | Format::Markdown) => output::write(file, plan.text.as_bytes())?,
        (Some(plan), _) => list(&[*plan], in_full)?.write(&args.list)?,
        // Forty codes make no line that a terminal shows.
        (None, Format::Text) => list(PLANS, |codes| codes.len().to_string())?.write(&args.list)?,
        (None, _) => list(PLANS, in_full)?.write(&args.list)?,
    }
    Ok(0)
}

fn in_full(codes: &[&str]) -> String {
    codes.join(" ")
}

fn list(plans: &[NamedPlan], shown: fn(&[&str]) -> String) -> Result<Listing, Failure> {
    Ok(Listing {
        columns: vec!["plan", "summary", "workloads", "jobs", "duration_s", "warmup_s", "repeat"],
        rows: plans.iter().map(|plan| row(plan, shown)).collect::<Result<_, _>>()?,
    })
}

/// A target that has what every workload needs. It is not opened.
const ABLE: &str = "postgres-temp:";

/// What a plan asks for, whatever the target: what does not fit one is skipped there.
fn row(named: &NamedPlan, shown: fn(&[&str]) -> String) -> Result<Vec<String>, Failure> {
    let spec = PlanSpec { target: Some(ABLE.to_owned()), ..named.spec()? };
    let plan = make_plan(&spec).map_err(|e| Failure::usage(format!("plan '{}': {e}", named.name)))?;
    let wanted = plan.workloads.iter().map(|w| w.code.as_str()).chain(plan.skipped.iter().map(|s| s.code.as_str()));
    let jobs = match &plan.jobs {
        Jobs::Auto { .. } => "auto".to_owned(),
        Jobs::List(list) => list.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    };
    Ok(vec![
        named.name.to_owned(),
        named.summary(),
        shown(&wanted.collect::<Vec<_>>()),
        jobs,
        plan.duration_s.to_string(),
        plan.warmup_s.to_string(),
        plan.repeat.to_string(),
    ])
}
