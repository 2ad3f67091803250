//! What forecasts of a table's own upper half are off by, for people and scripts.

use loadline_analyze::forecast::{self, Evaluation, Overall, Series, evaluate};
use loadline_model::format::counted;
use serde::Serialize;

use super::written;
use crate::content::count;
use crate::csv::{self, Named};
use crate::doc::{Block, Document, Head, Row, Section, Table};
use crate::{Format, ReportError};

/// The evaluation of a table or a run.
#[derive(Debug, Serialize)]
pub struct Evaluated {
    #[serde(skip)]
    title: String,
    remarks: Vec<String>,
    #[serde(flatten)]
    evaluation: Evaluation,
    overall: Option<Overall>,
    overall_with_refused: Option<Overall>,
}

impl Evaluated {
    /// Evaluates `series`, read from `title`; `remarks` are what was left out or assumed. All series are fitted, and those that are `wanted`
    /// are shown.
    #[must_use]
    pub fn new(
        title: &str,
        series: &[Series],
        mut remarks: Vec<String>,
        wanted: impl Fn(&Series) -> bool,
    ) -> Evaluated {
        let evaluation = evaluate(series, wanted);
        remarks
            .extend(evaluation.too_short.iter().map(|name| format!("{name} is left out: it has fewer than 4 points")));
        Evaluated {
            title: title.to_owned(),
            remarks,
            overall: evaluation.overall(false),
            overall_with_refused: evaluation.overall(true),
            evaluation,
        }
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
        written(format, || self.csv(), || self, || self.document())
    }

    fn csv(&self) -> String {
        /// Name, model, what is shown, number of refused series.
        type Line = (String, &'static str, Option<Overall>, usize);
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
        let columns: [Named<'_, Line>; 6] = [
            ("series", &|line| line.0.clone()),
            ("model", &|line| line.1.to_owned()),
            ("held_out", &|line| line.2.map_or(0, |o| o.held_out).to_string()),
            ("mean_abs_error_pct", &|line| number(line.2.map(|o| o.mean_abs_error_pct))),
            ("coverage_pct", &|line| number(line.2.map(|o| o.coverage_pct))),
            ("refused", &|line| line.3.to_string()),
        ];
        let series = self.evaluation.series.iter();
        let lines =
            series.map(|s| (s.series.name(), s.kind.id(), Overall::over([s]), usize::from(s.refused.is_some())));
        let all: Line = ("all".to_owned(), "", self.overall, self.evaluation.refused());
        csv::table(&columns, lines.chain([all]))
    }

    fn document(&self) -> Document {
        let refused = self.evaluation.refused();
        let said = |all: Option<Overall>| all.map_or_else(|| "No series could be evaluated.".to_owned(), |a| said(&a));
        let mut remarks = self.remarks.clone();
        if refused > 0 {
            let with = said(self.overall_with_refused);
            remarks.push(format!(
                "Refused, and not counted in that: {}. With them: {with}",
                count(refused, "series", "series")
            ));
        }
        let by_model = self.evaluation.models.iter().map(|used| {
            let points = counted(used.held_out, "point");
            let error = used.mean_abs_error_pct;
            format!("The {} for all series would be {error:.1} % off ({points}).", used.model.title())
        });
        let numbers = [("Points", ""), ("Held out", ""), ("Error", "%"), ("Covered", "%")];
        let head = ["Series", "Model"]
            .map(Head::text)
            .into_iter()
            .chain(numbers.map(|(title, unit)| Head::number(title, unit)));
        let head = head.chain([Head::text("Jobs: error ± half of the interval, %")]);
        let table = Table::of("facts", head, self.evaluation.series.iter().map(row));
        let blocks = vec![Block::Table(table), Block::List { items: by_model.collect() }];
        Document {
            title: format!("Forecasts of {} held against its own upper half", self.title),
            subtitle: "Of each series, the lower half of its job counts (the larger one if their number is odd, at least 3) is fitted, \
                       and the upper half is forecast. Nothing held out takes part in a fit, in the choice of a model or in an interval."
                .to_owned(),
            verdict: said(self.overall),
            all_well: refused == 0,
            remarks,
            sections: vec![Section::of("series", "Series", blocks)],
            ..Document::default()
        }
    }
}

fn row(s: &forecast::Evaluated) -> Row {
    let all = Overall::over([s]);
    let percent = |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"));
    let errors = s.held_out.iter().map(|h| {
        let off = (h.forecast.value / h.measured - 1.0) * 100.0;
        format!("{:.0}: {off:+.1} ±{:.1}", h.jobs, h.half_width_pct())
    });
    let cells = [
        s.series.name(),
        format!("{}{}", s.kind.title(), if s.refused.is_some() { ", refused" } else { "" }),
        s.series.points.len().to_string(),
        s.held_out.len().to_string(),
        percent(all.map(|o| o.mean_abs_error_pct), 1),
        percent(all.map(|o| o.coverage_pct), 0),
        errors.collect::<Vec<_>>().join("; "),
    ];
    Row { remark: s.refused.map(|why| why.to_string()).unwrap_or_default(), first: true, ..Row::of(cells) }
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
