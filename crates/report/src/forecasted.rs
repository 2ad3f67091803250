//! The page of a forecast: measured and forecast points with their intervals, the answer to an objective, and what it rests on.

use loadline_analyze::forecast::{Estimate, Figure, Fitted, Jobs, Kind, Series, fit};
use loadline_model::format::{counted, number};
use serde::Serialize;

use crate::content::count;
use crate::csv::{self, Named};
use crate::doc::{Block, Cell, Chart, Document, Head, Row, Section, Table};
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

impl Forecasted {
    /// Of `series`, read from `title`; `remarks` are what was left out or assumed. All series are fitted, because they know of each
    /// other, and those that are `wanted` are shown.
    #[must_use]
    pub fn of(
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
        let asked = self.questions.limits.iter().map(|(figure, _)| *figure);
        asked
            .flat_map(|figure| self.fitted.iter().map(move |f| (figure, f)))
            .filter(|(figure, f)| f.figure(*figure, f.measured_to()).is_none())
            .map(|(figure, f)| format!("{} has no {}, so nothing is said of it", f.series.name(), columns_of(figure)))
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
        Ok(match format {
            Format::Csv => self.csv(),
            Format::Json => serde_json::to_string_pretty(&self.answers())? + "\n",
            Format::Html => html::render(&self.document()),
            Format::Markdown => markdown::render(&self.document()),
            Format::Text => text::render(&self.document()),
        })
    }

    fn csv(&self) -> String {
        let columns: [Named<'_, Answer>; 7] = [
            ("series", &|a| a.series.clone()),
            ("jobs", &|a| csv::number(a.jobs)),
            ("figure", &|a| a.figure.clone()),
            ("value", &|a| csv::number(a.value)),
            ("low", &|a| csv::number(a.low)),
            ("high", &|a| csv::number(a.high)),
            ("model", &|a| a.model.to_owned()),
        ];
        csv::table(&columns, self.answers())
    }

    fn answers(&self) -> Vec<Answer> {
        self.fitted.iter().flat_map(|fitted| self.answers_of(fitted)).collect()
    }

    fn answers_of(&self, fitted: &Fitted) -> Vec<Answer> {
        let answer = |jobs, figure: String, [value, low, high]: [Option<f64>; 3], model| Answer {
            series: fitted.series.name(),
            jobs,
            figure,
            value,
            low,
            high,
            model,
        };
        let mut out = Vec::new();
        for jobs in self.jobs_of(fitted) {
            let known = Figure::ALL.iter().filter_map(|figure| Some((figure, fitted.figure(*figure, jobs)?)));
            let known = known.map(|(figure, (e, kind))| {
                answer(Some(jobs), figure.id().to_owned(), [e.value, e.low, e.high].map(Some), kind.id())
            });
            let before = out.len();
            out.extend(known);
            if out.len() == before {
                out.push(answer(Some(jobs), Figure::Tps.id().to_owned(), [None; 3], "refused"));
            }
        }
        out.extend(self.found(fitted).into_iter().map(|(what, found)| {
            let model = match found.at {
                Some(jobs) if jobs <= fitted.measured_to() => Kind::Interpolation.id(),
                _ if fitted.refused.is_some() => "refused",
                _ => fitted.kind.id(),
            };
            answer(None, what, [found.at, found.earliest, found.latest], model)
        }));
        out
    }

    /// The jobs that answer the questions, with the names of their rows.
    fn found(&self, fitted: &Fitted) -> Vec<(String, Jobs)> {
        let needs = self.questions.tps.and_then(|tps| Some((format!("jobs_for_{tps}_tps"), fitted.needs(tps)?)));
        let breaks = self.questions.limits.iter();
        let breaks = breaks.filter_map(|(figure, limit)| {
            Some((format!("jobs_above_{limit}_{}", figure.id()), fitted.breaks(*figure, *limit)?))
        });
        needs.into_iter().chain(breaks).collect()
    }

    fn jobs_of(&self, fitted: &Fitted) -> Vec<f64> {
        let last = fitted.measured_to();
        if self.questions.jobs.is_empty() { vec![(last * 1.5).ceil(), last * 2.0] } else { self.questions.jobs.clone() }
    }

    fn document(&self) -> Document {
        let [series, refused] = self.counts();
        let refused = if refused > 0 { format!("; of {refused} nothing is forecast") } else { String::new() };
        Document {
            title: self.title.clone(),
            subtitle: "Forecasts with 90 % intervals".to_owned(),
            verdict: format!("{}{refused}.", count(series, "series", "series")),
            all_well: refused.is_empty(),
            remarks: self.remarks.clone(),
            sections: vec![self.section()],
            ..Document::default()
        }
    }

    fn section(&self) -> Section {
        let of = |fitted: &Fitted| {
            let mut sentences = self.sentences(fitted);
            sentences.push(basis(fitted));
            let chart = self.chart(fitted).map(|svg| Block::Charts { charts: vec![Chart { svg }], per_row: 1 });
            let blocks = [Block::Table(self.table(fitted)), Block::List { items: sentences }];
            blocks.into_iter().chain(chart).collect::<Vec<_>>()
        };
        Section::of("forecasts", "Forecasts", self.fitted.iter().flat_map(of).collect())
    }

