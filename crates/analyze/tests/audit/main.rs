//! Tables that are audited.

mod made_up;
mod properties;
mod studies;
mod written;
