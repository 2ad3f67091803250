//! What a calibrated platform would do if something about it were different.

use loadline_model::format::{counted, duration_ns, number};

use crate::device::MeasuredDevice;
use crate::measured::Measured;
use crate::platform::{Device, MOST, OutOfRange, Platform, Standby, Way};

/// A change of the CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CpuChange {
    /// So many.
    Count(u32),
    /// So many times as many.
    Times(f64),
}

/// Another log device.
#[derive(Debug, Clone, PartialEq)]
pub enum OtherDevice {
    /// A write with its sync takes this long, µs.
    Takes(f64),
    /// As it was measured; `own` is what the same measurement says of the calibrated platform's device, if there is one.
    Measured {
        /// The other device.
        other: MeasuredDevice,
        /// The calibrated one, measured the same way.
        own: Option<MeasuredDevice>,
    },
    /// A device as one assumes it.
    Assumed(&'static AssumedDevice),
}

/// A device that nobody has measured here.
#[derive(Debug, PartialEq)]
pub struct AssumedDevice {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Time of a write with its sync, µs.
    pub sync_us: f64,
    /// Part of it on a CPU, µs.
    pub cpu_us: f64,
    /// Time per KiB, µs.
    pub us_per_kib: f64,
}

/// Devices that can be assumed.
pub const ASSUMED: [AssumedDevice; 2] = [
    AssumedDevice {
        name: "pmem",
        what: "persistent memory: stored and flushed by the CPU",
        sync_us: 1.0,
        cpu_us: 1.0,
        us_per_kib: 0.5,
    },
    AssumedDevice {
        name: "nvme",
        what: "NVMe flash that keeps its write cache when power fails",
        sync_us: 22.0,
        cpu_us: 6.0,
        us_per_kib: 0.5,
    },
];

/// Changes, which combine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhatIf {
    /// Another log device, on which a standby writes as well.
    pub device: Option<OtherDevice>,
    /// Round trip to a standby that commits wait for, µs, and whether it writes them before it answers.
    pub standby: Option<(f64, bool)>,
    /// More or fewer CPUs in each node.
    pub cpus: Option<CpuChange>,
    /// Nodes, each as the calibrated one, with a log of its own.
    pub nodes: Option<u32>,
    /// Time that the writer waits for more commits, µs.
    pub delay_us: Option<f64>,
}

