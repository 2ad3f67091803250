//! Small-sample statistics: means with Student's t intervals, quantiles, ratios of means, the normal distribution.

use serde::{Deserialize, Serialize};

/// A place or a period is possible at 95 % unless it explains this many variances less than the best: −2 ln(1 − √0.95) (Eo and Morley,
/// Quantitative Economics 6 (2015) 463).
pub(crate) const POSSIBLE: f64 = 7.35;

/// A 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The mean of a sample with its size and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    pub n: usize,
    /// Sample standard deviation (divisor n − 1); `None` for a single value.
    pub sd: Option<f64>,
}

impl Estimate {
    /// Mean and spread of `values`; `None` if there are none or one is not finite.
    pub fn from_values(values: &[f64]) -> Option<Estimate> {
        Some(Estimate { mean: mean(values)?, n: values.len(), sd: sample_sd(values) })
    }

    /// 95 % confidence interval of the mean, `mean ± t(0.975, n − 1) · sd / √n`; `None` for a single value.
    pub fn interval(&self) -> Option<Interval> {
        let half = self.half_width()?;
        Some(Interval { low: self.mean - half, high: self.mean + half })
    }

    pub fn half_width(&self) -> Option<f64> {
        let half = student_t_975(self.n.checked_sub(1)?)? * self.sd? / (self.n as f64).sqrt();
        half.is_finite().then_some(half)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub value: f64,
    /// 95 % confidence interval; `None` if a side has a single value.
    pub interval: Option<Interval>,
    pub n_numerator: usize,
    pub n_denominator: usize,
}

/// `numerator / denominator` with an interval by the delta method on the log ratio:
/// `Var(ln r) ≈ (s_a / (a √n_a))² + (s_b / (b √n_b))²`, degrees of freedom after
/// Welch–Satterthwaite, rounded down. `None` unless both means are positive and finite.
pub fn ratio(numerator: &Estimate, denominator: &Estimate) -> Option<Ratio> {
    let positive = |e: &Estimate| e.mean.is_finite() && e.mean > 0.0;
    if !positive(numerator) || !positive(denominator) {
        return None;
    }
    let value = Some(numerator.mean / denominator.mean).filter(|value| value.is_finite() && *value > 0.0)?;
    let interval = log_ratio_half_width(numerator, denominator)
        .map(|half| Interval { low: value * (-half).exp(), high: value * half.exp() })
        .filter(|i| i.low.is_finite() && i.high.is_finite());
    Some(Ratio { value, interval, n_numerator: numerator.n, n_denominator: denominator.n })
}

fn log_ratio_half_width(a: &Estimate, b: &Estimate) -> Option<f64> {
    let variance = |e: &Estimate| Some((e.sd? / e.mean).powi(2) / e.n as f64);
    let (va, vb) = (variance(a)?, variance(b)?);
    let total = va + vb;
    if total == 0.0 {
        return Some(0.0);
    }
    let df = total.powi(2) / (va.powi(2) / (a.n as f64 - 1.0) + vb.powi(2) / (b.n as f64 - 1.0));
    // The cast saturates; fewer degrees of freedom only widen the interval.
    Some(student_t_975((df as usize).max(1))? * total.sqrt())
}

/// The ratio of positive values in several strata, each with values of the denominator and of the numerator: the mean of the
/// differences of logarithms, weighted by how precise they are, and its 95 % interval from the spread within the strata, taken for
/// the same in all. `None` without a stratum that has both.
pub fn ratio_in_strata(strata: &[(Vec<f64>, Vec<f64>)]) -> Option<Ratio> {
    let (mut sum, mut weights, mut squares, mut df, mut n) = (0.0, 0.0, 0.0, 0, (0, 0));
    for (denominator, numerator) in strata {
        let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
        let (x, y) = (logs(denominator), logs(numerator));
        let Some((a, b)) = mean(&x).zip(mean(&y)) else { continue };
        let (of_x, of_y) = (x.len() as f64, y.len() as f64);
        let weight = of_x * of_y / (of_x + of_y);
        (sum, weights) = (sum + weight * (b - a), weights + weight);
        squares += x.iter().map(|v| (v - a).powi(2)).chain(y.iter().map(|v| (v - b).powi(2))).sum::<f64>();
        df += x.len() + y.len() - 2;
        n = (n.0 + x.len(), n.1 + y.len());
    }
    let value = Some((sum / weights).exp()).filter(|value| value.is_finite() && *value > 0.0)?;
    let half = student_t_975(df).map(|t| (t * (squares / df as f64 / weights).sqrt()).exp());
    let interval = half.map(|half| Interval { low: value / half, high: value * half });
    Some(Ratio { value, interval, n_numerator: n.1, n_denominator: n.0 })
}

/// Arithmetic mean; `None` if there are no values or one is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let sum: f64 = values.iter().sum();
    // Dividing first loses some precision, so only if the sum overflows.
    let mean = if sum.is_finite() { sum / n } else { values.iter().map(|v| v / n).sum() };
    mean.is_finite().then_some(mean)
}

