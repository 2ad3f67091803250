//! Blocks of the data files that repeat, for arrays that deduplicate (`--payload-duplicates`).

use loadline_collect::page_cache::DataFiles;
use loadline_load::Request;
use loadline_model::{Note, column};

use super::Instrument;
use crate::evidence::{Evidence, RunContext};
use crate::test::Test;

/// Most bytes that are read: half a second of a device, at least.
const MOST_BYTES: u64 = 256 << 20;

#[derive(Default)]
pub(super) struct IdenticalBlocks(Option<Result<(loadline_storage::IdenticalBlocks, u64), String>>);

impl Instrument for IdenticalBlocks {
    fn complete(&mut self, request: &Request, run: &RunContext<'_>, _: &Test) {
        // Writes what only the database's cache holds. If that fails, the files are as they are.
        let _ = request.target.abilities().tables.map(|target| target.checkpoint());
        let counted = |files: &DataFiles| files.identical_blocks(MOST_BYTES);
        self.0 =
            Some(run.data_files.as_ref().map_err(Clone::clone).and_then(|f| counted(f).map_err(|e| e.to_string())));
    }

    fn report(&self, _: &Evidence<'_>, test: &mut Test) {
        match &self.0 {
            Some(Ok((found, bytes))) => {
                let share = found.share().map(|share| share * 100.0);
                test.set_or_absent(column::IDENTICAL_BLOCKS_PCT, share, "the data files have no block but zeros");
                if found.read_bytes < *bytes {
                    test.notes.push(Note::HashedPart { read_bytes: found.read_bytes, bytes: *bytes });
                }
            }
            Some(Err(why)) => test.set_absent(column::IDENTICAL_BLOCKS_PCT, why.as_str()),
            None => test.set_absent(column::IDENTICAL_BLOCKS_PCT, "the test ended before the files were read"),
        }
    }
}
