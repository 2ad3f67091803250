//! Charts of bars: standing ones side by side or stacked, lying ones, intervals of ratios, and a heat map; and drawings within the cells
//! of a table, a load line and a share of the limit.

use loadline_analyze::stats::Interval;
use loadline_model::format::number;

use crate::canvas::{CHAR, COLOURS, Canvas, line_class, longest, tick_text, ticks};
use crate::content::ratios::ratio;
use crate::doc::Chart;

const WIDTH: f64 = 600.0;
/// Space above the drawing, and below for names and a label.
const TOP: f64 = 24.0;
const BOTTOM: f64 = 34.0;

/// A height, or a share in percent, and its tooltip.
pub(crate) type Height = Option<(f64, String)>;

/// Those that can be drawn.
fn seen(height: &Height) -> Option<(f64, &str)> {
    height.as_ref().filter(|(value, _)| value.is_finite() && *value > 0.0).map(|(value, tip)| (*value, tip.as_str()))
}

fn square(canvas: &mut Canvas, colour: usize, x: f64, y: f64) {
    canvas.bar(colour, 1.0, [x - 4.0, y - 4.0, 9.0, 9.0], "");
}

#[derive(Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    /// Names of the places from left to right.
    pub(crate) places: Vec<String>,
    /// Names and colours of the bars of each place.
    pub(crate) parts: Vec<(String, usize)>,
    /// Heights of each place by part.
    pub(crate) heights: Vec<Vec<Height>>,
    /// Whether the bars of a place are one above the other.
    pub(crate) stacked: bool,
}

impl Bars {
    /// The chart; `None` without a bar.
    pub(crate) fn drawn(&self) -> Option<Chart> {
        let whole = |place: &Vec<Height>| {
            let values = place.iter().filter_map(seen).map(|(value, _)| value);
            if self.stacked { values.sum() } else { values.fold(0.0, f64::max) }
        };
        let most = self.heights.iter().map(whole).filter(|most| most.is_finite()).fold(0.0, f64::max);
        if most <= 0.0 || self.places.is_empty() {
            return None;
        }
        let (ticks, step) = ticks(most, 3.0, false);
        let mut canvas = Canvas::default();
        let top = canvas.legend(WIDTH, self.parts.iter().map(|(name, colour)| (name.as_str(), *colour)), square) + 24.0;
        let (left, right, bottom) = (8.0 + 6.0 * CHAR, WIDTH - 4.0, top + 130.0);
        let high = |value: f64| value / ticks.last().copied().unwrap_or(1.0) * (bottom - top);
        canvas.text("ax", "start", (2.0, top - 8.0), &self.y_label);
        for tick in &ticks {
            let y = bottom - high(*tick);
            canvas.path(line_class(*tick), format_args!("M{left:.1} {y:.1}H{right:.1}"));
            canvas.text("tk", "end", (left - 4.0, y + 3.5), &tick_text(*tick, step));
        }
        let slot = (right - left) / self.places.len() as f64;
        let beside = if self.stacked { 1 } else { self.parts.len().max(1) };
        let wide = (slot * 0.84 / beside as f64).min(40.0);
        for (n, place) in self.heights.iter().enumerate().take(self.places.len()) {
            let centre = left + slot * (n as f64 + 0.5);
            let mut base = bottom;
            for (i, ((_, colour), height)) in self.parts.iter().zip(place).enumerate() {
                let Some((value, tip)) = seen(height) else { continue };
                let (offset, tall) = if self.stacked { (0, high(value)) } else { (i, high(value).max(0.8)) };
                let x = centre + wide * (offset as f64 - beside as f64 / 2.0);
                canvas.bar(*colour, 1.0, [x, base - tall, wide, tall], tip);
                // The numbers of several would overlap.
                if self.parts.len() == 1 && value >= 0.05 {
                    canvas.text("tk", "middle", (centre, base - tall - 3.5), &number(value, 1));
                }
                base -= if self.stacked { tall } else { 0.0 };
            }
        }
        canvas.below(&self.places, left, slot, bottom);
        canvas.text("ax", "end", (right, bottom + BOTTOM - 4.0), &self.x_label);
        Some(canvas.finish(&self.title, WIDTH, bottom + BOTTOM))
    }
}

