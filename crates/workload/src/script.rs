//! pgbench scripts: reads them, evaluates their expressions and interprets them, as pgbench 15 does.
//!
//! [`Script::read`] makes commands of text, a [`Mix`] is scripts with weights. A [`Client`] runs one after the other and yields
//! statements and sleeps. It has no connection and no clock; who drives it sends the statements.

mod client;
mod expression;
mod file;
mod function;
mod mix;
mod parse;
mod random;
mod split;
mod token;
mod value;

pub use client::{Client, Event};
pub use file::{Gather, Script};
pub use mix::{MAX_WEIGHT, Mix, SCALE};
pub(crate) use parse::{FILE_FUNCTIONS, amount};
pub(crate) use random::Random;
pub(crate) use token::no_keyword;
pub(crate) use value::Value;
pub use value::{EvaluationError, is_name};

/// Names and texts of pgbench's own scripts, on the tables of `pgbench -i`. Source: PostgreSQL 15, `builtin_script` of
/// `src/bin/pgbench/pgbench.c`.
pub const BUILTINS: &[(&str, &str)] = &[
    ("tpcb-like", include_str!("script/builtin/tpcb-like.sql")),
    ("simple-update", include_str!("script/builtin/simple-update.sql")),
    ("select-only", include_str!("script/builtin/select-only.sql")),
];

/// The full name of a builtin script, and its text. As in pgbench, a prefix will do if only one name begins with it.
pub fn builtin(name: &str) -> Option<(&'static str, &'static str)> {
    let mut found = BUILTINS.iter().filter(|(known, _)| known.starts_with(name));
    match (found.next(), found.next()) {
        (Some(script), None) => Some(*script),
        _ => None,
    }
}
