//! Scripts that are mixed by weight, and the clients that run them. Source: PostgreSQL 15, `main` and `chooseScript` of
//! `src/bin/pgbench/pgbench.c`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::EvaluationError;
use crate::machine::{Event, Keep, Machine};
use crate::random::Random;
use crate::script::Script;
use crate::value::Value;
use crate::variables::Variables;

/// Largest weight of a script.
pub const MAX_WEIGHT: i64 = i32::MAX as i64;

/// Scripts with their weights, and the variables that the user gave.
#[derive(Debug)]
pub struct Mix {
    scripts: Vec<(Script, i64)>,
    given: Vec<(String, String)>,
    seeds: Mutex<Option<Seeds>>,
}

/// The numbers from which a test's generators are seeded, in pgbench's order.
#[derive(Debug, Clone)]
struct Seeds {
    seed: u64,
    clients: u32,
    numbers: Arc<[u64]>,
}

/// A client: it chooses a script, runs it, and chooses again.
#[derive(Debug)]
pub struct Client {
    mix: &'static Mix,
    machine: Machine,
    choices: Random,
    now: usize,
}

impl Mix {
    /// Scripts with weights of 0 to [`MAX_WEIGHT`], and variables by name. `None` if all weights are 0.
    #[must_use]
    pub fn new(scripts: Vec<(Script, i64)>, given: Vec<(String, String)>) -> Option<Mix> {
        scripts.iter().any(|(_, weight)| *weight > 0).then(|| Mix { scripts, given, seeds: Mutex::default() })
    }

    /// Whether a script uses the variable `name` and the user did not give it.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        !self.gives(name) && self.scripts.iter().any(|(script, _)| script.uses(name))
    }

    fn gives(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| given == name)
    }

    /// The client of this number, of so many. `scale`: the value of `:scale`, unless the user gave one. Each has its own
    /// choices, as in pgbench with a thread per client (`-j` as large as `-c`).
    #[must_use]
    pub fn client(&'static self, number: u32, clients: u32, seed: u64, scale: i64) -> Client {
        let numbers = self.numbers(seed, clients);
        let of = |index: usize| numbers.get(index).copied().unwrap_or_default();
        let (clients, number) = (clients as usize, number as usize);
        let mut variables = Variables::default();
        for (name, text) in &self.given {
            variables.set_text(name, text);
        }
        let hash_seed = !self.gives("default_seed");
        let first_thread = clients + usize::from(hash_seed);
        for (name, value) in [
            ("scale", scale),
            ("client_id", i64::try_from(number).unwrap_or_default()),
            ("default_seed", of(clients).cast_signed()),
            ("random_seed", seed.cast_signed()),
        ] {
            if !self.gives(name) {
                variables.set(name, Value::Int(value));
            }
        }
        // A thread's generators choose scripts, delays and samples.
        let choices = Random::new(of(first_thread + 3 * number));
        Client { mix: self, machine: Machine::new(variables, Random::new(of(number))), choices, now: 0 }
    }

    /// A number per client, one for hashes unless the user gave it, three per thread. Computed once per test.
    fn numbers(&self, seed: u64, clients: u32) -> Arc<[u64]> {
        let mut known = self.seeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = known.as_ref().filter(|of| of.seed == seed && of.clients == clients) {
            return Arc::clone(&of.numbers);
        }
        let mut base = Random::new(seed);
        let count = 4 * clients as usize + usize::from(!self.gives("default_seed"));
        let numbers: Arc<[u64]> = (0..count).map(|_| base.next_u64()).collect();
        *known = Some(Seeds { seed, clients, numbers: Arc::clone(&numbers) });
        numbers
    }
}

impl Client {
    /// Chooses the script of the next transaction, by weight, and starts it.
    pub fn choose(&mut self) {
        self.machine.restart();
        let scripts = &self.mix.scripts;
        if scripts.len() < 2 {
            return;
        }
        let all: i64 = scripts.iter().map(|(_, weight)| weight).sum();
        let mut left = self.choices.uniform(0, all - 1);
        self.now = scripts
            .iter()
            .position(|(_, weight)| {
                left -= weight;
                left < 0
            })
            .unwrap_or_default();
    }

    /// Runs its script up to what it does next.
    ///
    /// # Errors
    /// As [`Machine::next`].
    pub fn advance(&mut self) -> Result<Event, EvaluationError> {
        let script = self.mix.scripts.get(self.now).ok_or(EvaluationError::Program)?;
        self.machine.next(&script.0)
    }

    /// Keeps what a statement returned.
    ///
    /// # Errors
    /// As [`Machine::keep`].
    pub fn keep(
        &mut self,
        keep: &Keep,
        columns: &[String],
        rows: &[Vec<Option<String>>],
    ) -> Result<(), EvaluationError> {
        self.machine.keep(keep, columns, rows)
    }

    /// `file:line:column` of the command that ran last.
    #[must_use]
    pub fn place(&self) -> String {
        self.mix.scripts.get(self.now).map_or_else(String::new, |(script, _)| {
            let place = self.machine.place(script);
            format!("{}:{}:{}", script.name, place.line, place.column)
        })
    }
}
