//! What all charts are drawn with, as SVG without a charting library. Colours are CSS variables, so that a chart drawn once is
//! right on dark and light screens and on paper; shapes have tooltips with their figures.

use std::fmt::{Arguments, Write as _};

use loadline_model::format::number;

use crate::doc::Chart;
use crate::escape::Text;

/// Number of colours and markers before they repeat.
pub(crate) const COLOURS: usize = 6;
pub(crate) const CHAR: f64 = 6.1;

#[derive(Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    /// Adds SVG, whose texts are escaped.
    pub(crate) fn put(&mut self, svg: Arguments<'_>) {
        // Writing to a `String` does not fail.
        let _ = self.0.write_fmt(svg);
    }

    /// Adds `text`, whose `anchor` (`start`, `middle`, `end`) is at `x` and `y`.
    pub(crate) fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = Text(text);
        self.put(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    pub(crate) fn path(&mut self, class: &str, d: Arguments<'_>) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// Adds a rectangle in a series' colour.
    pub(crate) fn bar(&mut self, colour: usize, opacity: f64, [x, y, width, height]: [f64; 4], tip: &str) {
        let (colour, tip) = (colour % COLOURS + 1, Text(tip));
        let opacity = if opacity < 1.0 { format!(" opacity=\"{opacity:.2}\"") } else { String::new() };
        self.put(format_args!(
            "<rect class=\"br c{colour}\"{opacity} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{tip}\
             </title></rect>"
        ));
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
            let name = shortened(name, 40);
            let wide = 30.0 + name.chars().count() as f64 * CHAR;
            if x > 8.0 && x + wide > width {
                (x, y) = (8.0, y + 16.0);
            }
            mark(self, colour, x, y - 4.0);
            self.text("le", "start", (x + 9.0, y), &name);
            x += wide;
        }
        y
    }

    /// Adds names below columns from `left` on that are `slot` wide, without those that would touch.
    pub(crate) fn below(&mut self, names: &[String], left: f64, slot: f64, bottom: f64) {
        let every = ((longest(names) + 4.0) / slot).ceil().max(1.0) as usize;
        for (i, name) in names.iter().enumerate().step_by(every) {
            self.text("tk", "middle", (left + slot * (i as f64 + 0.5), bottom + 14.0), name);
        }
    }

    /// A drawing within a cell, which says nothing that the row does not say in words.
    pub(crate) fn within(self, (width, height): (f64, f64)) -> Chart {
        let svg = format!("<svg viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">{}</svg>", self.0);
        Chart { svg }
    }

    pub(crate) fn finish(self, title: &str, width: f64, height: f64) -> Chart {
        let (title, drawn) = (Text(title), self.0);
        Chart {
            svg: format!(
                "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\"><text class=\"ti\" x=\"2\" y=\"13\">\
                 {title}</text>{drawn}</svg>"
            ),
        }
    }
}

/// Class of a line of the grid at `value`.
pub(crate) fn line_class(value: f64) -> &'static str {
    if value == 0.0 { "zero" } else { "gr" }
}

/// Width of the longest of `names`.
pub(crate) fn longest(names: &[String]) -> f64 {
    names.iter().map(|name| name.chars().count()).max().unwrap_or(1) as f64 * CHAR
}

/// `text` cut to at most `at_most` characters.
pub(crate) fn shortened(text: &str, at_most: usize) -> String {
    if text.chars().count() <= at_most {
        return text.to_owned();
    }
    text.chars().take(at_most.saturating_sub(1)).chain(['…']).collect()
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

/// A tick with the decimals of its step.
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
