//! Recognises servers that speak MySQL's protocol and are something else.

use std::collections::BTreeMap;

use super::version::SUPPORTED;
use super::wire::Connection;
use crate::error::{Cause, TargetError, unless_refused};
use crate::flavour::{self, Basis, FLAVOURS, Flavour};

/// Counters that every MySQL and MariaDB has, and that loadline's figures are compared with.
const COUNTERS: [&str; 3] = ["Handler_commit", "Innodb_data_fsyncs", "Innodb_page_size"];

/// The flavour of the server; `None` for the originals.
pub(super) fn recognise(c: &mut Connection, place: &str) -> Result<Option<&'static Flavour>, TargetError> {
    // Not every product has every variable.
    let mut said = |sql: &str| unless_refused(c.value(sql)).map(Option::unwrap_or_default);
    let (version, comment) = (said("SELECT VERSION()")?, said("SELECT @@GLOBAL.version_comment")?);
    let aurora = !said("SELECT @@GLOBAL.aurora_version")?.is_empty();
    let known =
        if aurora { Some(&FLAVOURS.aurora) } else { flavour::recognised(&[&c.version.text, &version, &comment]) };
    let counted = match c.shown("GLOBAL STATUS", COUNTERS) {
        Err(TargetError::Server(e)) => match e.cause {
            Cause::FullDisk | Cause::Limit | Cause::Sessions | Cause::Privilege => {
                return Err(TargetError::Refused(format!(
                    "the server at {place} refuses to show its counters, without which no figure can be checked: {e}"
                )));
            }
            // A server of another kind does not know the statement.
            Cause::NotAllowed | Cause::Other => BTreeMap::new(),
        },
        counted => counted?,
    };
    let lacks: Vec<&str> = COUNTERS.into_iter().filter(|name| !counted.contains_key(*name)).collect();
    let refused = |name: &str| {
        let lacks = match lacks.is_empty() {
            true => flavour::OTHER_ENGINE.to_owned(),
            false => format!("lacks its counters {}", lacks.join(", ")),
        };
        flavour::refused(name, &format!("{version}, {comment}"), place, "MySQL", &lacks, SUPPORTED)
    };
    if let Some(flavour) = known.filter(|flavour| flavour.basis == Basis::Other) {
        return Err(refused(&flavour.name));
    }
    c.version.check(place)?;
    if lacks.is_empty() { Ok(known) } else { Err(refused("a product that loadline does not know")) }
}
