//! What a workload has measured beside its jobs, or proved of its tests.

/// Something that a workload lists in [`crate::Workload::instruments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// Blocks must come from the database's own cache, which is filled before each test: at least 99.9 % of them.
    CacheHit,
    /// Blocks must come from the storage device, and changed ones must reach it. Its data files are kept out of
    /// the operating system's page cache.
    Device,
    /// A checkpoint is asked for in the middle of the window, and transaction times are split by it.
    Checkpoint,
    /// Transactions come at a rate, and another session looks for the rows of each.
    Visible(Visible),
    /// Queries are run in parallel, with as many workers as this parameter says. Without it, with none.
    Workers(&'static str),
    /// Takes the place of the jobs: the size of one session's transactions is swept instead of the jobs.
    SizeScan(SizeScan),
    /// The reference log writer does the same work right before and after each test.
    Limit,
}

impl Instrument {
    /// Why it needs the client driver, if it does.
    #[must_use]
    pub fn only_at_client(self) -> Option<&'static str> {
        match self {
            Instrument::SizeScan(_) => Some("a scan of sizes times each commit of one session at the client"),
            Instrument::Checkpoint => Some("transaction times are split by the checkpoint one by one, at the client"),
            Instrument::Visible(_) => Some("its batches begin at a rate, which the client keeps"),
            _ => None,
        }
    }
}

/// Transactions come at a rate, and another session looks for the rows of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visible {
    /// Parameter that says how many transactions begin per second.
    pub rate: &'static str,
    /// Parameter that says how many rows with new keys ([`crate::Generator::NewKey`]) each adds.
    pub rows: &'static str,
    /// Portable SQL with the variable `:id` that returns one row when the row with this key is seen, and
    /// else none.
    pub query: &'static str,
}

/// One session commits transactions of rising redo, in random order: names of the parameters that say
/// which. Such a workload is run when it is asked for by name or group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeScan {
    /// Largest transaction, KiB of redo; the smallest has none but its commit's own.
    pub most_kib: &'static str,
    /// From one size to the next, KiB.
    pub step_kib: &'static str,
    /// Most redo per second while a transaction writes, MiB/s; 0 for no limit.
    pub pace_mib: &'static str,
    /// Transactions of each size.
    pub samples: &'static str,
    /// Parameter of [`crate::Workload::redo`] that a size is made with: the number of rows changed.
    pub rows: &'static str,
}
