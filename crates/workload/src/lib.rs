//! The catalogue of workloads: what each does, defined once, free of any database's name.
//!
//! Adding a workload is one file in `catalogue/` and one line in [`catalogue::CATALOGUE`].

pub mod catalogue;
mod pool;
mod program;
mod stream;
mod table;
mod template;
mod workload;

pub use catalogue::{CATALOGUE, Unknown, find, find_group};
pub use pool::{POOL_BYTES, pool};
pub use program::{Commit, Generator, Program, ProgramError, Statement, Step, VarType};
pub use stream::{Arg, Execute, Stream, StreamError};
pub use table::{ColumnDef, Datum, Fill, LogicalType, Table};
pub use template::{Piece, Template, TemplateError};
pub use workload::{Evidence, GROUPS, Group, Kpi, Param, ParamError, Params, RedoSize, SizeScan, Workload};

/// Payload offset of the `seq`-th binding, for payloads of `bytes` out of a pool of [`POOL_BYTES`].
///
/// Every rendering uses this formula, so that a job writes the same bytes whichever driver runs
/// it. The stride is prime and larger than a payload, so that neighbouring payloads do not overlap
/// much and a row never receives the payload it already holds.
#[must_use]
pub fn payload_offset(seq: u64, bytes: u32) -> usize {
    let room = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
    (seq.wrapping_mul(PAYLOAD_STRIDE) % room) as usize
}

/// Stride of [`payload_offset`].
pub const PAYLOAD_STRIDE: u64 = 4099;
