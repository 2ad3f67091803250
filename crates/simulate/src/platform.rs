//! What is simulated: the parameters of a platform and their ranges.

use serde::Serialize;

use crate::draw::Spread;

/// A platform. Times are µs, means unless stated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Platform {
    /// CPUs of a node; `None` if they never limit.
    pub cpus: Option<u32>,
    /// Nodes, each with CPUs, a log and a device of its own. Jobs are spread evenly; nodes never wait for each other.
    pub nodes: u32,
    /// CPU time of a transaction, without that of syncs and wake-ups.
    pub cpu_us: f64,
    /// Its spread.
    pub cpu_spread: Spread,
    /// Time of a transaction that needs no CPU of a node: the network between client and server.
    pub away_us: f64,
    /// Whether a client on the node's CPUs sends the transaction: then client and session each wake up once per transaction.
    pub client: bool,
    /// CPU time that a job loses each time that it has slept: the switch to it, and caches that others have used since.
    pub switch_us: f64,
    /// Time that an idle CPU takes until the job that woke up on it runs. A busy CPU takes the job without it.
    pub wake_us: f64,
    /// Time that the writer of a group spends on each job that it wakes, one after the other.
    pub hand_us: f64,
    /// Redo of a transaction, bytes.
    pub redo_bytes: f64,
    /// Size of the redo buffer, bytes; `None` if it never fills.
    pub buffer_bytes: Option<f64>,
    /// Whether the writer waits for jobs just woken if these commit again sooner than a write takes, as the reference log writer does.
    pub gather: bool,
    /// Time that the writer waits for more commits before each write.
    pub delay_us: f64,
    /// Fewest other jobs with which it does.
    pub siblings: u32,
    /// The log's device.
    pub device: Device,
    /// The standby that commits wait for.
    pub standby: Option<Standby>,
}

/// A log device: a group of `b` bytes is durable after `sync_us + b × us_per_byte`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Device {
    /// Time of a write of the log with its sync, without the part that grows with its size.
    pub sync_us: f64,
    /// Its spread.
    pub spread: Spread,
    /// Part of it in which the writer needs a CPU. Of a device in memory it is all.
    pub cpu_us: f64,
    /// Time per byte written.
    pub us_per_byte: f64,
}

/// A sync up to this long is work of the CPU on memory, for which nobody sleeps, µs.
const IN_MEMORY_US: f64 = 10.0;

impl Device {
    /// The device; one that is fast enough to be memory is all work of a CPU.
    #[must_use]
    pub fn or_memory(self) -> Device {
        if self.sync_us <= IN_MEMORY_US { Device { cpu_us: self.sync_us, ..self } } else { self }
    }

    /// Whether all of a sync is work of a CPU.
    #[must_use]
    pub fn in_memory(&self) -> bool {
        self.cpu_us >= self.sync_us
    }

    /// The device with syncs that take `times` as long.
    #[must_use]
    pub fn slower(self, times: f64) -> Device {
        let cpu_us = if self.in_memory() { self.cpu_us * times } else { self.cpu_us };
        Device { sync_us: self.sync_us * times, cpu_us, ..self }
    }
}

/// How far and how a commit waits for a standby.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standby {
    /// Round trip to it.
    pub rtt_us: f64,
    /// Whether it has the commit on its own device, as fast as the log's; otherwise it has only received it.
    pub written: bool,
    /// When the group goes out.
    pub way: Way,
}

/// When a group goes to the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// While it is written here. The next group is not written before both are done: a commit takes the longer of the two ways.
    Beside,
    /// Once it is durable here. The next group is written here meanwhile: a commit takes both, one after the other.
    After,
}

/// A parameter outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}: allowed is {allowed}")]
pub struct OutOfRange {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Values allowed.
    pub allowed: &'static str,
}

/// Longest time of anything, µs: a minute.
const LONGEST_US: f64 = 6e7;
/// Most jobs, CPUs and nodes.
pub const MOST: u32 = 1_000_000;

impl Platform {
    /// Checks every parameter.
    ///
    /// # Errors
    /// The first one outside its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let time = |name, value: f64| {
            let fits = value.is_finite() && (0.0..=LONGEST_US).contains(&value);
            fits.then_some(()).ok_or(OutOfRange { name, value: format!("{value} µs"), allowed: "0 to 1 minute" })
        };
        let count = |name, value: u32| {
            let fits = (1..=MOST).contains(&value);
            fits.then_some(()).ok_or(OutOfRange { name, value: value.to_string(), allowed: "1 to 1,000,000" })
        };
        let bytes = |name, value: f64| {
            let fits = value.is_finite() && (0.0..=1e15).contains(&value);
            fits.then_some(()).ok_or(OutOfRange { name, value: format!("{value} bytes"), allowed: "0 to 1 PB" })
        };
        count("the number of CPUs", self.cpus.unwrap_or(1))?;
        count("the number of nodes", self.nodes)?;
        bytes("the redo of a transaction", self.redo_bytes)?;
        bytes("the redo buffer", self.buffer_bytes.unwrap_or(0.0))?;
        for (name, value) in [
            ("the CPU time of a transaction", self.cpu_us),
            ("the time on the network", self.away_us),
            ("the time of a switch", self.switch_us),
            ("the time of a wake-up", self.wake_us),
            ("the writer's time per job", self.hand_us),
            ("the group commit delay", self.delay_us),
            ("the time of a sync", self.device.sync_us),
            ("the CPU time of a sync", self.device.cpu_us),
            ("the time to write a byte", self.device.us_per_byte),
            ("the standby's round trip", self.standby.map_or(0.0, |s| s.rtt_us)),
        ] {
            time(name, value)?;
        }
        if self.cpu_us + self.away_us + self.device.sync_us <= 0.0 {
            let (value, allowed) = ("0 µs".to_owned(), "more than 0");
            return Err(OutOfRange { name: "the time of a transaction with its sync", value, allowed });
        }
        Ok(())
    }
}
