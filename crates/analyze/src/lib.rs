//! Analysis of test records: statistics, sweeps with their load line, what bounds a test, comparisons between
//! platforms. Pure functions: no I/O, no clock, no target.

pub mod audit;
pub mod bound;
pub mod compare;
pub mod forecast;
pub mod idle;
pub mod kept;
pub mod kpi;
pub mod levels;
mod linear;
pub mod paired;
pub mod rate;
pub mod repeatable;
pub mod sawtooth;
pub mod stats;
pub mod steady;
pub mod sweep;
pub mod trend;
pub mod variants;
pub mod waits;
pub mod within;

pub use bound::{Bound, BoundBy, bound, bound_of_sweep, fill_bounded_by};
pub use compare::{Comparison, Factor, Platform, compare};
pub use kept::{Disturbed, kept_test};
pub use sawtooth::{Shape, shape};
pub use stats::{Estimate, Interval, Ratio};
pub use sweep::{LoadLine, NotKey, Saturation, Sweep, SweepPoint, sweeps};
