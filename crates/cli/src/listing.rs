//! Listings: what there is of columns, checks, targets and plans, each as a small table in four formats.

use loadline_database::TARGETS;
use loadline_model::CheckId;
use loadline_model::column::{COLUMNS, TABLES};
use loadline_model::plan::Jobs;
use loadline_report::Format;
use loadline_run::plans::{NamedPlan, PLANS};
use loadline_run::{PlanSpec, make_plan};
use serde_json::Value;

use crate::args::{ListArgs, PlansArgs};
use crate::exit::Failure;
use crate::output;

/// Writes a table as asked; gives the exit code. `rows` may have more cells than there are columns.
pub(crate) fn write(args: &ListArgs, columns: &[&'static str], rows: Vec<Vec<String>>) -> Result<u8, Failure> {
    write_with(args, columns, rows, &[])
}

/// Writes a table of which some columns are numbers in JSON; elsewhere they stand as they were written.
pub(crate) fn write_with(
    args: &ListArgs,
    columns: &[&'static str],
    rows: Vec<Vec<String>>,
    numbers: &[&str],
) -> Result<u8, Failure> {
    let as_json = matches!(args.format, Format::Json | Format::Html);
    let value = |(column, text): (&&str, String)| match as_json && numbers.contains(column) {
        true if text.is_empty() => Value::Null,
        true => number(&text).unwrap_or(Value::String(text)),
        false => Value::String(text),
    };
    let rows = rows.into_iter().map(|row| columns.iter().zip(row).map(value).collect()).collect();
    let listing = loadline_report::Listing { columns: columns.to_vec(), rows };
    let text = listing.render(args.format).map_err(|e| Failure::failed(e.to_string()))?;
    output::write(&args.output, text.as_bytes())?;
    Ok(0)
}

/// A number as one, a whole number without a fraction.
fn number(text: &str) -> Option<Value> {
    text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from)).ok()
}

pub(crate) fn columns(args: &ListArgs) -> Result<u8, Failure> {
    let shown = |c| TABLES.iter().filter(|t| t.shown().contains(c)).map(|t| t.group).collect::<Vec<_>>().join(" ");
    let rows = COLUMNS.iter().map(|c| {
        let sources = c.sources.iter().map(|(kind, text)| match *kind {
            "*" => (*text).to_owned(),
            kind => format!("{kind}: {text}"),
        });
        let sources = sources.collect::<Vec<_>>().join("; ");
        vec![c.id.to_owned(), c.heading(), shown(c), c.meaning.to_owned(), sources]
    });
    write(args, &["id", "title", "shown_in_table_of", "meaning", "source"], rows.collect())
}

pub(crate) fn checks(args: &ListArgs) -> Result<u8, Failure> {
    let rows = CheckId::ALL.iter().map(|check| vec![check.to_string(), check.must().to_owned()]);
    write(args, &["check", "what_must_hold"], rows.collect())
}

pub(crate) fn targets(args: &ListArgs) -> Result<u8, Failure> {
    let rows = TARGETS
        .iter()
        .flat_map(|k| k.url_forms.iter().map(|[form, meaning]| vec![form.clone(), k.product.clone(), meaning.clone()]));
    write(args, &["url", "database", "meaning"], rows.collect())
}

/// `loadline plans`: the plans that come with loadline.
pub(crate) fn plans(args: &PlansArgs) -> Result<u8, Failure> {
    let file = &args.list.output;
    if args.name.is_some() && file.is_file() {
        // It may be a copy that was changed.
        let shown = file.display();
        return Err(Failure::usage(format!("'{shown}' exists: name another file with --output, or remove it first")));
    }
    match (args.name, args.list.format) {
        (Some(plan), Format::Text | Format::Markdown) => output::write(file, plan.text.as_bytes()).map(|()| 0),
        (Some(plan), _) => list(&args.list, &[*plan], in_full),
        // Forty codes make no line that a terminal shows.
        (None, Format::Text) => list(&args.list, PLANS, |codes| codes.len().to_string()),
        (None, _) => list(&args.list, PLANS, in_full),
    }
}

fn in_full(codes: &[&str]) -> String {
    codes.join(" ")
}

fn list(args: &ListArgs, plans: &[NamedPlan], shown: fn(&[&str]) -> String) -> Result<u8, Failure> {
    let rows = plans.iter().map(|plan| plan_row(plan, shown)).collect::<Result<_, _>>()?;
    write(args, &["plan", "summary", "workloads", "jobs", "duration_s", "warmup_s", "repeat"], rows)
}

/// A target that has what every workload needs. It is not opened.
const ABLE: &str = "postgres-temp:";

/// Workloads of a plan, whatever the target: those that do not fit one are skipped there.
fn plan_row(named: &NamedPlan, shown: fn(&[&str]) -> String) -> Result<Vec<String>, Failure> {
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
