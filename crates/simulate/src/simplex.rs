//! The downhill simplex method (Nelder and Mead 1965): a minimum of a function without derivatives, of a few parameters.

/// A point with the function's value there.
type Vertex = (Vec<f64>, f64);

/// The lowest point found from `start` with a first simplex of edges `step`, after `evaluations` evaluations of `cost` or once all
/// vertices are within `close` of the best.
pub(crate) fn minimum(
    start: &[f64],
    step: f64,
    close: f64,
    evaluations: usize,
    mut cost: impl FnMut(&[f64]) -> f64,
) -> Vertex {
    let mut evaluated = 0;
    let mut at = |x: Vec<f64>| {
        evaluated += 1;
        let value = cost(&x);
        ((x, if value.is_nan() { f64::INFINITY } else { value }), evaluated)
    };
    let first = at(start.to_vec()).0;
    let mut simplex: Vec<Vertex> = vec![first];
    for i in 0..start.len() {
        let mut x = start.to_vec();
        x[i] += step;
        simplex.push(at(x).0);
    }
    let n = start.len() as f64;
    loop {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let Some(((worst, worst_value), better)) = simplex.split_last() else { return (start.to_vec(), f64::INFINITY) };
        let (best, second) = (better.first(), better.last());
        let (Some(best), Some(second)) = (best, second) else { return simplex.swap_remove(0) };
        let far = better.iter().flat_map(|v| v.0.iter().zip(&best.0)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let centre: Vec<f64> = (0..worst.len()).map(|i| better.iter().map(|v| v.0[i]).sum::<f64>() / n).collect();
        let along = |t: f64| centre.iter().zip(worst).map(|(c, w)| c + t * (c - w)).collect::<Vec<f64>>();
        if far < close {
            return best.clone();
        }
        let (reflected, so_far) = at(along(1.0));
        if so_far >= evaluations {
            return if reflected.1 < best.1 { reflected } else { best.clone() };
        }
        let next = if reflected.1 < best.1 {
            let (expanded, _) = at(along(2.0));
            if expanded.1 < reflected.1 { Some(expanded) } else { Some(reflected) }
        } else if reflected.1 < second.1 {
            Some(reflected)
        } else {
            let (contracted, _) = at(along(if reflected.1 < *worst_value { 0.5 } else { -0.5 }));
            (contracted.1 < worst_value.min(reflected.1)).then_some(contracted)
        };
        let best = best.0.clone();
        match next {
            Some(vertex) => {
                simplex.pop();
                simplex.push(vertex);
            }
            None => {
                for vertex in simplex.iter_mut().skip(1) {
                    let halved = best.iter().zip(&vertex.0).map(|(b, v)| (b + v) / 2.0).collect();
                    *vertex = at(halved).0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_minimum_of_rosenbrocks_valley_and_of_a_bowl() {
        let valley = |x: &[f64]| 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2);
        let (x, value) = minimum(&[-1.2, 1.0], 0.5, 1e-7, 2000, valley);
        assert!((x[0] - 1.0).abs() < 1e-3 && (x[1] - 1.0).abs() < 1e-3 && value < 1e-6, "{x:?}");
        let bowl = |x: &[f64]| x.iter().zip(1..).map(|(v, i)| (v - f64::from(i)).powi(2)).sum::<f64>();
        let (x, _) = minimum(&[0.0; 5], 0.4, 1e-6, 3000, bowl);
        assert!(x.iter().zip(1..).all(|(v, i)| (v - f64::from(i)).abs() < 0.01), "{x:?}");
        assert_eq!(minimum(&[], 1.0, 1.0, 10, |_| 3.0).1, 3.0);
        assert!(minimum(&[1.0], 1.0, 0.0, 50, |_| f64::NAN).1.is_infinite());
    }
}
