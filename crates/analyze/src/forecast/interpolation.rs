//! Between measured points: the cycle time `jobs / tps` by monotone cubic interpolation over jobs (Fritsch and Carlson, SIAM
//! Journal on Numerical Analysis 17 (1980) 238): where the points rise, the curve does, and it passes through each of them.

use super::series::Point;

/// Throughput at `jobs` from the points around it; below the first one as many tps per job as there. `None` above the last.
pub(crate) fn tps(points: &[Point], jobs: f64) -> Option<f64> {
    let first = points.first()?;
    if jobs <= first.jobs {
        return Some(jobs / first.cycle_s());
    }
    let of = |figure: f64| (figure.is_finite() && figure > 0.0).then(|| jobs / figure);
    of(cubic(&points.iter().map(|p| (p.jobs, p.cycle_s())).collect::<Vec<_>>(), jobs)?)
}

/// Errors ln(interpolated / measured) of the inner points, each interpolated from the others: at twice the gaps there are.
pub(crate) fn errors(points: &[Point]) -> Vec<f64> {
    let inner = 1..points.len().saturating_sub(1);
    let of = |at: usize| {
        let mut others = points.to_vec();
        let point = others.remove(at);
        Some((tps(&others, point.jobs)? / point.tps).ln())
    };
    inner.filter_map(of).filter(|e| e.is_finite()).collect()
}

/// The value at `x` of the monotone cubic through `points` (x rising); `None` outside them.
pub(crate) fn cubic(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let n = points.windows(2).position(|w| matches!(w, [a, b] if a.0 <= x && x <= b.0))?;
    let secant = |n: usize| match points.get(n..n + 2) {
        Some([a, b]) => Some((b.1 - a.1) / (b.0 - a.0)),
        _ => None,
    };
    let here = secant(n)?;
    let tangent = |at: usize| match (at.checked_sub(1).and_then(secant), secant(at)) {
        (Some(before), Some(after)) if before * after <= 0.0 => 0.0,
        // The harmonic mean is at most twice the smaller slope, which keeps the curve monotone.
        (Some(before), Some(after)) => 2.0 * before * after / (before + after),
        _ => here,
    };
    let ([a, b], [slope_a, slope_b]) = match points.get(n..n + 2) {
        Some([a, b]) => ([*a, *b], [tangent(n), tangent(n + 1)]),
        _ => return None,
    };
    let h = b.0 - a.0;
    let t = (x - a.0) / h;
    let (t2, t3) = (t * t, t * t * t);
    let ends = a.1 * (2.0 * t3 - 3.0 * t2 + 1.0) + b.1 * (3.0 * t2 - 2.0 * t3);
    Some(ends + h * (slope_a * (t3 - 2.0 * t2 + t) + slope_b * (t3 - t2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_passes_through_its_points_and_never_leaves_their_range() {
        let points = [(1.0, 2.0), (2.0, 2.1), (4.0, 5.0), (8.0, 5.0), (16.0, 4.0)];
        for (x, y) in points {
            assert!((cubic(&points, x).unwrap() - y).abs() < 1e-12);
        }
        for w in points.windows(2) {
            let mut before = w[0].1;
            for step in 1..=50 {
                let y = cubic(&points, w[0].0 + (w[1].0 - w[0].0) * f64::from(step) / 50.0).unwrap();
                assert!((y - before) * (w[1].1 - w[0].1) >= -1e-12, "{w:?} {y}");
                before = y;
            }
        }
        assert_eq!(cubic(&points, 17.0), None);
        assert_eq!(cubic(&points[..1], 1.0), None);
    }
}
