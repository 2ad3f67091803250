//! The reference log writer: the best log writer that a machine can have, as an engine of its own,
//! so that a database's commits have a *limit* to be held against.
//!
//! Jobs append redo records to a shared buffer and commit; whoever commits while nobody writes
//! writes the group out itself. See [`device`] for where the log goes.

pub mod device;

pub use device::{DeviceError, DeviceTimes, FileMaker, LogDevice};
