//! Drawings within the cells of a table: a load line, and a share of the limit.

use crate::canvas::{COLOURS, Canvas};
use crate::doc::Chart;

/// Throughput over jobs, from 0, with the `chosen` job count marked; `None` with fewer than two points.
pub(crate) fn load_line(points: &[(f64, f64)], chosen: f64) -> Option<Chart> {
    const SIZE: (f64, f64) = (64.0, 18.0);
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|p| p.0), most(|p| p.1));
    let at = |(x, y): &(f64, f64)| (2.0 + x / x_most * (SIZE.0 - 5.0), SIZE.1 - 2.0 - y / y_most * (SIZE.1 - 5.0));
    let drawn: Vec<(f64, f64)> = points.iter().map(at).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let (x, y) = points.iter().find(|(x, _)| *x == chosen).map(at)?;
    if drawn.len() < 2 || !(x + y).is_finite() {
        return None;
    }
    let path: Vec<String> = drawn.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut canvas = Canvas::default();
    canvas.put(format_args!("<g class=\"c1\"><polyline class=\"ln\" points=\"{}\"/>", path.join(" ")));
    canvas.put(format_args!("<circle class=\"mk\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/></g>"));
    Some(canvas.within(SIZE))
}

/// A bar of `pct` % within 100 %, in a series' colour.
pub(crate) fn share(pct: f64, colour: usize) -> Chart {
    const SIZE: (f64, f64) = (64.0, 7.0);
    let mut canvas = Canvas::default();
    canvas.put(format_args!("<rect class=\"sp\" width=\"{}\" height=\"{}\"/>", SIZE.0, SIZE.1));
    let (colour, long) = (colour % COLOURS + 1, pct.clamp(0.0, 100.0) / 100.0 * SIZE.0);
    canvas.put(format_args!("<rect class=\"br c{colour}\" width=\"{long:.1}\" height=\"{}\"/>", SIZE.1));
    canvas.within(SIZE)
}
