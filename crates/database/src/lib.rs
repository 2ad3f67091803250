//! Databases under test, one module each, behind one trait.
//!
//! Adding a database is one module that defines a [`TargetKind`] and one line in [`TARGETS`].

pub mod clock;
mod data_set;
mod env;
mod error;
mod facts;
mod kernels;
mod kind;
mod loading;
mod mysql;
mod names;
mod null;
mod number;
mod oracle;
mod own_tables;
mod parallel;
mod postgres;
mod procedure;
mod registry;
mod render;
mod request;
mod room;
mod secret;
mod server_clock;
mod session;
mod sqlite;
mod stream;
mod temp;
mod tls;
mod url;
mod wal;
mod work;

pub use data_set::{DataTable, FoundTable, LoadProgress, Loading, other_data};
pub use error::TargetError;
pub use facts::{Facts, OwnFiles};
pub use kind::{NativeReport, TargetKind};
pub use names::table_names;
pub use number::Number;
pub use parallel::Together;
pub use registry::{TARGETS, kind_of, open};
pub use render::Rendered;
pub use request::{AskPassword, OpenRequest};
pub use room::{FreeRoom, LogRoom};
pub use secret::Secret;
pub use session::{Canceller, ClientSession, DatabaseSession, JobLimit, Observer, RunLock, Slice, SliceEnd, Target};
pub use url::{hide, redact};
pub use work::Work;
