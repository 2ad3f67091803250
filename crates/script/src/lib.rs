//! pgbench scripts: reads them, evaluates their expressions and interprets them, as pgbench 15 does.
//!
//! [`Script::read`] makes commands of text. A [`Machine`] is one client: it runs a script's commands and yields
//! statements and sleeps. It has no connection and no clock; who drives it sends the statements.

mod builtin;
mod error;
mod expression;
mod format;
mod function;
mod machine;
mod parse;
mod random;
mod script;
mod split;
mod token;
mod value;
mod variables;

pub use builtin::{BUILTINS, builtin};
pub use error::{EvaluationError, Place, ReadError};
pub use machine::{Event, Keep, Machine};
pub use random::Random;
pub use script::{Gather, Script};
pub use value::Value;
pub use variables::Variables;
