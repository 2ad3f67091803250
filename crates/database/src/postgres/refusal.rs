//! Explains why the server refuses a connection, with advice.

use super::config::{Address, Config};
use super::knowledge::KNOWLEDGE;
use super::protocol::ServerError;
use crate::error::{Meaning, TargetError};

/// The error for `error`, received while connecting; `note` is a note on the password file.
pub(super) fn explain(error: &ServerError, config: &Config, note: Option<&str>) -> TargetError {
    let how = match config.address {
        Address::Unix(_) => "local",
        Address::Tcp(_) => "host",
    };
    let note = note.map_or(String::new(), |n| format!(" ({n})"));
    let of = [("{user}", config.user.as_str()), ("{database}", &config.database), ("{how}", how), ("{note}", &note)];
    let advice = Meaning::advice(&KNOWLEDGE.errors, &error.code, &error.message).unwrap_or_default().to_owned();
    let advice = of.iter().fold(advice, |advice, (name, is)| advice.replace(name, is));
    TargetError::connection(error.refusal(), format!("{} refuses the connection: {error}; {advice}", config.place()))
}
