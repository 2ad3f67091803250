//! Explains why the server refuses a connection, with advice.

use super::config::{Address, Config};
use super::protocol::ServerError;
use crate::error::TargetError;

/// The error for `error`, received while connecting; `note` is a note on the password file.
pub(super) fn explain(error: &ServerError, config: &Config, note: Option<&str>) -> TargetError {
    let (user, database, place) = (&config.user, &config.database, config.place());
    let advice = match error.code.as_str() {
        "28P01" => {
            let note = note.map_or(String::new(), |n| format!(" ({n})"));
            format!("the password for user '{user}' is wrong: check PGPASSWORD or ~/.pgpass{note}")
        }
        "28000" if error.message.contains("does not exist") => {
            format!("create the role '{user}', or name another in the URL: postgres://user@…")
        }
        "28000" if error.message.contains("Peer") || error.message.contains("Ident") => {
            format!(
                "pg_hba.conf allows operating-system users only under their own name: run loadline as '{user}', or connect over TCP with a password"
            )
        }
        "28000" => {
            let how = match config.address {
                Address::Unix(_) => "local".to_owned(),
                Address::Tcp(_) => "host".to_owned(),
            };
            format!("pg_hba.conf has no line that allows it: add '{how} {database} {user} … scram-sha-256' and reload")
        }
        "3D000" => format!("create the database '{database}', or name another at the end of the URL"),
        "42501" => format!("GRANT CONNECT ON DATABASE \"{database}\" TO \"{user}\""),
        "53300" if error.message.contains("for role") => {
            format!(
                "the role's CONNECTION LIMIT is reached: ALTER ROLE \"{user}\" CONNECTION LIMIT -1, or use fewer jobs"
            )
        }
        "53300" if error.message.contains("for database") => {
            format!(
                "the database's CONNECTION LIMIT is reached: ALTER DATABASE \"{database}\" CONNECTION LIMIT -1, or use fewer jobs"
            )
        }
        "53300" => "max_connections is reached: raise it and restart the server, or use fewer jobs".to_owned(),
        "08P01" if error.message.contains("startup parameter") => {
            "a connection pool (such as PgBouncer) is in between, which does not pass the settings of loadline's sessions: give the \
             server's own address"
                .to_owned()
        }
        "57P03" => "wait until the server is up and try again".to_owned(),
        _ => "see also the server's log".to_owned(),
    };
    TargetError::connection(error.refusal(), format!("{place} refuses the connection: {error}; {advice}"))
}
