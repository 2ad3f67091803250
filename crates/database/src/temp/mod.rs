//! What the private throwaway servers of all products share: where they are put, whom they run as,
//! by what they are known, and how what a dead loadline left behind is found.

pub(crate) mod child;
pub(crate) mod files;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod owner;
pub(crate) mod place;
pub(crate) mod user;
