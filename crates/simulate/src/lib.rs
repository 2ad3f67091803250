//! A discrete-event model of commits: jobs, CPUs, redo buffer, log writer, device and standby. Pure: no I/O, no clock.
//!
//! [`Platform`] is what is simulated, [`simulate`] what it does. docs/simulate.md says what is modelled and what not.

mod answer;
mod calibrate;
mod cpus;
mod draw;
mod events;
mod gather;
mod measured;
mod node;
mod platform;
mod run;
mod simplex;
mod what_if;

#[cfg(test)]
mod tests;

pub use answer::{AS_MEASURED, Answer, Bound, Checked, Line, TRIED, with_standby};
pub use calibrate::{Calibration, Fitted, GOOD_PCT, Parameter, calibrate, error_pct};
pub use draw::Spread;
pub use measured::{Drift, Measured, MeasuredDevice, Point, Unfit};
pub use platform::{Device, MOST, OutOfRange, Platform, Standby, Way};
pub use run::{Length, Outcome, simulate};
pub use what_if::{ASSUMED, AssumedDevice, CpuChange, OtherDevice, WhatIf};
