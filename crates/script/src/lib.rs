//! pgbench scripts: reads them, evaluates their expressions and interprets them, as pgbench 15 does.
//!
//! [`Script::read`] makes commands of text. A [`Machine`] is one client: it runs a script's commands and yields
//! statements and sleeps. It has no connection and no clock; who drives it sends the statements. A [`Mix`] is scripts with
//! weights, of which a [`Client`] does one after the other.

mod builtin;
mod error;
mod expression;
mod format;
mod function;
mod machine;
mod mix;
mod parse;
mod random;
mod script;
mod split;
mod token;
mod value;
mod variables;

pub use builtin::{BUILTINS, builtin, builtin_script};
pub use error::{EvaluationError, Place, ReadError};
pub use machine::{Event, Keep, Machine};
pub use mix::{Client, MAX_WEIGHT, Mix};
pub use random::Random;
pub use script::{Gather, Script};
pub use value::Value;
pub use variables::Variables;
