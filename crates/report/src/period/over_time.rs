//! Figures over time on one axis, with the background work that was seen.

use loadline_analyze::kpi::THROUGHPUT;
use loadline_model::column::*;
use loadline_model::format::number;
use loadline_model::{Column, JobLoad, Series};
use minijinja::context;

use super::Period;
use super::words::name;
use crate::doc::{Block, Chart};
use crate::svg::{self, ChartLine};
use crate::templates::prose;
use crate::words::heading_of;

const DRAWN: [&Column; 6] =
    [THROUGHPUT, REDO_MIB_PER_S, BLOCK_READS_PER_S, CPU_BUSY_PCT, DEVICE_WRITES_PER_S, DEVICE_UTIL_PCT];

pub(super) fn blocks(periods: &[Period]) -> Vec<Block> {
    let x_end = periods.iter().flat_map(|p| times(&p.series)).fold(0.0, f64::max);
    let spans: Vec<(f64, f64, String)> = periods
        .iter()
        .flat_map(|p| p.activity.iter().flat_map(|a| a.spans.iter().flatten()).map(move |s| (p, s)))
        .map(|(p, s)| {
            let of = name(p, periods);
            let of = if of.is_empty() { String::new() } else { format!("{of}: ") };
            (s.from_s, s.to_s, format!("{of}{} from {} to {} s", s.what, number(s.from_s, 1), number(s.to_s, 1)))
        })
        .collect();
    let mut charts: Vec<Chart> = Vec::new();
    for column in DRAWN {
        charts.extend(chart(periods, &heading_of(column, false), x_end, &spans, |p| p.series.column(column.id)));
        if column == THROUGHPUT {
            charts.extend(chart(periods, "Mean transaction time [ms]", x_end, &spans, latency));
        }
    }
    let Some(charts) = Block::charts(2, charts) else { return Vec::new() };
    let known = periods.iter().all(|p| p.activity.as_ref().is_some_and(|a| a.spans.is_some()));
    let said: Vec<String> = spans.into_iter().map(|(.., what)| what).collect();
    vec![charts, Block::para(prose("shaded", context! { known, said }))]
}

fn times(series: &Series) -> Vec<f64> {
    series.column("t_s").unwrap_or_default().into_iter().flatten().collect()
}

/// Mean time of transactions, ms: of an imported test what it states, else jobs / throughput, which it is in a closed loop without time
/// between transactions (Little's law).
fn latency(period: &Period) -> Option<Vec<Option<f64>>> {
    let record = period.record.as_ref().filter(|r| r.load() == JobLoad::default())?;
    if record.imported().is_some() {
        return period.series.column(COMMIT_LATENCY_MS.id);
    }
    let jobs = f64::from(record.jobs);
    let tps = period.series.column(THROUGHPUT.id)?;
    // Where no transaction ended, the line breaks.
    let ms = |tps: f64| if tps > 0.0 { jobs / tps * 1e3 } else { f64::NAN };
    Some(tps.into_iter().map(|tps| tps.map(ms)).collect())
}

fn chart(
    periods: &[Period],
    title: &str,
    x_end: f64,
    spans: &[(f64, f64, String)],
    values: impl Fn(&Period) -> Option<Vec<Option<f64>>>,
) -> Option<Chart> {
    let line = |(colour, period): (usize, &Period)| {
        let times = period.series.column("t_s")?;
        let points = times.into_iter().zip(values(period)?).filter_map(|(t, v)| t.zip(v)).filter(|(t, _)| *t >= 0.0);
        Some(ChartLine::through(name(period, periods), colour, points)).filter(|line| line.points.len() > 1)
    };
    let lines: Vec<ChartLine> = periods.iter().enumerate().filter_map(line).collect();
    let chart = svg::Chart::of_lines(title.to_owned(), ["s", ""], lines, (480.0, 150.0));
    svg::Chart { unnamed: periods.len() == 1, spans: spans.to_vec(), x_end, ..chart }.drawn()
}