impl WhatIf {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == WhatIf::default()
    }

    /// Each change by itself; empty if there is only one.
    #[must_use]
    pub fn each(&self) -> Vec<WhatIf> {
        let one = WhatIf::default;
        let all = [
            self.device.clone().map(|device| WhatIf { device: Some(device), ..one() }),
            self.standby.map(|standby| WhatIf { standby: Some(standby), ..one() }),
            self.cpus.map(|cpus| WhatIf { cpus: Some(cpus), ..one() }),
            self.nodes.map(|nodes| WhatIf { nodes: Some(nodes), ..one() }),
            self.delay_us.map(|delay| WhatIf { delay_us: Some(delay), ..one() }),
        ];
        let all: Vec<WhatIf> = all.into_iter().flatten().collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// What the model answers if nobody asks anything in particular: a device of each kind, a standby at 1 ms, twice the CPUs, a
    /// group commit delay of 100 µs.
    #[must_use]
    pub fn usual() -> Vec<WhatIf> {
        let one = WhatIf::default;
        let devices = ASSUMED.iter().map(|d| WhatIf { device: Some(OtherDevice::Assumed(d)), ..one() });
        let others = [
            WhatIf { standby: Some((1000.0, true)), ..one() },
            WhatIf { cpus: Some(CpuChange::Times(2.0)), ..one() },
            WhatIf { delay_us: Some(100.0), ..one() },
        ];
        devices.chain(others).collect()
    }

    /// Its name in tables and charts: `pmem, 2 × CPUs`.
    #[must_use]
    pub fn name(&self) -> String {
        let us = |us: f64| duration_ns(us * 1e3);
        let device = self.device.as_ref().map(|d| match d {
            OtherDevice::Takes(t) => format!("sync of {}", us(*t)),
            OtherDevice::Measured { other, .. } => format!("device with {}", us(other.sync_us)),
            OtherDevice::Assumed(d) => d.name.to_owned(),
        });
        let standby = self
            .standby
            .map(|(rtt, written)| format!("standby {} away{}", us(rtt), if written { "" } else { ", received" }));
        let cpus = self.cpus.map(|c| match c {
            CpuChange::Count(1) => "1 CPU".to_owned(),
            CpuChange::Count(n) => format!("{n} CPUs"),
            CpuChange::Times(times) => format!("{times} × CPUs"),
        });
        let nodes = self.nodes.map(|n| counted(n as usize, "node"));
        let delay = self.delay_us.map(|t| format!("commit delay {}", us(t)));
        [device, standby, cpus, nodes, delay].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The platform with these changes, and what was assumed for them.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn of(&self, measured: &Measured, calibrated: &Platform) -> Result<(Platform, Vec<String>), OutOfRange> {
        let mut p = calibrated.clone();
        let mut assumed = Vec::new();
        if let Some(device) = &self.device {
            let (other, text) = other_device(device, calibrated.device);
            p.device = other.or_memory();
            assumed.push(text);
        }
        if let Some((rtt_us, written)) = self.standby {
            let way = if matches!(measured.kind.as_str(), "wal" | "oracle") { Way::Beside } else { Way::After };
            p.standby = Some(Standby { rtt_us, written, way });
            let sent = match way {
                Way::Beside => "while it is written here, and the next group waits for both",
                Way::After => "once it is durable here, and the next group is written meanwhile",
            };
            let answers = if written { "once its own device, as fast as this one, has it" } else { "at once" };
            assumed.push(format!(
                "the standby gets redo {sent}; it answers {answers}; three processes wake up on the way; bandwidth to it and its \
                 own CPUs never limit. Held against measurements on a busy machine this was too fast, by 4 to 24 % if the standby answers at \
                 once and by 6 to 60 % if it writes first: take it as an upper bound"
            ));
        }
        match (self.cpus, p.cpus) {
            (None, _) => {}
            (Some(CpuChange::Times(_)), None) => {
                assumed.push("how many CPUs there are is unknown and they never limit: more change nothing".to_owned());
            }
            (Some(change), has) => {
                p.cpus = Some(match change {
                    CpuChange::Count(n) => n,
                    // The cast saturates, and `check` refuses 0.
                    CpuChange::Times(times) => (f64::from(has.unwrap_or(MOST)) * times).round() as u32,
                });
                assumed.push(format!(
                    "{} CPUs per node instead of {}, as fast as those measured, and no lock or memory limits more of them. {NOT_HELD}",
                    p.cpus.unwrap_or(MOST),
                    has.map_or_else(|| "an unknown number".to_owned(), |n| n.to_string())
                ));
            }
        }
        if let Some(nodes) = self.nodes {
            p.nodes = nodes;
            assumed.push(format!(
                "each node has CPUs, a log and a device of its own, as the one calibrated; jobs are spread evenly, and no \
                 transaction needs another node: an upper bound. {NOT_HELD}"
            ));
        }
        if let Some(delay) = self.delay_us {
            p.delay_us = delay;
            assumed.push(format!(
                "the writer waits that long before each write, if {} or more other jobs are there. {NOT_HELD}",
                p.siblings
            ));
        }
        p.check()?;
        Ok((p, assumed))
    }
}

/// What is said of a change that nobody has tried.
const NOT_HELD: &str = "This change was not held against a measurement";

/// The device that takes the place of `now`, and what was assumed for it.
fn other_device(device: &OtherDevice, now: Device) -> (Device, String) {
    match device {
        OtherDevice::Takes(us) => (
            Device { sync_us: *us, cpu_us: now.cpu_us.min(*us), ..now },
            "spread, CPU time and time per byte are those of the device calibrated".to_owned(),
        ),
        OtherDevice::Assumed(d) => (
            Device { sync_us: d.sync_us, cpu_us: d.cpu_us, us_per_byte: d.us_per_kib / 1024.0, ..now },
            format!(
                "{}, {} µs per sync and {} µs per KiB: not measured. `--device FILE` takes a probe of the real one",
                d.what, d.sync_us, d.us_per_kib
            ),
        ),
        OtherDevice::Measured { other, own } => {
            // What the log adds to the bare device scales with it.
            let scale = own.as_ref().map_or(1.0, |own| now.sync_us / own.sync_us);
            let sync_us = other.sync_us * scale;
            let device = Device {
                sync_us,
                spread: other.spread.unwrap_or(now.spread),
                cpu_us: other.cpu_us.unwrap_or(now.cpu_us).min(sync_us),
                us_per_byte: other.us_per_byte.unwrap_or(now.us_per_byte),
            };
            let text = match own {
                Some(own) => format!(
                    "{}; scaled by {}, which is the fitted sync over the same measurement of the calibrated device ({})",
                    other.source,
                    number(scale, 2),
                    own.source
                ),
                None => format!("{}, as it is: the calibrated device was not measured the same way", other.source),
            };
            (device, text)
        }
    }
}
