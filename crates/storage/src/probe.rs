//! The device probe: measures in about half a minute what the storage under a directory allows.
//!
//! [`probe`] creates a test file, fills it, and measures sync writes, reads and sequential transfers. The measurements
//! alternate in short slices, so that good and bad moments of a shared device affect all of them. It touches only its own
//! files.

mod data;
mod error;
mod leftovers;
mod options;
mod persist;
mod plan;
mod queue;
mod run;
mod session;
mod sync;
mod tally;
mod testfile;

pub use error::ProbeError;
pub use options::{ProbeOptions, SMALLEST_FILE};
pub use plan::{Point, READ_DEPTHS, READ_SIZES, SEQUENTIAL_DEPTHS, SEQUENTIAL_SIZE, SYNC_SIZES, points};
pub use run::{Event, probe};
pub use session::ProbeSession;
