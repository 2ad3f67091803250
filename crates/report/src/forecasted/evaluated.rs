//! What forecasts of a table's own upper half are off by, for people and scripts.

use loadline_analyze::forecast::{Evaluated, HeldOut, Kind, Overall, error_by};
use serde_json::{Value, json};

use crate::content::count;
use crate::csv;
use crate::doc::{Block, Document, Head, Row, Section, Table};
use crate::{Format, ReportError};

/// The evaluation `series` of a table or a run, `title`, in `format`; `remarks` are what was left out or assumed. CSV and JSON have a
/// row per series and one of all, in which series whose forecast is refused do not count.
///
/// # Errors
/// A value that cannot be written as JSON.
pub fn evaluation_page(
    title: &str,
    series: &[Evaluated],
    remarks: Vec<String>,
    format: Format,
) -> Result<String, ReportError> {
    let columns = ["series", "model", "held_out", "mean_abs_error_pct", "coverage_pct", "refused"];
    let cells = |name: &str, model: &str, all: Option<Overall>, refused: usize| {
        let number = |value: fn(Overall) -> f64| all.map_or(Value::Null, |all| json!((value(all) * 1e3).round() / 1e3));
        let held_out = json!(all.map_or(0, |o| o.held_out));
        let [error, covered] = [number(|o| o.mean_abs_error_pct), number(|o| o.coverage_pct)];
        [json!(name), json!(model), held_out, error, covered, json!(refused)]
    };
    let (refused, used): (Vec<&Evaluated>, Vec<&Evaluated>) = series.iter().partition(|s| s.fitted.refused.is_some());
    let overall = Overall::over(used);
    let one = |s: &Evaluated| {
        let refused = usize::from(s.fitted.refused.is_some());
        cells(&s.fitted.series.name(), s.fitted.kind.id(), Overall::over([s]), refused)
    };
    let rows: Vec<_> = series.iter().map(one).chain([cells("all", "", overall, refused.len())]).collect();
    csv::written(format, columns, &rows, || {
        let mut remarks = remarks;
        if !refused.is_empty() {
            let (not, with) = (count(refused.len(), "series", "series"), said(Overall::over(series)));
            remarks.push(format!("Refused, and not counted in that: {not}. With them: {with}"));
        }
        let error = |h: &HeldOut| format!("{:.0}: {:+.1} ±{:.1}", h.jobs, h.error_pct(), h.half_width_pct());
        let remarked = rows.iter().zip(series).map(|(row, s)| Row {
            remark: s.fitted.refused.map_or_else(String::new, |why| why.to_string()),
            first: true,
            ..Row::of(row.iter().map(csv::cell).chain([s.held_out.iter().map(error).collect::<Vec<_>>().join("; ")]))
        });
        let head = [
            Head::text("Series"),
            Head::text("Model"),
            Head::number("Held out", ""),
            Head::number("Mean error", "%"),
            Head::number("Coverage", "%"),
            Head::number("Refused", ""),
            Head::text("Jobs: error ± half of the interval, %"),
        ];
        let models = [Kind::Closed, Kind::Usl].into_iter().filter_map(|model| Some((model, error_by(model, series)?)));
        let models =
            models.map(|(model, off)| format!("The {} for all series would be {off:.1} % off.", model.title()));
        let blocks = vec![Block::Table(Table::of("facts", head, remarked)), Block::List { items: models.collect() }];
        Document {
            title: format!("Forecasts of {title} held against its own upper half"),
            subtitle: "Of each series, the lower half of its job counts (the larger one if their number is odd, at least 3) is fitted, \
                       and the upper half is forecast. Nothing held out takes part in a fit, in the choice of a model or in an interval."
                .to_owned(),
            verdict: said(overall),
            all_well: refused.is_empty(),
            remarks,
            sections: vec![Section::of("series", "Series", blocks)],
            ..Document::default()
        }
    })
}

fn said(all: Option<Overall>) -> String {
    let Some(all) = all else { return "No series could be evaluated.".to_owned() };
    format!(
        "Mean error of tps {:.1} % over {} held-out points, median series {:.1} %; the 90 % intervals hold {:.0} % of them, with a mean \
         half-width of {:.1} %.",
        all.mean_abs_error_pct, all.held_out, all.median_series_pct, all.coverage_pct, all.half_width_pct
    )
}