/// Sample standard deviation (divisor n − 1); `None` for fewer than two finite values.
pub fn sample_sd(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let m = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - m).powi(2)).sum();
    let sd = (squares / (values.len() as f64 - 1.0)).sqrt();
    sd.is_finite().then_some(sd)
}

/// Quantile `q` (0…1), type 7 of Hyndman and Fan 1996; `None` if there are no values or one is not finite.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&q) || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = q * (sorted.len() - 1) as f64;
    let below = sorted.get(position.floor() as usize)?;
    let above = sorted.get(position.ceil() as usize)?;
    let share = position.fract();
    Some(below * (1.0 - share) + above * share)
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Lower quartile, median and upper quartile, see [`quantile`].
pub fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    Some([quantile(values, 0.25)?, quantile(values, 0.5)?, quantile(values, 0.75)?])
}

/// Geometric mean; `None` if there are no values or one is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    Some(mean(&logs)?.exp())
}

/// 0.975 quantile of Student's t for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
    2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
    2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];

/// 0.975 quantile of Student's t with `df` degrees of freedom; `None` for 0. Beyond the table, the
/// expansion in 1/df (Abramowitz and Stegun 26.7.5), whose error there is below 1e-6.
pub fn student_t_975(df: usize) -> Option<f64> {
    let index = df.checked_sub(1)?;
    if let Some(t) = T_975.get(index) {
        return Some(*t);
    }
    let z: f64 = 1.959_963_985;
    let v = df as f64;
    let g1 = (z.powi(3) + z) / 4.0;
    let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    Some(z + g1 / v + g2 / v.powi(2) + g3 / v.powi(3))
}

/// Probability that a standard normal variable is above `z`; error below 1e-7 (Abramowitz and Stegun 26.2.17).
pub fn normal_tail(z: f64) -> f64 {
    const B: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    let tail = series * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 0.0 { 1.0 - tail } else { tail }
}

/// The value that a standard normal variable exceeds with probability `tail`, 0 < `tail` ≤ 0.5; error below 4.5e-4
/// (Abramowitz and Stegun 26.2.23). For planning, not for intervals.
pub fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    t - above / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
}

/// Means of `each` values; the oldest that make no whole group are left out.
pub fn averaged(values: &[f64], each: usize) -> Vec<f64> {
    let each = each.max(1);
    let whole = values.get(values.len() % each..).unwrap_or_default();
    whole.chunks(each).filter_map(mean).collect()
}

const MOST_CORRELATION: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LongRun {
    /// Variance of their mean, times their number.
    pub(crate) variance: f64,
    pub(crate) correlation: f64,
}

