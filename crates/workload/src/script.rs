//! pgbench scripts: reads them, evaluates their expressions and interprets them, as pgbench 15 does.
//!
//! [`Script::read`] makes commands of text, a [`Mix`] is scripts with weights. A [`Client`] runs one after the other and yields
//! statements and sleeps. It has no connection and no clock; who drives it sends the statements.

mod builtin;
mod client;
mod error;
mod expression;
mod file;
mod format;
mod function;
mod mix;
mod parse;
mod random;
mod split;
mod token;
mod value;
mod variables;

pub use builtin::{BUILTINS, builtin};
pub use client::{Client, Event};
pub use error::{EvaluationError, Place, ReadError};
pub use file::{Gather, Script};
pub use mix::{MAX_WEIGHT, Mix};
pub use variables::is_name;
