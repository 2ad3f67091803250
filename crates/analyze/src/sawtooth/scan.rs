//! The search over periods and phases.
//!
//! For a frequency f (teeth per step), the sizes are sorted by u = frac(f·x). A sawtooth that falls between the k-th
//! and the next is u + [rank < k], up to a constant. So the fits of all phases follow from running sums over that
//! order, without a grid of phases. Everything that does not depend on the times is computed once per frequency.

/// Frequencies per 1/range: neighbours differ by a sixteenth of a tooth at the end of the range.
const OVERSAMPLING: f64 = 16.0;
/// The same, near the best frequency.
const FINE: f64 = 160.0;
/// Most frequencies of a search.
const MAX_FREQUENCIES: usize = 6000;
/// Largest gap between two values of u that is a rounding error.
const NO_GAP: f64 = 1e-9;

/// Weights of the sizes and a smooth trend to remove from their values.
#[derive(Debug)]
pub(super) struct WeightedTrend {
    /// 1 / σ by size.
    weight: Vec<f64>,
    /// Orthonormal columns of the trend, weighted.
    trend: Vec<Vec<f64>>,
}

impl WeightedTrend {
    /// With a parabola as trend. `None` if the sizes do not span a range.
    pub(super) fn new(x: &[f64], sigma: &[f64]) -> Option<WeightedTrend> {
        WeightedTrend::with(x, sigma, 2)
    }

    /// With a constant only.
    pub(super) fn level(x: &[f64], sigma: &[f64]) -> Option<WeightedTrend> {
        WeightedTrend::with(x, sigma, 0)
    }

    /// With a straight trend.
    pub(super) fn line(x: &[f64], sigma: &[f64]) -> Option<WeightedTrend> {
        WeightedTrend::with(x, sigma, 1)
    }

    fn with(x: &[f64], sigma: &[f64], degree: i32) -> Option<WeightedTrend> {
        let range = x.last().copied().filter(|r| *r > 0.0)?;
        let mut space = WeightedTrend { weight: sigma.iter().map(|s| 1.0 / s).collect(), trend: Vec::new() };
        for power in 0..=degree {
            let mut column: Vec<f64> =
                x.iter().zip(&space.weight).map(|(x, w)| (2.0 * x / range - 1.0).powi(power) * w).collect();
            // Twice, for precision.
            space.project_out(&mut column);
            space.project_out(&mut column);
            let norm = dot(&column, &column).sqrt();
            if !(norm.is_finite() && norm > 0.0) {
                return None;
            }
            column.iter_mut().for_each(|v| *v /= norm);
            space.trend.push(column);
        }
        Some(space)
    }

    /// Removes the trend from weighted values.
    pub(super) fn project_out(&self, values: &mut [f64]) {
        for q in &self.trend {
            let share = dot(q, values);
            values.iter_mut().zip(q).for_each(|(v, q)| *v -= share * q);
        }
    }

    /// Weighted times without their trend.
    pub(super) fn residual(&self, times: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = times.iter().zip(&self.weight).map(|(t, w)| t * w).collect();
        self.project_out(&mut out);
        self.project_out(&mut out);
        out
    }

    /// The coefficient of `column` beside the trend by least squares, and its standard error.
    pub(super) fn coefficient(&self, column: &[f64], times: &[f64]) -> Option<(f64, f64)> {
        let (column, times) = (self.residual(column), self.residual(times));
        let whole = dot(&column, &column);
        let value = dot(&column, &times) / whole;
        let left: f64 = times.iter().zip(&column).map(|(t, c)| (t - value * c).powi(2)).sum();
        let freedom = times.len().saturating_sub(self.trend.len() + 1).max(1) as f64;
        value.is_finite().then(|| (value, (left / freedom / whole).sqrt()))
    }

