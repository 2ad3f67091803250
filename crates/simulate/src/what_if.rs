//! What a calibrated platform would do if something about it were different.

use loadline_model::format::{duration_ns, number};
use loadline_model::{TestRecord, column};
use serde::Serialize;

use crate::calibrate::{Calibration, calibrate, error_pct};
use crate::measured::{Measured, MeasuredDevice};
use crate::platform::{Device, MOST, OutOfRange, Platform, Standby, Way};
use crate::run::{Length, Outcome, simulate};

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
            CpuChange::Count(n) => format!("{n} CPUs"),
            CpuChange::Times(times) => format!("{times} × CPUs"),
        });
        let nodes = self.nodes.map(|n| format!("{n} nodes"));
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
            p.device = other_device(device, calibrated, &mut assumed).or_memory();
        }
        if let Some((rtt_us, written)) = self.standby {
            let way = if matches!(measured.kind.as_str(), "wal" | "oracle") { Way::Beside } else { Way::After };
            p.standby = Some(Standby { rtt_us, written, way });
            assumed.push(format!(
                "the standby gets redo {}; {}; three processes wake up on the way; bandwidth to it and its own CPUs never limit",
                match way {
                    Way::Beside => "while it is written here, and the next group waits for both",
                    Way::After => "once it is durable here, and the next group is written meanwhile",
                },
                if written {
                    "it answers once its own device, as fast as this one, has it"
                } else {
                    "it answers at once"
                }
            ));
        }
        if let Some(change) = self.cpus {
            let now = match change {
                CpuChange::Count(n) => n,
                CpuChange::Times(times) => {
                    let has = f64::from(p.cpus.unwrap_or(MOST));
                    // The cast saturates, and `check` refuses 0.
                    (has * times).round() as u32
                }
            };
            if p.cpus.is_none() && matches!(change, CpuChange::Times(_)) {
                assumed.push("how many CPUs there are is unknown and they never limit: more change nothing".to_owned());
            } else {
                p.cpus = Some(now);
                assumed.push(
                    "all CPUs are as fast as those measured, and no lock or memory limits more of them".to_owned(),
                );
            }
        }
        if let Some(nodes) = self.nodes {
            p.nodes = nodes;
            assumed.push(
                "each node has CPUs, a log and a device of its own, as the one calibrated; jobs are spread evenly, and no transaction \
                 needs another node: an upper bound"
                    .to_owned(),
            );
        }
        if let Some(delay) = self.delay_us {
            p.delay_us = delay;
            assumed
                .push(format!("the writer waits that long before each write, with at least {} other jobs", p.siblings));
        }
        p.check()?;
        Ok((p, assumed))
    }
}

fn other_device(device: &OtherDevice, calibrated: &Platform, assumed: &mut Vec<String>) -> Device {
    let now = calibrated.device;
    match device {
        OtherDevice::Takes(us) => {
            assumed.push("spread, CPU time and time per byte are those of the device calibrated".to_owned());
            Device { sync_us: *us, cpu_us: now.cpu_us.min(*us), ..now }
        }
        OtherDevice::Assumed(d) => {
            assumed.push(format!(
                "{}, {} µs per sync and {} µs per KiB: not measured. `--device FILE` takes a probe of the real one",
                d.what, d.sync_us, d.us_per_kib
            ));
            Device { sync_us: d.sync_us, cpu_us: d.cpu_us, us_per_byte: d.us_per_kib / 1024.0, ..now }
        }
        OtherDevice::Measured { other, own } => {
            // What the log adds to the bare device scales with it.
            let scale = own.as_ref().map_or(1.0, |own| now.sync_us / own.sync_us);
            let sync_us = other.sync_us * scale;
            assumed.push(match own {
                Some(own) => format!(
                    "{}; scaled by {}, which is the fitted sync over the same measurement of the calibrated device ({})",
                    other.source,
                    number(scale, 2),
                    own.source
                ),
                None => format!("{}, as it is: the calibrated device was not measured the same way", other.source),
            });
            Device {
                sync_us,
                spread: other.spread.unwrap_or(now.spread),
                cpu_us: other.cpu_us.unwrap_or(now.cpu_us).min(sync_us),
                us_per_byte: other.us_per_byte.unwrap_or(now.us_per_byte),
            }
        }
    }
}

/// One line of the answer: a platform over jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name: `as measured`, or that of the changes.
    pub name: String,
    /// The platform.
    pub platform: Platform,
    /// Whether it has the device calibrated, which is as fast as it was at each number of jobs.
    pub same_device: bool,
    /// What was assumed for the changes.
    pub assumed: Vec<String>,
    /// What it does, by jobs.
    pub outcomes: Vec<Outcome>,
}

