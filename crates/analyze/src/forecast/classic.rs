//! The models that a forecast is held against: the Universal Scalability Law, Amdahl's law, the last two points, and CPU alone.

use super::linear::{Row, descend, non_negative};
use super::series::Point;
use super::utilisation::full_cpu_tps;

/// `tps(N) = λN / (1 + σ(N − 1) + κN(N − 1))`, σ and κ ≥ 0. With κ = 0 it is Amdahl's law (Gunther, Guerrilla Capacity Planning,
/// Springer 2007, chapters 4 to 6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scalability {
    /// tps at one job.
    lambda: f64,
    /// Contention.
    sigma: f64,
    /// Coherency delay.
    kappa: f64,
}

impl Scalability {
    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        self.lambda * relative(jobs, self.sigma, self.kappa)
    }

    /// The Universal Scalability Law by least squares of tps, as Gunther fits it; needs 3 points.
    pub(crate) fn usl(points: &[Point]) -> Option<Scalability> {
        let start = Scalability::linear(points, true)?;
        // Searched in logarithms: σ and κ span many powers of ten.
        let law = |[s, k]: [f64; 2]| best_lambda(points, s.exp(), k.exp());
        let off = |at| law(at).map_or(f64::INFINITY, |(_, off)| off);
        let starts = [[start.sigma, start.kappa], [0.1, 1e-4], [0.01, 1e-6], [1e-9, 1e-9]];
        let tried = starts.map(|[s, k]| descend([s.max(1e-9).ln(), k.max(1e-12).ln()], 1.0, off));
        let (at, _) = tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (lambda, _) = law(at)?;
        Some(Scalability { lambda, sigma: at[0].exp(), kappa: at[1].exp() })
    }

    /// Amdahl's law by least squares of the relative cycle time, in which it is linear; needs 2 points.
    pub(crate) fn amdahl(points: &[Point]) -> Option<Scalability> {
        Scalability::linear(points, false)
    }

    /// `N / tps = a + b(N − 1) + cN(N − 1)` by relative least squares.
    fn linear(points: &[Point], coherency: bool) -> Option<Scalability> {
        if points.len() < if coherency { 3 } else { 2 } {
            return None;
        }
        let rows: Vec<Row<3>> = points
            .iter()
            .map(|p| {
                let n = p.jobs;
                let of = |value: f64| value / p.cycle_s();
                ([of(1.0), of(n - 1.0), if coherency { of(n * (n - 1.0)) } else { 0.0 }], 1.0)
            })
            .collect();
        let [a, b, c] = non_negative(&rows)?.0;
        (a > 0.0).then(|| Scalability { lambda: 1.0 / a, sigma: b / a, kappa: c / a })
    }
}

fn relative(jobs: f64, sigma: f64, kappa: f64) -> f64 {
    jobs / (1.0 + sigma * (jobs - 1.0) + kappa * jobs * (jobs - 1.0))
}

/// The λ that fits best, and the sum of squares.
fn best_lambda(points: &[Point], sigma: f64, kappa: f64) -> Option<(f64, f64)> {
    let rows: Vec<Row<1>> = points.iter().map(|p| ([relative(p.jobs, sigma, kappa)], p.tps)).collect();
    let ([lambda], off) = non_negative(&rows)?;
    Some((lambda, off))
}

/// A straight line through the last two points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LastTwo {
    last: (f64, f64),
    slope: f64,
}

impl LastTwo {
    pub(crate) fn of(points: &[Point]) -> Option<LastTwo> {
        let [.., a, b] = points else { return None };
        Some(LastTwo { last: (b.jobs, b.tps), slope: (b.tps - a.tps) / (b.jobs - a.jobs) })
    }

    /// Never below a thousandth of the last point: a falling line has no meaning at 0.
    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        (self.last.1 + self.slope * (jobs - self.last.0)).max(self.last.1 / 1000.0)
    }
}

/// Jobs that meet only at the CPUs: tps rises in proportion to jobs until the CPUs are full, which bounds every curve (asymptotic
/// bounds: Lazowska et al., Quantitative System Performance, 1984, chapter 5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuLine {
    /// tps of a job.
    each: f64,
}

impl CpuLine {
    pub(crate) fn of(points: &[Point]) -> Option<CpuLine> {
        full_cpu_tps(points)?;
        Some(CpuLine { each: points.iter().map(|p| p.tps / p.jobs).fold(0.0, f64::max) })
    }

    pub(crate) fn tps(&self, jobs: f64) -> f64 {
        self.each * jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_found_from_its_own_points() {
        for (sigma, kappa) in [(0.0, 0.0), (0.05, 0.0), (0.02, 3e-4), (0.3, 1e-5)] {
            let truth = Scalability { lambda: 700.0, sigma, kappa };
            let points: Vec<Point> = [1.0, 4.0, 8.0, 16.0, 24.0]
                .map(|jobs| Point { jobs, tps: truth.tps(jobs), ..Point::default() })
                .to_vec();
            let found = Scalability::usl(&points).unwrap();
            for jobs in [2.0, 48.0] {
                assert!((found.tps(jobs) / truth.tps(jobs) - 1.0).abs() < 0.01, "{found:?} of {truth:?}");
            }
            assert!(Scalability::amdahl(&points).unwrap().tps(48.0) >= truth.tps(48.0) * 0.999);
        }
        assert_eq!(Scalability::usl(&[Point { jobs: 1.0, tps: 1.0, ..Point::default() }]), None);
    }
}
