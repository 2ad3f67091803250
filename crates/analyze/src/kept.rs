//! Tests that are valid only by `--allow-cached` or `--force`, disturbed and imported ones, and the source of the blocks that tests
//! read. Tests that differ in these are not pooled. Different sources are not compared; the rest is a caveat. And doubts about
//! the limit of a test: its two measurements differ, or the test got more than it.

use std::collections::BTreeMap;

use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::number;
use loadline_model::{DataSource, Forced, TestRecord, column, disturbance};
use serde::Serialize;

/// Causes of disturbed tests whose figures are used although they are not valid.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Disturbed {
    /// The kinds of disturbance, in words.
    #[serde(rename = "disturbed")]
    pub kinds: Vec<&'static str>,
    /// Upper bound of what the throughput would have gained without them, %: see [`disturbance::at_most_higher_pct`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_higher_pct: Option<f64>,
}

impl Disturbed {
    pub fn is_none(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Causes that disturbed `tests`, with the highest of their bounds.
    pub(crate) fn of_tests(tests: &[&TestRecord]) -> Disturbed {
        let found: Vec<&'static str> = tests.iter().flat_map(|r| disturbance::kinds(r)).collect();
        let bounds: Option<Vec<f64>> = tests.iter().map(|r| disturbance::at_most_higher_pct(r)).collect();
        Disturbed {
            kinds: DISTURBANCES.iter().map(|d| d.words).filter(|words| found.contains(words)).collect(),
            at_most_higher_pct: bounds.and_then(|all| all.into_iter().reduce(f64::max)),
        }
    }
}

/// Qualification of tests whose figures are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Caveats {
    /// Source of the blocks that they read, if recorded.
    pub data_source: Option<DataSource>,
    pub forced: Forced,
    /// Cause of the disturbance, if it was too much.
    #[serde(flatten)]
    pub disturbed: Disturbed,
    /// Tool that measured them, in words, if loadline did not: nobody checked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
}

/// Why a test is left out that nothing else qualifies.
pub const OTHER_SOURCE: &str = "its blocks have another source";

/// A usable test left out of the figures, as better tests of the same point exist.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAside {
    pub test: u32,
    #[serde(flatten)]
    pub kept: Caveats,
    /// Figures as measured, by column id.
    pub figures: BTreeMap<String, f64>,
}

impl SetAside {
    pub(crate) fn from_record(record: &TestRecord) -> SetAside {
        SetAside { test: record.test, kept: Caveats::of_tests(&[record]), figures: record.figures.clone() }
    }

    pub fn why(&self) -> String {
        self.kept.says().unwrap_or_else(|| OTHER_SOURCE.to_owned())
    }
}

pub fn kept_test(record: &TestRecord) -> Option<String> {
    Caveats::of_tests(&[record]).says()
}

impl Caveats {
    /// Of tests that may be pooled.
    pub(crate) fn of_tests(tests: &[&TestRecord]) -> Caveats {
        let Some(first) = tests.first() else { return Caveats::default() };
        Caveats {
            data_source: first.data_source(),
            forced: first.forced.clone(),
            disturbed: Disturbed::of_tests(tests),
            imported: first.imported().map(loadline_model::Imported::unchecked),
        }
    }

    /// Whether tests with these and with `other` ones may be pooled.
    pub(crate) fn pools_with(&self, other: &Caveats) -> bool {
        let is_disturbed = |of: &Caveats| !of.disturbed.is_none();
        (self.data_source, &self.forced, &self.imported) == (other.data_source, &other.forced, &other.imported)
            && is_disturbed(self) == is_disturbed(other)
    }

    /// Rank of tests, lowest preferred: not disturbed, then in need of no option, then by source from device to unknown.
    pub(crate) fn rank(&self) -> (bool, bool, bool, Option<DataSource>) {
        (!self.disturbed.is_none(), !self.forced.is_empty(), self.data_source.is_none(), self.data_source)
    }

