//! The catalogue of workloads: what each does, defined once, free of any database's name.
//!
//! Adding a workload is one file in `catalogue/` and one line in [`catalogue::CATALOGUE`].

pub mod catalogue;
pub mod data;
mod draw;
mod instrument;
pub mod kernel;
mod pool;
mod program;
mod stream;
mod table;
mod template;
mod user;
mod workload;

pub use catalogue::{CATALOGUE, Unknown, find, find_group};
pub use draw::{FACTORS, MODULI, SECOND, draw, draw_offset, salt_offset, scatter};
pub use instrument::{Instrument, SizeScan, Visible};
pub use pool::{POOL_BYTES, pool};
pub use program::{Arm, Commit, Effect, Generator, Kernel, Program, ProgramError, Statement, Step, VarType};
pub use stream::{Arg, Execute, JobStart, NEW_KEYS_PER_JOB, Stream, StreamError};
pub use table::{BATCH_ROWS, ColumnDef, Datum, Fill, LogicalType, RowCount, Scope, Table};
pub use template::{IndexAtom, Piece, Template, TemplateError, limit};
pub use user::{Given, UserError, register};
pub use workload::{
    Consistency, Evidence, GROUPS, Group, Kpi, Param, ParamError, Params, RedoSize, Sweep, Volume, Workload,
};

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
