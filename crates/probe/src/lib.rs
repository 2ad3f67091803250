//! The device probe: what the storage under a directory allows, measured in about half a minute.
//!
//! [`probe`] makes a test file of its own, fills it, and measures sync writes, reads and sequential
//! transfers in short slices that take turns, so that a good or a bad moment of a shared device
//! falls on all of them. No file that it did not make is touched.

mod clock;
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
pub use leftovers::{Leftovers, clean_leftovers};
pub use options::{ProbeOptions, SMALLEST_FILE};
pub use plan::{Point, READ_DEPTHS, READ_SIZES, SEQUENTIAL_DEPTHS, SEQUENTIAL_SIZE, SYNC_SIZES, points};
pub use run::{Event, probe};
pub use session::Session;
