//! What forecasts of a table's own upper half are off by, for people and scripts.

use loadline_analyze::forecast::{Evaluation, Kind, Overall, Series, evaluate};
use loadline_model::format::{counted, csv_line};
use serde::Serialize;

use crate::content::count;
use crate::doc::{Block, Document, Head, Row, Section, Table};
use crate::{Format, ReportError, html, markdown, text};

/// The evaluation of a table or a run.
#[derive(Debug)]
pub struct Evaluated {
    title: String,
    remarks: Vec<String>,
    evaluation: Evaluation,
}

/// What JSON holds: the series, and what they show together.
#[derive(Serialize)]
struct Json<'e> {
    remarks: &'e [String],
    #[serde(flatten)]
    evaluation: &'e Evaluation,
    overall: Option<Overall>,
    overall_with_refused: Option<Overall>,
    models: Vec<OfModel>,
}

/// What one model used for all series is off by.
#[derive(Serialize)]
struct OfModel {
    model: &'static str,
    mean_abs_error_pct: f64,
    held_out: usize,
}

impl Evaluated {
    /// Of `series`, read from `title`; `remarks` are what was left out or assumed. All series are fitted, and those that are `wanted`
    /// are shown.
    #[must_use]
    pub fn of(title: &str, series: &[Series], mut remarks: Vec<String>, wanted: impl Fn(&Series) -> bool) -> Evaluated {
        let mut evaluation = evaluate(series);
        evaluation.series.retain(|s| wanted(&s.series));
        remarks
            .extend(evaluation.too_short.iter().map(|name| format!("{name} is left out: it has fewer than 4 points")));
        Evaluated { title: title.to_owned(), remarks, evaluation }
    }

    /// Number of series that could be evaluated.
    #[must_use]
    pub fn series(&self) -> usize {
        self.evaluation.series.len()
    }

    /// In `format`. CSV has a row per series and one of all, in which series whose forecast is refused do not count.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn render(&self, format: Format) -> Result<String, ReportError> {
        Ok(match format {
            Format::Csv => self.csv(),
            Format::Json => self.json()?,
            Format::Html => html::render(&self.document()),
            Format::Markdown => markdown::render(&self.document()),
            Format::Text => text::render(&self.document()),
        })
    }

    fn json(&self) -> Result<String, ReportError> {
        let models = self.evaluation.models().into_iter();
        let page = Json {
            remarks: &self.remarks,
            evaluation: &self.evaluation,
            overall: self.evaluation.overall(false),
            overall_with_refused: self.evaluation.overall(true),
            models: models
                .map(|(kind, mean_abs_error_pct, held_out)| OfModel { model: kind.id(), mean_abs_error_pct, held_out })
                .collect(),
        };
        Ok(serde_json::to_string_pretty(&page)? + "\n")
    }

    fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
        let head = ["series", "model", "held_out", "mean_abs_error_pct", "coverage_pct", "refused"];
        let mut out = csv_line(head);
        for s in &self.evaluation.series {
            let cells = [
                s.series.name(),
                s.kind.id().to_owned(),
                s.held_out.len().to_string(),
                number(s.mean_abs_error_pct()),
                number(s.coverage_pct()),
                u8::from(s.refused.is_some()).to_string(),
            ];
            out.push_str(&csv_line(cells));
        }
        let all = self.evaluation.overall(false);
        let cells = [
            "all".to_owned(),
            String::new(),
            all.map_or(0, |a| a.held_out).to_string(),
            number(all.map(|a| a.mean_abs_error_pct)),
            number(all.map(|a| a.coverage_pct)),
            self.evaluation.refused().to_string(),
        ];
        out + &csv_line(cells)
    }

    fn document(&self) -> Document {
        let refused = self.evaluation.refused();
        let verdict =
            self.evaluation.overall(false).map_or_else(|| "No series could be evaluated.".to_owned(), |a| said(&a));
        let mut remarks = self.remarks.clone();
        if refused > 0 {
            let with = self.evaluation.overall(true).map_or_else(String::new, |a| format!(" With them: {}", said(&a)));
            remarks.push(format!("Refused, and not counted in that: {}.{with}", count(refused, "series", "series")));
        }
        Document {
            title: format!("Forecasts of {} held against its own upper half", self.title),
            subtitle: "Of each series, the lower half of its job counts (the larger one if their number is odd, at least 3) is fitted, \
                       and the upper half is forecast. Nothing held out takes part in a fit, in the choice of a model or in an interval."
                .to_owned(),
            verdict,
            all_well: refused == 0,
            remarks,
            sections: vec![self.by_series(), self.by_model()], ..Document::default() }
    }

    fn by_series(&self) -> Section {
        let row = |s: &loadline_analyze::forecast::Evaluated| {
            let percent = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.1}"));
            let errors = s.held_out.iter().map(|h| {
                let off = (h.forecast.value / h.measured - 1.0) * 100.0;
                format!("{:.0}: {off:+.1} ±{:.1}", h.jobs, h.half_width_pct())
            });
            let model =
                if s.refused.is_some() { format!("{}, refused", s.kind.title()) } else { s.kind.title().to_owned() };
            let cells = [
                s.series.name(),
                model,
                s.series.points.len().to_string(),
                s.held_out.len().to_string(),
                percent(s.mean_abs_error_pct()),
                s.coverage_pct().map_or_else(|| "–".to_owned(), |v| format!("{v:.0}")),
                errors.collect::<Vec<_>>().join("; "),
            ];
            Row { remark: s.refused.map(|why| why.to_string()).unwrap_or_default(), first: true, ..Row::of(cells) }
        };
        let head = vec![
            Head::text("Series"),
            Head::text("Model"),
            Head::number("Points", ""),
            Head::number("Held out", ""),
            Head::number("Error", "%"),
            Head::number("Covered", "%"),
            Head::text("Jobs: error ± half of the interval, %"),
        ];
        section("series", "Series", Table::of("facts", head, self.evaluation.series.iter().map(row)))
    }

    fn by_model(&self) -> Section {
        let points: usize = self.evaluation.series.iter().map(|s| s.held_out.len()).sum();
        let row = |(kind, error, count): (Kind, f64, usize)| {
            Row::of([kind.title().to_owned(), format!("{error:.1}"), format!("{count} of {points}")])
        };
        let chosen = self.evaluation.overall(true).map(|a| {
            Row::of([
                "chosen for each platform".to_owned(),
                format!("{:.1}", a.mean_abs_error_pct),
                format!("{} of {points}", a.held_out),
            ])
        });
        let mut models = self.evaluation.models();
        models.sort_by(|a, b| a.1.total_cmp(&b.1));
        let head = vec![Head::text("Model"), Head::number("Error", "%"), Head::number("Held-out points", "")];
        let rows = chosen.into_iter().chain(models.into_iter().map(row));
        section("models", "Each model used for all series, refused ones as well", Table::of("facts", head, rows))
    }
}

fn section(id: &'static str, title: &str, table: Table) -> Section {
    Section::of(id, title, vec![Block::Table(table)])
}

fn said(all: &Overall) -> String {
    format!(
        "Mean error of tps {:.1} % over {}, median series {:.1} %; the 90 % intervals hold {:.0} % of them, with a mean half-width of {:.1} %.",
        all.mean_abs_error_pct,
        counted(all.held_out, "held-out point"),
        all.median_series_pct,
        all.coverage_pct,
        all.half_width_pct
    )
}
