//! A chart of ratios with their intervals, one row each, on a logarithmic axis; the margin of equivalence is a band.

use std::fmt::Write as _;

use loadline_model::format::counted;

use crate::content::ratios::{Shown, ratio};
use crate::svg::escape;

const WIDTH: f64 = 600.0;
const CHAR: f64 = 6.1;
/// Height of a row, and the space above and below the rows.
const ROW: f64 = 20.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 24.0;

/// The chart of the main figures as an `svg` element; `margin` is that of equivalence, as a share. `None` without a ratio.
pub(crate) fn ratios(title: &str, rows: &[Shown], margin: f64) -> Option<String> {
    let rows: Vec<(&Shown, f64)> =
        rows.iter().filter(|row| row.main).filter_map(|row| Some((row, row.ratio.filter(|r| *r > 0.0)?))).collect();
    let ends = |(row, value): &(&Shown, f64)| {
        let ends = row.interval.map_or([*value, *value], |i| [i.low, i.high]);
        ends.map(|end| end.max(1e-9).ln().abs())
    };
    let widest = rows.iter().flat_map(ends).fold(2.0 * margin.ln_1p(), f64::max) * 1.08;
    if rows.is_empty() || !widest.is_finite() || widest <= 0.0 {
        return None;
    }
    let label = |row: &Shown| match row.jobs {
        Some(jobs) => format!("{}, {}", row.workload, counted(jobs as usize, "job")),
        None => row.workload.clone(),
    };
    let left = 12.0 + CHAR * rows.iter().map(|(row, _)| label(row).chars().count()).max().unwrap_or(0) as f64;
    let (right, bottom) = (WIDTH - 8.0, TOP + ROW * rows.len() as f64);
    let height = bottom + BOTTOM;
    let x = |value: f64| left + (value.max(1e-9).ln() / widest + 1.0) / 2.0 * (right - left);
    let mut s = format!("<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">", escape(title));
    let _ = write!(s, "<text class=\"ti\" x=\"2\" y=\"13\">{}</text>", escape(title));
    let band = [x(1.0 / (1.0 + margin)), x(1.0 + margin)];
    let _ = write!(
        s,
        "<g class=\"c3\"><rect class=\"br\" opacity=\"0.2\" x=\"{:.1}\" y=\"{TOP:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>\
         equivalent</title></rect></g>",
        band[0],
        band[1] - band[0],
        bottom - TOP
    );
    for end in [-widest * 0.9, -widest * 0.45, 0.0, widest * 0.45, widest * 0.9] {
        let class = if end == 0.0 { "zero" } else { "gr" };
        let _ = write!(
            s,
            "<path class=\"{class}\" d=\"M{0:.1} {TOP:.1}V{bottom:.1}\"/><text class=\"tk\" text-anchor=\"middle\" x=\"{0:.1}\" \
             y=\"{1:.1}\">{2}</text>",
            x(end.exp()),
            bottom + 14.0,
            ratio(end.exp())
        );
    }
    for (n, (row, value)) in rows.iter().enumerate() {
        let y = TOP + ROW * (n as f64 + 0.5);
        let tip = row.interval.map_or_else(
            || format!("{}: {}", label(row), ratio(*value)),
            |i| format!("{}: {} ({} to {})", label(row), ratio(*value), ratio(i.low), ratio(i.high)),
        );
        let _ = write!(
            s,
            "<text class=\"tk\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text><g class=\"c1\">",
            left - 6.0,
            y + 3.5,
            escape(&label(row))
        );
        if let Some(i) = row.interval {
            let (from, to) = (x(i.low), x(i.high));
            let _ = write!(
                s,
                "<rect class=\"br\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"2\"/>",
                y - 1.0,
                (to - from).max(1.0)
            );
        }
        let _ = write!(
            s,
            "<rect class=\"br\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"><title>{}</title></rect></g>",
            x(*value) - 3.5,
            y - 3.5,
            escape(&tip)
        );
    }
    s.push_str("</svg>");
    Some(s)
}
