//! A running database that was watched for a while, without any load of loadline's own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::manifest::TargetInfo;
use crate::snapshot::WaitProfile;
use crate::{Activity, Series, Snapshot};

/// Version of the layout of a stored [`Watched`].
pub const WATCHED_SCHEMA: u32 = 1;

/// Contents of a file of `loadline snapshot`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    pub schema: u32,
    pub loadline_version: String,
    /// Wall-clock time of its start, RFC 3339, UTC.
    pub taken_at: String,
    /// Length, s.
    pub seconds: f64,
    pub target: TargetInfo,
    pub open: Snapshot,
    pub close: Snapshot,
    /// Sampled waits of all clients but loadline.
    pub waits: WaitProfile,
    pub series: Series,
    /// Figures of the machine by column id.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Statistics views, background work, and what the sampling cost.
    pub activity: Activity,
    /// Whether the database answered until the end.
    #[serde(default)]
    pub complete: bool,
    /// Notes for the reader, e.g. on views that could not be read.
    #[serde(default)]
    pub notes: Vec<String>,
}
