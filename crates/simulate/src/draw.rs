//! Draws of times: fixed, exponential or log-normal, all given by their mean.

use loadline_model::random::Random;

/// How times spread around their mean.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// All are the mean.
    Fixed,
    /// Exponential: the coefficient of variation is 1.
    Exponential,
    /// Log-normal with this standard deviation of the logarithm.
    LogNormal(f64),
}

impl Spread {
    /// The log-normal spread with this median and 99th percentile: σ = ln(p99 / p50) / 2.326, at most 2.
    #[must_use]
    pub fn of_quantiles(p50: f64, p99: f64) -> Spread {
        /// 99th percentile of the normal distribution.
        const Z99: f64 = 2.326_347_874;
        let sigma = (p99 / p50).ln() / Z99;
        if sigma.is_finite() && sigma > 0.0 { Spread::LogNormal(sigma.min(2.0)) } else { Spread::Fixed }
    }
}

/// A seeded source of times.
pub(crate) struct Draw {
    random: Random,
    /// The second of two normal numbers.
    spare: Option<f64>,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw { random: Random::new(seed), spare: None }
    }

    /// In (0, 1].
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.random.next() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A normal number (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.unit().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.unit()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// A time with this mean, in its unit.
    pub(crate) fn time(&mut self, mean: f64, spread: Spread) -> f64 {
        match spread {
            _ if mean <= 0.0 => 0.0,
            Spread::Fixed => mean,
            Spread::Exponential => -mean * self.unit().ln(),
            // The mean of exp(σ z) is exp(σ² / 2).
            Spread::LogNormal(sigma) => mean * (sigma * self.normal() - sigma * sigma / 2.0).exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_quantiles_asked_for() {
        const N: usize = 200_000;
        for spread in [Spread::Fixed, Spread::Exponential, Spread::LogNormal(0.5)] {
            let mut draw = Draw::new(7);
            let mut times: Vec<f64> = (0..N).map(|_| draw.time(40.0, spread)).collect();
            let mean = times.iter().sum::<f64>() / N as f64;
            assert!((mean / 40.0 - 1.0).abs() < 0.01, "{spread:?}: {mean}");
            times.sort_by(f64::total_cmp);
            if let Spread::LogNormal(sigma) = spread {
                let Spread::LogNormal(back) = Spread::of_quantiles(times[N / 2], times[N * 99 / 100]) else { panic!() };
                assert!((back / sigma - 1.0).abs() < 0.02, "{back}");
            }
        }
        assert_eq!(Spread::of_quantiles(5.0, 5.0), Spread::Fixed);
        assert_eq!(Spread::of_quantiles(0.0, 5.0), Spread::Fixed);
    }
}
