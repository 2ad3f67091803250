//! Tests that are valid only by `--allow-cached` or `--force`, disturbed and imported ones, and the source of the blocks that tests
//! read. Tests that differ in these are not pooled. Different sources are not compared; the rest is a caveat.

use std::collections::BTreeMap;

use loadline_model::disturbance::DISTURBANCES;
use loadline_model::format::number;
use loadline_model::{DataSource, Forced, TestRecord, disturbance};
use serde::Serialize;

/// What tests must have in common to be pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolKey<'a> {
    pub(crate) forced: &'a Forced,
    pub(crate) data_source: Option<DataSource>,
    /// Whether it is disturbed.
    pub(crate) disturbed: bool,
    /// Tool and version that measured it, if loadline did not.
    pub(crate) imported: Option<(&'a str, Option<&'a str>)>,
}

impl<'a> PoolKey<'a> {
    pub(crate) fn of(record: &'a TestRecord) -> PoolKey<'a> {
        PoolKey {
            forced: &record.forced,
            data_source: record.data_source,
            disturbed: record.is_disturbed(),
            imported: record.imported.as_ref().map(|i| (i.tool.as_str(), i.version.as_deref())),
        }
    }

    /// Rank of tests, lowest preferred for the figures: those that are not disturbed, then those that need no option, then by source
    /// from device to unknown.
    pub(crate) fn rank(&self) -> (bool, bool, bool, Option<DataSource>) {
        (self.disturbed, !self.forced.is_empty(), self.data_source.is_none(), self.data_source)
    }
}

/// What disturbed tests whose figures are used although they are not valid.
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
    /// Whether nothing disturbed them.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.kinds.is_empty()
    }

    /// What disturbed `tests`, with the highest of their bounds.
    pub(crate) fn of_tests(tests: &[&TestRecord]) -> Disturbed {
        let found: Vec<&'static str> = tests.iter().flat_map(|r| disturbance::kinds(r)).collect();
        let bounds: Option<Vec<f64>> = tests.iter().map(|r| disturbance::at_most_higher_pct(r)).collect();
        Disturbed {
            kinds: DISTURBANCES.iter().map(|d| d.words).filter(|words| found.contains(words)).collect(),
            at_most_higher_pct: bounds.and_then(|all| all.into_iter().reduce(f64::max)),
        }
    }
}

/// A usable test left out of the figures, as better tests of the same point exist.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAside {
    /// Number of the test.
    pub test: u32,
    /// Source of the blocks that it read, if recorded.
    pub data_source: Option<DataSource>,
    /// See [`TestRecord::forced`].
    pub forced: Forced,
    /// What disturbed it, if it was too much.
    #[serde(flatten)]
    pub disturbed: Disturbed,
    /// See [`crate::SweepPoint::imported`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Its figures as measured, by column id.
    pub figures: BTreeMap<String, f64>,
}

impl SetAside {
    pub(crate) fn of(record: &TestRecord) -> SetAside {
        SetAside {
            test: record.test,
            data_source: record.data_source,
            forced: record.forced.clone(),
            disturbed: Disturbed::of_tests(&[record]),
            imported: unchecked(record),
            figures: record.figures.clone(),
        }
    }

    /// As [`crate::SweepPoint::kept`].
    #[must_use]
    pub fn kept(&self) -> Option<String> {
        kept(self.data_source, &self.forced, &self.disturbed, self.imported.as_deref())
    }
}

/// What is said of an imported test: see [`loadline_model::Imported::unchecked`].
pub(crate) fn unchecked(record: &TestRecord) -> Option<String> {
    record.imported.as_ref().map(loadline_model::Imported::unchecked)
}

/// The same of one test.
#[must_use]
pub fn kept_test(record: &TestRecord) -> Option<String> {
    let disturbed = Disturbed::of_tests(&[record]);
    kept(record.data_source, &record.forced, &disturbed, unchecked(record).as_deref())
}

/// What qualifies tests, in words: the options that keep them valid, their block source, the tool they are imported from. `None`
/// for plain device figures.
pub(crate) fn kept(
    data_source: Option<DataSource>,
    forced: &Forced,
    disturbed: &Disturbed,
    imported: Option<&str>,
) -> Option<String> {
    let mut said: Vec<String> = imported.into_iter().map(str::to_owned).collect();
    match (data_source.filter(|source| *source != DataSource::Device), forced.not_the_devices) {
        (Some(DataSource::Bounded), false) => {
            said.push("bounded: caches may have served up to the share in 'Cached at most'".to_owned())
        }
        (Some(source), true) => said.push(format!("kept by --allow-cached: {source}, not the device's figures")),
        (Some(source), false) => said.push(format!("{source}, not the device's figures")),
        (None, true) => said.push("kept by --allow-cached: not proved to be the device's figures".to_owned()),
        (None, false) => {}
    }
    if !disturbed.kinds.is_empty() {
        let higher = disturbed.at_most_higher_pct.map_or_else(
            || "throughput without the disturbance is unknown".to_owned(),
            |pct| format!("throughput without the disturbance was at most {} % higher", number(pct, 0)),
        );
        said.push(format!("disturbed: {}; {higher}", disturbed.kinds.join(", ")));
    }
    said.extend(forced.refused.as_ref().map(|why| format!("kept by --force: {}", why.trim_end_matches('.'))));
    (!said.is_empty()).then(|| said.join("; "))
}
