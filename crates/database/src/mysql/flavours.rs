//! Recognises servers that speak MySQL's protocol and are something else.

use super::version::SUPPORTED;
use super::wire::Connection;
use crate::error::TargetError;
use crate::flavour::{self, AURORA, Basis, Flavour};

/// Counters that every MySQL and MariaDB has, and that loadline's figures are held against.
const COUNTERS: &str =
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_page_size', 'Innodb_data_fsyncs', 'Handler_commit')";

/// The flavour of the server; `None` for the originals.
///
/// # Errors
/// [`TargetError::Refused`]: another product, or a version that is not supported.
pub(super) fn recognise(c: &mut Connection, place: &str) -> Result<Option<&'static Flavour>, TargetError> {
    // Not every product has every variable.
    let mut said = |sql: &str| match c.value(sql) {
        Err(TargetError::Statement(_)) => Ok(String::new()),
        other => other.map(Option::unwrap_or_default),
    };
    let (version, comment) = (said("SELECT VERSION()")?, said("SELECT @@GLOBAL.version_comment")?);
    let aurora = !said("SELECT @@GLOBAL.aurora_version")?.is_empty();
    let known = if aurora { Some(&AURORA) } else { flavour::of(&[&c.version.text, &version, &comment]) };
    let refused = |name: &str| flavour::refused(name, &format!("{version}, {comment}"), place, "MySQL", SUPPORTED);
    if let Some(flavour) = known.filter(|flavour| flavour.basis == Basis::Other) {
        return Err(refused(flavour.name));
    }
    c.version.check(place)?;
    match c.pairs(COUNTERS) {
        Ok(counters) if counters.len() == 3 => Ok(known),
        Ok(_) | Err(TargetError::Statement(_)) => Err(refused("a product that loadline does not know")),
        Err(e) => Err(e),
    }
}
