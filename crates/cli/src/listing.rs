//! Listings: one small table, four formats.

use loadline_database::TARGETS;
use loadline_model::CheckId;
use loadline_model::column::{COLUMNS, TABLES};
use loadline_model::format::csv_line;
use loadline_model::plan::Jobs;
use loadline_report::Format;
use loadline_run::plans::{NamedPlan, PLANS};
use loadline_run::{PlanSpec, make_plan};
use serde_json::{Map, Value};

use crate::args::{ListArgs, PlansArgs};
use crate::exit::Failure;
use crate::output;

/// Text in a cell of a Markdown table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Rows with their cells below each other, numbers aligned `right`.
pub(crate) fn aligned(rows: &[Vec<String>], right: bool) -> impl Iterator<Item = String> {
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    rows.iter().map(move |row| {
        let cells = row.iter().zip(&widths).map(|(c, w)| if right { format!("{c:>w$}") } else { format!("{c:<w$}") });
        cells.collect::<Vec<_>>().join("  ")
    })
}

/// A table of text.
pub(crate) struct Listing {
    /// Ids of the columns.
    pub(crate) columns: Vec<&'static str>,
    /// Rows.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Listing {
    /// Writes it as asked; gives the exit code.
    pub(crate) fn write(&self, args: &ListArgs) -> Result<u8, Failure> {
        self.write_with(args, &[])
    }

    /// The same with columns that are numbers in JSON.
    pub(crate) fn write_with(&self, args: &ListArgs, numbers: &[&str]) -> Result<u8, Failure> {
        let text = match args.format {
            Format::Text => self.text(),
            Format::Markdown => self.markdown(),
            Format::Csv => self.csv(),
            Format::Json | Format::Html => self.json(numbers),
        };
        output::write(&args.output, text.as_bytes())?;
        Ok(0)
    }

    fn text(&self) -> String {
        let head = self.columns.iter().map(|c| c.replace('_', " ")).collect();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(self.rows.iter().cloned()).collect();
        aligned(&rows, false).map(|row| format!("{}\n", row.trim_end())).collect()
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(self.columns.iter().map(|c| c.replace('_', " ")).collect());
        out.push_str(&line(vec!["---".to_owned(); self.columns.len()]));
        for row in &self.rows {
            out.push_str(&line(row.iter().map(|c| cell(c)).collect()));
        }
        out
    }

    pub(crate) fn csv(&self) -> String {
        csv_line(&self.columns) + &self.rows.iter().map(csv_line).collect::<String>()
    }

    fn json(&self, numbers: &[&str]) -> String {
        let value = |column: &str, text: &String| match numbers.contains(&column) {
            true if text.is_empty() => Value::Null,
            true => text.parse::<f64>().map_or_else(|_| Value::String(text.clone()), |n| number(n, text)),
            false => Value::String(text.clone()),
        };
        let object = |row: &Vec<String>| {
            let pairs = self.columns.iter().zip(row).map(|(c, v)| ((*c).to_owned(), value(c, v)));
            Value::Object(pairs.collect::<Map<String, Value>>())
        };
        format!("{:#}\n", Value::Array(self.rows.iter().map(object).collect()))
    }
}

/// A whole number as one.
fn number(value: f64, text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(value), Value::from)
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
    Listing { columns: vec!["id", "title", "shown_in_table_of", "meaning", "source"], rows: rows.collect() }.write(args)
}

pub(crate) fn checks(args: &ListArgs) -> Result<u8, Failure> {
    let rows = CheckId::ALL.iter().map(|check| vec![check.to_string(), check.must().to_owned()]);
    Listing { columns: vec!["check", "what_must_hold"], rows: rows.collect() }.write(args)
}

pub(crate) fn targets(args: &ListArgs) -> Result<u8, Failure> {
    let rows = TARGETS.iter().flat_map(|k| {
        k.url_forms.iter().map(|(form, meaning)| vec![(*form).to_owned(), k.product.to_owned(), (*meaning).to_owned()])
    });
    Listing { columns: vec!["url", "database", "meaning"], rows: rows.collect() }.write(args)
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
        (Some(plan), _) => list_of(&[*plan], in_full)?.write(&args.list),
        // Forty codes make no line that a terminal shows.
        (None, Format::Text) => list_of(PLANS, |codes| codes.len().to_string())?.write(&args.list),
        (None, _) => list_of(PLANS, in_full)?.write(&args.list),
    }
}

fn in_full(codes: &[&str]) -> String {
    codes.join(" ")
}

fn list_of(plans: &[NamedPlan], shown: fn(&[&str]) -> String) -> Result<Listing, Failure> {
    Ok(Listing {
        columns: vec!["plan", "summary", "workloads", "jobs", "duration_s", "warmup_s", "repeat"],
        rows: plans.iter().map(|plan| plan_row(plan, shown)).collect::<Result<_, _>>()?,
    })
}

/// A target that has what every workload needs. It is not opened.
const ABLE: &str = "postgres-temp:";

/// What a plan asks for, whatever the target: what does not fit one is skipped there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_keeps_every_cell() {
        let list = Listing { columns: vec!["a", "b_c"], rows: vec![vec!["x, \"y\"".into(), "1|2".into()]] };
        assert_eq!(list.csv(), "a,b_c\n\"x, \"\"y\"\"\",1|2\n");
        assert_eq!(list.markdown(), "| a | b c |\n| --- | --- |\n| x, \"y\" | 1\\|2 |\n");
        assert_eq!(list.text(), "a       b c\nx, \"y\"  1|2\n");
        let json: Value = serde_json::from_str(&list.json(&[])).unwrap();
        assert_eq!(json[0]["b_c"], "1|2");
    }
}