    /// Highest jobs that keep each objective, or else those with the highest throughput / latency, with what they are.
    fn load_lines(&self, fitted: &Fitted) -> Vec<(f64, String)> {
        let limits = self.questions.limits.iter();
        let kept = limits.filter_map(|(figure, limit)| Some((figure, limit, fitted.breaks(*figure, *limit)?.at?)));
        let mut lines: Vec<(f64, String)> = kept
            .filter(|(figure, limit, at)| fitted.holds(**figure, **limit, at - 1.0))
            .map(|(figure, limit, at)| (at - 1.0, format!("load line: {} {}", figure.title(), shown(*limit))))
            .collect();
        if self.questions.limits.is_empty() {
            lines.extend(
                fitted.highest_power().map(|jobs| (jobs, "load line: highest throughput / latency".to_owned())),
            );
        }
        lines
    }

    fn table(&self, fitted: &Fitted) -> Table {
        let has = |figure: &Figure| fitted.figure(*figure, fitted.measured_to()).is_some();
        let figures: Vec<Figure> = Figure::ALL.into_iter().filter(has).collect();
        let heads = figures.iter().map(|f| Head::number(f.title(), ""));
        let measured = fitted.series.points.iter().map(|p| {
            let cells = figures.iter().map(|f| Cell::from(f.measured(p).map_or_else(|| "–".to_owned(), shown)));
            Row::of([Cell::from(shown(p.jobs))].into_iter().chain(cells).chain([Cell::from("measured")]))
        });
        let forecast = |(jobs, what): (f64, String)| {
            let at = |figure: &Figure| fitted.figure(*figure, jobs);
            let cells = figures.iter().map(|f| Cell::from(at(f).map_or_else(|| "–".to_owned(), |(e, _)| interval(e))));
            let from = at(&Figure::Tps).map_or("refused", |(_, kind)| kind.title());
            let from = if what.is_empty() { from.to_owned() } else { format!("{from}; {what}") };
            Row::of([Cell::from(shown(jobs))].into_iter().chain(cells).chain([Cell::from(from)]))
        };
        let asked = self.jobs_of(fitted).into_iter().map(|jobs| (jobs, String::new()));
        let mut at: Vec<(f64, String)> = asked.chain(self.load_lines(fitted)).collect();
        at.sort_by(|a, b| a.0.total_cmp(&b.0));
        let forecast = at.into_iter().map(forecast);
        let head = [Head::number("Jobs", "")].into_iter().chain(heads).chain([Head::text("From")]);
        Table { caption: fitted.series.name(), ..Table::of("figures", head, measured.chain(forecast)) }
    }

    /// The answers in words, and the load line.
    fn sentences(&self, fitted: &Fitted) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(tps) = self.questions.tps {
            out.extend(fitted.needs(tps).map(|found| needed(tps, &found)));
        }
        for (figure, limit) in &self.questions.limits {
            out.push(match fitted.breaks(*figure, *limit) {
                Some(found) => broken(fitted, *figure, *limit, &found),
                None => format!("{}: nothing is said, the series has no {}.", figure.title(), columns_of(*figure)),
            });
        }
        if self.questions.limits.is_empty() {
            let at = |jobs: f64| Some((jobs, fitted.tps(jobs)?.0));
            out.extend(fitted.highest_power().and_then(at).map(|(jobs, tps)| {
                format!(
                    "Load line without an objective: {} and {} tps, where throughput / latency is highest.",
                    count_of(jobs),
                    interval(tps)
                )
            }));
        }
        out
    }

    /// Measured points, forecast line and band, and where an objective breaks.
    fn chart(&self, fitted: &Fitted) -> Option<String> {
        const STEPS: u32 = 60;
        let end = self.jobs_of(fitted).into_iter().fold(fitted.measured_to(), f64::max);
        let first = fitted.series.points.first()?.jobs;
        let at = (0..=STEPS).map(|n| first + (end - first) * f64::from(n) / f64::from(STEPS));
        let line: Vec<(f64, Estimate)> = at.filter_map(|jobs| Some((jobs, fitted.tps(jobs)?.0))).collect();
        let point = |jobs: f64, y: f64, tip: String| ChartPoint { x: jobs, y, bar: None, tip };
        let measured = fitted
            .series
            .points
            .iter()
            .map(|p| point(p.jobs, p.tps, format!("measured: {}, {} tps", count_of(p.jobs), shown(p.tps))));
        let forecast = self.jobs_of(fitted).into_iter().filter_map(|jobs| {
            let (e, kind) = fitted.tps(jobs)?;
            Some(point(jobs, e.value, format!("{}: {}, {} tps", kind.title(), count_of(jobs), interval(e))))
        });
        let spans = self.found(fitted).into_iter().filter_map(|(what, found)| {
            let from = found.earliest.or(found.at)?;
            Some((from, found.latest.unwrap_or(end).min(end), what)).filter(|(from, to, _)| from <= to)
        });
        let lines = self.load_lines(fitted).into_iter().filter(|(jobs, _)| *jobs <= end);
        let lines = lines.map(|(jobs, what)| (jobs, jobs, format!("{what}, {}", count_of(jobs))));
        svg::Chart {
            title: format!("Throughput of {}, forecast with 90 % band", fitted.series.name()),
            x_label: "jobs".to_owned(),
            y_label: "tps (dots: measured, rings: forecast, grey: load line or where an objective breaks)".to_owned(),
            lines: vec![ChartLine {
                name: fitted.series.name(),
                hollow: forecast.collect(),
                points: measured.collect(),
                opacity: 1.0,
                band: line.iter().map(|(jobs, e)| [*jobs, e.low, e.high]).collect(),
                fit: line.iter().map(|(jobs, e)| (*jobs, e.value)).collect(),
                ..ChartLine::default()
            }],
            markers: true,
            dots: true,
            whole_x: true,
            unnamed: true,
            spans: spans.chain(lines).collect(),
            width: 640.0,
            height: 300.0,
            ..svg::Chart::default()
        }
        .svg()
    }
}

