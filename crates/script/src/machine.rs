//! One client that runs a script.

use std::time::Duration;

use crate::error::{EvaluationError, Place};
use crate::random::Random;
use crate::script::{Command, Gather, Length, Script};
use crate::value::Value;
use crate::variables::{Variables, is_name, is_name_char};

/// What the client does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Sends this text as one simple query.
    Statement(String, Option<Keep>),
    /// Waits.
    Sleep(Duration),
    /// The script is done: a transaction in pgbench's sense.
    End,
}

/// What to do with a statement's result.
pub type Keep = Gather;

/// A client: its variables, its random numbers, and where in a script it is.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its variables, which stay from one script to the next.
    pub variables: Variables,
    random: Random,
    at: usize,
    /// The command that ran last.
    last: usize,
}

impl Machine {
    /// A client at the start of a script.
    #[must_use]
    pub fn new(variables: Variables, random: Random) -> Self {
        Self { variables, random, at: 0, last: 0 }
    }

    /// Where in `script` the last command began.
    #[must_use]
    pub fn place(&self, script: &Script) -> Place {
        script.place(self.last)
    }

    /// Starts a script anew, e.g. after a failed transaction.
    pub fn restart(&mut self) {
        self.at = 0;
    }

    /// Runs commands up to the next statement, sleep or end. After the end it starts anew.
    ///
    /// # Errors
    /// An expression that has no value. The client cannot go on.
    pub fn next(&mut self, script: &Script) -> Result<Event, EvaluationError> {
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
                    let value = value.value(&self.variables, &mut self.random)?;
                    self.variables.set(name, value);
                }
                Command::Sleep(length, unit) => return Ok(Event::Sleep(self.sleep(length, *unit)?)),
                Command::Unless(condition, to) => {
                    if !condition.value(&self.variables, &mut self.random)?.holds() {
                        self.at = *to;
                    }
                }
                Command::Goto(to) => self.at = *to,
            }
        }
    }

    /// Keeps what a statement returned: `rows` of the result, each with a text or NULL per column.
    ///
    /// # Errors
    /// `\gset` without exactly one row, or a column whose name cannot be a variable's.
    pub fn keep(
        &mut self,
        keep: &Keep,
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
            if !is_name(column) {
                return Err(EvaluationError::Name(column.clone()));
            }
            // pgbench reads NULL as an empty text here.
            self.variables.set_text(&format!("{prefix}{column}"), value.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    fn sleep(&self, length: &Length, unit: u64) -> Result<Duration, EvaluationError> {
        let number = match length {
            Length::Number(number) => *number,
            Length::Variable(name) => {
                let value = self.variables.value(name)?;
                if value == Value::Null { 0 } else { value.int()? }
            }
        };
        Ok(Duration::from_nanos(u64::try_from(number).unwrap_or(0).saturating_mul(unit)))
    }
}

/// `sql` with the values of its variables. As in pgbench, one that is not set stays as it is, `::` is a cast, and a name
/// that begins with a digit is a time of day.
fn filled(sql: &str, variables: &Variables) -> String {
    let mut out = String::with_capacity(sql.len() + 32);
    let mut rest = sql;
    while let Some(colon) = rest.find(':') {
        out.push_str(&rest[..colon]);
        let after = &rest[colon..];
        let colons = after.len() - after.trim_start_matches(':').len();
        let name_text = &after[colons..];
        let length: usize = name_text.chars().take_while(|c| is_name_char(*c)).map(char::len_utf8).sum();
        let name = &name_text[..length];
        let text =
            (colons == 1 && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| variables.text(name)).flatten();
        match text {
            Some(text) => {
                out.push_str(&text);
                rest = &name_text[length..];
            }
            None => {
                out.push_str(&after[..colons]);
                rest = name_text;
            }
        }
    }
    out.push_str(rest);
    out
}