    /// These without how much the throughput would have gained: whether it is known stays.
    pub fn without_bound(&self) -> Caveats {
        let mut out = self.clone();
        out.disturbed.at_most_higher_pct = self.disturbed.at_most_higher_pct.map(|_| 0.0);
        out
    }

    /// In words: what disturbed the tests, the options that keep them valid (`kept by --allow-cached: cached, not the device's figures`),
    /// their block source, the tool they are imported from. `None` for plain device figures.
    pub fn says(&self) -> Option<String> {
        Caveats::say_together(&[self])
    }

    /// As [`Caveats::says`], of several that differ in nothing but that gain.
    pub fn say_together(all: &[&Caveats]) -> Option<String> {
        let gains = || all.iter().filter_map(|of| of.disturbed.at_most_higher_pct);
        let ends = [gains().reduce(f64::min), gains().reduce(f64::max)].map(|end| end.map(|pct| number(pct, 0)));
        let first = all.first()?;
        let mut said: Vec<String> = first.imported.iter().cloned().collect();
        match (first.data_source.filter(|source| *source != DataSource::Device), first.forced.not_the_devices) {
            (Some(DataSource::Bounded), false) => {
                said.push("bounded: caches may have served up to the share in 'Cached at most'".to_owned())
            }
            (Some(source), true) => said.push(format!("kept by --allow-cached: {source}, not the device's figures")),
            (Some(source), false) => said.push(format!("{source}, not the device's figures")),
            (None, true) => said.push("kept by --allow-cached: not proved to be the device's figures".to_owned()),
            (None, false) => {}
        }
        if !first.disturbed.is_none() {
            let higher = match ends {
                [Some(least), Some(most)] if least != most => format!("was at most {least} to {most} % higher"),
                [_, Some(most)] => format!("was at most {most} % higher"),
                _ => "is unknown".to_owned(),
            };
            let kinds = first.disturbed.kinds.join(", ");
            said.push(format!("disturbed: {kinds}; throughput without the disturbance {higher}"));
        }
        said.extend(first.forced.refused.as_ref().map(|why| format!("kept by --force: {}", why.trim_end_matches('.'))));
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// From this factor between its two measurements on, a limit was not steady.
const UNSTEADY: f64 = 1.25;
/// Share of the limit from which on the test got more than it, %. Below, it may be the error of the two.
const TOO_MUCH: f64 = 105.0;

/// Share from which on syncs that do nothing are a likelier reason, %.
const FAR_TOO_MUCH: f64 = 120.0;
const NO_SYNCS: &str = "that limit is too low, or the database's syncs do nothing (see the check redo-on-device)";
const NOT_STEADY: &str = "the machine or device was not steady";

/// Why the share of the limit of `record` is doubtful. `unit`: that of the figures to be shown, and how many of it one per second is.
pub fn doubt(record: &TestRecord, unit: Option<(f64, &str)>) -> Option<String> {
    let share = record.figure(column::LIMIT_SHARE_PCT)?;
    let samples = &record.limit()?.samples;
    let [low, high] = [samples.iter().copied().reduce(f64::min)?, samples.iter().copied().reduce(f64::max)?];
    let unsteady = high > low * UNSTEADY;
    let values = unit.map_or_else(String::new, |(of_rate, unit)| {
        let decimals = if low * of_rate < 10.0 { 2 } else { 0 };
        let values: Vec<String> = samples.iter().map(|s| number(s * of_rate, decimals)).collect();
        format!(" ({} {unit})", values.join(" and "))
    });
    let durable = record.limit().is_some_and(|limit| limit.redo_bytes_per_tx.is_some());
    let (what, why) = match (share > TOO_MUCH, unsteady) {
        (false, false) => return None,
        (false, true) => ("the limit itself differed when measured twice around the test", NOT_STEADY),
        (true, true) => {
            ("the test got more than its limit, which differed when measured twice around the test", NOT_STEADY)
        }
        (true, false) if share > FAR_TOO_MUCH && durable => ("the test got more than its limit", NO_SYNCS),
        (true, false) => ("the test got more than its limit", "that limit is too low"),
    };
    Some(format!("{what}{values}: {why}"))
}