    /// Share of `residual` that one break (a step, a kink, or both) explains, and the index of the size after it.
    pub(super) fn one_break(&self, x: &[f64], residual: &[f64]) -> Option<(f64, usize)> {
        let all = dot(residual, residual);
        let mut best: Option<(f64, usize)> = None;
        for (i, from) in x.iter().enumerate().skip(1) {
            let after = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
                let column = x.iter().zip(&self.weight).enumerate();
                column.map(|(j, (x, w))| if j >= i { of(x - from) * w } else { 0.0 }).collect()
            };
            let (mut rest, mut explained) = (self.clone_trend(), 0.0);
            for mut column in [after(&|_| 1.0), after(&|x| x)] {
                let whole = dot(&column, &column);
                rest.project_out(&mut column);
                let left = dot(&column, &column);
                if left > 1e-9 * whole {
                    explained += dot(&column, residual).powi(2) / left;
                    let norm = left.sqrt();
                    rest.trend.push(column.into_iter().map(|v| v / norm).collect());
                }
            }
            let share = explained / all;
            if share.is_finite() && best.is_none_or(|(b, _)| share > b) {
                best = Some((share, i));
            }
        }
        best
    }

    fn clone_trend(&self) -> WeightedTrend {
        WeightedTrend { weight: Vec::new(), trend: self.trend.clone() }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Precomputed sums of one frequency.
#[derive(Debug)]
struct FrequencyTable {
    frequency: f64,
    /// frac(f·x) by size.
    u: Vec<f64>,
    /// By rank k: index of the size.
    sizes: Vec<u32>,
    /// By k: 1 / square of the sawtooth that falls before it, without its trend; 0 if it cannot be fitted.
    inverses: Vec<f64>,
    /// By k: the gap in u before it.
    gaps: Vec<f64>,
}

/// The frequencies of a search.
#[derive(Debug)]
pub(super) struct FrequencyTables(Vec<FrequencyTable>);

/// The best sawtooth of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    /// Teeth per step.
    pub(super) frequency: f64,
    /// Share of the squared residual that it explains, 0…1.
    pub(super) share: f64,
}

/// Period and phase, averaged over all phases and near frequencies by their likelihood.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodEstimate {
    /// Teeth per step.
    pub(super) frequency: f64,
    /// frac(f·x) at which it falls.
    pub(super) phase: f64,
    /// Lower end of the period's 95 % interval, steps.
    pub(super) low_period: f64,
    /// Upper end, steps.
    pub(super) high_period: f64,
}

impl FrequencyTables {
    /// Periods from 3 steps to half the range.
    pub(super) fn whole_range(space: &WeightedTrend, x: &[f64]) -> FrequencyTables {
        let range = x.last().copied().unwrap_or(1.0);
        let (low, high) = (2.0 / range, 1.0 / 3.0);
        let n = (((high - low) * range * OVERSAMPLING).floor().max(0.0) as usize).min(MAX_FREQUENCIES);
        let step = (high - low) / n.max(1) as f64;
        FrequencyTables((0..=n).map(|i| FrequencyTable::new(space, x, low + i as f64 * step)).collect())
    }

    /// Frequencies up to half a tooth over the range from `frequency`.
    pub(super) fn around(space: &WeightedTrend, x: &[f64], frequency: f64) -> FrequencyTables {
        let range = x.last().copied().unwrap_or(1.0);
        let half = (0.5 * FINE) as i32;
        let all = (-half..=half).map(|i| frequency + f64::from(i) / (FINE * range)).filter(|f| *f * range >= 1.8);
        FrequencyTables(all.map(|f| FrequencyTable::new(space, x, f)).collect())
    }

    /// The sawtooth that explains most of `residual`; `None` if no rising one fits.
    pub(super) fn best(&self, space: &WeightedTrend, residual: &[f64]) -> Option<Fit> {
        let weighted: Vec<f64> = residual.iter().zip(&space.weight).map(|(r, w)| r * w).collect();
        let all = dot(residual, residual);
        let mut best: Option<Fit> = None;
        for table in &self.0 {
            let square = table.best(&weighted);
            if square > 0.0 && best.is_none_or(|b| square > b.share) {
                best = Some(Fit { frequency: table.frequency, share: square });
            }
        }
        best.map(|b| Fit { share: b.share / all, ..b }).filter(|b| b.share.is_finite())
    }

