//! pgbench scripts that a workload runs in place of a program.

use std::sync::Arc;

use crate::script::Mix;

/// The parameter that holds the variable `scale`.
pub const SCALE: &str = "scale";

/// pgbench scripts, mixed by weight, on tables that are there.
#[derive(Debug, Clone)]
pub struct Scripts {
    /// The scripts.
    pub mix: Arc<Mix>,
    /// Whether their sessions may write.
    pub allow_writes: bool,
    /// The query whose result is the variable `scale`, if a script uses it and nobody gave it: one of pgbench's own scripts
    /// is among them.
    pub scale: Option<&'static str>,
}
