//! Servers that speak the protocol of PostgreSQL or MySQL and are something else: `flavours.toml`.
//!
//! loadline's figures are compared with counters of the server's own log and cache, so a protocol is not enough.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use crate::descriptor::Embedded;
use crate::error::TargetError;

pub(crate) static FLAVOURS: Embedded<Flavours> = Embedded::new("src/flavours.toml", include_str!("flavours.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flavours {
    flavours: Vec<Flavour>,
    pub(crate) aurora: Flavour,
}

/// A product that is recognised by what it says of itself.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flavour {
    #[serde(default)]
    mark: String,
    pub(crate) name: String,
    pub(crate) basis: Basis,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Basis {
    /// It is measured like the original.
    #[default]
    Same,
    /// It is measured, but this part of it is its own.
    Partly(String),
    Other,
}

impl Flavour {
    pub(crate) fn advice(&self) -> Option<&str> {
        if let Basis::Partly(what) = &self.basis { Some(what) } else { None }
    }
}

/// Product of an endpoint's server, if it is not an original; asked in the first session.
#[derive(Clone, Default)]
pub(crate) struct Recognised(Arc<OnceLock<Option<&'static Flavour>>>);

impl Recognised {
    /// Asks unless it is known.
    pub(crate) fn or_ask(
        &self,
        ask: impl FnOnce() -> Result<Option<&'static Flavour>, TargetError>,
    ) -> Result<(), TargetError> {
        if self.0.get().is_none() {
            let _ = self.0.set(ask()?);
        }
        Ok(())
    }

    pub(crate) fn flavour(&self) -> Option<&'static Flavour> {
        self.0.get().copied().flatten()
    }

    pub(crate) fn note(&self) -> Option<String> {
        self.flavour().map(|flavour| format!("the server is {}", flavour.name))
    }
}

/// The flavour that these texts are of; `None` for the original.
pub(crate) fn recognised(texts: &[&str]) -> Option<&'static Flavour> {
    let has = |mark: &str| texts.iter().any(|text| text.to_lowercase().contains(&mark.to_lowercase()));
    FLAVOURS.flavours.iter().find(|flavour| has(&flavour.mark))
}

pub(crate) const OTHER_ENGINE: &str = "has other counters, and a log and cache of its own";

/// The error for a server that is not `original` (`PostgreSQL`, `MySQL`), which says `version` of itself and `lacks` something.
pub(crate) fn refused(
    name: &str,
    version: &str,
    place: &str,
    original: &str,
    lacks: &str,
    supported: &str,
) -> TargetError {
    TargetError::Refused(format!(
        "the server at {place} is {name} ('{version}'): it speaks the protocol of {original}, but {lacks}, so its figures could \
         not be checked. loadline supports {supported}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn what_servers_say_of_themselves() {
        assert!(FLAVOURS.checked(|_| &[]).flavours.iter().all(|flavour| !flavour.mark.is_empty()));
        for (texts, name, basis) in cases::<(Vec<String>, String, Basis)>("flavours") {
            let found = recognised(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let said = found.map_or(("", &Basis::Same), |flavour| (&flavour.name, &flavour.basis));
            assert_eq!(said, (name.as_str(), &basis), "{texts:?}");
        }
        let lacks = "lacks its counters Handler_commit";
        let e = refused("TiDB", "8.0.11-TiDB-v8.5.0", "here", "MySQL", lacks, "MySQL 8.0 and newer").to_string();
        assert!(e.contains("but lacks its counters Handler_commit, so"), "{e}");
        assert!(e.contains("is TiDB ('8.0.11-TiDB-v8.5.0')") && e.contains("loadline supports MySQL 8.0"), "{e}");
    }
}
