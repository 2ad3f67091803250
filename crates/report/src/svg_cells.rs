//! Small charts: a heat map of shares and stacked bars over columns of equal width, and bars of shares that lie.

use std::fmt::Write as _;

use loadline_model::format::number;

use crate::svg::{COLOURS, escape};

const WIDTH: f64 = 600.0;
const CHAR: f64 = 6.1;
const ROW: f64 = 15.0;
/// Widest column of a heat map.
const WIDEST: f64 = 90.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 34.0;

/// A cell's share of its column, %, and its tooltip.
pub(crate) type Share = Option<(f64, String)>;

fn head(s: &mut String, title: &str, height: f64) {
    let title = escape(title);
    let _ = write!(
        s,
        "<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\"><text class=\"ti\" x=\"2\" y=\"13\">{title}</text>"
    );
}

fn text(s: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
    let _ =
        write!(s, "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text));
}

/// Names below the columns, without those that would touch.
fn below(s: &mut String, columns: &[String], left: f64, slot: f64, bottom: f64) {
    let longest = columns.iter().map(|c| c.chars().count()).max().unwrap_or(1) as f64 * CHAR + 4.0;
    let every = ((longest / slot).ceil() as usize).max(1);
    for (i, column) in columns.iter().enumerate().filter(|(i, _)| i % every == 0) {
        text(s, "tk", "middle", (left + slot * (i as f64 + 0.5), bottom + 14.0), column);
    }
}

/// A heat map: `rows` from the lowest up, a share for each row of each column. The darker, the larger the share. `None` without any.
pub(crate) fn heat(
    title: &str,
    x_label: &str,
    columns: &[String],
    rows: &[String],
    shares: &[Vec<Share>],
) -> Option<String> {
    if columns.is_empty() || rows.is_empty() || shares.iter().flatten().flatten().next().is_none() {
        return None;
    }
    let height = TOP + ROW * rows.len() as f64 + BOTTOM;
    let (left, bottom) =
        (8.0 + rows.iter().map(|r| r.chars().count()).max().unwrap_or(1) as f64 * CHAR, height - BOTTOM);
    // Of few columns each is not a bar.
    let slot = ((WIDTH - 4.0 - left) / columns.len() as f64).min(WIDEST);
    let mut s = String::new();
    head(&mut s, title, height);
    for (i, row) in rows.iter().enumerate() {
        text(&mut s, "tk", "end", (left - 4.0, bottom - ROW * (i as f64 + 0.3)), row);
    }
    s.push_str("<g class=\"c1\">");
    for (c, column) in shares.iter().enumerate().take(columns.len()) {
        for (r, share) in column.iter().enumerate().take(rows.len()) {
            let Some((pct, tip)) = share.as_ref().filter(|(pct, _)| pct.is_finite() && *pct > 0.0) else { continue };
            // By the root, so that a tail of a per mille is seen as well.
            let opacity = 0.06 + 0.94 * (pct / 100.0).clamp(0.0, 1.0).sqrt();
            let _ = write!(
                s,
                "<rect class=\"br\" opacity=\"{opacity:.2}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                left + slot * c as f64 + 0.5,
                bottom - ROW * (r as f64 + 1.0) + 0.5,
                slot - 1.0,
                ROW - 1.0,
                escape(tip)
            );
        }
    }
    s.push_str("</g>");
    below(&mut s, columns, left, slot, bottom);
    text(&mut s, "ax", "end", (WIDTH - 4.0, height - 4.0), x_label);
    s.push_str("</svg>");
    Some(s)
}

/// Stacked bars: for each column a height for each of `parts`, from the bottom up, in the unit of `y_label`. `None` without a bar.
pub(crate) fn stacked(
    title: &str,
    (x_label, y_label): (&str, &str),
    columns: &[String],
    parts: &[String],
    heights: &[Vec<f64>],
) -> Option<String> {
    let most =
        heights.iter().map(|column| column.iter().sum::<f64>()).filter(|sum| sum.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 || columns.is_empty() {
        return None;
    }
    let mut s = String::new();
    let (mut x, mut y) = (8.0, 32.0);
    let mut legend = String::new();
    for (i, part) in parts.iter().enumerate() {
        let wide = 24.0 + part.chars().count() as f64 * CHAR;
        if x > 8.0 && x + wide > WIDTH {
            (x, y) = (8.0, y + 15.0);
        }
        let class = format!("c{}", i % COLOURS + 1);
        let _ = write!(
            legend,
            "<g class=\"{class}\"><rect class=\"br\" x=\"{x:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\"/>",
            y - 8.0
        );
        text(&mut legend, "le", "start", (x + 13.0, y), part);
        legend.push_str("</g>");
        x += wide;
    }
    let top = y + 24.0;
    let (bottom, height) = (top + 130.0, top + 130.0 + BOTTOM);
    head(&mut s, title, height);
    s.push_str(&legend);
    text(&mut s, "ax", "start", (2.0, top - 8.0), y_label);
    let (left, right) = (8.0 + 6.0 * CHAR, WIDTH - 4.0);
    for tick in [0.0, most / 2.0, most] {
        let at = bottom - tick / most * (bottom - top);
        let class = if tick == 0.0 { "zero" } else { "gr" };
        let _ = write!(s, "<path class=\"{class}\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>");
        text(
            &mut s,
            "tk",
            "end",
            (left - 4.0, at + 3.5),
            &number(tick, usize::from(most < 20.0) + usize::from(most < 1.0)),
        );
    }
    let slot = (right - left) / columns.len() as f64;
    let wide = (slot * 0.8).min(46.0);
    for (c, column) in heights.iter().enumerate().take(columns.len()) {
        let mut at = bottom;
        for (i, value) in column.iter().enumerate().filter(|(_, v)| v.is_finite() && **v > 0.0) {
            let high = value / most * (bottom - top);
            at -= high;
            let tip = format!("{}, {}: {}", columns[c], parts.get(i).map_or("", String::as_str), number(*value, 2));
            let _ = write!(
                s,
                "<g class=\"c{}\"><rect class=\"br\" x=\"{:.1}\" y=\"{at:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\"><title>{}</title></rect></g>",
                i % COLOURS + 1,
                left + slot * (c as f64 + 0.5) - wide / 2.0,
                escape(&tip)
            );
        }
    }
    below(&mut s, columns, left, slot, bottom);
    text(&mut s, "ax", "end", (right, height - 4.0), x_label);
    s.push_str("</svg>");
    Some(s)
}

/// Lying bars from 0 to 100 %, one below the other: their names, and for each a share for every one of `parts`. `None` without a bar.
pub(crate) fn lying(title: &str, names: &[String], parts: &[String], shares: &[Vec<Option<f64>>]) -> Option<String> {
    const HIGH: f64 = 13.0;
    shares.iter().flatten().flatten().next()?;
    let several = parts.len() > 1;
    let top = if several { 22.0 + 15.0 * parts.len() as f64 } else { 26.0 };
    let slot = HIGH * parts.len().max(1) as f64 + 5.0;
    let height = top + slot * names.len() as f64 + 6.0;
    let left = 16.0 + names.iter().map(|n| n.chars().count()).max().unwrap_or(1) as f64 * CHAR;
    // Space for the number behind the longest bar.
    let unit = (WIDTH - 48.0 - left) / 100.0;
    let mut s = String::new();
    head(&mut s, title, height);
    for (i, part) in parts.iter().enumerate().filter(|_| several) {
        let y = 22.0 + 15.0 * i as f64;
        let _ = write!(
            s,
            "<g class=\"c{}\"><rect class=\"br\" x=\"8\" y=\"{y:.1}\" width=\"9\" height=\"9\"/>",
            i % COLOURS + 1
        );
        text(&mut s, "le", "start", (21.0, y + 8.0), part);
        s.push_str("</g>");
    }
    for mark in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let class = if mark == 0.0 { "zero" } else { "gr" };
        let _ = write!(s, "<path class=\"{class}\" d=\"M{:.1} {top:.1}V{:.1}\"/>", left + mark * unit, height - 4.0);
    }
    for (n, (name, of)) in names.iter().zip(shares).enumerate() {
        let y = top + slot * n as f64;
        text(&mut s, "tk", "end", (left - 5.0, y + slot / 2.0 + 3.0), name);
        for (i, pct) in of.iter().enumerate() {
            let Some(pct) = pct.filter(|pct| pct.is_finite() && *pct >= 0.0) else { continue };
            let (at, long) = (y + HIGH * i as f64 + 2.0, pct.min(100.0) * unit);
            let class = i % COLOURS + 1;
            let _ = write!(
                s,
                "<g class=\"c{class}\"><rect class=\"br\" x=\"{left:.1}\" y=\"{at:.1}\" width=\"{long:.1}\" height=\"{:.1}\"/></g>",
                HIGH - 1.0
            );
            let shown = format!("{} %", number(pct, usize::from(pct < 9.95)));
            text(&mut s, "tk", "start", (left + long + 4.0, at + HIGH - 3.0), &shown);
        }
    }
    s.push_str("</svg>");
    Some(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_as_high_as_its_parts_together() {
        let [columns, parts] = [["1", "2"], ["CPU", "log"]].map(|names| names.map(String::from).to_vec());
        let svg = stacked("t", ("Jobs", "Sessions"), &columns, &parts, &[vec![0.25, 0.75], vec![1.0, 1.0]]).unwrap();
        let heights: Vec<f64> = svg
            .split("height=\"")
            .skip(1)
            .filter_map(|t| t.split('"').next()?.parse().ok())
            .filter(|h| *h != 9.0)
            .collect();
        assert_eq!(heights, [16.2, 48.8, 65.0, 65.0]);
        assert!(stacked("t", ("", ""), &columns, &parts, &[vec![0.0], vec![f64::NAN]]).is_none());
    }

    #[test]
    fn a_lying_bar_ends_at_the_limit() {
        let names = ["a".to_owned(), "b".to_owned()];
        let svg = lying("t", &names, &names[..1], &[vec![Some(50.0)], vec![Some(250.0)]]).unwrap();
        let long: Vec<f64> = svg.split("width=\"").skip(1).filter_map(|t| t.split('"').next()?.parse().ok()).collect();
        assert!((long[1] / long[0] - 2.0).abs() < 0.01, "{long:?}");
        assert!(svg.contains(">250 %<") && !svg.contains("NaN"), "what is above the limit is said");
        assert!(lying("t", &names, &names, &[vec![None], vec![None]]).is_none());
    }

    #[test]
    fn a_cell_is_the_darker_the_larger_its_share() {
        let names = ["a".to_owned(), "b".to_owned()];
        let svg = heat(
            "t",
            "Jobs",
            &names,
            &names,
            &[vec![Some((1.0, "<x>".to_owned())), None], vec![None, Some((100.0, String::new()))]],
        )
        .unwrap();
        assert!(
            svg.contains("opacity=\"0.15\"") && svg.contains("opacity=\"1.00\"") && svg.contains("&lt;x&gt;"),
            "{svg}"
        );
        assert!(heat("t", "Jobs", &names, &names, &[vec![None, None]]).is_none());
    }
}
