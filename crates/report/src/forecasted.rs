//! The page of a forecast: measured and forecast points with their intervals, the answers to questions, and what it rests on.

use loadline_analyze::forecast::{Estimate, Figure, Fitted, Jobs, Kind, Series, fit};
use loadline_model::format::{counted, number};
use serde::Serialize;

use crate::content::count;
use crate::csv::{self, Named};
use crate::doc::{Block, Chart, Document, Head, Row, Section, Table};
use crate::svg::{self, ChartLine, ChartPoint};
use crate::{Format, ReportError, html, markdown, text};

mod evaluated;

pub use evaluated::Evaluated;

/// What is asked of a forecast.
#[derive(Debug, Clone, Default)]
pub struct Questions {
    /// Job counts to forecast; if empty, those measured times 1.5 and 2.
    pub jobs: Vec<f64>,
    /// Throughput whose jobs are asked for, tps.
    pub tps: Option<f64>,
    /// Limits that break at some number of jobs, in the unit of the figure.
    pub limits: Vec<(Figure, f64)>,
}

/// Forecasts of the series of a table or a run.
#[derive(Debug)]
pub struct Forecasted {
    title: String,
    remarks: Vec<String>,
    questions: Questions,
    fitted: Vec<Fitted>,
}

/// A row for scripts.
#[derive(Debug, Serialize)]
struct Answer {
    series: String,
    jobs: Option<f64>,
    figure: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    model: &'static str,
}

/// A question about jobs, for scripts and for people, with what answers it.
struct Asked {
    id: String,
    text: String,
    found: Jobs,
    /// Whether the question is an objective that no number of jobs keeps.
    hopeless: bool,
}

impl Forecasted {
    /// Forecasts of `series`, read from `title`; `remarks` are what was left out or assumed. All series are fitted, because they know of each
    /// other, and those that are `wanted` are shown.
    #[must_use]
    pub fn new(
        title: &str,
        series: &[Series],
        remarks: Vec<String>,
        questions: Questions,
        wanted: impl Fn(&Series) -> bool,
    ) -> Forecasted {
        let mut fitted = fit(series);
        fitted.retain(|f| wanted(&f.series));
        Forecasted { title: title.to_owned(), remarks, questions, fitted }
    }

    /// Series with a figure that the questions need and that they do not have, in words.
    #[must_use]
    pub fn unanswered(&self) -> Vec<String> {
        let asked = self.questions.limits.iter().flat_map(|(figure, _)| self.fitted.iter().map(move |f| (figure, f)));
        asked
            .filter(|(figure, f)| f.figure(**figure, f.measured_to()).is_none())
            .map(|(figure, f)| format!("{} has no {}, so nothing is said of it", f.series.name(), figure.title()))
            .collect()
    }

