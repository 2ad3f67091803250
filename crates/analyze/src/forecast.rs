//! Forecasts: from a sweep over jobs to what lies beyond it.
//!
//! Between measured points: monotone interpolation. Beyond: the model that would have forecast the platform's own last points
//! best from those before them (`choose`): a closed model of CPUs and log (`closed`), the Universal Scalability Law, Amdahl's law, a
//! line through the last two points, or CPU alone (`classic`). Where none follows the points, nothing is forecast. Intervals come
//! from the same errors (`interval`). [`evaluate`] shows what it is worth on a table: it forecasts the upper half of each series.
//!
//! Pure and deterministic. Read `series` for what goes in, `fitted` for what comes out.

mod choose;
mod classic;
mod closed;
mod evaluate;
mod figures;
mod fitted;
mod interpolation;
mod interval;
mod linear;
mod model;
mod objective;
mod of_run;
mod series;
mod utilisation;

pub use evaluate::{Evaluated, Evaluation, HeldOut, Overall, evaluate};
pub use figures::Figure;
pub use fitted::{CrossValidated, Fitted, fit};
pub use interval::{COVERAGE, Estimate};
pub use model::Kind;
pub use objective::{FARTHEST, Jobs};
pub use of_run::of_run;
pub use series::{Point, Series, SeriesError};

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
