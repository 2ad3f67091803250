//! Scripts that are mixed by weight. Source: PostgreSQL 15, `main` of `src/bin/pgbench/pgbench.c`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::script::file::Script;
use crate::script::random::Random;

pub const MAX_WEIGHT: i64 = i32::MAX as i64;
/// The parameter that holds the variable `scale`.
pub const SCALE: &str = "scale";

/// pgbench scripts with their weights, on tables that are there, and the variables that the user gave.
#[derive(Debug)]
pub struct Mix {
    pub(crate) scripts: Vec<(Script, i64)>,
    pub(crate) given: Vec<(String, String)>,
    pub allow_writes: bool,
    /// The query whose result is the variable `scale`, if a script uses it and nobody gave it: one of pgbench's own scripts
    /// is among them.
    pub scale: Option<&'static str>,
    seeds: Mutex<Option<Seeds>>,
}

/// Seed and number of clients of a test, and the numbers from which its generators are seeded, in pgbench's order.
type Seeds = (u64, u32, Arc<[u64]>);

impl Mix {
    /// Scripts with weights of 0 to [`MAX_WEIGHT`], and variables by name. `None` if all weights are 0.
    pub fn new(scripts: Vec<(Script, i64)>, given: Vec<(String, String)>) -> Option<Mix> {
        let (allow_writes, scale, seeds) = (false, None, Mutex::default());
        scripts.iter().any(|(_, weight)| *weight > 0).then_some(Mix { scripts, given, allow_writes, scale, seeds })
    }

    pub fn scripts(&self) -> impl Iterator<Item = (&str, i64)> {
        self.scripts.iter().map(|(script, weight)| (script.name.as_str(), *weight))
    }

    /// Whether a script uses the variable `name` and the user did not give it.
    pub fn lacks(&self, name: &str) -> bool {
        !self.gives(name) && self.scripts.iter().any(|(script, _)| script.uses(name))
    }

    pub(crate) fn gives(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| given == name)
    }

    /// A number per client, one for hashes unless the user gave it, three per thread. Computed once per test.
    pub(crate) fn numbers(&self, seed: u64, clients: u32) -> Arc<[u64]> {
        let mut known = self.seeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, many, numbers)) = known.as_ref()
            && (*of, *many) == (seed, clients)
        {
            return Arc::clone(numbers);
        }
        let mut base = Random::new(seed);
        let count = 4 * clients as usize + usize::from(!self.gives("default_seed"));
        let numbers: Arc<[u64]> = (0..count).map(|_| base.next_u64()).collect();
        *known = Some((seed, clients, Arc::clone(&numbers)));
        numbers
    }
}
