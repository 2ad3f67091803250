//! Arithmetic of intervals: a printed number stands for all that round to it.

use crate::sheet::Figure;

/// All values from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
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
        Interval { low: if v >= 0.0 { low.max(0.0) } else { low }, high: v + above + dust }
    }

    /// One value.
    #[must_use]
    pub fn exact(value: f64) -> Interval {
        Interval { low: value, high: value }
    }

    /// Whether `value` is in it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        self.low / 2.0 + self.high / 2.0
    }

    /// All products.
    #[must_use]
    pub fn times(self, by: Interval) -> Interval {
        let all = [self.low * by.low, self.low * by.high, self.high * by.low, self.high * by.high];
        Interval {
            low: all.into_iter().fold(f64::INFINITY, f64::min),
            high: all.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// All quotients; up to infinity if `by` holds 0.
    #[must_use]
    pub fn over(self, by: Interval) -> Interval {
        if by.low <= 0.0 {
            return Interval { low: if by.high > 0.0 { self.low / by.high } else { 0.0 }, high: f64::INFINITY };
        }
        self.times(Interval { low: 1.0 / by.high, high: 1.0 / by.low })
    }

    /// All sums.
    #[must_use]
    pub fn plus(self, by: Interval) -> Interval {
        Interval { low: self.low + by.low, high: self.high + by.high }
    }

    /// All differences.
    #[must_use]
    pub fn minus(self, by: Interval) -> Interval {
        Interval { low: self.low - by.high, high: self.high - by.low }
    }

    /// Times a positive number.
    #[must_use]
    pub fn scaled(self, by: f64) -> Interval {
        Interval { low: self.low * by, high: self.high * by }
    }
}

/// The value that most of `intervals` hold, and how many do; `None` if there is none.
#[must_use]
pub fn common(intervals: &[Interval]) -> Option<(f64, usize)> {
    let mut ends: Vec<(f64, bool)> = Vec::with_capacity(intervals.len() * 2);
    for i in intervals.iter().filter(|i| i.low.is_finite() && i.high.is_finite()) {
        ends.push((i.low, false));
        ends.push((i.high, true));
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut depth, mut best, mut from) = (0usize, 0, 0.0);
    let mut middle = None;
    for (i, (value, closes)) in ends.iter().enumerate() {
        if *closes {
            depth = depth.saturating_sub(1);
            continue;
        }
        depth += 1;
        if depth > best {
            (best, from) = (depth, *value);
            middle = ends.get(i + 1).map(|(next, _)| from / 2.0 + next / 2.0);
        }
    }
    (best > 0).then(|| (middle.unwrap_or(from), best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_value_is_where_most_intervals_meet() {
        let of = |low, high| Interval { low, high };
        let (value, count) = common(&[of(0.9, 1.1), of(1.05, 1.2), of(1.0, 1.06), of(3.0, 4.0)]).unwrap();
        assert_eq!(count, 3);
        assert!((1.05..=1.06).contains(&value), "{value}");
        assert_eq!(common(&[]), None);
    }

    #[test]
    fn a_quotient_by_what_may_be_zero_has_no_upper_end() {
        let q = Interval { low: 1.0, high: 2.0 }.over(Interval { low: 0.0, high: 0.5 });
        assert_eq!((q.low, q.high), (2.0, f64::INFINITY));
    }
}
