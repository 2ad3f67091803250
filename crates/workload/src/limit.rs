//! Limits: what bounds the work of a workload on a machine, whatever the database.

use crate::workload::Workload;

/// A reference that does the work of a workload, or the part of it that no database can avoid, without the database.
/// A workload lists one or more; the lowest is the limit of its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Commits of the reference log writer.
    Log,
    /// The same transactions with empty statements.
    Statements,
    /// Reads of single blocks at random places of the device.
    BlockReads,
    /// The same with all reads of a query at once.
    BatchReads,
    /// Sequential reads of the device.
    ReadBandwidth,
    /// Writes of single blocks at random places of the device.
    BlockWrites,
    /// Sequential writes of the device.
    WriteBandwidth,
    /// Copies of the loaded rows in memory.
    Copy,
    /// Reads of the same bytes from memory.
    Memory,
    /// The same query as a loop over the same rows in memory.
    Loop(Loop),
    /// The same computations, compiled.
    Kernel,
}

/// A query over the large table, as a loop in this process computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    /// Filter, count and sum.
    Scan,
    /// Hash the groups and sum in each.
    Group,
    /// Hash the small table, look up each row of the large one, and group.
    Join,
    /// Keep the highest rows in order.
    Sort,
    /// Sort within partitions and accumulate.
    Window,
}

impl Limit {
    /// Short name, as in the column `limit_of`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Log => "log writer",
            Limit::Statements => "empty statements",
            Limit::BlockReads => "block reads",
            Limit::BatchReads => "batches of block reads",
            Limit::ReadBandwidth => "read bandwidth",
            Limit::BlockWrites => "block writes",
            Limit::WriteBandwidth => "write bandwidth",
            Limit::Copy => "copy of the rows",
            Limit::Memory => "memory bandwidth",
            Limit::Loop(_) => "loop over the rows",
            Limit::Kernel => "compiled code",
        }
    }

    /// What the best program would take for this work: how the reference does it; a sentence.
    #[must_use]
    pub fn definition(self) -> &'static str {
        match self {
            Limit::Log => {
                "The reference log writer commits transactions with the same redo by as many jobs, in the same commit \
                 mode, on the filesystem of the database's log; transactions that change nothing commit nothing."
            }
            Limit::Statements => {
                "As many sessions of the same driver run the same transactions in the same database, with an empty \
                 statement in place of each statement: the round trips or calls that the work cannot avoid."
            }
            Limit::BlockReads => {
                "Reads of the database's block size at random places of a file on the filesystem of its data, past the \
                 page cache, with as many in flight as jobs (at most 1,024). Blocks from a cache do not count."
            }
            Limit::BatchReads => {
                "Reads of the database's block size at random places of a file on the filesystem of its data, past the \
                 page cache, with as many in flight as jobs times rows of a query (at most 1,024). Blocks from a cache \
                 do not count."
            }
            Limit::ReadBandwidth => {
                "Sequential reads of 1 MiB of a file on the filesystem of the database's data, past the page cache, 8 in \
                 flight. Data from a cache do not count."
            }
            Limit::BlockWrites => {
                "Writes of the database's block size at random places of a file on the filesystem of its data, past the \
                 page cache, 32 in flight. Where log and data share a device, blocks written together count once."
            }
            Limit::WriteBandwidth => {
                "Sequential writes of 1 MiB to a file on the filesystem of the database's data, past the page cache, 8 \
                 in flight, for the bytes that each transaction wrote to the data files, and to the log if it is on the \
                 same device."
            }
            Limit::Copy => {
                "As many threads as jobs, at most one per CPU, copy the same rows, already parsed, from one place in \
                 memory to another."
            }
            Limit::Memory => {
                "As many threads as jobs read as many bytes as the table has in the database from memory, each the \
                 whole of them."
            }
            Limit::Loop(_) => {
                "As many threads as sessions work on the query at a time run it as a loop over the same rows, which are \
                 fixed-length records in memory."
            }
            Limit::Kernel => "As many threads as jobs run the same computations, compiled, without a database.",
        }
    }
}

/// Transactions whose statements a reference provides.
pub static EMPTY: Workload = Workload { code: "EMPTY-STATEMENTS", ..Workload::BASE };
