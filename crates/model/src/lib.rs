//! Plain data shared by all crates of loadline: plans, test records, columns and their units, histograms,
//! snapshots and inventories. No I/O, no clock.

pub mod activity;
pub mod capability;
pub mod check;
pub mod column;
pub mod disturbance;
pub mod facts;
mod feature;
pub mod format;
pub mod group;
pub mod histogram;
mod json;
pub mod limits;
pub mod live;
pub mod load;
pub mod machine;
pub mod manifest;
mod named;
mod note;
pub mod plan;
pub mod probe;
pub mod random;
pub mod record;
pub mod slow;
pub mod snapshot;
pub mod tries;
pub mod variant;

pub use activity::Activity;
pub use capability::{Capabilities, Capability, Driver};
pub use check::{Check, CheckId, Outcome};
pub use column::{Column, Table};
pub use histogram::Latencies;
pub use json::Json;
pub use limits::{LimitSource, LogWriterPoint, SizePoint, TestLimit};
pub use load::{JobLoad, Keys, Population};
pub use manifest::{Finding, Manifest, Severity};
pub use note::Note;
pub use plan::{Jobs, Plan};
pub use random::{Random, seed_of_window};
pub use record::{DataSource, Detail, Forced, Imported, ImportedFile, TestRecord, Validity};
pub use snapshot::{Series, Snapshot};
pub use variant::{InPair, Letter, LevelPoint};
