//! A small bar chart: shares by bucket, the bars of several platforms side by side.

use std::fmt::Write as _;

use loadline_model::format::number;

use crate::svg::{COLOURS, escape};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 190.0;
const CHAR: f64 = 6.1;
/// Space above and below the bars.
const TOP: f64 = 50.0;
const BOTTOM: f64 = 32.0;

/// One platform's bars.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bars {
    pub(crate) name: String,
    /// Number of the colour.
    pub(crate) colour: usize,
    /// Height (%) and tooltip by place; `None` for no bar.
    pub(crate) heights: Vec<Option<(f64, String)>>,
}

/// The chart as an `svg` element; `places` name the bars from left to right. `None` without a bar.
pub(crate) fn bars(title: &str, places: &[String], all: &[Bars]) -> Option<String> {
    let heights = || all.iter().flat_map(|b| &b.heights).flatten().map(|h| h.0).filter(|h| h.is_finite());
    let most = heights().fold(0.0, f64::max);
    if most <= 0.0 || places.is_empty() {
        return None;
    }
    let top_pct = [5.0, 10.0, 20.0, 25.0, 50.0].into_iter().find(|t| *t >= most).unwrap_or(100.0);
    let (left, right) = (8.0 + 6.0 * CHAR, WIDTH - 4.0);
    let (top, bottom) = (TOP, HEIGHT - BOTTOM);
    let mut s = format!("<svg viewBox=\"0 0 {WIDTH:.0} {HEIGHT:.0}\" role=\"img\" aria-label=\"{}\">", escape(title));
    let _ = write!(s, "<text class=\"ti\" x=\"2\" y=\"13\">{}</text>", escape(title));
    let mut x = 8.0;
    for b in all {
        let colour = b.colour % COLOURS + 1;
        let _ = write!(
            s,
            "<g class=\"c{colour}\"><rect class=\"br\" x=\"{x:.1}\" y=\"22\" width=\"9\" height=\"9\"/><text class=\"le\" \
             x=\"{:.1}\" y=\"30\">{}</text></g>",
            x + 13.0,
            escape(&b.name)
        );
        x += 24.0 + b.name.chars().count() as f64 * CHAR;
    }
    let y = |pct: f64| bottom - (pct / top_pct).clamp(0.0, 1.0) * (bottom - top);
    for tick in [0.0, top_pct / 2.0, top_pct] {
        let class = if tick == 0.0 { "zero" } else { "gr" };
        let decimals = usize::from(tick.fract() != 0.0);
        let _ = write!(
            s,
            "<path class=\"{class}\" d=\"M{left:.1} {:.1}H{right:.1}\"/><text class=\"tk\" text-anchor=\"end\" x=\"{:.1}\" \
             y=\"{:.1}\">{} %</text>",
            y(tick),
            left - 4.0,
            y(tick) + 3.5,
            number(tick, decimals)
        );
    }
    let slot = (right - left) / places.len() as f64;
    let wide = (slot * 0.84 / all.len().max(1) as f64).min(34.0);
    for (n, b) in all.iter().enumerate() {
        let _ = write!(s, "<g class=\"c{}\">", b.colour % COLOURS + 1);
        for (i, height) in b.heights.iter().enumerate().take(places.len()) {
            let Some((pct, tip)) = height.as_ref().filter(|h| h.0.is_finite() && h.0 > 0.0) else { continue };
            let centre = left + slot * (i as f64 + 0.5);
            let from = centre + wide * (n as f64 - all.len() as f64 / 2.0);
            let high = (bottom - y(*pct)).max(0.8);
            let _ = write!(
                s,
                "<rect class=\"br\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"><title>{}</title>\
                 </rect>",
                bottom - high,
                escape(tip)
            );
            // With several platforms the numbers would overlap.
            if all.len() == 1 && *pct >= 0.05 {
                let _ = write!(
                    s,
                    "<text class=\"tk\" text-anchor=\"middle\" x=\"{centre:.1}\" y=\"{:.1}\">{}</text>",
                    bottom - high - 3.5,
                    number(*pct, 1)
                );
            }
        }
        s.push_str("</g>");
    }
    // Leaves out names evenly so that they do not touch.
    let longest = places.iter().map(|p| p.chars().count()).max().unwrap_or(1) as f64 * CHAR + 4.0;
    let every = ((longest / slot).ceil() as usize).max(1);
    for (i, place) in places.iter().enumerate().filter(|(i, _)| i % every == 0) {
        let _ = write!(
            s,
            "<text class=\"tk\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + slot * (i as f64 + 0.5),
            bottom + 15.0,
            escape(place)
        );
    }
    s.push_str("</svg>");
    Some(s)
}
