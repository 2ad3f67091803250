//! One test: what was run, what came out, and whether it holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capability::Driver;
use crate::check::{Check, Outcome};
use crate::limits::{SizePoint, TestLimit};
use crate::snapshot::WaitProfile;

/// Version of the record's layout; raised when a reader of the old one would misread the new one.
pub const RECORD_SCHEMA: u32 = 1;

/// What [`TestRecord::forced`] says where figures of storage are not proved to be the device's and were kept.
pub const NOT_THE_DEVICES: &str = "--allow-cached: not the device's figures";

/// One line of `tests.jsonl`. Figures stand at the top level under their column ids
/// (see [`crate::column`]), so that `jq .commit_throughput_tps` works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: u32,
    /// Platform name.
    pub platform: String,
    /// Run id.
    pub run: String,
    /// Number of the test in its run, from 1.
    pub test: u32,
    /// Workload code.
    pub workload: String,
    /// Group of the workload.
    pub group: String,
    /// Target URL without secrets.
    pub target: String,
    /// Driver.
    pub driver: Driver,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of jobs.
    pub jobs: u32,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Wall-clock start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// Whether every check passed.
    pub valid: bool,
    /// What failed, if not valid.
    pub invalid_reason: Option<String>,
    /// What was refused and forced, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// Every verification that was made.
    pub checks: Vec<Check>,
    /// Columns without a figure and why.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
    /// What a reader should know besides.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Texts of the errors that transactions ended with, and how often each was seen.
    #[serde(default)]
    pub error_texts: BTreeMap<String, u64>,
    /// What the job sessions were seen waiting for.
    #[serde(default)]
    pub waits: WaitProfile,
    /// Workload parameters in force, calibrated ones included.
    #[serde(default)]
    pub parameters: BTreeMap<String, i64>,
    /// Where the blocks came from that the database read: `cached`, `lukewarm` or `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_source: Option<String>,
    /// Ids of the columns of the workload's key performance metrics, the most important first; empty in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kpis: Vec<String>,
    /// Name of the column that the test is a point of a sweep over, if that is not `jobs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept: Option<String>,
    /// What the hardware allows for the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<TestLimit>,
    /// Commit times by redo since the last commit, rising (LGWR-SIZE only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizePoint>,
    /// Figures by column id.
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

impl TestRecord {
    /// The option without which this test would not be valid: `--allow-cached`, `--force`, or both.
    #[must_use]
    pub fn kept_by(&self) -> Option<&'static str> {
        let forced = self.forced.as_deref()?;
        Some(match (forced.contains(NOT_THE_DEVICES), by_force(forced).is_some()) {
            (true, true) => "--allow-cached and --force",
            (true, false) => "--allow-cached",
            _ => "--force",
        })
    }

    /// A record of one job at the client, with nothing measured: every record is made from it, in code and tests.
    #[must_use]
    pub fn blank(workload: &str) -> TestRecord {
        TestRecord {
            schema: RECORD_SCHEMA,
            platform: String::new(),
            run: String::new(),
            test: 1,
            workload: workload.to_owned(),
            group: String::new(),
            target: String::new(),
            driver: Driver::Client,
            nodes: 1,
            jobs: 1,
            repetition: 1,
            started_at: String::new(),
            valid: true,
            invalid_reason: None,
            forced: None,
            checks: Vec::new(),
            absent: BTreeMap::new(),
            notes: Vec::new(),
            error_texts: BTreeMap::new(),
            data_source: None,
            kpis: Vec::new(),
            swept: None,
            limit: None,
            sizes: Vec::new(),
            waits: WaitProfile::default(),
            parameters: BTreeMap::new(),
            figures: BTreeMap::new(),
        }
    }

    /// The same with `checks`.
    #[must_use]
    pub fn with_checks(mut self, checks: Vec<Check>) -> TestRecord {
        checks.into_iter().for_each(|check| self.add_check(check));
        self
    }

    /// Adds a check and recomputes validity.
    pub fn add_check(&mut self, check: Check) {
        self.checks.push(check);
        let failed: Vec<&str> =
            self.checks.iter().filter(|c| c.outcome == Outcome::Failed).map(|c| c.detail.as_str()).collect();
        self.valid = failed.is_empty();
        self.invalid_reason = (!failed.is_empty()).then(|| failed.join("; "));
    }
}

/// What of `forced` (see [`TestRecord::forced`]) was refused and then forced with `--force`; `None` if it is
/// nothing but [`NOT_THE_DEVICES`].
#[must_use]
pub fn by_force(forced: &str) -> Option<String> {
    let rest = forced.replace(NOT_THE_DEVICES, "");
    let rest = rest.trim_matches([';', ' ']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forced_is_told_from_what_was_kept() {
        let both = format!("fsync is off; {NOT_THE_DEVICES}");
        assert_eq!(by_force(&both).as_deref(), Some("fsync is off"));
        assert_eq!(by_force(NOT_THE_DEVICES), None);
        assert_eq!(by_force("a; b").as_deref(), Some("a; b"));
    }
}
