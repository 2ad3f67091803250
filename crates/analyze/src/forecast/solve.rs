//! Least squares with coefficients that cannot be negative, and the inverse of a rising function.

/// One equation: the coefficients' factors, and the value.
pub(crate) type Row<const P: usize> = ([f64; P], f64);

/// The coefficients ≥ 0 with the least sum of squared differences over `rows`, and that sum. Exact: tries each set of them with the
/// others 0 (Lawson and Hanson, Solving Least Squares Problems, chapter 23, by enumeration, as P ≤ 4).
pub(crate) fn non_negative<const P: usize>(rows: &[Row<P>]) -> Option<([f64; P], f64)> {
    (1..1_usize << P).rev().filter_map(|set| solution(rows, set)).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The least squares over the coefficients in the bits of `set`; `None` if one is negative or they are not determined.
fn solution<const P: usize>(rows: &[Row<P>], set: usize) -> Option<([f64; P], f64)> {
    const SINGULAR: f64 = 1e-10;
    let used: Vec<usize> = (0..P).filter(|i| set >> i & 1 == 1).collect();
    let n = used.len();
    // Columns are scaled to 1: their units differ by 10⁶. The right side is the last one.
    let column = |i: &usize| rows.iter().map(|(a, _)| a[*i]).collect::<Vec<f64>>();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut columns: Vec<Vec<f64>> = used.iter().map(column).collect();
    let scale: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    columns.iter_mut().zip(&scale).for_each(|(column, scale)| column.iter_mut().for_each(|v| *v /= scale));
    columns.push(rows.iter().map(|(_, y)| *y).collect());
    // Normal equations, eliminated.
    let mut m: Vec<Vec<f64>> = columns.iter().take(n).map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
    for pivot in 0..n {
        let largest = (pivot..n).max_by(|a, b| m[*a][pivot].abs().total_cmp(&m[*b][pivot].abs()))?;
        m.swap(pivot, largest);
        let leading = m[pivot].clone();
        if leading[pivot].is_nan() || leading[pivot].abs() < SINGULAR {
            return None;
        }
        for (_, line) in m.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = line[pivot] / leading[pivot];
            line.iter_mut().zip(&leading).for_each(|(cell, lead)| *cell -= factor * lead);
        }
    }
    let mut found = [0.0; P];
    for (at, (i, scale)) in used.iter().zip(&scale).enumerate() {
        found[*i] = m[at][n] / m[at][at] / scale;
    }
    let squares: f64 = rows.iter().map(|(a, y)| (y - dot(a, &found)).powi(2)).sum();
    (squares.is_finite() && found.iter().all(|c| *c >= 0.0)).then_some((found, squares))
}

/// The `x` in 0…`end` at which the rising function `f` is `value`.
pub(crate) fn inverse(end: f64, value: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, end);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if f(middle) < value { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}