    /// Number of series, and of those whose forecast beyond the measured jobs is refused.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.fitted.len(), self.fitted.iter().filter(|f| f.refused.is_some()).count()]
    }

    /// The page in `format`; CSV and JSON have a row per series, jobs and figure, and one per answer.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn render(&self, format: Format) -> Result<String, ReportError> {
        let answers = || self.fitted.iter().flat_map(|fitted| self.answers(fitted)).collect::<Vec<Answer>>();
        written(format, || csv(answers()), answers, || self.document())
    }

    fn answers(&self, fitted: &Fitted) -> Vec<Answer> {
        let series = fitted.series.name();
        let answer = |jobs, figure: String, [value, low, high]: [Option<f64>; 3], model| Answer {
            series: series.clone(),
            jobs,
            figure,
            value,
            low,
            high,
            model,
        };
        let mut out = Vec::new();
        for jobs in self.jobs(fitted) {
            for figure in Figure::ALL {
                match fitted.figure(figure, jobs) {
                    Some((e, kind)) => out.push(answer(
                        Some(jobs),
                        figure.id().to_owned(),
                        [e.value, e.low, e.high].map(Some),
                        kind.id(),
                    )),
                    None if figure == Figure::Tps => {
                        out.push(answer(Some(jobs), figure.id().to_owned(), [None; 3], "refused"));
                    }
                    None => {}
                }
            }
        }
        out.extend(self.asked(fitted).into_iter().map(|Asked { id, found, .. }| {
            let model = source(fitted, &found).map_or("refused", Kind::id);
            answer(None, id, [found.at, found.earliest, found.latest], model)
        }));
        out
    }

    fn asked(&self, fitted: &Fitted) -> Vec<Asked> {
        let mut out = Vec::new();
        if let Some((tps, found)) = self.questions.tps.and_then(|tps| Some((tps, fitted.needs(tps)?))) {
            let text = format!("{} tps need", shown(tps));
            out.push(Asked { id: format!("jobs_for_{tps}_tps"), text, found, hopeless: false });
        }
        for (figure, limit) in &self.questions.limits {
            let Some(found) = fitted.breaks(*figure, *limit) else { continue };
            let hopeless = found.at.is_some_and(|at| !fitted.holds(*figure, *limit, at - 1.0));
            let text = format!("{} is above {} from", figure.title(), shown(*limit));
            out.push(Asked { id: format!("jobs_above_{limit}_{}", figure.id()), text, found, hopeless });
        }
        out
    }

    fn jobs(&self, fitted: &Fitted) -> Vec<f64> {
        let last = fitted.measured_to();
        if self.questions.jobs.is_empty() { vec![(last * 1.5).ceil(), last * 2.0] } else { self.questions.jobs.clone() }
    }

    fn document(&self) -> Document {
        let [series, refused] = self.counts();
        let refused = if refused > 0 { format!("; of {refused} nothing is forecast") } else { String::new() };
        let mut blocks = Vec::new();
        let asked: Vec<Row> =
            self.fitted.iter().flat_map(|f| self.asked(f).into_iter().map(|a| asked_row(f, &a))).collect();
        if !asked.is_empty() {
            let numbers = ["Jobs", "90 % interval", "tps there"].map(|title| Head::number(title, ""));
            let head = ["Series", "Question"].map(Head::text).into_iter().chain(numbers).chain([Head::text("From")]);
            blocks.push(Block::Table(Table::of("facts", head, asked)));
        }
        for fitted in &self.fitted {
            blocks.push(Block::Table(self.table(fitted)));
            blocks.push(Block::List { items: vec![basis(fitted)] });
            blocks.extend(self.chart(fitted).map(|svg| Block::Charts { charts: vec![Chart { svg }], per_row: 1 }));
        }
        Document {
            title: self.title.clone(),
            subtitle: "Forecasts with 90 % intervals".to_owned(),
            verdict: format!("{}{refused}.", count(series, "series", "series")),
            all_well: refused.is_empty(),
            remarks: self.remarks.clone(),
            sections: vec![Section::of("forecasts", "Forecasts", blocks)],
            ..Document::default()
        }
    }

    fn table(&self, fitted: &Fitted) -> Table {
        let has = |figure: &Figure| fitted.figure(*figure, fitted.measured_to()).is_some();
        let figures: Vec<Figure> = Figure::ALL.into_iter().filter(has).collect();
        let row = |jobs: f64, cell: &dyn Fn(Figure) -> Option<String>, from: &str| {
            let cells = figures.iter().map(|figure| cell(*figure).unwrap_or_else(|| "–".to_owned()));
            Row::of([shown(jobs)].into_iter().chain(cells).chain([from.to_owned()]))
        };
        let points = fitted.series.points.iter();
        let mut rows: Vec<Row> =
            points.map(|p| row(p.jobs, &|figure| figure.measured(p).map(shown), "measured")).collect();
        for jobs in self.jobs(fitted) {
            let from = fitted.tps(jobs).map_or("refused", |(_, kind)| kind.title());
            rows.push(row(jobs, &|figure| fitted.figure(figure, jobs).map(|(e, _)| interval(e)), from));
        }
        let heads = figures.iter().map(|figure| Head::number(figure.title(), ""));
        let head = [Head::number("Jobs", "")].into_iter().chain(heads).chain([Head::text("From")]);
        Table { caption: fitted.series.name(), ..Table::of("figures", head, rows) }
    }

    /// Measured points, forecast line and band.
    fn chart(&self, fitted: &Fitted) -> Option<String> {
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
            Some(point(jobs, e.value, format!("{}: {} tps", kind.title(), interval(e))))
        });
        svg::Chart {
            title: format!("Throughput of {}, forecast with 90 % band", fitted.series.name()),
            x_label: "jobs".to_owned(),
            y_label: "tps (dots: measured, rings: forecast)".to_owned(),
            lines: vec![ChartLine {
                hollow: forecast.collect(),
                points: measured.collect(),
                band: line.iter().map(|(jobs, e)| [*jobs, e.low, e.high]).collect(),
                fit: line.iter().map(|(jobs, e)| (*jobs, e.value)).collect(),
                ..ChartLine::default()
            }],
            markers: true,
            dots: true,
            whole_x: true,
            unnamed: true,
            width: 640.0,
            height: 300.0,
            ..svg::Chart::default()
        }
        .svg()
    }
}

