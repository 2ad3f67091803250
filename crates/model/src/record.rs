//! The record of one test: work, figures, checks, and what qualifies its figures.

mod detail;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::IntoDeserializer;
use serde::de::value::Error as Unknown;
use serde::{Deserialize, Deserializer, Serialize};

use crate::capability::Driver;
use crate::check::{Check, CheckId, Outcome};
use crate::note::{Note, known_notes};
use crate::snapshot::WaitProfile;
use crate::variant::{InPair, Letter, LevelPoint};

pub use self::detail::*;

/// Version of the record's layout; raised if an old reader would misread a new record.
pub const RECORD_SCHEMA: u32 = 2;

crate::named! {
    /// Judgement of the checks of a test, best first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Validity {
        /// All proofs hold, and the machine was quiet.
        Valid: "valid";
        /// All proofs hold, but others took more of the machine than is allowed.
        Disturbed: "disturbed";
        Refused: "refused";
    }
    pub fn name;
}

/// Facts of a workload for comparisons. A user's own is in no catalogue, so its tests say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Whether its work depends on the size of the data set (`--size`).
    pub sized: bool,
    /// Whether its transactions change rows with the default parameters.
    pub writes: bool,
}

/// One line of `tests.jsonl`; each begins as [`TestRecord::blank`]. Figures are at the top level under their column ids (see [`crate::column`]), so that
/// `jq .commit_throughput_tps` works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    pub schema: u32,
    pub platform: String,
    pub run: String,
    /// Number of the test in its run, from 1.
    pub test: u32,
    pub workload: String,
    pub group: String,
    /// Target URL without secrets.
    pub target: String,
    pub driver: Driver,
    pub nodes: u32,
    pub jobs: u32,
    pub repetition: u32,
    /// The variant that it measures, in a run of pairs; `repetition` is then the number of its pair.
    #[serde(flatten)]
    pub variant: Option<InPair>,
    /// Number of the test of which this is a further try, or of the first window of the pair: see [`crate::tries`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub try_of: Option<u32>,
    /// Tries of the test. Never stored: counted when a run is read.
    #[serde(default = "once", skip)]
    pub tries: u32,
    /// Wall-clock start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// Whether no check failed: all proofs hold, and nothing disturbed it. An imported test has no checks and its figures are used: ask [`TestRecord::validity`] where
    /// validity is shown. Stored as `null` then.
    #[serde(deserialize_with = "valid_or_unchecked")]
    pub valid: bool,
    /// Failed checks and what disturbed it, if not valid.
    pub invalid_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Forced::is_empty")]
    pub forced: Forced,
    /// Disturbances, from the figures ([`crate::disturbance`]): `CPU steal 8 %; …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed_by: Option<String>,
    #[serde(deserialize_with = "known_checks")]
    pub checks: Vec<Check>,
    /// Column ids without a figure, with the reason.
    #[serde(default)]
    pub absent: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "known_notes")]
    pub notes: Vec<Note>,
    /// Error texts of failed transactions, with their counts.
    #[serde(default)]
    pub error_texts: BTreeMap<String, u64>,
    #[serde(default)]
    pub waits: WaitProfile,
    /// Workload parameters in force, calibrated ones included.
    #[serde(default)]
    pub parameters: BTreeMap<String, i64>,
    /// Ids of the columns of the workload's key metrics, the most important first; empty in records of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kpis: Vec<String>,
    #[serde(flatten, with = "detail::stored")]
    pub details: Vec<Detail>,
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

/// Tries of a test that was not measured again.
fn once() -> u32 {
    1
}

/// Reads the field `valid` of a record: `null` is that of an imported test.
fn valid_or_unchecked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<bool>::deserialize(deserializer)?.unwrap_or(true))
}

/// Skips checks that only another version makes. A test that failed such a check stays refused, with its reason.
fn known_checks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Check>, D::Error> {
    #[derive(Deserialize)]
    struct Stored {
        id: String,
        outcome: Outcome,
        detail: String,
    }
    let known = |Stored { id, outcome, detail }: Stored| {
        let id = CheckId::deserialize(IntoDeserializer::<Unknown>::into_deserializer(id)).ok()?;
        Some(Check { id, outcome, detail })
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().filter_map(known).collect())
}

impl TestRecord {
    /// A record of one client job without figures: the start of every record, in code and tests.
    pub fn blank(workload: &str) -> TestRecord {
        TestRecord {
            schema: RECORD_SCHEMA,
            test: 1,
            workload: workload.to_owned(),
            nodes: 1,
            jobs: 1,
            repetition: 1,
            tries: once(),
            valid: true,
            ..TestRecord::default()
        }
    }

