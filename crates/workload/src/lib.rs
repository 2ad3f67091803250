//! The catalogue of workloads. Each is defined once and names no database.
//!
//! Adding a workload is one TOML file in `catalogue/` and one line in `catalogue.rs`. Users write the same language.

mod catalogue;
pub mod data;
mod draw;
mod file;
mod instrument;
pub mod kernel;
mod limit;
mod loops;
mod named_for;
mod params;
mod pool;
mod program;
pub mod script;
mod skew;
mod source;
mod stream;
mod table;
mod template;
mod workload;

pub use catalogue::{CATALOGUE, LOG_APPENDS, Unknown, Workloads, find, find_group, read_file};
pub use draw::{FACTORS, MODULI, SECOND, draw, draw_offset, salt_offset, scatter};
pub use instrument::{Instrument, SizeScan, Visible};
pub use limit::{Limit, Loop};
pub use loops::{LoopRows, Looping, sum};
pub use named_for::{Component, Instead, NamedFor};
pub use params::{Param, ParamError, Params};
pub use pool::{PAYLOAD_CYCLE, POOL_BYTES, Pool, new_payloads};
pub use program::{Arm, Commit, Effect, Generator, Kernel, Program, ProgramError, Statement, Step, VarType};
pub use script::{Mix, SCALE};
pub use skew::{RankRange, SHARES, Skew};
pub use source::UserError;
pub use stream::{Arg, Execute, JobStart, NEW_KEYS_PER_JOB, Replay, Stream, StreamError};
pub use table::{BATCH_ROWS, ColumnDef, Datum, Fill, LogicalType, RowCount, Scope, Table, Typed};
pub use template::{IndexAtom, Piece, Template, TemplateError, limit, swapped};
pub use workload::{Consistency, Evidence, Kpi, RedoSize, Sweep, Volume, Workload};

/// Offset in a pool of [`POOL_BYTES`] of the payload of `bytes` bytes for sequence number `seq`.
///
/// Every rendering uses this formula, so a job writes the same bytes with either driver. The stride is prime and
/// larger than a payload: neighbouring payloads overlap little, and a row never gets the payload it already holds.
pub fn payload_offset(seq: u64, bytes: u32) -> usize {
    let offsets = (POOL_BYTES as u64).saturating_sub(u64::from(bytes)).max(1);
    (seq.wrapping_mul(PAYLOAD_STRIDE) % offsets) as usize
}

pub const PAYLOAD_STRIDE: u64 = 4099;
