//! Limits: what bounds the work of a workload on a machine, whatever the database.

use loadline_model::limits::name;
use serde::Deserialize;

/// A reference that does the work of a workload, or the part of it that no database can avoid, without the database.
/// A workload lists one or more; the lowest is the limit of its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    Log,
    Statements,
    /// Reads of single blocks at random places of the device.
    BlockReads,
    /// Reads of single blocks with all reads of a query at once.
    BatchReads,
    ReadBandwidth,
    /// Writes of single blocks at random places of the device.
    BlockWrites,
    WriteBandwidth,
    Copy,
    Memory,
    /// The query as a loop over the same rows in memory.
    Loop(Loop),
    Kernel,
}

/// A query over the large table, as a loop in this process computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loop {
    /// Filter, count and sum.
    Scan,
    /// Look-ups in the table.
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
    pub fn name(self) -> &'static str {
        match self {
            Limit::Log => name::LOG_WRITER,
            Limit::Statements => "empty statements",
            Limit::BlockReads => name::BLOCK_READS,
            Limit::BatchReads => name::BATCH_READS,
            Limit::ReadBandwidth => name::READ_BANDWIDTH,
            Limit::BlockWrites => name::BLOCK_WRITES,
            Limit::WriteBandwidth => name::WRITE_BANDWIDTH,
            Limit::Copy => "copy of the rows",
            Limit::Memory => "memory bandwidth",
            Limit::Loop(_) => "loop over the rows",
            Limit::Kernel => "compiled code",
        }
    }

    /// Whether it takes time in which a job can do nothing else: with one job, the times of all such parts add up.
    pub fn is_in_series(self) -> bool {
        matches!(self, Limit::Statements | Limit::Log)
    }

    /// Whether it is measured on the device of the data.
    pub fn is_of_device(self) -> bool {
        use Limit::{BatchReads, BlockReads, BlockWrites, ReadBandwidth, WriteBandwidth};
        matches!(self, BlockReads | BatchReads | ReadBandwidth | BlockWrites | WriteBandwidth)
    }

    /// Whether it is measured with CPUs and memory alone.
    pub fn is_of_cpus(self) -> bool {
        matches!(self, Limit::Copy | Limit::Memory | Limit::Loop(_) | Limit::Kernel)
    }

    /// Whether it computes the statements of a workload of the catalogue, whatever those of another workload are.
    pub fn is_of_one_workload(self) -> bool {
        matches!(self, Limit::Loop(_))
    }

    /// Whether it stays the same for hours, as CPU and memory do, unlike a device. Other work only makes a measurement slower,
    /// so the fastest one is the nearest to what the machine allows.
    pub fn is_steady(self) -> bool {
        self == Limit::Statements || self.is_of_cpus()
    }

    /// Best way of a program to do this work, as the reference does it; a sentence.
    pub fn definition(self) -> &'static str {
        let mut all = include_str!("../catalogue/limits.txt").lines();
        all.find_map(|line| line.strip_prefix(self.name())?.strip_prefix(": ")).unwrap_or_default()
    }
}
