//! A discrete-event model of commits: jobs, CPUs, redo buffer, log writer, device and standby. Pure: no I/O, no clock.
//!
//! [`Platform`] is what is simulated, [`simulate`] what it does. docs/simulate.md says what is modelled and what not.

mod answer;
mod calibrate;
mod cpus;
mod device;
mod draw;
mod events;
/// The rule by which the reference log writer delays a write for jobs that are about to commit: its own file, so that both agree. Its ns are
/// ticks here.
#[path = "../../logwriter/src/gather.rs"]
mod gather;
mod measured;
mod node;
mod platform;
mod point;
mod run;
mod simplex;
mod start;
mod what_if;

#[cfg(test)]
mod tests;

pub use answer::{AS_MEASURED, Answer, Bound, Checked, Line, TRIED, with_standby};
pub use calibrate::{Calibration, Fitted, GOOD_PCT, Parameter, calibrate, error_pct};
pub use device::{Drift, MeasuredDevice};
pub use draw::Spread;
pub use measured::{Measured, Unfit};
pub use platform::{Device, MOST, OutOfRange, Platform, Standby, Way};
pub use point::Point;
pub use run::{Length, Outcome, simulate};
pub use what_if::{ASSUMED, AssumedDevice, CpuChange, OtherDevice, WhatIf};
