//! Names of periods, numbers, and tables that have the same columns for each period.

use loadline_model::activity::Unit;
use loadline_model::format::{ABSENT, bytes, duration_ns, number};

use super::Period;
use crate::doc::{Head, Row};

/// The period's name, if there are several.
pub(super) fn name<'a>(period: &'a Period, periods: &[Period]) -> &'a str {
    if periods.len() > 1 { &period.label } else { "" }
}

/// A heading, with the period's name if there are several.
pub(super) fn heading(period: &Period, periods: &[Period], what: &str) -> String {
    let heading = format!("{} {what}", name(period, periods));
    let mut letters = heading.trim().chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `n` of `unit`, with about three digits.
pub(super) fn amount(n: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => bytes(n),
        Unit::Ms => duration_ns(n * 1e6),
        Unit::Count | Unit::Text if n == n.round() && n.abs() < 1e15 => number(n, 0),
        Unit::Count | Unit::Text => {
            let decimals = match n.abs() {
                a if a >= 100.0 => 0,
                a if a >= 10.0 => 1,
                a if a >= 1.0 => 2,
                a if a >= 0.01 => 3,
                _ => 6,
            };
            number(n, decimals)
        }
    }
}

/// Text of a number, if there is one.
pub(super) fn shown(n: Option<f64>, unit: Unit) -> String {
    n.map_or(ABSENT.to_owned(), |n| amount(n, unit))
}

/// `rate` per transaction.
pub(super) fn each(rate: Option<f64>, tps: Option<f64>) -> Option<f64> {
    rate.zip(tps.filter(|tps| *tps > 0.0)).map(|(n, tps)| n / tps)
}

/// Headings: `first`, those of `columns` for each period, and for two the ratio of `compared`.
pub(super) fn heads(first: &str, periods: &[Period], columns: &[Head], compared: &str) -> Vec<Head> {
    let of_period =
        |p| columns.iter().map(move |head| Head { title: heading(p, periods, &head.title), ..head.clone() });
    let ratio = Head::number("B / A", "").tip(&format!("Ratio of the {compared}."));
    let heads = std::iter::once(Head::text(first)).chain(periods.iter().flat_map(of_period));
    heads.chain((periods.len() == 2).then_some(ratio)).collect()
}

/// A row of `cells` of all periods, and for two the ratio of what is `compared`.
pub(super) fn row(first: &str, cells: impl IntoIterator<Item = String>, compared: &[Option<f64>]) -> Row {
    let ratio = if let [a, b] = compared { Some(ratio(*a, *b)) } else { None };
    Row::new(std::iter::once(first.to_owned()).chain(cells).chain(ratio))
}

/// `b / a`.
pub(super) fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
    ratio.filter(|r| r.is_finite()).map_or(ABSENT.to_owned(), |r| amount(r, Unit::Count))
}
