//! The page of a forecast: forecast points with their intervals, the answers to questions, and what they rest on; and what forecasts of
//! a table's own upper half are off by.

use loadline_analyze::forecast::{Estimate, Evaluated, Figure, Fitted, HeldOut, Kind, Overall, Question, overall};
use loadline_model::format::{ABSENT, number};
use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::doc::{Block, Chart, Document, Head, Row, Section, Standing};
use crate::listing::{Listing, cell};
use crate::spec::TableSpec;
use crate::svg::{self, ChartLine, ChartPoint};
use crate::templates::prose;
use crate::{Format, ReportError};

/// Forecasts of the series of a table or a run, and what is asked of them.
#[derive(Debug, Default)]
pub struct Forecasts {
    /// Where the series are from.
    pub title: String,
    /// Skipped parts and assumptions.
    pub remarks: Vec<String>,
    pub fitted: Vec<Fitted>,
    /// Job counts to forecast; if empty, those measured times 1.5 and 2.
    pub jobs: Vec<f64>,
    /// Questions that each series is asked.
    pub questions: Vec<Question>,
}

impl Forecasts {
    /// The page in `format`, with a row per series, jobs and figure, and one per answer.
    pub fn render(&self, format: Format) -> Result<String, ReportError> {
        let listing = Listing::new("forecasts", self.fitted.iter().flat_map(|fitted| self.rows(fitted)));
        listing.or(|| self.document(&listing), format)
    }

    fn rows(&self, fitted: &Fitted) -> Vec<Value> {
        let (series, mut rows) = (&fitted.series.name, Vec::new());
        for (jobs, figure) in self.jobs(fitted).into_iter().flat_map(|jobs| Figure::ALL.map(|of| (jobs, of))) {
            let (of, model) = match fitted.figure(figure, jobs) {
                Some((e, kind)) => (Some([e.value, e.low, e.high]), kind.id()),
                None if figure == Figure::Tps => (None, "refused"),
                None => continue,
            };
            rows.push(context! { series, jobs, figure => figure.id(), of, model });
        }
        for question in &self.questions {
            let found = fitted.ask(*question);
            let Question { figure, limit } = question;
            let id = match figure {
                Figure::Tps => format!("jobs_for_{limit}_tps"),
                figure => format!("jobs_above_{limit}_{}", figure.id()),
            };
            let model = match found.map(|found| found.at) {
                None => "not measured",
                Some(Some(jobs)) if jobs <= fitted.measured_to() => Kind::Interpolation.id(),
                _ if fitted.refused.is_some() => "refused",
                _ => fitted.kind.id(),
            };
            let of = found.map(|of| [of.at, of.earliest, of.latest]);
            rows.push(context! { series, jobs => (), figure => id, of, model });
        }
        rows
    }

    fn jobs(&self, fitted: &Fitted) -> Vec<f64> {
        let last = fitted.measured_to();
        if self.jobs.is_empty() { vec![(last * 1.5).ceil(), last * 2.0] } else { self.jobs.clone() }
    }

    /// One table of all series: rows with rounded numbers, by series.
    fn document(&self, listing: &Listing) -> Document {
        let refused = self.fitted.iter().filter(|f| f.refused.is_some()).count();
        let said = if refused > 0 { format!("; of {refused} nothing is forecast") } else { String::new() };
        let cell = |cell: &Json| match cell {
            Json::String(text) => text.clone(),
            cell => cell.as_f64().map_or_else(|| ABSENT.to_owned(), shown),
        };
        let mut table = TableSpec::<&Vec<Json>>::new("figures narrow", &listing.rows).titles(|row| cell(&row[0]));
        for (at, column) in listing.columns.iter().enumerate().skip(1) {
            let is_text = ["figure", "model"].contains(column);
            let head = if is_text { Head::text(column) } else { Head::number(column, "") };
            table = table.column(head, |row| cell(&row[at]));
        }
        let charts = self.fitted.iter().filter_map(|fitted| self.chart(fitted)).collect();
        let blocks = vec![
            Block::Table(table.build()),
            Block::List { items: self.fitted.iter().map(basis).collect() },
            Block::Charts { charts, per_row: 2 },
        ];
        Document {
            title: self.title.clone(),
            subtitle: "Forecasts with 90 % intervals".to_owned(),
            verdict: format!("{} series{said}.", self.fitted.len()),
            standing: Standing::new(refused > 0, false),
            remarks: self.remarks.clone(),
            sections: vec![Section::new("forecasts", "Forecasts", blocks)],
            ..Document::default()
        }
    }

