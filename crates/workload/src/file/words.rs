//! Words of a workload file with what they stand for.

use loadline_model::Capability;

use crate::instrument::Instrument;
use crate::limit::{Limit, Loop};
use crate::named_for::Component;
use crate::program::Kernel;

/// Words with their values.
pub(super) type Words<T> = &'static [(&'static str, T)];

pub(super) const NEEDS: Words<Capability> = &[
    ("redo", Capability::Redo),
    ("rows", Capability::Rows),
    ("commit-wait", Capability::CommitWait),
    ("commit-nowait", Capability::CommitNowait),
    ("redo-known", Capability::RedoKnown),
    ("read-rows", Capability::ReadRows),
    ("bulk-load", Capability::BulkLoad),
    ("procedures", Capability::Procedures),
    ("parallel-query", Capability::ParallelQuery),
    ("checkpoint", Capability::Checkpoint),
    ("count-changes", Capability::CountChanges),
];

pub(super) const COMPONENTS: Words<Component> = &[
    ("cpu", Component::Cpu),
    ("log", Component::Log),
    ("device-reads", Component::DeviceReads),
    ("device-writes", Component::DeviceWrites),
    ("single-writer", Component::SingleWriter),
    ("rate", Component::Rate),
];

pub(super) const INSTRUMENTS: Words<Instrument> =
    &[("cache-hit", Instrument::CacheHit), ("device", Instrument::Device), ("checkpoint", Instrument::Checkpoint)];

pub(super) const LIMITS: Words<Limit> = &[
    ("log", Limit::Log),
    ("statements", Limit::Statements),
    ("block-reads", Limit::BlockReads),
    ("batch-reads", Limit::BatchReads),
    ("read-bandwidth", Limit::ReadBandwidth),
    ("block-writes", Limit::BlockWrites),
    ("write-bandwidth", Limit::WriteBandwidth),
    ("copy", Limit::Copy),
    ("memory", Limit::Memory),
    ("kernel", Limit::Kernel),
    ("loop-scan", Limit::Loop(Loop::Scan)),
    ("loop-lookup", Limit::Loop(Loop::Lookup)),
    ("loop-group", Limit::Loop(Loop::Group)),
    ("loop-join", Limit::Loop(Loop::Join)),
    ("loop-sort", Limit::Loop(Loop::Sort)),
    ("loop-window", Limit::Loop(Loop::Window)),
    ("loop-keys", Limit::Loop(Loop::Keys)),
];

pub(super) const KERNELS: Words<Kernel> = &[
    ("add", Kernel::Add),
    ("fibonacci", Kernel::Fibonacci),
    ("prime", Kernel::Prime),
    ("text", Kernel::Text),
    ("builtin", Kernel::Builtin),
];
