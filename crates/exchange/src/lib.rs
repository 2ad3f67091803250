//! Results of other tools in, results of loadline out.
//!
//! [`import()`] reads what pgbench, sysbench and fio wrote and makes tests of it. A figure that no file states, or that
//! cannot be, is absent with an [`Absence`]. Each tool is a file of its own; `lines` reads text, `draft` is a test in the
//! making and holds the laws that no figure may break. [`table`] writes what is exported. No files are opened here.

mod draft;
mod fio;
mod lines;
mod pgbench;
mod pgbench_log;
mod source;
mod sysbench;
pub mod table;

pub use draft::{Group, ImportedTest};
pub use source::{Absence, ImportError, Source, Tool, Warning};
pub use table::{Form, TableError};

use lines::Lines;

/// Reads the results of `tool`. Each file is a group of its own; a part of a test, such as a log of transactions, belongs to the
/// result before it.
///
/// # Errors
/// A file that is of another tool, of a format that is not read, cut off, empty or no text, that contradicts the others, or that
/// cannot be read.
pub fn import(tool: Tool, sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut each = |read: fn(&mut Lines<'_>) -> Result<Group, ImportError>| {
        let one = |(n, source): (usize, &mut Source<'_>)| {
            let group = read(&mut Lines::new(tool, &source.name, &mut *source.input))?;
            Ok(Group { files: vec![n], ..group })
        };
        sources.iter_mut().enumerate().map(one).collect()
    };
    let mut groups = match tool {
        Tool::Sysbench => each(sysbench::read),
        Tool::Fio => each(fio::read),
        Tool::Pgbench => pgbench::import(sources),
    }?;
    groups.iter_mut().flat_map(|g| &mut g.tests).for_each(|test| test.complete(tool));
    Ok(groups)
}
