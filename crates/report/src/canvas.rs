//! Canvas of all charts, as SVG without a charting library. Colours are CSS variables, so that a chart drawn once is
//! right on dark and light screens and on paper; shapes have tooltips with their figures.

use std::fmt::{self, Arguments, Display, Formatter, Write as _};

use loadline_model::format::number;

use crate::doc::Chart;
use crate::escape::Text;
use crate::words::cut;

/// Number of colours and markers before they repeat.
pub(crate) const COLOURS: usize = 6;
pub(crate) const CHAR: f64 = 6.1;
const TITLE_CHAR: f64 = 7.0;

/// A place in pixels, with one decimal at most.
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

#[derive(Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    /// Adds SVG, whose texts are escaped.
    pub(crate) fn put(&mut self, svg: Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _ = self.0.write_fmt(svg);
    }

    /// Adds `text` at `x` and `y`: its start, or with the classes `m` and `e` its middle and its end.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.put(format_args!("<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>", Px(x), Px(y), Text(text)));
    }

    pub(crate) fn texts<T: AsRef<str>>(&mut self, class: &str, texts: impl IntoIterator<Item = (f64, f64, T)>) {
        self.put(format_args!("<g class=\"{class}\">"));
        for (x, y, text) in texts {
            self.put(format_args!("<text x=\"{}\" y=\"{}\">{}</text>", Px(x), Px(y), Text(text.as_ref())));
        }
        self.put(format_args!("</g>"));
    }

    pub(crate) fn path(&mut self, class: &str, d: &str) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// Adds the lines of a grid, each with its value: that at 0 is an axis.
    pub(crate) fn rules(&mut self, lines: impl Iterator<Item = (f64, String)>) {
        let (zero, others): (Vec<_>, Vec<_>) = lines.partition(|(value, _)| *value == 0.0);
        for (class, lines) in [("gr", others), ("zero", zero)] {
            if !lines.is_empty() {
                self.path(class, &lines.into_iter().map(|(_, d)| d).collect::<String>());
            }
        }
    }

    /// Adds a shape: an element and its geometry. `data` is what it shows, in parts between semicolons: x, y, and the ends of its
    /// interval.
    pub(crate) fn shape(&mut self, (element, geometry): (&str, String), data: &str, tip: &str) {
        let data = if data.is_empty() { String::new() } else { format!(" data-v=\"{}\"", Text(data)) };
        let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", Text(tip)) };
        self.put(format_args!("<{element} {geometry}{data}>{tip}</{element}>"));
    }

    pub(crate) fn bar(&mut self, [x, y, width, height]: [f64; 4], data: &str, tip: &str) {
        let geometry = format!("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", Px(x), Px(y), Px(width), Px(height));
        self.shape(("rect", geometry), data, tip);
    }

    /// Adds what `drawn` draws of the series `name` in a class and a series' colour.
    pub(crate) fn series(&mut self, class: &str, colour: usize, name: &str, drawn: impl FnOnce(&mut Canvas)) {
        let name = if name.is_empty() { String::new() } else { format!(" data-n=\"{}\"", Text(name)) };
        self.put(format_args!("<g class=\"{class} c{}\"{name}>", colour % COLOURS + 1));
        drawn(self);
        self.put(format_args!("</g>"));
    }

    /// Adds names with their marks in rows that fit `width`; returns the baseline of the last row.
    pub(crate) fn legend<'n>(
        &mut self,
        width: f64,
        names: impl IntoIterator<Item = (&'n str, usize)>,
        mark: impl Fn(&mut Canvas, usize, f64, f64),
    ) -> f64 {
        let (mut x, mut y) = (8.0, 32.0);
        for (name, colour) in names {
            let name = cut(name, 40);
            let wide = 30.0 + name.chars().count() as f64 * CHAR;
            if x > 8.0 && x + wide > width {
                (x, y) = (8.0, y + 16.0);
            }
            mark(self, colour, x, y - 4.0);
            self.text("le", (x + 9.0, y), &name);
            x += wide;
        }
        y
    }

    /// Adds names below columns from `left` on that are `slot` wide, without those that would touch.
    pub(crate) fn below(&mut self, names: &[String], left: f64, slot: f64, bottom: f64) {
        let every = ((longest(names) + 4.0) / slot).ceil().max(1.0) as usize;
        let names = names.iter().enumerate().step_by(every);
        self.texts("tk m", names.map(|(i, name)| (left + slot * (i as f64 + 0.5), bottom + 14.0, name)));
    }

    /// A drawing within a cell, which says nothing that the row does not say in words.
    pub(crate) fn within(self, (width, height): (f64, f64)) -> Chart {
        let size = format!("viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\"");
        format!("<svg {size} aria-hidden=\"true\">{}</svg>", self.0)
    }

    pub(crate) fn finish(self, title: &str, width: f64, height: f64) -> Chart {
        // A title that is too long is drawn narrower.
        let (most, length) = (width - 4.0, title.chars().count() as f64 * TITLE_CHAR);
        let fit = if length > most {
            format!(" textLength=\"{most:.0}\" lengthAdjust=\"spacingAndGlyphs\"")
        } else {
            String::new()
        };
        let (title, drawn) = (Text(title), self.0);
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\"><text class=\"ti\" x=\"2\" y=\"13\"{fit}>\
             {title}</text>{drawn}</svg>"
        )
    }
}

