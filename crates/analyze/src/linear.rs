//! Least squares: what a column explains beside others.

/// Share of a column's square that the others leave, up to which they explain it.
const SINGULAR: f64 = 1e-10;

/// A linear model: orthonormal columns, beside which others are fitted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model(pub(crate) Vec<Vec<f64>>);

impl Model {
    /// Powers of `x` up to `degree`; `None` if the sizes do not span a range.
    pub(crate) fn of_degree(degree: i32, x: &[f64]) -> Option<Model> {
        let range = x.last().copied().filter(|r| *r > 0.0)?;
        let mut model = Model::default();
        let power = |degree| x.iter().map(|x| (2.0 * x / range - 1.0).powi(degree)).collect::<Vec<_>>();
        (0..=degree).all(|degree| model.add(&power(degree))).then_some(model)
    }

    /// Adds a column, unless those before it explain it.
    pub(crate) fn add(&mut self, column: &[f64]) -> bool {
        let mut rest = self.rest(column);
        let norm = square(&rest).sqrt();
        let differs = norm.is_finite() && norm * norm > SINGULAR * square(column);
        if differs {
            rest.iter_mut().for_each(|v| *v /= norm);
            self.0.push(rest);
        }
        differs
    }

    /// `values` without what the model explains.
    pub(crate) fn rest(&self, values: &[f64]) -> Vec<f64> {
        let mut rest = values.to_vec();
        // Twice, for precision.
        for column in self.0.iter().chain(&self.0) {
            let share = dot(column, &rest);
            rest.iter_mut().zip(column).for_each(|(v, c)| *v -= share * c);
        }
        rest
    }

    /// Coefficient of `column` beside the model, and its standard error.
    pub(crate) fn coefficient(&self, column: &[f64], values: &[f64]) -> Option<(f64, f64)> {
        let (column, values) = (self.rest(column), self.rest(values));
        let whole = square(&column);
        let coefficient = dot(&column, &values) / whole;
        let left: f64 = values.iter().zip(&column).map(|(v, c)| (v - coefficient * c).powi(2)).sum();
        let freedom = values.len().saturating_sub(self.0.len() + 1).max(1) as f64;
        coefficient.is_finite().then(|| (coefficient, (left / freedom / whole).sqrt()))
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn square(values: &[f64]) -> f64 {
    dot(values, values)
}

pub(crate) fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| v - mean).collect()
}

/// Size of `shape` in `values` beside their mean, and what both leave.
pub(crate) fn beside(values: &[f64], shape: &[f64]) -> (f64, Vec<f64>) {
    let (values, shape) = (centred(values), centred(shape));
    let size = dot(&values, &shape) / dot(&shape, &shape);
    (size, values.iter().zip(&shape).map(|(v, s)| v - size * s).collect())
}
