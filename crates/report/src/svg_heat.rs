//! A heat map as SVG: a column per moment, a row per band, the darker the larger the share.

use std::fmt::Write as _;

use crate::svg::escape;

/// A heat map.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    pub(crate) title: String,
    /// Names of the bands, the lowest first.
    pub(crate) bands: Vec<String>,
    /// Of each moment the share in each band, 0…1, and what the moment is called.
    pub(crate) columns: Vec<(String, Vec<f64>)>,
    pub(crate) x_label: String,
    pub(crate) width: f64,
}

/// Height of a band.
const ROW: f64 = 13.0;
const TOP: f64 = 24.0;
/// Room for the names of the bands.
const LEFT: f64 = 76.0;
/// Widest cell: of few moments each is not a bar.
const WIDEST: f64 = 24.0;

impl Heat {
    /// The map as an `svg` element; `None` if it is empty.
    pub(crate) fn svg(&self) -> Option<String> {
        if self.bands.is_empty() || self.columns.is_empty() {
            return None;
        }
        let rows = self.bands.len() as f64;
        let (height, title) = (TOP + rows * ROW + 22.0, escape(&self.title));
        let cell = ((self.width - LEFT - 14.0) / self.columns.len() as f64).min(WIDEST);
        let mut s = format!(
            "<svg viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\"><text class=\"ti\" x=\"2\" y=\"13\">{title}</text><g class=\"c1\">",
            self.width
        );
        let y = |band: usize| TOP + (rows - 1.0 - band as f64) * ROW;
        for (at, (moment, shares)) in self.columns.iter().enumerate() {
            for (band, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let name = self.bands.get(band).map_or("", String::as_str);
                let _ = write!(
                    s,
                    "<g><rect class=\"br\" opacity=\"{:.2}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                     <title>{}</title></g>",
                    0.15 + 0.85 * share.clamp(0.0, 1.0),
                    LEFT + at as f64 * cell,
                    y(band),
                    (cell - 0.5).max(0.5),
                    ROW - 1.0,
                    escape(&format!("{moment}, {name}: {:.0} %", share * 100.0))
                );
            }
        }
        s.push_str("</g>");
        for (band, name) in self.bands.iter().enumerate() {
            let _ = write!(
                s,
                "<text class=\"tk\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                y(band) + ROW - 3.0,
                escape(name)
            );
        }
        let _ = write!(
            s,
            "<text class=\"ax\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text></svg>",
            self.width - 14.0,
            height - 6.0,
            escape(&self.x_label)
        );
        Some(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_share_is_a_cell_and_texts_are_escaped() {
        let heat = Heat {
            title: "<t>".to_owned(),
            bands: vec!["≤ 1 ms".to_owned(), "≤ 2 ms".to_owned()],
            columns: vec![("1 s".to_owned(), vec![1.0, 0.0]), ("\"<b>".to_owned(), vec![0.5, 0.5])],
            width: 400.0,
            ..Heat::default()
        };
        let svg = heat.svg().unwrap();
        assert_eq!(svg.matches("<rect").count(), 3, "what is 0 is not drawn");
        assert!(!svg.contains("<t>") && !svg.contains("<b>") && svg.contains("&quot;&lt;b&gt;, ≤ 1 ms: 50 %"), "{svg}");
        assert_eq!(Heat::default().svg(), None);
    }
}
