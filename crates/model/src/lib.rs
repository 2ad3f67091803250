//! Plain data shared by all crates of loadline: plans, test records, columns and their units, histograms,
//! snapshots and inventories. No I/O, no clock.

pub mod activity;
pub mod capability;
pub mod check;
pub mod column;
pub mod disturbance;
pub mod finding;
mod forced;
pub mod format;
pub mod histogram;
pub mod imported;
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
pub mod series;
pub mod snapshot;
pub mod tries;
pub mod variant;
pub mod watched;

pub use activity::Activity;
pub use capability::{Capabilities, Capability, Driver};
pub use check::{Check, CheckId, Outcome};
pub use column::{Column, Table};
pub use finding::{Finding, Severity};
pub use forced::{DataSource, Forced};
pub use histogram::Latencies;
pub use imported::{Imported, ImportedFile};
pub use limits::{LimitSource, LogWriterPoint, SizePoint, TestLimit};
pub use load::{JobLoad, Population};
pub use manifest::Manifest;
pub use note::Note;
pub use plan::{Jobs, Plan};
pub use random::{Random, seed_of_window};
pub use record::{TestRecord, Validity};
pub use series::Series;
pub use snapshot::Snapshot;
pub use variant::{InPair, Letter, LevelPoint};
