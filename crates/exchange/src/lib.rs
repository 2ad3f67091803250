//! Results of other tools in, results of loadline out.
//!
//! `import` reads what pgbench, sysbench, HammerDB and fio wrote and makes tests of it: what a file does not state is absent with
//! a reason. Each tool is a file of its own; `lines` bounds what is held of a file. `table` is what is exported, `parquet` one of its
//! forms. No files are opened here.

mod draft;
mod error;
mod fio;
mod group;
mod hammerdb;
mod import;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod pgbench;
mod pgbench_log;
mod sysbench;
pub mod table;
mod tool;

pub use error::ImportError;
pub use group::{Group, ImportedTest, Source};
pub use import::import;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetError, parquet};
pub use tool::Tool;