/// A heat map: `rows` from the lowest up, a share for each row of each column. The darker, the larger the share. `None` without any.
pub(crate) fn heat(
    title: &str,
    x_label: &str,
    columns: &[String],
    rows: &[String],
    shares: &[Vec<Height>],
) -> Option<Chart> {
    const ROW: f64 = 15.0;
    shares.iter().flatten().find_map(seen)?;
    let (left, bottom) = (8.0 + longest(rows), TOP + ROW * rows.len() as f64);
    // Of few columns each is not a bar.
    let slot = ((WIDTH - 4.0 - left) / columns.len() as f64).min(90.0);
    let mut canvas = Canvas::default();
    for (i, row) in rows.iter().enumerate() {
        canvas.text("tk", "end", (left - 4.0, bottom - ROW * (i as f64 + 0.3)), row);
    }
    for (c, column) in shares.iter().enumerate().take(columns.len()) {
        for (r, share) in column.iter().enumerate().take(rows.len()) {
            let Some((pct, tip)) = seen(share) else { continue };
            // By the root, so that a tail of a per mille is seen as well.
            let opacity = 0.06 + 0.94 * (pct / 100.0).clamp(0.0, 1.0).sqrt();
            let (x, y) = (left + slot * c as f64 + 0.5, bottom - ROW * (r as f64 + 1.0) + 0.5);
            canvas.bar(0, opacity, [x, y, slot - 1.0, ROW - 1.0], tip);
        }
    }
    canvas.below(columns, left, slot, bottom);
    canvas.text("ax", "end", (WIDTH - 4.0, bottom + BOTTOM - 4.0), x_label);
    Some(canvas.finish(title, WIDTH, bottom + BOTTOM))
}

/// Lying bars from 0 to 100 %, one below the other: their names, and for each a share for every one of `parts`. `None` without a bar.
pub(crate) fn lying(title: &str, names: &[String], parts: &[String], shares: &[Vec<Option<f64>>]) -> Option<Chart> {
    const HIGH: f64 = 13.0;
    shares.iter().flatten().flatten().next()?;
    let mut canvas = Canvas::default();
    let named = parts.iter().enumerate().map(|(colour, part)| (part.as_str(), colour)).filter(|_| parts.len() > 1);
    let top = canvas.legend(WIDTH, named, square) + if parts.len() > 1 { 12.0 } else { -6.0 };
    let slot = HIGH * parts.len().max(1) as f64 + 5.0;
    let (left, bottom) = (16.0 + longest(names), top + slot * names.len() as f64);
    // Space for the number behind the longest bar.
    let unit = (WIDTH - 48.0 - left) / 100.0;
    for mark in [0.0, 25.0, 50.0, 75.0, 100.0] {
        canvas.path(line_class(mark), format_args!("M{:.1} {top:.1}V{bottom:.1}", left + mark * unit));
    }
    for (n, (name, of)) in names.iter().zip(shares).enumerate() {
        let y = top + slot * n as f64;
        canvas.text("tk", "end", (left - 5.0, y + slot / 2.0 + 3.0), name);
        for (i, pct) in of.iter().enumerate() {
            let Some(pct) = pct.filter(|pct| pct.is_finite() && *pct >= 0.0) else { continue };
            let (at, long) = (y + HIGH * i as f64 + 2.0, pct.min(100.0) * unit);
            canvas.bar(i % COLOURS, 1.0, [left, at, long, HIGH - 1.0], "");
            let shown = format!("{} %", number(pct, usize::from(pct < 9.95)));
            canvas.text("tk", "start", (left + long + 4.0, at + HIGH - 3.0), &shown);
        }
    }
    Some(canvas.finish(title, WIDTH, bottom + 6.0))
}

