//! Inventory of machine and storage, from the kernel. Unknown facts are left out.

mod machine;
mod storage;

pub use machine::machine;
pub use storage::storage;
