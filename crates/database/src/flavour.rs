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

/// Treatment by loadline.
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
    /// Advice to the user about its figures.
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

/// Abilities that an engine of its own lacks.
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

    #[test]
    fn what_servers_say_of_themselves() {
        assert!(FLAVOURS.checked(|_| &[]).flavours.iter().all(|flavour| !flavour.mark.is_empty()));
        for (texts, name, basis) in [
            (
                &["5.7.25-OceanBase seekdb-v1.4.0.0", "OceanBase 4.3.5.3 seekdb (r1.4.0.0)"][..],
                "OceanBase seekdb",
                Basis::Other,
            ),
            (&["5.7.25", "OceanBase_CE 4.2.1.0 (r100)"], "OceanBase", Basis::Other),
            (&["8.0.11-TiDB-v8.5.0", "TiDB Server (Apache License 2.0)"], "TiDB", Basis::Other),
            (&["8.0.33", "Dolt"], "Dolt", Basis::Other),
            (&["8.0.30-Vitess", ""], "Vitess", Basis::Other),
            (&["8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19"], "Percona Server", Basis::Same),
            (&["8.0.36-28.1", "Percona XtraDB Cluster (GPL), Release rel28"], "Percona XtraDB Cluster", Basis::Same),
            (&["CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)"], "CockroachDB", Basis::Other),
            (&["PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu"], "YugabyteDB", Basis::Other),
            (
                &["PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.12103"],
                "Amazon Redshift",
                Basis::Other,
            ),
            (&["PostgreSQL 12.12 (Greenplum Database 7.0.0)"], "Greenplum", Basis::Other),
        ] {
            let found = recognised(texts).unwrap();
            assert_eq!((found.name.as_str(), &found.basis), (name, &basis), "{texts:?}");
        }
        for original in [
            &["8.0.33", "MySQL Community Server - GPL"][..],
            &["10.11.19-MariaDB-0+deb12u1", "Debian 12"],
            &["11.4.5-MariaDB", "MariaDB Server"],
            &["PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"],
        ] {
            assert_eq!(recognised(original), None, "{original:?}");
        }
        let lacks = "lacks its counters Handler_commit";
        let e = refused("TiDB", "8.0.11-TiDB-v8.5.0", "here", "MySQL", lacks, "MySQL 8.0 and newer").to_string();
        assert!(e.contains("but lacks its counters Handler_commit, so"), "{e}");
        assert!(e.contains("is TiDB ('8.0.11-TiDB-v8.5.0')") && e.contains("loadline supports MySQL 8.0"), "{e}");
    }
}
