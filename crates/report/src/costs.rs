//! What levels of replication cost, for a terminal and for scripts.

use crate::RunData;
use crate::content::levels;
use crate::doc::Block;
use crate::text::for_terminal;

/// Costs of the levels of a run.
#[derive(Debug, Clone)]
pub struct Costs {
    /// For people.
    pub text: String,
    /// A row per level, distance, job count and workload.
    pub csv: String,
    /// Whether each cost has a valid pair of windows, and no commit that should wait was faster than its round trip.
    pub holds: bool,
}

impl Costs {
    /// Of a run of levels; `None` if it is not one.
    #[must_use]
    pub fn of(run: &RunData, width: usize) -> Option<Costs> {
        let of = levels::of(run)?;
        let blocks = [Block::Table(of.table()), Block::List { items: of.sentences() }];
        Some(Costs { text: for_terminal(&blocks, Some(width), &[]), csv: of.csv(), holds: of.holds() })
    }
}
