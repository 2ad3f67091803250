//! Counters of the operating system: CPU, one block device, this process, the tasks of jobs, all processes, what the
//! database's cost, what keeps a process from CPUs.

mod cost;
mod cpu;
mod disk;
mod limits;
mod listener;
mod network;
mod perf;
mod processes;
mod tasks;

pub use cost::{Cost, CostMeter, CostUnknown, CostUsed, Whose};
pub use cpu::{CpuShares, CpuTimes};
pub use disk::{DiskCounters, DiskRates};
pub use limits::{CpuLimit, Cpus, Pressure, allowed, frequency_pct, thermal_ms};
pub use listener::listeners;
pub use network::Interfaces;
pub use perf::{PerfRefused, perf_events};
pub use processes::{Processes, Server, TICKS_PER_S, Used};
pub(crate) use tasks::timed;
pub use tasks::{TaskStates, TaskTimes, Tasks, least_disturbed};
