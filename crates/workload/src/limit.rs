//! Limits: what bounds the work of a workload on a machine, whatever the database.

use loadline_model::limits::name;

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
    /// The same over the table for look-ups.
    Lookup,
    /// Hash the groups and sum in each.
    Group,
    /// Hash the small table, look up each row of the large one, and group.
    Join,
    /// Find the rows in the middle, and the highest ones.
    Sort,
    /// Sort within partitions and accumulate.
    Window,
    /// Sort the keys of an index.
    Keys,
}

impl Limit {
    /// Short name, as in the column `limit_of`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Log => name::LOG_WRITER,
            Limit::Statements => name::STATEMENTS,
            Limit::BlockReads => name::BLOCK_READS,
            Limit::BatchReads => name::BATCH_READS,
            Limit::ReadBandwidth => name::READ_BANDWIDTH,
            Limit::BlockWrites => name::BLOCK_WRITES,
            Limit::WriteBandwidth => name::WRITE_BANDWIDTH,
            Limit::Copy => name::COPY,
            Limit::Memory => name::MEMORY,
            Limit::Loop(_) => name::LOOP,
            Limit::Kernel => name::KERNEL,
        }
    }

    /// Whether it takes time in which a job can do nothing else: with one job, the times of all such parts add up.
    #[must_use]
    pub fn is_in_series(self) -> bool {
        matches!(self, Limit::Statements | Limit::Log)
    }

    /// Whether it is measured on the device of the data.
    #[must_use]
    pub fn is_of_device(self) -> bool {
        use Limit::{BatchReads, BlockReads, BlockWrites, ReadBandwidth, WriteBandwidth};
        matches!(self, BlockReads | BatchReads | ReadBandwidth | BlockWrites | WriteBandwidth)
    }

    /// Whether it computes the statements of a workload of the catalogue, whatever those of another workload are.
    #[must_use]
    pub fn is_of_one_workload(self) -> bool {
        matches!(self, Limit::Loop(_))
    }

    /// Whether it stays the same for hours, as CPU and memory do, unlike a device. Other work only makes a measurement slower,
    /// so the fastest one is the nearest to what the machine allows.
    #[must_use]
    pub fn is_steady(self) -> bool {
        matches!(self, Limit::Statements | Limit::Copy | Limit::Memory | Limit::Loop(_) | Limit::Kernel)
    }

    /// What the best program would take for this work: how the reference does it; a sentence.
    #[must_use]
    pub fn definition(self) -> &'static str {
        match self {
            Limit::Log => {
                "The reference log writer commits transactions with the same redo by as many jobs, in the same commit \
                 mode, on the filesystem of the database's log; transactions that change nothing commit nothing. If that \
                 filesystem is on another machine, as many jobs make the smallest durable transactions of the database."
            }
            Limit::Statements => {
                "As many sessions of the same driver run the same transactions in the same database, with an empty \
                 statement in place of each statement: the round trips or calls that the work cannot avoid. No CPU sleeps \
                 meanwhile. One job must wait for these and then for its commit, so with one job the times of both add up."
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
                "As many threads as jobs, at most one for each CPU, read as many bytes as the table has in the \
                 database from memory, each the whole of them; from a buffer of that size, at most 256 MiB."
            }
            Limit::Loop(_) => {
                "As many threads as processes of the database work on queries, at most one for each CPU, run the same \
                 queries as loops over the same rows: records of a fixed length with all columns, in memory, at most \
                 128 MiB of them. From a part of the rows the time of all is computed as proportional to their number \
                 n (n log n, if the loop sorts all rows)."
            }
            Limit::Kernel => {
                "As many threads as jobs, at most one for each CPU, run the same computations, compiled, step by step \
                 as the database does: no sum is replaced by a formula."
            }
        }
    }
}
