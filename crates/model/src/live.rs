//! A run as it goes on: the lines of `live.jsonl`, for those who watch it. Reports never read them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::CheckId;
use crate::disturbance::DISTURBANCES;
use crate::format::number;
use crate::variant::Letter;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveLine {
    /// Wall-clock time, s since 1970.
    pub at_s: f64,
    #[serde(flatten)]
    pub event: LiveEvent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LiveEvent {
    /// A step between tests: `loading rows for 8 jobs`.
    Step {
        text: String,
    },
    Warning {
        text: String,
    },
    Test(LiveTest),
    Second(LiveSecond),
}

/// A test that begins, and its place in the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveTest {
    pub test: u32,
    pub workload: String,
    pub jobs: u32,
    /// Repetition, from 1; the number of the pair in a run of pairs.
    pub repetition: u32,
    pub repeat: u32,
    /// The variant that it measures, in a run of pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<Letter>,
    /// The test that is measured again: see [`crate::record::TestRecord::try_of`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub try_of: Option<u32>,
    /// Estimated time until the end of the run, s.
    pub left_s: f64,
    /// Whether that is exact; an automatic sweep ends when it knows enough.
    pub left_exact: bool,
}

impl LiveTest {
    /// Part of the run in words, after what it measures: `, pair 3 of 16, arm A, test 5 again`.
    pub fn part(&self) -> String {
        let LiveTest { repetition, repeat, arm, try_of, .. } = self;
        let part = match arm {
            Some(arm) => format!(", pair {repetition} of {repeat}, arm {arm}"),
            None if *repeat > 1 => format!(", repetition {repetition} of {repeat}"),
            None => String::new(),
        };
        part + &try_of.map_or_else(String::new, |first| format!(", test {first} again"))
    }
}

/// Why the window of a test under way takes longer than planned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// It starts when others leave the machine to the test, or when the time to wait is over.
    Waits,
    /// Others disturbed the window before it, which does not count: the figure of the check `by` was `pct` %.
    Again { by: CheckId, pct: f64 },
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held::Again { by, pct } = self else { return f.write_str("waits for a quiet machine") };
        let words = DISTURBANCES.iter().find(|kind| kind.check == *by).map_or("others", |kind| kind.words);
        write!(f, "measured again: {words} {} %", number(*pct, 0))
    }
}

/// Figures of one second of a test. What was not measured is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveSecond {
    pub test: u32,
    pub elapsed_s: f64,
    /// Seconds of warm-up and window together.
    pub total_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Transactions per second since the last second that has them, or since the window start; absent until all jobs have
    /// reported what they did in half a second or more. Those in the database report about once a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tps: Option<f64>,
    /// Mean transaction time by Little's law, ms; closed loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// CPU time used of the database's machine, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_busy_pct: Option<f64>,
    /// CPU time idle while I/O was outstanding, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_iowait_pct: Option<f64>,
    /// Share of the time with at least one I/O in flight on the log's device, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_util_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_writes_per_s: Option<f64>,
    /// Mean number of job sessions in each wait (`IO:WALSync`), those with the most sessions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, f64>,
}