/// `value` with five digits that count, as browsers read it.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        a if a != 0.0 && !(1e-4..1e7).contains(&a) => format!("{value:.4e}"),
        a => {
            let decimals = (4 - a.max(1e-4).log10().floor() as i32).max(0);
            let shown = format!("{value:.*}", decimals as usize);
            if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.').to_owned() } else { shown }
        }
    }
}

pub(crate) fn longest(names: &[String]) -> f64 {
    names.iter().map(|name| name.chars().count()).max().unwrap_or(1) as f64 * CHAR
}

/// Those of `marks`, the most important first, whose texts leave each other `gap`, in the order of their values; `x` is their place.
pub(crate) fn without_overlaps(
    marks: impl IntoIterator<Item = (f64, String)>,
    gap: f64,
    x: impl Fn(f64) -> f64,
) -> Vec<(f64, String)> {
    let mut taken: Vec<(f64, f64, (f64, String))> = Vec::new();
    for (value, text) in marks {
        let half = (longest(std::slice::from_ref(&text)) + gap) / 2.0;
        let (from, to) = (x(value) - half, x(value) + half);
        if taken.iter().all(|(begin, end, _)| to < *begin || from > *end) {
            taken.push((from, to, (value, text)));
        }
    }
    taken.sort_by(|a, b| a.0.total_cmp(&b.0));
    taken.into_iter().map(|(.., mark)| mark).collect()
}

/// Ticks from 0 to at least `max` in steps of 1, 2 or 5 times a power of ten, and the step.
pub(crate) fn ticks(max: f64, about: f64, whole: bool) -> (Vec<f64>, f64) {
    let max = if max.is_finite() && max > 0.0 { max.min(1e300) } else { 1.0 };
    let rough = max / about;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|f| f * power >= rough * 0.999_999).unwrap_or(10.0);
    let mut step = factor * power;
    if whole {
        step = step.max(1.0).ceil();
    }
    let n = (max / step * 0.999_999).ceil().clamp(1.0, 20.0) as u32;
    ((0..=n).map(|i| f64::from(i) * step).collect(), step)
}

pub(crate) fn tick_text(value: f64, step: f64) -> String {
    if value != 0.0 && !(1e-4..1e9).contains(&step) {
        return format!("{value:.1e}");
    }
    let is_whole = |decimals: &i32| {
        let s = step * 10f64.powi(*decimals);
        (s - s.round()).abs() < 1e-6 * s
    };
    number(value, (0..=6).find(is_whole).map_or(6, |decimals| decimals as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_start_at_zero_and_reach_the_maximum() {
        for max in [1e-9, 0.3, 1.0, 7.0, 72.0, 367_848.0, 1e12, 1e300] {
            let (t, _) = ticks(max, 4.0, false);
            assert_eq!(t[0], 0.0);
            assert!(*t.last().unwrap() >= max * 0.999 && t.len() <= 8, "{max}: {t:?}");
        }
        assert_eq!(ticks(3.0, 6.0, true).0, [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn tick_texts_have_the_decimals_of_their_step() {
        for (value, step, text) in [(0.5, 0.25, "0.50"), (2000.0, 1000.0, "2,000"), (1e300, 1e300, "1.0e300")] {
            assert_eq!(tick_text(value, step), text);
        }
    }
}
