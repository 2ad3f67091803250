//! Counters of the operating system: CPU, one block device, this process.

mod cpu;
mod disk;
mod process;

pub use cpu::{CpuShares, CpuTimes};
pub use disk::{DiskCounters, DiskRates};
pub use process::ProcessCpu;