/// Of the residuals `left`, as an autoregressive model of order 1 has it; Kendall (1954) corrects its bias.
pub(crate) fn long_run(left: &[f64]) -> LongRun {
    let n = left.len() as f64;
    let squares: f64 = left.iter().map(|x| x * x).sum();
    if squares == 0.0 {
        return LongRun { variance: 0.0, correlation: 0.0 };
    }
    let seen = left.iter().zip(left.iter().skip(1)).map(|(a, b)| a * b).sum::<f64>() / squares;
    let correlation = ((n * seen + 2.0) / (n - 5.0)).clamp(0.0, MOST_CORRELATION);
    LongRun { variance: squares / (n - 1.0) * (1.0 + correlation) / (1.0 - correlation), correlation }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `P(0 < T < t)`, by Simpson's rule after `t = √v · tan θ`, where the density is ∝ cos^(v−1) θ.
    fn half_probability(t: f64, df: usize) -> f64 {
        let integral = |end: f64| {
            let n = 20_000;
            let f = |i: usize| (end * i as f64 / n as f64).cos().max(0.0).powi(df as i32 - 1);
            (0..=n).map(|i| f(i) * if i == 0 || i == n { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 }).sum::<f64>() * end
        };
        0.5 * integral((t / (df as f64).sqrt()).atan()) / integral(std::f64::consts::FRAC_PI_2)
    }

    #[test]
    fn strata_are_compared_within_themselves() {
        // One stratum is a t test of logarithms: Welch's with equal spreads and numbers.
        let (a, b) = (vec![100.0, 110.0, 90.0], vec![200.0, 220.0, 180.0]);
        let one = ratio_in_strata(&[(a.clone(), b.clone())]).unwrap();
        assert!((one.value - 2.0).abs() < 1e-12 && (one.n_denominator, one.n_numerator) == (3, 3), "{one:?}");
        let logs = |v: &[f64]| sample_sd(&v.iter().map(|x| x.ln()).collect::<Vec<_>>()).unwrap();
        let half = student_t_975(4).unwrap() * ((logs(&a).powi(2) + logs(&b).powi(2)) / 3.0).sqrt();
        assert!((one.interval.unwrap().high - 2.0 * half.exp()).abs() < 1e-9, "{one:?}");
        // What differs between strata is no spread, and a stratum without a partner does not count.
        let far = (vec![1e6, 1.1e6, 0.9e6], vec![2e6, 2.2e6, 1.8e6]);
        let two = ratio_in_strata(&[(a, b), far, (vec![5.0], vec![])]).unwrap();
        assert!(two.interval.unwrap().low > one.interval.unwrap().low && two.n_numerator == 6, "{two:?}");
        assert_eq!(ratio_in_strata(&[(vec![1.0], vec![2.0])]).map(|r| (r.value, r.interval)), Some((2.0, None)));
        assert!(ratio_in_strata(&[]).is_none() && ratio_in_strata(&[(vec![0.0], vec![2.0])]).is_none());
    }

    #[test]
    fn t_quantiles_enclose_95_percent() {
        for df in (1..=60).chain([100, 1000]) {
            let p = 2.0 * half_probability(student_t_975(df).unwrap(), df);
            assert!((p - 0.95).abs() < 1e-6, "{df} degrees of freedom: {p}");
        }
        assert_eq!(student_t_975(0), None);
    }

    #[test]
    fn intervals_of_known_samples() {
        // R: t.test(c(10, 12)) gives −1.706205 … 23.706205.
        let e = Estimate::from_values(&[10.0, 12.0]).unwrap();
        let i = e.interval().unwrap();
        assert!((i.low + 1.706_205).abs() < 1e-5 && (i.high - 23.706_205).abs() < 1e-5, "{i:?}");
        // R: t.test(1:5) gives 1.036757 … 4.963243.
        let i = Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().interval().unwrap();
        assert!((i.low - 1.036_757).abs() < 1e-5 && (i.high - 4.963_243).abs() < 1e-5, "{i:?}");
        assert_eq!(Estimate::from_values(&[3.0]).unwrap().interval(), None);
        assert_eq!(Estimate::from_values(&[]), None);
        assert_eq!(Estimate::from_values(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn normal_tails_and_quantiles_are_the_tabulated_ones() {
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655_3), (1.959_964, 0.025), (3.0, 0.001_349_9), (-1.0, 0.841_344_7)] {
            assert!((normal_tail(z) - tail).abs() < 1e-7, "{z}: {}", normal_tail(z));
        }
        for tail in [0.5, 0.2, 0.05, 0.025, 1e-3, 1e-5] {
            assert!((normal_tail(normal_quantile(tail)) / tail - 1.0).abs() < 2e-3, "{tail}");
        }
    }

    #[test]
    fn quantiles_and_means() {
        assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0]), Some([1.75, 2.5, 3.25]));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(mean(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn a_ratio_has_an_interval_only_with_repetitions_on_both_sides() {
        let many = Estimate::from_values(&[10.0, 11.0, 12.0]).unwrap();
        let one = Estimate::from_values(&[5.0]).unwrap();
        assert_eq!(ratio(&many, &one).unwrap().interval, None);
        let zero = Estimate::from_values(&[0.0]).unwrap();
        assert_eq!(ratio(&many, &zero), None);
        assert_eq!(ratio(&zero, &many), None);
        // By hand: rse_a = 1/(11√3), rse_b = 0.5/(5.5√3) = the same… so df = 4, t = 2.776445.
        let half = Estimate::from_values(&[5.0, 5.5, 6.0]).unwrap();
        let r = ratio(&many, &half).unwrap();
        let expected = 2.776_445 * 2.0_f64.sqrt() / (11.0 * 3.0_f64.sqrt());
        assert!((r.value - 2.0).abs() < 1e-12);
        assert!((r.interval.unwrap().high.ln() - (2.0_f64.ln() + expected)).abs() < 1e-9);
    }
}