    fn chart(&self, fitted: &Fitted) -> Option<Chart> {
        const STEPS: u32 = 60;
        let points = &fitted.series.points;
        let end = self.jobs(fitted).into_iter().fold(fitted.measured_to(), f64::max);
        let first = points.first()?.jobs;
        let at = (0..=STEPS).map(|n| first + (end - first) * f64::from(n) / f64::from(STEPS));
        let line: Vec<(f64, Estimate)> = at.filter_map(|jobs| Some((jobs, fitted.tps(jobs)?.0))).collect();
        let point = |x: f64, y: f64, tip: String| ChartPoint { x, y, bar: None, tip };
        let measured = points.iter().map(|p| point(p.jobs, p.tps, format!("measured: {} tps", shown(p.tps))));
        let forecast = self.jobs(fitted).into_iter().filter_map(|jobs| {
            let (e, kind) = fitted.tps(jobs)?;
            let tip = format!("{}: {} ({} to {}) tps", kind.title(), shown(e.value), shown(e.low), shown(e.high));
            Some(point(jobs, e.value, tip))
        });
        let line = ChartLine {
            hollow: forecast.collect(),
            points: measured.collect(),
            band: line.iter().map(|(jobs, e)| [*jobs, e.low, e.high]).collect(),
            fit: line.iter().map(|(jobs, e)| (*jobs, e.value)).collect(),
            ..ChartLine::default()
        };
        let title = format!("Throughput of {}, forecast with 90 % band", fitted.series.name);
        let labels = ["jobs", "tps (dots: measured, rings: forecast)"];
        let chart = svg::Chart::of_lines(title, labels, vec![line], (480.0, 270.0));
        svg::Chart { markers: true, dots: true, whole_x: true, unnamed: true, ..chart }.drawn()
    }
}

/// Basis of the forecast, and how far answers were looked for.
fn basis(fitted: &Fitted) -> String {
    let (name, points, law) = (&fitted.series.name, fitted.series.points.len(), fitted.kind.title());
    let [measured, looked] = [fitted.measured_to(), fitted.looked_to()].map(|jobs| jobs.round() as usize);
    let (refused, checked) = (fitted.refused.map(refusal), fitted.checked);
    prose("basis", context! { name, points, law, measured, looked, refused, checked })
}

/// Why nothing is forecast beyond the measured jobs.
fn refusal(off_pct: f64) -> String {
    prose("refusal", context! { off_pct })
}

/// `57,159`, `12.3`, `0.837`: three digits or more.
fn shown(value: f64) -> String {
    let decimals = match value.abs() {
        v if (v - v.round()).abs() <= 1e-9 * v || v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    number(value, decimals)
}

/// The evaluation `series` of a table or a run, `title`, in `format`; `remarks` are what was left out or assumed. There is a row per
/// series and one of all, in which series whose forecast is refused do not count.
pub fn evaluation_page(
    title: &str,
    series: &[Evaluated],
    mut remarks: Vec<String>,
    format: Format,
) -> Result<String, ReportError> {
    let row = |name: &str, model: &str, all: Option<Overall>, refused: usize| {
        let number = |value: fn(Overall) -> f64| all.map(|all| (value(all) * 1e3).round() / 1e3);
        let [error, covered] = [number(|o| o.mean_abs_error_pct), number(|o| o.coverage_pct)];
        context! { name, model, held_out => all.map_or(0, |o| o.held_out), error, covered, refused }
    };
    let one = |s: &Evaluated| {
        row(&s.fitted.series.name, s.fitted.kind.id(), overall([s]), usize::from(s.fitted.refused.is_some()))
    };
    let (refused, used): (Vec<&Evaluated>, Vec<&Evaluated>) = series.iter().partition(|s| s.fitted.refused.is_some());
    let all = row("all", "", overall(used.iter().copied()), refused.len());
    let listing = Listing::new("evaluation", series.iter().map(one).chain([all]));
    if !refused.is_empty() {
        remarks.push(format!("With the {} series that are refused: {}", refused.len(), said(overall(series))));
    }
    let document = || {
        let error = |h: &HeldOut| format!("{:.0}: {:+.1} ±{:.1}", h.point.jobs, h.error_pct(), h.half_width_pct());
        let mut table = TableSpec::<(&Vec<Json>, &Evaluated)>::new("facts", listing.rows.iter().zip(series));
        for (at, column) in listing.columns.iter().enumerate() {
            table = table.text(column, |(row, _)| cell(&row[at]));
        }
        let errors = |s: &Evaluated| s.held_out.iter().map(error).collect::<Vec<_>>().join("; ");
        let remark = |s: &Evaluated| s.fitted.refused.map_or_else(String::new, refusal);
        let table = table.text("jobs: error ± half of the interval, %", |(_, s)| errors(s)).lines(|(_, s)| Row {
            remark: remark(s),
            first: true,
            ..Row::default()
        });
        Document {
            title: format!("Forecasts of {title} compared with its own upper half"),
            subtitle: prose("evaluation", ()),
            verdict: said(overall(used)),
            standing: Standing::new(!refused.is_empty(), false),
            remarks,
            sections: vec![Section::new("series", "Series", vec![Block::Table(table.build())])],
            ..Document::default()
        }
    };
    listing.or(document, format)
}

fn said(all: Option<Overall>) -> String {
    let of = |of: fn(Overall) -> f64| all.map(of);
    let (error, covered, half) = (of(|o| o.mean_abs_error_pct), of(|o| o.coverage_pct), of(|o| o.half_width_pct));
    prose("evaluated", context! { held_out => all.map(|o| o.held_out), error, covered, half })
}
