//! Arithmetic of intervals: a printed number stands for all that round to it.

use crate::audit::sheet::Figure;

/// All values from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// What the cells give as they are printed: this is the figure that findings name.
    pub at: f64,
}

/// How the digits of a cell are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// All digits count, and were rounded.
    Rounded,
    /// Zeros at the end of a whole number may not count.
    Loose,
    /// Further digits were cut off: 74 is 74 to 75.
    Cut,
}

/// Relative error of the arithmetic itself, and of the half widths, which are floats of 32 bits.
const DUST: f64 = 1e-6;

impl Interval {
    /// What `figure` can have been.
    #[must_use]
    pub fn of(figure: Figure, reading: Reading) -> Interval {
        let v = figure.value;
        let (below, above) = match reading {
            Reading::Rounded => (figure.half(), figure.half()),
            Reading::Loose => (figure.loose(), figure.loose()),
            // The next number is not in it.
            Reading::Cut => (0.0, 2.0 * figure.loose() * (1.0 - 4.0 * DUST)),
        };
        let (below, above) = (below * (1.0 + DUST), above * (1.0 + DUST));
        let dust = v.abs() * 1e-12;
        let low = v - below - dust;
        // What is counted or timed is not negative.
        Interval { low: if v >= 0.0 { low.max(0.0) } else { low }, high: v + above + dust, at: v }
    }

    /// One value.
    #[must_use]
    pub fn exact(value: f64) -> Interval {
        Interval { low: value, high: value, at: value }
    }

    /// Whether `value` is in it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The same, of what cannot be below 0.
    #[must_use]
    pub fn not_negative(self) -> Interval {
        Interval { low: self.low.max(0.0), high: self.high.max(0.0), at: self.at.max(0.0) }
    }

    /// All products.
    #[must_use]
    pub fn times(self, by: Interval) -> Interval {
        let all = [self.low * by.low, self.low * by.high, self.high * by.low, self.high * by.high];
        Interval {
            low: all.into_iter().fold(f64::INFINITY, f64::min),
            high: all.into_iter().fold(f64::NEG_INFINITY, f64::max),
            at: self.at * by.at,
        }
    }

    /// All quotients; up to infinity if `by` holds 0.
    #[must_use]
    pub fn over(self, by: Interval) -> Interval {
        let at = if by.at > 0.0 { self.at / by.at } else { f64::INFINITY };
        if by.low <= 0.0 {
            return Interval { low: if by.high > 0.0 { self.low / by.high } else { 0.0 }, high: f64::INFINITY, at };
        }
        Interval { at, ..self.times(Interval { low: 1.0 / by.high, high: 1.0 / by.low, at: 1.0 / by.at }) }
    }

    /// All sums.
    #[must_use]
    pub fn plus(self, by: Interval) -> Interval {
        Interval { low: self.low + by.low, high: self.high + by.high, at: self.at + by.at }
    }

    /// All differences.
    #[must_use]
    pub fn minus(self, by: Interval) -> Interval {
        Interval { low: self.low - by.high, high: self.high - by.low, at: self.at - by.at }
    }

    /// Times a positive number.
    #[must_use]
    pub fn scaled(self, by: f64) -> Interval {
        Interval { low: self.low * by, high: self.high * by, at: self.at * by }
    }
}

/// The value that most of `intervals` hold, as near as can be to what is printed, and how many do; `None` if there is none.
#[must_use]
pub fn common(intervals: &[Interval]) -> Option<(f64, usize)> {
    let mut ends: Vec<(f64, bool)> = Vec::with_capacity(intervals.len() * 2);
    for i in intervals.iter().filter(|i| i.low.is_finite() && i.high.is_finite()) {
        ends.push((i.low, false));
        ends.push((i.high, true));
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut depth, mut best, mut from) = (0usize, 0, 0.0);
    let mut until = 0.0;
    for (i, (value, closes)) in ends.iter().enumerate() {
        if *closes {
            depth = depth.saturating_sub(1);
            continue;
        }
        depth += 1;
        if depth > best {
            (best, from) = (depth, *value);
            until = ends.get(i + 1).map_or(from, |(next, _)| *next);
        }
    }
    let mut printed: Vec<f64> = intervals.iter().filter(|i| i.low <= from && until <= i.high).map(|i| i.at).collect();
    printed.sort_by(f64::total_cmp);
    let median = printed.get(printed.len() / 2).copied().unwrap_or(from);
    (best > 0).then(|| (median.max(from).min(until), best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_value_is_where_most_intervals_meet() {
        let of = |low: f64, high: f64| Interval { low, high, at: (low + high) / 2.0 };
        let (value, count) = common(&[of(0.9, 1.1), of(1.05, 1.2), of(1.0, 1.06), of(3.0, 4.0)]).unwrap();
        assert_eq!(count, 3);
        assert!((1.05..=1.06).contains(&value), "{value}");
        assert_eq!(common(&[]), None);
    }

    #[test]
    fn a_quotient_by_what_may_be_zero_has_no_upper_end() {
        let one = Interval { low: 1.0, high: 2.0, at: 1.5 };
        let q = one.over(Interval { low: 0.0, high: 0.5, at: 0.25 });
        assert_eq!((q.low, q.high, q.at), (2.0, f64::INFINITY, 6.0));
    }
}