    /// Estimates the period; `None` if no sawtooth fits.
    pub(super) fn locate(&self, space: &WeightedTrend, residual: &[f64]) -> Option<PeriodEstimate> {
        let weighted: Vec<f64> = residual.iter().zip(&space.weight).map(|(r, w)| r * w).collect();
        let all = dot(residual, residual);
        // A perfect fit would make the logarithm infinite.
        let left = |square: f64| (1.0 - square / all).max(1e-9);
        let best = self.0.iter().map(|t| t.best(&weighted)).fold(0.0, f64::max);
        if best.is_nan() || best <= 0.0 {
            return None;
        }
        // Likelihood of normal noise of unknown size: (residual)^(−n/2).
        let power = residual.len() as f64 / 2.0;
        let likelihood = |square: f64| (power * (left(best).ln() - left(square).ln())).exp();
        let least_square = (1.0 - left(best) * (20.0 / power).exp()) * all;
        let by_frequency: Vec<(f64, f64)> = self
            .0
            .iter()
            .map(|t| {
                let phases = t.squares(&weighted).zip(&t.gaps).filter(|(square, _)| *square >= least_square);
                (t.frequency, phases.map(|(square, gap)| likelihood(square) * gap).sum())
            })
            .collect();
        let total: f64 = by_frequency.iter().map(|(_, w)| w).sum();
        if !(total.is_finite() && total > 0.0) {
            return None;
        }
        let period = by_frequency.iter().map(|(f, w)| w / f).sum::<f64>() / total;
        let mut so_far = 0.0;
        let (mut low_f, mut high_f) = (None, 1.0 / period);
        for (f, w) in &by_frequency {
            so_far += w / total;
            if so_far >= 0.025 && low_f.is_none() {
                low_f = Some(*f);
            }
            if so_far <= 0.975 || low_f == Some(*f) {
                high_f = *f;
            }
        }
        let table = self
            .0
            .iter()
            .min_by(|a, b| (a.frequency - 1.0 / period).abs().total_cmp(&(b.frequency - 1.0 / period).abs()))?;
        Some(PeriodEstimate {
            frequency: table.frequency,
            phase: table.phase(&weighted),
            low_period: 1.0 / high_f.max(1.0 / period),
            high_period: 1.0 / low_f.unwrap_or(1.0 / period),
        })
    }
}

impl FrequencyTable {
    fn new(space: &WeightedTrend, x: &[f64], frequency: f64) -> FrequencyTable {
        let u: Vec<f64> = x.iter().map(|x| (x * frequency).rem_euclid(1.0)).collect();
        // A scan has a few thousand sizes at most.
        let mut order: Vec<(f64, u32)> = u.iter().copied().zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let sizes: Vec<u32> = order.into_iter().map(|(_, size)| size).collect();
        let of = |values: &[f64], size: u32| values.get(size as usize).copied().unwrap_or(0.0);
        let mut norm: f64 = u.iter().zip(&space.weight).map(|(u, w)| (u * w).powi(2)).sum();
        let teeth: Vec<f64> = u.iter().zip(&space.weight).map(|(u, w)| u * w).collect();
        let mut on: Vec<f64> = space.trend.iter().map(|q| dot(q, &teeth)).collect();
        let mut before = sizes.last().map_or(0.0, |size| of(&u, *size) - 1.0);
        let (mut inverses, mut gaps) = (Vec::with_capacity(sizes.len()), Vec::with_capacity(sizes.len()));
        for size in &sizes {
            let (u, w) = (of(&u, *size), of(&space.weight, *size));
            let left = norm - on.iter().map(|b| b * b).sum::<f64>();
            let gap = u - before;
            let fits = gap > NO_GAP && left > 1e-9 * norm;
            inverses.push(if fits { 1.0 / left } else { 0.0 });
            gaps.push(gap);
            before = u;
            norm += (2.0 * u + 1.0) * w * w;
            on.iter_mut().zip(&space.trend).for_each(|(b, q)| *b += w * of(q, *size));
        }
        FrequencyTable { frequency, u, sizes, inverses, gaps }
    }

    /// By phase: share of the squared residual that a rising sawtooth explains.
    fn squares<'a>(&'a self, weighted: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let mut on = dot(&self.u, weighted);
        self.sizes.iter().zip(&self.inverses).map(move |(size, inverse)| {
            let rising = on.max(0.0);
            on += weighted.get(*size as usize).copied().unwrap_or(0.0);
            rising * rising * inverse
        })
    }

    fn best(&self, weighted: &[f64]) -> f64 {
        self.squares(weighted).fold(0.0, |a, b| if b > a { b } else { a })
    }

    /// Middle of the gap where the best sawtooth falls.
    fn phase(&self, weighted: &[f64]) -> f64 {
        let each = self.squares(weighted).zip(&self.sizes).zip(&self.gaps);
        let best = each.max_by(|a, b| a.0.0.total_cmp(&b.0.0));
        best.and_then(|((_, size), gap)| Some((self.u.get(*size as usize)? - gap / 2.0).rem_euclid(1.0))).unwrap_or(0.0)
    }
}
