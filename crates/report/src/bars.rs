//! Charts of bars: standing ones side by side or stacked, ratios with their intervals, and a heat map; and drawings within the cells of
//! a table, a load line and a share of the limit.

use loadline_analyze::BoundBy;
use loadline_analyze::stats::Interval;
use loadline_model::format::number;

use crate::canvas::{CHAR, Canvas, Px, digits, longest, tick_text, ticks, without_overlaps};
use crate::doc::Chart;
use crate::words::ratio;

const WIDTH: f64 = 480.0;
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
    canvas.series("br", colour, "", |canvas| canvas.bar([x - 4.0, y - 4.0, 9.0, 9.0], "", ""));
}

#[derive(Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) places: Vec<String>,
    /// Names and colours of the bars of each place.
    pub(crate) parts: Vec<(String, usize)>,
    pub(crate) heights: Vec<Vec<Height>>,
    pub(crate) stacked: bool,
}

impl Bars {
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
        let top = canvas.legend(WIDTH, self.parts.iter().map(|(name, colour)| (name.as_str(), *colour)), square) + 27.0;
        let (left, right, bottom) = (8.0 + 6.0 * CHAR, WIDTH - 4.0, top + 130.0);
        let high = |value: f64| value / ticks.last().copied().unwrap_or(1.0) * (bottom - top);
        canvas.text("ax", (2.0, top - 11.0), &self.y_label);
        let rule = |tick: &f64| (*tick, format!("M{} {}H{}", Px(left), Px(bottom - high(*tick)), Px(right)));
        canvas.rules(ticks.iter().map(rule));
        canvas.texts("tk e", ticks.iter().map(|t| (left - 4.0, bottom - high(*t) + 3.5, tick_text(*t, step))));
        let slot = (right - left) / self.places.len() as f64;
        let beside = if self.stacked { 1 } else { self.parts.len().max(1) };
        let wide = (slot * 0.84 / beside as f64).min(40.0);
        let mut bases = vec![bottom; self.places.len()];
        let mut numbers = Vec::new();
        for (i, (name, colour)) in self.parts.iter().enumerate() {
            canvas.series("br", *colour, name, |canvas| {
                for (n, (place, heights)) in self.places.iter().zip(&self.heights).enumerate() {
                    let Some((value, tip)) = heights.get(i).and_then(seen) else { continue };
                    let (offset, tall) = if self.stacked { (0, high(value)) } else { (i, high(value).max(0.8)) };
                    let centre = left + slot * (n as f64 + 0.5);
                    let x = centre + wide * (offset as f64 - beside as f64 / 2.0);
                    canvas.bar([x, bases[n] - tall, wide, tall], &format!("{place};{}", digits(value)), tip);
                    // The numbers of several would overlap.
                    if self.parts.len() == 1 && value >= 0.05 {
                        numbers.push((centre, bases[n] - tall - 3.5, number(value, 1)));
                    }
                    bases[n] -= if self.stacked { tall } else { 0.0 };
                }
            });
        }
        canvas.texts("tk m", numbers);
        canvas.below(&self.places, left, slot, bottom);
        canvas.text("ax e", (right, bottom + BOTTOM - 4.0), &self.x_label);
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
    let slot = (WIDTH - 4.0 - left) / columns.len() as f64;
    let mut canvas = Canvas::default();
    let beside = rows.iter().enumerate().map(|(i, row)| (left - 4.0, bottom - ROW * (i as f64 + 0.3), row));
    canvas.texts("tk e", beside);
    for (r, row) in rows.iter().enumerate() {
        canvas.series("br", 0, row, |canvas| {
            for (c, (name, column)) in columns.iter().zip(shares).enumerate() {
                let Some((pct, tip)) = column.get(r).and_then(seen) else { continue };
                // By the root, so that a tail of a per mille is seen as well.
                let opacity = 0.06 + 0.94 * (pct / 100.0).clamp(0.0, 1.0).sqrt();
                let (x, y) = (Px(left + slot * c as f64 + 0.5), Px(bottom - ROW * (r as f64 + 1.0) + 0.5));
                let (wide, high) = (Px(slot - 1.0), Px(ROW - 1.0));
                let geometry =
                    format!("x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" opacity=\"{opacity:.2}\"");
                canvas.shape(("rect", geometry), &format!("{name};{}", digits(pct)), tip);
            }
        });
    }
    canvas.below(columns, left, slot, bottom);
    canvas.text("ax e", (WIDTH - 4.0, bottom + BOTTOM - 4.0), x_label);
    Some(canvas.finish(title, WIDTH, bottom + BOTTOM))
}

