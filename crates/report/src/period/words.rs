//! Names of periods, and numbers, on the page.

use loadline_model::activity::Unit;
use loadline_model::format::{ABSENT, bytes, duration_ns, number};

use super::Period;

/// The period's name, if there are several.
pub(super) fn name<'a>(period: &'a Period, periods: &[Period]) -> &'a str {
    if periods.len() > 1 { &period.label } else { "" }
}

/// A heading, with the period's name if there are several.
pub(super) fn of(period: &Period, periods: &[Period], what: &str) -> String {
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

/// `b / a`.
pub(super) fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a);
    ratio.filter(|r| r.is_finite()).map_or(ABSENT.to_owned(), |r| amount(r, Unit::Count))
}
