//! Counters of the operating system: CPU, one block device, this process, the tasks of jobs.

mod cpu;
mod disk;
mod process;
mod tasks;

pub use cpu::{CpuShares, CpuTimes};
pub use disk::{DiskCounters, DiskRates};
pub use process::ProcessCpu;
pub(crate) use tasks::timed;
pub use tasks::{TaskStates, TaskTimes, Tasks};
