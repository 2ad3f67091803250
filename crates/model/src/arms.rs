//! The two arms of a run that compares them (`loadline ab`): their names, and what a user says of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::capability::Driver;

/// Name of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ArmName {
    /// The first, which the other is compared with.
    A,
    /// The second.
    B,
}

impl ArmName {
    /// Both.
    pub const ALL: [ArmName; 2] = [ArmName::A, ArmName::B];

    /// The other one.
    #[must_use]
    pub fn other(self) -> ArmName {
        if self == ArmName::A { ArmName::B } else { ArmName::A }
    }
}

impl fmt::Display for ArmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArmName::A => "A",
            ArmName::B => "B",
        })
    }
}

/// What an arm changes in the plan, as the user states it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArmSpec {
    /// Its name in reports, in place of what it differs in.
    pub label: Option<String>,
    /// Target in place of the plan's.
    pub target: Option<String>,
    /// Settings of a private server, beside the plan's.
    #[serde(default)]
    pub setting: BTreeMap<String, String>,
    /// Driver in place of the plan's.
    pub driver: Option<Driver>,
    /// Workload parameters by workload code, beside the plan's.
    #[serde(default)]
    pub parameters: BTreeMap<String, BTreeMap<String, i64>>,
    /// Command that brings the arm about, run by `sh -c` before each of its windows.
    pub switch: Option<String>,
}
