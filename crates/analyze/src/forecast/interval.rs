//! How wrong a forecast may be: 90 % intervals from what forecasts of the table's own last points were off by.
//!
//! Split conformal prediction (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005; Lei et al., Journal of
//! the American Statistical Association 113 (2018) 1094): among n earlier errors and the next one, each is the largest with the
//! same probability, if they come from the same distribution. So the next is at most the ⌈0.9 (n + 1)⌉-th smallest with 90 %.
//! That needs n ≥ 9. Fewer are taken as normal with a variance of which little is known: Student's t with two errors of a size that
//! is not unusual added to them (conjugate prior: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6).

use serde::Serialize;

/// Probability that an interval holds the figure.
pub const COVERAGE: f64 = 0.9;
/// Error per unit of growth where none was seen yet: at twice the jobs 14 %. With it, intervals from few errors held 90 % and more
/// on each family of made-up platforms (`simulated`).
pub(crate) const BEYOND: f64 = 0.15;
/// Error between points where none was seen yet: the noise of a careful test.
pub(crate) const BETWEEN: f64 = 0.03;
/// Number of such errors that are added to those seen.
const PRIOR: usize = 2;
/// 0.95 quantiles of Student's t for 2 to 10 degrees of freedom.
const T_95: [f64; 9] = [2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
/// 0.95 quantile of the normal distribution.
pub(crate) const Z_95: f64 = 1.645;

/// A value with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// `value` times and divided by e to the power of `half`.
    pub(crate) fn around(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value * (-half).exp(), high: value * half.exp() }
    }

    /// Of a function of this one, rising or falling.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        let (a, b) = (f(self.low), f(self.high));
        Estimate { value: f(self.value), low: a.min(b), high: a.max(b) }
    }

    /// Its interval made wider by an independent factor, whose half-width in logarithms is `half`.
    pub(crate) fn widened(self, half: f64) -> Estimate {
        let side = |end: f64| (end / self.value).ln().hypot(half);
        let ok = self.low > 0.0 && self.value > 0.0 && half > 0.0;
        if !ok {
            return self;
        }
        Estimate {
            value: self.value,
            low: self.value * (-side(self.low)).exp(),
            high: self.value * side(self.high).exp(),
        }
    }
}

/// The half-width that the next error stays within with 90 %, from absolute `errors` on the same scale, `usual` where there are few.
pub(crate) fn half_width(errors: &[f64], usual: f64) -> f64 {
    let n = errors.len();
    let rank = (COVERAGE * (n as f64 + 1.0)).ceil() as usize;
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    if let Some(quantile) = rank.checked_sub(1).and_then(|at| sorted.get(at)) {
        return *quantile;
    }
    let squares = errors.iter().map(|e| e * e).sum::<f64>() + PRIOR as f64 * usual.powi(2);
    T_95.get(n).copied().unwrap_or(Z_95) * (squares / (n + PRIOR) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::Random;

    #[test]
    fn nine_in_ten_next_errors_are_within_the_half_width() {
        let mut random = Random::new(7);
        for n in [0, 2, 5, 9, 30] {
            let mut draw = || {
                let normal = (0..12).map(|_| random.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
                // From 9 on they may have any distribution, such as one with heavy tails.
                if n >= 9 { normal.powi(3) } else { normal }.abs() * 0.1
            };
            let held =
                (0..2000).filter(|_| half_width(&(0..n).map(|_| draw()).collect::<Vec<_>>(), BEYOND) >= draw()).count();
            assert!(held >= 2000 * 88 / 100, "{n} errors: {held} of 2000");
        }
    }

    #[test]
    fn an_interval_is_made_wider_on_both_sides() {
        let e = Estimate::around(100.0, 0.1);
        let wide = e.widened(0.2);
        assert!(wide.low < e.low && wide.high > e.high && wide.value == 100.0);
        assert_eq!(e.map(|v| 1.0 / v).low, 1.0 / e.high);
    }
}