/// What the forecast rests on.
fn basis(fitted: &Fitted) -> String {
    let points = counted(fitted.series.points.len(), "point");
    let measured = format!("Measured: {points} up to {}.", count_of(fitted.measured_to()));
    if let Some(why) = &fitted.refused {
        return format!("{measured} Nothing is forecast beyond: {why}.");
    }
    let checked = fitted.cross_validated.map_or_else(
        || {
            "there are too few points to check it, so the interval is a wide guess: measure 4 job counts or more"
                .to_owned()
        },
        |c| {
            format!(
                "it forecast the platform's last points from those before with a mean error of {:.1} % ({})",
                c.mean_abs_error_pct,
                counted(c.forecasts, "forecast")
            )
        },
    );
    format!("{measured} Beyond: {}; {checked}.", fitted.kind.title())
}

fn needed(tps: f64, found: &Jobs) -> String {
    let what = format!("{} tps", shown(tps));
    let to = shown(found.looked_to);
    match (found.at, found.earliest) {
        (Some(at), earliest) => {
            format!(
                "{what} need {} (90 % interval: {} to {}).",
                count_of(at),
                shown(earliest.unwrap_or(at)),
                end(found.latest, &to)
            )
        }
        (None, Some(earliest)) => {
            format!(
                "{what} are not reached with up to {to} jobs; by the upper end of the interval they are, from {} on.",
                count_of(earliest)
            )
        }
        (None, None) => {
            format!("{what} are not reached with up to {to} jobs, not even by the upper end of the interval.")
        }
    }
}

fn broken(fitted: &Fitted, figure: Figure, limit: f64, found: &Jobs) -> String {
    let what = objective(figure, limit);
    let to = shown(found.looked_to);
    match (found.at, found.earliest) {
        (Some(at), earliest) if fitted.holds(figure, limit, at - 1.0) => {
            let line = fitted
                .tps(at - 1.0)
                .map_or_else(String::new, |(tps, _)| format!(", {} tps: the load line", interval(tps)));
            format!(
                "{what} holds up to {}{line}. It breaks at {} (90 % interval: {} to {}).",
                count_of(at - 1.0),
                count_of(at),
                shown(earliest.unwrap_or(at)),
                end(found.latest, &to)
            )
        }
        (Some(_), _) => format!("{what} does not hold with any number of jobs."),
        (None, Some(earliest)) => {
            format!(
                "{what} holds up to {to} jobs; by the upper end of the interval it breaks at {}.",
                count_of(earliest)
            )
        }
        (None, None) => format!("{what} holds up to {to} jobs, also by the upper end of the interval."),
    }
}

/// `A latency of 2 ms`.
fn objective(figure: Figure, limit: f64) -> String {
    let limit = shown(limit);
    match figure {
        Figure::Tps => format!("{limit} tps"),
        Figure::LatencyMs => format!("A latency of {limit} ms"),
        Figure::P99Ms => format!("A p99 of {limit} ms"),
        Figure::RedoMibPerS => format!("Redo of {limit} MiB/s"),
        Figure::CpuPct => format!("CPU at {limit} %"),
    }
}

fn end(latest: Option<f64>, to: &str) -> String {
    latest.map_or_else(|| format!("more than {to}, if ever"), shown)
}

/// Columns without which a figure cannot be forecast.
fn columns_of(figure: Figure) -> &'static str {
    match figure {
        Figure::P99Ms => "transaction_time_ns_p99",
        Figure::RedoMibPerS => "redo_kib_per_tx",
        Figure::Tps | Figure::LatencyMs | Figure::CpuPct => figure.id(),
    }
}

/// `1 job`, `33 jobs`.
fn count_of(number: f64) -> String {
    let noun = if number == 1.0 { "job" } else { "jobs" };
    format!("{} {noun}", shown(number))
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