    #[must_use]
    pub fn with_checks(mut self, checks: Vec<Check>) -> TestRecord {
        checks.into_iter().for_each(|check| self.add_check(check));
        self
    }

    /// The variant that it measures, in a run of pairs.
    pub fn arm(&self) -> Option<Letter> {
        self.variant.as_ref().map(|window| window.arm)
    }

    /// The level and distance that its pair compares with the baseline.
    pub fn level(&self) -> Option<&LevelPoint> {
        self.variant.as_ref()?.level.as_ref()
    }

    /// Judgement of its checks; `None` for an imported test, which has none.
    pub fn validity(&self) -> Option<Validity> {
        let mut failed = self.checks.iter().filter(|check| check.outcome == Outcome::Failed).peekable();
        self.imported().is_none().then(|| match self.valid {
            true => Validity::Valid,
            false if failed.peek().is_some() && failed.all(|check| check.id.is_of_disturbance()) => Validity::Disturbed,
            false => Validity::Refused,
        })
    }

    /// Whether its figures may be used. Those of a disturbed test are, where there are none of a valid one.
    pub fn is_usable(&self) -> bool {
        self.validity() != Some(Validity::Refused)
    }

    /// Whether its figures are proved, but others took more of the machine than is allowed.
    pub fn is_disturbed(&self) -> bool {
        self.validity() == Some(Validity::Disturbed)
    }

    /// The options that this test needs to be valid; empty if none.
    pub fn kept_by(&self) -> Vec<&'static str> {
        let options = [
            ("--allow-cached", self.forced.not_the_devices),
            // An arm's settings are its purpose, without an option.
            (if self.variant.is_some() { "the arm's settings" } else { "--force" }, self.forced.refused.is_some()),
        ];
        options.into_iter().filter(|(_, needed)| *needed).map(|(option, _)| option).collect()
    }

    /// Adds a check, and derives from all whether the test is valid and why not: the only place that does.
    pub fn add_check(&mut self, check: Check) {
        self.checks.push(check);
        let failed: Vec<&str> =
            self.checks.iter().filter(|c| c.outcome == Outcome::Failed).map(|c| c.detail.as_str()).collect();
        self.valid = failed.is_empty();
        self.invalid_reason = (!failed.is_empty()).then(|| failed.join("; "));
    }
}

crate::named! {
    /// Source of the blocks that a database read, the best proof first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DataSource {
        Device: "device";
        /// The device, but for a share that is known to be no larger than a bound.
        Bounded: "bounded";
        /// Caches and the device.
        Lukewarm: "lukewarm";
        Cached: "cached";
    }
    pub fn name;
}

/// Refusals that options overrode. Stored as one string, in which that of `--allow-cached` comes last.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "Option<String>")]
pub struct Forced {
    /// Refusal that `--force` overrode, or that an arm has on purpose.
    pub refused: Option<String>,
    /// Whether `--allow-cached` kept storage figures that are not proved to be the device's.
    pub not_the_devices: bool,
}

const NOT_THE_DEVICES: &str = "--allow-cached: not the device's figures";

impl Forced {
    pub fn is_empty(&self) -> bool {
        *self == Forced::default()
    }
}

impl From<Option<String>> for Forced {
    fn from(stored: Option<String>) -> Forced {
        let Some(text) = stored else { return Forced::default() };
        let (refused, not_the_devices) = match text.strip_suffix(NOT_THE_DEVICES) {
            Some(rest) => (rest.strip_suffix("; ").unwrap_or(rest), true),
            None => (text.as_str(), false),
        };
        Forced { refused: (!refused.is_empty()).then(|| refused.to_owned()), not_the_devices }
    }
}

impl From<Forced> for Option<String> {
    fn from(forced: Forced) -> Option<String> {
        (!forced.is_empty()).then(|| forced.to_string())
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = self.refused.as_deref().unwrap_or_default();
        let between = if self.refused.is_some() && self.not_the_devices { "; " } else { "" };
        let cached = if self.not_the_devices { NOT_THE_DEVICES } else { "" };
        write!(f, "{refused}{between}{cached}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forced_is_stored_as_one_string() {
        for (refused, not_the_devices, stored) in [
            (None, false, None),
            (None, true, Some("--allow-cached: not the device's figures")),
            (Some("a; b"), false, Some("a; b")),
            (Some("fsync is off"), true, Some("fsync is off; --allow-cached: not the device's figures")),
        ] {
            let forced = Forced { refused: refused.map(str::to_owned), not_the_devices };
            let stored = stored.map(str::to_owned);
            assert_eq!(Forced::from(stored.clone()), forced);
            assert_eq!(Option::<String>::from(forced), stored);
        }
    }
}
