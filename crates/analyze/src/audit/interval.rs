//! Arithmetic of intervals: a printed number stands for all that round to it.

/// All values from `low` to `high`, both included; `at` is what the cells give as they are printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) at: f64,
}

/// Relative error of the arithmetic itself, and of half widths, which are floats of 32 bits.
const DUST: f64 = 1e-6;

impl Interval {
    /// What a cell can have been that prints `at` with a last digit of `2 * half`; `cut` if digits were cut off, not rounded.
    pub(crate) fn around(at: f64, half: f64, cut: bool) -> Interval {
        let (below, above) = if cut { (0.0, 2.0 * half * (1.0 - 4.0 * DUST)) } else { (half, half) };
        let (low, dust) = (at - below * (1.0 + DUST), at.abs() * 1e-12);
        // What is counted or timed is not negative.
        let low = if at >= 0.0 { (low - dust).max(0.0) } else { low - dust };
        Interval { low, high: at + above * (1.0 + DUST) + dust, at }
    }

    pub(crate) fn exact(value: f64) -> Interval {
        Interval { low: value, high: value, at: value }
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub(crate) fn times(self, by: Interval) -> Interval {
        let all = [self.low * by.low, self.low * by.high, self.high * by.low, self.high * by.high];
        let (low, high) = all.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        Interval { low, high, at: self.at * by.at }
    }

    /// All quotients; up to infinity if `by` holds 0.
    pub(crate) fn over(self, by: Interval) -> Interval {
        let at = if by.at > 0.0 { self.at / by.at } else { f64::INFINITY };
        if by.low <= 0.0 {
            return Interval { low: if by.high > 0.0 { self.low / by.high } else { 0.0 }, high: f64::INFINITY, at };
        }
        Interval { at, ..self.times(Interval { low: 1.0 / by.high, high: 1.0 / by.low, at: 1.0 / by.at }) }
    }

    pub(crate) fn plus(self, by: Interval) -> Interval {
        Interval { low: self.low + by.low, high: self.high + by.high, at: self.at + by.at }
    }

    pub(crate) fn scaled(self, by: f64) -> Interval {
        self.times(Interval::exact(by))
    }
}

/// The median, the upper one of two; 0 of nothing.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The value that most of `intervals` hold, as near as can be to what is printed, and how many do.
pub(crate) fn common(intervals: &[Interval]) -> Option<(f64, usize)> {
    let finite = intervals.iter().filter(|i| i.low.is_finite() && i.high.is_finite());
    let mut ends: Vec<(f64, bool)> = finite.flat_map(|i| [(i.low, false), (i.high, true)]).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut depth, mut best, mut from, mut until) = (0usize, 0, 0.0, 0.0);
    for (i, (value, closes)) in ends.iter().enumerate() {
        depth = if *closes { depth.saturating_sub(1) } else { depth + 1 };
        if depth > best {
            (best, from) = (depth, *value);
            until = ends.get(i + 1).map_or(from, |(next, _)| *next);
        }
    }
    let printed = intervals.iter().filter(|i| i.low <= from && until <= i.high).map(|i| i.at).collect();
    (best > 0).then(|| (middle(printed).max(from).min(until), best))
}
