//! The reference log writer: the best log writer that a machine can have, as an engine of its own,
//! so that a database's commits have a *limit* to be held against.
//!
//! ```text
//!  jobs            buffer (a ring)             log device
//!  Session ──┐   ┌────────────────────┐
//!  Session ──┼──>│ records, checksums │──groups──> file 0, 1, 2, ...   whole blocks,
//!  Session ──┘   └────────────────────┘            written, synced     each written once
//! ```
//!
//! Jobs copy redo records into a shared buffer side by side and commit. A job that commits while
//! nobody writes writes the whole buffer out itself, with no switch to another thread; those that
//! come while it writes share the next write, whose writer is chosen, and woken, first. When a
//! group is durable exactly the jobs whose records were in it are woken. A background thread
//! serves the rules that no job waits for, another makes log files ready ahead of their use.
//!
//! Blocks are written once: a group fills up its last block, as Oracle's does, and the next begins
//! a block of its own. So a torn write cannot harm what was reported durable, and a device needs
//! no sector atomicity; the price, part of a block a group, is in [`Stats`] (`log_bytes` against
//! `redo_bytes`).
//!
//! What nobody waits for may be synced later than it is written, while more of it comes than the
//! device takes ([`LogConfig::put_off_bytes`]); what is reported durable is durable.
//!
//! After a failed write or sync nothing is reported durable any more until the log is opened
//! again, which reads from the device what is there.
//!
//! # Example
//! ```
//! use loadline_logwriter::{Commit, LogConfig, LogWriter, device::file};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let device = file::FileDevice::open(dir.path(), &file::FileConfig { file_bytes: 1 << 20, ..Default::default() })?;
//! let (writer, recovered) = LogWriter::open(&LogConfig::default(), Box::new(device))?;
//! let mut session = writer.session()?;
//! session.append(b"row 1: 10 -> 20")?;
//! let times = session.commit(Commit::Wait)?;
//! assert_eq!(recovered.commits, 0);
//! assert!(times.sync_ns > 0);
//! assert_eq!(writer.close()?.commits_waited, 1);
//! # Ok(())
//! # }
//! ```

mod clock;
mod config;
pub mod device;
mod ends;
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

pub use clock::{Clock, Monotonic};
pub use config::{Keep, LogConfig};
pub use device::{DeviceError, DeviceTimes, FileMaker, LogDevice};
pub use ends::log_end;
pub use error::{LogError, RecoverError};
pub use recover::{Body, Record, Records, Recovered, recover};
pub use session::Session;
pub use stats::{CommitTimes, GROUP_BUCKETS, Stats, Trigger};
pub use types::{Commit, Lsn};
pub use writer::LogWriter;

/// Bytes of the header that each record and each commit has in the log, beside its payload.
pub const HEADER_BYTES: u64 = record::HEADER as u64;

use sync::locked;