/// A measured point that took no part in the calibration, beside what the model said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// Run that measured it.
    pub run: String,
    /// The line that should be like it.
    pub line: String,
    /// Jobs.
    pub jobs: u32,
    /// Measured throughput.
    pub tps: f64,
    /// Simulated throughput.
    pub simulated_tps: f64,
    /// Simulated against measured, %.
    pub error_pct: f64,
}

/// All that a simulation says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What it was calibrated on.
    pub measured: Measured,
    /// The calibration and its error.
    pub calibration: Calibration,
    /// Seed of all randomness.
    pub seed: u64,
    /// Lines: the first one is the platform as it was measured.
    pub lines: Vec<Line>,
    /// The last line against what was really measured on such a platform, if that was given.
    pub checked: Vec<Checked>,
}

/// Name of the line of the calibrated platform.
pub const AS_MEASURED: &str = "as measured";

impl Answer {
    /// Calibrates on `measured` and simulates each of `what_ifs` with each of `jobs`.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn of(measured: Measured, what_ifs: &[WhatIf], jobs: &[u32], length: Length) -> Result<Answer, OutOfRange> {
        // Refuse before the work of a calibration.
        let rough = crate::calibrate::rough(&measured);
        what_ifs.iter().try_for_each(|what_if| what_if.of(&measured, &rough).map(drop))?;
        let calibration = calibrate(&measured, length.seed)?;
        let mut lines = Vec::new();
        for what_if in std::iter::once(&WhatIf::default()).chain(what_ifs) {
            let (platform, assumed) = what_if.of(&measured, &calibration.platform)?;
            let same_device = what_if.device.is_none();
            let of = |jobs: &u32| simulate(&at(&calibration, &platform, same_device, *jobs), *jobs, length);
            let outcomes = jobs.iter().map(of).collect::<Result<_, _>>()?;
            let name = if what_if.is_empty() { AS_MEASURED.to_owned() } else { what_if.name() };
            lines.push(Line { name, platform, same_device, assumed, outcomes });
        }
        Ok(Answer { measured, calibration, seed: length.seed, lines, checked: Vec::new() })
    }

    /// Commits that were simulated for the lines.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lines.iter().flat_map(|l| &l.outcomes).map(|o| o.commits).sum()
    }

    /// Adds `points` (jobs and throughput) that run `run` measured where the last line should hold.
    ///
    /// # Errors
    /// A number of jobs outside its range.
    pub fn check_against(&mut self, run: &str, points: &[(u32, f64)]) -> Result<(), OutOfRange> {
        let Some(line) = self.lines.last() else { return Ok(()) };
        for (jobs, tps) in points {
            let platform = at(&self.calibration, &line.platform, line.same_device, *jobs);
            let simulated = simulate(&platform, *jobs, Length { seed: self.seed, commits: None })?.tps;
            self.checked.push(Checked {
                run: run.to_owned(),
                line: line.name.clone(),
                jobs: *jobs,
                tps: *tps,
                simulated_tps: simulated,
                error_pct: error_pct(simulated, *tps),
            });
        }
        Ok(())
    }
}

fn at(calibration: &Calibration, platform: &Platform, same_device: bool, jobs: u32) -> Platform {
    if same_device { calibration.with_device_at(platform, jobs) } else { platform.clone() }
}

/// Throughput by jobs of windows in which commits waited for a standby about `rtt_us` away (within a fifth), in a run of levels; it wrote
/// them first if `written`.
#[must_use]
pub fn with_standby(records: &[TestRecord], workload: &str, rtt_us: f64, written: bool) -> Vec<(u32, f64)> {
    const WRITTEN: [&str; 3] = ["on", "written", "both"];
    const RECEIVED: [&str; 2] = ["remote_write", "received"];
    let levels: &[&str] = if written { &WRITTEN } else { &RECEIVED };
    let fits = |r: &&TestRecord| {
        let near = r.figure(column::RTT_MS).is_some_and(|ms| (ms * 1e3 / rtt_us - 1.0).abs() <= 0.2);
        let level = r.arm == Some(loadline_model::ArmName::B)
            && r.level.as_ref().is_some_and(|l| levels.contains(&l.level.as_str()));
        r.valid && r.workload == workload && level && near
    };
    let mut by_jobs: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for r in records.iter().filter(fits) {
        by_jobs.entry(r.jobs).or_default().extend(r.figure(column::COMMIT_THROUGHPUT_TPS));
    }
    let mean = |tps: &[f64]| tps.iter().sum::<f64>() / tps.len() as f64;
    by_jobs.into_iter().filter(|(_, tps)| !tps.is_empty()).map(|(jobs, tps)| (jobs, mean(&tps))).collect()
}
