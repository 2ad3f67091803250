//! Variants: what differs between the windows of a run beside workload and load. Each is compared with the first in pairs of windows.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::capability::Driver;
use crate::group::distinct;

/// Letter of a variant: A is the first, which all others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Letter(char);

impl Letter {
    pub const A: Letter = Letter('A');
    pub const B: Letter = Letter('B');
    pub const BOTH: [Letter; 2] = [Letter::A, Letter::B];
    /// Most variants that users can give.
    pub const MOST: usize = 8;

    pub fn nth(index: usize) -> Letter {
        Letter(char::from(b'A' + index.min(25) as u8))
    }

    pub fn index(self) -> usize {
        (self.0 as usize).saturating_sub('A' as usize)
    }

    fn is_b(&self) -> bool {
        *self == Letter::B
    }

    fn b() -> Letter {
        Letter::B
    }
}

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Change of a variant in the plan, as the user states it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VariantSpec {
    /// Name in reports, in place of what it differs in.
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
    /// Command that brings the variant about, run by `sh -c` before each of its windows.
    pub switch: Option<String>,
    /// Proxy or pooler through which its jobs go: the plan lists those of all variants.
    #[serde(skip)]
    pub via: Option<String>,
}

/// A level of replication at a distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelPoint {
    /// Name of the level: `remote_write`.
    pub level: String,
    /// One-way delay between the database and its replicas, ms.
    pub delay_ms: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedWorkload {
    pub code: String,
    pub driver: Driver,
    /// Whether the plan asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driver_given: bool,
    /// Why not the preferred driver; empty if it is the preferred or the given one.
    #[serde(default)]
    pub driver_reason: String,
    /// Parameters that differ from the catalogue's defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, i64>,
    /// Refusals of a missing capability that `--force` overrode; such tests are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

impl PlannedWorkload {
    /// The workload `code` by `driver`, without parameters of its own.
    pub fn new(code: &str, driver: Driver) -> PlannedWorkload {
        PlannedWorkload { code: code.to_owned(), driver, ..PlannedWorkload::default() }
    }
}

/// A variant of a plan; it holds no secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Name in tables and charts: `A: wal_compression = off`; empty for a level of replication ([`Paired::label`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// URL of its target without any password; empty: that of the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Settings of its private server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The plan's workloads with the variant's driver and parameters; empty: as they are in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<PlannedWorkload>,
    /// Command that brings it about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// URL of the proxy or pooler through which its jobs reach the target, without any password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelPoint>,
}

/// The way between a database and its replicas.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Whether the copy is sent while the own log is written: then a commit takes the longer of the two, and less than a round
    /// trip may be added to it.
    #[serde(default)]
    pub at_once: bool,
    /// URLs of the user's own standbys without any password; empty: loadline makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standbys: Vec<String>,
    /// Replicas that the levels need.
    pub replicas: u32,
}

/// Variants of a plan, each compared with the first in pairs of windows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPaired")]
pub struct Paired {
    /// The variants. Of levels of replication the first is the baseline, in which a commit waits for its own disk alone.
    pub variants: Vec<Variant>,
    /// Pairs of windows per variant, workload and job count; with a precision, the most.
    pub pairs: u32,
    /// Half width of the interval of the ratio at which a comparison is complete, as a share (0.02: ±2 %).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Numbers of pairs after which the precision is looked at; one without a precision.
    pub looks: Vec<usize>,
    /// Difference up to which variants are called equivalent, as a share.
    pub margin: f64,
    /// Seed of the order of the windows.
    pub seed: u64,
    /// The way to the replicas, of levels of replication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
}

impl Paired {
    /// The command of loadline that measures such pairs.
    pub fn command(&self) -> &'static str {
        if self.links.is_some() { "replica-cost" } else { "ab" }
    }

    /// Whether the jobs of a variant go through a proxy or pooler.
    pub fn has_via(&self) -> bool {
        self.variants.iter().any(|variant| variant.via.is_some())
    }

    /// The window of the first variant, or of `other`, in the pairs that compare these two.
    pub fn window(&self, other: usize, is_first: bool) -> InPair {
        let level = self.variants.get(other).and_then(|variant| variant.level.clone());
        let beside = if level.is_some() { Letter::B } else { Letter::nth(other) };
        InPair { arm: if is_first { Letter::A } else { beside }, beside, level }
    }

    /// The levels of replication, and the one-way delays, ms: each once, in order.
    pub fn levels_and_delays(&self) -> (Vec<&str>, Vec<f64>) {
        let points = || self.variants.iter().filter_map(|variant| variant.level.as_ref());
        (distinct(points().map(|point| point.level.as_str())), distinct(points().map(|point| point.delay_ms)))
    }

    /// Name of `variant` in tables and charts.
    pub fn label(&self, variant: &Variant) -> String {
        match (&variant.level, &self.links) {
            // The way to a user's own standbys is not known.
            (Some(point), Some(links)) if links.standbys.is_empty() => {
                format!("{}, {} ms", point.level, point.delay_ms)
            }
            (Some(point), _) => point.level.clone(),
            (None, Some(_)) => "baseline".to_owned(),
            (None, None) => variant.label.clone(),
        }
    }

    /// The baseline, and each of `levels` at each of `delays_ms`.
    pub fn of_levels(levels: &[String], delays_ms: &[f64]) -> Vec<Variant> {
        let points = levels.iter().flat_map(|level| delays_ms.iter().map(move |delay_ms| (level, *delay_ms)));
        let points = points.map(|(level, delay_ms)| Some(LevelPoint { level: level.clone(), delay_ms }));
        std::iter::once(None).chain(points).map(|level| Variant { level, ..Variant::default() }).collect()
    }
}

/// [`Paired`] in any form in which a plan has stored it: in manifests of schema 1, two arms `a` and `b`, or `levels` at distances.
#[derive(Deserialize)]
struct StoredPaired {
    #[serde(default)]
    variants: Vec<Variant>,
    a: Option<Variant>,
    b: Option<Variant>,
    #[serde(default)]
    levels: Vec<String>,
    #[serde(default)]
    delays_ms: Vec<f64>,
    pairs: u32,
    precision: Option<f64>,
    #[serde(default)]
    looks: Vec<usize>,
    #[serde(default)]
    margin: f64,
    seed: u64,
    links: Option<Links>,
    #[serde(flatten)]
    links_of_levels: Option<Links>,
}

impl From<StoredPaired> for Paired {
    fn from(stored: StoredPaired) -> Paired {
        let StoredPaired { mut variants, a, b, levels, delays_ms, pairs, precision, mut looks, margin, seed, .. } =
            stored;
        variants.extend(a.into_iter().chain(b));
        if !levels.is_empty() {
            variants = Paired::of_levels(&levels, &delays_ms);
            looks = vec![pairs as usize];
        }
        Paired { variants, pairs, precision, looks, margin, seed, links: stored.links.or(stored.links_of_levels) }
    }
}

/// The place of a window in a run of pairs. The record's `repetition` is the number of its pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InPair {
    /// The variant that it measures. Of levels of replication, A is the baseline and B the level.
    pub arm: Letter,
    /// The variant that its pair compares with A.
    #[serde(default = "Letter::b", skip_serializing_if = "Letter::is_b")]
    pub beside: Letter,
    /// The level and distance that its pair compares with the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelPoint>,
}

impl InPair {
    pub fn of_two(arm: Letter) -> InPair {
        InPair { arm, beside: Letter::B, level: None }
    }

    /// Whether both windows are of pairs that compare the same.
    pub fn compares_as(&self, other: &InPair) -> bool {
        (self.beside, &self.level) == (other.beside, &other.level)
    }
}
