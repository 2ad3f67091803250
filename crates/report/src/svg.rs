//! Charts of lines: every point has a tooltip with its figures, and lines have error bars, hollow markers and labels at their
//! ends.

use crate::canvas::{CHAR, COLOURS, Canvas, Px, digits, tick_text, ticks, without_overlaps};
use crate::words::cut;

#[derive(Debug, Clone, Default)]
pub(crate) struct ChartPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) bar: Option<(f64, f64)>,
    pub(crate) tip: String,
}

impl ChartPoint {
    fn is_finite(&self) -> bool {
        self.x.is_finite() && self.y.is_finite()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ChartLine {
    pub(crate) name: String,
    pub(crate) points: Vec<ChartPoint>,
    /// Points of tests that no mean includes: hollow and not joined.
    pub(crate) hollow: Vec<ChartPoint>,
    pub(crate) colour: usize,
    pub(crate) opacity: f64,
    /// Whether the line is dashed, for refused tests.
    pub(crate) dashed: bool,
    /// An area behind the line: x, lower and upper end.
    pub(crate) band: Vec<[f64; 3]>,
    /// Texts beside points: x, y and text.
    pub(crate) labels: Vec<(f64, f64, String)>,
    /// A curve fitted to the points, drawn over them.
    pub(crate) fit: Vec<(f64, f64)>,
    /// Ideal line of the points, dashed.
    pub(crate) ideal: Vec<(f64, f64)>,
}

impl ChartLine {
    /// A line through `points` without tooltips.
    pub(crate) fn through(name: &str, colour: usize, points: impl IntoIterator<Item = (f64, f64)>) -> ChartLine {
        let points = points.into_iter().map(|(x, y)| ChartPoint { x, y, ..ChartPoint::default() }).collect();
        ChartLine { name: name.to_owned(), points, colour, ..ChartLine::default() }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) lines: Vec<ChartLine>,
    /// Markers and a legend above, or plain lines with their names at their ends.
    pub(crate) markers: bool,
    /// Markers are small and not joined: many points, with a curve fitted to them.
    pub(crate) dots: bool,
    /// End of the y axis; points above it are cut off.
    pub(crate) y_end: Option<f64>,
    pub(crate) whole_x: bool,
    /// Whether x is logarithmic; its ticks are then at the points.
    pub(crate) log_x: bool,
    /// Times at which something else went on: start and end on the x axis, and what.
    pub(crate) spans: Vec<(f64, f64, String)>,
    /// Least end of the x axis, so that charts below each other have the same.
    pub(crate) x_end: f64,
    /// Whether the y axis goes below 0 if a point or its interval does.
    pub(crate) signed: bool,
    /// Whether there is one line that needs no name.
    pub(crate) unnamed: bool,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Ticks at the points of a logarithmic axis of `width`: the last one, and from the first on those whose texts do not touch others.
fn log_ticks(points: impl Iterator<Item = f64>, width: f64) -> Vec<f64> {
    let mut at: Vec<f64> = points.filter(|x| *x > 0.0).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let [first, .., last] = at[..] else { return at };
    at.rotate_right(1);
    let x = |value: f64| (value / first).ln() / (last / first).ln() * width;
    let marks = without_overlaps(at.into_iter().map(|x| (x, tick_text(x, 1.0))), 5.0, x);
    marks.into_iter().map(|(x, _)| x).collect()
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Start of a logarithmic x axis; 0 for a linear one.
    x_min: f64,
    x_max: f64,
    y_min: f64,
    y_max: f64,
}

impl Frame {
    fn x(&self, x: f64) -> f64 {
        let share =
            if self.x_min > 0.0 { (x / self.x_min).ln() / (self.x_max / self.x_min).ln() } else { x / self.x_max };
        // With one point the axis has no length.
        self.left + if share.is_finite() { share } else { 0.0 }.clamp(0.0, 1.0) * (self.right - self.left)
    }

    fn y(&self, y: f64) -> f64 {
        self.bottom - ((y - self.y_min) / (self.y_max - self.y_min)).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

impl Chart {
    /// Plain lines with their names at their ends; axes have the labels x and y.
    pub(crate) fn of_lines(
        title: String,
        [x_label, y_label]: [impl Into<String>; 2],
        lines: Vec<ChartLine>,
        (width, height): (f64, f64),
    ) -> Chart {
        Chart { title, x_label: x_label.into(), y_label: y_label.into(), lines, width, height, ..Chart::default() }
    }

    /// Points joined by lines, small enough for three charts side by side.
    pub(crate) fn of_points(title: String, labels: [impl Into<String>; 2], lines: Vec<ChartLine>) -> Chart {
        Chart { markers: true, ..Chart::of_lines(title, labels, lines, (340.0, 230.0)) }
    }

    pub(crate) fn drawn(&self) -> Option<crate::doc::Chart> {
        let all = || self.lines.iter().flat_map(|l| l.points.iter().chain(&l.hollow)).filter(|p| p.is_finite());
        all().next()?;
        let x_max = all().map(|p| p.x).fold(self.x_end, f64::max);
        let drawn = self.lines.iter().flat_map(|l| l.band.iter().map(|b| b[2]).chain(l.fit.iter().map(|f| f.1)));
        let y_points = all().map(|p| p.bar.map_or(p.y, |b| b.1.max(p.y)));
        let y_max = self.y_end.unwrap_or_else(|| y_points.chain(drawn.filter(|y| y.is_finite())).fold(0.0, f64::max));
        let lows = all().map(|p| p.bar.map_or(p.y, |b| b.0.min(p.y)));
        let lowest = lows.filter(|y| y.is_finite()).fold(0.0, f64::min);
        let y_min = if self.signed { lowest } else { 0.0 };
        let (mut y_ticks, y_step) = ticks(y_max - y_min, 4.0, false);
        if y_min < 0.0 {
            let (first, last) = ((y_min / y_step).floor() as i32, (y_max / y_step).ceil() as i32);
            y_ticks = (first..=last).map(|i| f64::from(i) * y_step).collect();
        }
        let (x_ticks, x_step) = if self.log_x {
            (log_ticks(all().map(|p| p.x), self.width * 0.85), 1.0)
        } else {
            ticks(x_max, 6.0, self.whole_x)
        };
        let y_texts: Vec<String> = y_ticks.iter().map(|t| tick_text(*t, y_step)).collect();
        let widest = y_texts.iter().map(|t| t.chars().count()).max().unwrap_or(1) as f64;
        let mut canvas = Canvas::default();
        let mut top = 40.0;
        if self.markers && !self.unnamed {
            let mark = |canvas: &mut Canvas, colour: usize, x: f64, y: f64| {
                canvas.series("mk", colour, "", |canvas| canvas.shape(self.mark(colour, x, y), "", ""));
            };
            top += canvas.legend(self.width, self.lines.iter().map(|l| (l.name.as_str(), l.colour)), mark) - 12.0;
        }
        let names = self.lines.iter().map(|l| cut(&l.name, 18).chars().count());
        let labels = if self.markers { 0.0 } else { names.max().unwrap_or(0) as f64 * CHAR + 6.0 };
        let whole = self.whole_x || x_max <= 0.0;
        let x_top = if whole { x_ticks.last().copied().unwrap_or(1.0) } else { x_max };
        // The text of the last tick is centred below it, which may be the end of the axis.
        let last = x_ticks.iter().rfind(|tick| **tick <= x_top * 1.000_001);
        let beyond = last.map_or(0.0, |last| tick_text(*last, x_step).chars().count() as f64 * CHAR / 2.0 + 4.0);
        let frame = Frame {
            // Charts below each other have their axes below each other.
            left: 12.0 + if self.x_end > 0.0 { widest.max(9.0) } else { widest } * CHAR,
            right: self.width - beyond.max(14.0) - labels,
            top,
            bottom: self.height - 38.0,
            x_min: if self.log_x { x_ticks.first().copied().unwrap_or(0.0) } else { 0.0 },
            x_max: x_top,
            y_min: y_ticks.first().copied().unwrap_or(0.0),
            y_max: y_ticks.last().copied().unwrap_or(1.0),
        };
        canvas.text("ax", (2.0, frame.top - 11.0), &self.y_label);
        grid(&mut canvas, &frame, &y_ticks, &y_texts, &x_ticks, x_step);
        canvas.text("ax e", (frame.right, self.height - 6.0), &self.x_label);
        if !self.spans.is_empty() {
            canvas.series("sp", 0, "", |canvas| {
                for (from, to, what) in &self.spans {
                    let (x, end) = (frame.x(*from), frame.x(*to));
                    // A short one is seen as well.
                    canvas.bar([x, frame.top, (end - x).max(2.0), frame.bottom - frame.top], "", what);
                }
            });
        }
        for line in &self.lines {
            self.line(&mut canvas, &frame, line);
        }
        if !self.markers {
            self.end_labels(&mut canvas, &frame);
        }
        Some(canvas.finish(&self.title, self.width, self.height))
    }

    fn line(&self, canvas: &mut Canvas, frame: &Frame, line: &ChartLine) {
        // A line that is lighter than others is one of many.
        let opacity = match line.opacity {
            opacity if opacity > 0.0 && opacity < 1.0 => format!("o{:.0}", opacity * 10.0),
            _ => String::new(),
        };
        canvas.series(&opacity, line.colour, &line.name, |canvas| {
            let joined = |points: &mut dyn Iterator<Item = (f64, f64)>| -> String {
                let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
                finite.map(|(x, y)| format!("{},{}", Px(frame.x(x)), Px(frame.y(y)))).collect::<Vec<_>>().join(" ")
            };
            if !line.band.is_empty() {
                let ends = line.band.iter().map(|b| (b[0], b[2])).chain(line.band.iter().rev().map(|b| (b[0], b[1])));
                canvas.put(format_args!("<polygon class=\"bd\" points=\"{}\"/>", joined(&mut { ends })));
            }
            let class = if line.dashed { "ln da" } else { "ln" };
            let parts = || line.points.split(|p| !p.is_finite());
            // A line breaks where there is no value.
            let runs = parts().filter(|part| part.len() > 1 && !self.dots);
            if self.markers {
                for part in runs {
                    let path = joined(&mut part.iter().map(|p| (p.x, p.y)));
                    canvas.put(format_args!("<polyline class=\"{class}\" points=\"{path}\"/>"));
                }
            } else {
                in_its_units(canvas, frame, class, &runs.collect::<Vec<_>>());
            }
            // A point without a neighbour has no line.
            let marked = parts().filter(|part| self.markers || part.len() == 1).flatten();
            self.marks(canvas, frame, line, &marked.collect::<Vec<_>>());
            self.labels(canvas, frame, line);
            for (class, curve) in [("ln da", &line.ideal), ("ft", &line.fit)] {
                if curve.len() > 1 {
                    let path = joined(&mut curve.iter().copied());
                    canvas.put(format_args!("<polyline class=\"{class}\" points=\"{path}\"/>"));
                }
            }
        });
    }

    /// Adds the error bars and markers of `points`, and those of the hollow ones.
    fn marks(&self, canvas: &mut Canvas, frame: &Frame, line: &ChartLine, points: &[&ChartPoint]) {
        let bar = |p: &&ChartPoint| {
            let (low, high) = p.bar.filter(|b| b.0.is_finite() && b.1.is_finite())?;
            let (x, a, b) = (frame.x(p.x), frame.y(low), frame.y(high));
            Some(format!("M{0} {1}V{2}M{3} {1}h6M{3} {2}h6", Px(x), Px(a), Px(b), Px(x - 3.0)))
        };
        let bars: String = points.iter().filter_map(bar).collect();
        if !bars.is_empty() {
            canvas.path("er", &bars);
        }
        let hollow: Vec<&ChartPoint> = line.hollow.iter().filter(|p| self.markers && p.is_finite()).collect();
        let small = if self.dots { " sm" } else { "" };
        for (class, points) in [("mk", points), ("mk ho", hollow.as_slice())] {
            if points.is_empty() {
                continue;
            }
            canvas.put(format_args!("<g class=\"{class}{small}\">"));
            for p in points {
                let ends = p.bar.map_or_else(String::new, |(low, high)| format!(";{};{}", digits(low), digits(high)));
                let data = format!("{};{}{ends}", digits(p.x), digits(p.y));
                canvas.shape(self.mark(line.colour, frame.x(p.x), frame.y(p.y)), &data, &p.tip);
            }
            canvas.put(format_args!("</g>"));
        }
    }

    /// Adds the texts beside points that leave each other space, from the last one on.
    fn labels(&self, canvas: &mut Canvas, frame: &Frame, line: &ChartLine) {
        let mut taken: Vec<(f64, f64, &str)> = Vec::new();
        for (x, y, text) in line.labels.iter().rev().filter(|(x, y, _)| x.is_finite() && y.is_finite()) {
            let (x, y) = (frame.x(*x) - 5.0, frame.y(*y) - 5.0);
            if !taken.iter().any(|(a, b, _)| (a - x).abs() < 3.0 * CHAR && (b - y).abs() < 11.0) {
                taken.push((x, y, text));
            }
        }
        if !taken.is_empty() {
            canvas.texts("tk e", taken);
        }
    }

    fn mark(&self, colour: usize, x: f64, y: f64) -> (&'static str, String) {
        match self.dots {
            true => ("circle", format!("cx=\"{}\" cy=\"{}\" r=\"2.2\"", Px(x), Px(y))),
            false => marker(colour, x, y),
        }
    }

    /// Names at the right ends of the lines, moved apart if they would overlap.
    fn end_labels(&self, canvas: &mut Canvas, frame: &Frame) {
        let end = |l: &ChartLine| l.points.iter().rev().find(|p| p.y.is_finite()).map(|p| frame.y(p.y));
        let mut ends: Vec<(f64, &ChartLine)> = self.lines.iter().filter_map(|l| Some((end(l)?, l))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gap = ((frame.bottom - frame.top + 20.0) / ends.len().max(1) as f64).min(12.0);
        let mut next = f64::MIN;
        for (y, _) in &mut ends {
            *y = y.max(next);
            next = *y + gap;
        }
        let mut limit = frame.bottom + 2.0;
        for (y, _) in ends.iter_mut().rev() {
            *y = y.min(limit);
            limit = *y - gap;
        }
        let names = ends.into_iter().map(|(y, line)| (frame.right + 5.0, y + 3.5, cut(&line.name, 18)));
        canvas.texts("le", names.filter(|(.., name)| !name.is_empty()));
    }
}

/// Adds lines in the units of their axes, which are linear: so they are short, and hold their values.
fn in_its_units(canvas: &mut Canvas, frame: &Frame, class: &str, lines: &[&[ChartPoint]]) {
    if lines.is_empty() {
        return;
    }
    let across = (frame.right - frame.left) / frame.x_max;
    let up = (frame.top - frame.bottom) / (frame.y_max - frame.y_min);
    let origin = (Px(frame.left), Px(frame.y(0.0)));
    canvas.put(format_args!("<g transform=\"translate({} {})scale({across:.6e} {up:.6e})\">", origin.0, origin.1));
    for line in lines {
        let points = line.iter().map(|p| format!("{},{}", digits(p.x), digits(p.y.max(frame.y_min))));
        let points = points.collect::<Vec<_>>().join(" ");
        canvas.put(format_args!("<polyline class=\"{class}\" points=\"{points}\"/>"));
    }
    canvas.put(format_args!("</g>"));
}

fn grid(canvas: &mut Canvas, frame: &Frame, y_ticks: &[f64], y_texts: &[String], x_ticks: &[f64], x_step: f64) {
    let across = |y: &f64| (*y, format!("M{} {}H{}", Px(frame.left), Px(frame.y(*y)), Px(frame.right)));
    canvas.rules(y_ticks.iter().map(across));
    let beside = y_ticks.iter().zip(y_texts).map(|(y, text)| (frame.left - 5.0, frame.y(*y) + 3.5, text));
    canvas.texts("tk e", beside);
    let x_ticks = || x_ticks.iter().filter(|v| **v <= frame.x_max * 1.000_001);
    canvas.path("zero", &x_ticks().map(|x| format!("M{} {}v4", Px(frame.x(*x)), Px(frame.bottom))).collect::<String>());
    canvas.texts("tk m", x_ticks().map(|x| (frame.x(*x), frame.bottom + 16.0, tick_text(*x, x_step))));
}

/// Element and geometry of marker number `n` at a point; markers differ in shape, not only in colour.
fn marker(n: usize, x: f64, y: f64) -> (&'static str, String) {
    let path = |x: f64, y: f64, d: &str| ("path", format!("d=\"M{} {}{d}z\"", Px(x), Px(y)));
    match n % COLOURS {
        0 => ("circle", format!("cx=\"{}\" cy=\"{}\" r=\"3.6\"", Px(x), Px(y))),
        1 => path(x - 3.3, y - 3.3, "h6.6v6.6h-6.6"),
        2 => path(x, y - 4.8, "l4.2 7.4h-8.4"),
        3 => path(x, y - 4.6, "l4.6 4.6l-4.6 4.6l-4.6 -4.6"),
        4 => path(x, y + 4.8, "l4.2 -7.4h-8.4"),
        _ => path(x - 2.5, y - 4.0, "h5v8h-5"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_goes_below_zero_only_if_it_may_and_a_point_does() {
        let svg = |y: f64, signed: bool| {
            let point = ChartPoint { x: 1.0, y, bar: Some((y - 0.5, y + 0.5)), ..ChartPoint::default() };
            let line = ChartLine {
                points: vec![point.clone(), ChartPoint { x: 2.0, y: 3.0, ..point }],
                ..ChartLine::default()
            };
            let chart =
                Chart { lines: vec![line], markers: true, signed, width: 400.0, height: 270.0, ..Chart::default() };
            chart.drawn().unwrap()
        };
        let below = |svg: &str| svg.contains(">-2<") || svg.contains(">−2<");
        assert!(below(&svg(-1.0, true)) && !below(&svg(-1.0, false)), "{}", svg(-1.0, true));
        assert_eq!(svg(1.0, true), svg(1.0, false));
    }
    #[test]
    fn a_line_breaks_where_there_is_no_value() {
        let points = [1.0, 2.0, f64::NAN, 4.0, 5.0, f64::NAN, 7.0].into_iter().zip(0..);
        let lines = vec![ChartLine::through("", 0, points.map(|(y, x)| (f64::from(x), y)))];
        let svg = Chart { lines, width: 400.0, height: 270.0, ..Chart::default() }.drawn().unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 1, "the last has no neighbour: {svg}");
    }
}
