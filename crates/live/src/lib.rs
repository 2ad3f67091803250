//! Looking at runs while they go on, and at stored ones: a terminal view ([`watch`]) and a web server ([`serve`]).
//!
//! Both only read run folders, from a process of their own that gets a CPU when nobody else wants it: looking costs the measured
//! test nothing. What a report shows is made by crate `report`, on a page as in a file.
//!
//! [`now`] is a run as it stands, read bit by bit from its folder; [`screen`] shows it on a terminal, `serve` in browsers.

pub mod metrics;
pub mod now;
pub mod screen;
pub mod serve;
mod terminal;
mod watch;

pub use serve::{period, read_run};
pub use watch::{Ended, WatchError, WatchOptions, watch};
