//! Throughput of a test over time, reduced to the points that a chart can show.

use loadline_analyze::kpi::THROUGHPUT;
use loadline_model::Series;

/// Most points of a line; more are averaged.
const MOST_POINTS: usize = 300;

/// Throughput over time.
#[derive(Debug, Clone, PartialEq)]
pub struct OverTime {
    /// Seconds since the window start, and tps.
    pub(crate) points: Vec<(f64, f64)>,
    /// Rows of the series per point.
    pub(crate) rows_per_point: usize,
}

impl OverTime {
    /// Throughput in `series` from the window start on; `None` if it has none.
    #[must_use]
    pub fn of(series: &Series) -> Option<OverTime> {
        let (times, values) = (series.column("t_s")?, series.column(THROUGHPUT.id)?);
        let rows: Vec<(f64, f64)> = times
            .into_iter()
            .zip(values)
            .filter_map(|(t, v)| Some((t?, v?)))
            .filter(|(t, v)| *t >= 0.0 && v.is_finite())
            .collect();
        let rows_per_point = rows.len().div_ceil(MOST_POINTS).max(1);
        let mean = |chunk: &[(f64, f64)]| {
            let n = chunk.len() as f64;
            chunk.iter().fold((0.0, 0.0), |a, r| (a.0 + r.0 / n, a.1 + r.1 / n))
        };
        let points: Vec<(f64, f64)> = rows.chunks(rows_per_point).map(mean).collect();
        (!points.is_empty()).then_some(OverTime { points, rows_per_point })
    }
}
