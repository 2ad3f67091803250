//! Files to tests, and what is said of all tests.

use crate::error::ImportError;
use crate::group::{Group, Source};
use crate::lines::Lines;
use crate::tool::Tool;
use crate::{fio, hammerdb, pgbench, sysbench};

/// Reads the results of `tool`. Each file is a group of its own; a part of a test, such as a log of transactions, belongs to the one
/// result among the files, or if there is none, to the parts of the same test.
///
/// # Errors
/// A file that is of another tool, cut off, empty or no text, that contradicts the others, or that cannot be read.
pub fn import(tool: Tool, sources: &mut [Source<'_>]) -> Result<Vec<Group>, ImportError> {
    let mut groups = match tool {
        Tool::Pgbench => pgbench::import(sources),
        Tool::Sysbench => each(sources, sysbench::read),
        Tool::HammerDb => hammerdb::import(sources),
        Tool::Fio => each(sources, fio::read),
    }?;
    for test in groups.iter_mut().flat_map(|g| &mut g.tests) {
        test.record.leave_out_the_rest(&format!("{tool} does not state it"));
    }
    Ok(groups)
}

/// Groups of files that are each complete.
fn each(
    sources: &mut [Source<'_>],
    read: fn(&mut Lines<'_>) -> Result<Group, ImportError>,
) -> Result<Vec<Group>, ImportError> {
    let one = |(n, source): (usize, &mut Source<'_>)| {
        let group = read(&mut Lines::new(&source.name, &mut *source.input))?;
        Ok(Group { files: vec![n], ..group })
    };
    sources.iter_mut().enumerate().map(one).collect()
}
