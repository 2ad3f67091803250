//! Forecasts: from a sweep over jobs to what lies beyond it.
//!
//! Between measured points the time of a cycle is interpolated. Beyond them one of two laws is fitted (`laws`): a closed model
//! of CPUs and log, or the Universal Scalability Law, whichever would have forecast the last points of the platform better from
//! those before them (`fitted`). The errors of these forecasts give the intervals. A series that its law does not follow is
//! refused. [`evaluate`] shows what forecasts of a table are worth: it forecasts the upper half of each series.
//!
//! Pure and deterministic. Read `points` for what goes in, `fitted` for what comes out.

mod evaluate;
mod figures;
mod fitted;
mod laws;
mod points;

pub use evaluate::{Evaluated, HeldOut, Overall, evaluate, overall};
pub use figures::Figure;
pub use fitted::{Estimate, Fitted, Jobs, Question, fit};
pub use laws::Kind;
pub use points::{Point, Series, series};

#[cfg(test)]
mod tests;