fn written<T: Serialize>(
    format: Format,
    csv: impl Fn() -> String,
    json: impl Fn() -> T,
    document: impl Fn() -> Document,
) -> Result<String, ReportError> {
    Ok(match format {
        Format::Csv => csv(),
        Format::Json => serde_json::to_string_pretty(&json())? + "\n",
        Format::Html => html::render(&document()),
        Format::Markdown => markdown::render(&document()),
        Format::Text => text::render(&document()),
    })
}

fn csv(answers: Vec<Answer>) -> String {
    let columns: [Named<'_, Answer>; 7] = [
        ("series", &|a| a.series.clone()),
        ("jobs", &|a| csv::number(a.jobs)),
        ("figure", &|a| a.figure.clone()),
        ("value", &|a| csv::number(a.value)),
        ("low", &|a| csv::number(a.low)),
        ("high", &|a| csv::number(a.high)),
        ("model", &|a| a.model.to_owned()),
    ];
    csv::table(&columns, answers)
}

/// What an answer comes from; `None` if forecasts beyond the measured jobs are refused.
fn source(fitted: &Fitted, found: &Jobs) -> Option<Kind> {
    match found.at {
        Some(jobs) if jobs <= fitted.measured_to() => Some(Kind::Interpolation),
        _ => fitted.refused.is_none().then_some(fitted.kind),
    }
}

fn asked_row(fitted: &Fitted, Asked { text, found, hopeless, .. }: &Asked) -> Row {
    let end = |jobs: Option<f64>| jobs.map_or_else(|| format!("more than {}", shown(found.looked_to)), shown);
    let there = found.at.and_then(|jobs| fitted.tps(jobs));
    Row::of([
        fitted.series.name(),
        text.clone(),
        if *hopeless { "any".to_owned() } else { end(found.at) },
        if *hopeless { "–".to_owned() } else { format!("{} to {}", end(found.earliest), end(found.latest)) },
        there.map_or_else(|| "–".to_owned(), |(tps, _)| interval(tps)),
        source(fitted, found).map_or("refused", Kind::title).to_owned(),
    ])
}

/// What the forecast rests on.
fn basis(fitted: &Fitted) -> String {
    let points = counted(fitted.series.points.len(), "point");
    let measured = format!("Measured: {points} up to {} jobs.", shown(fitted.measured_to()));
    let law = fitted.kind.title();
    match (&fitted.refused, fitted.cross_validated_pct) {
        (Some(why), _) => format!("{measured} Nothing is forecast beyond: {why}."),
        (None, Some(off)) => {
            format!("{measured} Beyond: {law}; mean error of its forecasts of the platform's last points {off:.1} %.")
        }
        (None, None) => {
            format!(
                "{measured} Beyond: {law}; too few points to check it, the interval is a wide guess: measure 4 job counts."
            )
        }
    }
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

/// `57,159 (53,900 to 60,600)`.
fn interval(e: Estimate) -> String {
    format!("{} ({} to {})", shown(e.value), shown(e.low), shown(e.high))
}
