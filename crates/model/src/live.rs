//! A run as it goes on: the lines of `live.jsonl`, for those who watch it. Reports never read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arms::ArmName;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveLine {
    /// Wall-clock time, s since 1970.
    pub at_s: f64,
    /// What happened then.
    #[serde(flatten)]
    pub event: LiveEvent,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LiveEvent {
    /// A step between tests: `loading rows for 8 jobs`.
    Step {
        /// Which.
        text: String,
    },
    /// A warning for the user.
    Warning {
        /// Its text.
        text: String,
    },
    /// A test begins.
    Test(LiveTest),
    /// A second of a test.
    Second(LiveSecond),
}

/// A test that begins, and its place in the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveTest {
    /// Its number, from 1.
    pub test: u32,
    /// Workload code.
    pub workload: String,
    /// Jobs.
    pub jobs: u32,
    /// Repetition, from 1; the number of the pair in a run of two arms.
    pub repetition: u32,
    /// Repetitions in all.
    pub repeat: u32,
    /// The arm, in a run of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ArmName>,
    /// Estimated time until the end of the run, s.
    pub left_s: f64,
    /// Whether that is exact; an automatic sweep ends when it knows enough.
    pub left_exact: bool,
}

/// What is known of one second of a test. What was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveSecond {
    /// Number of the test.
    pub test: u32,
    /// Seconds since its jobs began.
    pub elapsed_s: f64,
    /// Seconds of warm-up and window together.
    pub total_s: f64,
    /// Transactions per second since the last second that has them, or since the window start; absent until all jobs have
    /// reported what they did in half a second or more. Those in the database report about once a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    /// Mean transaction time by Little's law, ms; closed loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// Jobs by the mean time of their transactions since the last second in which they completed any: the upper end of a band of
    /// [`bands`], ms, and jobs in it. A job that completed none counts in the band of the time that it has been without; one that
    /// has not reported since is in none. Not of jobs on agents, and in a closed loop only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs_by_ms: Vec<(f64, u32)>,
    /// CPU time used of the database's machine, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_busy_pct: Option<f64>,
    /// The same, idle while I/O was outstanding, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_iowait_pct: Option<f64>,
    /// Share of the time with at least one I/O in flight on the log's device, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_util_pct: Option<f64>,
    /// Writes completed per second on that device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_writes_per_s: Option<f64>,
    /// Mean number of job sessions in each wait (`IO:WALSync`), those with the most sessions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, f64>,
}

/// Upper ends of the bands of [`LiveSecond::jobs_by_ms`], ms: 1, 2 and 5 times powers of ten from 10 µs to 100 s. What is longer
/// counts in the last.
pub fn bands() -> impl Iterator<Item = f64> {
    (-2..=5).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power))).take(22)
}

/// The band that holds `ms`.
#[must_use]
pub fn band(ms: f64) -> f64 {
    bands().find(|end| ms <= *end).unwrap_or(100_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_rise_and_each_holds_its_end() {
        let all: Vec<f64> = bands().collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert!((all[0] - 0.01).abs() < 1e-12 && (all[all.len() - 1] - 1e5).abs() < 1e-6, "{all:?}");
        assert!(all.iter().all(|end| band(*end) == *end && band(end * 0.99) == *end));
        for odd in [f64::INFINITY, f64::NAN, 1e9] {
            assert_eq!(band(odd), 100_000.0);
        }
        assert_eq!(band(-1.0), all[0]);
    }
}
