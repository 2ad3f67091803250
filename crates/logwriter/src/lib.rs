//! The reference log writer: the fastest log writer that a machine allows. A database's commits are compared with
//! it: it is their *limit*.
//!
//! ```text
//!  jobs            buffer (a ring)             log device
//!  Session ──┐   ┌────────────────────┐
//!  Session ──┼──>│ records, checksums │──groups──> file 0, 1, 2, ...   whole blocks,
//!  Session ──┘   └────────────────────┘            written, synced     each written once
//! ```
//!
//! Jobs copy redo records into a shared buffer in parallel, then commit. If nobody is writing, the committing job
//! writes the whole buffer itself, without a thread switch. Jobs that commit during a write share the next one;
//! their leader is chosen and woken first. When a group is durable, exactly the jobs with records in it are woken.
//! One background thread writes what no job waits for, another prepares log files ahead of use.
//!
//! Blocks are written once: a group pads its last block, as Oracle does, and the next group starts a new one. So a
//! torn write cannot damage what was reported durable, and devices need no sector atomicity. The cost, part of a
//! block per group, is visible in [`Stats`] (`log_bytes` against `redo_bytes`).
//!
//! While redo arrives faster than the device takes it, writes that nobody waits for may be synced later
//! ([`LogConfig::put_off_bytes`]). What is reported durable is durable.
//!
//! After a failed write or sync nothing more is reported durable until the log is opened again, which recovers it
//! from the device.
//!
//! # Example
//! ```
//! use loadline_logwriter::{CommitMode, LogConfig, LogWriter, device::file};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let device = file::FileDevice::open(dir.path(), &file::FileConfig { file_bytes: 1 << 20, ..Default::default() })?;
//! let (writer, recovered) = LogWriter::open(&LogConfig::default(), Box::new(device))?;
//! let mut session = writer.session()?;
//! session.append(b"row 1: 10 -> 20")?;
//! let times = session.commit(CommitMode::Wait)?;
//! assert_eq!(recovered.commits, 0);
//! assert!(times.sync_ns > 0);
//! assert_eq!(writer.close()?.commits_waited, 1);
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod config;
pub mod device;
mod engine;
mod error;
mod files;
#[cfg(test)]
mod files_tests;
mod gather;
mod layout;
mod output;
mod record;
mod recover;
mod ring;
#[cfg(test)]
mod ring_tests;
mod session;
mod slot;
mod state;
mod stats;
mod sync;
mod types;
mod writer;

pub use config::{Keep, LogConfig};
pub use device::{DeviceError, DeviceTimes, FileMaker, LogDevice};
pub use engine::Clock;
pub use error::{LogError, RecoverError};
pub use recover::{Record, Records, Recovered, recover};
pub use session::LogSession;
pub use stats::{CommitTimes, GROUP_BUCKETS, Stats, Trigger};
pub use types::{CommitMode, Lsn};
pub use writer::LogWriter;

/// Bytes of the header that each record and each commit has in the log, in addition to the payload.
pub const HEADER_BYTES: u64 = record::HEADER as u64;

// The name under which the helpers in `tests/common` know this crate.
#[cfg(test)]
use crate as log;
use sync::locked;
