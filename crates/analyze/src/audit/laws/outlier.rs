//! How far a point of a curve is off what the others give it, and how far they are off each other.

/// A point of a curve over a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Which test of the sweep, counted from 0.
    pub(super) at: usize,
    /// Logarithm of the setting.
    pub(super) x: f64,
    /// Logarithm of the figure.
    pub(super) y: f64,
    /// What its digits leave open.
    pub(super) half: f64,
}

/// A point against the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    /// How far it is off, as a logarithm.
    pub(super) off: f64,
    /// Standard deviation of a point from the curve, by the others alone.
    pub(super) spread: f64,
    /// The largest deviation of another point, as a multiple of its standard deviation for a spread of 1.
    most: f64,
    /// Degrees of freedom of `spread`.
    freedom: f64,
    /// Standard deviation of `off` for a spread of 1.
    scale: f64,
    /// Whether it is between others.
    pub(super) inside: bool,
    /// What digits and bends may hide.
    hidden: f64,
}

/// What a curve does on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A figure, or a ratio that changes with the load: it bends where the platform does.
    Bends,
    /// A ratio that the load changes slowly.
    Slow,
    /// A ratio that is the same under any load.
    Same,
}

impl Shape {
    /// Deviation of a point between others, and at the ends, that is nothing special.
    fn bend(self, order: usize) -> (f64, f64) {
        match self {
            Shape::Bends if order > 0 => (0.1, 0.2),
            Shape::Bends | Shape::Slow => (0.03, 0.2),
            Shape::Same => (0.03, 0.08),
        }
    }
}

/// A point beside a bend of the curve is off by two thirds of what the point at the bend is.
const BEND: f64 = 2.0;
/// Spread of a curve without noise, and the largest of one with enough points.
const QUIET: f64 = 0.02;
const NOISY: f64 = 0.2;
/// Degrees of freedom of enough points.
const ENOUGH: f64 = 4.0;
/// Degrees of freedom for which the spread of the other columns counts.
const PRIOR: f64 = 3.0;
/// Quantile of the normal distribution that 1 in 16,000 exceeds to either side: a table has hundreds of cells.
const QUANTILE: f64 = 4.0;

impl Test {
    /// The largest deviation that is nothing special, if the columns of the table have a spread of `usual`.
    ///
    /// A few residuals may be small by chance; the spread of the other columns moderates theirs (Smyth 2004, "Linear models
    /// and empirical Bayes methods").
    pub(super) fn limit(&self, usual: f64) -> f64 {
        let freedom = self.freedom + PRIOR;
        (student(freedom) * self.moderated(usual)).max(BEND * self.most) * self.scale + self.hidden
    }
}

impl Test {
    fn moderated(&self, usual: f64) -> f64 {
        let squares = self.freedom * self.spread.powi(2) + PRIOR * usual.powi(2);
        (squares / (self.freedom + PRIOR)).sqrt()
    }

    /// Whether the others lie on a curve at all. Noise of figures has heavy tails, which a few points do not show: then, and
    /// for `tails`, only a curve without noise tells a wrong figure from a lucky one.
    pub(super) fn is_curve(&self, usual: f64, tails: bool) -> bool {
        self.moderated(usual) <= if tails || self.freedom < ENOUGH { QUIET } else { NOISY }
    }

    /// The limit if nothing is known of other columns.
    pub(super) fn own_limit(&self) -> f64 {
        self.limit(self.spread)
    }
}

/// Quantile of Student's t to the probability of [`QUANTILE`] (Wallace 1959).
fn student(freedom: f64) -> f64 {
    let z = QUANTILE * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * ((z * z / freedom).exp() - 1.0)).sqrt()
}

/// Each point of a curve against the others; one entry for each of `count` tests.
pub(super) fn deleted(points: &[Point], count: usize, shape: Shape) -> Vec<Option<Test>> {
    let mut tests = vec![None; count];
    for (i, point) in points.iter().enumerate() {
        let others: Vec<Point> = points.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p).collect();
        // The simplest curve that fits the others best: that which would show the smallest deviation.
        let tests_of = [0, 1, 3].into_iter().filter_map(|order| test(*point, &others, order, shape));
        if let Some(place) = tests.get_mut(point.at) {
            *place = tests_of.min_by(|a, b| a.own_limit().total_cmp(&b.own_limit()));
        }
    }
    tests
}

fn test(point: Point, others: &[Point], order: usize, shape: Shape) -> Option<Test> {
    let freedom = others.len().checked_sub(order + 1).filter(|f| *f >= 2)? as f64;
    let (mut sum, mut most) = (0.0, 0.0f64);
    let mut rest = Vec::with_capacity(others.len());
    for (i, other) in others.iter().enumerate() {
        rest.clear();
        rest.extend(others.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p));
        let (off, scale, _) = residual(*other, &rest, order)?;
        sum += (off / scale).powi(2);
        most = most.max((off / scale).abs());
    }
    let (off, scale, half) = residual(point, others, order)?;
    let inside = others.iter().any(|p| p.x < point.x) && others.iter().any(|p| p.x > point.x);
    if !inside && order > 1 {
        return None;
    }
    let (between, beyond) = shape.bend(order);
    let hidden = point.half + half + if inside { between } else { beyond };
    Some(Test { off, spread: (sum / others.len() as f64).sqrt(), most, freedom, scale, inside, hidden })
}

/// Distance of a point from what `others` give it, its standard deviation for a spread of 1, and what their digits leave
/// open. Order 0 is their mean, a higher one the polynomial through the nearest of them at either side.
fn residual(point: Point, others: &[Point], order: usize) -> Option<(f64, f64, f64)> {
    let (mut near, mut equal) = (others, true);
    if order > 0 {
        let above = others.partition_point(|p| p.x < point.x);
        let from = above.saturating_sub(order.div_ceil(2)).min(others.len().checked_sub(order + 1)?);
        near = others.get(from..=from + order)?;
        equal = false;
    }
    let (mut off, mut squares, mut half) = (point.y, 1.0, 0.0);
    for (i, p) in near.iter().enumerate() {
        let lagrange = |(j, q): (usize, &Point)| if i == j { 1.0 } else { (point.x - q.x) / (p.x - q.x) };
        let weight = if equal { 1.0 / near.len() as f64 } else { near.iter().enumerate().map(lagrange).product() };
        off -= weight * p.y;
        squares += weight * weight;
        half += weight.abs() * p.half;
    }
    off.is_finite().then_some((off, squares.sqrt(), half))
}
