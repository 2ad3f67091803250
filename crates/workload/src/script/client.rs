//! One client that runs the scripts of a mix. Source: PostgreSQL 15, `chooseScript`, `readCommandResponse` and `assignVariables` of
//! `src/bin/pgbench/pgbench.c`.

use std::sync::Arc;
use std::time::Duration;

use crate::script::file::{Command, Gather};
use crate::script::mix::Mix;
use crate::script::random::Random;
use crate::script::value::{EvaluationError, Value, Variables, is_name, is_name_char};

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Sends this text as one simple query, and keeps what it returns.
    Statement(String, Option<Gather>),
    Sleep(Duration),
    /// The script is done: a transaction in pgbench's sense.
    End,
}

/// A client: it chooses a script, runs it, and chooses again. Made by [`Mix::client`].
#[derive(Debug)]
pub struct Client {
    mix: Arc<Mix>,
    choices: Random,
    random: Random,
    /// Variables, which stay from one script to the next.
    variables: Variables,
    /// The script that it runs, the next command of it, and the one that ran last.
    script: usize,
    at: usize,
    last: usize,
}

impl Mix {
    /// The client of this number, of so many. `scale`: the value of `:scale`, unless the user gave one. Each has its own
    /// choices, as in pgbench with a thread per client (`-j` as large as `-c`).
    pub fn client(self: &Arc<Self>, number: u32, clients: u32, seed: u64, scale: i64) -> Client {
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
        Client { mix: Arc::clone(self), choices, random: Random::new(of(number)), variables, script: 0, at: 0, last: 0 }
    }
}

impl Client {
    /// Chooses the script of the next transaction, by weight, and starts it; also after a failed one.
    pub fn choose(&mut self) {
        self.at = 0;
        let scripts = &self.mix.scripts;
        if scripts.len() < 2 {
            return;
        }
        let all: i64 = scripts.iter().map(|(_, weight)| weight).sum();
        let mut left = self.choices.uniform(0, all - 1);
        let chosen = scripts.iter().position(|(_, weight)| {
            left -= weight;
            left < 0
        });
        self.script = chosen.unwrap_or_default();
    }

    /// The number of the script that it runs or ran last, in the order of the mix.
    pub fn script(&self) -> usize {
        self.script
    }

    /// Runs commands up to the next statement, sleep or end. After the end the script starts anew.
    /// Fails if an expression has no value: the client cannot go on.
    pub fn advance(&mut self) -> Result<Event, EvaluationError> {
        let (script, _) = self.mix.scripts.get(self.script).ok_or(EvaluationError::Program)?;
        loop {
            let Some(command) = script.commands.get(self.at) else {
                self.at = 0;
                return Ok(Event::End);
            };
            self.last = self.at;
            self.at += 1;
            match command {
                Command::Statement { sql, gather } => {
                    return Ok(Event::Statement(filled(sql, &self.variables), gather.clone()));
                }
                Command::Set(name, value) => {
                    let value = value.value(&|name| self.variables.value(name), &mut self.random)?;
                    self.variables.set(name, value);
                }
                Command::Sleep(length, unit) => {
                    let number = match length.value(&|name| self.variables.value(name), &mut self.random)? {
                        Value::Null => 0,
                        number => number.int()?,
                    };
                    let ns = u64::try_from(number).unwrap_or(0).saturating_mul(*unit);
                    return Ok(Event::Sleep(Duration::from_nanos(ns)));
                }
                Command::Unless(condition, to) => {
                    if !condition.value(&|name| self.variables.value(name), &mut self.random)?.holds() {
                        self.at = *to;
                    }
                }
                Command::Goto(to) => self.at = *to,
            }
        }
    }

    /// Keeps what a statement returned: `rows` of the result, each with a text or NULL per column.
    /// Fails for `\gset` without exactly one row, or a column whose name cannot be a variable's.
    pub fn keep(
        &mut self,
        keep: &Gather,
        columns: &[String],
        rows: &[Vec<Option<String>>],
    ) -> Result<(), EvaluationError> {
        let (prefix, row) = match (keep, rows) {
            (Gather::Last(prefix), [row]) => (prefix, row),
            (Gather::Last(_), rows) => return Err(EvaluationError::Rows(rows.len())),
            (Gather::All(prefix), [.., row]) => (prefix, row),
            (Gather::All(_), []) => return Ok(()),
        };
        for (column, value) in columns.iter().zip(row) {
            let name = format!("{prefix}{column}");
            if !is_name(&name) {
                return Err(EvaluationError::Name(name));
            }
            // pgbench reads NULL as an empty text here.
            self.variables.set_text(&name, value.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// `file:line:column` of the command that ran last.
    pub fn place(&self) -> String {
        self.mix.scripts.get(self.script).map_or_else(String::new, |(script, _)| script.place(self.last))
    }
}

/// `sql` with the values of its variables. As in pgbench, one that is not set stays as it is, `::` is a cast, and a name
/// that begins with a digit is a time of day.
fn filled(sql: &str, variables: &Variables) -> String {
    let mut out = String::with_capacity(sql.len() + 32);
    let mut rest = sql;
    while let Some(colon) = rest.find(':') {
        let after = rest[colon..].trim_start_matches(':');
        let (name, behind) = after.split_at(after.find(|c| !is_name_char(c)).unwrap_or(after.len()));
        let colons = rest.len() - after.len() - colon;
        let is_variable = colons == 1 && !name.starts_with(|c: char| c.is_ascii_digit());
        if let Some(text) = variables.text(name)
            && is_variable
        {
            out += &rest[..colon];
            out += &text;
            rest = behind;
        } else {
            out += &rest[..colon + colons];
            rest = after;
        }
    }
    out + rest
}
