//! What forecasts of a table's own upper half are off by, for people and scripts.

use loadline_analyze::forecast::{Evaluated, HeldOut, Overall, overall};
use minijinja::context;
use serde_json::{Value, json};

use super::refusal;
use crate::csv;
use crate::doc::{Block, Document, Head, Row, Section, Table};
use crate::templates::prose;
use crate::{Format, ReportError};

/// The evaluation `series` of a table or a run, `title`, in `format`; `remarks` are what was left out or assumed. There is a row per
/// series and one of all, in which series whose forecast is refused do not count.
///
/// # Errors
/// A value that cannot be written as JSON.
pub fn evaluation_page(
    title: &str,
    series: &[Evaluated],
    mut remarks: Vec<String>,
    format: Format,
) -> Result<String, ReportError> {
    let columns = ["series", "model", "held_out", "mean_abs_error_pct", "coverage_pct", "refused"];
    let cells = |name: &str, model: &str, all: Option<Overall>, refused: usize| {
        let number = |value: fn(Overall) -> f64| all.map_or(Value::Null, |all| json!((value(all) * 1e3).round() / 1e3));
        let held_out = json!(all.map_or(0, |o| o.held_out));
        let [error, covered] = [number(|o| o.mean_abs_error_pct), number(|o| o.coverage_pct)];
        [json!(name), json!(model), held_out, error, covered, json!(refused)]
    };
    let one = |s: &Evaluated| {
        cells(&s.fitted.series.name, s.fitted.kind.id(), overall([s]), usize::from(s.fitted.refused.is_some()))
    };
    let (refused, used): (Vec<&Evaluated>, Vec<&Evaluated>) = series.iter().partition(|s| s.fitted.refused.is_some());
    let all = cells("all", "", overall(used.iter().copied()), refused.len());
    let rows: Vec<_> = series.iter().map(one).chain([all]).collect();
    if !refused.is_empty() {
        remarks.push(format!("With the {} series that are refused: {}", refused.len(), said(overall(series))));
    }
    csv::written(format, columns, &rows, || {
        let error = |h: &HeldOut| format!("{:.0}: {:+.1} ±{:.1}", h.point.jobs, h.error_pct(), h.half_width_pct());
        let remarked = rows.iter().zip(series).map(|(row, s)| Row {
            remark: s.fitted.refused.map_or_else(String::new, refusal),
            first: true,
            ..Row::of(row.iter().map(csv::cell).chain([s.held_out.iter().map(error).collect::<Vec<_>>().join("; ")]))
        });
        let head = columns.iter().chain(&["jobs: error ± half of the interval, %"]).map(|title| Head::text(title));
        Document {
            title: format!("Forecasts of {title} held against its own upper half"),
            subtitle: prose("evaluation", ()),
            verdict: said(overall(used)),
            all_well: refused.is_empty(),
            remarks,
            sections: vec![Section::of("series", "Series", vec![Block::Table(Table::of("facts", head, remarked))])],
            ..Document::default()
        }
    })
}

fn said(all: Option<Overall>) -> String {
    let of = |of: fn(Overall) -> f64| all.map(of);
    let (error, covered, half) = (of(|o| o.mean_abs_error_pct), of(|o| o.coverage_pct), of(|o| o.half_width_pct));
    prose("evaluated", context! { held_out => all.map(|o| o.held_out), error, covered, half })
}
