//! Run folders: everything measured, on disk, so that a report needs nothing else.
//!
//! ```text
//! <results>/<run-id>/
//!   manifest.json            plan, seed, versions, target settings, inventories
//!   tests.jsonl              one versioned record per test, with a checksum
//!   series/<test>.csv        one row a second
//!   histograms/<test>.hlog   latencies in HdrHistogram's log format
//!   snapshots/<test>.json    the database's counters at window start and end
//!   notes.md, notes/<workload>.md   what its owner wrote
//!   report/index.html        rebuilt from the above
//!   live.jsonl               the seconds of its tests, for those who watch it; nothing else reads it
//! ```
//!
//! A test exists once its line is in `tests.jsonl`, which is written last, in one piece, and synced. So a run that is
//! interrupted at any moment holds complete tests and at most one torn last line. [`RunFolder::resume`] cuts that line off
//! and [`StoredRun::open`] skips it, both with a warning. Any other damage is an error that names file and line.

mod atomic;
mod error;
mod folder;
mod hlog;
mod jsonl;
mod layout;
mod live;
mod notes;
mod series_csv;
mod snapshots;
mod stored;
mod time;
mod watched;

pub use atomic::write_report;
pub use error::StoreError;
pub use folder::{NativeFile, RunFolder, TestOutput};
pub use hlog::{Interval, histogram_log};
pub use layout::{id, runs_in};
pub use live::{LiveFile, Tail, clock_s, is_written};
pub use notes::{add_note, notes};
pub use stored::{StoredRun, histograms, read_manifest};
pub use time::{parse_rfc3339, rfc3339, run_name};
pub use watched::{WatchedFile, read_watched};

#[cfg(test)]
mod testing;
