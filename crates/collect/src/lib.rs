//! Samplers: counters of the operating system, an inventory of the machine, and a generic poller of a database's
//! counters and wait events.
//!
//! The poller polls an observer of the target. All times are ns on one clock, [`loadline_storage::now_ns`].

use std::path::PathBuf;

pub mod inventory;
pub mod os;
pub mod page_cache;
pub mod sampler;
pub mod surroundings;

pub use sampler::{
    Collected, CpuSource, PendingReading, Point, Rates, Recent, Sampler, SamplerConfig, Second, System, WindowReading,
};
pub use surroundings::{Confined, Surroundings};

/// Why a counter or the counters at window start or end could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    #[error("cannot read '{}': {cause}. Check that it exists and that this user may read it", .path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error(
        "none of {files} files under '{}' could be opened: the limit of open files of this process is reached. Raise it \
        (ulimit -n)", .path.display()
    )]
    OpenFiles { path: PathBuf, files: u32 },
    #[error("{file} has an unknown format: {what}. Its figures are left out")]
    Format { file: &'static str, what: String },
    #[error("/proc/diskstats has no device '{0}': it was removed, or is not visible in this container")]
    NoDevice(String),
    #[error("{call} failed: {cause}")]
    Call { call: &'static str, cause: nix::errno::Errno },
    #[error("the sampler could not be started: {0}. Check the limit on threads (ulimit -u)")]
    Spawn(std::io::Error),
    #[error(
        "the counters at the window's '{reading}' did not arrive within {waited_s:.1} s: the database does not answer \
        queries on its statistics, or loadline gets no CPU to ask. If all CPUs are busy, run fewer jobs, or loadline on \
        another machine than the database"
    )]
    Stuck { reading: String, waited_s: f64 },
    #[error("the sampler ended early: the counters at the window's '{reading}' are lost")]
    Ended { reading: String },
}

fn read(path: impl Into<PathBuf>) -> Result<String, CollectError> {
    let path = path.into();
    std::fs::read_to_string(&path).map_err(|cause| CollectError::Read { path, cause })
}