/// Ratios that are marked on an axis of this half width (the logarithm of its end): round ones, whose logarithms they come with.
fn marked(widest: f64) -> Vec<(f64, String)> {
    const ROUND: [f64; 15] = [0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];
    if widest > 1.0 {
        let within = ROUND.into_iter().filter(|round| round.ln().abs() <= widest);
        return within.map(|round| (round.ln(), round.to_string())).collect();
    }
    let (steps, step) = ticks(widest.exp_m1(), 2.0, false);
    let both = steps.iter().flat_map(|by| [1.0 + by, 1.0 - by]).filter(|round| *round > 0.0);
    both.skip(1).map(|round| (round.ln(), tick_text(round, step))).collect()
}

/// Ratios as bars from 1 with their intervals, on a logarithmic axis; `margin` is that of equivalence, as a share, and 0 without one.
pub(crate) fn intervals(title: &str, rows: &[(String, f64, Option<Interval>)], margin: f64) -> Option<Chart> {
    const ROW: f64 = 20.0;
    let ends = |(_, value, interval): &(String, f64, Option<Interval>)| {
        interval.map_or([*value, *value], |i| [i.low, i.high]).map(|end| end.max(1e-9).ln())
    };
    let band = (2.0 * margin.ln_1p()).max(0.01);
    let [low, high] = rows.iter().flat_map(ends).fold([-band, band], |[a, b], end| [a.min(end), b.max(end)]);
    let (low, high) = (low * 1.08, high * 1.08);
    if rows.is_empty() || !(high - low).is_finite() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|(name, ..)| name.clone()).collect();
    // Space for capitals, and for the number behind the longest bar.
    let (left, right, bottom) = (14.0 + 1.15 * longest(&names), WIDTH - 48.0, TOP + ROW * rows.len() as f64);
    let x = |value: f64| left + (value.max(1e-9).ln() - low) / (high - low) * (right - left);
    let mut canvas = Canvas::default();
    if margin > 0.0 {
        let [from, to] = [1.0 / (1.0 + margin), 1.0 + margin].map(x);
        canvas.series("bd", 2, "", |canvas| canvas.bar([from, TOP, to - from, bottom - TOP], "", "equivalent"));
    }
    let mut marks = marked(high.max(-low));
    marks.retain(|(ln, _)| (low..=high).contains(ln));
    marks.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let marks = without_overlaps(marks, 0.0, |ln| x(ln.exp()));
    canvas.rules(marks.iter().map(|(ln, _)| (*ln, format!("M{} {TOP}V{}", Px(x(ln.exp())), Px(bottom)))));
    canvas.texts("tk m", marks.iter().map(|(ln, text)| (x(ln.exp()), bottom + 14.0, text)));
    let at = |n: usize| TOP + ROW * (n as f64 + 0.5);
    canvas.texts("tk e", names.iter().enumerate().map(|(n, name)| (left - 6.0, at(n) + 3.5, name)));
    let mut numbers = Vec::new();
    for (n, (name, value, interval)) in rows.iter().enumerate() {
        let (y, ends) = (at(n), interval.map(|i| [i.low, i.high]));
        let said = ends
            .map_or_else(|| " (no interval)".to_owned(), |[low, high]| format!(" ({} to {})", ratio(low), ratio(high)));
        let data = ends.map_or_else(String::new, |[low, high]| format!(";{};{}", digits(low), digits(high)));
        let [from, to] = [value.min(1.0), value.max(1.0)].map(x);
        // What is less sure is paler.
        let class = if ends.is_some() { "br" } else { "br pale" };
        canvas.series(class, usize::from(*value < 1.0), "", |canvas| {
            let place = [from, y - 5.0, (to - from).max(1.0), 10.0];
            canvas.bar(place, &format!("{name};{}{data}", digits(*value)), &format!("{name}: {}{said}", ratio(*value)));
        });
        if let Some([low, high]) = ends.map(|ends| ends.map(x).map(Px)) {
            let (y, up) = (Px(y), Px(y - 4.0));
            canvas.path("wh", &format!("M{low} {y}H{high}M{low} {up}v8M{high} {up}v8"));
        }
        numbers.push((ends.map_or(to, |[_, high]| x(high).max(to)) + 5.0, y + 3.5, ratio(*value)));
    }
    canvas.texts("tk", numbers);
    Some(canvas.finish(title, WIDTH, bottom + 24.0))
}

