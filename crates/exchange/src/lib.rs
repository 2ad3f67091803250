//! Results of other tools in, results of loadline out.
//!
//! [`import()`] reads what pgbench, sysbench and fio wrote and makes tests of it. A figure that no file states, or that
//! cannot be, is absent with an [`Absence`]. Each tool is a file of its own; `lines` and `fields` read text, `draft` is a test in the
//! making and holds the laws that no figure may break. [`table`] writes what is exported. No files are opened here.

mod absence;
mod draft;
mod error;
mod fields;
mod fio;
mod group;
mod import;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod pgbench;
mod pgbench_log;
mod series;
mod sysbench;
pub mod table;
mod tool;
mod write;

pub use absence::{Absence, Warning};
pub use draft::ImportedTest;
pub use error::ImportError;
pub use group::{Group, Source};
pub use import::import;
pub use tool::Tool;
pub use write::{Form, TableError};
