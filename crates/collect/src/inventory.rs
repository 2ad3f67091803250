//! What a machine and its storage are, as the kernel states it. What cannot be told is left out.

mod machine;
mod storage;

pub use machine::machine;
pub use storage::storage;