/// Throughput over jobs, from 0, with the `chosen` job count marked; `None` with fewer than two points.
pub(crate) fn load_line(points: &[(f64, f64)], chosen: f64) -> Option<Chart> {
    const SIZE: (f64, f64) = (110.0, 26.0);
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let (x_most, y_most) = (most(|p| p.0), most(|p| p.1));
    let at = |(x, y): &(f64, f64)| (3.0 + x / x_most * (SIZE.0 - 7.0), SIZE.1 - 1.0 - y / y_most * (SIZE.1 - 5.0));
    let drawn: Vec<(f64, f64)> = points.iter().map(at).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let (x, y) = points.iter().find(|(x, _)| *x == chosen).map(at)?;
    let ([first, .., last], true) = (drawn.as_slice(), (x + y).is_finite()) else { return None };
    let path: Vec<String> = drawn.iter().map(|(x, y)| format!("{} {}", Px(*x), Px(*y))).collect();
    let (path, base) = (path.join("L"), SIZE.1 - 1.0);
    let mut canvas = Canvas::default();
    canvas.series("", 0, "", |canvas| {
        canvas.path("bd", &format!("M{path}V{base}H{}z", Px(first.0)));
        canvas.path("ln", &format!("M{path}"));
        canvas.put(format_args!("<circle class=\"mk\" cx=\"{}\" cy=\"{}\" r=\"3.4\"/>", Px(x), Px(y)));
    });
    canvas.path("zero", &format!("M0 {base}H{}", Px(last.0.max(SIZE.0))));
    Some(canvas.within(SIZE))
}

/// A bar of `pct` % within 100 %, in the colour of what bounds the workload.
pub(crate) fn share(pct: f64, bound: BoundBy) -> Chart {
    let colour = match bound {
        BoundBy::Cpu | BoundBy::Client => 0,
        BoundBy::StorageReads | BoundBy::StorageWrites => 1,
        BoundBy::LogSync | BoundBy::LogWrite | BoundBy::DeviceBandwidth | BoundBy::SingleWriter => 2,
        BoundBy::Locks | BoundBy::Replica | BoundBy::RoundTrip => 3,
        BoundBy::Rate | BoundBy::ThinkTime | BoundBy::ScriptSleep | BoundBy::Connecting => 4,
        BoundBy::Unknown => 5,
    };
    const SIZE: (f64, f64) = (110.0, 12.0);
    let mut canvas = Canvas::default();
    canvas.put(format_args!("<rect class=\"sp\" width=\"{}\" height=\"{}\"/>", SIZE.0, SIZE.1));
    let long = pct.clamp(0.0, 100.0) / 100.0 * SIZE.0;
    canvas.series("br", colour, "", |canvas| canvas.bar([0.0, 0.0, long, SIZE.1], "", ""));
    canvas.within(SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_darker_the_larger_its_share() {
        let names = ["a".to_owned(), "b".to_owned()];
        let share = |pct: f64| Some((pct, "<x>".to_owned()));
        let chart = heat("t", "Jobs", &names, &names, &[vec![share(1.0), None], vec![None, share(25.0)]]).unwrap();
        let opacities = chart.split(" opacity=").skip(1).filter_map(|rest| rest.split('"').nth(1));
        assert_eq!(opacities.collect::<Vec<_>>(), ["0.15", "0.53"]);
        assert!(!chart.contains("<x>"));
        let (places, parts) = (names.to_vec(), vec![("a".to_owned(), 0)]);
        let heights = vec![vec![share(0.0)], vec![share(0.0)]];
        assert!(Bars { places, parts, heights, ..Bars::default() }.drawn().is_none(), "zeros only");
        assert!(heat("t", "Jobs", &names, &names, &[vec![None, share(f64::NAN), share(-1.0)]]).is_none());
    }
}
