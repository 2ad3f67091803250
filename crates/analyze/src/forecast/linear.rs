//! Least squares with coefficients that cannot be negative, and the lowest point of a function of two variables.

/// One equation: the coefficients' factors, and the value.
pub(crate) type Row<const P: usize> = ([f64; P], f64);

/// The coefficients ≥ 0 with the least sum of squared differences over `rows`, and that sum. Exact: tries all coefficients, then
/// each set of them with the others 0 (Lawson and Hanson, Solving Least Squares Problems, chapter 23, by enumeration, as P ≤ 4).
/// `None` if no set has a solution.
pub(crate) fn non_negative<const P: usize>(rows: &[Row<P>]) -> Option<([f64; P], f64)> {
    let all = (1_usize << P) - 1;
    if let Some(found) = solution(rows, all) {
        return Some(found);
    }
    (1..all).filter_map(|set| solution(rows, set)).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The least squares over the coefficients in the bits of `set`; `None` if one is negative or they are not determined.
fn solution<const P: usize>(rows: &[Row<P>], set: usize) -> Option<([f64; P], f64)> {
    let used: Vec<usize> = (0..P).filter(|i| set >> i & 1 == 1).collect();
    let n = used.len();
    // Normal equations, with the right side as the last column. Columns are scaled to 1: their units differ by 10⁶.
    let scale: Vec<f64> =
        used.iter().map(|i| rows.iter().map(|(a, _)| a.get(*i).map_or(0.0, |v| v * v)).sum::<f64>().sqrt()).collect();
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    let of = |a: &[f64; P], i: usize| Some(a.get(*used.get(i)?)? / scale.get(i)?);
    let mut m = vec![vec![0.0; n + 1]; n];
    for (a, y) in rows {
        for (i, line) in m.iter_mut().enumerate() {
            for (j, cell) in line.iter_mut().enumerate() {
                *cell += of(a, i)? * if j < n { of(a, j)? } else { *y };
            }
        }
    }
    let mut coefficients = [0.0; P];
    for ((value, i), scale) in eliminated(m)?.into_iter().zip(&used).zip(&scale) {
        if value < 0.0 {
            return None;
        }
        *coefficients.get_mut(*i)? = value / scale;
    }
    let off = |(a, y): &Row<P>| y - a.iter().zip(&coefficients).map(|(a, c)| a * c).sum::<f64>();
    let squares: f64 = rows.iter().map(|row| off(row).powi(2)).sum();
    squares.is_finite().then_some((coefficients, squares))
}

/// The solution of equations whose last column is the right side; `None` if they have no single one.
fn eliminated(mut m: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    const SINGULAR: f64 = 1e-10;
    let n = m.len();
    for column in 0..n {
        let size = |line: usize| m.get(line).and_then(|l| l.get(column)).map_or(0.0, |v| v.abs());
        let pivot = (column..n).max_by(|a, b| size(*a).total_cmp(&size(*b)))?;
        if size(pivot) < SINGULAR {
            return None;
        }
        m.swap(column, pivot);
        let leading = m.get(column)?.clone();
        for (_, line) in m.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = line.get(column)? / leading.get(column)?;
            line.iter_mut().zip(&leading).for_each(|(cell, lead)| *cell -= factor * lead);
        }
    }
    m.iter().enumerate().map(|(i, line)| Some(line.last()? / line.get(i)?)).collect()
}

/// `y = a + b·x`, a and b ≥ 0, by relative least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    pub(crate) a: f64,
    pub(crate) b: f64,
}

impl Line {
    /// `None` for fewer than two points.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Line> {
        if points.len() < 2 {
            return None;
        }
        let rows: Vec<Row<2>> = points.iter().map(|(x, y)| ([1.0 / y, x / y], 1.0)).collect();
        let ([a, b], _) = non_negative(&rows)?;
        Some(Line { a, b })
    }

    pub(crate) fn at(&self, x: f64) -> f64 {
        self.a + self.b * x
    }
}

/// Where `f` is lowest around `start`: a pattern search that halves its `step` until it is a thousandth of the first one.
pub(crate) fn descend(start: [f64; 2], step: f64, f: impl Fn([f64; 2]) -> f64) -> ([f64; 2], f64) {
    let (mut at, mut lowest, mut width) = (start, f(start), step);
    let directions =
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]];
    while width > step / 1000.0 {
        let tried = directions.iter().map(|[x, y]| [at[0] + x * width, at[1] + y * width]).map(|p| (p, f(p)));
        match tried.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, value)| *value < lowest) {
            Some((p, value)) => (at, lowest) = (p, value),
            None => width /= 2.0,
        }
    }
    (at, lowest)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_are_found_and_never_negative() {
        let rows = |c: [f64; 3]| -> Vec<Row<3>> {
            (1..9)
                .map(f64::from)
                .map(|x| [1.0, x * 1e4, (x * 1e4).powi(2)])
                .map(|a| (a, a[0] * c[0] + a[1] * c[1] + a[2] * c[2]))
                .collect()
        };
        let (found, off) = non_negative(&rows([3.0, 2e-4, 5e-9])).unwrap();
        assert!(
            off < 1e-12 && (found[1] / 2e-4 - 1.0).abs() < 1e-6 && (found[2] / 5e-9 - 1.0).abs() < 1e-6,
            "{found:?}"
        );
        let (found, off) = non_negative(&rows([3.0, -2e-4, 5e-9])).unwrap();
        assert!(off > 0.0 && found[1] == 0.0 && found.iter().all(|c| *c >= 0.0), "{found:?}");
        assert_eq!(non_negative::<2>(&[]), None);
        assert_eq!(non_negative::<1>(&[([f64::NAN], 1.0)]), None);
    }

    #[test]
    fn lowest_points_and_inverses_are_found() {
        let ([x, y], _) = descend([0.0, 0.0], 1.0, |[x, y]| (x - 2.5).powi(2) + (y - x + 1.0).powi(2));
        assert!((x - 2.5).abs() < 0.01 && (y - 1.5).abs() < 0.01, "{x} {y}");
        assert!((inverse(10.0, 9.0, |x| x * x) - 3.0).abs() < 1e-9);
    }
}