/// Ratios with their intervals, one row each, on a logarithmic axis; `margin` is that of equivalence, as a share. `None` without a ratio.
pub(crate) fn intervals(title: &str, rows: &[(String, f64, Option<Interval>)], margin: f64) -> Option<Chart> {
    const ROW: f64 = 20.0;
    let ends = |(_, value, interval): &(String, f64, Option<Interval>)| {
        interval.map_or([*value, *value], |i| [i.low, i.high]).map(|end| end.max(1e-9).ln().abs())
    };
    let widest = rows.iter().flat_map(ends).fold(2.0 * margin.ln_1p(), f64::max) * 1.08;
    if rows.is_empty() || !widest.is_finite() || widest <= 0.0 {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|(name, ..)| name.clone()).collect();
    let (left, right, bottom) = (12.0 + longest(&names), WIDTH - 8.0, TOP + ROW * rows.len() as f64);
    let x = |value: f64| left + (value.max(1e-9).ln() / widest + 1.0) / 2.0 * (right - left);
    let mut canvas = Canvas::default();
    let band = [1.0 / (1.0 + margin), 1.0 + margin].map(x);
    canvas.bar(2, 0.2, [band[0], TOP, band[1] - band[0], bottom - TOP], "equivalent");
    for end in [-0.9, -0.45, 0.0, 0.45, 0.9] {
        let value = (end * widest).exp();
        canvas.path(line_class(end), format_args!("M{:.1} {TOP:.1}V{bottom:.1}", x(value)));
        canvas.text("tk", "middle", (x(value), bottom + 14.0), &ratio(value));
    }
    for (n, (name, value, interval)) in rows.iter().enumerate() {
        let y = TOP + ROW * (n as f64 + 0.5);
        let range = interval.map_or_else(String::new, |i| format!(" ({} to {})", ratio(i.low), ratio(i.high)));
        canvas.text("tk", "end", (left - 6.0, y + 3.5), name);
        if let Some([from, to]) = interval.map(|i| [x(i.low), x(i.high)]) {
            canvas.bar(0, 1.0, [from, y - 1.0, (to - from).max(1.0), 2.0], "");
        }
        canvas.bar(0, 1.0, [x(*value) - 3.5, y - 3.5, 7.0, 7.0], &format!("{name}: {}{range}", ratio(*value)));
    }
    Some(canvas.finish(title, WIDTH, bottom + 24.0))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of an attribute of the shapes that are no mark of a legend.
    fn values(chart: &Chart, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let of = |shape: &str| shape.split(&start).nth(1)?.split('"').next()?.parse().ok();
        chart.svg.split("<rect").skip(1).filter_map(of).filter(|value| *value != 9.0).collect()
    }

    #[test]
    fn a_stack_is_as_high_as_its_parts_together() {
        let bars = |heights: [[f64; 2]; 2]| Bars {
            places: ["1", "2"].map(String::from).to_vec(),
            parts: vec![("CPU".to_owned(), 0), ("log".to_owned(), 1)],
            heights: heights.map(|place| place.map(|height| Some((height, String::new()))).to_vec()).to_vec(),
            stacked: true,
            ..Bars::default()
        };
        let chart = bars([[0.25, 0.75], [1.0, 1.0]]).drawn().unwrap();
        assert_eq!(values(&chart, "height"), [16.2, 48.8, 65.0, 65.0]);
        assert!(bars([[0.0, 0.0], [f64::NAN, -1.0]]).drawn().is_none());
    }

    #[test]
    fn a_lying_bar_ends_at_the_limit() {
        let names = ["a".to_owned(), "b".to_owned()];
        let chart = lying("t", &names, &names[..1], &[vec![Some(50.0)], vec![Some(250.0)]]).unwrap();
        let long = values(&chart, "width");
        assert!((long[1] / long[0] - 2.0).abs() < 0.01, "{long:?}");
        assert!(chart.svg.contains(">250 %<"), "what is above the limit is said");
        assert!(lying("t", &names, &names, &[vec![None, None]]).is_none());
    }

    #[test]
    fn a_cell_is_the_darker_the_larger_its_share() {
        let names = ["a".to_owned(), "b".to_owned()];
        let share = |pct: f64| Some((pct, "<x>".to_owned()));
        let chart = heat("t", "Jobs", &names, &names, &[vec![share(1.0), None], vec![None, share(25.0)]]).unwrap();
        assert_eq!(values(&chart, "opacity"), [0.15, 0.53]);
        assert!(!chart.svg.contains("<x>"));
        assert!(heat("t", "Jobs", &names, &names, &[vec![None, None]]).is_none());
    }
}
