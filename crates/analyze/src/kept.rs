//! Tests that are valid because an option kept them, and where the blocks came from that they read: figures
//! of different kinds make no common mean and no factor.

use std::collections::BTreeMap;

use loadline_model::TestRecord;
use loadline_model::record::{NOT_THE_DEVICES, by_force};
use serde::Serialize;

/// The word for blocks that came from the device.
const DEVICE: &str = "device";

/// What tests must have in common to be pooled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kind<'a> {
    pub(crate) forced: Option<&'a str>,
    pub(crate) data_source: Option<&'a str>,
}

impl<'a> Kind<'a> {
    pub(crate) fn of(record: &'a TestRecord) -> Kind<'a> {
        Kind { forced: record.forced.as_deref(), data_source: record.data_source.as_deref() }
    }

    /// What a figure is taken from before others: a test that holds by itself, then the device, then what is
    /// nearest to it; what is not known comes last.
    pub(crate) fn rank(&self) -> (bool, u8) {
        let source = match self.data_source {
            Some(DEVICE) => 0,
            Some("lukewarm") => 1,
            Some(_) => 2,
            None => 3,
        };
        (self.forced.is_some(), source)
    }
}

/// A valid test that feeds nothing, as others of its place are of a better kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAside {
    /// Number of the test.
    pub test: u32,
    /// Where the blocks came from that it read, if it says.
    pub data_source: Option<String>,
    /// What was refused and forced, if anything.
    pub forced: Option<String>,
    /// Its figures as measured, by column id.
    pub figures: BTreeMap<String, f64>,
}

impl SetAside {
    pub(crate) fn of(record: &TestRecord) -> SetAside {
        SetAside {
            test: record.test,
            data_source: record.data_source.clone(),
            forced: record.forced.clone(),
            figures: record.figures.clone(),
        }
    }

    /// As [`crate::Point::kept`].
    #[must_use]
    pub fn kept(&self) -> Option<String> {
        kept(self.data_source.as_deref(), self.forced.as_deref())
    }
}

/// What tests are valid by, if not by themselves.
pub(crate) fn kept(data_source: Option<&str>, forced: Option<&str>) -> Option<String> {
    let cached = data_source.filter(|s| *s != DEVICE);
    let allowed = allows_cached(forced);
    let mut said = Vec::new();
    match (cached, allowed) {
        (Some(source), true) => said.push(format!("kept by --allow-cached: {source}, not the device's figures")),
        (Some(source), false) => said.push(format!("{source}, not the device's figures")),
        (None, true) => said.push("kept by --allow-cached: not proved to be the device's figures".to_owned()),
        (None, false) => {}
    }
    said.extend(forced.and_then(by_force).map(|why| format!("kept by --force: {}", why.trim_end_matches('.'))));
    (!said.is_empty()).then(|| said.join("; "))
}

/// Whether figures were kept although they are not proved to be the device's.
pub(crate) fn allows_cached(forced: Option<&str>) -> bool {
    forced.is_some_and(|f| f.contains(NOT_THE_DEVICES))
}
