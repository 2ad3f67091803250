//! Recognises servers that speak PostgreSQL's protocol and are something else.

use super::versions::{NEWEST, OLDEST};
use super::wire::Connection;
use crate::error::TargetError;
use crate::flavour::{self, Basis, FLAVOURS, Flavour};

/// The flavour of the server; `None` for the original.
pub(super) fn recognise(c: &mut Connection, place: &str) -> Result<Option<&'static Flavour>, TargetError> {
    let version = match c.value("SELECT version()") {
        Err(TargetError::Server(e)) => e.text,
        other => other?.unwrap_or_default(),
    };
    let known = flavour::of(&[&version]);
    let supported = format!("PostgreSQL {OLDEST} to {NEWEST}");
    let refused = |name: &str| flavour::refused(name, &version, place, "PostgreSQL", flavour::OTHER_ENGINE, &supported);
    match known {
        Some(flavour) if flavour.basis == Basis::Other => return Err(refused(&flavour.name)),
        None if !version.starts_with("PostgreSQL ") => return Err(refused("a product that loadline does not know")),
        _ => {}
    }
    let aurora = c.value("SELECT 1 FROM pg_proc WHERE proname = 'aurora_version' LIMIT 1")?.is_some();
    Ok(if aurora { Some(&FLAVOURS.aurora) } else { known })
}
