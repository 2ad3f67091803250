//! Checks tables of performance results by operational laws. Pure functions: text in, findings out.

mod header;
mod names;
pub mod sheet;
pub mod table;
pub mod unit;

pub use names::find as find_column;
pub use sheet::{Figure, Mapping, MappingError, Series, Sheet};
pub use table::{ReadError, Table};
