//! The two arms of a run that compares them (`loadline ab`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::capability::Driver;
use crate::plan::PlannedWorkload;

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

/// The arms of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arms {
    /// Arm A.
    pub a: Arm,
    /// Arm B.
    pub b: Arm,
    /// Pairs of windows per workload and job count; with a precision, the most.
    pub pairs: u32,
    /// Half width of the interval of the ratio at which a comparison is complete, as a share (0.02: ±2 %).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Numbers of pairs after which the precision is looked at; one without a precision.
    pub looks: Vec<usize>,
    /// Difference up to which the arms are called equivalent, as a share.
    pub margin: f64,
    /// Seed of the order of the windows.
    pub seed: u64,
}

impl Arms {
    /// The arm of this name.
    #[must_use]
    pub fn get(&self, name: ArmName) -> &Arm {
        match name {
            ArmName::A => &self.a,
            ArmName::B => &self.b,
        }
    }
}

/// An arm of a plan; it holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name in tables and charts: `A: wal_compression = off`.
    pub label: String,
    /// URL of its target without any password.
    pub target: String,
    /// Settings of its private server.
    pub settings: BTreeMap<String, String>,
    /// Its workloads: the same in both arms, with the arm's driver and parameters.
    pub workloads: Vec<PlannedWorkload>,
    /// Command that brings it about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
}
